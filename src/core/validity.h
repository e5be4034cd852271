/* How long a lease lasts: ttl − elapsed − drift, in integers (R1). */
#ifndef REDLOCK_CORE_VALIDITY_H
#define REDLOCK_CORE_VALIDITY_H

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

#endif
