/* Reads and writes on an open connection, and what a reply means for its request. */
#include "server/traffic.h"

#include <assert.h>
#include <errno.h>

#include "core/time.h"
#include "server/connect.h"
#include "server/holder_query.h"
#include "server/phase.h"
#include "server/requests.h"
#include "server/rotation.h"
#include "server/spare.h"
#include "wire/script.h"

#define TIMEOUTS_TO_STALL      3
#define STALL_LIMIT_MS         5000
#define SCRIPTS_AGAIN_AFTER_MS 1000

__attribute__((noinline, cold)) static void end_write(struct redlock_server *server, int error) {
    /* The server may have answered and closed before this write failed. Its answers still count. */
    redlock_traffic_io(&server->connection.watch, REDLOCK_READABLE);
    if (server->connection.stream.fd >= 0) {
        redlock_phase_lost(server, redlock_link_read_text(&server->connection, error));
    }
}

/* Returns what to write; NULL: the last connection asked, or the next one may have to write it. */
static struct redlock_outbox *box_of(struct redlock_server *server) {
    if (server->phase == REDLOCK_PHASE_READY) {
        return redlock_spare_keeps(server) ? NULL : &server->connection.outbox;
    }
    return server->phase == REDLOCK_PHASE_INTRODUCING ? &server->connection.hello
           : server->phase == REDLOCK_PHASE_STALLED   ? &server->connection.outbox
                                                      : NULL;
}

void redlock_traffic_flush(struct redlock_watch *watch) {
    struct redlock_server *server = (struct redlock_server *)watch;
    struct redlock_outbox *box = box_of(server);
    const int error = box == NULL ? 0 : redlock_connection_write(&server->connection, box);
    if (error != 0) {
        end_write(server, error);
    }
}

__attribute__((noinline, cold)) static void out_of_step(struct redlock_server *server) {
    redlock_phase_lost(server, redlock_link_unasked_text());
}

/* R17: it returns with the last reply that it owes, the PONG. With an earlier return, new requests
 * would wait behind the old ones and time out too. Under load it would never come back. */
__attribute__((noinline, cold)) static void drain(struct redlock_server *server) {
    assert(server->phase == REDLOCK_PHASE_STALLED);
    const int64_t stall_end_ns = redlock_after_ms(server->heard_ns, STALL_LIMIT_MS);
    if (server->connection.inflight.count == 0) {
        redlock_phase_set(server, REDLOCK_PHASE_READY, NULL);
        server->reactor.log(server->reactor.ctx, REDLOCK_LOG_INFO, "node %s answers again", server->address.name);
        server->callbacks.ready_changed(server->callbacks.ctx, server->index, true);
    } else if (stall_end_ns > server->due_ns) { /* it has answered */
        server->due_ns = stall_end_ns;
    }
}

/* R11: a restarted or flushed server gets its scripts again. The request itself is sent by
 * source. */
static void load_scripts(struct redlock_server *server, int64_t now_ns) {
    if (server->handshake.scripts_refused || now_ns < redlock_after_ms(server->scripts_ns, SCRIPTS_AGAIN_AFTER_MS)) {
        return;
    }
    server->scripts_ns = now_ns;
    for (unsigned i = 0; i < REDLOCK_SCRIPT_COUNT; i++) {
        redlock_requests_say(
            server, (const char *[4]){"SCRIPT", "LOAD", redlock_script_get((enum redlock_script_id)i)->source});
    }
}

/* It may not be allowed, or not be there: the script does the same. */
static void delete_by_script(struct redlock_server *server, const struct redlock_text *why) {
    if (server->form.deleting != REDLOCK_DELETING_SCRIPT) {
        server->form.deleting = REDLOCK_DELETING_SCRIPT;
        server->reactor.log(server->reactor.ctx, REDLOCK_LOG_INFO,
                            "node %s refused to delete a lock without a script, so releases use the script: %s",
                            server->address.name, redlock_text_string(why));
    }
}

/* What an answer that is no plain vote says of the form in which the server was asked. Returns
 * whether a server may answer so. */
__attribute__((noinline, cold)) static bool note_form(struct redlock_server *server, unsigned kind,
                                                      const struct redlock_reply *reply, struct redlock_answer *told) {
    if (kind & REDLOCK_KIND_TWICE) {
        return redlock_holder_query_second(server, reply, told);
    }
    const bool possible = told->vote != REDLOCK_VOTE_UNKNOWN;
    if (kind & REDLOCK_KIND_HOLDER_QUERY) {
        if (told->again || !possible) {
            redlock_holder_query_refused(server, told);
        }
    } else if (kind & REDLOCK_KIND_DELETING) {
        if (reply->value.type == REDLOCK_REPLY_ERROR) {
            delete_by_script(server, told->text);
        }
    } else if (told->again) {
        load_scripts(server, told->read_ns);
    }
    return possible;
}

