/* Where everything of the page's timeline is: rows, lanes, ticks, and who did what in which order. */
#ifndef CHAOS_REPORT_VIEW_H
#define CHAOS_REPORT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checks/check.h"
#include "faults/experiments.h"
#include "history/history.h"

enum {
    CHAOS_VIEW_WIDTH = 1200, /* as drawn without JavaScript, which draws to the window's width */
    CHAOS_VIEW_GUTTER = 92,  /* for the rows' names */
    CHAOS_VIEW_RIGHT = 16,
    CHAOS_VIEW_PLOT = CHAOS_VIEW_WIDTH - CHAOS_VIEW_GUTTER - CHAOS_VIEW_RIGHT,
    CHAOS_VIEW_LANE = 17, /* of a node's row: faults that overlap are in lanes of their own */
    CHAOS_VIEW_LANES_MAX = 5,
    CHAOS_VIEW_VIOLATIONS = 18, /* the row of violations, on top, where there are any */
    CHAOS_VIEW_HUES = 8         /* of resources; the ninth has the first one's */
};

/* How a fault is drawn. */
enum chaos_shade { CHAOS_SHADE_DOWN, CHAOS_SHADE_LINK, CHAOS_SHADE_ILL, CHAOS_SHADE_BREAKS, CHAOS_SHADES };

/* How a lease ended. LATE: it had run out already when its owner, which had been stopped, released it. HELD: the run ended before it. */
enum chaos_how { CHAOS_HOW_RELEASED, CHAOS_HOW_LOST, CHAOS_HOW_DIED, CHAOS_HOW_HELD, CHAOS_HOW_LATE };

struct chaos_view {
    const struct chaos_history *history;
    const struct chaos_verdict *verdict;
    const struct chaos_experiment *experiment; /* NULL for none */
    int64_t end_us;                            /* since the start */
    int64_t tick_us;                           /* the timeline's unit */
    int64_t ticks;                             /* of the whole, at least 1 */
    int node_y[CHAOS_NODES_MAX], node_height[CHAOS_NODES_MAX];
    int clients_y, pitch, bar, height;
    uint8_t *lanes; /* of band b on node n: [b * node_count + n] */
    /* Indexes, grouped by client, each group by time: client c's are [first[c]..first[c + 1]). */
    size_t *leases, lease_first[CHAOS_CLIENTS_MAX + 1];
    size_t *operations, operation_first[CHAOS_CLIENTS_MAX + 1];
};

/* False without memory. */
bool chaos_view_make(struct chaos_view *view, const struct chaos_history *history, const struct chaos_verdict *verdict,
                     const struct chaos_experiment *experiment);
void chaos_view_clear(struct chaos_view *view);

/* Kept within the run. */
int64_t chaos_view_tick(const struct chaos_view *view, int64_t at_us);
/* When a fault was over: the end of the run if it never was; what does not last, but takes its amount of time, lasts for that. */
int64_t chaos_view_band_end(const struct chaos_view *view, const struct chaos_band *band);
enum chaos_shade chaos_view_shade(const struct chaos_band *band);
const char *chaos_view_shade_class(enum chaos_shade shade);
/* Until when the client relied on the lease, as the checker sees it, and how it ended. */
int64_t chaos_view_lease_end(const struct chaos_view *view, const struct chaos_lease *lease, enum chaos_how *how);
/* The acquire that gave a lease: the client's last OK one of the resource that had completed; *cursor walks through the client's operations. NULL if there is none. */
const struct chaos_operation *chaos_view_acquire(const struct chaos_view *view, const struct chaos_lease *lease,
                                                 size_t *cursor);
/* An acquire that completed without a lease. */
bool chaos_view_failed(const struct chaos_operation *operation);

/* One of these that the end of the run, and nothing else, has ended: neither success nor failure. */
bool chaos_view_given_up(const struct chaos_operation *operation);

/* Intervals of time for the charts: about 60 at most, of 1, 2 or 5 times a power of ten; at least 500 ms. */
int64_t chaos_view_bucket_us(const struct chaos_view *view);

#endif
