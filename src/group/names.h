/* Who reads a lock, and who waits for it, by what all nodes say to an inspection. */
#ifndef REDLOCK_GROUP_NAMES_H
#define REDLOCK_GROUP_NAMES_H

#include <stddef.h>

#include "result/result.h"

/* What one node said: for redlock_page_next_name(). */
struct redlock_names_said {
    char *names; /* NULL for nobody */
    size_t size;
};

/* Puts them together in others->named: first who reads, then who waits, each in the order of their
 * tokens. Nobody without memory. Free it. */
void redlock_names_merge(const struct redlock_names_said *said, unsigned nodes, unsigned quorum,
                         struct redlock_result_others *others);

#endif
