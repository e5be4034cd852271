/* Reports bad input: one sentence, and how to get help. */
#ifndef TOOL_USAGE_H
#define TOOL_USAGE_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"

/* Prints one sentence on stderr, made safe for a terminal. Returns TOOL_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int tool_usage(const struct tool_options *options, const char *format, ...);

/* Reads a time from ms_min to ms_max for the option label ("--ttl"). Returns 0, or TOOL_EXIT_USAGE
 * after printing what is wrong. */
int tool_usage_time(const struct tool_options *options, const char *label, const char *text, int64_t ms_min,
                    int64_t ms_max, int64_t *ms);

/* How far the word is from a name that may have been meant; SIZE_MAX if it is not likely. */
size_t tool_usage_distance(const char *one, size_t one_length, const char *other);

#endif
