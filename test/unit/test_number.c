/* Numbers: digits that are read and written, and sorted numbers. */
#include <string.h>

#include "core/number.h"
#include "core/time.h"
#include "test.h"

static void assert_read(const char *digits, uint64_t most, bool is_read, uint64_t expected) {
    uint64_t number = 42;
    if (redlock_number_read(digits, strlen(digits), most, &number) != is_read || number != expected) {
        fail_msg("'%s' up to %llu: %llu", digits, (unsigned long long)most, (unsigned long long)number);
    }
}

TEST(digits_are_read_up_to_a_limit) {
    assert_read("0", 9, true, 0);
    assert_read("007", 7, true, 7);
    assert_read("8", 7, false, 7);
    assert_read("1000", 999, false, 999);
    assert_read("18446744073709551615", UINT64_MAX, true, UINT64_MAX);
    assert_read("18446744073709551616", UINT64_MAX, false, UINT64_MAX);
    assert_read("99999999999999999999999999999999", UINT64_MAX, false, UINT64_MAX);
    assert_read("99999999999999999999999999999990", 5, false, 5);
}

TEST(other_bytes_are_no_number) {
    static const char *const wrong[] = {
        "", " ", "-1", "+1", "1 ", " 1", "1e3", "0x1", "1.0", "12345678901234567890123x", "/", ":", "\xb1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_read(wrong[i], UINT64_MAX, false, 42);
    }
    uint64_t number = 42;
    assert_false(redlock_number_read("1\0002", 3, UINT64_MAX, &number));
}

TEST(digits_are_written_with_leading_zeros) {
    char digits[20];
    assert_ptr_equal(redlock_number_write(digits, 17, 4), digits + 4);
    assert_memory_equal(digits, "0017", 4);
    assert_ptr_equal(redlock_number_write(digits, UINT64_MAX, 20), digits + 20);
    assert_memory_equal(digits, "18446744073709551615", 20);
}

TEST(inserted_numbers_are_sorted) {
    int64_t numbers[64];
    uint32_t random = 7;
    for (unsigned count = 0; count < 64; count++) {
        redlock_number_insert(numbers, count, redlock_jitter_next(&random) % 40 - INT64_C(20));
        for (unsigned i = 1; i <= count; i++) {
            assert_true(numbers[i - 1] <= numbers[i]);
        }
    }
}
