/* A node's states, and when they change. */
#include "node/node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/time.h"
#include "node/connect.h"
#include "node/node_state.h"
#include "node/phase.h"
#include "node/requests.h"
#include "node/rotation.h"
#include "node/subscription.h"
#include "node/traffic.h"
#include "wire/wire.h"

/*
 * state        event                                       → state
 * NEW          first turn of the loop                      → DIALING
 * DIALING      the dial knows the server                   → INTRODUCING
 *              the dial fails                              → WAITING; UNUSABLE, see below
 * INTRODUCING  last reply                                  → READY
 *              the same server as an earlier node, no Lua  → UNUSABLE
 *              last reply; a later node has the same
 *              server, and gives way in the next turn      → the same; then READY
 *              an earlier node has the same server         → UNUSABLE
 *              closed, give_up_ns                          → WAITING
 * READY        3 timeouts without a reply, and the spare is
 *              not fresh (spare.h)                         → STALLED
 *              the spare knows the server                  → INTRODUCING
 *              closed, out of protocol                     → WAITING
 *              an earlier node has the same server         → UNUSABLE
 * STALLED      the PONG, after all that was in flight      → READY
 *              the spare knows the server                  → INTRODUCING
 *              closed, out of protocol, stall_end_ns       → WAITING
 * WAITING      retry_ns                                    → DIALING
 * UNUSABLE     retry_ns                                    → DIALING
 *
 * The dial is a link (link.h), of a node that is DIALING, or the spare of one that is READY or
 * STALLED. Where a spare would fail, the node stays as it is: see spare.h.
 *
 * OFF        the node is DIALING, or needs a spare       → RESOLVING
 * RESOLVING  a literal, a path, or the lookup is done    → OPENING
 *            the lookup failed, give_up_ns               → OFF, WAITING (the lookup goes on, and
 *                                                          the next try waits for it)
 * SECURING   a certificate or a TLS version is refused   → OFF, UNUSABLE
 * GREETING   the reply to CLIENT ID                      → OFF, INTRODUCING
 *            a replica, no access,
 *            our certificate is refused                  → OFF, UNUSABLE
 *            loading                                     → OFF, WAITING
 * any        any other failure                           → OFF, WAITING
 */

#define BEHIND_AFTER_MS 1

static redlock_node_state public_state(const struct redlock_node *node) {
    switch (node->phase) {
    case REDLOCK_PHASE_READY:
        return REDLOCK_NODE_READY;
    case REDLOCK_PHASE_STALLED:
        return REDLOCK_NODE_STALLED;
    case REDLOCK_PHASE_WAITING:
        return REDLOCK_NODE_WAITING;
    case REDLOCK_PHASE_UNUSABLE:
        return REDLOCK_NODE_UNUSABLE;
    default:
        return REDLOCK_NODE_CONNECTING;
    }
}

static int64_t next_due_ns(const struct redlock_node *node) {
    switch (node->phase) {
    case REDLOCK_PHASE_INTRODUCING:
        return node->dial.link.give_up_ns;
    case REDLOCK_PHASE_STALLED:
        return node->stall_end_ns;
    case REDLOCK_PHASE_WAITING:
    case REDLOCK_PHASE_UNUSABLE:
        return node->retry_ns;
    case REDLOCK_PHASE_NEW:
    case REDLOCK_PHASE_DIALING: /* the dial has a timer of its own */
    case REDLOCK_PHASE_READY:
        break;
    }
    return REDLOCK_NEVER_NS;
}

/* Requests to a hanging node time out one by one, thousands a second. Wake up once a millisecond
 * for all of them. */
static int64_t up_to_ms(int64_t when_ns) {
    return when_ns > REDLOCK_NEVER_NS - REDLOCK_NS_PER_MS
               ? when_ns
               : (when_ns + REDLOCK_NS_PER_MS - 1) / REDLOCK_NS_PER_MS * REDLOCK_NS_PER_MS;
}

static void on_timer(struct redlock_watch *watch) {
    struct redlock_node *node = (struct redlock_node *)watch;
    int64_t now_ns = redlock_node_now_ns(node);
    node->timer_ns = REDLOCK_NEVER_NS;
    redlock_traffic_due(node, now_ns);
    if (node->yields != NULL && redlock_node_has_server(node)) {
        redlock_phase_unusable(node, redlock_text_keep(node->yields));
    } else if (redlock_node_is_connecting(node)) {
        redlock_connect_due(node, now_ns);
    } else if (next_due_ns(node) <= now_ns) {
        redlock_connect_begin(node); /* WAITING, UNUSABLE */
    }
    redlock_text_drop(node->yields);
    node->yields = NULL;
    int64_t request_ns = up_to_ms(redlock_requests_next_ns(node)), phase_ns = next_due_ns(node);
    redlock_node_rearm(node, request_ns < phase_ns ? request_ns : phase_ns);
}

