/* Does work under a lock: acquires, runs the work, and releases however the work ends. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#include "base/check.h"
#include "blocking/client.h"

struct held {
    redlock_client *client;
    redlock_lease *lease;
    uint64_t owner;
};

/* The thread ends inside the work, so nobody can get the result of the release. */
static void release_at_exit(void *data) {
    struct held *held = data;
    assert(held->client && held->lease);
    (void)redlock_client_release_as(held->client, held->lease, held->owner, NULL);
}

/* The lease is renewed while the work runs, unless the caller says otherwise. */
static int read_options(redlock_client_acquire_options *asked, const redlock_client_acquire_options *options,
                        struct redlock_error_text *failure) {
    redlock_client_acquire_options_default(asked);
    const int code = redlock_check_options(failure, "redlock_client_acquire_options", asked, sizeof *asked, options);
    asked->size = sizeof *asked;
    asked->lock.auto_extend = !asked->no_auto_extend || asked->lock.auto_extend;
    return code;
}

/* `resource`: NULL for several. */
static int acquire(redlock_client *client, const char *resource, const redlock_item *items, size_t count,
                   const redlock_client_acquire_options *asked, redlock_lease **lease, redlock_result **result) {
    return resource ? redlock_client_acquire(client, resource, asked, lease, result)
                    : redlock_client_acquire_all(client, items, count, asked, lease, result);
}

static int with(redlock_client *client, const char *resource, const redlock_item *items, size_t count,
                const redlock_client_acquire_options *options, redlock_work work, void *data, int *work_result,
                redlock_result **result) {
    struct held held = {.client = client};
    struct redlock_error_text failure = redlock_call_failure();
    redlock_client_acquire_options asked;
    int cancel_state, returned;
    if (redlock_check_given(&failure, "work", work != NULL) != REDLOCK_OK ||
        read_options(&asked, options, &failure) != REDLOCK_OK) {
        struct redlock_call refused = redlock_call_of(NULL, REDLOCK_RESULT_ACQUIRE, resource, result);
        return redlock_call_refuse(&refused, REDLOCK_ERR_INVALID, failure.text);
    }
    /* Only the work may be cancelled. Elsewhere the thread must not end while it holds the lock. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int code = acquire(client, resource, items, count, &asked, &held.lease, result);
    assert((code == REDLOCK_OK) == (held.lease != NULL));
    if (code == REDLOCK_OK) {
        held.owner = asked.owner;
        if (result) {
            redlock_result_free(*result);
            *result = NULL;
        }
        pthread_cleanup_push(release_at_exit, &held);
        pthread_setcancelstate(cancel_state, NULL);
        returned = work(held.lease, data);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        pthread_cleanup_pop(0);
        if (work_result) {
            *work_result = returned;
        }
        code = redlock_client_release_as(client, held.lease, held.owner, result);
    }
    pthread_setcancelstate(cancel_state, NULL);
    return code;
}

int redlock_client_with(redlock_client *client, const char *resource, const redlock_client_acquire_options *options,
                        redlock_work work, void *data, int *work_result, redlock_result **result) {
    if (!resource) {
        struct redlock_call refused = redlock_call_of(NULL, REDLOCK_RESULT_ACQUIRE, resource, result);
        return redlock_call_refuse(&refused, REDLOCK_ERR_INVALID, "resource is NULL");
    }
    return with(client, resource, NULL, 0, options, work, data, work_result, result);
}

int redlock_client_with_all(redlock_client *client, const redlock_item *items, size_t count,
                            const redlock_client_acquire_options *options, redlock_work work, void *data,
                            int *work_result, redlock_result **result) {
    return with(client, NULL, items, count, options, work, data, work_result, result);
}
