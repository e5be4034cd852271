/* The members of one event, read strictly (each of its type and within its range), and the lists of
 * the history that it is added to. */
#ifndef CHAOS_HISTORY_MEMBERS_H
#define CHAOS_HISTORY_MEMBERS_H

#include "history/history_read.h"

enum { CHAOS_TEXT_MAX = 65536 };

/* Each of these is false with a sentence in the reading's error. */
bool chaos_wrong_member(struct chaos_reading *reading, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool chaos_get_number(struct chaos_reading *reading, const char *key, int64_t min, int64_t max, int64_t *number);
/* 0 where it is missing: only runs with fencing tokens tell it, and histories of older versions do
 * not. */
bool chaos_get_optional(struct chaos_reading *reading, const char *key, int64_t min, int64_t max, int64_t *number);
bool chaos_get_client(struct chaos_reading *reading, int *client);
bool chaos_get_resource(struct chaos_reading *reading, int *resource);
bool chaos_get_flag(struct chaos_reading *reading, const char *key, bool *flag);
/* False where it is missing. */
bool chaos_get_option(struct chaos_reading *reading, const char *key, bool *flag);
/* Of min to max bytes; it lives as long as the event. */
bool chaos_get_text(struct chaos_reading *reading, const char *key, size_t min, size_t max, const char **text);
/* Into a buffer: of min to size - 1 bytes. */
bool chaos_get_chars(struct chaos_reading *reading, const char *key, size_t min, char *buffer, size_t size);
/* Which of two words it is. */
bool chaos_get_word(struct chaos_reading *reading, const char *key, const char *first, const char *second,
                    bool *is_second);
/* "out of memory" */
bool chaos_no_memory(struct chaos_reading *reading);
/* A copy that the caller owns; NULL for an empty text. */
bool chaos_copy_words(struct chaos_reading *reading, const char *text, char **copied);
bool chaos_copy_text(struct chaos_reading *reading, const char *key, char **copied);
bool chaos_get_list(struct chaos_reading *reading, const char *key, size_t min, size_t max, const json_t **list);
/* Owned copies of a list of texts; *count says how many there are, in any case. */
bool chaos_copy_texts(struct chaos_reading *reading, const char *key, size_t min, size_t max, char ***texts,
                      size_t *count);
/* A list of numbers from 1 to count, as bits. */
bool chaos_get_set(struct chaos_reading *reading, const char *key, size_t count, uint64_t *set);

/* One more in a list of the history, zeroed; `list` points to the pointer to it. NULL without
 * memory, which is said. */
void *chaos_add(struct chaos_reading *reading, void *list, size_t *count, size_t size);

/*
 * Most things are told by two events, a lease by two or more. What the first of them began is found
 * again by such a key: the kind of thing, and whatever tells one from the other.
 */
struct chaos_key {
    const char *kind;
    int client;
    int64_t number;
    const char *token; /* "" for none */
};

enum { CHAOS_UNKNOWN = -1, CHAOS_ENDED = -2 };

/* Its index in the history's list, UNKNOWN or ENDED. */
json_int_t chaos_find(struct chaos_reading *reading, const struct chaos_key *key);
bool chaos_note(struct chaos_reading *reading, const struct chaos_key *key, json_int_t index);

#endif