__attribute__((noinline, cold)) static void time_clock(struct redlock_answer *told,
                                                       const struct redlock_inflight_entry *entry) {
    told->clock.sent_ns = entry->queued_ns;
    told->clock.read_ns = told->read_ns;
}

/* Takes the reply to a request that left the queue; `in_time` unless it had timed out. Answers the
 * request if its owner still waits. Returns false for a reply that the request cannot have. */
static bool take_answer(struct redlock_server *server, const struct redlock_inflight_entry *entry, bool in_time,
                        const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_answer told;
    if ((entry->reply_kind & REDLOCK_KIND_TWICE) && redlock_holder_query_first(server, entry, in_time, reply)) {
        return true;
    }
    redlock_wire_answer(entry->reply_kind, reply, server->address.credentials.password, &told);
    told.read_ns = now_ns;
    if (told.clock.server_us != 0) {
        time_clock(&told, entry);
    }
    bool possible = true;
    if (told.vote != REDLOCK_VOTE_GRANTED &&
        (told.vote != REDLOCK_VOTE_DENIED || (entry->reply_kind & REDLOCK_KIND_TWICE))) {
        possible = note_form(server, entry->reply_kind, reply, &told);
    }
    if (in_time || redlock_requests_has_no_timeout(entry)) {
        server->callbacks.answer(server->callbacks.ctx, server->index, entry->owner, entry->round, &told);
    }
    redlock_text_drop(told.text);
    return possible;
}

/* Returns false for a reply that PING, SCRIPT LOAD or AUTH cannot have. */
__attribute__((noinline, cold)) static bool take_own_reply(struct redlock_server *server,
                                                           const struct redlock_inflight_entry *entry, bool in_time,
                                                           const struct redlock_reply *reply) {
    const enum redlock_reply_type type = reply->value.type;
    assert(entry->own);
    return entry->owner == &server->rotation
               ? redlock_rotation_reply(server, entry, in_time, reply)
               : type == REDLOCK_REPLY_STATUS || type == REDLOCK_REPLY_STRING || type == REDLOCK_REPLY_ERROR;
}

/* The server has answered a request that was queued then. */
static inline void note_heard(struct redlock_server *server, int64_t queued_ns, int64_t now_ns) {
    const int64_t round_trip_ns = now_ns - queued_ns;
    server->heard_ns = now_ns;
    server->round_trip_ns = round_trip_ns;
    if (round_trip_ns < server->shortest_ns) {
        server->shortest_ns = round_trip_ns;
    }
}

/* Apart from the grants that only count: so they save no registers. */
__attribute__((noinline)) static void take_any(struct redlock_server *server, const struct redlock_reply *reply,
                                               int64_t now_ns) {
    struct redlock_inflight_entry entry;
    const bool in_time = redlock_inflight_pop(&server->connection.inflight, &entry);
    note_heard(server, entry.queued_ns, now_ns);
    if ((server->timeouts | (unsigned)server->dial.link.state) != 0) {
        redlock_spare_is_needless(server);
    }
    /* One extra reply shifts all later ones, so a +OK would grant another request. Accept no more
     * (R20). */
    if (entry.own ? !take_own_reply(server, &entry, in_time, reply)
                  : !take_answer(server, &entry, in_time, reply, now_ns)) {
        out_of_step(server);
    }
}

static void take_reply(struct redlock_server *server, const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_inflight *inflight = &server->connection.inflight;
    if (!redlock_connection_owes_reply(&server->connection)) {
        out_of_step(server);
        return;
    }
    redlock_inflight_fetch_ahead(inflight, server->callbacks.votes_at);
    const struct redlock_inflight_entry *first = redlock_inflight_first(inflight);
    if ((inflight->expired | server->timeouts | (unsigned)server->dial.link.state) != 0 ||
        !redlock_wire_grants(first->reply_kind, &reply->value) || redlock_inflight_ends_round(inflight)) {
        take_any(server, reply, now_ns);
        return;
    }
    void *owner = first->owner;
    const uint32_t round = first->round;
    note_heard(server, first->queued_ns, now_ns);
    redlock_inflight_drop(inflight);
    server->callbacks.granted(server->callbacks.ctx, server->index, owner, round, now_ns);
}

