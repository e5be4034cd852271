/* Invented runs as large as real ones, to look at their pages. */
#ifndef CHAOS_REPORT_RUNS_H
#define CHAOS_REPORT_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kit.h"

struct report_run {
    const char *name;
    size_t nodes, clients, resources;
    int64_t seconds;
    int64_t hold_us; /* the longest hold of a lease */
    uint32_t kinds;  /* of faults */
    int overlap;     /* of 1000 acquires during another's lease, this many are granted */
};

/* The same run gives the same history. Aborts without memory. */
void report_run_make(const struct report_run *run, struct kit *kit);

/* Unescaped on a page, this text would run as a script or break out of a script, an attribute or a
 * comment. */
extern const char report_poison[];
/* Puts it everywhere where a history has text from outside. */
void report_run_poison(struct kit *kit);

#endif
