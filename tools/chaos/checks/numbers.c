/* Numbers for people. */
#include "checks/numbers.h"

#include <inttypes.h>
#include <stdio.h>

char *chaos_say_count(int64_t number, char *buffer) {
    char digits[CHAOS_NUMBER_SIZE];
    int length = snprintf(digits, sizeof digits, "%" PRId64, number);
    char *to = buffer;
    for (int i = 0; i < length; i++) {
        *to++ = digits[i];
        if ((length - 1 - i) % 3 == 0 && i < length - 1 && digits[i] != '-') {
            *to++ = ',';
        }
    }
    *to = '\0';
    return buffer;
}

/* Three digits of number / unit, unit being a power of ten from 100 up. */
static void three_digits(int64_t number, int64_t unit, const char *name, char *buffer) {
    int decimals = number >= 100 * unit ? 0 : number >= 10 * unit ? 1 : 2;
    int64_t step = decimals == 0 ? unit : decimals == 1 ? unit / 10 : unit / 100;
    int64_t rounded = (number + step / 2) / step, whole = rounded * step / unit, rest = rounded * step % unit / step;
    if (decimals == 0) {
        snprintf(buffer, CHAOS_NUMBER_SIZE, "%" PRId64 " %s", whole, name);
    } else {
        snprintf(buffer, CHAOS_NUMBER_SIZE, "%" PRId64 ".%0*" PRId64 " %s", whole, decimals, rest, name);
    }
}

char *chaos_say_duration(int64_t us, char *buffer) {
    if (us < 0) {
        snprintf(buffer, CHAOS_NUMBER_SIZE, "?");
    } else if (us < 1000) {
        snprintf(buffer, CHAOS_NUMBER_SIZE, "%" PRId64 " µs", us);
    } else if (us < 999500) {
        three_digits(us, 1000, "ms", buffer);
    } else if (us < INT64_C(99950000)) {
        three_digits(us, 1000000, "s", buffer);
    } else {
        int64_t seconds = us / 1000000 + (us % 1000000 >= 500000);
        snprintf(buffer, CHAOS_NUMBER_SIZE, "%" PRId64 " min %" PRId64 " s", seconds / 60, seconds % 60);
    }
    return buffer;
}

char *chaos_say_time(int64_t us, char *buffer) {
    int64_t ms = (us + (us < 0 ? -500 : 500)) / 1000;
    snprintf(buffer, CHAOS_NUMBER_SIZE, "%s%" PRId64 ".%03" PRId64 " s", ms < 0 ? "-" : "",
             ms / 1000 * (ms < 0 ? -1 : 1), ms % 1000 * (ms < 0 ? -1 : 1));
    return buffer;
}

char *chaos_say_share(int64_t share_10000, char *buffer) {
    if (share_10000 == 10000) {
        snprintf(buffer, CHAOS_NUMBER_SIZE, "100 %%");
    } else {
        snprintf(buffer, CHAOS_NUMBER_SIZE, "%" PRId64 ".%02" PRId64 " %%", share_10000 / 100, share_10000 % 100);
    }
    return buffer;
}

char *chaos_say_many(int64_t number, const char *word, char *buffer) {
    char count[CHAOS_NUMBER_SIZE];
    snprintf(buffer, CHAOS_NUMBER_SIZE, "%s %s%s", chaos_say_count(number, count), word, number == 1 ? "" : "s");
    return buffer;
}
