/* From an address to a connection that may carry requests. */
#include "node/connect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/time.h"
#include "node/failure.h"
#include "node/introduce.h"
#include "node/phase.h"
#include "node/rotation.h"
#include "node/secure.h"
#include "node/spare.h"

static void no_memory(struct redlock_node *node) {
    redlock_spare_or_node_fails(node, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for the handshake"));
}

/* Writes the handshake's bytes before the loop polls. */
static void flush_soon(struct redlock_node *node, struct redlock_connection *connection) {
    node->reactor.flush_soon(node->reactor.ctx, &connection->watch);
}

static void set_timer(struct redlock_node *node, int64_t due_ns) {
    node->reactor.timer_at(node->reactor.ctx, &node->dial.connection.watch, due_ns);
}

/* Without a socket the connection does not use its watch, so the lookup can. */
static void watch_lookup(struct redlock_node *node, int fd) {
    node->reactor.watch(node->reactor.ctx, &node->dial.connection.watch, fd, REDLOCK_READABLE);
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

static void greet(struct redlock_node *node) {
    struct redlock_dial *dial = &node->dial;
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
            : node->listener.other_marks(node->listener.ctx, node->index, dial->handshake.marks);
    dial->phase = REDLOCK_DIAL_GREETING;
    if (!redlock_connection_start(&dial->connection) ||
        redlock_handshake_start(&dial->handshake, &dial->connection.hello) == REDLOCK_HANDSHAKE_NO_MEMORY) {
        no_memory(node);
        return;
    }
    dial->clock = (struct redlock_clock_sample){.sent_ns = redlock_node_now_ns(node)};
    dial->round_trip_ns = 0;
    flush_soon(node, &dial->connection);
    if (dial->connection.unread) {
        set_timer(node, redlock_node_now_ns(node));
    }
}

static void secure(struct redlock_node *node, unsigned events) {
    struct redlock_text *why = NULL;
    const enum redlock_securing securing = redlock_secure_io(&node->dial.connection, events, &why);
    if (securing == REDLOCK_SECURING_DONE) {
        greet(node);
    } else if (securing == REDLOCK_SECURING_FAILED) {
        redlock_spare_or_node_fails(node, why);
    }
}

static void begin_tls(struct redlock_node *node) {
    if (!redlock_secure_begin(node, &node->dial.connection)) {
        redlock_spare_or_node_fails(node, redlock_text_new(REDLOCK_CAUSE_OURS, "no memory for TLS"));
        return;
    }
    node->dial.phase = REDLOCK_DIAL_SECURING;
    secure(node, 0);
}

/* Tries the endpoints until one starts to connect. Each gets its share of the time left. */
static void open_next(struct redlock_node *node, int error) {
    struct redlock_dial *dial = &node->dial;
    int64_t now_ns = redlock_node_now_ns(node);
    while (dial->endpoints_tried < dial->endpoints.count) {
        dial->endpoint = (dial->endpoint_first + dial->endpoints_tried) % dial->endpoints.count;
        int64_t share = (int64_t)(dial->endpoints.count - dial->endpoints_tried);
        dial->endpoint_ns = now_ns + (dial->give_up_ns - now_ns) / share;
        dial->endpoints_tried++;
        const struct redlock_endpoint *endpoint = &dial->endpoints.list[dial->endpoint];
        error = redlock_connection_open(&dial->connection, (const struct sockaddr *)&endpoint->address, endpoint->size);
        if (error == 0) {
            dial->phase = REDLOCK_DIAL_OPENING;
            set_timer(node, dial->endpoint_ns);
            return;
        }
    }
    redlock_spare_or_node_fails(node, redlock_node_errno_text("", error));
}

static void open_first(struct redlock_node *node) {
    node->dial.endpoints_tried = 0;
    open_next(node, EADDRNOTAVAIL);
}

static void opened(struct redlock_node *node) {
    int error = redlock_connection_opened(&node->dial.connection);
    if (error != 0) {
        redlock_connection_close(&node->dial.connection);
        open_next(node, error);
        return;
    }
    set_timer(node, node->dial.give_up_ns);
    if (node->address.tls) {
        begin_tls(node);
    } else {
        greet(node);
    }
}

static void resolved(struct redlock_node *node) {
    struct redlock_dial *dial = &node->dial;
    const char *error = redlock_lookup_result(dial->lookup, &dial->endpoints);
    watch_lookup(node, -1);
    redlock_lookup_drop(dial->lookup, false);
    dial->lookup = NULL;
    if (error != NULL) {
        redlock_spare_or_node_fails(node,
                                    redlock_text_new(REDLOCK_CAUSE_CONNECTION, "the name is not resolved: %s", error));
    } else {
        open_first(node);
    }
}

void redlock_connect_begin(struct redlock_node *node) {
    int error = 0;
    struct redlock_dial *dial = &node->dial;
    dial->begun_ns = redlock_node_now_ns(node);
    dial->give_up_ns = redlock_after_ms(dial->begun_ns, node->options.connect_timeout_ms);
    dial->phase = REDLOCK_DIAL_RESOLVING;
    draw_mark(node);
    if (!redlock_node_is_up(node)) {
        node->mark[0] = '\0';
        redlock_node_set_phase(node, REDLOCK_PHASE_DIALING, redlock_text_keep(node->why));
    }
    set_timer(node, dial->give_up_ns);
    if (dial->lookup == NULL && redlock_resolve_literal(&node->address, &dial->endpoints)) {
        open_first(node);
        return;
    }
    if (dial->lookup == NULL) {
        dial->lookup = redlock_lookup_start(node->address.host, node->address.port, &error);
    }
    if (dial->lookup == NULL) {
        redlock_spare_or_node_fails(node, redlock_node_errno_text("no thread to look the name up: ", error));
    } else if (redlock_lookup_done(dial->lookup)) {
        resolved(node);
    } else {
        watch_lookup(node, redlock_lookup_fd(dial->lookup));
    }
}

static struct redlock_text *no_answer_text(const struct redlock_node *node) {
    return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "connected, but no answer to the handshake within %lld ms",
                            (long long)node->options.connect_timeout_ms);
}

static struct redlock_text *too_late(const struct redlock_node *node) {
    long long timeout_ms = (long long)node->options.connect_timeout_ms;
    switch (node->dial.phase) {
    case REDLOCK_DIAL_RESOLVING:
        return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "the name was not resolved within %lld ms", timeout_ms);
    case REDLOCK_DIAL_OPENING:
        return redlock_text_new(REDLOCK_CAUSE_CONNECTION, "no connection within %lld ms", timeout_ms);
    case REDLOCK_DIAL_SECURING:
        return redlock_secure_late_text(node, &node->dial.connection);
    default:
        return no_answer_text(node);
    }
}

