/* Requests as nodes receive them, for programs that stand in the place of a node. */
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#define REQUEST_WORDS 3 /* that such programs look at */

/* Returns the length of the first complete request (0: none yet) and where its first words
 * begin. */
size_t request_size(const char *at, const char *end, const char *words[REQUEST_WORDS]);

/* Whether a word of a complete request is this name. */
bool request_is(const char *word, const char *name);

#endif
