/* New credentials for a server that runs: AUTH, and what came of it. */
#include "server/rotation.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/requests.h"
#include "server/subscription.h"
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
static void set_refusal(struct redlock_server *server, struct redlock_text *refusal) {
    redlock_text_drop(server->rotation.refusal);
    server->rotation.refusal = refusal;
    (void)snprintf(server->warning, sizeof server->warning, "%s", server->handshake.warning);
    if (refusal != NULL) {
        const size_t used = strlen(server->warning);
        (void)snprintf(server->warning + used, sizeof server->warning - used,
                       "%sthe new credentials are refused, the old ones are in use (%s)", used > 0 ? "; " : "",
                       redlock_text_string(refusal));
    }
}

static void note_accepted(struct redlock_server *server) {
    set_refusal(server, NULL);
    server->reactor.log(server->reactor.ctx, REDLOCK_LOG_INFO, "node %s has accepted the new credentials",
                        server->address.name);
}

static void log_refused(const struct redlock_server *server, const char *reason) {
    server->reactor.log(server->reactor.ctx, REDLOCK_LOG_WARNING,
                        "node %s refuses the new credentials (%s): the old ones stay in use; see that the node has the "
                        "new ones, then set them again",
                        server->address.name, reason);
}

static bool is_same_user(const char *a, const char *b) {
    static const char otherwise[] = "default";
    return strcmp(a != NULL ? a : otherwise, b != NULL ? b : otherwise) == 0;
}

/* Returns whether a refused AUTH would end what this connection may do. */
static bool auth_may_log_out(const struct redlock_server *server) {
    static const char redis[] = "redis ";
    const char *version = server->info.version;
    return strncmp(version, redis, sizeof redis - 1) == 0 &&
           strtol(version + sizeof redis - 1, NULL, 10) < AUTH_KEEPS_LOGIN_SINCE;
}

/* Queues AUTH and PING behind the requests. Returns false without memory. */
static bool queue_auth(struct redlock_server *server) {
    const int64_t now_ns = redlock_server_now_ns(server);
    struct redlock_inflight_entry entry = {.owner = &server->rotation, .queued_ns = now_ns, .own = true};
    struct redlock_outbox box = {0};
    const char *words[4], *const ping[4] = {"PING", echo};
    assert(server->rotation.asked.password != NULL);
    (void)redlock_handshake_auth(&server->rotation.asked, words);
    const bool queued = redlock_handshake_say(&box, words) && redlock_handshake_say(&box, ping) &&
                        redlock_requests_queue(server, box.bytes + box.head, redlock_outbox_size(&box), &entry);
    redlock_outbox_clear(&box);
    return queued;
}

/* READY, STALLED: AUTH with the newer ones, if the server was not asked before. */
static void ask(struct redlock_server *server) {
    struct redlock_rotation *rotation = &server->rotation;
    if (rotation->newer.password == NULL || rotation->asked.password != NULL || rotation->refusal != NULL) {
        return;
    }
    if (auth_may_log_out(server)) {
        server->reactor.log(server->reactor.ctx, REDLOCK_LOG_INFO,
                            "node %s gets the new credentials with its next connection: %s logs a connection out when "
                            "AUTH fails",
                            server->address.name, server->info.version);
        return;
    }
    redlock_credentials_move(&rotation->asked, &rotation->newer);
    if (!queue_auth(server)) {
        give_back(rotation, &rotation->asked);
        server->reactor.log(server->reactor.ctx, REDLOCK_LOG_WARNING,
                            "node %s: no memory for AUTH; it gets the new credentials with its next connection",
                            server->address.name);
    }
}

void redlock_rotation_offer(struct redlock_server *server, struct redlock_credentials *credentials) {
    assert(credentials->password != NULL); /* which says that there are some */
    redlock_credentials_move(&server->rotation.newer, credentials);
    server->rotation.go_back = server->rotation.unaccepted = server->rotation.spare_turns = false;
    set_refusal(server, NULL);
    if (redlock_server_is_up(server)) {
        ask(server);
    } else if (server->phase == REDLOCK_PHASE_UNUSABLE) {
        /* Perhaps for want of these: look again now. */
        server->due_ns = redlock_server_now_ns(server);
        redlock_server_rearm(server, server->due_ns);
    }
}

const struct redlock_credentials *redlock_rotation_greets(struct redlock_server *server) {
    struct redlock_rotation *rotation = &server->rotation;
    assert(!rotation->trying);
    if (rotation->newer.password != NULL && !rotation->go_back) {
        redlock_credentials_move(&rotation->older, &server->address.credentials);
        redlock_credentials_move(&server->address.credentials, &rotation->newer);
        rotation->trying = true;
    }
    rotation->go_back = false;
    return &server->address.credentials;
}

static const struct redlock_credentials *newest(const struct redlock_rotation *rotation) {
    return rotation->newer.password != NULL ? &rotation->newer : &rotation->asked;
}

const struct redlock_credentials *redlock_rotation_spare_greets(struct redlock_server *server) {
    struct redlock_rotation *rotation = &server->rotation;
    const struct redlock_credentials *new_ones = newest(rotation);
    const bool tries = new_ones->password != NULL && rotation->spare_turns == (rotation->refusal != NULL);
    redlock_credentials_clear(&rotation->spare);
    return tries && redlock_credentials_copy(&rotation->spare, new_ones->user, new_ones->password)
               ? &rotation->spare
               : &server->address.credentials;
}

