/* Whether a node's wall clock has kept pace with ours since it was last read. */
#ifndef REDLOCK_CORE_CLOCK_H
#define REDLOCK_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* One reading of a node's wall clock: it was read at some moment between sent and read (CLOCK_BOOTTIME, never negative). */
struct redlock_clock_sample {
    int64_t sent_ns, read_ns;
    int64_t server_us; /* as TIME says; 0: not told. Nor is what is negative or beyond 9e15, the year 2255 */
};

/* What all readings since the last step say: at at_ns, the offset was offset_ns ± error_ns. All zero: none. */
struct redlock_clock {
    int64_t offset_ns; /* the node's wall clock − CLOCK_BOOTTIME */
    int64_t error_ns;
    int64_t at_ns;
    bool known;
};

enum redlock_clock_verdict { REDLOCK_CLOCK_STEADY, REDLOCK_CLOCK_FORWARD, REDLOCK_CLOCK_BACKWARD };

/*
 * The offset may have moved by REDLOCK_CLOCK_RATE_PERCENT of the time between two readings, and half of each round trip is
 * error. A clock that is off by more than that and REDLOCK_CLOCK_STEP_MIN_NS has stepped: *step_ns (step_ns may be NULL) is
 * set to how far, negative for BACKWARD, 0 for STEADY, and the new reading is all that is known. Without a step, it is
 * known to be where all readings agree, or at the end of that which is next to a reading beside it.
 *
 * To compare with the last reading only would not do: a clock that runs 10 % fast moves by less than the errors from one
 * reading to the next, where they are many. As it is, what goes unnoticed over the time of a lease is no more than what its
 * drift allows for, 1 % + 2 ms (once the smallest step back, and once forward), and the errors of two readings.
 */
#define REDLOCK_CLOCK_RATE_PERCENT 1                /* as the drift of a lease */
#define REDLOCK_CLOCK_STEP_MIN_NS  INT64_C(1000000) /* a daemon that slews a clock into place is not a step */
enum redlock_clock_verdict redlock_clock_judge(struct redlock_clock *clock, const struct redlock_clock_sample *sample,
                                               int64_t *step_ns);

/* Whether the sample tells a time. */
bool redlock_clock_is_told(const struct redlock_clock_sample *sample);

/* a − b; INT64_MAX or its negative where that does not fit. */
int64_t redlock_clock_difference_ns(int64_t a, int64_t b);

#endif
