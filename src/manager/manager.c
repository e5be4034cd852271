/* The public manager. It owns the loop and the nodes, and connects the group to them. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <redlock/adapters/poll.h>

#include "base/check.h"
#include "election/campaign.h"
#include "group/group.h"
#include "group/telemetry.h"
#include "loop/loop.h"
#include "manager/options.h"
#include "manager/tls.h"
#include "node/address.h"
#include "node/node.h"
#include "wire/wire.h"

struct redlock_manager {
    struct redlock_group *group;
    struct redlock_elections elections;
    struct redlock_loop *loop;
    struct redlock_node *nodes[REDLOCK_NODES_MAX];
    const char *names[REDLOCK_NODES_MAX];
    unsigned count;
    char *client_name;
    struct redlock_tls_context *tls; /* NULL for none */
    bool uses_tls;                   /* a node has it */
    bool closing;
    redlock_closed_callback closed;
    void *closed_data;
};

/* The env: how the group reaches the loop and the nodes. */

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

static redlock_nodes env_send(void *context, redlock_nodes nodes, const struct redlock_message *message) {
    redlock_manager *manager = context;
    char bytes[REDLOCK_WIRE_SIZE_MAX];
    if (redlock_loop_forked(manager->loop)) {
        return 0; /* the connections belong to the parent */
    }
    enum redlock_reply_kind kind;
    const size_t size = redlock_wire_format(message, bytes, &kind);
    const unsigned reply_kind = kind | (message->no_timeout ? REDLOCK_NODE_NO_TIMEOUT : 0);
    const redlock_nodes last = behind(manager, nodes, message->now_ns);
    const redlock_nodes taken = send_to(manager, nodes & ~last, bytes, size, reply_kind, message);
    return last == 0 ? taken : taken | send_to(manager, last, bytes, size, reply_kind, message);
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
    return redlock_loop_forked(manager->loop) ? redlock_text_constant(&forked)
                                              : redlock_node_refusal(manager->nodes[node]);
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

static void on_wake(void *context) {
    redlock_group_wake(((redlock_manager *)context)->group);
}

static void on_answer(void *context, unsigned index, void *owner, uint32_t round, const struct redlock_answer *answer) {
    redlock_group_answer(((redlock_manager *)context)->group, owner, round, index, answer);
}

static void on_greeted(void *context, unsigned index, const struct redlock_greeting *greeting) {
    redlock_group_node_greeted(((redlock_manager *)context)->group, index, greeting);
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

static void on_announced(void *context, unsigned index, const struct redlock_announcement *announcement) {
    redlock_group_announced(((redlock_manager *)context)->group, index, announcement);
}

static void on_hears(void *context, unsigned index, const struct redlock_channel *channel) {
    redlock_group_hears(((redlock_manager *)context)->group, index, channel);
}

static const char *on_same_server(void *context, unsigned index, const char *run_id, bool *yields) {
    redlock_manager *manager = context;
    for (unsigned i = 0; i < manager->count; i++) {
        if (i == index || strcmp(redlock_node_run_id(manager->nodes[i]), run_id) != 0) {
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

/* Creation and deletion. */

static void delete_manager(redlock_manager *manager, bool forked) {
    if (manager->group != NULL) {
        redlock_elections_free(&manager->elections);
        redlock_group_delete(manager->group);
    }
    for (unsigned i = 0; i < manager->count; i++) {
        redlock_node_delete(manager->nodes[i], forked);
    }
    redlock_tls_context_free(manager->tls);
    redlock_loop_delete(manager->loop);
    free(manager->client_name);
    free(manager);
}

/* A server that is listed twice would have two votes. */
static int check_duplicate(const redlock_manager *manager, const struct redlock_address *address,
                           struct redlock_failure *failure) {
    const char *name = address->name;
    int (*const compare)(const char *, const char *) = address->kind == REDLOCK_ADDRESS_UNIX ? strcmp : strcasecmp;
    for (unsigned i = 0; i < manager->count; i++) {
        if (compare(manager->names[i], name) == 0) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID,
                                "nodes %u and %u are both '%s': each node must be a server of its own", i + 1,
                                manager->count + 1, name);
        }
    }
    return REDLOCK_OK;
}

static int add_tls(redlock_manager *manager, const redlock_tls_options *options, struct redlock_failure *failure) {
    return manager->tls == NULL ? redlock_manager_tls(options, &manager->tls, failure) : REDLOCK_OK;
}

/* With the defaults for TLS, if the caller gave no options for it. */
static int parse_address(redlock_manager *manager, const char *uri, struct redlock_address *address,
                         struct redlock_failure *failure) {
    char text[200];
    struct redlock_failure sentence = {text, sizeof text};
    int code = redlock_address_parse(uri, address, text, sizeof text);
    if (code == REDLOCK_OK && address->tls) {
        manager->uses_tls = true;
        code = add_tls(manager, NULL, &sentence);
        if (code != REDLOCK_OK) {
            redlock_address_clear(address);
        }
    }
    return code == REDLOCK_OK ? code : redlock_fail(failure, code, "node %u: %s", manager->count + 1, text);
}

static int add_node(redlock_manager *manager, const redlock_manager_options *options, struct redlock_failure *failure) {
    struct redlock_node_options node_options = {.node_timeout_ms = options->node_timeout_ms,
                                                .connect_timeout_ms = options->connect_timeout_ms,
                                                .client_name = manager->client_name,
                                                .guarded = redlock_manager_is_guarded(options)};
    struct redlock_node_listener listener = {.ctx = manager,
                                             .answer = on_answer,
                                             .greeted = on_greeted,
                                             .ready_changed = on_ready_changed,
                                             .pushed = on_pushed,
                                             .listens = on_listens,
                                             .announced = on_announced,
                                             .hears = on_hears,
                                             .same_server = on_same_server};
    struct redlock_reactor reactor;
    struct redlock_address address;
    redlock_loop_reactor(manager->loop, &reactor);
    int code = parse_address(manager, options->nodes[manager->count], &address, failure);
    if (code != REDLOCK_OK) {
        return code;
    }
    code = check_duplicate(manager, &address, failure);
    if (code == REDLOCK_OK) {
        node_options.tls = manager->tls;
        manager->nodes[manager->count] = redlock_node_new(manager->count, &address, &node_options, &reactor, &listener);
        if (manager->nodes[manager->count] == NULL) {
            code = redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for node %u", manager->count + 1);
        }
    }
    if (code != REDLOCK_OK) {
        redlock_address_clear(&address);
        return code;
    }
    manager->names[manager->count] = redlock_node_name(manager->nodes[manager->count]);
    manager->count++;
    return REDLOCK_OK;
}

static int add_nodes(redlock_manager *manager, const redlock_manager_options *options,
                     struct redlock_failure *failure) {
    int code = options->tls == NULL ? REDLOCK_OK : add_tls(manager, options->tls, failure);
    while (code == REDLOCK_OK && manager->count < options->node_count) {
        code = add_node(manager, options, failure);
    }
    if (code == REDLOCK_OK && options->tls != NULL && !manager->uses_tls) {
        redlock_loop_log(manager->loop, REDLOCK_LOG_WARNING,
                         "options for TLS are given, but no node is rediss://: nothing is encrypted");
    }
    return code;
}

static int add_loop(redlock_manager *manager, const redlock_loop_ops *ops, void *loop,
                    const redlock_manager_options *options, struct redlock_failure *failure) {
    struct redlock_loop_hooks hooks = {.ctx = manager,
                                       .wake = on_wake,
                                       .on_log = options->on_log,
                                       .log_level = options->log_level,
                                       .log_data = options->log_data};
    manager->client_name = strdup(options->client_name == NULL ? REDLOCK_CLIENT_NAME : options->client_name);
    if (manager->client_name != NULL) {
        manager->loop = redlock_loop_new(ops, loop, &hooks);
    } else {
        errno = ENOMEM;
    }
    if (manager->loop != NULL) {
        return REDLOCK_OK;
    }
    if (errno == ENOMEM) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for a manager");
    }
    return redlock_fail(failure, REDLOCK_ERR_SYSTEM, "cannot create a timer: %s",
                        errno == 0 ? "the event loop refused its descriptor" : strerror(errno));
}

static int add_manager(redlock_manager *manager, const redlock_manager_options *options,
                       struct redlock_failure *failure) {
    struct redlock_env env = {.ctx = manager,
                              .now_ns = env_now,
                              .wall_us = env_wall,
                              .random = env_random,
                              .wake_at = env_wake_at,
                              .send = env_send,
                              .listen = env_listen,
                              .hear = env_hear,
                              .leave = env_leave,
                              .refusal = env_refusal,
                              .log = env_log};
    struct redlock_group_config config = {.node_count = manager->count,
                                          .quorum = (unsigned)options->quorum,
                                          .key_prefix = options->key_prefix,
                                          .node_names = manager->names,
                                          .node_timeout_ms = options->node_timeout_ms,
                                          .log_level = options->log_level,
                                          .restart_guard = options->restart_guard,
                                          .clock_guard = options->clock_guard,
                                          .first_boot = options->first_boot,
                                          .ttl_max_ms = options->ttl_max_ms,
                                          .fence_suffix = options->fence_suffix,
                                          .fence_expiry_ms = options->fence_expiry_ms,
                                          .wait_suffix = options->wait_suffix,
                                          .holder = options->holder,
                                          .on_event = options->on_event,
                                          .event_data = options->event_data};
    manager->group = redlock_group_new(&env, &config);
    if (manager->group == NULL) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for a manager");
    }
    manager->elections.group = manager->group;
    if (options->listen) {
        /* If there are no random bytes now, the first waiter makes the channel. */
        (void)redlock_group_listen(manager->group);
    }
    return REDLOCK_OK;
}

static int create(const redlock_loop_ops *ops, void *loop, const redlock_manager_options *options,
                  redlock_manager **created, struct redlock_failure *failure) {
    redlock_manager_options known;
    int code = redlock_manager_options_read(&known, options, failure);
    if (code != REDLOCK_OK) {
        return code;
    }
    options = &known;
    redlock_manager *manager = calloc(1, sizeof *manager);
    if (manager == NULL) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for a manager");
    }
    code = add_loop(manager, ops, loop, options, failure);
    if (code == REDLOCK_OK) {
        code = add_nodes(manager, options, failure);
    }
    if (code == REDLOCK_OK) {
        code = add_manager(manager, options, failure);
    }
    if (code != REDLOCK_OK) {
        delete_manager(manager, false);
        return code;
    }
    *created = manager;
    return REDLOCK_OK;
}

