/* Reads and writes on an open connection, and what a reply means for its request. */
#include "node/traffic.h"

#include <errno.h>

#include "core/time.h"
#include "node/connect.h"
#include "node/naming.h"
#include "node/phase.h"
#include "node/requests.h"
#include "node/rotation.h"
#include "node/spare.h"
#include "wire/script.h"

#define TIMEOUTS_TO_STALL      3
#define STALL_LIMIT_MS         5000
#define SCRIPTS_AGAIN_AFTER_MS 1000

__attribute__((noinline, cold)) static void end_write(struct redlock_node *node, int error) {
    /* The node may have answered and closed before this write failed. Its answers still count. */
    redlock_traffic_io(&node->connection.watch, REDLOCK_READABLE);
    if (node->connection.fd >= 0) {
        redlock_phase_ended(node, redlock_link_read_text(&node->connection, error));
    }
}

/* Returns what to write; NULL: the last connection asked, or the next one may have to write it. */
static struct redlock_outbox *box_of(struct redlock_node *node) {
    if (node->phase == REDLOCK_PHASE_READY) {
        return redlock_spare_keeps(node) ? NULL : &node->connection.outbox;
    }
    return node->phase == REDLOCK_PHASE_INTRODUCING ? &node->connection.hello
           : node->phase == REDLOCK_PHASE_STALLED   ? &node->connection.outbox
                                                    : NULL;
}

void redlock_traffic_flush(struct redlock_watch *watch) {
    struct redlock_node *node = (struct redlock_node *)watch;
    struct redlock_outbox *box = box_of(node);
    const int error = box == NULL ? 0 : redlock_connection_write(&node->connection, box);
    if (error != 0) {
        end_write(node, error);
    }
}

__attribute__((noinline, cold)) static void out_of_step(struct redlock_node *node) {
    redlock_phase_lost(node, redlock_link_unasked_text());
}

/* R17: it returns with the last reply that it owes, the PONG. With an earlier return, new requests
 * would wait behind the old ones and time out too. Under load such a node would never come back. */
__attribute__((noinline, cold)) static void drain(struct redlock_node *node) {
    const int64_t stall_end_ns = redlock_after_ms(node->heard_ns, STALL_LIMIT_MS);
    if (node->connection.inflight.count == 0) {
        redlock_phase_set(node, REDLOCK_PHASE_READY, NULL);
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO, "node %s answers again", node->address.name);
        node->listener.ready_changed(node->listener.ctx, node->index, true);
    } else if (stall_end_ns > node->stall_end_ns) { /* it has answered */
        node->stall_end_ns = stall_end_ns;
    }
}

/* R11: a restarted or flushed server gets its scripts again. The request itself is sent by
 * source. */
static void load_scripts(struct redlock_node *node, int64_t now_ns) {
    char command[REDLOCK_HANDSHAKE_LOAD_SIZE_MAX];
    if (node->handshake.scripts_refused || now_ns < redlock_after_ms(node->scripts_ns, SCRIPTS_AGAIN_AFTER_MS)) {
        return;
    }
    node->scripts_ns = now_ns;
    for (unsigned i = 0; i < REDLOCK_SCRIPT_COUNT; i++) {
        redlock_requests_queue_own(node, command, redlock_handshake_load(i, command), now_ns);
    }
}

/* It may not be allowed, or not be there: the script does the same. */
static void delete_by_script(struct redlock_node *node, const struct redlock_text *why) {
    if (node->form.deleting != REDLOCK_DELETING_SCRIPT) {
        node->form.deleting = REDLOCK_DELETING_SCRIPT;
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO,
                          "node %s refused to delete a lock without a script, so releases use the script: %s",
                          node->address.name, redlock_text_string(why));
    }
}

/* What an answer that is no plain vote says of the form in which the node was asked. Returns
 * whether a node may answer so. */
