/* A redlock_cancel: any thread, or a signal handler, ends acquires and listings that block. */
#include <assert.h>
#include <stdlib.h>

#include "blocking/client.h"

int redlock_cancel_new(redlock_client *client, redlock_cancel **cancel) {
    struct redlock_error_text failure = redlock_call_failure();
    if (redlock_check_given(&failure, "client", client != NULL) != REDLOCK_OK ||
        redlock_check_given(&failure, "cancel", cancel != NULL) != REDLOCK_OK) {
        return REDLOCK_ERR_INVALID;
    }
    *cancel = malloc(sizeof **cancel);
    if (*cancel == NULL) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    (*cancel)->client = client;
    atomic_init(&(*cancel)->turns, 0);
    return REDLOCK_OK;
}

void redlock_cancel_free(redlock_cancel *cancel) {
    free(cancel);
}

/* Returns whether it changed. Safe in a signal handler: no lock, and no wait for another thread. */
static bool turn(redlock_cancel *cancel, unsigned odd) {
    assert(odd <= 1);
    unsigned turns = atomic_load(&cancel->turns);
    while ((turns & 1) != odd) {
        if (atomic_compare_exchange_weak(&cancel->turns, &turns, turns + 1)) {
            return true;
        }
    }
    return false;
}

void redlock_cancel_set(redlock_cancel *cancel) {
    assert(cancel->client);
    /* In a child process there is no loop thread, and the wake-up would reach the parent's. */
    if (turn(cancel, 1) && !redlock_random_forked(cancel->client->fork_mark)) {
        for (unsigned i = 0; i < cancel->client->loops; i++) {
            redlock_worker_wake_cancelled(cancel->client->workers[i]);
        }
    }
}

void redlock_cancel_clear(redlock_cancel *cancel) {
    (void)turn(cancel, 0);
}

bool redlock_cancel_is_set(const redlock_cancel *cancel) {
    return (atomic_load(&cancel->turns) & 1) != 0;
}
