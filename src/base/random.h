/* Random bytes from the kernel, in a pool that a forked child cannot share (R10). */
#ifndef REDLOCK_BASE_RANDOM_H
#define REDLOCK_BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>

struct redlock_random;

/* NULL if there is no memory. */
struct redlock_random *redlock_random_new(void);
void redlock_random_delete(struct redlock_random *random);

/* Returns 0, REDLOCK_ERR_RANDOM, or REDLOCK_ERR_FORKED in a child process of the creator. */
int redlock_random_bytes(struct redlock_random *random, void *buffer, size_t size);

/* Whether this is a child process of the creator. Where the kernel wipes pages on fork, this costs
 * one memory access. */
bool redlock_random_forked(const struct redlock_random *random);

#endif