static int check_given(const char *name, const void *loop, const redlock_manager_options *options,
                       redlock_manager **created, struct redlock_failure *failure) {
    int code = redlock_check_given(failure, name, loop != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_check_given(failure, "options", options != NULL);
    }
    return code == REDLOCK_OK ? redlock_check_given(failure, "manager", created != NULL) : code;
}

int redlock_manager_create(struct ev_loop *loop, const redlock_manager_options *options, redlock_manager **created,
                           char *error, size_t error_size) {
    struct redlock_failure failure = {error, error == NULL ? 0 : error_size};
    const int code = check_given("loop", loop, options, created, &failure);
    return code == REDLOCK_OK ? create(&redlock_libev_ops, loop, options, created, &failure) : code;
}

int redlock_manager_create_poll(redlock_poll *poll, const redlock_manager_options *options, redlock_manager **created,
                                char *error, size_t error_size) {
    struct redlock_failure failure = {error, error == NULL ? 0 : error_size};
    const int code = check_given("poll", poll, options, created, &failure);
    return code == REDLOCK_OK ? create(&redlock_poll_ops, poll, options, created, &failure) : code;
}

int redlock_manager_create_on(const redlock_loop_ops *ops, void *loop, const redlock_manager_options *options,
                              redlock_manager **created, char *error, size_t error_size) {
    struct redlock_failure failure = {error, error == NULL ? 0 : error_size};
    redlock_loop_ops known = {0};
    int code = check_given("ops", ops, options, created, &failure);
    if (code != REDLOCK_OK) {
        return code;
    }
    if (ops->size < 1 || ops->size > sizeof known) {
        return redlock_fail(&failure, REDLOCK_ERR_INVALID, "ops.size is %zu; it must be 1 to %zu", ops->size,
                            sizeof known);
    }
    memcpy(&known, ops, ops->size);
    const struct {
        const char *name;
        bool given;
    } needed[] = {{"ops.attach", known.attach != NULL},
                  {"ops.detach", known.detach != NULL},
                  {"ops.add", known.add != NULL},
                  {"ops.remove", known.remove != NULL},
                  {"ops.watch", known.watch != NULL}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed && code == REDLOCK_OK; i++) {
        code = redlock_check_given(&failure, needed[i].name, needed[i].given);
    }
    return code == REDLOCK_OK ? create(&known, loop, options, created, &failure) : code;
}

