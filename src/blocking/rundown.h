/* A rundown reference: counts who is inside a client, so that nobody frees its memory meanwhile. */
#ifndef REDLOCK_BLOCKING_RUNDOWN_H
#define REDLOCK_BLOCKING_RUNDOWN_H

#include <semaphore.h>
#include <stdatomic.h>

struct redlock_rundown {
    atomic_uint inside; /* plus 1 until redlock_rundown_close() */
    sem_t all_gone;
};

/* Returns 0 or an errno. */
int redlock_rundown_init(struct redlock_rundown *rundown);

/* Nobody is inside. */
void redlock_rundown_destroy(struct redlock_rundown *rundown);

/* Any thread. */
void redlock_rundown_enter(struct redlock_rundown *rundown);
void redlock_rundown_exit(struct redlock_rundown *rundown);

/* Once, by a thread that is inside and exits with this: blocks until the others have exited. Nobody
 * may enter any more. */
void redlock_rundown_close(struct redlock_rundown *rundown);

#endif