static bool make_texts(struct redlock_node *node) {
    long long timeout_ms = (long long)node->options.node_timeout_ms;
    node->timed_out = redlock_text_new(REDLOCK_CAUSE_TIMEOUT, "no answer within %lld ms", timeout_ms);
    node->withdrawn = redlock_text_new(REDLOCK_CAUSE_TIMEOUT, "nothing could be sent within %lld ms", timeout_ms);
    return node->timed_out != NULL && node->withdrawn != NULL;
}

/* Returns false without memory. */
static bool attach(struct redlock_node *node) {
    node->subscription.callbacks = &node->callbacks;
    node->subscription.index = node->index;
    node->subscription.jitter = &node->jitter;
    node->subscription.endpoint = &node->endpoint;
    node->subscription.run_id = node->info.run_id;
    return redlock_connection_init(&node->connection, &node->reactor) == 0 && redlock_connect_init(node) == 0 &&
           redlock_subscription_init(&node->subscription, &node->reactor, &node->address, &node->options) == 0;
}

struct redlock_node *redlock_node_new(unsigned index, struct redlock_address *address,
                                      const struct redlock_node_options *options, const struct redlock_reactor *reactor,
                                      const struct redlock_node_callbacks *callbacks) {
    struct redlock_node *node = calloc(1, sizeof *node);
    if (node == NULL) {
        return NULL;
    }
    node->connection.watch =
        (struct redlock_watch){.on_io = redlock_traffic_io, .on_timer = on_timer, .on_flush = redlock_traffic_flush};
    node->reactor = *reactor;
    node->callbacks = *callbacks;
    node->options = *options;
    node->timeout_ns = options->node_timeout_ms * REDLOCK_NS_PER_MS;
    node->index = index;
    node->phase = REDLOCK_PHASE_NEW;
    node->timer_ns = REDLOCK_NEVER_NS;
    node->round_trip_ns = -1;
    node->shortest_ns = INT64_MAX;
    node->info.uptime_s = -1;
    node->jitter = index; /* a fallback, if there are no random bytes */
    (void)reactor->random(reactor->ctx, &node->jitter, sizeof node->jitter);
    if (!make_texts(node) || !attach(node)) {
        redlock_node_delete(node, false);
        return NULL;
    }
    node->address = *address;
    *address = (struct redlock_address){.kind = REDLOCK_ADDRESS_TCP};
    redlock_node_rearm(node, reactor->now_ns(reactor->ctx));
    return node;
}

void redlock_node_delete(struct redlock_node *node, bool forked) {
    if (node == NULL) {
        return;
    }
    redlock_subscription_free(&node->subscription);
    redlock_connection_free(&node->connection);
    redlock_connection_free(&node->dial.link.connection);
    redlock_lookup_drop(node->dial.lookup, forked);
    redlock_text_drop(node->why);
    redlock_text_drop(node->refusal);
    redlock_text_drop(node->yields);
    redlock_text_drop(node->timed_out);
    redlock_text_drop(node->withdrawn);
    redlock_text_drop(node->far);
    redlock_rotation_clear(&node->rotation);
    redlock_address_clear(&node->address);
    free(node);
}

/* Returns whether the request sets a missing key. Such a grant may not count while the identity of
 * a guarded node is unknown. */
static bool is_grant(enum redlock_operation operation) {
    return operation == REDLOCK_OP_ACQUIRE || operation == REDLOCK_OP_WAIT || operation == REDLOCK_OP_HEAL;
}

/* Returns whether the request may wait for the end of the handshake: of the first one, or of one in
 * place of a silent connection. A WAIT needs the node's clock, which the first one reads. */
static bool may_wait(const struct redlock_node *node, unsigned reply_kind) {
    const enum redlock_operation operation = redlock_wire_operation(reply_kind);
    return node->resumes || (redlock_node_is_connecting(node) && !node->first_try_done &&
                             operation != REDLOCK_OP_WAIT && !(node->options.guarded && is_grant(operation)));
}

bool redlock_node_send(struct redlock_node *node, const char *bytes, size_t size, unsigned reply_kind, void *owner,
                       uint32_t round, int64_t now_ns) {
    if ((node->phase != REDLOCK_PHASE_READY && !may_wait(node, reply_kind)) ||
        node->connection.inflight.count >= REDLOCK_INFLIGHT_MAX) {
        return false;
    }
    return redlock_requests_queue(
        node, bytes, size,
        &(struct redlock_inflight_entry){
            .owner = owner, .queued_ns = now_ns, .round = round, .reply_kind = (uint16_t)reply_kind});
}

void redlock_node_listen(struct redlock_node *node, const char *channel) {
    assert(node->subscription.channel == NULL);
    node->subscription.channel = channel;
    if (redlock_node_is_up(node)) {
        redlock_subscription_begin(&node->subscription);
    }
}

