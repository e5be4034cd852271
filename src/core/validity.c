/* How long a lease lasts (R1). */
#include "core/validity.h"

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
