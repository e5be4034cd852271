/* What a client's process is told: which nodes it asks, how many of them are its quorum, and what
 * protects it beyond the plain lock. Pure. */
#ifndef CHAOS_SETUP_H
#define CHAOS_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* The library's guards, and fencing tokens at the resource. */

enum chaos_restart_guard { CHAOS_RESTART_GUARD_OFF, CHAOS_RESTART_GUARD_OBSERVED, CHAOS_RESTART_GUARD_STRICT };
enum { CHAOS_RESTART_GUARDS = CHAOS_RESTART_GUARD_STRICT + 1 };

struct chaos_protection {
    /* acquires ask for a token, and the resource refuses accesses with one below the highest that
     * it has seen */
    bool fencing;
    enum chaos_restart_guard restart_guard;
    bool clock_guard;
    /* of the processes that begin with the run, when no node has granted anything */
    bool first_boot;
    int64_t ttl_max_ms;    /* 0 without guards */
    int64_t lock_delay_ms; /* 0: none */
    bool no_heal;
};

/* "off", "observed", "strict" */
static inline const char *chaos_restart_guard_name(enum chaos_restart_guard guard) {
    static const char *const names[CHAOS_RESTART_GUARDS] = {"off", "observed", "strict"};
    return names[guard];
}

static inline bool chaos_restart_guard_find(const char *name, enum chaos_restart_guard *guard) {
    for (int i = 0; i < CHAOS_RESTART_GUARDS; i++) {
        *guard = (enum chaos_restart_guard)i;
        if (strcmp(name, chaos_restart_guard_name(*guard)) == 0) {
            return true;
        }
    }
    return false;
}

static inline bool chaos_has_guard(const struct chaos_protection *protection) {
    return protection->restart_guard != CHAOS_RESTART_GUARD_OFF || protection->clock_guard;
}

/*
 * All of it. Strict, for clients that the nemesis kills and starts anew know no node: observed
 * would trust a node that restarted in between. First boot, for else the run would begin with
 * ttl_max without a vote.
 */
static inline struct chaos_protection chaos_protection_full(void) {
    return (struct chaos_protection){
        .fencing = true, .restart_guard = CHAOS_RESTART_GUARD_STRICT, .clock_guard = true, .first_boot = true};
}

#endif
