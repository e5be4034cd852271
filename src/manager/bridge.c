/* Connects the group of a manager to its loop and its nodes, in both directions. */
#include "manager/bridge.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/wire.h"

static int64_t env_now(void *context) {
    return redlock_loop_now_ns(((redlock_manager *)context)->loop);
}

static int env_random(void *context, void *buffer, size_t size) {
    return redlock_loop_random(((redlock_manager *)context)->loop, buffer, size);
}

static int64_t env_wall(void *context) {
    return redlock_loop_wall_us(((redlock_manager *)context)->loop);
}

static void env_wake_at(void *context, int64_t when_ns) {
    redlock_loop_wake_at(((redlock_manager *)context)->loop, when_ns);
}

/* Each write takes time, so slow and hung nodes come last: they delay no others. The order is kept
 * otherwise, so that those that answer first stay awake. */
static redlock_nodes behind(redlock_manager *manager, redlock_nodes nodes, int64_t now_ns) {
    redlock_nodes behind = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        if (redlock_node_is_behind(manager->nodes[redlock_nodes_first(nodes)], now_ns)) {
            behind |= nodes & -nodes;
        }
    }
    return behind;
}

static redlock_nodes send_to(redlock_manager *manager, redlock_nodes nodes, const char *bytes, size_t size,
                             unsigned reply_kind, const struct redlock_message *message) {
    redlock_nodes taken = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        if (redlock_node_send(manager->nodes[redlock_nodes_first(nodes)], bytes, size, reply_kind, message->owner,
                              message->round, message->now_ns)) {
            taken |= nodes & -nodes;
        }
    }
    return taken;
}

/* The same bytes to all, but for the seal. Kept apart: inlined, it costs a plain lock some
 * instructions. */
__attribute__((noinline)) static redlock_nodes send_wait(redlock_manager *manager, redlock_nodes nodes, char *bytes,
                                                         size_t size, const struct redlock_message *message) {
    redlock_nodes taken = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        if (!redlock_node_serves_waiters(manager->nodes[redlock_nodes_first(nodes)])) {
            continue;
        }
        redlock_wire_seal(message, redlock_nodes_first(nodes), bytes, size);
        taken |= send_to(manager, nodes & -nodes, bytes, size, REDLOCK_KIND_WAIT, message);
    }
    return taken;
}

/* In one form. */
static redlock_nodes send_form(redlock_manager *manager, redlock_nodes nodes, const struct redlock_message *message) {
    char bytes[REDLOCK_WIRE_SIZE_MAX];
    if (redlock_loop_forked(manager->loop)) {
        return 0; /* the connections belong to the parent */
    }
    enum redlock_reply_kind kind;
    const size_t size = redlock_wire_format(message, bytes, &kind);
    const unsigned reply_kind = kind | (message->no_timeout ? REDLOCK_NODE_NO_TIMEOUT : 0);
    const redlock_nodes last = behind(manager, nodes, message->now_ns);
    if (kind == REDLOCK_KIND_WAIT) {
        return send_wait(manager, nodes & ~last, bytes, size, message) | send_wait(manager, last, bytes, size, message);
    }
    const redlock_nodes taken = send_to(manager, nodes & ~last, bytes, size, reply_kind, message);
    return last == 0 ? taken : taken | send_to(manager, last, bytes, size, reply_kind, message);
}

/* The nodes that do not have the form of the first one. */
static redlock_nodes others(redlock_manager *manager, redlock_nodes nodes, struct redlock_form form) {
    redlock_nodes others = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        const struct redlock_form other = redlock_node_form(manager->nodes[redlock_nodes_first(nodes)]);
        if (other.naming != form.naming || other.deleting != form.deleting) {
            others |= nodes & -nodes;
        }
    }
    return others;
}

/* In the form that each node has; most often, all have the same. */
static redlock_nodes env_send(void *context, redlock_nodes nodes, struct redlock_message *message) {
    redlock_manager *manager = context;
    redlock_nodes left = 0;
    if (message->only_deletes || message->operation == REDLOCK_OP_ACQUIRE) {
        message->form = redlock_node_form(manager->nodes[redlock_nodes_first(nodes)]);
        left = others(manager, nodes & (nodes - 1), message->form);
    }
    const redlock_nodes taken = send_form(manager, nodes & ~left, message);
    return left == 0 ? taken : taken | env_send(manager, left, message);
}

static void env_listen(void *context, const char *channel) {
    redlock_manager *manager = context;
    for (unsigned i = 0; i < manager->count; i++) {
        redlock_node_listen(manager->nodes[i], channel);
    }
}

static void env_hear(void *context, const struct redlock_channels *channels) {
    redlock_manager *manager = context;
    for (unsigned i = 0; i < manager->count; i++) {
        redlock_node_hear(manager->nodes[i], channels);
    }
}

