/* Checks the arguments of public calls, and says what is wrong. */
#include "base/check.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/holder.h"

int redlock_fail(struct redlock_error_text *failure, int code, const char *format, ...) {
    assert(code != REDLOCK_OK);
    if (failure->size > 0) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(failure->text, failure->size, format, arguments);
        va_end(arguments);
    }
    return code;
}

int redlock_fail_range(struct redlock_error_text *failure, const char *name, int64_t value, int64_t min, int64_t max,
                       const char *note) {
    assert(value < min || value > max);
    if (max == INT64_MAX) {
        return redlock_fail(failure, REDLOCK_ERR_INVALID, "%s is %" PRId64 "; it must be %" PRId64 " or more%s", name,
                            value, min, note);
    }
    return redlock_fail(failure, REDLOCK_ERR_INVALID, "%s is %" PRId64 "; it must be %" PRId64 " to %" PRId64 "%s",
                        name, value, min, max, note);
}

int redlock_fail_size(struct redlock_error_text *failure, const char *name, size_t size, size_t min, size_t max,
                      const char *note) {
    assert(size < min || size > max);
    return redlock_fail(failure, REDLOCK_ERR_INVALID, "%s has %zu bytes; it must have %zu to %zu%s", name, size, min,
                        max, note);
}

int redlock_check_word(struct redlock_error_text *failure, const char *name, const char *word, size_t min, size_t max) {
    int code = redlock_check_given(failure, name, word != NULL);
    assert(min <= max);
    for (size_t i = 0; code == REDLOCK_OK && word[i] != '\0' && i < max; i++) {
        if (!redlock_holder_allows(word[i])) {
            code = redlock_fail(failure, REDLOCK_ERR_INVALID,
                                "%s has a space or a byte that is not printable ASCII at position %zu", name, i + 1);
        }
    }
    return code == REDLOCK_OK ? redlock_check_size(failure, name, strlen(word), min, max, "") : code;
}

int redlock_fail_enum(struct redlock_error_text *failure, const char *name, int value, const char *type) {
    return redlock_fail(failure, REDLOCK_ERR_INVALID, "%s is %d; it must be a %s", name, value, type);
}

/* Room for nothing but `size` itself. It is also what `sizeof` of a pointer gives, where the struct
 * was meant. */
#define EMPTY_SIZE sizeof(size_t)

/* The first member of each struct that crosses the border. */
static size_t size_of(const void *given) {
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

int redlock_check_options(struct redlock_error_text *failure, const char *type, void *known, size_t known_size,
                          const void *given) {
    assert(known_size > EMPTY_SIZE);
    if (given == NULL) {
        return REDLOCK_OK;
    }
    const size_t given_size = size_of(given);
    if (given_size > EMPTY_SIZE && given_size <= known_size) {
        memcpy(known, given, given_size);
        return REDLOCK_OK;
    }
    return redlock_fail(failure, REDLOCK_ERR_INVALID,
                        "options.size is %zu; it must be %zu to %zu: call %s_default() first, and build against the "
                        "header of this library or an older one",
                        given_size, EMPTY_SIZE + 1, known_size, type);
}

int redlock_check_struct(struct redlock_error_text *failure, const char *name, const void *given) {
    return redlock_check_struct_of(failure, name, given, EMPTY_SIZE + 1);
}

int redlock_check_struct_of(struct redlock_error_text *failure, const char *name, const void *given, size_t size_min) {
    assert(size_min > EMPTY_SIZE);
    if (given == NULL) {
        return redlock_check_given(failure, name, false);
    }
    const size_t size = size_of(given);
    return size >= size_min
               ? REDLOCK_OK
               : redlock_fail(failure, REDLOCK_ERR_INVALID,
                              "%s.size is %zu; set it to the size of the struct before the call", name, size);
}

void redlock_fill_struct(void *given, const void *known, size_t known_size) {
    const size_t given_size = size_of(given);
    const size_t size = given_size < known_size ? given_size : known_size;
    assert(size > EMPTY_SIZE);
    memcpy(given, known, size);
    memcpy(given, &size, sizeof size);
}
