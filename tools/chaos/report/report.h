/* The page that shows a run: one self-contained HTML file. Pure: it writes to the stream that it is
 * given. */
#ifndef CHAOS_REPORT_H
#define CHAOS_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "checks/check.h"
#include "checks/comparison.h"
#include "faults/experiments.h"
#include "history/history.h"

/* experiment may be NULL. False if writing failed (errno says why) or without memory. */
bool chaos_report_write(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict,
                        const struct chaos_experiment *experiment);

/* The page of a comparison: its three runs side by side; it leads to the page of each, in the
 * directory of its side. */
bool chaos_report_compare(FILE *out, const struct chaos_comparison *comparison,
                          const struct chaos_experiment *experiment);

#endif
