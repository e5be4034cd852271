/* Runs that never were, as large as real ones: for looking at their pages. */
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
    int64_t hold_us; /* a lease is held for up to so long */
    uint32_t kinds;  /* of faults */
    int overlap;     /* of 1000 acquires that others keep waiting, so many are granted nevertheless */
};

/* The same run gives the same history. Without memory it aborts. */
void report_run_make(const struct report_run *run, struct kit *kit);

/* Would run as a script, or break out of one, an attribute or a comment, if the page took it as it is. */
extern const char report_poison[];
/* Puts it wherever a history has text from outside. */
void report_run_poison(struct kit *kit);

#endif
