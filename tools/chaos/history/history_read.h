/* Between the parts that read a history: its lines, and what each event adds to it. */
#ifndef CHAOS_HISTORY_READ_H
#define CHAOS_HISTORY_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "history/history.h"
#include "history/lines.h"

struct chaos_reading {
    const char *name; /* the file's */
    size_t line;      /* from 1; 0: of the whole file */
    char *error;
    size_t error_size;
    struct chaos_history *history;
    json_t *event; /* that of the line in hand */
    const char *event_name;
    int64_t t_us;  /* its time */
    json_t *known; /* operations, leases, …: where the last one with such a key is in its list */
};

/* "NAME:LINE: …"; without the line if it is 0. False, always. */
bool chaos_reading_wrong(struct chaos_reading *reading, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * When the event of the line is to be taken: its time, pass and rank. First of all comes the `start`, by
 * which all others are judged; then what others refer to whatever the time; the rest by time, and
 * at one time what ends something last. *known: whether it is an event of a kind that we know; the
 * others are ignored. False with a sentence.
 */
bool chaos_reading_place(struct chaos_reading *reading, struct chaos_line *line, bool *known);
/* Takes in the event, in its turn. False with a sentence. */
bool chaos_reading_event(struct chaos_reading *reading);

#endif
