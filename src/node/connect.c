/* From an address to a connection that may carry requests. */
#include "node/connect.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "core/validity.h"
#include "node/failure.h"
#include "node/naming.h"
#include "node/phase.h"
#include "node/requests.h"
#include "node/rotation.h"
#include "node/secure.h"
#include "node/subscription.h"

/* Writes the handshake's bytes before the loop polls. */
static void flush_soon(struct redlock_node *node) {
    node->reactor.flush_soon(node->reactor.ctx, &node->connection.watch);
}

/* Without a socket the connection does not use its watch, so the lookup can. */
static void watch_lookup(struct redlock_node *node, int fd) {
    node->reactor.watch(node->reactor.ctx, &node->connection.watch, fd, REDLOCK_READABLE);
}

static void greet(struct redlock_node *node) {
    redlock_rotation_greets(node);
    node->handshake.address = &node->address;
    node->handshake.client_name = node->options.client_name;
    node->handshake.old_run_id = node->known_run_id;
    node->handshake.old_client_id = node->known_client_id;
    node->handshake.guarded = node->options.guarded;
    if (!redlock_connection_start(&node->connection) ||
        redlock_handshake_start(&node->handshake, &node->connection.hello) == REDLOCK_HANDSHAKE_NO_MEMORY) {
        redlock_node_lost(node, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for the handshake"));
        return;
    }
    node->hello_ns = redlock_node_now_ns(node);
    node->shortest_ns = INT64_MAX;
    node->clock = (struct redlock_clock_sample){.sent_ns = node->hello_ns};
    redlock_node_set_phase(node, REDLOCK_PHASE_GREETING, redlock_text_keep(node->why));
    flush_soon(node);
    if (node->connection.unread) {
        redlock_node_rearm(node, redlock_node_now_ns(node));
    }
}

static void secure(struct redlock_node *node, unsigned events) {
    struct redlock_text *why = NULL;
    const enum redlock_securing securing = redlock_secure_io(&node->connection, events, &why);
    if (securing == REDLOCK_SECURING_DONE) {
        greet(node);
    } else if (securing == REDLOCK_SECURING_FAILED) {
        redlock_node_ended(node, why);
    }
}

static void begin_tls(struct redlock_node *node) {
    if (!redlock_secure_begin(node, &node->connection)) {
        redlock_node_lost(node, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for TLS"));
        return;
    }
    redlock_node_set_phase(node, REDLOCK_PHASE_SECURING, redlock_text_keep(node->why));
    secure(node, 0);
}

/* Tries the endpoints until one starts to connect. Each gets its share of the time left. */
static void open_next(struct redlock_node *node, int error) {
    int64_t now_ns = redlock_node_now_ns(node);
    while (node->endpoints_tried < node->endpoints.count) {
        node->endpoint = (node->endpoint_first + node->endpoints_tried) % node->endpoints.count;
        int64_t share = (int64_t)(node->endpoints.count - node->endpoints_tried);
        node->endpoint_ns = now_ns + (node->give_up_ns - now_ns) / share;
        node->endpoints_tried++;
        const struct redlock_endpoint *endpoint = &node->endpoints.list[node->endpoint];
        error = redlock_connection_open(&node->connection, (const struct sockaddr *)&endpoint->address, endpoint->size);
        if (error == 0) {
            redlock_node_set_phase(node, REDLOCK_PHASE_OPENING, redlock_text_keep(node->why));
            redlock_node_rearm(node, node->endpoint_ns);
            return;
        }
    }
    redlock_node_lost(node, redlock_node_errno_text("", error));
}

static void open_first(struct redlock_node *node) {
    node->endpoints_tried = 0;
    open_next(node, EADDRNOTAVAIL);
}

static void opened(struct redlock_node *node) {
    int error = redlock_connection_opened(&node->connection);
    if (error != 0) {
        redlock_connection_close(&node->connection);
        open_next(node, error);
    } else if (node->address.tls) {
        begin_tls(node);
    } else {
        greet(node);
    }
}

static void resolved(struct redlock_node *node) {
    const char *error = redlock_lookup_result(node->lookup, &node->endpoints);
    watch_lookup(node, -1);
    redlock_lookup_drop(node->lookup, false);
    node->lookup = NULL;
    if (error != NULL) {
        redlock_node_lost(node, redlock_text_new(REDLOCK_CAUSE_CONNECTION, "the name is not resolved: %s", error));
    } else {
        open_first(node);
    }
}

void redlock_connect_begin(struct redlock_node *node) {
    int error = 0;
    int64_t now_ns = redlock_node_now_ns(node);
    node->give_up_ns = redlock_after_ms(now_ns, node->options.connect_timeout_ms);
    redlock_node_set_phase(node, REDLOCK_PHASE_RESOLVING, redlock_text_keep(node->why));
    redlock_node_rearm(node, node->give_up_ns);
    if (node->lookup == NULL && redlock_resolve_literal(&node->address, &node->endpoints)) {
        open_first(node);
        return;
    }
    if (node->lookup == NULL) {
        node->lookup = redlock_lookup_start(node->address.host, node->address.port, &error);
    }
    if (node->lookup == NULL) {
        redlock_node_lost(node, redlock_node_errno_text("no thread to look the name up: ", error));
    } else if (redlock_lookup_done(node->lookup)) {
        resolved(node);
    } else {
        watch_lookup(node, redlock_lookup_fd(node->lookup));
    }
}

void redlock_connect_io(struct redlock_node *node, unsigned events) {
    if (node->phase == REDLOCK_PHASE_OPENING && (events & REDLOCK_WRITABLE) != 0) {
        opened(node);
    } else if (node->phase == REDLOCK_PHASE_SECURING) {
        secure(node, events);
    } else if (node->phase == REDLOCK_PHASE_RESOLVING && redlock_lookup_done(node->lookup)) {
        resolved(node);
    }
}

static struct redlock_text *too_late(const struct redlock_node *node) {
    long long timeout_ms = (long long)node->options.connect_timeout_ms;
    switch (node->phase) {
    case REDLOCK_PHASE_RESOLVING:
        return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "the name was not resolved within %lld ms", timeout_ms);
    case REDLOCK_PHASE_OPENING:
        return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "no connection within %lld ms", timeout_ms);
    case REDLOCK_PHASE_SECURING:
        return redlock_secure_late_text(node, &node->connection);
    default:
        return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "connected, but no answer to the handshake within %lld ms",
                                timeout_ms);
    }
}

