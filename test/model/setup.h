/* Clients with different nodes and quorums beside each other, as while nodes are changed:
 * docs/operations.md, "Changing the nodes". */
#ifndef MODEL_SETUP_H
#define MODEL_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "bits.h"

enum { SETUPS_MAX = 4 };

struct setup {
    unsigned nodes; /* bit i: it asks node i + 1 */
    unsigned quorum;
};

/* Of client A, B, …; none: all clients ask all nodes, and more than half of them are a quorum. */
struct setups {
    unsigned count;
    struct setup of[SETUPS_MAX];
};

static inline bool setup_asks(const struct setups *setups, unsigned client, unsigned node) {
    return setups->count == 0 || (setups->of[client].nodes >> node & 1U) != 0;
}

static inline unsigned setup_quorum(const struct setups *setups, unsigned client, unsigned nodes) {
    return setups->count == 0 ? nodes / 2 + 1 : setups->of[client].quorum;
}

/* Whether all clients have the same one. */
static inline bool setup_is_one(const struct setups *setups) {
    bool one = true;
    for (unsigned i = 1; i < setups->count; i++) {
        one = one && setups->of[i].nodes == setups->of[0].nodes && setups->of[i].quorum == setups->of[0].quorum;
    }
    return one;
}

/* Only nodes that the same clients ask are interchangeable. */
static inline void setup_sort(const struct setups *setups, uint64_t *columns, unsigned n) {
    for (unsigned from = 0, to; from < n; from = to) {
        bool alike = true;
        for (to = from + 1; to < n && alike; to += alike) {
            for (unsigned client = 0; client < setups->count; client++) {
                alike = alike && setup_asks(setups, client, from) == setup_asks(setups, client, to);
            }
        }
        bits_sort(columns + from, to - from);
    }
}

#endif
