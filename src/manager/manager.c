/* The public manager: its loop, its nodes with their group, and its elections. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <redlock/adapters/poll.h>

#include "base/check.h"
#include "group/bundle.h"
#include "group/requests.h"
#include "group/tell.h"
#include "manager/manager_state.h"
#include "manager/options.h"

static void delete_manager(redlock_manager *manager, bool forked) {
    assert(manager->fleet.group != NULL || !manager->closing);
    if (manager->fleet.group != NULL) {
        redlock_elections_free(&manager->elections);
    }
    redlock_fleet_close(&manager->fleet, forked);
    redlock_loop_delete(manager->loop);
    free(manager);
}

static int add_loop(redlock_manager *manager, const redlock_loop_ops *ops, void *loop,
                    const redlock_manager_options *options, struct redlock_error_text *failure) {
    struct redlock_loop_hooks hooks = {
        .on_log = options->on_log, .log_level = options->log_level, .log_data = options->log_data};
    manager->loop = redlock_loop_new(ops, loop, &hooks);
    if (manager->loop != NULL) {
        return REDLOCK_OK;
    }
    if (errno == ENOMEM) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for a manager");
    }
    return redlock_fail(failure, REDLOCK_ERR_SYSTEM, "cannot create a timer: %s",
                        errno == 0 ? "the event loop refused its descriptor" : strerror(errno));
}

static int open_manager(const redlock_loop_ops *ops, void *loop, const redlock_manager_options *options,
                        redlock_manager **opened, struct redlock_error_text *failure) {
    redlock_manager *manager = calloc(1, sizeof *manager);
    if (manager == NULL) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "no memory for a manager");
    }
    int code = add_loop(manager, ops, loop, options, failure);
    if (code == REDLOCK_OK) {
        code = redlock_fleet_open(&manager->fleet, manager->loop, options, failure);
    }
    if (code != REDLOCK_OK) {
        delete_manager(manager, false);
        return code;
    }
    redlock_elections_init(&manager->elections, manager->fleet.group);
    *opened = manager;
    return REDLOCK_OK;
}

/* The caller's own operations may be those of an older program, and be incomplete. */
static int read_ops(redlock_loop_ops *known, const redlock_loop_ops *ops, struct redlock_error_text *failure) {
    if (ops->size < 1 || ops->size > sizeof *known) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "ops.size is %zu; it must be 1 to %zu", ops->size,
                            sizeof *known);
    }
    *known = (redlock_loop_ops){0};
    memcpy(known, ops, ops->size);
    const struct {
        const char *name;
        bool given;
    } needed[] = {{"ops.attach", known->attach != NULL},
                  {"ops.detach", known->detach != NULL},
                  {"ops.add", known->add != NULL},
                  {"ops.remove", known->remove != NULL},
                  {"ops.watch", known->watch != NULL}};
    int code = REDLOCK_OK;
    for (size_t i = 0; i < sizeof needed / sizeof *needed && code == REDLOCK_OK; i++) {
        code = redlock_check_given(failure, needed[i].name, needed[i].given);
    }
    return code;
}

/* `name` is what the caller gave: `given`. */
static int create(const char *name, const void *given, const redlock_loop_ops *ops, void *loop,
                  const redlock_manager_options *options, redlock_manager **created, char *error, size_t error_size) {
    struct redlock_error_text failure = {error, error == NULL ? 0 : error_size};
    redlock_manager_options known;
    redlock_loop_ops known_ops;
    int code = redlock_check_given(&failure, name, given != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_check_given(&failure, "options", options != NULL);
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_given(&failure, "manager", created != NULL);
    }
    if (code == REDLOCK_OK) {
        code = read_ops(&known_ops, ops, &failure);
    }
    if (code == REDLOCK_OK) {
        code = redlock_manager_options_read(&known, options, &failure);
    }
    return code == REDLOCK_OK ? open_manager(&known_ops, loop, &known, created, &failure) : code;
}

int redlock_manager_create(struct ev_loop *loop, const redlock_manager_options *options, redlock_manager **created,
                           char *error, size_t error_size) {
    return create("loop", loop, &redlock_libev_ops, loop, options, created, error, error_size);
}

int redlock_manager_create_poll(redlock_poll *poll, const redlock_manager_options *options, redlock_manager **created,
                                char *error, size_t error_size) {
    return create("poll", poll, &redlock_poll_ops, poll, options, created, error, error_size);
}

int redlock_manager_create_on(const redlock_loop_ops *ops, void *loop, const redlock_manager_options *options,
                              redlock_manager **created, char *error, size_t error_size) {
    return create("ops", ops, ops, loop, options, created, error, error_size);
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
    assert(manager->fleet.group && !manager->closed);
    manager->closing = true;
    manager->closed = cb;
    manager->closed_data = data;
    redlock_elections_close(&manager->elections);
    redlock_group_drain(manager->fleet.group, on_drained, manager);
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
    return manager->fleet.count;
}

size_t redlock_manager_quorum(const redlock_manager *manager) {
    return manager->fleet.group->quorum;
}

