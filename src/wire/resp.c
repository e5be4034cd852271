/* Requests as RESP arrays of bulk strings. */
#include "wire/resp.h"

#include <string.h>

/* The digits of each number below 100. */
static const char pairs[] =
    "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444"
    "5464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990"
    "919293949596979899";
_Static_assert(sizeof pairs - 1 == 200, "two digits for each");

static char *digits(char *at, uint64_t value) {
    uint64_t limit = 1000;
    size_t count = 3;
    if (value < 10) {
        *at = (char)('0' + value);
        return at + 1;
    }
    if (value < 100) {
        memcpy(at, pairs + 2 * value, 2);
        return at + 2;
    }
    for (; count < 20 && value >= limit; limit *= 10) {
        count++;
    }
    for (size_t i = count; i > 0; value /= 10) {
        at[--i] = (char)('0' + value % 10);
    }
    return at + count;
}

static char *header(char *at, char kind, uint64_t count) {
    *at++ = kind;
    at = digits(at, count);
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

char *redlock_resp_array(char *at, size_t count) {
    return header(at, '*', count);
}

char *redlock_resp_header(char *at, size_t size) {
    return header(at, '$', size);
}

char *redlock_resp_bulk(char *at, const char *bytes, size_t size) {
    at = header(at, '$', size);
    memcpy(at, bytes, size);
    at += size;
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

char *redlock_resp_number(char *at, uint64_t number) {
    /* Behind its header, which has one digit, or two. */
    char *text = at + (number < 1000000000 ? 4 : 5), *end = digits(text, number);
    header(at, '$', (uint64_t)(end - text));
    *end++ = '\r';
    *end++ = '\n';
    return end;
}

char *redlock_resp_negative(char *at, uint64_t magnitude) {
    char text[24] = "-";
    const char *end = digits(text + 1, magnitude);
    return redlock_resp_bulk(at, text, (size_t)(end - text));
}
