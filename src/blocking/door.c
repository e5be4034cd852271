/* Counts who is inside a client, so that nobody frees its memory meanwhile. */
#include "blocking/door.h"

#include <assert.h>
#include <errno.h>

int redlock_door_init(struct redlock_door *door) {
    atomic_init(&door->inside, 1);
    return sem_init(&door->all_left, 0, 0) == 0 ? 0 : errno;
}

void redlock_door_destroy(struct redlock_door *door) {
    sem_destroy(&door->all_left);
}

void redlock_door_enter(struct redlock_door *door) {
    atomic_fetch_add(&door->inside, 1);
}

void redlock_door_leave(struct redlock_door *door) {
    if (atomic_fetch_sub(&door->inside, 1) == 1) {
        redlock_door_post(&door->all_left);
    }
}

void redlock_door_close(struct redlock_door *door) {
    /* This call and the door's own 1. Other calls may still be leaving. */
    if (atomic_fetch_sub(&door->inside, 2) != 2) {
        redlock_door_wait(&door->all_left);
    }
}

void redlock_door_wait(sem_t *done) {
    while (sem_wait(done) != 0) {
        assert(errno == EINTR);
    }
}

void redlock_door_post(sem_t *done) {
    int failed = sem_post(done);
    assert(failed == 0);
    (void)failed;
}
