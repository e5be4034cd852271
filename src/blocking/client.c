/* A blocking client: how it opens and closes, and who may be inside it. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocking/client.h"

int redlock_client_enter(redlock_client *client, struct redlock_call *call, int *cancel_state) {
    struct redlock_error_text failure = redlock_call_failure();
    int code = redlock_check_given(&failure, "client", client != NULL);
    if (code == REDLOCK_OK && redlock_random_forked(client->fork_mark)) {
        code = REDLOCK_ERR_FORKED;
    }
    if (code == REDLOCK_OK && redlock_worker_is_current(client->worker)) {
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

int redlock_client_perform(redlock_client *client, struct redlock_call *call) {
    int cancel_state;
    int code = redlock_client_enter(client, call, &cancel_state);
    if (code == REDLOCK_OK) {
        code = redlock_worker_perform(client->worker, call);
        redlock_client_exit(client, cancel_state);
    }
    return code;
}

size_t redlock_client_node_count(const redlock_client *client) {
    return client->node_count;
}

size_t redlock_client_quorum(const redlock_client *client) {
    return client->quorum;
}

static int open_client(redlock_client *client, const redlock_manager_options *options,
                       struct redlock_error_text *failure) {
    assert(!client->worker);
    client->fork_mark = redlock_random_new();
    if (!client->fork_mark) {
        return redlock_fail(failure, REDLOCK_ERR_NO_MEMORY, "cannot open a client: %s", strerror(ENOMEM));
    }
    const int failed = redlock_rundown_init(&client->rundown);
    if (failed) {
        redlock_random_delete(client->fork_mark);
        return redlock_fail(failure, REDLOCK_ERR_SYSTEM, "cannot create a semaphore: %s", strerror(failed));
    }
    int code = redlock_reentrant_init(&client->reentrant, UINT32_MAX);
    if (code == REDLOCK_OK) {
        code = redlock_worker_open(options, &client->reentrant, &client->worker, failure);
        if (code == REDLOCK_OK) {
            const redlock_manager *manager = redlock_worker_manager(client->worker);
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
    redlock_worker_abandon(client->worker);
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
    redlock_worker_close(client->worker);
    redlock_rundown_close(&client->rundown);
    redlock_worker_free(client->worker);
    redlock_reentrant_destroy(&client->reentrant);
    redlock_random_delete(client->fork_mark);
    redlock_rundown_destroy(&client->rundown);
    free(client);
    pthread_setcancelstate(cancel_state, NULL);
    return REDLOCK_OK;
}
