/* How long a lease lasts (R1), and random delays before the next try. */
#include "core/time.h"

#include <assert.h>

int64_t redlock_drift_ms(int64_t ttl_ms) {
    return (ttl_ms + 99) / 100 + 2;
}

int64_t redlock_deadline_ns(int64_t start_ns, int64_t ttl_ms) {
    return start_ns + (ttl_ms - redlock_drift_ms(ttl_ms)) * REDLOCK_NS_PER_MS;
}

int64_t redlock_validity_ms(int64_t deadline_ns, int64_t now_ns) {
    return now_ns < deadline_ns ? (deadline_ns - now_ns) / REDLOCK_NS_PER_MS : 0;
}

int64_t redlock_after_ns(int64_t now_ns, int64_t delay_ns) {
    return delay_ns < REDLOCK_NEVER_NS - now_ns ? now_ns + delay_ns : REDLOCK_NEVER_NS;
}

int64_t redlock_after_ms(int64_t now_ns, int64_t delay_ms) {
    return delay_ms < REDLOCK_NEVER_NS / REDLOCK_NS_PER_MS ? redlock_after_ns(now_ns, delay_ms * REDLOCK_NS_PER_MS)
                                                           : REDLOCK_NEVER_NS;
}

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
