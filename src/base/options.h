/* Reads a caller's option struct. The struct of an older program may be shorter than ours (see
 * docs/architecture.md). */
#ifndef REDLOCK_BASE_OPTIONS_H
#define REDLOCK_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies the caller's struct over the defaults in `known`. Returns false for a size of 0: the
 * caller did not call the _default function. Returns false also for a longer struct: a newer
 * program may ask for something that this library cannot do.
 */
bool redlock_options_read(void *known, size_t known_size, const void *given, size_t given_size);

#endif
