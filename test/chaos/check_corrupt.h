/* Ways to corrupt the history of a correct lock. The checker must find each. */
#ifndef CHAOS_CHECK_CORRUPT_H
#define CHAOS_CHECK_CORRUPT_H

#include "check_world.h"
#include "checks/check_parts.h"

#define SLACK_US INT64_C(1000000)

/* Changes one thing at random. Returns the kinds of violations as bits: the checker must report one
 * of them. Returns 0 if the history has nothing to change in this way. */
typedef unsigned (*corrupt_history)(struct kit *kit, const struct chaos_case *c, uint64_t *random);

struct corruption {
    const char *name;
    corrupt_history corrupt;
};

extern const struct corruption corruptions[];
extern const size_t corruption_count;

/* A random index below count. */
static inline size_t pick(uint64_t *random, size_t count) {
    return (size_t)world_random(random, (int64_t)count - 1);
}

#endif
