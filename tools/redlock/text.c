/* Text that came from elsewhere, made safe to print: UTF-8 is checked, control characters are escaped. */
#include "text.h"

#include <stdint.h>

size_t tool_utf8_length(const char *text) {
    const unsigned char *byte = (const unsigned char *)text;
    if (byte[0] < 0x80) {
        return 1;
    }
    /* The second byte's range shuts out overlong forms, surrogates and what is past U+10FFFF (RFC 3629). */
    unsigned low = 0x80;
    unsigned high = 0xBF;
    size_t length;
    if (byte[0] >= 0xC2 && byte[0] <= 0xDF) {
        length = 2;
    } else if (byte[0] >= 0xE0 && byte[0] <= 0xEF) {
        length = 3;
        low = byte[0] == 0xE0 ? 0xA0 : low;
        high = byte[0] == 0xED ? 0x9F : high;
    } else if (byte[0] >= 0xF0 && byte[0] <= 0xF4) {
        length = 4;
        low = byte[0] == 0xF0 ? 0x90 : low;
        high = byte[0] == 0xF4 ? 0x8F : high;
    } else {
        return 0;
    }
    if (byte[1] < low || byte[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (byte[i] < 0x80 || byte[i] > 0xBF) {
            return 0;
        }
    }
    return length;
}

/* Whether the character must be escaped. C1 controls (U+0080 to U+009F) steer some terminals too. */
static int is_unsafe(const char *text, size_t length) {
    const unsigned char *byte = (const unsigned char *)text;
    return length == 0 || (length == 1 && (byte[0] < 0x20 || byte[0] == 0x7F)) ||
           (length == 2 && byte[0] == 0xC2 && byte[1] < 0xA0);
}

void tool_print_safe(FILE *out, const char *text) {
    while (*text != '\0') {
        size_t length = tool_utf8_length(text);
        if (is_unsafe(text, length)) {
            size_t bytes = length == 0 ? 1 : length;
            for (size_t i = 0; i < bytes; i++) {
                fprintf(out, "\\x%02x", (unsigned char)text[i]);
            }
            text += bytes;
        } else {
            fwrite(text, 1, length, out);
            text += length;
        }
    }
}

size_t tool_safe_width(const char *text) {
    size_t width = 0;
    while (*text != '\0') {
        size_t length = tool_utf8_length(text);
        size_t bytes = length == 0 ? 1 : length;
        width += is_unsafe(text, length) ? 4 * bytes : 1;
        text += bytes;
    }
    return width;
}
