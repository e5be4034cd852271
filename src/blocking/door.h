/* Counts who is inside a client, so that nobody frees its memory meanwhile. */
#ifndef REDLOCK_BLOCKING_DOOR_H
#define REDLOCK_BLOCKING_DOOR_H

#include <semaphore.h>
#include <stdatomic.h>

struct redlock_door {
    atomic_uint inside; /* plus 1 until redlock_door_close() */
    sem_t all_left;
};

/* Returns 0 or an errno. */
int redlock_door_init(struct redlock_door *door);

/* Nobody is inside. */
void redlock_door_destroy(struct redlock_door *door);

/* Any thread. */
void redlock_door_enter(struct redlock_door *door);
void redlock_door_leave(struct redlock_door *door);

/* Once, by a thread that is inside and leaves with this: blocks until the others have left. Nobody
 * may enter any more. */
void redlock_door_close(struct redlock_door *door);

/* sem_wait() that a signal does not end. */
void redlock_door_wait(sem_t *done);
/* sem_post() that cannot fail. */
void redlock_door_post(sem_t *done);

#endif
