/* Between the parts that read a history: lines become events, and events are put together. */
#ifndef CHAOS_HISTORY_READ_H
#define CHAOS_HISTORY_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/history.h"

/* An array that grows. */
struct chaos_list {
    void *at;
    size_t count;
    size_t room;
};

/*
 * Most things are told by two events, a lease by two or more, in any order. Each event is one of
 * these until all have been read. `second`: complete, done, refused, end, heal, exit. Only the
 * members that this event tells are set.
 */
struct chaos_half {
    size_t line;
    bool second;
    int64_t t_us;
    union {
        struct chaos_operation operation;
        struct chaos_increment increment;
        struct chaos_lease lease;
        struct chaos_band band;
        struct chaos_life life;
    };
};

struct chaos_reading {
    const char *name; /* the file's */
    size_t line;      /* from 1 */
    char *error;
    size_t error_size;
    struct chaos_history *history;
    bool started;
    struct chaos_list operations, increments, leases, bands, lives; /* halves */
    struct chaos_list sweeps, refusals, tallies;
};

/* One more, zeroed; NULL without memory, which is said in the error. */
void *chaos_list_add(struct chaos_reading *reading, struct chaos_list *list, size_t size);
/* "NAME:LINE: …"; without the line if it is 0. False, always. */
bool chaos_reading_wrong(struct chaos_reading *reading, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Takes in the event of the line reading->line. Those before `start` cannot be judged: the caller
 * keeps them. False with a sentence. */
bool chaos_reading_event(struct chaos_reading *reading, const json_t *event);
/* Whether it is a `start`. */
bool chaos_reading_is_start(const json_t *event);
/* Puts the halves together; all then belongs to the history. False with a sentence. */
bool chaos_reading_join(struct chaos_reading *reading);
void chaos_reading_clear(struct chaos_reading *reading);

#endif
