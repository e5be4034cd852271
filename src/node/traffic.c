/* Requests of a node that is connected: queued, written, answered, timed out, stalled (R4, R6, R7, R17, R20). */
#include "node/node_state.h"

#include <errno.h>
#include <stdio.h>

#include "core/validity.h"
#include "node/stream.h"
#include "wire/script.h"
#include "wire/wire.h"

#define READ_SIZE              16384
#define READS_A_TURN           16 /* other descriptors of the loop want their turn, too */
#define TIMEOUTS_TO_STALL      3
#define STALL_LIMIT_MS         5000
#define BEHIND_AFTER_MS        1
#define SCRIPTS_AGAIN_AFTER_MS 1000

static const char ping[] = "*1\r\n$4\r\nPING\r\n";

static bool queue(struct redlock_node *node, const char *bytes, size_t size, struct redlock_inflight_entry *entry) {
    entry->position = redlock_outbox_end(&node->outbox);
    entry->size = (uint16_t)size;
    if (!redlock_outbox_append(&node->outbox, bytes, size)) {
        return false;
    }
    if (!redlock_inflight_push(&node->inflight, entry)) {
        redlock_outbox_withdraw(&node->outbox, entry->position, size);
        return false;
    }
    if (redlock_node_is_up(node)) {
        node->reactor.flush_soon(node->reactor.ctx, &node->watch);
    }
    redlock_node_rearm(node, redlock_after_ms(entry->queued_ns, node->options.node_timeout_ms));
    return true;
}

/* What sets a key where there is none: before a guarded node has said who it is, nobody knows whether that may count. */
static bool is_grant(enum redlock_operation operation) {
    return operation == REDLOCK_OP_ACQUIRE || operation == REDLOCK_OP_HEAL;
}

/* Whether it may be queued behind the first handshake. */
static bool may_wait(const struct redlock_node *node, unsigned expected) {
    return redlock_node_is_connecting(node) && !node->first_try_done &&
           !(node->options.guarded && is_grant(redlock_wire_operation(expected)));
}

bool redlock_node_send(struct redlock_node *node, const char *bytes, size_t size, unsigned expected, void *owner,
                       uint32_t round, int64_t now_ns) {
    if ((node->phase != REDLOCK_PHASE_READY && !may_wait(node, expected)) ||
        node->inflight.count >= REDLOCK_INFLIGHT_MAX) {
        return false;
    }
    return queue(node, bytes, size,
                 &(struct redlock_inflight_entry){.owner = owner,
                                                  .queued_ns = now_ns,
                                                  .round = round,
                                                  .expected = (uint8_t)expected,
                                                  .kind = REDLOCK_INFLIGHT_REQUEST});
}

bool redlock_node_is_behind(const struct redlock_node *node, int64_t now_ns) {
    return node->inflight.count > 0 &&
           now_ns > redlock_after_ms(redlock_inflight_at(&node->inflight, 0)->queued_ns, BEHIND_AFTER_MS);
}

/* The node's own commands; without memory they are left out, and the stall limit or the next NOSCRIPT sees to it. */
static void queue_own(struct redlock_node *node, const char *bytes, size_t size, int64_t now_ns) {
    (void)queue(node, bytes, size, &(struct redlock_inflight_entry){.queued_ns = now_ns, .kind = REDLOCK_INFLIGHT_OWN});
}

static bool is_patient(const struct redlock_inflight_entry *entry) {
    return (entry->expected & REDLOCK_NODE_PATIENT) != 0;
}

static void answer(struct redlock_node *node, const struct redlock_inflight_entry *entry, redlock_vote_kind vote,
                   struct redlock_text *text, int64_t now_ns) {
    struct redlock_answer told = {.vote = vote, .read_ns = now_ns, .text = text};
    if (entry->kind == REDLOCK_INFLIGHT_REQUEST) {
        node->listener.answer(node->listener.ctx, node->index, entry->owner, entry->round, &told);
    }
}

void redlock_traffic_flush(struct redlock_node *node) {
    struct redlock_outbox *box = node->phase == REDLOCK_PHASE_GREETING ? &node->hello : &node->outbox;
    size_t size = redlock_outbox_size(box);
    if (node->fd < 0 || node->blocked || size == 0) {
        return;
    }
    ssize_t sent = redlock_stream_write(node->fd, box->bytes + box->head, size);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        int error = errno;
        /* The node may have answered, and closed, before this: what it said still counts. */
        redlock_traffic_io(node, REDLOCK_READABLE);
        if (node->fd >= 0) {
            redlock_node_lost(node, redlock_node_errno_text("", error));
        }
        return;
    }
    if (sent > 0) {
        redlock_outbox_wrote(box, (size_t)sent);
    }
    if ((size_t)(sent > 0 ? sent : 0) < size) {
        node->blocked = true;
        node->reactor.watch(node->reactor.ctx, &node->watch, node->fd, REDLOCK_READABLE | REDLOCK_WRITABLE);
    }
}

