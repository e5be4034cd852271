/* A client that holds a lease: what it relies on, and the counter that the lease guards. */
#ifndef CHAOS_CLIENT_HOLD_H
#define CHAOS_CLIENT_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "client/client_journal.h"
#include "client/client_stop.h"

/* What was chosen for this time: by random numbers alone, so that a seed repeats it. */
struct chaos_hold_plan {
    int64_t before_us; /* held before the counter is read */
    int64_t work_us;   /* and between its read and its write */
};

/*
 * Claims, holds, increments the counter, and ends the claims, before the lease's handle ends. False
 * with errno if the file of counters cannot be read or written.
 */
bool chaos_hold(struct chaos_journal *journal, const struct chaos_stop *stop, const redlock_lease *lease,
                const struct chaos_held *held, const struct chaos_resource *resource,
                const struct chaos_hold_plan *plan);

#endif