__attribute__((noinline, cold)) static bool note_form(struct redlock_node *node, unsigned kind,
                                                      const struct redlock_reply *reply, struct redlock_answer *told) {
    if (kind & REDLOCK_KIND_TWICE) {
        return redlock_naming_second(node, reply, told);
    }
    const bool possible = told->vote != REDLOCK_VOTE_UNKNOWN;
    if (kind & REDLOCK_KIND_NAMING) {
        if (told->no_script || !possible) {
            redlock_naming_refused(node, told);
        }
    } else if (told->no_script && (kind & REDLOCK_KIND_DELETING)) {
        delete_by_script(node, told->text);
    } else if (told->no_script) {
        load_scripts(node, told->read_ns);
    }
    return possible;
}

/* Takes the reply to a request that left the queue; `in_time` unless it had timed out. Answers the
 * request if its owner still waits. Returns false for a reply that the request cannot have. */
static bool take_answer(struct redlock_node *node, const struct redlock_inflight_entry *entry, bool in_time,
                        const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_answer told;
    if ((entry->reply_kind & REDLOCK_KIND_TWICE) && redlock_naming_first(node, entry, in_time, reply)) {
        return true;
    }
    redlock_wire_answer(entry->reply_kind, reply, node->address.credentials.password, &told);
    told.read_ns = now_ns;
    if (told.clock.server_us != 0) {
        told.clock.sent_ns = entry->queued_ns;
        told.clock.read_ns = now_ns;
    }
    bool possible = true;
    if (told.vote != REDLOCK_VOTE_GRANTED &&
        (told.vote != REDLOCK_VOTE_DENIED || (entry->reply_kind & REDLOCK_KIND_TWICE))) {
        possible = note_form(node, entry->reply_kind, reply, &told);
    }
    if (in_time || redlock_requests_has_no_timeout(entry)) {
        node->listener.answer(node->listener.ctx, node->index, entry->owner, entry->round, &told);
    }
    redlock_text_drop(told.text);
    return possible;
}

/* Returns false for a reply that PING, SCRIPT LOAD or AUTH cannot have. */
__attribute__((noinline, cold)) static bool take_own_reply(struct redlock_node *node,
                                                           const struct redlock_inflight_entry *entry, bool in_time,
                                                           const struct redlock_reply *reply) {
    const enum redlock_reply_type type = reply->value.type;
    return entry->owner == &node->rotation
               ? redlock_rotation_reply(node, entry, in_time, reply)
               : type == REDLOCK_REPLY_STATUS || type == REDLOCK_REPLY_STRING || type == REDLOCK_REPLY_ERROR;
}

static void take_reply(struct redlock_node *node, const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_inflight_entry entry;
    if (!redlock_connection_owes_reply(&node->connection)) {
        out_of_step(node);
        return;
    }
    bool in_time = redlock_inflight_pop(&node->connection.inflight, &entry);
    node->heard_ns = now_ns;
    if ((node->timeouts | (unsigned)node->dial.link.state) != 0) {
        redlock_spare_is_needless(node);
    }
    const int64_t round_trip_ns = now_ns - entry.queued_ns;
    node->round_trip_ns = round_trip_ns;
    if (round_trip_ns < node->shortest_ns) {
        node->shortest_ns = round_trip_ns;
    }
    /* One extra reply shifts all later ones, so a +OK would grant another request. Accept no more
     * (R20). */
    if (entry.own ? !take_own_reply(node, &entry, in_time, reply)
                  : !take_answer(node, &entry, in_time, reply, now_ns)) {
        out_of_step(node);
    }
}

static void take(struct redlock_connection *connection, const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_node *node = (struct redlock_node *)connection;
    if (node->phase == REDLOCK_PHASE_INTRODUCING) {
        redlock_connect_reply(node, reply);
    } else {
        take_reply(node, reply, now_ns);
    }
}