static void env_leave(void *context, const struct redlock_channel *channel) {
    redlock_manager *manager = context;
    for (unsigned i = 0; i < manager->count; i++) {
        redlock_node_leave(manager->nodes[i], channel);
    }
}

static struct redlock_text *env_refusal(void *context, unsigned node) {
    static const struct redlock_text forked = {
        .string = "this is a child process: the connection belongs to its parent", .cause = REDLOCK_CAUSE_OURS};
    redlock_manager *manager = context;
    assert(node < manager->count);
    return redlock_loop_forked(manager->loop) ? redlock_text_constant(&forked)
                                              : redlock_node_refusal(manager->nodes[node]);
}

static bool env_is_too_far(void *context, unsigned node) {
    return redlock_node_is_too_far(((redlock_manager *)context)->nodes[node]);
}

static void env_proven(void *context, unsigned node) {
    redlock_node_names_holders(((redlock_manager *)context)->nodes[node]);
}

static void env_log(void *context, redlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void env_log(void *context, redlock_log_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    redlock_loop_vlog(((redlock_manager *)context)->loop, level, format, arguments);
    va_end(arguments);
}

/* What the loop and the nodes report. */

static void on_answer(void *context, unsigned index, void *owner, uint32_t round, struct redlock_answer *answer) {
    redlock_group_answer(((redlock_manager *)context)->group, owner, round, index, answer);
}

/* Waiters and observers count answers to several requests, so a server that becomes another node
 * meanwhile would give two votes (R18). On a node's first connection a request may wait to be
 * written, and no answer can be older. */
static void note_server(redlock_manager *manager, unsigned index, const char *run_id) {
    for (unsigned i = 0; i < manager->count; i++) {
        const bool is_same = strcmp(manager->run_ids[i], run_id) == 0;
        if (manager->run_ids[i][0] != '\0' && is_same != (i == index)) {
            redlock_group_moved(manager->group, i);
        }
    }
    (void)snprintf(manager->run_ids[index], sizeof manager->run_ids[index], "%s", run_id);
}

static void on_greeted(void *context, unsigned index, const struct redlock_greeting *greeting) {
    redlock_manager *manager = context;
    assert(index < manager->count);
    redlock_group_node_greeted(manager->group, index, greeting);
    note_server(manager, index, greeting->run_id);
}

static void on_ready_changed(void *context, unsigned index, bool ready) {
    redlock_group_ready_changed(((redlock_manager *)context)->group, index, ready);
}

static void on_pushed(void *context, unsigned index, const struct redlock_push *push) {
    redlock_group_pushed(((redlock_manager *)context)->group, index, push);
}

static void on_listens(void *context, unsigned index, enum redlock_listening listening, struct redlock_text *why) {
    redlock_group_listens(((redlock_manager *)context)->group, index, listening, why);
}

static void on_hinted(void *context, unsigned index, const struct redlock_hint *hint) {
    redlock_group_hinted(((redlock_manager *)context)->group, index, hint);
}

static void on_hears(void *context, unsigned index, const struct redlock_channel *channel) {
    redlock_group_hears(((redlock_manager *)context)->group, index, channel);
}

static const char *on_same_server(void *context, unsigned index, const char *server, bool *yields) {
    redlock_manager *manager = context;
    for (unsigned i = 0; i < manager->count; i++) {
        if (i == index || !redlock_node_is_at(manager->nodes[i], server)) {
            continue;
        }
        *yields = i > index;
        if (*yields) {
            redlock_node_yield(manager->nodes[i], redlock_node_name(manager->nodes[index]));
        }
        return redlock_node_name(manager->nodes[i]);
    }
    return NULL;
}

static size_t on_other_marks(void *context, unsigned index, const char *marks[REDLOCK_NODE_OTHERS_MAX]) {
    redlock_manager *manager = context;
    size_t count = 0;
    for (unsigned i = 0; i < manager->count; i++) {
        if (i != index) {
            redlock_node_marks(manager->nodes[i], &marks[count]);
            count += 2;
        }
    }
    return count;
}

struct redlock_env redlock_bridge_env(redlock_manager *manager) {
    return (struct redlock_env){.ctx = manager,
                                .now_ns = env_now,
                                .wall_us = env_wall,
                                .random = env_random,
                                .wake_at = env_wake_at,
                                .send = env_send,
                                .listen = env_listen,
                                .hear = env_hear,
                                .leave = env_leave,
                                .refusal = env_refusal,
                                .is_too_far = env_is_too_far,
                                .proven = env_proven,
                                .log = env_log};
}

struct redlock_node_listener redlock_bridge_listener(redlock_manager *manager) {
    return (struct redlock_node_listener){.ctx = manager,
                                          .answer = on_answer,
                                          .greeted = on_greeted,
                                          .ready_changed = on_ready_changed,
                                          .pushed = on_pushed,
                                          .listens = on_listens,
                                          .hinted = on_hinted,
                                          .hears = on_hears,
                                          .same_server = on_same_server,
                                          .other_marks = on_other_marks};
}
