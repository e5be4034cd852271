/* From an address to a server that is READY: the dial, and the second part of the handshake. */
#include "server/connect.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "core/time.h"
#include "server/holder_query.h"
#include "server/phase.h"
#include "server/requests.h"
#include "server/rotation.h"
#include "server/spare.h"
#include "server/subscription.h"

/* Without a socket the connection does not use its watch, so the lookup can. */
static void watch_lookup(struct redlock_server *server, int fd) {
    assert(server->dial.link.connection.stream.fd < 0);
    server->reactor.watch(server->reactor.ctx, &server->dial.link.connection.watch, fd, REDLOCK_READABLE);
}

/* The other nodes must know it before any of it is sent: two may come to one server at once. One
 * node alone has none. Nor has a try without random bytes, and nobody finds it. */
static void draw_mark(struct redlock_server *server) {
    uint64_t halves[2];
    char *mark = server->dial.mark;
    mark[0] = '\0';
    if (server->options.marker != NULL && server->reactor.random(server->reactor.ctx, halves, sizeof halves) == 0) {
        (void)snprintf(mark, REDLOCK_SERVER_MARK_SIZE, "s%016" PRIx64 "%016" PRIx64, halves[0], halves[1]);
    }
}

static bool greet(struct redlock_link *link) {
    struct redlock_dial *dial = (struct redlock_dial *)link;
    struct redlock_server *server = dial->server;
    struct redlock_handshake_told *told = &dial->handshake.told;
    told->options = &server->options;
    told->address = &server->address;
    told->credentials =
        redlock_server_has_spare(server) ? redlock_rotation_spare_greets(server) : redlock_rotation_greets(server);
    told->old_run_id = server->known_run_id;
    told->old_client_id = server->known_client_id;
    told->mark = dial->mark;
    told->mark_count = server->options.marker == NULL
                           ? 0
                           : server->callbacks.other_marks(server->callbacks.ctx, server->index, told->marks);
    dial->clock = (struct redlock_clock_sample){.sent_ns = redlock_server_now_ns(server)};
    dial->round_trip_ns = 0;
    return redlock_handshake_start(&dial->handshake, &link->connection.hello) != REDLOCK_HANDSHAKE_NO_MEMORY;
}

static void resolved(struct redlock_link *link) {
    struct redlock_dial *dial = (struct redlock_dial *)link;
    const char *error;
    assert(dial->lookup != NULL);
    if (!redlock_lookup_done(dial->lookup, &dial->endpoints, &error)) {
        return;
    }
    watch_lookup(dial->server, -1);
    redlock_lookup_drop(dial->lookup, false);
    dial->lookup = NULL;
    if (error != NULL) {
        redlock_spare_or_server_fails(
            dial->server, redlock_text_new(REDLOCK_CAUSE_CONNECTION, "the name is not resolved: %s", error));
    } else {
        redlock_link_open(link, dial->endpoints.list, dial->endpoints.count);
    }
}

void redlock_connect_begin(struct redlock_server *server) {
    assert(server->phase != REDLOCK_PHASE_DIALING && server->phase != REDLOCK_PHASE_INTRODUCING);
    int error = 0;
    struct redlock_dial *dial = &server->dial;
    dial->begun_ns = redlock_server_now_ns(server);
    draw_mark(server);
    if (!redlock_server_is_up(server)) {
        server->mark[0] = '\0';
        redlock_phase_set(server, REDLOCK_PHASE_DIALING, redlock_text_keep(server->why));
    }
    redlock_link_begin(&dial->link);
    if (dial->lookup == NULL && redlock_resolve_literal(&server->address, &dial->endpoints)) {
        redlock_link_open(&dial->link, dial->endpoints.list, dial->endpoints.count);
        return;
    }
    if (dial->lookup == NULL) {
        dial->lookup = redlock_lookup_start(server->address.host, server->address.port, &error);
    }
    if (dial->lookup == NULL) {
        redlock_spare_or_server_fails(server, redlock_link_errno_text("no thread to look the name up: ", error));
    } else {
        watch_lookup(server, redlock_lookup_fd(dial->lookup));
        resolved(&dial->link);
    }
}

