/* What the page says of a run beyond its history: when things were over, and how they ended. */
#ifndef CHAOS_REPORT_VIEW_H
#define CHAOS_REPORT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checks/check.h"
#include "faults/experiments.h"
#include "history/history.h"

/* How a lease ended. LATE: it had run out before its owner, which had been stopped, released it.
 * HELD: to the end of the run. */
enum chaos_how { CHAOS_HOW_RELEASED, CHAOS_HOW_LOST, CHAOS_HOW_DIED, CHAOS_HOW_HELD, CHAOS_HOW_LATE };

struct chaos_view {
    const struct chaos_history *history;
    const struct chaos_verdict *verdict;
    const struct chaos_experiment *experiment; /* NULL for none */
    int64_t end_us;                            /* since the start */
};

struct chaos_view chaos_view_of(const struct chaos_history *history, const struct chaos_verdict *verdict,
                                const struct chaos_experiment *experiment);
/* When a fault was over: the end of the run if it never was; a fault that takes its amount of time
 * lasts for that. */
int64_t chaos_view_band_end(const struct chaos_view *view, const struct chaos_band *band);
/* The class of a fault in the style sheet: "down", "link", "ill" or "breaks". */
const char *chaos_view_shade(const struct chaos_band *band);
/* Until when the client relied on the lease, as the checker sees it, and how it ended. */
int64_t chaos_view_lease_end(const struct chaos_view *view, const struct chaos_lease *lease, enum chaos_how *how);

#endif
