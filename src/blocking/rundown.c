/* The rundown reference: one count, and a semaphore for the last one who exits. */
#include "blocking/rundown.h"

#include <assert.h>
#include <errno.h>

int redlock_rundown_init(struct redlock_rundown *rundown) {
    atomic_init(&rundown->inside, 1);
    return sem_init(&rundown->all_gone, 0, 0) == 0 ? 0 : errno;
}

void redlock_rundown_destroy(struct redlock_rundown *rundown) {
    assert(atomic_load(&rundown->inside) <= 1);
    sem_destroy(&rundown->all_gone);
}

void redlock_rundown_enter(struct redlock_rundown *rundown) {
    atomic_fetch_add(&rundown->inside, 1);
}

void redlock_rundown_exit(struct redlock_rundown *rundown) {
    const unsigned before = atomic_fetch_sub(&rundown->inside, 1);
    assert(before > 0);
    if (before == 1) {
        const int failed = sem_post(&rundown->all_gone);
        assert(failed == 0);
        (void)failed;
    }
}

void redlock_rundown_close(struct redlock_rundown *rundown) {
    /* This call and the rundown's own 1. Other calls may still be exiting. */
    const unsigned before = atomic_fetch_sub(&rundown->inside, 2);
    assert(before >= 2);
    while (before != 2 && sem_wait(&rundown->all_gone) != 0) {
        assert(errno == EINTR);
    }
}