/* No try is under way: it may be time for a spare. */
static void due(struct redlock_link *link) {
    assert(link->state == REDLOCK_LINK_OFF); /* the dial does not wait, and is never OPEN */
    struct redlock_server *server = ((struct redlock_dial *)link)->server;
    const int64_t now_ns = redlock_server_now_ns(server);
    if (redlock_spare_is_due(server, now_ns)) {
        redlock_connect_begin(server);
    } else {
        /* Something was heard since, maybe when a request was kept for the spare already. */
        redlock_spare_is_not_due(server, now_ns);
    }
}

static void tell_greeting(const struct redlock_server *server) {
    const struct redlock_greeting greeting = {
        .run_id = server->info.run_id, .uptime_s = server->info.uptime_s, .clock = server->dial.clock};
    server->callbacks.greeted(server->callbacks.ctx, server->index, &greeting);
}

/* The first reply of the second part of the handshake: the others may have taken the server's
 * time. */
static void measure(struct redlock_server *server) {
    if (server->hello_ns != 0) {
        server->round_trip_ns = redlock_server_now_ns(server) - server->hello_ns;
        server->shortest_ns = server->round_trip_ns < server->shortest_ns ? server->round_trip_ns : server->shortest_ns;
        server->hello_ns = 0;
    }
}

/* A node timeout with room for a server that is slow now and then. */
static long long enough_ms(int64_t trip_ms) {
    const int64_t ms = (2 * trip_ms + 49) / 50 * 50;
    return ms < REDLOCK_TIMEOUT_MS_MAX ? ms : REDLOCK_TIMEOUT_MS_MAX;
}

/* Such a server answers, but no request is answered in time, so no lock can be taken there. */
static void say_far(struct redlock_server *server) {
    assert(redlock_server_is_far(server) && server->shortest_ns != INT64_MAX);
    const int64_t trip_ms = (server->shortest_ns + REDLOCK_NS_PER_MS - 1) / REDLOCK_NS_PER_MS;
    redlock_text_drop(server->far);
    server->far = redlock_text_new(REDLOCK_CAUSE_TIMEOUT,
                                   "no answer within %lld ms, and a round trip takes %lld ms at least: node_timeout_ms "
                                   "must be longer, such as %lld",
                                   (long long)server->options.node_timeout_ms, (long long)trip_ms, enough_ms(trip_ms));
    server->reactor.log(server->reactor.ctx, REDLOCK_LOG_WARNING, "node %s: %s", server->address.name,
                        redlock_text_string(server->far));
}

static void ready(struct redlock_server *server) {
    assert(server->phase == REDLOCK_PHASE_INTRODUCING && server->connection.stream.fd >= 0);
    assert(server->address.tls == (server->connection.tls != NULL));
    server->up_ns = redlock_server_now_ns(server);
    server->heard_ns = server->up_ns;
    server->scripts_ns = server->up_ns;
    server->timeouts = 0;
    server->connects++;
    server->first_try_done = true;
    server->form.deleting = (uint8_t)redlock_info_deleting(&server->info);
    server->known_client_id = server->handshake.client_id;
    memcpy(server->known_run_id, server->info.run_id, sizeof server->known_run_id);
    redlock_outbox_clear(&server->connection.hello);
    redlock_holder_query_begin(server);
    redlock_phase_set(server, REDLOCK_PHASE_READY, NULL);
    redlock_rotation_ready(server);
    server->reactor.log(server->reactor.ctx, REDLOCK_LOG_INFO, "node %s is ready: %s%s%s", server->address.name,
                        server->info.version[0] == '\0' ? "unknown version" : server->info.version,
                        server->address.tls ? ", " : "",
                        server->address.tls ? redlock_tls_version_name(server->connection.tls) : "");
    if (server->warning[0] != '\0') {
        server->reactor.log(server->reactor.ctx, REDLOCK_LOG_WARNING, "node %s: %s", server->address.name,
                            server->warning);
    }
    if (redlock_server_is_far(server)) {
        say_far(server);
    }
    redlock_requests_begin(server);
    server->resumes = false;
    if (redlock_server_is_far(server)) {
        redlock_requests_ping(server);
    }
    tell_greeting(server);
    redlock_subscription_begin(&server->subscription);
    server->callbacks.ready_changed(server->callbacks.ctx, server->index, true);
}

