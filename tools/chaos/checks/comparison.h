/* One schedule run three times: without protection, with fencing tokens, and with guards as well.
 * What it shows. Pure. */
#ifndef CHAOS_COMPARISON_H
#define CHAOS_COMPARISON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "checks/check.h"

enum chaos_side { CHAOS_SIDE_NONE, CHAOS_SIDE_FENCING, CHAOS_SIDE_GUARDS, CHAOS_SIDES };

extern const struct chaos_side_about {
    const char *name;  /* of its directory */
    const char *title; /* for people */
} chaos_sides[CHAOS_SIDES];
struct chaos_protection chaos_side_protection(enum chaos_side side);

struct chaos_comparison {
    struct chaos_history histories[CHAOS_SIDES];
    struct chaos_verdict verdicts[CHAOS_SIDES];
};

/*
 * The comparison holds where each side does: without protection there are violations, and none that
 * the faults do not explain; with fencing tokens the resource stays whole (no lost update, no stale
 * access, tokens rise), overlaps or not; with guards as well there is no violation at all, and the
 * lock was got.
 */
bool chaos_side_holds(const struct chaos_comparison *comparison, enum chaos_side side);
bool chaos_comparison_holds(const struct chaos_comparison *comparison);
/* A sentence about the side into text, as said of this run. */
void chaos_side_sentence(const struct chaos_comparison *comparison, enum chaos_side side, char *text, size_t size);

/* A row of the table. A figure is "" where it does not apply; bad: it is harm. */
struct chaos_row {
    const char *name;
    char figures[CHAOS_SIDES][32];
    bool bad[CHAOS_SIDES];
};
/* False after the last. */
bool chaos_row_at(const struct chaos_comparison *comparison, size_t index, struct chaos_row *row);

/* Table and sentences for a terminal; the last line is for scripts: "comparison=holds none=V
 * fencing=V guards=V", of violations. */
void chaos_comparison_say(FILE *out, const struct chaos_comparison *comparison);
void chaos_comparison_clear(struct chaos_comparison *comparison);

#endif
