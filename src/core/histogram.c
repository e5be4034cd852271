/* The bounds and the quantiles of a histogram. */
#include "core/histogram.h"

#include <assert.h>

int64_t redlock_histogram_bound_us(size_t bucket) {
    if (bucket < 4) {
        return (int64_t)bucket + 1;
    }
    if (bucket >= REDLOCK_HISTOGRAM_BUCKETS - 1) {
        return INT64_MAX;
    }
    return ((int64_t)(bucket & 3) + 5) << (bucket / 4 - 1);
}

/* `rank` of the values are before the quantile: 0 to count. */
static int64_t value_at(const redlock_histogram *histogram, double rank) {
    assert(rank >= 0 && histogram->count > 0);
    double before = 0;
    int64_t low_us = 0;
    for (size_t bucket = 0; bucket < REDLOCK_HISTOGRAM_BUCKETS - 1; bucket++) {
        const double count = (double)histogram->buckets[bucket];
        const int64_t bound_us = redlock_histogram_bound_us(bucket);
        if (count > 0 && before + count >= rank) {
            return low_us + (int64_t)((double)(bound_us - low_us) * (rank - before) / count);
        }
        before += count;
        low_us = bound_us;
    }
    return low_us; /* the last bucket has no upper bound */
}

int64_t redlock_histogram_quantile_us(const redlock_histogram *histogram, double quantile) {
    const double part = quantile > 0 ? quantile < 1 ? quantile : 1 : 0;
    return histogram->count > 0 ? value_at(histogram, part * (double)histogram->count) : -1;
}
