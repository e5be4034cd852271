/* The arithmetic of R1: drift rounds up, validity rounds down, nothing overflows. */

#include "test.h"
#include <redlock/redlock.h>

#include "core/time.h"

#define MS REDLOCK_NS_PER_MS

TEST(drift_is_one_percent_rounded_up_and_two) {
    static const int64_t table[][2] =
        LIST({1, 3}, {2, 3}, {99, 3}, {100, 3}, {101, 4}, {199, 4}, {200, 4}, {201, 5}, {10000, 102}, {10001, 103},
             {30000, 302}, {60000, 602}, {REDLOCK_TTL_MS_MAX, 21474839});
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(redlock_drift_ms(table[i][0]), table[i][1]);
    }
    for (int64_t ttl_ms = 1; ttl_ms <= 100000; ttl_ms++) {
        const int64_t percent = redlock_drift_ms(ttl_ms) - 2;
        assert_true(percent * 100 >= ttl_ms && (percent - 1) * 100 < ttl_ms);
    }
}

TEST(a_deadline_is_start_and_ttl_less_drift) {
    assert_int_equal(redlock_deadline_ns(0, 10000), 9898 * MS);
    assert_int_equal(redlock_deadline_ns(77, 10000), 9898 * MS + 77);
    assert_int_equal(redlock_deadline_ns(5 * MS, 3), 5 * MS);
    /* Before its start: such a lease is never held. */
    assert_int_equal(redlock_deadline_ns(5 * MS, 1), 3 * MS);
    const int64_t century_ns = INT64_C(3155760000000) * MS;
    assert_int_equal(redlock_deadline_ns(century_ns, REDLOCK_TTL_MS_MAX),
                     century_ns + (REDLOCK_TTL_MS_MAX - 21474839) * MS);
}

TEST(validity_rounds_down_and_never_below_nothing) {
    assert_int_equal(redlock_validity_ms(10 * MS, 0), 10);
    assert_int_equal(redlock_validity_ms(10 * MS, 1), 9);
    assert_int_equal(redlock_validity_ms(10 * MS, 9 * MS), 1);
    assert_int_equal(redlock_validity_ms(10 * MS, 9 * MS + 1), 0);
    assert_int_equal(redlock_validity_ms(10 * MS, 10 * MS), 0);
    assert_int_equal(redlock_validity_ms(10 * MS, 10 * MS + 1), 0);
    assert_int_equal(redlock_validity_ms(10 * MS, 11 * MS), 0);
    assert_int_equal(redlock_validity_ms(10 * MS, REDLOCK_NEVER_NS), 0);
    assert_int_equal(redlock_validity_ms(0, 5), 0);
}

TEST(later_is_never_when_it_does_not_fit) {
    assert_int_equal(redlock_after_ms(7, 0), 7);
    assert_int_equal(redlock_after_ms(7, 3), 3 * MS + 7);
    assert_int_equal(redlock_after_ms(0, INT64_MAX), REDLOCK_NEVER_NS);
    assert_int_equal(redlock_after_ms(0, INT64_MAX / MS), REDLOCK_NEVER_NS);
    assert_int_equal(redlock_after_ms(0, INT64_MAX / MS - 1), (INT64_MAX / MS - 1) * MS);
    assert_int_equal(redlock_after_ms(REDLOCK_NEVER_NS, 0), REDLOCK_NEVER_NS);
    assert_int_equal(redlock_after_ms(REDLOCK_NEVER_NS - MS, 1), REDLOCK_NEVER_NS);
    assert_int_equal(redlock_after_ms(REDLOCK_NEVER_NS - MS - 1, 1), REDLOCK_NEVER_NS - 1);
    assert_int_equal(redlock_after_ns(5, 6), 11);
    assert_int_equal(redlock_after_ns(5, REDLOCK_NEVER_NS), REDLOCK_NEVER_NS);
    assert_int_equal(redlock_after_ns(5, REDLOCK_NEVER_NS - 6), REDLOCK_NEVER_NS - 1);
}
