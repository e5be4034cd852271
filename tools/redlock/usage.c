/* Reports bad input: one sentence, and how to get help. */
#include "usage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "operands.h"
#include "report.h"
#include "values/values.h"

int tool_usage(const struct tool_options *options, const char *format, ...) {
    char sentence[8192];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    (void)tool_append(sentence, sizeof sentence, "; see redlock%s%s --help",
                      options->command == TOOL_NO_COMMAND ? "" : " ", tool_command_name(options->command));
    tool_report_line(options, TOOL_WORDS_ERROR, TOOL_WORDS_REPORT, "error", redlock_error_name(REDLOCK_ERR_INVALID), "",
                     sentence);
    return TOOL_EXIT_USAGE;
}

int tool_usage_time(const struct tool_options *options, const char *label, const char *text, int64_t ms_min,
                    int64_t ms_max, int64_t *ms) {
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
        return tool_usage(options, "%s is %s; it must be %s to %s", label, text, TOOL_DURATION(ms_min),
                          TOOL_DURATION(ms_max));
    }
    *ms = value;
    return 0;
}

#define NAME_LENGTH_MAX 32

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The bytes to insert, leave out, replace, or swap with the next one. */
static size_t distance(const char *one, size_t one_length, const char *other) {
    size_t other_length = strlen(other);
    /* From the first i bytes of `one` to k of `other`. */
    size_t from[NAME_LENGTH_MAX + 1][NAME_LENGTH_MAX + 1];
    if (one_length > NAME_LENGTH_MAX || other_length > NAME_LENGTH_MAX) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i <= one_length; i++) {
        for (size_t k = 0; k <= other_length; k++) {
            if (i == 0 || k == 0) {
                from[i][k] = i + k;
                continue;
            }
            size_t replaced = from[i - 1][k - 1] + (one[i - 1] != other[k - 1]);
            from[i][k] = least(replaced, least(from[i - 1][k], from[i][k - 1]) + 1);
            if (i > 1 && k > 1 && one[i - 1] == other[k - 2] && one[i - 2] == other[k - 1]) {
                from[i][k] = least(from[i][k], from[i - 2][k - 2] + 1);
            }
        }
    }
    return from[one_length][other_length];
}

/* The name's beginning, or a whole word of it, such as "timeout" of "node-timeout". */
static bool is_part_of(const char *one, size_t one_length, const char *other) {
    if (one_length > 2 && strncmp(one, other, one_length) == 0) {
        return true;
    }
    for (const char *word = other; word != NULL; word = strchr(word, '-')) {
        word += *word == '-';
        const char end = strncmp(word, one, one_length) == 0 ? word[one_length] : 'x';
        if (one_length > 2 && (end == '\0' || end == '-')) {
            return true;
        }
    }
    return false;
}

size_t tool_usage_distance(const char *one, size_t one_length, const char *other) {
    const size_t most = least(one_length / 3, 2);
    const size_t apart = distance(one, one_length, other);
    return apart <= (most > 0 ? most : 1) ? apart : is_part_of(one, one_length, other) ? most + 1 : SIZE_MAX;
}