static void take(struct redlock_connection *connection, const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_server *server = (struct redlock_server *)connection;
    if (server->phase == REDLOCK_PHASE_INTRODUCING) {
        redlock_connect_reply(server, reply);
    } else {
        take_reply(server, reply, now_ns);
    }
}

__attribute__((noinline, cold)) static void end_read(struct redlock_server *server, enum redlock_received received,
                                                     int error) {
    switch (received) {
    case REDLOCK_RECEIVED:
        break;
    case REDLOCK_RECEIVED_UNREAD:
        redlock_server_rearm(server, redlock_server_now_ns(server));
        break;
    case REDLOCK_RECEIVED_END:
        redlock_phase_lost(server, redlock_link_read_text(&server->connection, error));
        break;
    case REDLOCK_RECEIVED_PROTOCOL:
        redlock_holder_query_protocol(server);
        redlock_phase_lost(server, redlock_link_garbled_text(&server->connection, ""));
        break;
    }
}

static inline __attribute__((always_inline)) void read_replies(struct redlock_server *server) {
    int error;
    const enum redlock_received received = redlock_connection_receive(&server->connection, take, &error);
    if (received != REDLOCK_RECEIVED) {
        end_read(server, received, error);
    }
    if (server->phase == REDLOCK_PHASE_STALLED) {
        drain(server);
    }
}

__attribute__((noinline, cold)) static void read_from_afar(struct redlock_server *server) {
    /* Only a loop that runs late reads an answer of a far server before its timeout. */
    redlock_requests_expire(server, redlock_server_now_ns(server));
    read_replies(server);
    if (redlock_server_is_up(server) && !redlock_server_is_far(server)) {
        server->reactor.log(server->reactor.ctx, REDLOCK_LOG_INFO, "node %s answers within %lld ms now",
                            server->address.name, (long long)server->options.node_timeout_ms);
        server->callbacks.ready_changed(server->callbacks.ctx, server->index, true);
    }
}

void redlock_traffic_io(struct redlock_watch *watch, unsigned events) {
    struct redlock_server *server = (struct redlock_server *)watch;
    struct redlock_connection *connection = &server->connection;
    if ((events & REDLOCK_READABLE) != 0) {
        if (redlock_server_is_far(server)) {
            read_from_afar(server);
        } else {
            read_replies(server);
        }
    }
    if ((events & REDLOCK_WRITABLE) != 0 && connection->blocked && connection->stream.fd >= 0) {
        redlock_connection_unblock(connection);
        redlock_traffic_flush(watch);
    }
}

/* When the loop runs late, the timer and the answers come at once. Answers that are here now came
 * in time, since R7 limits the server. Some were left by the last turn. */
static void read_before_expiring(struct redlock_server *server, int64_t now_ns) {
    if (server->connection.unread || (server->connection.stream.fd >= 0 && redlock_server_is_up(server) &&
                                      redlock_requests_next_ns(server) <= now_ns)) {
        redlock_traffic_io(&server->connection.watch, REDLOCK_READABLE);
    }
}

void redlock_traffic_due(struct redlock_server *server, int64_t now_ns) {
    read_before_expiring(server, now_ns);
    redlock_requests_expire(server, now_ns);
    redlock_rotation_was_withdrawn(server);
    redlock_spare_look(server, now_ns);
    if (server->phase == REDLOCK_PHASE_READY && server->timeouts >= TIMEOUTS_TO_STALL &&
        !redlock_spare_is_fresh(server, now_ns)) {
        redlock_phase_set(server, REDLOCK_PHASE_STALLED,
                          redlock_text_new(REDLOCK_CAUSE_STALLED,
                                           "stalled: the last %u requests got no answer within %lld ms",
                                           server->timeouts, (long long)server->options.node_timeout_ms));
        server->due_ns = redlock_after_ms(now_ns, STALL_LIMIT_MS);
        server->reactor.log(server->reactor.ctx, REDLOCK_LOG_WARNING, "node %s: %s", server->address.name,
                            redlock_text_string(server->why));
        redlock_requests_end_kept(server, now_ns);
        redlock_rotation_was_withdrawn(server);
        server->callbacks.ready_changed(server->callbacks.ctx, server->index, false);
        redlock_requests_ping(server);
    } else if (server->phase == REDLOCK_PHASE_STALLED && now_ns >= server->due_ns) {
        redlock_phase_lost(server, redlock_text_new(REDLOCK_CAUSE_STALLED, "stalled: no answer to anything for %d ms",
                                                    STALL_LIMIT_MS));
    }
}
