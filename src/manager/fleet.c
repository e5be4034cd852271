/* One set of nodes: makes them, and connects their group to them and to the loop, in both
 * directions. */
#include "manager/fleet.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "group/entry.h"
#include "group/handle.h"
#include "manager/options.h"
#include "server/address.h"
#include "server/tls_context.h"
#include "wire/wire.h"

#define MARKER "redlock:server:"

static int env_random(void *context, void *buffer, size_t size) {
    return redlock_loop_random(((struct redlock_fleet *)context)->loop, buffer, size);
}

static void env_wake_at(void *context, int64_t when_ns) {
    struct redlock_fleet *fleet = context;
    fleet->reactor.timer_at(fleet->loop, &fleet->timer, when_ns);
}

static redlock_nodes send_to(struct redlock_fleet *fleet, redlock_nodes nodes, const char *bytes, size_t size,
                             unsigned reply_kind, const struct redlock_message *message) {
    const struct redlock_inflight_entry entry = {.owner = message->requester,
                                                 .queued_ns = message->now_ns,
                                                 .round = message->round,
                                                 .reply_kind = (uint16_t)reply_kind};
    redlock_nodes taken = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        if (redlock_node_send(fleet->nodes[redlock_nodes_first(nodes)], bytes, size, &entry)) {
            taken |= nodes & -nodes;
        }
    }
    return taken;
}

__attribute__((noinline, cold)) static void load_rare(struct redlock_fleet *fleet, redlock_nodes nodes,
                                                      unsigned reply_kind) {
    for (; nodes != 0; nodes &= nodes - 1) {
        redlock_node_load(fleet->nodes[redlock_nodes_first(nodes)], reply_kind);
    }
}

/* The same bytes to all, but for the seal. Kept apart: inlined, it costs a plain lock some
 * instructions. */
__attribute__((noinline)) static redlock_nodes send_wait(struct redlock_fleet *fleet, redlock_nodes nodes, char *bytes,
                                                         size_t size, const struct redlock_message *message) {
    redlock_nodes taken = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        if (!redlock_node_serves_waiters(fleet->nodes[redlock_nodes_first(nodes)])) {
            continue;
        }
        redlock_wire_seal(message, redlock_nodes_first(nodes), bytes, size);
        taken |= send_to(fleet, nodes & -nodes, bytes, size, REDLOCK_OP_WAIT, message);
    }
    return taken;
}

static bool differs(const struct redlock_fleet *fleet, unsigned node, const struct redlock_message *message) {
    const struct redlock_form form = redlock_node_form(fleet->nodes[node]);
    return (message->operation == REDLOCK_OP_ACQUIRE && form.holder_query != message->form.holder_query) ||
           (message->by_try && form.deleting != message->form.deleting);
}

static redlock_nodes env_send(void *context, redlock_nodes nodes, struct redlock_message *message);

/* The first node of `from` has another form than the message. If that makes a difference to this
 * request, sends to all the nodes, and returns true. */
__attribute__((noinline, cold)) static bool send_apart(struct redlock_fleet *fleet, redlock_nodes nodes,
                                                       redlock_nodes from, struct redlock_message *message,
                                                       redlock_nodes *taken) {
    redlock_nodes others = 0;
    if (!differs(fleet, redlock_nodes_first(from), message)) {
        return false;
    }
    for (; from != 0; from &= from - 1) {
        others |= differs(fleet, redlock_nodes_first(from), message) ? from & -from : 0;
    }
    *taken = env_send(fleet, nodes & ~others, message);
    *taken |= env_send(fleet, others, message);
    return true;
}

/* In the form that each node has; most often, all have the same. Each write takes time, so slow and
 * hung nodes come last: they delay no others. The order is kept otherwise, so that those that
 * answer first stay awake. */
