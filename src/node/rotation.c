/* New credentials for a node that runs: AUTH, and what came of it. */
#include "node/rotation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/requests.h"
#include "node/subscription.h"
#include "wire/cause.h"
#include "wire/error.h"

#define AUTH_KEEPS_LOGIN_SINCE 6 /* the version of Redis */

static const char echo[] = "redlock-auth";

/* `round` of the entry: which reply comes next. */
enum place {
    PLACE_AUTH,
    PLACE_PING_ACCEPTED, /* the PING behind an AUTH that was accepted, */
    PLACE_PING_REFUSED   /* or refused */
};

/* What the caller gave since is newer still. */
static void give_back(struct redlock_rotation *rotation, struct redlock_credentials *credentials) {
    if (rotation->newer.password != NULL) {
        redlock_credentials_clear(credentials);
    } else {
        redlock_credentials_move(&rotation->newer, credentials);
    }
}

void redlock_rotation_clear(struct redlock_rotation *rotation) {
    redlock_credentials_clear(&rotation->newer);
    redlock_credentials_clear(&rotation->asked);
    redlock_credentials_clear(&rotation->older);
    redlock_credentials_clear(&rotation->spare);
    redlock_text_drop(rotation->refusal);
    rotation->refusal = NULL;
}

bool redlock_rotation_is_pending(const struct redlock_rotation *rotation) {
    return rotation->newer.password != NULL || rotation->asked.password != NULL || rotation->trying ||
           rotation->unaccepted;
}

/* Takes over the text. The warning of node_info says it, too. */
static void set_refusal(struct redlock_node *node, struct redlock_text *refusal) {
    redlock_text_drop(node->rotation.refusal);
    node->rotation.refusal = refusal;
    (void)snprintf(node->warning, sizeof node->warning, "%s", node->handshake.warning);
    if (refusal != NULL) {
        const size_t used = strlen(node->warning);
        (void)snprintf(node->warning + used, sizeof node->warning - used,
                       "%sthe new credentials are refused, the old ones are in use (%s)", used > 0 ? "; " : "",
                       redlock_text_string(refusal));
    }
}

static void log_accepted(const struct redlock_node *node) {
    node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO, "node %s has accepted the new credentials",
                      node->address.name);
}

static void log_refused(const struct redlock_node *node, const char *reason) {
    node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING,
                      "node %s refuses the new credentials (%s): the old ones stay in use; see that the node has the "
                      "new ones, then set them again",
                      node->address.name, reason);
}

static bool is_same_user(const char *a, const char *b) {
    static const char otherwise[] = "default";
    return strcmp(a != NULL ? a : otherwise, b != NULL ? b : otherwise) == 0;
}

/* Returns whether a refused AUTH would end what this connection may do. */
static bool auth_may_log_out(const struct redlock_node *node) {
    static const char redis[] = "redis ";
    const char *version = node->info.version;
    return strncmp(version, redis, sizeof redis - 1) == 0 &&
           strtol(version + sizeof redis - 1, NULL, 10) < AUTH_KEEPS_LOGIN_SINCE;
}

/* Queues AUTH and PING behind the requests. Returns false without memory. */
static bool queue_auth(struct redlock_node *node) {
    const int64_t now_ns = redlock_node_now_ns(node);
    struct redlock_inflight_entry entry = {.owner = &node->rotation, .queued_ns = now_ns, .own = true};
    struct redlock_outbox box = {0};
    const char *words[4], *const ping[4] = {"PING", echo};
    (void)redlock_handshake_auth(&node->rotation.asked, words);
    const bool queued = redlock_handshake_say(&box, words) && redlock_handshake_say(&box, ping) &&
                        redlock_requests_queue(node, box.bytes + box.head, redlock_outbox_size(&box), &entry);
    redlock_outbox_clear(&box);
    return queued;
}

