/* Error texts that several votes share, each with its cause. */
#include "base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct redlock_text *redlock_text_constant(const struct redlock_text *text) {
    assert(text->references == 0);
    /* Nobody writes through this pointer: redlock_text_keep() and redlock_text_drop() skip
     * constants. */
    return (struct redlock_text *)(uintptr_t)text;
}

struct redlock_text *redlock_text_new(enum redlock_cause cause, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return NULL;
    }
    size_t size = (size_t)length + 1;
    struct redlock_text *text = malloc(sizeof *text + size);
    if (text == NULL) {
        return NULL;
    }
    char *string = (char *)(text + 1);
    va_start(arguments, format);
    (void)vsnprintf(string, size, format, arguments);
    va_end(arguments);
    text->string = string;
    text->references = 1;
    text->cause = cause;
    return text;
}

void redlock_text_drop_counted(struct redlock_text *text) {
    assert(text->references > 0);
    if (--text->references == 0) {
        free(text);
    }
}

void redlock_text_printable(const char *string, char *buffer, size_t size) {
    assert(size > 0);
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;
    for (const char *c = string; *c != '\0'; c++) {
        const unsigned char byte = (unsigned char)*c;
        const bool plain = byte >= 0x20 && byte != 0x7f;
        if (used + (plain ? 1 : 4) >= size) {
            break;
        }
        if (plain) {
            buffer[used++] = *c;
        } else {
            memcpy(buffer + used, (const char[4]){'\\', 'x', digits[byte >> 4], digits[byte & 15]}, 4);
            used += 4;
        }
    }
    buffer[used] = '\0';
}
