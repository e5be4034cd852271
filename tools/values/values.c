/* Reads and writes numbers and times as people write them; reads UTF-8. */
#include "values/values.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MS_PER_S = 1000, MS_PER_MIN = 60 * MS_PER_S, MS_PER_H = 60 * MS_PER_MIN, MS_PER_DAY = 24 * MS_PER_H };

static const struct {
    const char *name;
    int64_t ms;
} units[] = {{"ms", 1}, {"s", MS_PER_S}, {"m", MS_PER_MIN}, {"h", MS_PER_H}, {"d", MS_PER_DAY}};

static int64_t unit_ms(const char *unit) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].name) == 0) {
            return units[i].ms;
        }
    }
    return 0;
}

bool tool_number_read(const char *text, int64_t most, int64_t *number, const char **end) {
    size_t digits = strspn(text, "0123456789");
    int64_t read = 0;
    for (size_t i = 0; i < digits; i++) {
        int64_t digit = text[i] - '0';
        if (digit > most || read > (most - digit) / 10) {
            return false;
        }
        read = read * 10 + digit;
    }
    if (digits == 0 || (end == NULL && text[digits] != '\0')) {
        return false;
    }
    if (end != NULL) {
        *end = text + digits;
    }
    *number = read;
    return true;
}

int tool_number_order(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

enum tool_duration_error tool_duration_parse(const char *text, int64_t *ms) {
    int64_t number;
    const char *name;
    if (!tool_number_read(text, INT64_MAX, &number, &name)) {
        return *text >= '0' && *text <= '9' ? TOOL_DURATION_TOO_LONG : TOOL_DURATION_MALFORMED;
    }
    if (*name == '\0') {
        *ms = 0;
        return number == 0 ? TOOL_DURATION_OK : TOOL_DURATION_NO_UNIT;
    }
    int64_t unit = unit_ms(name);
    if (unit == 0) {
        return TOOL_DURATION_MALFORMED;
    }
    if (number > INT64_MAX / unit) {
        return TOOL_DURATION_TOO_LONG;
    }
    *ms = number * unit;
    return TOOL_DURATION_OK;
}

const char *tool_duration_format(int64_t ms, char *buffer, size_t size) {
    if (ms < MS_PER_S) {
        snprintf(buffer, size, "%" PRId64 "ms", ms);
    } else if (ms < MS_PER_MIN) {
        snprintf(buffer, size, "%" PRId64 ".%" PRId64 "s", ms / MS_PER_S, ms % MS_PER_S / 100);
    } else if (ms < MS_PER_H) {
        snprintf(buffer, size, "%" PRId64 "m %" PRId64 "s", ms / MS_PER_MIN, ms % MS_PER_MIN / MS_PER_S);
    } else if (ms < MS_PER_DAY) {
        snprintf(buffer, size, "%" PRId64 "h %" PRId64 "m", ms / MS_PER_H, ms % MS_PER_H / MS_PER_MIN);
    } else {
        snprintf(buffer, size, "%" PRId64 "d %" PRId64 "h", ms / MS_PER_DAY, ms % MS_PER_DAY / MS_PER_H);
    }
    return buffer;
}

const char *tool_duration_exact(int64_t ms, char *buffer, size_t size) {
    size_t unit = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        unit = ms != 0 && ms % units[i].ms == 0 ? i : unit;
    }
    snprintf(buffer, size, "%" PRId64 "%s", ms / units[unit].ms, units[unit].name);
    return buffer;
}

char *tool_text(char *buffer, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(buffer, size, format, arguments);
    va_end(arguments);
    return buffer;
}

size_t tool_append(char *buffer, size_t size, const char *format, ...) {
    const size_t used = strlen(buffer);
    va_list arguments;
    va_start(arguments, format);
    const int more = vsnprintf(buffer + used, size - used, format, arguments);
    va_end(arguments);
    return used + (more > 0 ? (size_t)more : 0);
}

/* The range of the second byte excludes overlong forms, surrogates and codes above U+10FFFF (RFC
 * 3629). */
static size_t sequence_length(const unsigned char *byte, unsigned *low, unsigned *high) {
    *low = 0x80;
    *high = 0xBF;
    if (byte[0] >= 0xC2 && byte[0] <= 0xDF) {
        return 2;
    }
    if (byte[0] >= 0xE0 && byte[0] <= 0xEF) {
        *low = byte[0] == 0xE0 ? 0xA0 : *low;
        *high = byte[0] == 0xED ? 0x9F : *high;
        return 3;
    }
    if (byte[0] >= 0xF0 && byte[0] <= 0xF4) {
        *low = byte[0] == 0xF0 ? 0x90 : *low;
        *high = byte[0] == 0xF4 ? 0x8F : *high;
        return 4;
    }
    return 0;
}

size_t tool_utf8_read(const char *text, uint32_t *code) {
    const unsigned char *byte = (const unsigned char *)text;
    unsigned low;
    unsigned high;
    *code = byte[0];
    if (byte[0] < 0x80) {
        return 1;
    }
    size_t length = sequence_length(byte, &low, &high);
    if (length == 0 || byte[1] < low || byte[1] > high) {
        return 0;
    }
    *code = byte[0] & (0x7FU >> length);
    for (size_t i = 1; i < length; i++) {
        if (byte[i] < 0x80 || byte[i] > 0xBF) {
            return 0;
        }
        *code = *code << 6 | (byte[i] & 0x3FU);
    }
    return length;
}