/* READY, STALLED: AUTH with the newer ones, if the node was not asked before. */
static void ask(struct redlock_node *node) {
    struct redlock_rotation *rotation = &node->rotation;
    if (rotation->newer.password == NULL || rotation->asked.password != NULL || rotation->refusal != NULL) {
        return;
    }
    if (auth_may_log_out(node)) {
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO,
                          "node %s gets the new credentials with its next connection: %s logs a connection out when "
                          "AUTH fails",
                          node->address.name, node->info.version);
        return;
    }
    redlock_credentials_move(&rotation->asked, &rotation->newer);
    if (!queue_auth(node)) {
        give_back(rotation, &rotation->asked);
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING,
                          "node %s: no memory for AUTH; it gets the new credentials with its next connection",
                          node->address.name);
    }
}

void redlock_rotation_offer(struct redlock_node *node, struct redlock_credentials *credentials) {
    redlock_credentials_move(&node->rotation.newer, credentials);
    node->rotation.go_back = node->rotation.unaccepted = node->rotation.spare_turns = false;
    set_refusal(node, NULL);
    if (redlock_node_is_up(node)) {
        ask(node);
    } else if (node->phase == REDLOCK_PHASE_UNUSABLE) {
        /* Perhaps for want of these: look again now. */
        node->retry_ns = redlock_node_now_ns(node);
        redlock_node_rearm(node, node->retry_ns);
    }
}

const struct redlock_credentials *redlock_rotation_greets(struct redlock_node *node) {
    struct redlock_rotation *rotation = &node->rotation;
    if (rotation->newer.password != NULL && !rotation->go_back) {
        redlock_credentials_move(&rotation->older, &node->address.credentials);
        redlock_credentials_move(&node->address.credentials, &rotation->newer);
        rotation->trying = true;
    }
    rotation->go_back = false;
    return &node->address.credentials;
}

static const struct redlock_credentials *newest(const struct redlock_rotation *rotation) {
    return rotation->newer.password != NULL ? &rotation->newer : &rotation->asked;
}

const struct redlock_credentials *redlock_rotation_spare_greets(struct redlock_node *node) {
    struct redlock_rotation *rotation = &node->rotation;
    const struct redlock_credentials *new_ones = newest(rotation);
    const bool tries = new_ones->password != NULL && rotation->spare_turns == (rotation->refusal != NULL);
    redlock_credentials_clear(&rotation->spare);
    return tries && redlock_credentials_copy(&rotation->spare, new_ones->user, new_ones->password)
               ? &rotation->spare
               : &node->address.credentials;
}

void redlock_rotation_spare_refused(struct redlock_node *node) {
    struct redlock_rotation *rotation = &node->rotation;
    rotation->spare_turns = newest(rotation)->password != NULL && !rotation->spare_turns;
}

void redlock_rotation_spare_accepted(struct redlock_node *node) {
    struct redlock_rotation *rotation = &node->rotation;
    rotation->spare_turns = false;
    if (rotation->spare.password == NULL) {
        return;
    }
    if (rotation->newer.password != NULL && strcmp(rotation->newer.password, rotation->spare.password) == 0 &&
        is_same_user(rotation->newer.user, rotation->spare.user)) {
        redlock_credentials_clear(&rotation->newer);
    }
    redlock_credentials_move(&node->address.credentials, &rotation->spare);
    set_refusal(node, NULL);
    log_accepted(node);
}

void redlock_rotation_ready(struct redlock_node *node) {
    struct redlock_rotation *rotation = &node->rotation;
    if (rotation->trying || rotation->unaccepted) {
        rotation->trying = rotation->unaccepted = false;
        redlock_credentials_clear(&rotation->older);
        set_refusal(node, NULL);
        log_accepted(node);
    } else if (rotation->refusal != NULL) {
        set_refusal(node, redlock_text_keep(rotation->refusal)); /* a new warning */
    }
    ask(node);
}

