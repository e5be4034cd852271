/* Histograms: which bucket a time is in, the bounds, and quantiles. */
#include "core/histogram.h"
#include "test.h"

#define LAST  (REDLOCK_HISTOGRAM_BUCKETS - 1)
#define US_NS INT64_C(1000)

TEST(the_bounds_rise_and_each_power_of_two_is_one) {
    static const int64_t first_us[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40};
    for (size_t i = 0; i < sizeof first_us / sizeof *first_us; i++) {
        assert_int_equal(redlock_histogram_bound_us(i), first_us[i]);
    }
    for (size_t i = 1; i <= LAST; i++) {
        assert_true(redlock_histogram_bound_us(i) > redlock_histogram_bound_us(i - 1));
    }
    for (size_t i = 3, power = 2; i < LAST; i += 4, power++) {
        assert_int_equal(redlock_histogram_bound_us(i), INT64_C(1) << power);
    }
    assert_int_equal(redlock_histogram_bound_us(LAST - 1), INT64_C(7) << 38); /* 22 days */
    assert_int_equal(redlock_histogram_bound_us(LAST), INT64_MAX);
    assert_int_equal(redlock_histogram_bound_us(SIZE_MAX), INT64_MAX);
}

/* Each value is below the bound of its bucket, and not below that of the bucket before. */
TEST(a_value_lies_between_the_bounds_of_its_bucket) {
    for (size_t bucket = 0; bucket < LAST; bucket++) {
        const uint64_t bound_us = (uint64_t)redlock_histogram_bound_us(bucket);
        assert_int_equal(redlock_histogram_bucket(bound_us - 1), bucket);
        assert_int_equal(redlock_histogram_bucket(bound_us), bucket + 1);
    }
    assert_int_equal(redlock_histogram_bucket(0), 0);
    assert_int_equal(redlock_histogram_bucket(INT64_MAX), LAST);
    assert_int_equal(redlock_histogram_bucket(UINT64_MAX), LAST);
}

/* From 4 on: the promised resolution. */
TEST(a_bucket_is_at_most_a_quarter_wide) {
    for (size_t bucket = 4; bucket < LAST; bucket++) {
        const int64_t low_us = redlock_histogram_bound_us(bucket - 1);
        assert_true(4 * (redlock_histogram_bound_us(bucket) - low_us) <= low_us);
    }
}

TEST(values_are_counted_in_whole_us) {
    redlock_histogram histogram = {0};
    redlock_histogram_add(&histogram, 999);
    redlock_histogram_add(&histogram, US_NS);
    redlock_histogram_add(&histogram, 70 * US_NS + 999);
    redlock_histogram_add(&histogram, 0);
    redlock_histogram_add(&histogram, -5 * US_NS);
    redlock_histogram_add(&histogram, INT64_MIN);
    assert_int_equal(histogram.count, 6);
    assert_int_equal(histogram.sum_us, 71);
    assert_int_equal(histogram.buckets[0], 4);
    assert_int_equal(histogram.buckets[1], 1);
    assert_int_equal(histogram.buckets[redlock_histogram_bucket(70)], 1);
    redlock_histogram_add(&histogram, INT64_MAX);
    assert_int_equal(histogram.buckets[LAST], 1);
    assert_int_equal(histogram.sum_us, 71 + INT64_MAX / 1000);
}

TEST(quantiles_of_few_values) {
    redlock_histogram histogram = {0};
    assert_int_equal(redlock_histogram_quantile_us(&histogram, 0.5), -1);
    redlock_histogram_add(&histogram, 100 * US_NS); /* in 96 to 112 */
    assert_int_equal(redlock_histogram_quantile_us(&histogram, 0), 96);
    assert_int_equal(redlock_histogram_quantile_us(&histogram, 0.5), 104);
    assert_int_equal(redlock_histogram_quantile_us(&histogram, 1), 112);
    assert_int_equal(redlock_histogram_quantile_us(&histogram, -0.1), 96);
    assert_int_equal(redlock_histogram_quantile_us(&histogram, 1.1), 112);
    redlock_histogram_add(&histogram, INT64_MAX);
    assert_int_equal(redlock_histogram_quantile_us(&histogram, 0.5), 112);
    assert_int_equal(redlock_histogram_quantile_us(&histogram, 1), INT64_C(7) << 38);
}

/* Every value from 0 to 10 ms, so each quantile is known. */
TEST(quantiles_are_within_a_quarter) {
    redlock_histogram histogram = {0};
    for (int64_t us = 0; us < 10000; us++) {
        redlock_histogram_add(&histogram, us * US_NS);
    }
    for (int percent = 1; percent <= 100; percent++) {
        const int64_t told_us = redlock_histogram_quantile_us(&histogram, percent / 100.0), true_us = percent * 100;
        assert_true(told_us >= true_us - true_us / 4 && told_us <= true_us + true_us / 4);
    }
}