static redlock_nodes env_send(void *context, redlock_nodes nodes, struct redlock_message *message) {
    char bytes[REDLOCK_WIRE_SIZE_MAX];
    struct redlock_fleet *fleet = context;
    if (nodes == 0 || redlock_loop_forked(fleet->loop)) {
        return 0; /* in a child process, the connections belong to the parent */
    }
    const struct redlock_form form = redlock_node_form(fleet->nodes[redlock_nodes_first(nodes)]);
    redlock_nodes last = 0, at = nodes, taken;
    message->form = form;
    do {
        const struct redlock_node *node = fleet->nodes[redlock_nodes_first(at)];
        if (redlock_form_bits(redlock_node_form(node)) != redlock_form_bits(form) &&
            send_apart(fleet, nodes, at, message, &taken)) {
            return taken;
        }
        if (redlock_node_is_behind(node, message->now_ns)) {
            last |= at & -at;
        }
        at &= at - 1;
    } while (at != 0);
    unsigned kind;
    const size_t size = redlock_wire_format(message, bytes, &kind);
    if (kind == REDLOCK_OP_WAIT) {
        return send_wait(fleet, nodes & ~last, bytes, size, message) | send_wait(fleet, last, bytes, size, message);
    }
    if (message->shared | message->slots | message->no_timeout) { /* few are */
        if (kind & (REDLOCK_KIND_SHARED | REDLOCK_KIND_SLOTS)) {
            load_rare(fleet, nodes, kind);
        }
        kind |= message->no_timeout ? REDLOCK_SERVER_NO_TIMEOUT : 0;
    }
    taken = send_to(fleet, nodes & ~last, bytes, size, kind, message);
    return last == 0 ? taken : taken | send_to(fleet, last, bytes, size, kind, message);
}

static void env_listen(void *context, const char *channel) {
    struct redlock_fleet *fleet = context;
    assert(channel);
    for (unsigned i = 0; i < fleet->count; i++) {
        redlock_node_listen(fleet->nodes[i], channel);
    }
}

static void env_hear(void *context, const struct redlock_channels *channels) {
    struct redlock_fleet *fleet = context;
    assert(channels);
    for (unsigned i = 0; i < fleet->count; i++) {
        redlock_node_hear(fleet->nodes[i], channels);
    }
}

static void env_stop_hearing(void *context, const struct redlock_channel *channel) {
    struct redlock_fleet *fleet = context;
    assert(channel);
    for (unsigned i = 0; i < fleet->count; i++) {
        redlock_node_leave(fleet->nodes[i], channel);
    }
}

static struct redlock_node *node_of(const struct redlock_fleet *fleet, unsigned index) {
    assert(index < fleet->count);
    return fleet->nodes[index];
}

static struct redlock_text *env_refusal(void *context, unsigned node) {
    static const struct redlock_text forked = {
        .string = "this is a child process: the connection belongs to its parent", .cause = REDLOCK_CAUSE_OURS};
    struct redlock_fleet *fleet = context;
    return redlock_loop_forked(fleet->loop) ? redlock_text_constant(&forked)
                                            : redlock_node_refusal(node_of(fleet, node));
}

static bool env_is_too_far(void *context, unsigned node) {
    return redlock_node_is_too_far(node_of(context, node));
}

static void env_proven(void *context, unsigned node) {
    redlock_node_names_holders(node_of(context, node));
}