__attribute__((noinline, cold)) static void end_read(struct redlock_node *node, enum redlock_received received,
                                                     int error) {
    switch (received) {
    case REDLOCK_RECEIVED:
        break;
    case REDLOCK_RECEIVED_UNREAD:
        redlock_node_rearm(node, redlock_node_now_ns(node));
        break;
    case REDLOCK_RECEIVED_END:
        redlock_phase_ended(node, redlock_link_read_text(&node->connection, error));
        break;
    case REDLOCK_RECEIVED_PROTOCOL:
        redlock_naming_protocol(node);
        redlock_phase_lost(node, redlock_link_garbled_text(&node->connection, ""));
        break;
    }
}

static inline __attribute__((always_inline)) void read_replies(struct redlock_node *node) {
    int error;
    const enum redlock_received received = redlock_connection_receive(&node->connection, take, &error);
    if (received != REDLOCK_RECEIVED) {
        end_read(node, received, error);
    }
    if (node->phase == REDLOCK_PHASE_STALLED) {
        drain(node);
    }
}

__attribute__((noinline, cold)) static void read_from_afar(struct redlock_node *node) {
    /* Only a loop that runs late reads an answer of a far node before its timeout. */
    redlock_requests_expire(node, redlock_node_now_ns(node));
    read_replies(node);
    if (redlock_node_is_up(node) && !redlock_node_is_far(node)) {
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO, "node %s answers within %lld ms now", node->address.name,
                          (long long)node->options.node_timeout_ms);
        node->listener.ready_changed(node->listener.ctx, node->index, true);
    }
}

void redlock_traffic_io(struct redlock_watch *watch, unsigned events) {
    struct redlock_node *node = (struct redlock_node *)watch;
    struct redlock_connection *connection = &node->connection;
    if ((events & REDLOCK_READABLE) != 0) {
        if (redlock_node_is_far(node)) {
            read_from_afar(node);
        } else {
            read_replies(node);
        }
    }
    if ((events & REDLOCK_WRITABLE) != 0 && connection->blocked && connection->fd >= 0) {
        redlock_connection_unblock(connection);
        redlock_traffic_flush(watch);
    }
}

/* When the loop runs late, the timer and the answers come at once. Answers that are here now came
 * in time, since R7 limits the node. Some were left by the last turn. */
static void read_before_expiring(struct redlock_node *node, int64_t now_ns) {
    if (node->connection.unread ||
        (node->connection.fd >= 0 && redlock_node_is_up(node) && redlock_requests_next_ns(node) <= now_ns)) {
        redlock_traffic_io(&node->connection.watch, REDLOCK_READABLE);
    }
}

void redlock_traffic_due(struct redlock_node *node, int64_t now_ns) {
    read_before_expiring(node, now_ns);
    redlock_requests_expire(node, now_ns);
    redlock_rotation_was_withdrawn(node);
    redlock_spare_look(node, now_ns);
    if (node->phase == REDLOCK_PHASE_READY && node->timeouts >= TIMEOUTS_TO_STALL &&
        !redlock_spare_is_fresh(node, now_ns)) {
        node->stall_end_ns = redlock_after_ms(now_ns, STALL_LIMIT_MS);
        redlock_phase_set(node, REDLOCK_PHASE_STALLED,
                          redlock_text_new(REDLOCK_CAUSE_STALLED,
                                           "stalled: the last %u requests got no answer within %lld ms", node->timeouts,
                                           (long long)node->options.node_timeout_ms));
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING, "node %s: %s", node->address.name,
                          redlock_text_string(node->why));
        redlock_requests_end_kept(node, now_ns);
        redlock_rotation_was_withdrawn(node);
        node->listener.ready_changed(node->listener.ctx, node->index, false);
        redlock_requests_ping(node);
    } else if (node->phase == REDLOCK_PHASE_STALLED && now_ns >= node->stall_end_ns) {
        redlock_phase_lost(
            node, redlock_text_new(REDLOCK_CAUSE_STALLED, "stalled: no answer to anything for %d ms", STALL_LIMIT_MS));
    }
}
