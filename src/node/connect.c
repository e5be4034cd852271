/* From an address to a node that is READY: the dial, and the second part of the handshake. */
#include "node/connect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "core/time.h"
#include "node/holder_query.h"
#include "node/phase.h"
#include "node/requests.h"
#include "node/rotation.h"
#include "node/spare.h"
#include "node/subscription.h"

/* Without a socket the connection does not use its watch, so the lookup can. */
static void watch_lookup(struct redlock_node *node, int fd) {
    node->reactor.watch(node->reactor.ctx, &node->dial.link.connection.watch, fd, REDLOCK_READABLE);
}

/* The other nodes must know it before any of it is sent: two may come to one server at once. One
 * node alone has none. Nor has a try without random bytes, and nobody finds it. */
static void draw_mark(struct redlock_node *node) {
    uint64_t halves[2];
    char *mark = node->dial.mark;
    mark[0] = '\0';
    if (node->options.marker != NULL && node->reactor.random(node->reactor.ctx, halves, sizeof halves) == 0) {
        (void)snprintf(mark, REDLOCK_NODE_MARK_SIZE, "s%016" PRIx64 "%016" PRIx64, halves[0], halves[1]);
    }
}

static bool greet(struct redlock_link *link) {
    struct redlock_dial *dial = (struct redlock_dial *)link;
    struct redlock_node *node = dial->node;
    dial->handshake.address = &node->address;
    dial->handshake.credentials =
        redlock_node_has_spare(node) ? redlock_rotation_spare_greets(node) : redlock_rotation_greets(node);
    dial->handshake.client_name = node->options.client_name;
    dial->handshake.old_run_id = node->known_run_id;
    dial->handshake.old_client_id = node->known_client_id;
    dial->handshake.guarded = node->options.guarded;
    dial->handshake.probed = node->options.probed;
    dial->handshake.marker = node->options.marker;
    dial->handshake.mark = dial->mark;
    dial->handshake.mark_count =
        node->options.marker == NULL
            ? 0
            : node->callbacks.other_marks(node->callbacks.ctx, node->index, dial->handshake.marks);
    dial->clock = (struct redlock_clock_sample){.sent_ns = redlock_node_now_ns(node)};
    dial->round_trip_ns = 0;
    return redlock_handshake_start(&dial->handshake, &link->connection.hello) != REDLOCK_HANDSHAKE_NO_MEMORY;
}

static void resolved(struct redlock_link *link) {
    struct redlock_dial *dial = (struct redlock_dial *)link;
    if (!redlock_lookup_done(dial->lookup)) {
        return;
    }
    const char *error = redlock_lookup_result(dial->lookup, &dial->endpoints);
    watch_lookup(dial->node, -1);
    redlock_lookup_drop(dial->lookup, false);
    dial->lookup = NULL;
    if (error != NULL) {
        redlock_spare_or_node_fails(dial->node,
                                    redlock_text_new(REDLOCK_CAUSE_CONNECTION, "the name is not resolved: %s", error));
    } else {
        redlock_link_open(link, dial->endpoints.list, dial->endpoints.count);
    }
}

void redlock_connect_begin(struct redlock_node *node) {
    int error = 0;
    struct redlock_dial *dial = &node->dial;
    dial->begun_ns = redlock_node_now_ns(node);
    draw_mark(node);
    if (!redlock_node_is_up(node)) {
        node->mark[0] = '\0';
        redlock_phase_set(node, REDLOCK_PHASE_DIALING, redlock_text_keep(node->why));
    }
    redlock_link_begin(&dial->link);
    if (dial->lookup == NULL && redlock_resolve_literal(&node->address, &dial->endpoints)) {
        redlock_link_open(&dial->link, dial->endpoints.list, dial->endpoints.count);
        return;
    }
    if (dial->lookup == NULL) {
        dial->lookup = redlock_lookup_start(node->address.host, node->address.port, &error);
    }
    if (dial->lookup == NULL) {
        redlock_spare_or_node_fails(node, redlock_link_errno_text("no thread to look the name up: ", error));
    } else {
        watch_lookup(node, redlock_lookup_fd(dial->lookup));
        resolved(&dial->link);
    }
}

/* No try is under way: it may be time for a spare. */
static void due(struct redlock_link *link) {
    struct redlock_node *node = ((struct redlock_dial *)link)->node;
    const int64_t now_ns = redlock_node_now_ns(node);
    if (redlock_spare_is_due(node, now_ns)) {
        redlock_connect_begin(node);
    } else {
        /* Something was heard since, maybe when a request was kept for the spare already. */
        redlock_spare_is_not_due(node, now_ns);
    }
}