void redlock_rotation_ends(struct redlock_node *node) {
    struct redlock_rotation *rotation = &node->rotation;
    give_back(rotation, &rotation->asked);
    rotation->withdrawn = false;
    if (rotation->trying) {
        rotation->trying = false;
        give_back(rotation, &node->address.credentials);
        redlock_credentials_move(&node->address.credentials, &rotation->older);
    }
}

void redlock_rotation_was_withdrawn(struct redlock_node *node) {
    if (node->rotation.withdrawn) {
        node->rotation.withdrawn = false;
        give_back(&node->rotation, &node->rotation.asked);
        ask(node);
    }
}

bool redlock_rotation_goes_back(struct redlock_node *node, const char *reason) {
    struct redlock_rotation *rotation = &node->rotation;
    if (!rotation->trying) {
        if (rotation->refusal != NULL) {
            /* Neither is accepted. The new ones are what the caller wants. */
            assert(rotation->newer.password != NULL);
            redlock_credentials_move(&node->address.credentials, &rotation->newer);
            set_refusal(node, NULL);
            rotation->unaccepted = true;
        }
        return false;
    }
    if (rotation->newer.password == NULL) { /* else there are newer ones to try */
        if (rotation->refusal == NULL) {
            log_refused(node, reason);
        }
        set_refusal(node, redlock_text_new(REDLOCK_CAUSE_AUTH, "%s", reason));
        rotation->go_back = true;
    }
    return true;
}

/* The text of a server's error, without secrets. */
static struct redlock_text *error_text(const struct redlock_node *node, const struct redlock_reply *reply) {
    char error[REDLOCK_WIRE_ERROR_SIZE];
    (void)redlock_wire_error(&reply->value, node->rotation.asked.password, error);
    return redlock_text_new(redlock_wire_cause(&reply->value), "AUTH failed: %s", error);
}

static void accepted(struct redlock_node *node) {
    const bool same_user = is_same_user(node->address.credentials.user, node->rotation.asked.user);
    redlock_credentials_move(&node->address.credentials, &node->rotation.asked);
    set_refusal(node, NULL);
    log_accepted(node);
    if (!same_user) {
        redlock_subscription_end(&node->subscription, node->why);
        redlock_subscription_begin(&node->subscription);
    }
}

static void refused(struct redlock_node *node, struct redlock_text *why) {
    struct redlock_rotation *rotation = &node->rotation;
    const bool newest = rotation->newer.password == NULL;
    log_refused(node, redlock_text_string(why));
    give_back(rotation, &rotation->asked);
    set_refusal(node, newest ? why : NULL);
    if (!newest) {
        redlock_text_drop(why);
    }
}

bool redlock_rotation_reply(struct redlock_node *node, const struct redlock_inflight_entry *entry, bool in_time,
                            const struct redlock_reply *reply) {
    const enum redlock_reply_type type = reply->value.type;
    struct redlock_inflight_entry next = *entry;
    if (entry->round != PLACE_AUTH) {
        return redlock_reply_is(&reply->value, echo) ||
               (type == REDLOCK_REPLY_ERROR && entry->round == PLACE_PING_ACCEPTED);
    }
    redlock_outbox_wipe(&node->connection.outbox);
    if (type == REDLOCK_REPLY_STATUS) {
        next.round = PLACE_PING_ACCEPTED;
        accepted(node);
    } else if (type == REDLOCK_REPLY_ERROR) {
        next.round = PLACE_PING_REFUSED;
        refused(node, error_text(node, reply));
    } else if (redlock_reply_is(&reply->value, echo)) {
        refused(node, redlock_text_new(REDLOCK_CAUSE_AUTH,
                                       "AUTH failed: WRONGPASS invalid username-password pair or user is disabled"));
    } else {
        return false;
    }
    if (next.round != PLACE_AUTH && !redlock_inflight_put_back(&node->connection.inflight, &next, in_time)) {
        return false;
    }
    ask(node);
    return true;
}