/* The handshake is done. One server under two names would have two votes (R18): of such nodes the
 * lower index stays, and becomes READY once the other one has given way. */
static void compare(struct redlock_server *server) {
    assert(server->phase == REDLOCK_PHASE_INTRODUCING);
    const char *twin = server->handshake.twin;
    const char *id = server->info.run_id[0] != '\0' ? server->info.run_id : twin;
    const char *rival =
        id[0] == '\0' ? NULL
                      : server->callbacks.same_server(server->callbacks.ctx, server->index, id, &server->succeeds);
    if (rival == NULL) {
        /* The marker has the mark of a node that has gone: this one is known by it from now on. */
        if (twin[0] != '\0') {
            memcpy(server->mark, twin, sizeof server->mark);
        }
        ready(server);
    } else if (server->succeeds) {
        redlock_server_rearm(server, redlock_server_now_ns(server));
    } else {
        redlock_phase_unusable(server, redlock_phase_twice_text(rival));
    }
}

/* The handshake, in whichever part, is over or has failed. */
static void end_handshake(struct redlock_server *server, const struct redlock_handshake *handshake,
                          enum redlock_handshake_state state) {
    assert(state != REDLOCK_HANDSHAKE_WAITING);
    if (state == REDLOCK_HANDSHAKE_NO_MEMORY) {
        redlock_spare_or_server_fails(server, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for the handshake"));
        return;
    }
    if (redlock_server_has_spare(server)) {
        if (handshake->cause == REDLOCK_CAUSE_AUTH) {
            redlock_rotation_spare_refused(server);
        }
        redlock_spare_in_vain(server, handshake->reason);
        return;
    }
    server->info = handshake->info;
    memcpy(server->warning, handshake->warning, sizeof server->warning);
    if (state == REDLOCK_HANDSHAKE_DONE) {
        compare(server);
    } else if (state == REDLOCK_HANDSHAKE_RETRY) {
        redlock_phase_lost(server, redlock_text_new(handshake->cause, "%s", handshake->reason));
    } else if (handshake->cause == REDLOCK_CAUSE_AUTH && redlock_rotation_goes_back(server, handshake->reason)) {
        redlock_phase_lost(
            server, redlock_text_new(REDLOCK_CAUSE_AUTH, "the new credentials are refused (%s)", handshake->reason));
    } else {
        redlock_phase_unusable(server, redlock_text_new(handshake->cause, "%s", handshake->reason));
    }
}

void redlock_connect_reply(struct redlock_server *server, const struct redlock_reply *reply) {
    assert(server->phase == REDLOCK_PHASE_INTRODUCING);
    if (server->handshake.step >= server->handshake.step_count) {
        redlock_phase_lost(server, redlock_link_unasked_text());
        return;
    }
    measure(server);
    const enum redlock_handshake_state state =
        redlock_handshake_reply(&server->handshake, reply, &server->connection.hello);
    if (state != REDLOCK_HANDSHAKE_WAITING) {
        end_handshake(server, &server->handshake, state);
    } else if (redlock_outbox_size(&server->connection.hello) > 0) {
        server->hello_ns = redlock_server_now_ns(server);
        server->reactor.flush_soon(server->reactor.ctx, &server->connection.watch);
    }
}

/* The server has said who it is: its connection is taken over, and the handshake goes on there. */
static void take_over(struct redlock_server *server) {
    struct redlock_dial *dial = &server->dial;
    const bool spare = redlock_server_has_spare(server);
    assert(dial->link.endpoint < dial->endpoints.count);
    if (spare && !redlock_spare_replaces(server)) {
        return;
    }
    redlock_connection_take_over(&server->connection, &dial->link.connection);
    server->endpoint = dial->endpoints.list[dial->link.endpoint];
    server->handshake = dial->handshake;
    server->handshake.told.credentials = &server->address.credentials;
    memcpy(server->mark, dial->mark, sizeof server->mark);
    server->handshake.told.mark = server->mark;
    server->shortest_ns = server->round_trip_ns = dial->round_trip_ns;
    redlock_link_end(&dial->link);
    redlock_phase_set(server, REDLOCK_PHASE_INTRODUCING, redlock_text_keep(server->why));
    server->due_ns = dial->link.give_up_ns;
    server->hello_ns = redlock_server_now_ns(server);
    server->reactor.flush_soon(server->reactor.ctx, &server->connection.watch);
    redlock_server_rearm(server, server->connection.unread ? server->hello_ns : server->due_ns);
    if (spare) {
        redlock_spare_replaced(server);
        redlock_rotation_spare_accepted(server);
    }
}

/* A reply to the first part. */
static void take(struct redlock_connection *connection, const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_dial *dial = (struct redlock_dial *)connection;
    struct redlock_handshake *handshake = &dial->handshake;
    assert(dial->link.state == REDLOCK_LINK_GREETING);
    assert(dial->server->phase == REDLOCK_PHASE_DIALING || redlock_server_is_up(dial->server));
    if (handshake->step >= handshake->step_count) {
        redlock_spare_or_server_fails(dial->server, redlock_link_unasked_text());
        return;
    }
    dial->round_trip_ns = dial->round_trip_ns == 0 ? now_ns - dial->clock.sent_ns : dial->round_trip_ns;
    const enum redlock_handshake_state state = redlock_handshake_reply(handshake, reply, &connection->hello);
    if (dial->clock.server_us == 0 && handshake->server_us != 0) {
        dial->clock.server_us = handshake->server_us;
        dial->clock.read_ns = now_ns;
    }
    if (state != REDLOCK_HANDSHAKE_WAITING) {
        end_handshake(dial->server, handshake, state);
    } else if (handshake->step == 0) {
        take_over(dial->server);
    }
}

/* Returns whether the server may be waiting for TLS: it has not answered at all. */
static bool may_want_tls(const struct redlock_server *server) {
    return !server->address.tls && server->address.kind == REDLOCK_ADDRESS_TCP && server->dial.handshake.step == 0;
}

static struct redlock_text *why(const struct redlock_link *link, enum redlock_received received, int error) {
    const struct redlock_server *server = ((const struct redlock_dial *)link)->server;
    if (received == REDLOCK_RECEIVED_PROTOCOL) {
        return redlock_link_garbled_text(&link->connection,
                                         may_want_tls(server) ? ", and does it want TLS (rediss://)" : "");
    }
    struct redlock_text *why = redlock_link_read_text(&link->connection, error);
    const char *hint = may_want_tls(server) ? " before any answer; does it want TLS (rediss://)?"
                       : redlock_handshake_awaits_info(&server->dial.handshake)
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
    redlock_spare_or_server_fails(((struct redlock_dial *)link)->server, why);
}

int redlock_connect_init(struct redlock_server *server) {
    static const struct redlock_link_ops ops = {.purpose = "the handshake",
                                                .lacks = "no answer to the handshake",
                                                .greet = greet,
                                                .take = take,
                                                .why = why,
                                                .failed = failed,
                                                .resolved = resolved,
                                                .due = due};
    server->dial.server = server;
    return redlock_link_init(&server->dial.link, &ops, &server->reactor, &server->address, &server->options);
}

void redlock_connect_due(struct redlock_server *server, int64_t now_ns) {
    if (server->phase == REDLOCK_PHASE_NEW) {
        redlock_connect_begin(server);
    } else if (server->phase == REDLOCK_PHASE_INTRODUCING && now_ns >= server->due_ns) {
        redlock_link_prefer_next(&server->dial.link);
        redlock_phase_lost(server, redlock_link_unanswered_text(&server->dial.link));
    } else if (server->succeeds) {
        compare(server);
    }
}
