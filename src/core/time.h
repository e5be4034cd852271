/* Times: how long a lease lasts, in integers (R1), and random delays: between two bounds for locks,
 * exponential for connections and owed releases (R16). */
#ifndef REDLOCK_CORE_TIME_H
#define REDLOCK_CORE_TIME_H

#include <stdint.h>

#define REDLOCK_NS_PER_MS INT64_C(1000000)
#define REDLOCK_NEVER_NS  INT64_MAX

/* ttl × 1 % rounded up + 2 ms. ttl_ms is 1 to REDLOCK_TTL_MS_MAX. */
int64_t redlock_drift_ms(int64_t ttl_ms);

/* start + ttl − drift; may lie before start for a very short ttl. */
int64_t redlock_deadline_ns(int64_t start_ns, int64_t ttl_ms);

/* The time left, rounded down, never negative. */
int64_t redlock_validity_ms(int64_t deadline_ns, int64_t now_ns);

/* now + delay, or REDLOCK_NEVER_NS if that does not fit. Neither is negative. */
int64_t redlock_after_ns(int64_t now_ns, int64_t delay_ns);
int64_t redlock_after_ms(int64_t now_ns, int64_t delay_ms);

static inline int64_t redlock_min_ns(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t redlock_max_ns(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* A small generator for delays; never for tokens. Any seed will do. */
uint32_t redlock_jitter_next(uint32_t *state);

/* Uniform in [min, max]; 0 <= min <= max. */
int64_t redlock_between_ns(uint32_t *jitter, int64_t min_ns, int64_t max_ns);

/* The same for milliseconds; the result is in nanoseconds, not whole milliseconds. */
int64_t redlock_delay_between_ns(uint32_t *jitter, int64_t min_ms, int64_t max_ms);

/* The delay before try number `failures` (1, 2, …): uniform in [d/2, d], where d is
 * min(max, min × 2^(failures − 1)). */
int64_t redlock_backoff_ns(uint32_t *jitter, unsigned failures, int64_t min_ms, int64_t max_ms);

#endif