static void on_drained(void *context) {
    redlock_manager *manager = context;
    redlock_closed_callback closed = manager->closed;
    void *data = manager->closed_data;
    redlock_elections_closed(&manager->elections);
    delete_manager(manager, false);
    if (closed != NULL) {
        closed(data);
    }
}

int redlock_manager_close(redlock_manager *manager, redlock_closed_callback cb, void *data) {
    if (redlock_loop_forked(manager->loop)) {
        return REDLOCK_ERR_FORKED; /* call redlock_manager_abandon() instead */
    }
    if (manager->closing) {
        return REDLOCK_ERR_CLOSED;
    }
    manager->closing = true;
    manager->closed = cb;
    manager->closed_data = data;
    redlock_elections_close(&manager->elections);
    redlock_group_drain(manager->group, on_drained, manager);
    return REDLOCK_OK;
}

void redlock_manager_abandon(redlock_manager *manager) {
    if (manager == NULL) {
        return;
    }
    const bool forked = redlock_loop_forked(manager->loop);
    if (forked) {
        redlock_loop_enter_child(manager->loop);
    }
    delete_manager(manager, forked);
}

size_t redlock_manager_node_count(const redlock_manager *manager) {
    return manager->count;
}

size_t redlock_manager_quorum(const redlock_manager *manager) {
    return redlock_group_quorum(manager->group);
}

