/* Random bytes from the kernel, in a pool that a forked child cannot share (R10). */
#ifndef REDLOCK_BASE_RANDOM_H
#define REDLOCK_BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* The kernel shows this mapping to a child process as zeros. So no two processes use the same
 * bytes. */
struct redlock_random_pool {
    uint64_t ours; /* 1; 0 in a child */
    size_t left;
    unsigned char bytes[4032];
};

struct redlock_random {
    struct redlock_random_pool *pool;
    /* The creator's, where the kernel does not wipe on fork (before Linux 4.14); else 0. */
    pid_t pid;
};

/* NULL if there is no memory. */
struct redlock_random *redlock_random_new(void);
void redlock_random_delete(struct redlock_random *random);

/* Returns 0, REDLOCK_ERR_RANDOM, or REDLOCK_ERR_FORKED in a child process of the creator. */
int redlock_random_bytes(struct redlock_random *random, void *buffer, size_t size);

/* Whether this is a child process of the creator. Where the kernel wipes pages on fork, this costs
 * one memory access. */
static inline bool redlock_random_forked(const struct redlock_random *random) {
    return random->pool->ours == 0 || (random->pid != 0 && random->pid != getpid());
}

#endif