void redlock_connect_due(struct redlock_node *node, int64_t now_ns) {
    if (node->phase == REDLOCK_PHASE_NEW) {
        redlock_connect_begin(node);
    } else if (now_ns >= node->give_up_ns) {
        /* Begin with the next endpoint: one that accepts and stays silent must not block the
         * others. */
        node->endpoint_first = node->endpoint + 1;
        redlock_node_lost(node, too_late(node));
    } else if (node->phase == REDLOCK_PHASE_OPENING && now_ns >= node->endpoint_ns) {
        redlock_connection_close(&node->connection);
        open_next(node, ETIMEDOUT);
    }
}

static void tell_greeting(const struct redlock_node *node) {
    const struct redlock_greeting greeting = {
        .run_id = node->info.run_id, .uptime_s = node->info.uptime_s, .clock = node->clock};
    node->listener.greeted(node->listener.ctx, node->index, &greeting);
}

/* The first reply of each part of the handshake: the others may have taken the server's time. */
static void measure(struct redlock_node *node) {
    if (node->hello_ns != 0) {
        node->round_trip_ns = redlock_node_now_ns(node) - node->hello_ns;
        node->shortest_ns = node->round_trip_ns < node->shortest_ns ? node->round_trip_ns : node->shortest_ns;
        node->hello_ns = 0;
    }
}

/* A node timeout with room for a node that is slow now and then. */
static long long enough_ms(int64_t trip_ms) {
    const int64_t ms = (2 * trip_ms + 49) / 50 * 50;
    return ms < REDLOCK_TIMEOUT_MS_MAX ? ms : REDLOCK_TIMEOUT_MS_MAX;
}

/* Such a node answers, but no request is answered in time, so no lock can be taken there. */
static void say_far(struct redlock_node *node) {
    const int64_t trip_ms = (node->shortest_ns + REDLOCK_NS_PER_MS - 1) / REDLOCK_NS_PER_MS;
    redlock_text_drop(node->far);
    node->far = redlock_text_new(REDLOCK_CAUSE_TIMEOUT,
                                 "no answer within %lld ms, and a round trip takes %lld ms at least: node_timeout_ms "
                                 "must be longer, such as %lld",
                                 (long long)node->options.node_timeout_ms, (long long)trip_ms, enough_ms(trip_ms));
    node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING, "node %s: %s", node->address.name,
                      redlock_text_string(node->far));
}

