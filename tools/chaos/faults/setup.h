/* What a client's process is told of the nodes: which it asks, and how many of them are its quorum.
 * Pure. */
#ifndef CHAOS_SETUP_H
#define CHAOS_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/fault.h"

struct chaos_setup {
    uint32_t nodes; /* bit i: node i + 1 */
    size_t quorum;
};

/* Where nothing else is said: all nodes, and more than half of them. */
static inline struct chaos_setup chaos_setup_default(size_t nodes) {
    return (struct chaos_setup){(uint32_t)chaos_all(nodes), nodes / 2 + 1};
}

/* Of a CONFIGURE fault. */
static inline struct chaos_setup chaos_setup_of(const struct chaos_fault *fault) {
    return (struct chaos_setup){fault->nodes, (size_t)fault->amount};
}

/* Whether each quorum of one shares a node with each quorum of the other: docs/operations.md,
 * "Changing the nodes". */
static inline bool chaos_setups_meet(const struct chaos_setup *a, const struct chaos_setup *b) {
    return a->quorum + b->quorum > chaos_count_bits(a->nodes | b->nodes);
}

#endif