static void env_log(void *context, redlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void env_log(void *context, redlock_log_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    redlock_loop_vlog(((struct redlock_fleet *)context)->loop, level, format, arguments);
    va_end(arguments);
}

/* What the loop and the nodes report. All but answers are rare. */

static struct redlock_group *group_of(const struct redlock_fleet *fleet, unsigned index) {
    assert(index < fleet->count && fleet->group);
    (void)index;
    return fleet->group;
}

static void on_timer(struct redlock_watch *timer) {
    redlock_group_wake(REDLOCK_CONTAINER(timer, struct redlock_fleet, timer)->group);
}

static void on_granted(void *context, unsigned index, void *owner, uint32_t round, int64_t read_ns) {
    redlock_group_granted(((struct redlock_fleet *)context)->group, owner, round, index, read_ns);
}

static void on_answer(void *context, unsigned index, void *owner, uint32_t round, struct redlock_answer *answer) {
    redlock_group_answer(((struct redlock_fleet *)context)->group, owner, round, index, answer);
}

/* Waiters and observers count answers to several requests, so a server that becomes another node
 * meanwhile would give two votes (R18). On a node's first connection a request may wait to be
 * written, and no answer can be older. */
static void note_server(struct redlock_fleet *fleet, unsigned index, const char *run_id) {
    assert(strlen(run_id) < sizeof fleet->run_ids[index]); /* they are compared as a whole */
    for (unsigned i = 0; i < fleet->count; i++) {
        const bool is_same = strcmp(fleet->run_ids[i], run_id) == 0;
        if (fleet->run_ids[i][0] != '\0' && is_same != (i == index)) {
            redlock_group_moved(fleet->group, i);
        }
    }
    (void)snprintf(fleet->run_ids[index], sizeof fleet->run_ids[index], "%s", run_id);
}

static void on_greeted(void *context, unsigned index, const struct redlock_greeting *greeting) {
    struct redlock_fleet *fleet = context;
    redlock_group_node_greeted(group_of(fleet, index), index, greeting);
    note_server(fleet, index, greeting->run_id);
}

static void on_ready_changed(void *context, unsigned index, bool ready) {
    redlock_group_ready_changed(group_of(context, index), index, ready);
}

static void on_pushed(void *context, unsigned index, const struct redlock_push *push) {
    redlock_group_pushed(group_of(context, index), index, push);
}

static void on_listens(void *context, unsigned index, enum redlock_listening listening, struct redlock_text *why) {
    redlock_group_listens(group_of(context, index), index, listening, why);
}

static void on_hinted(void *context, unsigned index, const struct redlock_hint *hint) {
    redlock_group_hinted(group_of(context, index), index, hint);
}

static void on_hears(void *context, unsigned index, const struct redlock_channel *channel) {
    redlock_group_hears(group_of(context, index), index, channel);
}

static const char *on_same_server(void *context, unsigned index, const char *server, bool *yields) {
    struct redlock_fleet *fleet = context;
    for (unsigned i = 0; i < fleet->count; i++) {
        if (i == index || !redlock_node_is_at(fleet->nodes[i], server)) {
            continue;
        }
        assert(index < fleet->count);
        *yields = i > index;
        if (*yields) {
            redlock_node_yield(fleet->nodes[i], redlock_node_name(fleet->nodes[index]));
        }
        return redlock_node_name(fleet->nodes[i]);
    }
    return NULL;
}

static size_t on_other_marks(void *context, unsigned index, const char *marks[REDLOCK_SERVER_OTHERS_MAX]) {
    struct redlock_fleet *fleet = context;
    size_t count = 0;
    for (unsigned i = 0; i < fleet->count; i++) {
        if (i != index) {
            redlock_node_marks(fleet->nodes[i], &marks[count]);
            count += 2;
        }
    }
    assert(count == 2 * (size_t)(fleet->count - 1) && count <= REDLOCK_SERVER_OTHERS_MAX);
    return count;
}

static struct redlock_env env_of(struct redlock_fleet *fleet) {
    return (struct redlock_env){.ctx = fleet,
                                .now_ns = redlock_loop_now_ns,
                                .wall_us = redlock_loop_wall_us,
                                .random = env_random,
                                .wake_at = env_wake_at,
                                .send = env_send,
                                .listen = env_listen,
                                .hear = env_hear,
                                .stop_hearing = env_stop_hearing,
                                .refusal = env_refusal,
                                .is_too_far = env_is_too_far,
                                .proven = env_proven,
                                .log = env_log};
}

static struct redlock_server_callbacks callbacks_of(struct redlock_fleet *fleet) {
    return (struct redlock_server_callbacks){.ctx = fleet,
                                             .votes_at = offsetof(struct redlock_lease, details),
                                             .granted = on_granted,
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

/* A server that is listed twice would have two votes. */
static int check_duplicate(const struct redlock_fleet *fleet, const struct redlock_address *address,
                           struct redlock_error_text *failure) {
    for (unsigned i = 0; i < fleet->count; i++) {
        if (redlock_address_is_same(fleet->names[i], address->name)) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID,
                                "nodes %u and %u are both '%s': each node must be a server of its own", i + 1,
                                fleet->count + 1, address->name);
        }
    }
    return REDLOCK_OK;
}

static int add_tls(struct redlock_fleet *fleet, const redlock_tls_options *options,
                   struct redlock_error_text *failure) {
    redlock_tls_options known;
    if (fleet->tls != NULL) {
        return REDLOCK_OK;
    }
    const int code = redlock_manager_tls_read(&known, options, failure);
    return code == REDLOCK_OK ? redlock_tls_context_new(&known, &fleet->tls, failure) : code;
}

/* With the defaults for TLS, if the caller gave no options for it. */
static int parse_address(struct redlock_fleet *fleet, const char *uri, struct redlock_address *address,
                         struct redlock_error_text *failure) {
    char text[200];
    struct redlock_error_text sentence = {text, sizeof text};
    int code = redlock_address_parse(uri, address, &sentence);
    if (code == REDLOCK_OK && address->tls) {
        fleet->uses_tls = true;
        code = add_tls(fleet, NULL, &sentence);
        if (code != REDLOCK_OK) {
            redlock_address_clear(address);
        }
    }
    return code == REDLOCK_OK ? code : redlock_fail(failure, code, "node %u: %s", fleet->count + 1, text);
}

static int add_node(struct redlock_fleet *fleet, const redlock_manager_options *options,
                    struct redlock_error_text *failure) {
    struct redlock_server_options node_options = {.node_timeout_ms = options->node_timeout_ms,
                                                  .connect_timeout_ms = options->connect_timeout_ms,
                                                  .client_name = fleet->client_name,
                                                  .probed = fleet->probed,
                                                  .marker = fleet->marker,
                                                  .guarded = redlock_manager_is_guarded(options)};
    const struct redlock_server_callbacks callbacks = callbacks_of(fleet);
    struct redlock_address address;
    assert(fleet->count < REDLOCK_NODES_MAX);
    int code = parse_address(fleet, options->nodes[fleet->count], &address, failure);
    if (code != REDLOCK_OK) {
        return code;
    }
    code = check_duplicate(fleet, &address, failure);
    if (code == REDLOCK_OK) {
        node_options.tls = fleet->tls;
        fleet->nodes[fleet->count] =
            redlock_node_new(fleet->count, &address, &node_options, &fleet->reactor, &callbacks);
        if (fleet->nodes[fleet->count] == NULL) {
            code = redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for node %u", fleet->count + 1);
        }
    }
    if (code != REDLOCK_OK) {
        redlock_address_clear(&address);
        return code;
    }
    fleet->names[fleet->count] = redlock_node_name(fleet->nodes[fleet->count]);
    fleet->count++;
    return REDLOCK_OK;
}

/* What all nodes are told. The keys of the handshake begin like those of the locks: an ACL may
 * allow both at once. */
static bool make_names(struct redlock_fleet *fleet, const redlock_manager_options *options) {
    assert(!fleet->client_name && !fleet->probed && !fleet->marker);
    const char *prefix = options->key_prefix == NULL ? "" : options->key_prefix;
    const size_t size = strlen(prefix) + sizeof MARKER + 16;
    uint64_t number;
    fleet->client_name = strdup(options->client_name == NULL ? REDLOCK_CLIENT_NAME : options->client_name);
    fleet->probed = malloc(size);
    if (fleet->probed != NULL) {
        (void)snprintf(fleet->probed, size, "%s" REDLOCK_PROBED_KEY, prefix);
    }
    /* Without random bytes such servers are not told apart. */
    if (options->node_count > 1 && redlock_loop_random(fleet->loop, &number, sizeof number) == 0) {
        fleet->marker = malloc(size);
        if (fleet->marker == NULL) {
            return false;
        }
        (void)snprintf(fleet->marker, size, "%s" MARKER "%016" PRIx64, prefix, number);
    }
    return fleet->client_name != NULL && fleet->probed != NULL;
}

static int add_nodes(struct redlock_fleet *fleet, const redlock_manager_options *options,
                     struct redlock_error_text *failure) {
    int code = options->tls == NULL ? REDLOCK_OK : add_tls(fleet, options->tls, failure);
    if (code == REDLOCK_OK && !make_names(fleet, options)) {
        code = redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for a manager");
    }
    while (code == REDLOCK_OK && fleet->count < options->node_count) {
        code = add_node(fleet, options, failure);
    }
    if (code == REDLOCK_OK && options->tls != NULL && !fleet->uses_tls) {
        redlock_loop_log(fleet->loop, REDLOCK_LOG_WARNING,
                         "options for TLS are given, but no node is rediss://: nothing is encrypted");
    }
    return code;
}

static int add_group(struct redlock_fleet *fleet, const redlock_manager_options *options,
                     struct redlock_error_text *failure) {
    const struct redlock_env env = env_of(fleet);
    assert(fleet->count == options->node_count);
    assert(options->ttl_max_ms > 0 || !redlock_manager_is_guarded(options));
    fleet->group = redlock_group_new(&env, options, fleet->names);
    if (fleet->group == NULL) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for a manager");
    }
    if (options->listen) {
        /* If there are no random bytes now, the first waiter makes the channel. */
        (void)redlock_group_listen(fleet->group);
    }
    return REDLOCK_OK;
}

