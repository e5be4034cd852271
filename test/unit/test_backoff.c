/* Random delays stay within their bounds, fill them, double up to their maximum, and differ between
 * seeds. */

#include "core/time.h"
#include "test.h"

#define MS    REDLOCK_NS_PER_MS
#define DRAWS 20000

TEST(any_seed_gives_bits_that_vary) {
    static const uint32_t seeds[] = {0, 1, 2, 0x80000000, 0xffffffff, UINT32_C(0x61C88647)};
    for (size_t s = 0; s < sizeof seeds / sizeof seeds[0]; s++) {
        uint32_t jitter = seeds[s];
        unsigned set[32] = {0};
        for (int i = 0; i < DRAWS; i++) {
            const uint32_t x = redlock_jitter_next(&jitter);
            for (unsigned bit = 0; bit < 32; bit++) {
                set[bit] += x >> bit & 1;
            }
        }
        /* A fair bit is off by 7 standard deviations (495) once in 10^11; the seeds are fixed
         * anyway. */
        for (unsigned bit = 0; bit < 32; bit++) {
            assert_in_range(set[bit], DRAWS / 2 - 500, DRAWS / 2 + 500);
        }
    }
}

TEST(seeds_give_different_delays) {
    uint32_t a = 1, b = 2;
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        same += redlock_delay_between_ns(&a, 50, 200) == redlock_delay_between_ns(&b, 50, 200);
    }
    assert_in_range(same, 0, 5);
}

TEST(delays_fill_their_bounds) {
    uint32_t jitter = 42;
    int tenths[10] = {0};
    for (int i = 0; i < DRAWS; i++) {
        const int64_t delay_ns = redlock_delay_between_ns(&jitter, 50, 200);
        assert_true(delay_ns >= 50 * MS && delay_ns <= 200 * MS);
        tenths[(delay_ns - 50 * MS) / (15 * MS + 1)]++;
    }
    for (int i = 0; i < 10; i++) {
        assert_in_range(tenths[i], DRAWS / 10 - 400, DRAWS / 10 + 400);
    }
}

TEST(equal_bounds_leave_no_choice) {
    uint32_t jitter = 7;
    assert_int_equal(redlock_delay_between_ns(&jitter, 0, 0), 0);
    assert_int_equal(redlock_delay_between_ns(&jitter, 80, 80), 80 * MS);
}

TEST(huge_bounds_do_not_overflow) {
    uint32_t jitter = 7;
    for (int i = 0; i < 1000; i++) {
        assert_true(redlock_delay_between_ns(&jitter, 0, INT64_MAX) >= 0);
        assert_int_equal(redlock_delay_between_ns(&jitter, INT64_MAX, INT64_MAX), REDLOCK_NEVER_NS);
        assert_true(redlock_backoff_ns(&jitter, 4000000000u, INT64_MAX / 3, INT64_MAX) >= REDLOCK_NEVER_NS / 2);
    }
}

TEST(backoff_doubles_up_to_its_maximum) {
    static const int64_t doubled_ms[] = {10, 10, 20, 40, 80, 160, 320, 640, 1280, 2000, 2000, 2000};
    uint32_t jitter = 3;
    for (unsigned failures = 0; failures < sizeof doubled_ms / sizeof doubled_ms[0]; failures++) {
        const int64_t most_ns = doubled_ms[failures] * MS;
        int64_t low_ns = INT64_MAX, high_ns = 0;
        for (int i = 0; i < 2000; i++) {
            const int64_t delay_ns = redlock_backoff_ns(&jitter, failures, 10, 2000);
            assert_true(delay_ns >= most_ns / 2 && delay_ns <= most_ns);
            low_ns = delay_ns < low_ns ? delay_ns : low_ns;
            high_ns = delay_ns > high_ns ? delay_ns : high_ns;
        }
        assert_true(low_ns < most_ns * 55 / 100 && high_ns > most_ns * 95 / 100);
    }
    const int64_t last_ns = redlock_backoff_ns(&jitter, UINT32_MAX, 10, 2000);
    assert_true(last_ns >= 1000 * MS && last_ns <= 2000 * MS);
    assert_true(redlock_backoff_ns(&jitter, 5, 1, 1) <= MS);
}
