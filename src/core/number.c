/* Numbers: as digits, and in order. */
#include "core/number.h"

bool redlock_number_read(const char *digits, size_t size, uint64_t most, uint64_t *number) {
    uint64_t sum = 0;
    bool fits = true;
    for (size_t i = 0; i < size; i++) {
        const unsigned digit = (unsigned char)digits[i] - (unsigned)'0';
        if (digit > 9) {
            return false;
        }
        fits =
            fits && !__builtin_mul_overflow(sum, 10, &sum) && !__builtin_add_overflow(sum, digit, &sum) && sum <= most;
    }
    if (size > 0) {
        *number = fits ? sum : most;
    }
    return size > 0 && fits;
}

char *redlock_number_write(char *digits, uint64_t number, unsigned count) {
    for (unsigned i = count; i > 0; i--) {
        digits[i - 1] = (char)('0' + number % 10);
        number /= 10;
    }
    return digits + count;
}

void redlock_number_insert(int64_t *numbers, unsigned count, int64_t number) {
    unsigned place = count;
    for (; place > 0 && numbers[place - 1] > number; place--) {
        numbers[place] = numbers[place - 1];
    }
    numbers[place] = number;
}
