/* Between the parts that read a history: its lines, the members of an event, and what each event
 * adds. */
#ifndef CHAOS_HISTORY_READ_H
#define CHAOS_HISTORY_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "history/history.h"
#include "history/lines.h"
#include "values/values.h"

enum { CHAOS_TEXT_MAX = 65536 };

/* 30 years since the boot: sums and differences of times stay far from the end of int64_t. */
#define CHAOS_TIME_MAX_US INT64_C(1000000000000000)

struct chaos_reading {
    const char *name; /* the file's */
    size_t line;      /* from 1; 0: of the whole file */
    struct chaos_error *error;
    bool wrong; /* the first that was wrong is told; nothing counts any more */
    struct chaos_history *history;
    json_t *event; /* that of the line in hand */
    const char *event_name;
    int64_t t_us;  /* its time */
    json_t *known; /* operations, leases, …: where the last one with such a key is in its list */
};

/* "NAME:LINE: …"; without the line if it is 0. */
#define chaos_reading_wrong(reading, ...) chaos_reading_refuse(reading, TOOL_TEXT(1024, __VA_ARGS__))
void chaos_reading_refuse(struct chaos_reading *reading, const char *why);
/* Says what the member is, and what is expected in its place. */
#define chaos_wrong_member(reading, key, ...) chaos_member_refuse(reading, key, TOOL_TEXT(96, __VA_ARGS__))
void chaos_member_refuse(struct chaos_reading *reading, const char *key, const char *expected);

/*
 * When the event of the line is to be taken: its time, pass and rank. First of all comes the
 * `start`, by which all others are judged; then what others refer to whatever the time; the rest by
 * time, and at one time what ends something last. False for an event of a kind that we do not know:
 * it is ignored.
 */
bool chaos_reading_place(struct chaos_reading *reading, struct chaos_line *line);
/* Takes in the event, in its turn. */
void chaos_reading_event(struct chaos_reading *reading);
/* Takes in what the auditor saw: the event `keys`. */
void chaos_take_keys(struct chaos_reading *reading);

/* The members of the event, read strictly, each of its type and within its range; of one that is
 * wrong, some value. */
int64_t chaos_get_number(struct chaos_reading *reading, const char *key, int64_t min, int64_t max);
/* 0 where it is missing: only runs with fencing tokens tell it, and histories of older versions do
 * not. */
int64_t chaos_get_optional(struct chaos_reading *reading, const char *key, int64_t max);
int chaos_get_client(struct chaos_reading *reading);
int chaos_get_resource(struct chaos_reading *reading);
bool chaos_get_flag(struct chaos_reading *reading, const char *key);
/* False where it is missing. */
bool chaos_get_option(struct chaos_reading *reading, const char *key);
/* Of min to max bytes; it lives as long as the event. */
const char *chaos_get_text(struct chaos_reading *reading, const char *key, size_t min, size_t max);
/* Into a buffer: of min to size - 1 bytes. */
void chaos_get_chars(struct chaos_reading *reading, const char *key, size_t min, char *buffer, size_t size);
/* Whether it is the second of two words. */
bool chaos_get_word(struct chaos_reading *reading, const char *key, const char *first, const char *second);
/* NULL if it is wrong. */
const json_t *chaos_get_list(struct chaos_reading *reading, const char *key, size_t min, size_t max);
/* Owned copies of a list of texts; *count says how many there are, in any case. */
char **chaos_copy_texts(struct chaos_reading *reading, const char *key, size_t min, size_t max, size_t *count);
/* A list of numbers from 1 to count, as bits. */
uint64_t chaos_get_set(struct chaos_reading *reading, const char *key, size_t count);

#endif
