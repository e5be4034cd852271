/* Error texts that several votes share. */
#include "text.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct redlock_text *redlock_text_constant(const struct redlock_text *text) {
    assert(text->references == 0);
    /* Never written through: keep and drop leave a constant alone. */
    return (struct redlock_text *)(uintptr_t)text;
}

struct redlock_text *redlock_text_new(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        return NULL;
    size_t size = (size_t)length + 1;
    struct redlock_text *text = malloc(sizeof *text + size);
    if (text == NULL)
        return NULL;
    char *string = (char *)(text + 1);
    va_start(arguments, format);
    (void)vsnprintf(string, size, format, arguments);
    va_end(arguments);
    text->string = string;
    text->references = 1;
    return text;
}

struct redlock_text *redlock_text_keep(struct redlock_text *text) {
    if (text != NULL && text->references != 0)
        text->references++;
    return text;
}

void redlock_text_drop(struct redlock_text *text) {
    if (text == NULL || text->references == 0)
        return;
    if (--text->references == 0)
        free(text);
}

const char *redlock_text_string(const struct redlock_text *text) {
    return text == NULL ? "" : text->string;
}
