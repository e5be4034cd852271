/* How bad input is told: one sentence, and where the help is. */
#ifndef TOOL_USAGE_H
#define TOOL_USAGE_H

#include <stdint.h>

#include "options.h"

/* One sentence on stderr, with what came from the command line made safe for a terminal. Returns TOOL_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int tool_usage(const struct tool_options *options, const char *format, ...);

/* Reads a time from ms_min to ms_max; label says whose it is ("--ttl"). Returns 0, or TOOL_EXIT_USAGE after saying what is wrong. */
int tool_usage_time(const struct tool_options *options, const char *label, const char *text, int64_t ms_min,
                    int64_t ms_max, int64_t *ms);

#endif
