/* A picture of one run of a comparison: each resource's leases over time, and what went wrong with them. */
#ifndef CHAOS_REPORT_COMPARE_CHART_H
#define CHAOS_REPORT_COMPARE_CHART_H

#include <stdbool.h>
#include <stdio.h>

#include "checks/check.h"

/* As long as the longest of the runs that it is compared with. Without memory: false, with errno ENOMEM. */
bool chaos_compare_chart(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict,
                         int64_t length_us);

#endif
