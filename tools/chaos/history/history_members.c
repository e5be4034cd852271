/* The members of one event, read strictly (each of its type and within its range), and the lists of
 * the history that it is added to. */
#include "history/history_members.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool chaos_wrong_member(struct chaos_reading *reading, const char *key, const char *format, ...) {
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
    return false;
}

bool chaos_get_number(struct chaos_reading *reading, const char *key, int64_t min, int64_t max, int64_t *number) {
    const json_t *value = json_object_get(reading->event, key);
    *number = json_integer_value(value);
    return (json_is_integer(value) && *number >= min && *number <= max) ||
           chaos_wrong_member(reading, key, "a number from %" PRId64 " to %" PRId64, min, max);
}

bool chaos_get_optional(struct chaos_reading *reading, const char *key, int64_t min, int64_t max, int64_t *number) {
    *number = 0;
    return json_object_get(reading->event, key) == NULL || chaos_get_number(reading, key, min, max, number);
}

/* Numbers from 1 become indexes from 0. */
static bool get_index(struct chaos_reading *reading, const char *key, size_t count, int *index) {
    int64_t number = 0;
    bool worked = chaos_get_number(reading, key, 1, (int64_t)count, &number);
    *index = (int)number - 1;
    return worked;
}

bool chaos_get_client(struct chaos_reading *reading, int *client) {
    return get_index(reading, "client", reading->history->client_count, client);
}

bool chaos_get_resource(struct chaos_reading *reading, int *resource) {
    return get_index(reading, "resource", reading->history->resource_count, resource);
}

bool chaos_get_flag(struct chaos_reading *reading, const char *key, bool *flag) {
    const json_t *value = json_object_get(reading->event, key);
    *flag = json_is_true(value);
    return json_is_boolean(value) || chaos_wrong_member(reading, key, "true or false");
}

bool chaos_get_option(struct chaos_reading *reading, const char *key, bool *flag) {
    *flag = false;
    return json_object_get(reading->event, key) == NULL || chaos_get_flag(reading, key, flag);
}

bool chaos_get_text(struct chaos_reading *reading, const char *key, size_t min, size_t max, const char **text) {
    const json_t *value = json_object_get(reading->event, key);
    *text = json_string_value(value);
    return (*text != NULL && json_string_length(value) >= min && json_string_length(value) <= max) ||
           chaos_wrong_member(reading, key, "a text of %zu to %zu bytes", min, max);
}

bool chaos_get_chars(struct chaos_reading *reading, const char *key, size_t min, char *buffer, size_t size) {
    const char *text;
    bool worked = chaos_get_text(reading, key, min, size - 1, &text);
    snprintf(buffer, size, "%s", worked ? text : "");
    return worked;
}

bool chaos_get_word(struct chaos_reading *reading, const char *key, const char *first, const char *second,
                    bool *is_second) {
    const char *text;
    if (!chaos_get_text(reading, key, 0, CHAOS_TEXT_MAX, &text)) {
        return false;
    }
    *is_second = strcmp(text, second) == 0;
    return *is_second || strcmp(text, first) == 0 ||
           chaos_wrong_member(reading, key, "\"%s\" or \"%s\"", first, second);
}

bool chaos_no_memory(struct chaos_reading *reading) {
    return chaos_reading_wrong(reading, "out of memory");
}

/* A copy that the caller owns. */
static bool copy(struct chaos_reading *reading, const char *text, char **copied) {
    *copied = strdup(text);
    return *copied != NULL || chaos_no_memory(reading);
}

bool chaos_copy_words(struct chaos_reading *reading, const char *text, char **copied) {
    return text[0] == '\0' || copy(reading, text, copied);
}

bool chaos_copy_text(struct chaos_reading *reading, const char *key, char **copied) {
    const char *text;
    return chaos_get_text(reading, key, 0, CHAOS_TEXT_MAX, &text) && copy(reading, text, copied);
}

bool chaos_get_list(struct chaos_reading *reading, const char *key, size_t min, size_t max, const json_t **list) {
    *list = json_object_get(reading->event, key);
    return (json_is_array(*list) && json_array_size(*list) >= min && json_array_size(*list) <= max) ||
           chaos_wrong_member(reading, key, "a list of %zu to %zu", min, max);
}

bool chaos_copy_texts(struct chaos_reading *reading, const char *key, size_t min, size_t max, char ***texts,
                      size_t *count) {
    const json_t *list;
    if (!chaos_get_list(reading, key, min, max, &list)) {
        return false;
    }
    size_t size = json_array_size(list);
    *texts = calloc(size + 1, sizeof **texts);
    if (*texts == NULL) {
        return chaos_no_memory(reading);
    }
    for (*count = 0; *count < size; ++*count) {
        const char *text = json_string_value(json_array_get(list, *count));
        if (text == NULL) {
            return chaos_wrong_member(reading, key, "a list of texts");
        }
        if (!copy(reading, text, &(*texts)[*count])) {
            return false;
        }
    }
    return true;
}

bool chaos_get_set(struct chaos_reading *reading, const char *key, size_t count, uint64_t *set) {
    const json_t *list;
    if (!chaos_get_list(reading, key, 0, count, &list)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t number = json_integer_value(json_array_get(list, i)); /* 0 for anything else */
        if (number < 1 || number > (json_int_t)count) {
            return chaos_wrong_member(reading, key, "a list of numbers from 1 to %zu", count);
        }
        *set |= UINT64_C(1) << (number - 1);
    }
    return true;
}

void *chaos_add(struct chaos_reading *reading, void *list, size_t *count, size_t size) {
    void *at;
    memcpy(&at, list, sizeof at);
    /* Full at each power of two. */
    if ((*count & (*count - 1)) == 0) {
        at = realloc(at, (*count == 0 ? 1 : *count * 2) * size);
        if (at == NULL) {
            chaos_no_memory(reading);
            return NULL;
        }
        memcpy(list, &at, sizeof at);
    }
    return memset((char *)at + (*count)++ * size, 0, size);
}

static const char *spell(const struct chaos_key *key, char text[96]) {
    snprintf(text, 96, "%s %d %" PRId64 " %s", key->kind, key->client, key->number, key->token);
    return text;
}

json_int_t chaos_find(struct chaos_reading *reading, const struct chaos_key *key) {
    const json_t *index = json_object_get(reading->known, spell(key, (char[96]){0}));
    return index == NULL ? CHAOS_UNKNOWN : json_integer_value(index);
}

bool chaos_note(struct chaos_reading *reading, const struct chaos_key *key, json_int_t index) {
    return json_object_set_new(reading->known, spell(key, (char[96]){0}), json_integer(index)) == 0 ||
           chaos_no_memory(reading);
}
