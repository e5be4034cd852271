/* Reading a caller's option struct, which may be shorter than ours: of an older program (see docs/architecture.md). */
#ifndef REDLOCK_BASE_OPTIONS_H
#define REDLOCK_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies what the caller knows over the defaults in `known`. False for a size of 0 (the _default function was not
 * called) and for a longer struct: a newer program may ask for what this library would leave undone.
 */
bool redlock_options_read(void *known, size_t known_size, const void *given, size_t given_size);

#endif