void redlock_rotation_spare_refused(struct redlock_server *server) {
    struct redlock_rotation *rotation = &server->rotation;
    rotation->spare_turns = newest(rotation)->password != NULL && !rotation->spare_turns;
}

void redlock_rotation_spare_accepted(struct redlock_server *server) {
    struct redlock_rotation *rotation = &server->rotation;
    rotation->spare_turns = false;
    if (rotation->spare.password == NULL) {
        return;
    }
    if (rotation->newer.password != NULL && strcmp(rotation->newer.password, rotation->spare.password) == 0 &&
        is_same_user(rotation->newer.user, rotation->spare.user)) {
        redlock_credentials_clear(&rotation->newer);
    }
    redlock_credentials_move(&server->address.credentials, &rotation->spare);
    note_accepted(server);
}

void redlock_rotation_ready(struct redlock_server *server) {
    struct redlock_rotation *rotation = &server->rotation;
    if (rotation->trying || rotation->unaccepted) {
        rotation->trying = rotation->unaccepted = false;
        redlock_credentials_clear(&rotation->older);
        note_accepted(server);
    } else if (rotation->refusal != NULL) {
        set_refusal(server, redlock_text_keep(rotation->refusal)); /* a new warning */
    }
    ask(server);
}

void redlock_rotation_ends(struct redlock_server *server) {
    struct redlock_rotation *rotation = &server->rotation;
    give_back(rotation, &rotation->asked);
    rotation->withdrawn = false;
    if (rotation->trying) {
        rotation->trying = false;
        give_back(rotation, &server->address.credentials);
        redlock_credentials_move(&server->address.credentials, &rotation->older);
    }
}

void redlock_rotation_was_withdrawn(struct redlock_server *server) {
    if (server->rotation.withdrawn) {
        server->rotation.withdrawn = false;
        give_back(&server->rotation, &server->rotation.asked);
        ask(server);
    }
}

bool redlock_rotation_goes_back(struct redlock_server *server, const char *reason) {
    struct redlock_rotation *rotation = &server->rotation;
    if (!rotation->trying) {
        if (rotation->refusal != NULL) {
            /* Neither is accepted. The new ones are what the caller wants. */
            assert(rotation->newer.password != NULL);
            redlock_credentials_move(&server->address.credentials, &rotation->newer);
            set_refusal(server, NULL);
            rotation->unaccepted = true;
        }
        return false;
    }
    if (rotation->newer.password == NULL) { /* else there are newer ones to try */
        if (rotation->refusal == NULL) {
            log_refused(server, reason);
        }
        set_refusal(server, redlock_text_new(REDLOCK_CAUSE_AUTH, "%s", reason));
        rotation->go_back = true;
    }
    return true;
}

/* The text of a server's error, without secrets. */
static struct redlock_text *error_text(const struct redlock_server *server, const struct redlock_reply *reply) {
    char error[REDLOCK_WIRE_ERROR_SIZE];
    (void)redlock_wire_error(&reply->value, server->rotation.asked.password, error);
    return redlock_text_new(redlock_wire_cause(&reply->value), "AUTH failed: %s", error);
}

static void accepted(struct redlock_server *server) {
    const bool same_user = is_same_user(server->address.credentials.user, server->rotation.asked.user);
    redlock_credentials_move(&server->address.credentials, &server->rotation.asked);
    note_accepted(server);
    if (!same_user) {
        redlock_subscription_end(&server->subscription, server->why);
        redlock_subscription_begin(&server->subscription);
    }
}

static void refused(struct redlock_server *server, struct redlock_text *why) {
    struct redlock_rotation *rotation = &server->rotation;
    const bool newest = rotation->newer.password == NULL;
    log_refused(server, redlock_text_string(why));
    give_back(rotation, &rotation->asked);
    set_refusal(server, newest ? why : NULL);
    if (!newest) {
        redlock_text_drop(why);
    }
}

bool redlock_rotation_reply(struct redlock_server *server, const struct redlock_inflight_entry *entry, bool in_time,
                            const struct redlock_reply *reply) {
    const enum redlock_reply_type type = reply->value.type;
    struct redlock_inflight_entry next = *entry;
    if (entry->round != PLACE_AUTH) {
        return redlock_reply_is(&reply->value, echo) ||
               (type == REDLOCK_REPLY_ERROR && entry->round == PLACE_PING_ACCEPTED);
    }
    redlock_outbox_wipe(&server->connection.outbox);
    if (type == REDLOCK_REPLY_STATUS) {
        next.round = PLACE_PING_ACCEPTED;
        accepted(server);
    } else if (type == REDLOCK_REPLY_ERROR) {
        next.round = PLACE_PING_REFUSED;
        refused(server, error_text(server, reply));
    } else if (redlock_reply_is(&reply->value, echo)) {
        refused(server, redlock_text_new(REDLOCK_CAUSE_AUTH,
                                         "AUTH failed: WRONGPASS invalid username-password pair or user is disabled"));
    } else {
        return false;
    }
    if (next.round != PLACE_AUTH && !redlock_inflight_put_back(&server->connection.inflight, &next, in_time)) {
        return false;
    }
    ask(server);
    return true;
}
