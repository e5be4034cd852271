/* Random delays before the next try. */
#include "core/backoff.h"

#include <assert.h>

#include "core/validity.h"

/* A Weyl sequence, mixed by the 32-bit finaliser of MurmurHash3. Any seed has the full period. */
uint32_t redlock_jitter_next(uint32_t *state) {
    uint32_t x = *state += UINT32_C(0x9E3779B9);
    x = (x ^ x >> 16) * UINT32_C(0x85EBCA6B);
    x = (x ^ x >> 13) * UINT32_C(0xC2B2AE35);
    return x ^ x >> 16;
}

int64_t redlock_between_ns(uint32_t *jitter, int64_t min_ns, int64_t max_ns) {
    assert(min_ns >= 0 && min_ns <= max_ns);
    uint64_t high = redlock_jitter_next(jitter);
    uint64_t random = high << 32 | redlock_jitter_next(jitter);
    return min_ns + (int64_t)(random % ((uint64_t)(max_ns - min_ns) + 1));
}

int64_t redlock_delay_between_ns(uint32_t *jitter, int64_t min_ms, int64_t max_ms) {
    return redlock_between_ns(jitter, redlock_after_ms(0, min_ms), redlock_after_ms(0, max_ms));
}

int64_t redlock_backoff_ns(uint32_t *jitter, unsigned failures, int64_t min_ms, int64_t max_ms) {
    assert(min_ms >= 1 && min_ms <= max_ms);
    int64_t delay_ms = min_ms;
    for (unsigned i = 1; i < failures && delay_ms < max_ms; i++) {
        delay_ms = delay_ms > max_ms / 2 ? max_ms : delay_ms * 2;
    }
    int64_t delay_ns = redlock_after_ms(0, delay_ms);
    return redlock_between_ns(jitter, delay_ns / 2, delay_ns);
}
