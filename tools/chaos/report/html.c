/* HTML and numbers for people. What comes from outside is escaped here, and nowhere else. */
#include "report/html.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD";

/* How many bytes the character has that begins here; 0 if none does. */
static unsigned decode(const unsigned char *s, uint32_t *character) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned length = s[0] < 0x80 ? 1 : s[0] >= 0xF0 && s[0] < 0xF5 ? 4 : s[0] >= 0xE0 ? 3 : s[0] >= 0xC2 ? 2 : 0;
    if (length <= 1) {
        *character = s[0];
        return length;
    }
    *character = s[0] & (0xFFU >> (length + 1));
    for (unsigned i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) {
            return 0;
        }
        *character = *character << 6 | (s[i] & 0x3F);
    }
    bool valid = s[0] < 0xF5 && *character >= smallest[length] && *character <= 0x10FFFF &&
                 (*character < 0xD800 || *character >= 0xE000);
    return valid ? length : 0;
}

/* Control characters except tab and newline, marks that change the line's direction, and noncharacters. */
static bool is_unfit(uint32_t character) {
    return (character < 0x20 && character != '\t' && character != '\n') || (character >= 0x7F && character < 0xA0) ||
           (character >= 0x200B && character <= 0x200F) || (character >= 0x202A && character <= 0x202E) ||
           (character >= 0x2066 && character <= 0x2069) || character == 0x61C || character == 0xFEFF ||
           (character & 0xFFFE) == 0xFFFE || (character >= 0xFDD0 && character <= 0xFDEF);
}

/* Moves to the next character. Returns this one's bytes, or the replacement's. */
static const char *next_fit(const char **at, size_t *length) {
    const char *from = *at;
    uint32_t character;
    unsigned bytes = decode((const unsigned char *)from, &character);
    bool fit = bytes > 0 && !is_unfit(character);
    *at += bytes > 0 ? bytes : 1;
    *length = fit ? bytes : sizeof replacement - 1;
    return fit ? from : replacement;
}

static void put_text(FILE *out, const char *text) {
    static const char special[] = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    while (text != NULL && *text != '\0') {
        size_t length;
        const char *bytes = next_fit(&text, &length);
        const char *found = strchr(special, bytes[0]);
        if (found != NULL) {
            fputs(entities[found - special], out);
        } else {
            fwrite(bytes, 1, length, out);
        }
    }
}

void chaos_html(FILE *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    for (const char *at = format; *at != '\0';) {
        size_t plain = strcspn(at, "%");
        fwrite(at, 1, plain, out);
        at += plain;
        if (*at == '\0') {
            break;
        }
        at++;
        if (*at == 's') {
            put_text(out, va_arg(arguments, const char *));
        } else if (*at == 'd') {
            fputs(chaos_say_count(va_arg(arguments, int), CHAOS_BUFFER), out);
        } else if (strncmp(at, "zu", 2) == 0) {
            fputs(chaos_say_count((int64_t)va_arg(arguments, size_t), CHAOS_BUFFER), out);
            at++;
        } else {
            assert(strncmp(at, PRId64, sizeof PRId64 - 1) == 0);
            fputs(chaos_say_count(va_arg(arguments, int64_t), CHAOS_BUFFER), out);
            at += sizeof PRId64 - 2;
        }
        at++;
    }
    va_end(arguments);
}

json_t *chaos_json_text(const char *text) {
    text = text == NULL ? "" : text;
    char *fit = malloc((sizeof replacement - 1) * strlen(text) + 1), *to = fit;
    if (fit == NULL) {
        return NULL;
    }
    while (*text != '\0') {
        size_t length;
        const char *bytes = next_fit(&text, &length);
        memcpy(to, bytes, length);
        to += length;
    }
    json_t *json = json_stringn(fit, (size_t)(to - fit));
    free(fit);
    return json;
}

/* "<" would end the element, or begin another one in it. In JSON it stands in strings only. */
static int put_json(const char *bytes, size_t size, void *data) {
    FILE *out = data;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '<') {
            fputs("\\u003c", out);
        } else {
            putc(bytes[i], out);
        }
    }
    return 0;
}

bool chaos_html_json(FILE *out, const json_t *json) {
    return json != NULL && json_dump_callback(json, put_json, out, JSON_COMPACT | JSON_ENSURE_ASCII) == 0;
}

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