/* Begin with the next endpoint: one that accepts and stays silent must not block the others. */
static void prefer_next(struct redlock_dial *dial) {
    dial->endpoint_first = dial->endpoint + 1;
}

static void due(struct redlock_node *node) {
    struct redlock_dial *dial = &node->dial;
    const int64_t now_ns = redlock_node_now_ns(node);
    if (dial->phase == REDLOCK_DIAL_OFF) {
        if (redlock_spare_is_due(node, now_ns)) {
            redlock_connect_begin(node);
        } else {
            /* Something was heard since, maybe when a request was kept for the spare already. */
            redlock_spare_is_not_due(node, now_ns);
        }
    } else if (now_ns >= dial->give_up_ns) {
        prefer_next(dial);
        redlock_spare_or_node_fails(node, too_late(node));
    } else if (dial->phase == REDLOCK_DIAL_OPENING && now_ns >= dial->endpoint_ns) {
        redlock_connection_close(&dial->connection);
        open_next(node, ETIMEDOUT);
    } else {
        set_timer(node, dial->phase == REDLOCK_DIAL_OPENING ? dial->endpoint_ns : dial->give_up_ns);
    }
}

void redlock_connect_due(struct redlock_node *node, int64_t now_ns) {
    if (node->phase == REDLOCK_PHASE_NEW) {
        redlock_connect_begin(node);
    } else if (node->phase == REDLOCK_PHASE_INTRODUCING && now_ns >= node->dial.give_up_ns) {
        prefer_next(&node->dial);
        redlock_node_lost(node, no_answer_text(node));
    } else if (node->succeeds) {
        redlock_introduce_compare(node);
    }
}

