/* Who reads a lock, by what all nodes say to an inspection. */
#ifndef REDLOCK_GROUP_READERS_H
#define REDLOCK_GROUP_READERS_H

#include <stddef.h>

#include "result/result.h"

/* What one node said: for redlock_page_next_reader(). */
struct redlock_readers_said {
    char *names; /* NULL for nobody */
    size_t size;
};

/* Returns them in the order of their tokens, and *count of them. NULL for none, or without memory.
 * Free it. */
struct redlock_result_reader *redlock_readers_merge(const struct redlock_readers_said *said, unsigned nodes,
                                                    unsigned quorum, size_t *count);

#endif