/* R11: a server that was restarted or flushed gets its scripts again, next to the request that goes by source. */
static void load_scripts(struct redlock_node *node, int64_t now_ns) {
    char command[REDLOCK_HANDSHAKE_LOAD_SIZE_MAX];
    if (node->handshake.scripts_refused || now_ns < redlock_after_ms(node->scripts_ns, SCRIPTS_AGAIN_AFTER_MS)) {
        return;
    }
    node->scripts_ns = now_ns;
    for (unsigned i = 0; i < REDLOCK_SCRIPT_COUNT; i++) {
        queue_own(node, command, redlock_handshake_load(i, command), now_ns);
    }
}

static void out_of_step(struct redlock_node *node) {
    redlock_node_lost(node, redlock_text_new("the node answered what nobody had asked; is it a Redis server?"));
}

/* Hands the answer on where it is wanted. Returns false for a reply that the request cannot have. */
static bool judge_reply(struct redlock_node *node, const struct redlock_inflight_entry *entry, bool wanted,
                        const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_answer told;
    if (entry->kind == REDLOCK_INFLIGHT_OWN) {
        return reply->value.type == REDLOCK_REPLY_STATUS || reply->value.type == REDLOCK_REPLY_STRING ||
               reply->value.type == REDLOCK_REPLY_ERROR;
    }
    redlock_wire_answer(entry->expected & ~REDLOCK_NODE_PATIENT, reply, node->address.password, &told);
    told.read_ns = now_ns;
    if (told.clock.server_us != 0) {
        told.clock.sent_ns = entry->queued_ns;
        told.clock.read_ns = now_ns;
    }
    bool possible = told.vote != REDLOCK_VOTE_UNKNOWN;
    if (told.no_script) {
        load_scripts(node, now_ns);
    }
    if (wanted) {
        node->listener.answer(node->listener.ctx, node->index, entry->owner, entry->round, &told);
    }
    redlock_text_drop(told.text);
    return possible;
}

/*
 * R17: it returns with the last reply that it owes, the PONG. Sooner, what is asked next would wait behind what it has not
 * done yet, time out too, and be owed anew: under load such a node never comes back.
 */
static void drain(struct redlock_node *node, int64_t now_ns) {
    if (node->inflight.count == 0) {
        redlock_node_set_phase(node, REDLOCK_PHASE_READY, NULL);
        node->returned = true;
    } else {
        node->stall_end_ns = redlock_after_ms(now_ns, STALL_LIMIT_MS);
    }
}

static void take_reply(struct redlock_node *node, const struct redlock_reply *reply, int64_t now_ns) {
    struct redlock_inflight_entry entry;
    if (node->inflight.count == 0 || redlock_inflight_at(&node->inflight, 0)->position >= node->outbox.written) {
        out_of_step(node);
        return;
    }
    bool wanted = redlock_inflight_pop(&node->inflight, &entry) || is_patient(&entry);
    node->timeouts = 0;
    node->round_trip_us = (now_ns - entry.queued_ns) / 1000;
    if (node->phase == REDLOCK_PHASE_STALLED) {
        drain(node, now_ns);
    }
    /* One reply too many shifts all that follow, and a +OK would grant another request: no further one is taken (R20). */
    if (!judge_reply(node, &entry, wanted, reply, now_ns)) {
        out_of_step(node);
    }
}

/* Returns false when the connection is gone. */
static bool take_replies(struct redlock_node *node, int64_t now_ns) {
    const struct redlock_reply *reply;
    while (node->fd >= 0) {
        switch (redlock_reader_next(node->reader, &reply)) {
        case REDLOCK_READ_REPLY:
            if (node->phase == REDLOCK_PHASE_GREETING) {
                redlock_connect_reply(node, reply);
            } else {
                take_reply(node, reply, now_ns);
            }
            break;
        case REDLOCK_READ_MORE:
            return true;
        case REDLOCK_READ_PROTOCOL:
            redlock_node_lost(node, redlock_text_new("the node answered out of protocol (%s); is it a Redis server?",
                                                     redlock_reader_error(node->reader)));
            break;
        case REDLOCK_READ_NO_MEMORY:
            redlock_node_lost(node, redlock_text_new("no memory for a reply"));
            break;
        }
    }
    return false;
}

static void read_replies(struct redlock_node *node) {
    char buffer[READ_SIZE];
    for (int i = 0; i < READS_A_TURN; i++) {
        ssize_t got = redlock_stream_read(node->fd, buffer, sizeof buffer);
        if (got == 0) {
            redlock_node_lost(node, redlock_text_new("connection closed by the node"));
            return;
        }
        if (got < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                redlock_node_lost(node, redlock_node_errno_text("", errno));
            }
            return;
        }
        if (!redlock_reader_feed(node->reader, buffer, (size_t)got)) {
            redlock_node_lost(node, redlock_text_new("no memory for a reply"));
            return;
        }
        if (!take_replies(node, node->reactor.now_ns(node->reactor.ctx)) || (size_t)got < sizeof buffer) {
            return;
        }
    }
}

