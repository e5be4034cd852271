/* Porcupine's verdict on a history beside our own. Pure. */
#ifndef CHAOS_PORCUPINE_H
#define CHAOS_PORCUPINE_H

#include <stdbool.h>
#include <stdio.h>

#include "checks/check.h"

/* Where the judges differ, one of them is wrong. What was not judged proves nothing. */
enum chaos_porcupine { CHAOS_PORCUPINE_AGREES, CHAOS_PORCUPINE_DIFFERS, CHAOS_PORCUPINE_UNKNOWN };

/*
 * Reads what redlock-porcupine said (test/porcupine/README.md), and holds it against our verdict:
 * on each resource, each part is wrong where we have a violation of its kind, and nowhere else. A
 * history that contradicts itself proves nothing, and there the two need not agree. Says in words
 * what it found.
 */
enum chaos_porcupine chaos_porcupine_compare(const char *said, const struct chaos_history *history,
                                             const struct chaos_verdict *verdict, FILE *out);

#endif
