/* A history read from JSON lines: each line's event is taken in its turn, not in the file's. Its
 * members are read strictly, each of its type and within its range. */
#include "history/history_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults/lists.h"

void chaos_reading_refuse(struct chaos_reading *reading, const char *why) {
    if (!reading->wrong) {
        reading->wrong = true;
        chaos_fail(reading->error, "%s%s: %s", reading->name,
                   reading->line > 0 ? TOOL_TEXT(32, ":%zu", reading->line) : "", why);
    }
}

void chaos_member_refuse(struct chaos_reading *reading, const char *key, const char *expected) {
    const json_t *value = json_object_get(reading->event, key);
    char *shown = value == NULL ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
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

/* Reads the line's object in place of the one before. False if it is wrong. */
static bool load(struct chaos_reading *reading, const struct chaos_line *line) {
    json_error_t why = {.text = ""};
    json_decref(reading->event);
    reading->event = json_loadb(line->text, line->length, JSON_REJECT_DUPLICATES, &why);
    reading->line = line->number;
    if (reading->event == NULL && (why.text[0] == '\0' || json_error_code(&why) == json_error_out_of_memory)) {
        chaos_no_memory(line->length);
    }
    if (reading->event == NULL) {
        chaos_reading_wrong(reading, "not JSON: %s", why.text);
    } else if (!json_is_object(reading->event)) {
        chaos_reading_wrong(reading, "not an event: a JSON object is expected");
    }
    return !reading->wrong;
}

/* All lines, each with its place. They are kept as text: that is the least. */
static void read_lines(struct chaos_reading *reading, FILE *in, struct chaos_lines *lines) {
    enum chaos_next next;
    errno = 0;
    while ((next = chaos_lines_next(lines, in)) == CHAOS_NEXT_LINE) {
        struct chaos_line *line = &lines->at[lines->count - 1];
        if (!load(reading, line)) {
            return;
        }
        if (!chaos_reading_place(reading, line)) {
            chaos_lines_drop(lines);
        }
    }
    reading->line = lines->read;
    if (next == CHAOS_NEXT_BROKEN) {
        chaos_reading_wrong(reading, "cannot be read: %s", strerror(errno));
    }
}

static void take_lines(struct chaos_reading *reading, const struct chaos_lines *lines) {
    if (lines->count == 0 || lines->at[0].pass != 0) {
        reading->line = 0;
        chaos_reading_wrong(reading, "there is no `start`: this is no history of a run, or its begin is missing");
    }
    for (size_t i = 0; i < lines->count && !reading->wrong; i++) {
        if (load(reading, &lines->at[i])) {
            chaos_reading_event(reading);
        }
    }
}

CHAOS_ORDER(by_process, chaos_tally,
            chaos_order_then(chaos_order_by(x->client, y->client, x->pid, y->pid), chaos_order(x->at_us, y->at_us)))

bool chaos_history_read(FILE *in, const char *name, struct chaos_history *history, struct chaos_error *error) {
    struct chaos_reading reading = {.name = name, .error = error, .history = history, .known = json_object()};
    struct chaos_lines lines = {0};
    *history = (struct chaos_history){.finish_us = CHAOS_NEVER_US};
    read_lines(&reading, in, &lines);
    chaos_lines_sort(&lines);
    take_lines(&reading, &lines);
    chaos_lines_clear(&lines);
    json_decref(reading.event);
    json_decref(reading.known);
    if (reading.wrong) {
        chaos_history_clear(history);
    }
    chaos_sort(history->tallies, history->tally_count, sizeof *history->tallies, by_process);
    return !reading.wrong;
}
