/* Text and numbers of the page: what came from outside is escaped here, and nowhere else. */
#include "report/report_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

enum { REPLACEMENT = 0xFFFD };

/* The next character; a byte that begins none is U+FFFD and one byte long. */
static uint32_t next_character(const unsigned char **at) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = *at;
    unsigned length = s[0] < 0x80 ? 1 : s[0] >= 0xF0 && s[0] < 0xF5 ? 4 : s[0] >= 0xE0 ? 3 : s[0] >= 0xC2 ? 2 : 0;
    *at = s + 1;
    if (length == 1) {
        return s[0];
    }
    if (length == 0 || s[0] >= 0xF5) {
        return REPLACEMENT;
    }
    uint32_t character = s[0] & (0xFFU >> (length + 1));
    for (unsigned i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) {
            return REPLACEMENT;
        }
        character = character << 6 | (s[i] & 0x3F);
    }
    if (character < smallest[length] || character > 0x10FFFF || (character >= 0xD800 && character < 0xE000)) {
        return REPLACEMENT;
    }
    *at = s + length;
    return character;
}

/* Controls but for tab and newline, marks that turn the line around, and what is no character. */
static bool is_unfit(uint32_t character) {
    return (character < 0x20 && character != '\t' && character != '\n') || (character >= 0x7F && character < 0xA0) ||
           (character >= 0x200B && character <= 0x200F) || (character >= 0x202A && character <= 0x202E) ||
           (character >= 0x2066 && character <= 0x2069) || character == 0x61C || character == 0xFEFF ||
           (character & 0xFFFE) == 0xFFFE || (character >= 0xFDD0 && character <= 0xFDEF);
}

static void put_character(FILE *out, uint32_t character) {
    if (character < 0x80) {
        putc((int)character, out);
        return;
    }
    if (character < 0x800) {
        putc((int)(0xC0 | character >> 6), out);
    } else if (character < 0x10000) {
        putc((int)(0xE0 | character >> 12), out);
        putc((int)(0x80 | (character >> 6 & 0x3F)), out);
    } else {
        putc((int)(0xF0 | character >> 18), out);
        putc((int)(0x80 | (character >> 12 & 0x3F)), out);
        putc((int)(0x80 | (character >> 6 & 0x3F)), out);
    }
    putc((int)(0x80 | (character & 0x3F)), out);
}

static uint32_t next_fit(const unsigned char **at) {
    uint32_t character = next_character(at);
    return is_unfit(character) ? REPLACEMENT : character;
}

void chaos_page_text(FILE *out, const char *text) {
    const unsigned char *at = (const unsigned char *)(text == NULL ? "" : text);
    while (*at != '\0') {
        uint32_t character = next_fit(&at);
        switch (character) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            put_character(out, character);
        }
    }
}

void chaos_page_json(FILE *out, const char *text) {
    const unsigned char *at = (const unsigned char *)(text == NULL ? "" : text);
    putc('"', out);
    while (*at != '\0') {
        uint32_t character = next_fit(&at);
        bool plain = character >= 0x20 && strchr("\"\\<>&'", character < 0x80 ? (int)character : 'a') == NULL &&
                     character != 0x2028 && character != 0x2029;
        if (plain) {
            put_character(out, character);
        } else {
            fprintf(out, "\\u%04" PRIx32, character);
        }
    }
    putc('"', out);
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

/* Three digits that count of number / unit, unit being a power of ten from 100 up. */
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
