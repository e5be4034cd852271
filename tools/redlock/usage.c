/* Reports bad input: one sentence, and how to get help. */
#include "usage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"
#include "text.h"

int tool_usage(const struct tool_options *options, const char *format, ...) {
    char *sentence = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&sentence, format, arguments);
    va_end(arguments);
    FILE *out = tool_words_line(options->words);
    fputs("redlock: ", out);
    tool_print_safe(out, length < 0 ? "out of memory while writing a message" : sentence);
    const char *space = options->command == TOOL_NO_COMMAND ? "" : " ";
    fprintf(out, "; see redlock%s%s --help\n", space, tool_command_name(options->command));
    tool_words_send(options->words, TOOL_WORDS_REPORT);
    if (length >= 0) {
        free(sentence);
    }
    return TOOL_EXIT_USAGE;
}

int tool_usage_time(const struct tool_options *options, const char *label, const char *text, int64_t ms_min,
                    int64_t ms_max, int64_t *ms) {
    char shortest[32];
    char longest[32];
    int64_t value = 0;
    switch (tool_duration_parse(text, &value)) {
    case TOOL_DURATION_NO_UNIT:
        return tool_usage(options, "%s %s: a time needs a unit, as in %sms, %ss, %sm or %sh", label, text, text, text,
                          text, text);
    case TOOL_DURATION_MALFORMED:
        return tool_usage(options, "%s '%s': a time is a whole number with a unit, as in 500ms, 10s, 2m, 1h or 1d",
                          label, text);
    case TOOL_DURATION_TOO_LONG:
        value = INT64_MAX;
        break;
    case TOOL_DURATION_OK:
        break;
    }
    if (value < ms_min || value > ms_max) {
        return tool_usage(options, "%s is %s; it must be %s to %s", label, text,
                          tool_duration_format(ms_min, shortest, sizeof shortest),
                          tool_duration_format(ms_max, longest, sizeof longest));
    }
    *ms = value;
    return 0;
}

#define NAME_LENGTH_MAX 32

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t tool_usage_distance(const char *one, size_t one_length, const char *other) {
    size_t other_length = strlen(other);
    size_t row[NAME_LENGTH_MAX + 1]; /* row[k]: from the first i bytes of `one` to k of `other` */
    if (one_length > NAME_LENGTH_MAX || other_length > NAME_LENGTH_MAX) {
        return SIZE_MAX;
    }
    for (size_t k = 0; k <= other_length; k++) {
        row[k] = k;
    }
    for (size_t i = 1; i <= one_length; i++) {
        size_t before = row[0];
        row[0] = i;
        for (size_t k = 1; k <= other_length; k++) {
            size_t replaced = before + (one[i - 1] != other[k - 1]);
            before = row[k];
            row[k] = least(replaced, least(row[k], row[k - 1]) + 1);
        }
    }
    return row[other_length];
}