const char *redlock_manager_invalid(const redlock_manager *manager) {
    return manager->group->invalid;
}

static int check_index(struct redlock_failure *failure, const char *name, const redlock_manager *manager,
                       size_t index) {
    return redlock_check_range(failure, name, redlock_check_count(index), 0, (int64_t)manager->count - 1, "");
}

int redlock_manager_node(const redlock_manager *manager, size_t index, redlock_node_info *info) {
    struct redlock_failure failure = redlock_group_failure(manager->group);
    int code = redlock_check_given(&failure, "info", info != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_check_struct(&failure, "info", info->size);
    }
    if (code == REDLOCK_OK) {
        code = check_index(&failure, "index", manager, index);
    }
    if (code != REDLOCK_OK) {
        return code; /* not logged: some loops end like that */
    }
    redlock_node_info full = {.size = info->size};
    redlock_node_info_get(manager->nodes[index], &full);
    full.quarantine_ms = redlock_group_node_quarantine_ms(manager->group, (unsigned)index, &full.quarantine);
    memcpy(info, &full, info->size < sizeof full ? info->size : sizeof full);
    return REDLOCK_OK;
}

static int check_credentials(redlock_manager *manager, size_t node, const char *user, const char *password) {
    struct redlock_failure failure = redlock_group_failure(manager->group);
    int code = node == REDLOCK_ALL_NODES ? REDLOCK_OK : check_index(&failure, "node", manager, node);
    if (code == REDLOCK_OK && user != NULL) {
        code = redlock_check_size(&failure, "user", strlen(user), 1, REDLOCK_CREDENTIAL_SIZE_MAX, "");
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_given(&failure, "password", password != NULL);
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_size(&failure, "password", strlen(password), 1, REDLOCK_CREDENTIAL_SIZE_MAX, "");
    }
    code = redlock_group_refuse(manager->group, code);
    return code == REDLOCK_OK ? redlock_group_check_open(manager->group) : code;
}

