/* Checks the arguments of public calls. What is refused is named in a sentence: the argument, its
 * value, and what it must be. No other file compares an argument with its range. */
#ifndef REDLOCK_BASE_CHECK_H
#define REDLOCK_BASE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <redlock/result.h>

#define REDLOCK_INVALID_SIZE   256   /* for a sentence */
#define REDLOCK_TIMEOUT_MS_MAX 60000 /* of nodes and connects */

/* Where the sentence goes. A size of 0 drops it. */
struct redlock_error_text {
    char *text;
    size_t size;
};

/* Writes the sentence. Returns `code`. */
int redlock_fail(struct redlock_error_text *failure, int code, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

/* All checks return REDLOCK_OK or REDLOCK_ERR_INVALID. */

/* For the checks of the same names. */
int redlock_fail_range(struct redlock_error_text *failure, const char *name, int64_t value, int64_t min, int64_t max,
                       const char *note) __attribute__((cold));
int redlock_fail_size(struct redlock_error_text *failure, const char *name, size_t size, size_t min, size_t max,
                      const char *note) __attribute__((cold));
int redlock_fail_enum(struct redlock_error_text *failure, const char *name, int value, const char *type)
    __attribute__((cold));

/* "ttl_ms is 0; it must be 1 to 2147483647". `note` follows: ", or 0 for none"; "" for nothing. A
 * max of INT64_MAX is no limit. */
static inline int redlock_check_range(struct redlock_error_text *failure, const char *name, int64_t value, int64_t min,
                                      int64_t max, const char *note) {
    return value >= min && value <= max ? REDLOCK_OK : redlock_fail_range(failure, name, value, min, max, note);
}

/* A size_t as a value for redlock_check_range(), at most INT64_MAX. */
static inline int64_t redlock_check_count(uint64_t count) {
    return count < INT64_MAX ? (int64_t)count : INT64_MAX;
}

/* "cb is NULL". */
static inline int redlock_check_given(struct redlock_error_text *failure, const char *name, bool given) {
    return given ? REDLOCK_OK : redlock_fail(failure, REDLOCK_ERR_INVALID, "%s is NULL", name);
}

/* "wait_suffix has 70 bytes; it must have 1 to 62". */
static inline int redlock_check_size(struct redlock_error_text *failure, const char *name, size_t size, size_t min,
                                     size_t max, const char *note) {
    return size >= min && size <= max ? REDLOCK_OK : redlock_fail_size(failure, name, size, min, max, note);
}

/* The same, and all bytes are printable ASCII without spaces. NULL is refused. */
int redlock_check_word(struct redlock_error_text *failure, const char *name, const char *word, size_t min, size_t max);

/* "restart_guard is 7; it must be a redlock_restart_guard". */
static inline int redlock_check_enum(struct redlock_error_text *failure, const char *name, int value, int max,
                                     const char *type) {
    return value >= 0 && value <= max ? REDLOCK_OK : redlock_fail_enum(failure, name, value, type);
}

/*
 * Copies the caller's option struct over the defaults in `known`; NULL leaves the defaults. The
 * struct of an older program may be shorter than ours (docs/architecture.md). A size without room
 * for an option is refused: the caller did not call the _default function. A longer struct is
 * refused, too: a newer program may ask for something that this library cannot do.
 */
int redlock_check_options(struct redlock_error_text *failure, const char *type, void *known, size_t known_size,
                          const void *given);

/* A struct that the call fills in is there, and its first member, `size`, was set: "info is NULL",
 * "info.size is 0". */
int redlock_check_struct(struct redlock_error_text *failure, const char *name, const void *given);

/* The same, and the struct has room for `size_min` bytes, without which the call cannot work. */
int redlock_check_struct_of(struct redlock_error_text *failure, const char *name, const void *given, size_t size_min);

/* Copies of `known` as much as the caller's struct has room for, and sets its size to how much that
 * is. The struct has passed redlock_check_struct(). */
void redlock_fill_struct(void *given, const void *known, size_t known_size);

#endif
