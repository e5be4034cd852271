/* Drives the core of one lease: steps it, does what it says, runs its callbacks, and ends it. */
#ifndef REDLOCK_GROUP_DRIVER_H
#define REDLOCK_GROUP_DRIVER_H

#include "group/handle.h"
#include "result/result.h"

/* The clock for fencing tokens; 0 for a lease without one. */
int64_t redlock_driver_wall_us(const struct redlock_lease *lease);
/* An event of this moment about these nodes, with what a waiter may need to ask others. */
struct redlock_event redlock_driver_event(const struct redlock_lease *lease, enum redlock_event_type type,
                                          redlock_nodes nodes);
/* Steps the core, and does what it says. */
void redlock_driver_feed(struct redlock_lease *lease, const struct redlock_event *event);
void redlock_driver_due(struct redlock_lease *lease, int64_t now_ns);
/* A node is ready, for the first time or again. */
void redlock_driver_ready(struct redlock_lease *lease, unsigned node);
/* Feeds the first event of an acquire. */
void redlock_driver_begin(struct redlock_lease *lease, const struct redlock_plan *plan, int64_t now_ns);
/* Voids what the node has granted until now. `why` may be NULL if there was no memory. */
void redlock_driver_void(struct redlock_lease *lease, unsigned node, struct redlock_text *why);
/* For redlock_driver_free_if_over(). */
void redlock_driver_end(struct redlock_lease *lease);
/* Runs after each vote and each callback. */
static inline void redlock_driver_free_if_over(struct redlock_lease *lease) {
    if (lease->requester.in_flight == 0 && lease->life >= REDLOCK_LIFE_OVER) {
        redlock_driver_end(lease);
    }
}
/* The caller forgot the handle. Answers and timers change nothing from now on. The lease is freed
 * when no answer is under way. */
void redlock_driver_retire(struct redlock_lease *lease);
void redlock_driver_free(struct redlock_lease *lease);

/* Runs the callbacks that wait. Then frees the lease if it is over. */
void redlock_driver_run_callbacks(struct redlock_lease *lease);
/* Calls `cb` with what the last round has found so far, as if such a request had ended with this
 * code. */
void redlock_driver_describe(const struct redlock_lease *lease, enum redlock_result_of of, int code,
                             redlock_callback cb, void *data);

/* Why an acquire that waits cannot win, as far as its last round shows; OK if others hold the
 * lock. */
int redlock_driver_trouble(const struct redlock_lease *lease);

/* The group closes without the answers to this release: its callback gets CLOSED. */
void redlock_driver_abort(struct redlock_lease *lease);

#endif