/* The server is known: the connection becomes the node's, and the handshake goes on there. */
static void take_over(struct redlock_node *node) {
    struct redlock_dial *dial = &node->dial;
    const bool spare = redlock_node_has_spare(node);
    if (spare && !redlock_spare_replaces(node)) {
        return;
    }
    redlock_connection_take_over(&node->connection, &dial->connection);
    node->endpoint = dial->endpoints.list[dial->endpoint];
    node->handshake = dial->handshake;
    node->handshake.credentials = &node->address.credentials;
    memcpy(node->mark, dial->mark, sizeof node->mark);
    node->handshake.mark = node->mark;
    node->shortest_ns = node->round_trip_ns = dial->round_trip_ns;
    redlock_dial_end(node);
    redlock_node_set_phase(node, REDLOCK_PHASE_INTRODUCING, redlock_text_keep(node->why));
    node->hello_ns = redlock_node_now_ns(node);
    flush_soon(node, &node->connection);
    redlock_node_rearm(node, node->connection.unread ? node->hello_ns : dial->give_up_ns);
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
        redlock_spare_or_node_fails(dial->node, redlock_node_unasked_text());
        return;
    }
    dial->round_trip_ns = dial->round_trip_ns == 0 ? now_ns - dial->clock.sent_ns : dial->round_trip_ns;
    const enum redlock_handshake_state state = redlock_handshake_reply(handshake, reply, &connection->hello);
    if (dial->clock.server_us == 0 && handshake->server_us != 0) {
        dial->clock.server_us = handshake->server_us;
        dial->clock.read_ns = now_ns;
    }
    if (state != REDLOCK_HANDSHAKE_WAITING) {
        redlock_introduce_end(dial->node, handshake, state);
    } else if (handshake->step == 0) {
        take_over(dial->node);
    }
}

/* Returns whether the node may be waiting for TLS: it has not answered at all. */
static bool may_want_tls(const struct redlock_node *node) {
    return !node->address.tls && node->address.kind == REDLOCK_ADDRESS_TCP && node->dial.handshake.step == 0;
}

static struct redlock_text *end_text(const struct redlock_node *node, int error) {
    struct redlock_text *why = redlock_node_read_text(&node->dial.connection, error);
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

static void read_replies(struct redlock_node *node) {
    int error;
    switch (redlock_connection_receive(&node->dial.connection, take, &error)) {
    case REDLOCK_RECEIVED:
        break;
    case REDLOCK_RECEIVED_UNREAD:
        set_timer(node, redlock_node_now_ns(node));
        break;
    case REDLOCK_RECEIVED_END:
        redlock_spare_or_node_fails(node, end_text(node, error));
        break;
    case REDLOCK_RECEIVED_PROTOCOL:
        redlock_spare_or_node_fails(
            node, redlock_node_garbled_text(&node->dial.connection,
                                            may_want_tls(node) ? ", and does it want TLS (rediss://)" : ""));
        break;
    }
}

static void on_flush(struct redlock_watch *watch) {
    struct redlock_dial *dial = (struct redlock_dial *)watch;
    const int error = dial->phase == REDLOCK_DIAL_GREETING
                          ? redlock_connection_write(&dial->connection, &dial->connection.hello)
                          : 0; /* the last connection asked */
    if (error != 0) {
        /* The node may have answered and closed before this write failed. Its answers still
         * count. */
        read_replies(dial->node);
    }
    if (error != 0 && dial->phase == REDLOCK_DIAL_GREETING) {
        redlock_spare_or_node_fails(dial->node, redlock_node_read_text(&dial->connection, error));
    }
}

static void on_io(struct redlock_watch *watch, unsigned events) {
    struct redlock_dial *dial = (struct redlock_dial *)watch;
    struct redlock_node *node = dial->node;
    switch (dial->phase) {
    case REDLOCK_DIAL_OFF:
        break;
    case REDLOCK_DIAL_RESOLVING:
        if (redlock_lookup_done(dial->lookup)) {
            resolved(node);
        }
        break;
    case REDLOCK_DIAL_OPENING:
        if ((events & REDLOCK_WRITABLE) != 0) {
            opened(node);
        }
        break;
    case REDLOCK_DIAL_SECURING:
        secure(node, events);
        break;
    case REDLOCK_DIAL_GREETING:
        if ((events & REDLOCK_READABLE) != 0) {
            read_replies(node);
        }
        if ((events & REDLOCK_WRITABLE) != 0 && dial->connection.blocked && dial->connection.fd >= 0) {
            redlock_connection_unblock(&dial->connection);
            on_flush(watch);
        }
        break;
    }
}

static void on_timer(struct redlock_watch *watch) {
    struct redlock_dial *dial = (struct redlock_dial *)watch;
    if (dial->phase == REDLOCK_DIAL_GREETING) {
        /* The loop may run late: what has come, came in time (R7). */
        read_replies(dial->node);
    }
    due(dial->node);
}

int redlock_connect_init(struct redlock_node *node) {
    struct redlock_connection *connection = &node->dial.connection;
    connection->watch = (struct redlock_watch){.on_io = on_io, .on_timer = on_timer, .on_flush = on_flush};
    node->dial.node = node;
    return redlock_connection_init(connection, &node->reactor);
}
