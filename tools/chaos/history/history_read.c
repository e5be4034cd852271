/* A history read from JSON lines: each line's event is taken in its turn, not in the file's. */
#include "history/history_read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool chaos_reading_wrong(struct chaos_reading *reading, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (reading->line > 0) {
        snprintf(reading->error, reading->error_size, "%s:%zu: %s", reading->name, reading->line, text);
    } else {
        snprintf(reading->error, reading->error_size, "%s: %s", reading->name, text);
    }
    return false;
}

/* Reads the line's object in place of the one before. False with a sentence. */
static bool load(struct chaos_reading *reading, const struct chaos_line *line) {
    json_error_t why = {.text = ""};
    json_decref(reading->event);
    reading->event = json_loadb(line->text, line->length, JSON_REJECT_DUPLICATES, &why);
    reading->line = line->number;
    if (reading->event == NULL) {
        bool memory = why.text[0] == '\0' || json_error_code(&why) == json_error_out_of_memory;
        return chaos_reading_wrong(reading, "%s%s", memory ? "out of memory" : "not JSON: ", memory ? "" : why.text);
    }
    return json_is_object(reading->event) || chaos_reading_wrong(reading, "not an event: a JSON object is expected");
}

/* All lines, each with its place. They are kept as text: that is the least. */
static bool read_lines(struct chaos_reading *reading, FILE *in, struct chaos_lines *lines) {
    enum chaos_next next;
    errno = 0;
    while ((next = chaos_lines_next(lines, in)) == CHAOS_NEXT_LINE) {
        struct chaos_line *line = &lines->at[lines->count - 1];
        bool known;
        if (!load(reading, line) || !chaos_reading_place(reading, line, &known)) {
            return false;
        }
        if (!known) {
            chaos_lines_drop(lines);
        }
    }
    reading->line = lines->read;
    if (next == CHAOS_NEXT_NO_MEMORY) {
        return chaos_reading_wrong(reading, "out of memory");
    }
    return next == CHAOS_NEXT_END || chaos_reading_wrong(reading, "cannot be read: %s", strerror(errno));
}

static bool take_lines(struct chaos_reading *reading, const struct chaos_lines *lines) {
    if (lines->count == 0 || lines->at[0].pass != 0) {
        reading->line = 0;
        return chaos_reading_wrong(reading,
                                   "there is no `start`: this is no history of a run, or its begin is missing");
    }
    for (size_t i = 0; i < lines->count; i++) {
        if (!load(reading, &lines->at[i]) || !chaos_reading_event(reading)) {
            return false;
        }
    }
    return true;
}

static int by_process(const void *left, const void *right) {
    const struct chaos_tally *a = left, *b = right;
    if (a->client != b->client) {
        return a->client < b->client ? -1 : 1;
    }
    if (a->pid != b->pid) {
        return a->pid < b->pid ? -1 : 1;
    }
    return (a->at_us > b->at_us) - (a->at_us < b->at_us);
}

bool chaos_history_read(FILE *in, const char *name, struct chaos_history *history, char *error, size_t error_size) {
    struct chaos_reading reading = {
        .name = name, .error = error, .error_size = error_size, .history = history, .known = json_object()};
    struct chaos_lines lines = {0};
    *history = (struct chaos_history){.finish_us = CHAOS_NEVER_US};
    bool worked =
        reading.known != NULL ? read_lines(&reading, in, &lines) : chaos_reading_wrong(&reading, "out of memory");
    chaos_lines_sort(&lines);
    worked = worked && take_lines(&reading, &lines);
    chaos_lines_clear(&lines);
    json_decref(reading.event);
    json_decref(reading.known);
    if (!worked) {
        chaos_history_clear(history);
    } else if (history->tally_count > 0) {
        qsort(history->tallies, history->tally_count, sizeof *history->tallies, by_process);
    }
    return worked;
}
