/* Work under a lock: acquire, run, release however the work ends. */
#include <pthread.h>
#include <stddef.h>

#include <redlock/blocking.h>

struct guard {
    redlock_client *client;
    redlock_lease *lease;
    uint64_t owner;
};

/* The thread ends inside the work: there is nobody left to tell what comes of the release. */
static void release_at_exit(void *data) {
    struct guard *guard = data;
    (void)redlock_client_release_as(guard->client, guard->lease, guard->owner, NULL);
}

int redlock_client_with(redlock_client *client, const char *resource, const redlock_client_acquire_options *options,
                        redlock_work work, void *data, int *work_result, redlock_result **result) {
    struct guard guard = {.client = client};
    int cancel_state, returned;
    if (result) {
        *result = NULL;
    }
    if (!work) {
        return REDLOCK_ERR_INVALID;
    }
    /* Cancellable during the work alone: in between nothing may end the thread with the lock held. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int code = redlock_client_acquire(client, resource, options, &guard.lease, result);
    if (code == REDLOCK_OK) {
        guard.owner = options ? options->owner : 0;
        if (result) {
            redlock_result_free(*result);
            *result = NULL;
        }
        pthread_cleanup_push(release_at_exit, &guard);
        pthread_setcancelstate(cancel_state, NULL);
        returned = work(guard.lease, data);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        pthread_cleanup_pop(0);
        if (work_result) {
            *work_result = returned;
        }
        code = redlock_client_release_as(client, guard.lease, guard.owner, result);
    }
    pthread_setcancelstate(cancel_state, NULL);
    return code;
}