void redlock_traffic_io(struct redlock_node *node, unsigned events) {
    if ((events & REDLOCK_READABLE) != 0) {
        read_replies(node);
    }
    if (node->returned) {
        node->returned = false;
        if (redlock_node_is_up(node)) {
            node->reactor.log(node->reactor.ctx, REDLOCK_LOG_INFO, "node %s answers again", node->address.name);
            node->listener.ready_changed(node->listener.ctx, node->index, true);
        }
    }
    if (node->fd < 0 || !node->blocked || (events & REDLOCK_WRITABLE) == 0) {
        return;
    }
    node->blocked = false;
    redlock_traffic_flush(node);
    if (node->fd >= 0 && !node->blocked) {
        node->reactor.watch(node->reactor.ctx, &node->watch, node->fd, REDLOCK_READABLE);
    }
}

int64_t redlock_traffic_next_ns(const struct redlock_node *node) {
    if (node->inflight.expired == node->inflight.count) {
        return REDLOCK_NEVER_NS;
    }
    return redlock_after_ms(redlock_inflight_at(&node->inflight, node->inflight.expired)->queued_ns,
                            node->options.node_timeout_ms);
}

/*
 * A request that was written stays in the queue: its reply is still expected, in order, and is then dropped (R9), unless
 * the request is patient: then it was not answered yet. One that was not is withdrawn, so that FAILED is the truth (R4). Callbacks may queue more behind them meanwhile.
 */
static void expire(struct redlock_node *node, int64_t now_ns) {
    struct redlock_inflight *inflight = &node->inflight;
    size_t withdrawn = 0;
    uint64_t position = 0, size = 0;
    while (inflight->expired + withdrawn < inflight->count) {
        struct redlock_inflight_entry entry = *redlock_inflight_at(inflight, inflight->expired + withdrawn);
        if (now_ns < redlock_after_ms(entry.queued_ns, node->options.node_timeout_ms)) {
            break;
        }
        if (entry.position < node->outbox.written) {
            inflight->expired++;
            node->timeouts++;
            if (!is_patient(&entry)) {
                answer(node, &entry, REDLOCK_VOTE_UNKNOWN, node->timed_out, now_ns);
            }
        } else {
            position = withdrawn == 0 ? entry.position : position;
            withdrawn++;
            size += entry.size;
            answer(node, &entry, REDLOCK_VOTE_FAILED, node->withdrawn, now_ns);
        }
    }
    if (withdrawn > 0) {
        redlock_outbox_withdraw(&node->outbox, position, (size_t)size);
        redlock_inflight_withdraw(inflight, inflight->expired, withdrawn, size);
    }
}

/* A loop that runs late finds timer and answers at once: what has come in by now was in time (R7 is about the node). */
static void read_before_expiring(struct redlock_node *node, int64_t now_ns) {
    if (node->fd >= 0 && redlock_node_is_up(node) && redlock_traffic_next_ns(node) <= now_ns) {
        redlock_traffic_io(node, REDLOCK_READABLE);
    }
}

void redlock_traffic_due(struct redlock_node *node, int64_t now_ns) {
    read_before_expiring(node, now_ns);
    expire(node, now_ns);
    if (node->phase == REDLOCK_PHASE_READY && node->timeouts >= TIMEOUTS_TO_STALL) {
        node->stall_end_ns = redlock_after_ms(now_ns, STALL_LIMIT_MS);
        redlock_node_set_phase(node, REDLOCK_PHASE_STALLED,
                               redlock_text_new("stalled: the last %u requests got no answer within %lld ms",
                                                node->timeouts, (long long)node->options.node_timeout_ms));
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING, "node %s: %s", node->address.name,
                          redlock_text_string(node->why));
        node->listener.ready_changed(node->listener.ctx, node->index, false);
        queue_own(node, ping, sizeof ping - 1, now_ns);
    } else if (node->phase == REDLOCK_PHASE_STALLED && now_ns >= node->stall_end_ns) {
        redlock_node_lost(node, redlock_text_new("stalled: no answer to anything for %d ms", STALL_LIMIT_MS));
    }
}

void redlock_traffic_end(struct redlock_node *node) {
    struct redlock_inflight_entry entry;
    const char *why = redlock_text_string(node->why);
    int64_t now_ns = node->reactor.now_ns(node->reactor.ctx);
    struct redlock_text *after = NULL, *before = NULL;
    while (node->inflight.count > 0) {
        if (!redlock_inflight_pop(&node->inflight, &entry) && !is_patient(&entry)) {
            continue;
        }
        if (entry.position < node->outbox.written) {
            after = after != NULL ? after : redlock_text_new("%s after the request was written", why);
            answer(node, &entry, REDLOCK_VOTE_UNKNOWN, after, now_ns);
        } else {
            before = before != NULL ? before : redlock_text_new("nothing was sent: %s", why);
            answer(node, &entry, REDLOCK_VOTE_FAILED, before, now_ns);
        }
    }
    redlock_text_drop(after);
    redlock_text_drop(before);
    redlock_outbox_clear(&node->outbox);
    redlock_inflight_clear(&node->inflight);
}