int redlock_fleet_open(struct redlock_fleet *fleet, struct redlock_loop *loop, const redlock_manager_options *options,
                       struct redlock_error_text *failure) {
    assert(fleet->count == 0 && !fleet->group && !fleet->tls);
    fleet->loop = loop;
    redlock_loop_reactor(loop, &fleet->reactor);
    fleet->timer.on_timer = on_timer;
    /* Before those of the nodes: it runs after them. */
    if (fleet->reactor.attach(loop, &fleet->timer) != 0) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for a manager");
    }
    const int code = add_nodes(fleet, options, failure);
    return code == REDLOCK_OK ? add_group(fleet, options, failure) : code;
}

void redlock_fleet_close(struct redlock_fleet *fleet, bool forked) {
    if (fleet->group != NULL) {
        redlock_group_delete(fleet->group);
    }
    for (unsigned i = 0; i < fleet->count; i++) {
        redlock_node_delete(fleet->nodes[i], forked);
    }
    if (fleet->timer.loop != NULL) {
        fleet->reactor.detach(fleet->loop, &fleet->timer);
    }
    redlock_tls_context_free(fleet->tls);
    free(fleet->client_name);
    free(fleet->probed);
    free(fleet->marker);
}

int redlock_fleet_set_credentials(struct redlock_fleet *fleet, size_t node, const char *user, const char *password) {
    struct redlock_credentials copies[REDLOCK_NODES_MAX] = {{0}};
    int code = REDLOCK_OK;
    assert(node == REDLOCK_ALL_NODES || node < fleet->count);
    const unsigned first = node == REDLOCK_ALL_NODES ? 0 : (unsigned)node;
    const unsigned end = node == REDLOCK_ALL_NODES ? fleet->count : first + 1;
    for (unsigned i = first; i < end && code == REDLOCK_OK; i++) {
        code = redlock_credentials_copy(&copies[i], user, password) ? REDLOCK_OK : REDLOCK_ERR_NO_MEMORY;
    }
    for (unsigned i = first; i < end; i++) {
        if (code == REDLOCK_OK) {
            redlock_node_offer(fleet->nodes[i], &copies[i]);
        } else {
            redlock_credentials_clear(&copies[i]);
        }
    }
    return code;
}
