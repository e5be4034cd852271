/* Random delays: between two bounds for locks, exponential for connections and owed releases
 * (R16). */
#ifndef REDLOCK_CORE_BACKOFF_H
#define REDLOCK_CORE_BACKOFF_H

#include <stdint.h>

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
