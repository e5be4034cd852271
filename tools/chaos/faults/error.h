/* Why something failed, in a sentence. */
#ifndef CHAOS_ERROR_H
#define CHAOS_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

struct chaos_error {
    char text[1024]; /* what is longer is cut off */
};

/* Writes the sentence, unless `error` is NULL, for a caller that asks for none. Returns false. The
 * arguments are not of error->text. */
__attribute__((format(printf, 2, 3))) static inline bool chaos_fail(struct chaos_error *error, const char *format,
                                                                    ...) {
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return false;
}

#endif
