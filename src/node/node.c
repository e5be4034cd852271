/* One node: what the group sees of its server. */
#include "node/node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/time.h"
#include "server/holder_query.h"
#include "server/phase.h"
#include "server/requests.h"
#include "server/rotation.h"
#include "server/server.h"
#include "wire/wire.h"

#define BEHIND_AFTER_MS 1

static redlock_node_state public_state(enum redlock_server_phase phase) {
    switch (phase) {
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

struct redlock_node *redlock_node_new(unsigned index, struct redlock_address *address,
                                      const struct redlock_server_options *options,
                                      const struct redlock_reactor *reactor,
                                      const struct redlock_server_callbacks *callbacks) {
    struct redlock_node *node = calloc(1, sizeof *node);
    if (node != NULL && !redlock_server_init(&node->server, index, address, options, reactor, callbacks)) {
        redlock_node_delete(node, false);
        return NULL;
    }
    return node;
}

void redlock_node_delete(struct redlock_node *node, bool forked) {
    if (node != NULL) {
        redlock_server_free(&node->server, forked);
        redlock_text_drop(node->refusal);
        free(node);
    }
}

/* Returns whether the request sets a missing key. Such a grant may not count while the identity of
 * a guarded node is unknown. */
static bool is_grant(enum redlock_operation operation) {
    return operation == REDLOCK_OP_ACQUIRE || operation == REDLOCK_OP_WAIT || operation == REDLOCK_OP_HEAL;
}

/* Returns whether the request may wait for the end of the handshake: of the first one, or of one in
 * place of a silent connection. A WAIT needs the node's clock, which the first one reads. */
static bool may_wait(const struct redlock_server *server, unsigned reply_kind) {
    const enum redlock_operation operation = redlock_wire_operation(reply_kind);
    return server->resumes || (redlock_server_is_connecting(server) && !server->first_try_done &&
                               operation != REDLOCK_OP_WAIT && !(server->options.guarded && is_grant(operation)));
}

static bool accepts(const struct redlock_server *server, unsigned reply_kind) {
    return (server->phase == REDLOCK_PHASE_READY || may_wait(server, reply_kind)) &&
           server->connection.inflight.count < REDLOCK_INFLIGHT_MAX;
}

bool redlock_node_send(struct redlock_node *node, const char *bytes, size_t size,
                       const struct redlock_inflight_entry *entry) {
    struct redlock_server *server = &node->server;
    if (!accepts(server, entry->reply_kind)) {
        return false;
    }
    return redlock_requests_queue(server, bytes, size, entry);
}

void redlock_node_load(struct redlock_node *node, unsigned reply_kind) {
    const unsigned rare = reply_kind & (REDLOCK_KIND_SHARED | REDLOCK_KIND_SLOTS);
    if ((rare & ~(unsigned)node->server.loaded) && accepts(&node->server, reply_kind)) {
        redlock_requests_load(&node->server, rare);
    }
}

void redlock_node_listen(struct redlock_node *node, const char *channel) {
    assert(node->server.subscription.channel == NULL);
    node->server.subscription.channel = channel;
    if (redlock_server_is_up(&node->server)) {
        redlock_subscription_begin(&node->server.subscription);
    }
}

void redlock_node_hear(struct redlock_node *node, const struct redlock_channels *channels) {
    assert(node->server.subscription.channel != NULL);
    node->server.subscription.channels = channels;
    redlock_subscription_hear(&node->server.subscription);
}

void redlock_node_leave(struct redlock_node *node, const struct redlock_channel *channel) {
    assert(node->server.subscription.channel != NULL && channel != NULL);
    redlock_subscription_leave(&node->server.subscription, channel);
}

void redlock_node_offer(struct redlock_node *node, struct redlock_credentials *credentials) {
    redlock_rotation_offer(&node->server, credentials);
}

bool redlock_node_is_behind(const struct redlock_node *node, int64_t now_ns) {
    const struct redlock_inflight *inflight = &node->server.connection.inflight;
    return inflight->count > 0 &&
           now_ns - redlock_inflight_first(inflight)->queued_ns > BEHIND_AFTER_MS * REDLOCK_NS_PER_MS;
}

void redlock_node_yield(struct redlock_node *node, const char *rival) {
    assert(rival != NULL);
    redlock_text_drop(node->server.yields);
    node->server.yields = redlock_phase_twice_text(rival);
    redlock_server_rearm(&node->server, redlock_server_now_ns(&node->server));
}

struct redlock_text *redlock_node_refusal(struct redlock_node *node) {
    static const struct redlock_text full = {
        .string = "the bound of 65,536 requests in flight is reached, or memory is out", .cause = REDLOCK_CAUSE_OURS};
    const struct redlock_server *server = &node->server;
    const char *why = redlock_text_string(server->why);
    if (server->phase == REDLOCK_PHASE_READY) {
        return redlock_server_is_far(server) ? server->far : redlock_text_constant(&full);
    }
    if (server->phase == REDLOCK_PHASE_WAITING || server->phase == REDLOCK_PHASE_UNUSABLE) {
        return server->why;
    }
    if (node->refusal != NULL && node->refusal_of == server->changes) {
        return node->refusal;
    }
    redlock_text_drop(node->refusal);
    node->refusal_of = server->changes;
    if (server->phase == REDLOCK_PHASE_STALLED) {
        node->refusal = redlock_text_new(REDLOCK_CAUSE_STALLED, "%s; no more are sent until it answers", why);
    } else {
        node->refusal = redlock_text_new(server->why == NULL ? REDLOCK_CAUSE_CONNECTION : server->why->cause,
                                         "%s; connecting now", why[0] == '\0' ? "not connected yet" : why);
    }
    return node->refusal;
}

bool redlock_node_is_too_far(const struct redlock_node *node) {
    return redlock_server_is_far(&node->server);
}

bool redlock_node_serves_waiters(struct redlock_node *node) {
    struct redlock_server *server = &node->server;
    /* What is kept for a connection that replaces a silent one is written once that is READY. */
    const bool far = redlock_server_is_far(server) || (server->resumes && server->shortest_ns > server->timeout_ns);
    if (far && server->phase == REDLOCK_PHASE_READY && server->connection.inflight.count == 0) {
        redlock_requests_ping(server);
    }
    return !far;
}

const char *redlock_node_name(const struct redlock_node *node) {
    return node->server.address.name;
}

void redlock_node_marks(const struct redlock_node *node, const char *marks[2]) {
    marks[0] = node->server.mark;
    marks[1] = node->server.dial.mark;
}

bool redlock_node_is_at(const struct redlock_node *node, const char *id) {
    const struct redlock_server *server = &node->server;
    assert(id[0] != '\0');
    return redlock_server_is_known(server) &&
           (strcmp(server->mark, id) == 0 || (redlock_server_is_up(server) && strcmp(server->info.run_id, id) == 0));
}

struct redlock_form redlock_node_form(const struct redlock_node *node) {
    return node->server.form;
}

void redlock_node_names_holders(struct redlock_node *node) {
    redlock_holder_query_proven(&node->server);
}

void redlock_node_info_get(const struct redlock_node *node, redlock_node_info *info) {
    const struct redlock_server *server = &node->server;
    const struct redlock_subscription *subscription = &server->subscription;
    const char *why = redlock_text_string(server->why);
    /* Locks work there, but no queue does. */
    const bool lacks_queue = server->phase == REDLOCK_PHASE_READY && server->handshake.no_queue[0] != '\0';
    info->state = public_state(server->phase);
    info->name = server->address.name;
    info->version = server->info.version;
    info->role = server->info.role;
    info->warning = server->warning;
    info->error = redlock_server_is_connecting(server) && why[0] == '\0' ? "connecting" : why;
    info->uptime_s = server->info.uptime_s;
    info->round_trip_us = server->round_trip_ns < 0 ? -1 : server->round_trip_ns / 1000;
    info->connects = server->connects;
    info->listens = redlock_subscription_listens(subscription);
    info->queue_error =
        lacks_queue && subscription->why == NULL ? server->handshake.no_queue : redlock_text_string(subscription->why);
    info->queue_refused = lacks_queue || subscription->refused;
    info->credentials_pending = redlock_rotation_is_pending(&server->rotation);
    info->credentials_error = redlock_text_string(server->rotation.refusal);
    info->round_trip_min_us =
        redlock_server_is_up(server) && server->shortest_ns != INT64_MAX ? server->shortest_ns / 1000 : -1;
    info->shared_error = server->phase == REDLOCK_PHASE_READY ? server->handshake.no_shared : "";
}