int redlock_manager_set_credentials(redlock_manager *manager, size_t node, const char *user, const char *password) {
    struct redlock_credentials copies[REDLOCK_NODES_MAX] = {{0}};
    int code = manager != NULL ? check_credentials(manager, node, user, password) : REDLOCK_ERR_INVALID;
    if (code != REDLOCK_OK) {
        return code;
    }
    const unsigned first = node == REDLOCK_ALL_NODES ? 0 : (unsigned)node;
    const unsigned end = node == REDLOCK_ALL_NODES ? manager->count : first + 1;
    for (unsigned i = first; i < end && code == REDLOCK_OK; i++) {
        code = redlock_credentials_copy(&copies[i], user, password) ? REDLOCK_OK : REDLOCK_ERR_NO_MEMORY;
    }
    for (unsigned i = first; i < end; i++) {
        if (code == REDLOCK_OK) {
            redlock_node_offer(manager->nodes[i], &copies[i]);
        } else {
            redlock_credentials_clear(&copies[i]);
        }
    }
    return code;
}

int redlock_manager_connect(redlock_manager *manager, int64_t timeout_ms, redlock_callback cb, void *data) {
    return manager != NULL ? redlock_group_connect(manager->group, timeout_ms, cb, data) : REDLOCK_ERR_INVALID;
}

int redlock_manager_statistics(const redlock_manager *manager, redlock_statistics *statistics) {
    return manager != NULL ? redlock_group_statistics(manager->group, statistics) : REDLOCK_ERR_INVALID;
}

int redlock_manager_telemetry(const redlock_manager *manager, redlock_telemetry *telemetry) {
    return manager != NULL ? redlock_group_telemetry(manager->group, telemetry) : REDLOCK_ERR_INVALID;
}

int redlock_acquire(redlock_manager *manager, const char *resource, const redlock_acquire_options *options,
                    redlock_request **request, redlock_callback cb, void *data) {
    return manager != NULL ? redlock_group_acquire(manager->group, resource, options, request, cb, data)
                           : REDLOCK_ERR_INVALID;
}

int redlock_adopt(redlock_manager *manager, const char *resource, const char *token,
                  const redlock_acquire_options *options, redlock_lease **lease) {
    return manager != NULL ? redlock_group_adopt(manager->group, resource, token, options, lease) : REDLOCK_ERR_INVALID;
}

int redlock_inspect(redlock_manager *manager, const char *resource, redlock_callback cb, void *data) {
    return manager != NULL ? redlock_group_inspect(manager->group, resource, cb, data) : REDLOCK_ERR_INVALID;
}

int redlock_list(redlock_manager *manager, const redlock_list_options *options, redlock_list_callback each,
                 redlock_callback done, void *data) {
    return manager != NULL ? redlock_group_list(manager->group, options, each, done, data) : REDLOCK_ERR_INVALID;
}

int redlock_observe(redlock_manager *manager, const char *resource, redlock_leader_callback cb, void *data,
                    redlock_observer **observer) {
    return manager != NULL ? redlock_group_observe(manager->group, resource, cb, data, observer) : REDLOCK_ERR_INVALID;
}

int redlock_elect(redlock_manager *manager, const char *name, const redlock_election_options *options,
                  redlock_election_callback cb, void *data, redlock_election **election) {
    return manager != NULL ? redlock_elections_add(&manager->elections, name, options, cb, data, election)
                           : REDLOCK_ERR_INVALID;
}