void redlock_node_hear(struct redlock_node *node, const struct redlock_channels *channels) {
    assert(node->subscription.channel != NULL);
    node->subscription.channels = channels;
    redlock_subscription_hear(&node->subscription);
}

void redlock_node_leave(struct redlock_node *node, const struct redlock_channel *channel) {
    redlock_subscription_leave(&node->subscription, channel);
}

void redlock_node_offer(struct redlock_node *node, struct redlock_credentials *credentials) {
    redlock_rotation_offer(node, credentials);
}

bool redlock_node_is_behind(const struct redlock_node *node, int64_t now_ns) {
    const struct redlock_inflight *inflight = &node->connection.inflight;
    return inflight->count > 0 &&
           now_ns - redlock_inflight_at(inflight, 0)->queued_ns > BEHIND_AFTER_MS * REDLOCK_NS_PER_MS;
}

void redlock_node_yield(struct redlock_node *node, const char *rival) {
    redlock_text_drop(node->yields);
    node->yields = redlock_phase_twice_text(rival);
    redlock_node_rearm(node, redlock_node_now_ns(node));
}

struct redlock_text *redlock_node_refusal(struct redlock_node *node) {
    static const struct redlock_text full = {
        .string = "the bound of 65,536 requests in flight is reached, or memory is out", .cause = REDLOCK_CAUSE_OURS};
    const char *why = redlock_text_string(node->why);
    if (node->phase == REDLOCK_PHASE_READY) {
        return redlock_node_is_far(node) ? node->far : redlock_text_constant(&full);
    }
    if (node->refusal != NULL) {
        return node->refusal;
    }
    if (node->phase == REDLOCK_PHASE_WAITING || node->phase == REDLOCK_PHASE_UNUSABLE) {
        return node->why;
    }
    if (node->phase == REDLOCK_PHASE_STALLED) {
        node->refusal = redlock_text_new(REDLOCK_CAUSE_STALLED, "%s; no more are sent until it answers", why);
    } else {
        node->refusal = redlock_text_new(node->why == NULL ? REDLOCK_CAUSE_CONNECTION : node->why->cause,
                                         "%s; connecting now", why[0] == '\0' ? "not connected yet" : why);
    }
    return node->refusal;
}

bool redlock_node_is_too_far(const struct redlock_node *node) {
    return redlock_node_is_far(node);
}

bool redlock_node_serves_waiters(struct redlock_node *node) {
    /* What is kept for a connection that replaces a silent one is written once that is READY. */
    const bool far = redlock_node_is_far(node) || (node->resumes && node->shortest_ns > node->timeout_ns);
    if (far && node->phase == REDLOCK_PHASE_READY && node->connection.inflight.count == 0) {
        redlock_requests_ping(node);
    }
    return !far;
}

const char *redlock_node_name(const struct redlock_node *node) {
    return node->address.name;
}

void redlock_node_marks(const struct redlock_node *node, const char *marks[2]) {
    marks[0] = node->mark;
    marks[1] = node->dial.mark;
}

bool redlock_node_is_at(const struct redlock_node *node, const char *server) {
    return redlock_node_has_server(node) &&
           (strcmp(node->mark, server) == 0 || (redlock_node_is_up(node) && strcmp(node->info.run_id, server) == 0));
}

struct redlock_form redlock_node_form(const struct redlock_node *node) {
    return node->form;
}

/* Locks work there, but no queue does. */
static bool lacks_queue(const struct redlock_node *node) {
    return node->phase == REDLOCK_PHASE_READY && node->no_queue[0] != '\0';
}

void redlock_node_info_get(const struct redlock_node *node, redlock_node_info *info) {
    const char *why = redlock_text_string(node->why);
    info->state = public_state(node);
    info->name = node->address.name;
    info->version = node->info.version;
    info->role = node->info.role;
    info->warning = node->warning;
    info->error = redlock_node_is_connecting(node) && why[0] == '\0' ? "connecting" : why;
    info->uptime_s = node->info.uptime_s;
    info->round_trip_us = node->round_trip_ns < 0 ? -1 : node->round_trip_ns / 1000;
    info->connects = node->connects;
    info->listens = redlock_subscription_listens(&node->subscription);
    info->queue_error = lacks_queue(node) && node->subscription.why == NULL
                            ? node->no_queue
                            : redlock_text_string(node->subscription.why);
    info->queue_refused = lacks_queue(node) || node->subscription.refused;
    info->credentials_pending = redlock_rotation_is_pending(&node->rotation);
    info->credentials_error = redlock_text_string(node->rotation.refusal);
    info->round_trip_min_us =
        redlock_node_is_up(node) && node->shortest_ns != INT64_MAX ? node->shortest_ns / 1000 : -1;
}
