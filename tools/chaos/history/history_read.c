/* A history read from JSON lines: each line's event is taken in its turn, not in the file's. */
#include "history/history_read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "faults/lists.h"

void chaos_reading_wrong(struct chaos_reading *reading, const char *format, ...) {
    struct chaos_error why;
    char line[32] = "";
    va_list arguments;
    if (reading->wrong) {
        return;
    }
    reading->wrong = true;
    va_start(arguments, format);
    vsnprintf(why.text, sizeof why.text, format, arguments);
    va_end(arguments);
    if (reading->line > 0) {
        snprintf(line, sizeof line, ":%zu", reading->line);
    }
    chaos_fail(reading->error, "%s%s: %s", reading->name, line, why.text);
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