const char *redlock_manager_invalid(const redlock_manager *manager) {
    return manager->fleet.group->invalid;
}

static int check_index(struct redlock_error_text *failure, const char *name, const redlock_manager *manager,
                       size_t index) {
    assert(manager->fleet.count >= 1);
    return redlock_check_range(failure, name, redlock_check_count(index), 0, (int64_t)manager->fleet.count - 1, "");
}

int redlock_manager_node(const redlock_manager *manager, size_t index, redlock_node_info *info) {
    struct redlock_error_text *failure = &manager->fleet.group->failure;
    int code = redlock_check_struct(failure, "info", info);
    if (code == REDLOCK_OK) {
        code = check_index(failure, "index", manager, index);
    }
    if (code != REDLOCK_OK) {
        return code; /* not logged: some loops end like that */
    }
    redlock_node_info full = {.size = sizeof full};
    redlock_node_info_get(manager->fleet.nodes[index], &full);
    full.quarantine_ms = redlock_group_node_quarantine_ms(manager->fleet.group, (unsigned)index, &full.quarantine);
    redlock_fill_struct(info, &full, sizeof full);
    return REDLOCK_OK;
}

static int check_credentials(redlock_manager *manager, size_t node, const char *user, const char *password) {
    struct redlock_error_text *failure = &manager->fleet.group->failure;
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
    code = redlock_group_refuse(manager->fleet.group, code);
    return code == REDLOCK_OK ? redlock_group_check_open(manager->fleet.group) : code;
}

int redlock_manager_set_credentials(redlock_manager *manager, size_t node, const char *user, const char *password) {
    const int code = manager != NULL ? check_credentials(manager, node, user, password) : REDLOCK_ERR_INVALID;
    return code == REDLOCK_OK ? redlock_fleet_set_credentials(&manager->fleet, node, user, password) : code;
}

int redlock_manager_connect(redlock_manager *manager, int64_t timeout_ms, redlock_callback cb, void *data) {
    return manager != NULL ? redlock_group_connect(manager->fleet.group, timeout_ms, cb, data) : REDLOCK_ERR_INVALID;
}

int redlock_manager_statistics(const redlock_manager *manager, redlock_statistics *statistics) {
    return manager != NULL ? redlock_group_statistics(manager->fleet.group, statistics) : REDLOCK_ERR_INVALID;
}

int redlock_manager_telemetry(const redlock_manager *manager, redlock_telemetry *telemetry) {
    return manager != NULL ? redlock_group_telemetry(manager->fleet.group, telemetry) : REDLOCK_ERR_INVALID;
}

int redlock_acquire(redlock_manager *manager, const char *resource, const redlock_acquire_options *options,
                    redlock_request **request, redlock_callback cb, void *data) {
    return manager != NULL ? redlock_group_acquire(manager->fleet.group, resource, options, request, cb, data)
                           : REDLOCK_ERR_INVALID;
}

int redlock_acquire_all(redlock_manager *manager, const redlock_item *items, size_t count,
                        const redlock_acquire_options *options, redlock_request **request, redlock_callback cb,
                        void *data) {
    return manager != NULL ? redlock_group_acquire_all(manager->fleet.group, items, count, options, request, cb, data)
                           : REDLOCK_ERR_INVALID;
}

int redlock_adopt_all(redlock_manager *manager, const redlock_item *items, size_t count,
                      const redlock_acquire_options *options, redlock_lease **lease) {
    return manager != NULL ? redlock_group_adopt_all(manager->fleet.group, items, count, options, lease)
                           : REDLOCK_ERR_INVALID;
}

int redlock_adopt(redlock_manager *manager, const char *resource, const char *token,
                  const redlock_acquire_options *options, redlock_lease **lease) {
    return manager != NULL ? redlock_group_adopt(manager->fleet.group, resource, token, options, lease)
                           : REDLOCK_ERR_INVALID;
}

int redlock_inspect(redlock_manager *manager, const char *resource, redlock_callback cb, void *data) {
    return manager != NULL ? redlock_group_inspect(manager->fleet.group, resource, cb, data) : REDLOCK_ERR_INVALID;
}

int redlock_list(redlock_manager *manager, const redlock_list_options *options, redlock_list_callback each,
                 redlock_callback done, void *data) {
    return manager != NULL ? redlock_group_list(manager->fleet.group, options, each, done, data) : REDLOCK_ERR_INVALID;
}

int redlock_observe(redlock_manager *manager, const char *resource, redlock_leader_callback cb, void *data,
                    redlock_observer **observer) {
    return manager != NULL ? redlock_group_observe(manager->fleet.group, resource, cb, data, observer)
                           : REDLOCK_ERR_INVALID;
}

int redlock_elect(redlock_manager *manager, const char *name, const redlock_election_options *options,
                  redlock_election_callback cb, void *data, redlock_election **election) {
    return manager != NULL ? redlock_elections_add(&manager->elections, name, options, cb, data, NULL, election)
                           : REDLOCK_ERR_INVALID;
}
