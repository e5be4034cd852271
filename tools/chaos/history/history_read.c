/* A history read from JSON lines: the lines, and who owns what. */
#include "history/history_read.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *chaos_list_add(struct chaos_reading *reading, struct chaos_list *list, size_t size) {
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 16 : list->room * 2;
        void *grown = realloc(list->at, room * size);
        if (grown == NULL) {
            chaos_reading_wrong(reading, reading->line, "out of memory");
            return NULL;
        }
        list->at = grown;
        list->room = room;
    }
    return memset((char *)list->at + list->count++ * size, 0, size);
}

bool chaos_reading_wrong(struct chaos_reading *reading, size_t line, const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (line > 0) {
        snprintf(reading->error, reading->error_size, "%s:%zu: %s", reading->name, line, text);
    } else {
        snprintf(reading->error, reading->error_size, "%s: %s", reading->name, text);
    }
    return false;
}

void chaos_reading_clear(struct chaos_reading *reading) {
    struct chaos_half *operations = reading->operations.at, *leases = reading->leases.at, *bands = reading->bands.at;
    struct chaos_sweep *sweeps = reading->sweeps.at;
    for (size_t i = 0; i < reading->operations.count; i++) {
        free(operations[i].operation.message);
    }
    for (size_t i = 0; i < reading->leases.count; i++) {
        free(leases[i].lease.claims);
    }
    for (size_t i = 0; i < reading->bands.count; i++) {
        free(bands[i].band.text);
        free(bands[i].band.error);
    }
    for (size_t i = 0; i < reading->sweeps.count; i++) {
        free(sweeps[i].nodes);
    }
    free(operations);
    free(leases);
    free(bands);
    free(sweeps);
    free(reading->refusals.at);
    free(reading->tallies.at);
    free(reading->increments.at);
    free(reading->lives.at);
}

/* A line that came before `start`. */
struct early {
    char *text;
    size_t length;
    size_t line;
};

/* The line's object, to be decref'd; NULL with a sentence. */
static json_t *load(struct chaos_reading *reading, const char *text, size_t length) {
    json_error_t why = {.text = ""};
    json_t *event = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (event == NULL) {
        bool memory = why.text[0] == '\0' || json_error_code(&why) == json_error_out_of_memory;
        chaos_reading_wrong(reading, reading->line, "%s%s",
                            memory ? "out of memory" : "not JSON: ", memory ? "" : why.text);
    } else if (!json_is_object(event)) {
        chaos_reading_wrong(reading, reading->line, "not an event: a JSON object is expected");
        json_decref(event);
        event = NULL;
    }
    return event;
}

static bool keep(struct chaos_reading *reading, struct chaos_list *earlies, const char *text, size_t length) {
    struct early *early = chaos_list_add(reading, earlies, sizeof *early);
    if (early == NULL) {
        return false;
    }
    *early = (struct early){.text = malloc(length), .length = length, .line = reading->line};
    if (early->text == NULL) {
        return chaos_reading_wrong(reading, reading->line, "out of memory");
    }
    memcpy(early->text, text, length);
    return true;
}

static bool take_early(struct chaos_reading *reading, const struct chaos_list *earlies) {
    size_t line = reading->line;
    const struct early *all = earlies->at;
    bool worked = true;
    for (size_t i = 0; i < earlies->count && worked; i++) {
        reading->line = all[i].line;
        json_t *event = load(reading, all[i].text, all[i].length);
        worked = event != NULL && chaos_reading_event(reading, event);
        json_decref(event);
    }
    reading->line = line;
    return worked;
}

static bool take_line(struct chaos_reading *reading, struct chaos_list *earlies, const char *text, size_t length) {
    json_t *event = load(reading, text, length);
    if (event == NULL) {
        return false;
    }
    bool worked;
    if (reading->started) {
        worked = chaos_reading_event(reading, event);
    } else if (chaos_reading_is_start(event)) {
        worked = chaos_reading_event(reading, event) && take_early(reading, earlies);
    } else {
        worked = keep(reading, earlies, text, length);
    }
    json_decref(event);
    return worked;
}

static bool read_lines(struct chaos_reading *reading, FILE *in, struct chaos_list *earlies) {
    char *text = NULL;
    size_t room = 0;
    bool worked = true;
    while (worked) {
        reading->line++;
        errno = 0;
        ssize_t length = getline(&text, &room, in);
        if (length <= 0 || text[length - 1] != '\n') {
            /* The end, perhaps within a line that a killed process did not finish. */
            if (!feof(in) || ferror(in)) {
                worked = chaos_reading_wrong(reading, reading->line, "cannot be read: %s", strerror(errno));
            }
            break;
        }
        worked = take_line(reading, earlies, text, (size_t)length);
    }
    free(text);
    return worked;
}

bool chaos_history_read(FILE *in, const char *name, struct chaos_history *history, char *error, size_t error_size) {
    struct chaos_reading reading = {.name = name, .error = error, .error_size = error_size, .history = history};
    struct chaos_list earlies = {0};
    *history = (struct chaos_history){.finish_us = CHAOS_NEVER_US};
    bool worked = read_lines(&reading, in, &earlies);
    if (worked && !reading.started) {
        worked = chaos_reading_wrong(&reading, 0,
                                     "there is no `start`: this is no history of a run, or its begin is missing");
    }
    worked = worked && chaos_reading_join(&reading);
    for (size_t i = 0; i < earlies.count; i++) {
        free(((struct early *)earlies.at)[i].text);
    }
    free(earlies.at);
    chaos_reading_clear(&reading);
    if (!worked) {
        chaos_history_clear(history);
    }
    return worked;
}
