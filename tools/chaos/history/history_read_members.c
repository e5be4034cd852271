/* The members of one event, read strictly: each of its type and within its range. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/lists.h"
#include "history/history_read.h"

void chaos_wrong_member(struct chaos_reading *reading, const char *key, const char *format, ...) {
    const json_t *value = json_object_get(reading->event, key);
    char *shown = value == NULL ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    char expected[96];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected, sizeof expected, format, arguments);
    va_end(arguments);
    chaos_reading_wrong(reading, "%s: \"%s\" is %.60s; %s is expected", reading->event_name, key,
                        value == NULL   ? "missing"
                        : shown == NULL ? "wrong"
                                        : shown,
                        expected);
    free(shown);
}

int64_t chaos_get_number(struct chaos_reading *reading, const char *key, int64_t min, int64_t max) {
    const json_t *value = json_object_get(reading->event, key);
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < min || number > max) {
        chaos_wrong_member(reading, key, "a number from %" PRId64 " to %" PRId64, min, max);
    }
    return number;
}

int64_t chaos_get_optional(struct chaos_reading *reading, const char *key, int64_t max) {
    return json_object_get(reading->event, key) == NULL ? 0 : chaos_get_number(reading, key, 0, max);
}

/* Numbers from 1 become indexes from 0. */
int chaos_get_client(struct chaos_reading *reading) {
    return (int)chaos_get_number(reading, "client", 1, (int64_t)reading->history->client_count) - 1;
}

int chaos_get_resource(struct chaos_reading *reading) {
    return (int)chaos_get_number(reading, "resource", 1, (int64_t)reading->history->resource_count) - 1;
}

bool chaos_get_flag(struct chaos_reading *reading, const char *key) {
    const json_t *value = json_object_get(reading->event, key);
    if (!json_is_boolean(value)) {
        chaos_wrong_member(reading, key, "true or false");
    }
    return json_is_true(value);
}

bool chaos_get_option(struct chaos_reading *reading, const char *key) {
    return json_object_get(reading->event, key) != NULL && chaos_get_flag(reading, key);
}

const char *chaos_get_text(struct chaos_reading *reading, const char *key, size_t min, size_t max) {
    const json_t *value = json_object_get(reading->event, key);
    size_t length = json_string_length(value);
    if (!json_is_string(value) || length < min || length > max) {
        chaos_wrong_member(reading, key, "a text of %zu to %zu bytes", min, max);
        return "";
    }
    return json_string_value(value);
}

void chaos_get_chars(struct chaos_reading *reading, const char *key, size_t min, char *buffer, size_t size) {
    snprintf(buffer, size, "%s", chaos_get_text(reading, key, min, size - 1));
}

bool chaos_get_word(struct chaos_reading *reading, const char *key, const char *first, const char *second) {
    const char *text = chaos_get_text(reading, key, 0, CHAOS_TEXT_MAX);
    bool is_second = strcmp(text, second) == 0;
    if (!is_second && strcmp(text, first) != 0) {
        chaos_wrong_member(reading, key, "\"%s\" or \"%s\"", first, second);
    }
    return is_second;
}

const json_t *chaos_get_list(struct chaos_reading *reading, const char *key, size_t min, size_t max) {
    const json_t *list = json_object_get(reading->event, key);
    if (!json_is_array(list) || json_array_size(list) < min || json_array_size(list) > max) {
        chaos_wrong_member(reading, key, "a list of %zu to %zu", min, max);
        return NULL;
    }
    return list;
}

char **chaos_copy_texts(struct chaos_reading *reading, const char *key, size_t min, size_t max, size_t *count) {
    const json_t *list = chaos_get_list(reading, key, min, max);
    char **texts = chaos_allocate(json_array_size(list), sizeof *texts);
    for (*count = 0; *count < json_array_size(list); ++*count) {
        const char *text = json_string_value(json_array_get(list, *count));
        if (text == NULL) {
            chaos_wrong_member(reading, key, "a list of texts");
        }
        texts[*count] = chaos_copy(text == NULL ? "" : text);
    }
    return texts;
}

uint64_t chaos_get_set(struct chaos_reading *reading, const char *key, size_t count) {
    const json_t *list = chaos_get_list(reading, key, 0, count);
    uint64_t set = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t number = json_integer_value(json_array_get(list, i)); /* 0 for anything else */
        if (number < 1 || number > (json_int_t)count) {
            chaos_wrong_member(reading, key, "a list of numbers from 1 to %zu", count);
            return 0;
        }
        set |= UINT64_C(1) << (number - 1);
    }
    return set;
}