static void ready(struct redlock_node *node) {
    node->up_ns = redlock_node_now_ns(node);
    node->scripts_ns = node->up_ns;
    node->timeouts = 0;
    node->connects++;
    node->first_try_done = true;
    node->deleting = redlock_info_deleting(&node->info);
    node->known_client_id = node->handshake.client_id;
    memcpy(node->known_run_id, node->info.run_id, sizeof node->known_run_id);
    redlock_outbox_clear(&node->connection.hello);
    redlock_naming_begin(node);
    redlock_node_set_phase(node, REDLOCK_PHASE_READY, NULL);
    redlock_rotation_ready(node);
    node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO, "node %s is ready: %s%s%s", node->address.name,
                      node->info.version[0] == '\0' ? "unknown version" : node->info.version,
                      node->address.tls ? ", " : "",
                      node->address.tls ? redlock_tls_version_name(node->connection.tls) : "");
    if (node->warning[0] != '\0') {
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING, "node %s: %s", node->address.name, node->warning);
    }
    if (redlock_node_is_far(node)) {
        say_far(node);
    }
    redlock_requests_begin(node);
    tell_greeting(node);
    redlock_subscription_begin(&node->subscription);
    node->listener.ready_changed(node->listener.ctx, node->index, true);
}

/* One server under two names would have two votes (R18). Of such nodes, the lower index stays. */
static void check_rivals(struct redlock_node *node) {
    bool rival_yields = false;
    const char *rival = node->info.run_id[0] == '\0' ? NULL
                                                     : node->listener.same_server(node->listener.ctx, node->index,
                                                                                  node->info.run_id, &rival_yields);
    if (rival == NULL) {
        ready(node);
    } else if (rival_yields) {
        redlock_node_lost(
            node, redlock_text_new(REDLOCK_CAUSE_SAME_SERVER, "%s, which is the same server, gives way first", rival));
    } else {
        redlock_node_unusable(node, redlock_node_twice_text(rival));
    }
}

void redlock_connect_reply(struct redlock_node *node, const struct redlock_reply *reply) {
    if (node->handshake.step >= node->handshake.step_count) {
        redlock_node_lost(node, redlock_text_new(REDLOCK_CAUSE_NOT_A_NODE,
                                                 "the node answered what nobody had asked; is it a Redis server?"));
        return;
    }
    measure(node);
    enum redlock_handshake_state state = redlock_handshake_reply(&node->handshake, reply, &node->connection.hello);
    if (node->clock.server_us == 0 && node->handshake.server_us != 0) {
        node->clock.server_us = node->handshake.server_us;
        node->clock.read_ns = redlock_node_now_ns(node);
    }
    if (state != REDLOCK_HANDSHAKE_WAITING && state != REDLOCK_HANDSHAKE_NO_MEMORY) {
        node->info = node->handshake.info;
        memcpy(node->warning, node->handshake.warning, sizeof node->warning);
    }
    switch (state) {
    case REDLOCK_HANDSHAKE_WAITING:
        if (redlock_outbox_size(&node->connection.hello) > 0) {
            node->hello_ns = redlock_node_now_ns(node);
            flush_soon(node);
        }
        break;
    case REDLOCK_HANDSHAKE_DONE:
        check_rivals(node);
        break;
    case REDLOCK_HANDSHAKE_RETRY:
        redlock_node_lost(node, redlock_text_new(node->handshake.cause, "%s", node->handshake.reason));
        break;
    case REDLOCK_HANDSHAKE_UNUSABLE:
        if (node->handshake.cause == REDLOCK_CAUSE_AUTH && redlock_rotation_goes_back(node, node->handshake.reason)) {
            redlock_node_lost(node, redlock_text_new(REDLOCK_CAUSE_AUTH, "the new credentials are refused (%s)",
                                                     node->handshake.reason));
        } else {
            redlock_node_unusable(node, redlock_text_new(node->handshake.cause, "%s", node->handshake.reason));
        }
        break;
    case REDLOCK_HANDSHAKE_NO_MEMORY:
        redlock_node_lost(node, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for the handshake"));
        break;
    }
}
