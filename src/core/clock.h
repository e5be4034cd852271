/* Whether a node's wall clock has kept pace with ours since we last read it. */
#ifndef REDLOCK_CORE_CLOCK_H
#define REDLOCK_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* One reading of a node's wall clock. The node read it between sent_ns and read_ns, which are
 * CLOCK_BOOTTIME and never negative. */
struct redlock_clock_sample {
    int64_t sent_ns, read_ns;
    /* The answer to TIME. 0, a negative value and one beyond 9e15 (the year 2255) mean that there
     * is none. */
    int64_t server_us;
};

/* The estimate from all readings since the last step: at at_ns, the offset was offset_ns ±
 * error_ns. */
struct redlock_clock {
    int64_t offset_ns; /* the node's wall clock − CLOCK_BOOTTIME */
    int64_t error_ns;
    int64_t at_ns;
    bool known;
};

enum redlock_clock_verdict { REDLOCK_CLOCK_STEADY, REDLOCK_CLOCK_FORWARD, REDLOCK_CLOCK_BACKWARD };

/*
 * Compares a reading with the estimate, and updates the estimate.
 *
 * Between two readings, the offset may move by REDLOCK_CLOCK_RATE_PERCENT of the time. The error of
 * a reading is half of its round trip. A clock that is off by more than that and
 * REDLOCK_CLOCK_STEP_MIN_NS has stepped. Then *step_ns says how far (negative for BACKWARD), and
 * the new reading alone is the estimate. Else *step_ns is 0, and the estimate is where all readings
 * agree, or the end that is nearer to a reading that just misses it. step_ns may be NULL.
 *
 * To compare only with the last reading is not enough: with frequent readings, a clock that is 10 %
 * too fast moves by less than the errors. With this estimate, a clock may move unnoticed during a
 * lease by the drift of the lease, 1 % + 2 ms (one smallest step back and one forward), and by the
 * errors of two readings.
 */
#define REDLOCK_CLOCK_RATE_PERCENT 1 /* the same as the drift of a lease */
/* a daemon that slews the clock makes no step */
#define REDLOCK_CLOCK_STEP_MIN_NS INT64_C(1000000)
enum redlock_clock_verdict redlock_clock_judge(struct redlock_clock *clock, const struct redlock_clock_sample *sample,
                                               int64_t *step_ns);

/* Whether the sample has a time. */
bool redlock_clock_has_time(const struct redlock_clock_sample *sample);

/* a − b, or INT64_MAX or −INT64_MAX if that does not fit. */
int64_t redlock_clock_difference_ns(int64_t a, int64_t b);

#endif
