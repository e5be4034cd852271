/* The parts of the pages, in their order. Each writes HTML to the stream and leaves write errors to
 * ferror(). */
#ifndef CHAOS_REPORT_PARTS_H
#define CHAOS_REPORT_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "checks/check.h"
#include "faults/experiments.h"
#include "faults/lists.h"
#include "history/history.h"

/* How a lease ended. LATE: it had run out before its owner, which had been stopped, released it.
 * HELD: to the end of the run. */
enum chaos_how { CHAOS_HOW_RELEASED, CHAOS_HOW_LOST, CHAOS_HOW_DIED, CHAOS_HOW_HELD, CHAOS_HOW_LATE };

struct chaos_view {
    const struct chaos_history *history;
    const struct chaos_verdict *verdict;
    const struct chaos_experiment *experiment; /* NULL for none */
    int64_t end_us;                            /* since the start */
    int64_t tick_us;                           /* of the times that the script draws */
};

struct chaos_view chaos_view_of(const struct chaos_history *history, const struct chaos_verdict *verdict,
                                const struct chaos_experiment *experiment);
/* When a fault was over: the end of the run if it never was; a fault that takes its amount of time
 * lasts for that. */
int64_t chaos_view_band_end(const struct chaos_view *view, const struct chaos_band *band);
/* The class of a fault in the style sheet: "down", "link", "ill" or "breaks". */
const char *chaos_view_shade(const struct chaos_band *band);

/* The page as the build has put it together from page.html, page.css and page_*.js. Terminated.
 * {{title}}, {{body}} and {{data}} stand in it, in this order, once each. */
extern const unsigned char chaos_page[];

/* The page lists so many violations; the numbers count all. */
enum { CHAOS_VIOLATIONS_SHOWN = 1000 };

enum chaos_mood { CHAOS_MOOD_CLEAN, CHAOS_MOOD_EXPECTED, CHAOS_MOOD_WRONG, CHAOS_MOOD_NOTHING };
/* What stands above: name (of the experiment), version, title, purpose. Begins <main>. */
void chaos_page_header(FILE *out, const char *name, const char *version, const char *title, const char *purpose);
/* Begins the box of the verdict. */
void chaos_page_verdict(FILE *out, enum chaos_mood mood, const char *headline);
/* Header, verdict, figures, how to repeat it. */
void chaos_page_head(FILE *out, const struct chaos_view *view);
/* What was wrong, one by one. Nothing if nothing was. */
void chaos_page_violations(FILE *out, const struct chaos_view *view);
/* Checks, percentiles, results, recoveries, faults, settings. */
void chaos_page_tables(FILE *out, const struct chaos_view *view);

/* What the script draws of a run; NULL without memory. See data.c for its form. */
json_t *chaos_page_data(const struct chaos_view *view);

#endif