static void tell_greeting(const struct redlock_node *node) {
    const struct redlock_greeting greeting = {
        .run_id = node->info.run_id, .uptime_s = node->info.uptime_s, .clock = node->dial.clock};
    node->callbacks.greeted(node->callbacks.ctx, node->index, &greeting);
}

/* The first reply of the second part of the handshake: the others may have taken the server's
 * time. */
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
    node->heard_ns = node->up_ns;
    node->scripts_ns = node->up_ns;
    node->timeouts = 0;
    node->connects++;
    node->first_try_done = true;
    node->form.deleting = (uint8_t)redlock_info_deleting(&node->info);
    /* No warning: a program that never waits does not need it. */
    node->no_queue[0] = '\0';
    if (node->handshake.wanted[0] != '\0') {
        (void)snprintf(node->no_queue, sizeof node->no_queue, "waiting in order needs %s", node->handshake.wanted);
    }
    node->known_client_id = node->handshake.client_id;
    memcpy(node->known_run_id, node->info.run_id, sizeof node->known_run_id);
    redlock_outbox_clear(&node->connection.hello);
    redlock_holder_query_begin(node);
    redlock_phase_set(node, REDLOCK_PHASE_READY, NULL);
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
    node->resumes = false;
    if (redlock_node_is_far(node)) {
        redlock_requests_ping(node);
    }
    tell_greeting(node);
    redlock_subscription_begin(&node->subscription);
    node->callbacks.ready_changed(node->callbacks.ctx, node->index, true);
}

/* The handshake is done. One server under two names would have two votes (R18): of such nodes the
 * lower index stays, and becomes READY once the other one has given way. */
static void compare(struct redlock_node *node) {
    const char *twin = node->handshake.twin;
    const char *server = node->info.run_id[0] != '\0' ? node->info.run_id : twin;
    const char *rival = server[0] == '\0'
                            ? NULL
                            : node->callbacks.same_server(node->callbacks.ctx, node->index, server, &node->succeeds);
    if (rival == NULL) {
        /* The marker has the mark of a node that has gone: this one is known by it from now on. */
        if (twin[0] != '\0') {
            memcpy(node->mark, twin, sizeof node->mark);
        }
        ready(node);
    } else if (node->succeeds) {
        redlock_node_rearm(node, redlock_node_now_ns(node));
    } else {
        redlock_phase_unusable(node, redlock_phase_twice_text(rival));
    }
}

