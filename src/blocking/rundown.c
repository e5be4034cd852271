/* The rundown reference: one count, and a semaphore for the last one who exits. */
#include "blocking/rundown.h"

#include <assert.h>
#include <errno.h>

int redlock_rundown_init(struct redlock_rundown *rundown) {
    atomic_init(&rundown->inside, 1);
    return sem_init(&rundown->all_gone, 0, 0) == 0 ? 0 : errno;
}

void redlock_rundown_destroy(struct redlock_rundown *rundown) {
    sem_destroy(&rundown->all_gone);
}

void redlock_rundown_enter(struct redlock_rundown *rundown) {
    atomic_fetch_add(&rundown->inside, 1);
}

void redlock_rundown_exit(struct redlock_rundown *rundown) {
    if (atomic_fetch_sub(&rundown->inside, 1) == 1) {
        redlock_rundown_sem_post(&rundown->all_gone);
    }
}

void redlock_rundown_close(struct redlock_rundown *rundown) {
    /* This call and the rundown's own 1. Other calls may still be exiting. */
    if (atomic_fetch_sub(&rundown->inside, 2) != 2) {
        redlock_rundown_sem_wait(&rundown->all_gone);
    }
}

void redlock_rundown_sem_wait(sem_t *done) {
    while (sem_wait(done) != 0) {
        assert(errno == EINTR);
    }
}

void redlock_rundown_sem_post(sem_t *done) {
    int failed = sem_post(done);
    assert(failed == 0);
    (void)failed;
}
