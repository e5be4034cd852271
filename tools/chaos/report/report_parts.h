/* The parts of the page, in their order; each writes HTML to the stream, and leaves errors to ferror(). */
#ifndef CHAOS_REPORT_PARTS_H
#define CHAOS_REPORT_PARTS_H

#include <stdbool.h>
#include <stdio.h>

#include "report/report_view.h"

/* The browser draws nothing for more of them, nor could anyone read it; the numbers still count all. */
enum { CHAOS_VIOLATIONS_SHOWN = 1000 };

/* Title, verdict, figures, how to repeat it. */
void chaos_page_head(FILE *out, const struct chaos_view *view);
/* What was wrong, one by one; nothing if nothing was. */
void chaos_page_violations(FILE *out, const struct chaos_view *view);
/* What was looked for. */
void chaos_page_checks(FILE *out, const struct chaos_view *view);
/* The legend, the window's tools, the overview, the time axis; begins the section that chaos_page_charts() ends. Without memory: false, with errno ENOMEM. */
bool chaos_page_window(FILE *out, const struct chaos_view *view);
/* The rows of nodes and clients. */
void chaos_page_rows(FILE *out, const struct chaos_view *view);
/* Latency and availability over the same time. Without memory: false, with errno ENOMEM. */
bool chaos_page_charts(FILE *out, const struct chaos_view *view);
/* Percentiles, results, recoveries, faults, settings. */
void chaos_page_tables(FILE *out, const struct chaos_view *view);
/* What the script knows: JSON in a <script>. */
bool chaos_page_data(FILE *out, const struct chaos_view *view);

/* One drawing that is as wide as the window: what is in its plot is in ticks across, and in pixels down. */
void chaos_lane_begin(FILE *out, const char *classes, int height, const char *label);
enum chaos_plot { CHAOS_PLOT_WINDOW, CHAOS_PLOT_WHOLE }; /* follows the window, or shows the whole run always */
void chaos_plot_begin(FILE *out, const struct chaos_view *view, enum chaos_plot plot, int y, int height);
void chaos_plot_end(FILE *out);
void chaos_lane_end(FILE *out);

/* From the doctype to <body>: the page's title is about that many violations of what is named, "" for nothing. */
void chaos_page_begin(FILE *out, const char *title, size_t violations);

/* What one interval of the charts holds. */
struct chaos_bucket {
    int64_t acquired, contended, failed; /* acquires that completed in it */
    int64_t p50_us, p99_us;              /* of those that were OK; 0 if there were none */
};

/* One an interval of chaos_view_bucket_us(); to be freed; NULL without memory. */
struct chaos_bucket *chaos_view_buckets(const struct chaos_view *view, size_t *count);

/* From tick on, so many clients have no healthy quorum. */
struct chaos_step {
    int64_t tick;
    int64_t clients;
};

/* By tick; to be freed; NULL without memory. */
struct chaos_step *chaos_view_unwell(const struct chaos_view *view, size_t *count);

#endif