/* The handshake, in whichever part, is over or has failed. */
static void end_handshake(struct redlock_node *node, const struct redlock_handshake *handshake,
                          enum redlock_handshake_state state) {
    if (state == REDLOCK_HANDSHAKE_NO_MEMORY) {
        redlock_spare_or_node_fails(node, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for the handshake"));
        return;
    }
    if (redlock_node_has_spare(node)) {
        if (handshake->cause == REDLOCK_CAUSE_AUTH) {
            redlock_rotation_spare_refused(node);
        }
        redlock_spare_in_vain(node, handshake->reason);
        return;
    }
    node->info = handshake->info;
    memcpy(node->warning, handshake->warning, sizeof node->warning);
    if (state == REDLOCK_HANDSHAKE_DONE) {
        compare(node);
    } else if (state == REDLOCK_HANDSHAKE_RETRY) {
        redlock_phase_lost(node, redlock_text_new(handshake->cause, "%s", handshake->reason));
    } else if (handshake->cause == REDLOCK_CAUSE_AUTH && redlock_rotation_goes_back(node, handshake->reason)) {
        redlock_phase_lost(
            node, redlock_text_new(REDLOCK_CAUSE_AUTH, "the new credentials are refused (%s)", handshake->reason));
    } else {
        redlock_phase_unusable(node, redlock_text_new(handshake->cause, "%s", handshake->reason));
    }
}

void redlock_connect_reply(struct redlock_node *node, const struct redlock_reply *reply) {
    if (node->handshake.step >= node->handshake.step_count) {
        redlock_phase_lost(node, redlock_link_unasked_text());
        return;
    }
    measure(node);
    const enum redlock_handshake_state state =
        redlock_handshake_reply(&node->handshake, reply, &node->connection.hello);
    if (state != REDLOCK_HANDSHAKE_WAITING) {
        end_handshake(node, &node->handshake, state);
    } else if (redlock_outbox_size(&node->connection.hello) > 0) {
        node->hello_ns = redlock_node_now_ns(node);
        node->reactor.flush_soon(node->reactor.ctx, &node->connection.watch);
    }
}

/* The server is known: the connection becomes the node's, and the handshake goes on there. */
static void take_over(struct redlock_node *node) {
    struct redlock_dial *dial = &node->dial;
    const bool spare = redlock_node_has_spare(node);
    if (spare && !redlock_spare_replaces(node)) {
        return;
    }
    redlock_connection_take_over(&node->connection, &dial->link.connection);
    node->endpoint = dial->endpoints.list[dial->link.endpoint];
    node->handshake = dial->handshake;
    node->handshake.credentials = &node->address.credentials;
    memcpy(node->mark, dial->mark, sizeof node->mark);
    node->handshake.mark = node->mark;
    node->shortest_ns = node->round_trip_ns = dial->round_trip_ns;
    redlock_link_end(&dial->link);
    redlock_phase_set(node, REDLOCK_PHASE_INTRODUCING, redlock_text_keep(node->why));
    node->hello_ns = redlock_node_now_ns(node);
    node->reactor.flush_soon(node->reactor.ctx, &node->connection.watch);
    redlock_node_rearm(node, node->connection.unread ? node->hello_ns : dial->link.give_up_ns);
    if (spare) {
        redlock_spare_replaced(node);
        redlock_rotation_spare_accepted(node);
    }
}

/* A reply to the first part. */
static void take(struct redlock_connection *connection, const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_dial *dial = (struct redlock_dial *)connection;
    struct redlock_handshake *handshake = &dial->handshake;
    if (handshake->step >= handshake->step_count) {
        redlock_spare_or_node_fails(dial->node, redlock_link_unasked_text());
        return;
    }
    dial->round_trip_ns = dial->round_trip_ns == 0 ? now_ns - dial->clock.sent_ns : dial->round_trip_ns;
    const enum redlock_handshake_state state = redlock_handshake_reply(handshake, reply, &connection->hello);
    if (dial->clock.server_us == 0 && handshake->server_us != 0) {
        dial->clock.server_us = handshake->server_us;
        dial->clock.read_ns = now_ns;
    }
    if (state != REDLOCK_HANDSHAKE_WAITING) {
        end_handshake(dial->node, handshake, state);
    } else if (handshake->step == 0) {
        take_over(dial->node);
    }
}

/* Returns whether the node may be waiting for TLS: it has not answered at all. */
static bool may_want_tls(const struct redlock_node *node) {
    return !node->address.tls && node->address.kind == REDLOCK_ADDRESS_TCP && node->dial.handshake.step == 0;
}

static struct redlock_text *why(const struct redlock_link *link, enum redlock_received received, int error) {
    const struct redlock_node *node = ((const struct redlock_dial *)link)->node;
    if (received == REDLOCK_RECEIVED_PROTOCOL) {
        return redlock_link_garbled_text(&link->connection,
                                         may_want_tls(node) ? ", and does it want TLS (rediss://)" : "");
    }
    struct redlock_text *why = redlock_link_read_text(&link->connection, error);
    const char *hint = may_want_tls(node) ? " before any answer; does it want TLS (rediss://)?"
                       : redlock_handshake_awaits_info(&node->dial.handshake)
                           ? " at INFO; is it a proxy that does not know the command?"
                           : NULL;
    if (error == ENOMEM || hint == NULL) {
        return why;
    }
    struct redlock_text *asking = redlock_text_new(REDLOCK_CAUSE_CONNECTION, "%s%s", redlock_text_string(why), hint);
    redlock_text_drop(why);
    return asking;
}

static void failed(struct redlock_link *link, struct redlock_text *why) {
    redlock_spare_or_node_fails(((struct redlock_dial *)link)->node, why);
}

int redlock_connect_init(struct redlock_node *node) {
    static const struct redlock_link_ops ops = {.purpose = "the handshake",
                                                .lacks = "no answer to the handshake",
                                                .greet = greet,
                                                .take = take,
                                                .why = why,
                                                .failed = failed,
                                                .resolved = resolved,
                                                .due = due};
    node->dial.node = node;
    return redlock_link_init(&node->dial.link, &ops, &node->reactor, &node->address, &node->options);
}

void redlock_connect_due(struct redlock_node *node, int64_t now_ns) {
    if (node->phase == REDLOCK_PHASE_NEW) {
        redlock_connect_begin(node);
    } else if (node->phase == REDLOCK_PHASE_INTRODUCING && now_ns >= node->dial.link.give_up_ns) {
        redlock_link_prefer_next(&node->dial.link);
        redlock_phase_lost(node, redlock_link_unanswered_text(&node->dial.link));
    } else if (node->succeeds) {
        compare(node);
    }
}
