/* The parts of the pages, in their order. Each writes HTML to the stream and leaves write errors to
 * ferror(). */
#ifndef CHAOS_REPORT_PARTS_H
#define CHAOS_REPORT_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "report/view.h"

/* The page lists so many violations; the numbers count all. */
enum { CHAOS_VIOLATIONS_SHOWN = 1000 };

/*
 * The whole page: body(out, what) writes what stands in it without a script; the script draws
 * `data`, which is taken, and NULL without memory. The title tells the violations, of what is
 * named; "" for nothing. False with errno.
 */
bool chaos_page_write(FILE *out, const char *title, size_t violations, void (*body)(FILE *out, const void *what),
                      const void *what, json_t *data);
/* Begins the box of the verdict. Its class in the style sheet: "clean", "expected", "wrong",
 * "nothing". */
void chaos_page_verdict(FILE *out, const char *mood, const char *headline);
/* Title, verdict, figures, how to repeat it. */
void chaos_page_head(FILE *out, const struct chaos_view *view);
/* What was wrong, one by one. Nothing if nothing was. */
void chaos_page_violations(FILE *out, const struct chaos_view *view);
/* Checks, percentiles, results, recoveries, faults, settings. */
void chaos_page_tables(FILE *out, const struct chaos_view *view);

/* What the script draws of a run; NULL without memory. See data.c for its form. */
json_t *chaos_page_data(const struct chaos_view *view);

#endif
