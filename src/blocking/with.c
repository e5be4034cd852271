/* Does work under a lock: acquires, runs the work, and releases however the work ends. */
#include <pthread.h>
#include <stddef.h>

#include <redlock/blocking.h>

struct held {
    redlock_client *client;
    redlock_lease *lease;
    uint64_t owner;
};

/* The thread ends inside the work, so nobody can get the result of the release. */
static void release_at_exit(void *data) {
    struct held *held = data;
    (void)redlock_client_release_as(held->client, held->lease, held->owner, NULL);
}

int redlock_client_with(redlock_client *client, const char *resource, const redlock_client_acquire_options *options,
                        redlock_work work, void *data, int *work_result, redlock_result **result) {
    struct held held = {.client = client};
    int cancel_state, returned;
    if (result) {
        *result = NULL;
    }
    if (!work) {
        return REDLOCK_ERR_INVALID;
    }
    /* Only the work may be cancelled. Elsewhere the thread must not end while it holds the lock. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int code = redlock_client_acquire(client, resource, options, &held.lease, result);
    if (code == REDLOCK_OK) {
        held.owner = options ? options->owner : 0;
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
