/* A blocking client: how it opens and closes, and who may be inside it. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "blocking/client.h"
#include "core/time.h"
#include "loop/loop.h"
#include "manager/options.h"

struct redlock_worker *redlock_client_worker(const redlock_client *client, const char *resource) {
    const uint64_t hash = client->loops > 1 && resource ? redlock_hash(resource, strlen(resource)) : 0;
    return client->workers[(hash ^ hash >> 32) % client->loops];
}

static bool is_on_loop_thread(const redlock_client *client) {
    for (unsigned i = 0; i < client->loops; i++) {
        if (redlock_worker_is_current(client->workers[i])) {
            return true;
        }
    }
    return false;
}

int redlock_client_enter(redlock_client *client, struct redlock_call *call, int *cancel_state) {
    struct redlock_error_text failure = redlock_call_failure();
    int code = redlock_check_given(&failure, "client", client != NULL);
    if (code == REDLOCK_OK && redlock_random_forked(client->fork_mark)) {
        code = REDLOCK_ERR_FORKED;
    }
    if (code == REDLOCK_OK && is_on_loop_thread(client)) {
        code = redlock_fail(&failure, REDLOCK_ERR_INVALID, "a callback on the client's loop thread may not block");
    }
    if (code != REDLOCK_OK) {
        return call ? redlock_call_refuse(call, code, failure.text) : code;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_state);
    redlock_rundown_enter(&client->rundown);
    return code;
}

void redlock_client_exit(redlock_client *client, int cancel_state) {
    redlock_rundown_exit(&client->rundown);
    pthread_setcancelstate(cancel_state, NULL);
}

int redlock_client_perform_on(redlock_client *client, struct redlock_worker *worker, struct redlock_call *call) {
    int cancel_state;
    int code = redlock_client_enter(client, call, &cancel_state);
    if (code == REDLOCK_OK) {
        code = redlock_worker_perform(worker, call);
        redlock_client_exit(client, cancel_state);
    }
    return code;
}

int redlock_client_perform(redlock_client *client, const char *resource, struct redlock_call *call) {
    return redlock_client_perform_on(client, client ? redlock_client_worker(client, resource) : NULL, call);
}

size_t redlock_client_node_count(const redlock_client *client) {
    return client->node_count;
}

size_t redlock_client_quorum(const redlock_client *client) {
    return client->quorum;
}

static void close_workers(redlock_client *client) {
    for (unsigned i = 0; i < client->loops; i++) {
        redlock_worker_close(client->workers[i]);
    }
    for (unsigned i = 0; i < client->loops; i++) {
        redlock_worker_join(client->workers[i]);
    }
}

static void free_workers(redlock_client *client) {
    for (unsigned i = 0; i < client->loops; i++) {
        redlock_worker_free(client->workers[i]);
    }
}

/* All of them wait for the nodes at the same time. */
static int open_workers(redlock_client *client, const redlock_manager_options *options,
                        struct redlock_error_text *failure) {
    redlock_manager_options known;
    struct redlock_error_text unused = {NULL, 0};
    const bool is_good = redlock_manager_options_read(&known, options, &unused) == REDLOCK_OK;
    const unsigned loops = is_good ? (unsigned)known.loops : 1; /* which refuses the options */
    unsigned opened = 0;
    int code = REDLOCK_OK;
    while (code == REDLOCK_OK && opened < loops) {
        code = redlock_worker_open(options, &known, &client->reentrant, &client->workers[opened], failure);
        opened += code == REDLOCK_OK;
    }
    for (unsigned i = 0; i < opened; i++) {
        const int waited = redlock_worker_wait(client->workers[i], code == REDLOCK_OK ? failure : &unused);
        client->workers[client->loops] = client->workers[i];
        client->loops += waited == REDLOCK_OK;
        code = code == REDLOCK_OK ? waited : code;
    }
    if (code != REDLOCK_OK) {
        close_workers(client);
        free_workers(client);
    }
    return code;
}

static int open_client(redlock_client *client, const redlock_manager_options *options,
                       struct redlock_error_text *failure) {
    assert(client->loops == 0);
    client->fork_mark = redlock_random_new();
    if (!client->fork_mark) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "cannot open a client: %s", strerror(ENOMEM));
    }
    int failed = pthread_mutex_init(&client->credentials, NULL);
    if (!failed && (failed = redlock_rundown_init(&client->rundown)) != 0) {
        pthread_mutex_destroy(&client->credentials);
    }
    if (failed) {
        redlock_random_delete(client->fork_mark);
        return redlock_fail(failure, REDLOCK_ERR_SYSTEM, "cannot create a mutex or a semaphore: %s", strerror(failed));
    }
    int code = redlock_reentrant_init(&client->reentrant, UINT32_MAX);
    if (code == REDLOCK_OK) {
        code = open_workers(client, options, failure);
        if (code == REDLOCK_OK) {
            const redlock_manager *manager = redlock_worker_manager(client->workers[0]);
            const int64_t node_ms = options->node_timeout_ms, connect_ms = options->connect_timeout_ms;
            client->try_ms = node_ms > connect_ms ? node_ms : connect_ms;
            client->node_count = redlock_manager_node_count(manager);
            client->quorum = redlock_manager_quorum(manager);
            assert(client->quorum > client->node_count / 2 && client->quorum <= client->node_count);
            return code;
        }
        redlock_reentrant_destroy(&client->reentrant);
    } else {
        (void)redlock_fail(failure, code, "cannot open a client: %s", redlock_strerror(code));
    }
    redlock_rundown_destroy(&client->rundown);
    pthread_mutex_destroy(&client->credentials);
    redlock_random_delete(client->fork_mark);
    return code;
}

int redlock_client_open(const redlock_manager_options *options, redlock_client **client, char *error,
                        size_t error_size) {
    struct redlock_error_text failure = {error, error ? error_size : 0};
    int cancel_state;
    if (error && error_size > 0) {
        error[0] = '\0';
    }
    if (!client) {
        return redlock_check_given(&failure, "client", false);
    }
    *client = NULL;
    redlock_client *opened = calloc(1, sizeof *opened);
    if (!opened) {
        return redlock_fail(&failure, REDLOCK_ERR_NO_MEMORY, "cannot open a client: %s", strerror(ENOMEM));
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int code = open_client(opened, options, &failure);
    pthread_setcancelstate(cancel_state, NULL);
    if (code == REDLOCK_OK) {
        *client = opened;
    } else {
        free(opened);
    }
    return code;
}

/* For a child process, which has no loop thread and must not wait for a lock. */
static void abandon(redlock_client *client) {
    assert(redlock_random_forked(client->fork_mark));
    for (unsigned i = 0; i < client->loops; i++) {
        redlock_worker_abandon(client->workers[i]);
    }
    redlock_reentrant_abandon(&client->reentrant);
    redlock_random_delete(client->fork_mark);
    free(client);
}

int redlock_client_close(redlock_client *client) {
    int cancel_state;
    int code = redlock_client_enter(client, NULL, &cancel_state);
    if (code == REDLOCK_ERR_FORKED) {
        abandon(client);
        return REDLOCK_OK;
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    close_workers(client);
    redlock_rundown_close(&client->rundown);
    free_workers(client);
    redlock_reentrant_destroy(&client->reentrant);
    redlock_random_delete(client->fork_mark);
    redlock_rundown_destroy(&client->rundown);
    pthread_mutex_destroy(&client->credentials);
    free(client);
    pthread_setcancelstate(cancel_state, NULL);
    return REDLOCK_OK;
}
