/* HTML and JSON for the page. What comes from outside is escaped here, and nowhere else. */
#include "report/html.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "faults/lists.h"
#include "values/values.h"

static const char replacement[] = "\xEF\xBF\xBD";

/* Control characters except tab and newline, marks that change the line's direction, and
 * noncharacters. */
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
    size_t bytes = tool_utf8_read(from, &character);
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
    while (*format != '\0') {
        size_t plain = strcspn(format, "%");
        fwrite(format, 1, plain, out);
        format += plain;
        if (*format != '\0') {
            assert(format[1] == 's');
            put_text(out, va_arg(arguments, const char *));
            format += 2;
        }
    }
    va_end(arguments);
}

json_t *chaos_json_text(const char *text) {
    text = text == NULL ? "" : text;
    char *fit = chaos_allocate(sizeof replacement - 1, strlen(text) + 1), *to = fit;
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
