/* The run's directory, and what is in it. */
#ifndef CHAOS_PLACE_H
#define CHAOS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conductor/options.h"
#include "faults/error.h"

/* The run's files; one a client follows. */
enum chaos_file {
    CHAOS_FILE_HISTORY,
    CHAOS_FILE_SCHEDULE,
    CHAOS_FILE_COUNTERS,
    CHAOS_FILE_CONDUCTOR,
    CHAOS_FILE_AUDITOR,
    CHAOS_FILE_CLIENTS,
};

struct chaos_place {
    char *directory; /* absolute */
    bool made;       /* it was not there before */
    char *paths[CHAOS_FILE_CLIENTS + CHAOS_CLIENTS_MAX];
    size_t path_count;
    const char *resources[CHAOS_RESOURCES_MAX];
    char names[CHAOS_RESOURCES_MAX][24];
    size_t resource_count;
    char *shim; /* NULL if it cannot be found */
};

/* The directory alone; it must be new, or empty. False with a sentence. */
bool chaos_place_make_directory(struct chaos_place *place, const struct chaos_options *options,
                                struct chaos_error *error);
/* Makes the directory (it must be new, or empty) and the counters, all 0. False with a sentence. */
bool chaos_place_make(struct chaos_place *place, const struct chaos_options *options, struct chaos_error *error);
/* The file's text, or that of standard input for "-"; to be freed; NULL with a sentence. */
char *chaos_place_read(const char *path, struct chaos_error *error);
/* One number a resource. False with a sentence. */
bool chaos_place_counters(const struct chaos_place *place, int64_t *counters, struct chaos_error *error);
/* Joins the processes' events into history.jsonl, and removes their files. False with a
 * sentence. */
bool chaos_place_merge(struct chaos_place *place, struct chaos_error *error);
/* Removes what chaos_place_make() made, and the directory, unless it was there before or holds
 * more: nothing happened in it. */
void chaos_place_discard(struct chaos_place *place);
void chaos_place_clear(struct chaos_place *place);

#endif
