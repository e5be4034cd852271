/* A histogram of times: four buckets for each power of two of microseconds. */
#ifndef REDLOCK_CORE_HISTOGRAM_H
#define REDLOCK_CORE_HISTOGRAM_H

#include <redlock/telemetry.h>

/*
 * us        0 1 2 3   4 5 6 7   8,9 10,11 12,13 14,15   16..19 20..23 24..27 28..31   32..39 …
 * bucket    0 1 2 3   4 5 6 7   8   9     10    11      12     13     14     15       16     …
 *
 * The three leading bits of the time, and how far they had to be shifted. The last bucket takes all
 * that is larger.
 */
static inline unsigned redlock_histogram_bucket(uint64_t us) {
    const unsigned shift = 61U - (unsigned)__builtin_clzll(us | 4);
    const unsigned bucket = 4 * shift + (unsigned)(us >> shift);
    return bucket < REDLOCK_HISTOGRAM_BUCKETS ? bucket : REDLOCK_HISTOGRAM_BUCKETS - 1;
}

/* A time before 0 counts as 0. */
static inline void redlock_histogram_add(redlock_histogram *histogram, int64_t ns) {
    uint64_t us = 0;
    if (ns > 0) {
        us = (uint64_t)ns / 1000;
        histogram->sum_us += us;
    }
    histogram->count++;
    histogram->buckets[redlock_histogram_bucket(us)]++;
}

#endif
