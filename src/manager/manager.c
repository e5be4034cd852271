/* The public manager. It owns the loop, the nodes and the group. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <redlock/adapters/poll.h>

#include "base/check.h"
#include "group/listing.h"
#include "group/observer.h"
#include "group/query.h"
#include "group/requests.h"
#include "group/tell.h"
#include "manager/bridge.h"
#include "manager/options.h"
#include "manager/tls.h"
#include "node/address.h"

#define MARKER "redlock:server:"

static void on_wake(void *context) {
    redlock_group_wake(((redlock_manager *)context)->group);
}

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
    free(manager->probed);
    free(manager->marker);
    free(manager);
}

/* A server that is listed twice would have two votes. */
static int check_duplicate(const redlock_manager *manager, const struct redlock_address *address,
                           struct redlock_failure *failure) {
    for (unsigned i = 0; i < manager->count; i++) {
        if (redlock_address_is_same(manager->names[i], address->name)) {
            return redlock_fail(failure, REDLOCK_ERR_INVALID,
                                "nodes %u and %u are both '%s': each node must be a server of its own", i + 1,
                                manager->count + 1, address->name);
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
    int code = redlock_address_parse(uri, address, &sentence);
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
                                                .probed = manager->probed,
                                                .marker = manager->marker,
                                                .guarded = redlock_manager_is_guarded(options)};
    const struct redlock_node_listener listener = redlock_bridge_listener(manager);
    struct redlock_reactor reactor;
    struct redlock_address address;
    assert(manager->count < REDLOCK_NODES_MAX);
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

/* The keys of the handshake begin like those of the locks: an ACL may allow both at once. */
static bool make_keys(redlock_manager *manager, const redlock_manager_options *options) {
    const char *prefix = options->key_prefix == NULL ? "" : options->key_prefix;
    const size_t size = strlen(prefix) + sizeof MARKER + 16;
    uint64_t number;
    manager->probed = malloc(size);
    if (manager->probed != NULL) {
        (void)snprintf(manager->probed, size, "%s" REDLOCK_PROBED_KEY, prefix);
    }
    /* Without random bytes such servers are not told apart. */
    if (options->node_count > 1 && redlock_loop_random(manager->loop, &number, sizeof number) == 0) {
        manager->marker = malloc(size);
        if (manager->marker == NULL) {
            return false;
        }
        (void)snprintf(manager->marker, size, "%s" MARKER "%016" PRIx64, prefix, number);
    }
    return manager->probed != NULL;
}

static int add_nodes(redlock_manager *manager, const redlock_manager_options *options,
                     struct redlock_failure *failure) {
    int code = options->tls == NULL ? REDLOCK_OK : add_tls(manager, options->tls, failure);
    if (code == REDLOCK_OK && !make_keys(manager, options)) {
        code = redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for a manager");
    }
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
    const struct redlock_env env = redlock_bridge_env(manager);
    struct redlock_group_config config = {.node_count = manager->count,
                                          .quorum = (unsigned)options->quorum,
                                          .key_prefix = options->key_prefix,
                                          .node_names = manager->names,
                                          .node_timeout_ms = options->node_timeout_ms,
                                          .connect_timeout_ms = options->connect_timeout_ms,
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
    redlock_elections_init(&manager->elections, manager->group);
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
    assert(manager->closing);
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
    struct redlock_failure *failure = redlock_group_failure(manager->group);
    int code = redlock_check_struct(failure, "info", info);
    if (code == REDLOCK_OK) {
        code = check_index(failure, "index", manager, index);
    }
    if (code != REDLOCK_OK) {
        return code; /* not logged: some loops end like that */
    }
    redlock_node_info full = {.size = sizeof full};
    redlock_node_info_get(manager->nodes[index], &full);
    full.quarantine_ms = redlock_group_node_quarantine_ms(manager->group, (unsigned)index, &full.quarantine);
    redlock_fill_struct(info, &full, sizeof full);
    return REDLOCK_OK;
}

static int check_credentials(redlock_manager *manager, size_t node, const char *user, const char *password) {
    struct redlock_failure *failure = redlock_group_failure(manager->group);
    int code = node == REDLOCK_ALL_NODES ? REDLOCK_OK : check_index(failure, "node", manager, node);
    if (code == REDLOCK_OK && user != NULL) {
        code = redlock_check_size(failure, "user", strlen(user), 1, REDLOCK_CREDENTIAL_SIZE_MAX, "");
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_given(failure, "password", password != NULL);
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_size(failure, "password", strlen(password), 1, REDLOCK_CREDENTIAL_SIZE_MAX, "");
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
