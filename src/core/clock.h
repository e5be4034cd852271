/* Whether a node's wall clock has kept pace with ours since it was last read. */
#ifndef REDLOCK_CORE_CLOCK_H
#define REDLOCK_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* One reading of a node's wall clock: it was read at some moment between sent and read (CLOCK_BOOTTIME). */
struct redlock_clock_sample {
    int64_t sent_ns, read_ns;
    int64_t server_us; /* as TIME says; 0: not told */
};

/* The best reading so far. All zero: none. */
struct redlock_clock {
    int64_t offset_ns; /* the node's wall clock − CLOCK_BOOTTIME */
    int64_t error_ns;  /* half of the round trip */
    int64_t at_ns;
    bool known;
};

enum redlock_clock_verdict { REDLOCK_CLOCK_STEADY, REDLOCK_CLOCK_FORWARD, REDLOCK_CLOCK_BACKWARD };

/*
 * The offset may have moved by the errors of both readings and by REDLOCK_CLOCK_RATE of the time between them; more is a
 * step. step_ns (may be NULL) is set to how far it moved. After a step the new reading is the reference; without one, the
 * reading that is the more exact now (its error and what may have been lost since).
 */
#define REDLOCK_CLOCK_RATE_PERCENT 1 /* as the drift of a lease */
enum redlock_clock_verdict redlock_clock_judge(struct redlock_clock *clock, const struct redlock_clock_sample *sample,
                                               int64_t *step_ns);

#endif
