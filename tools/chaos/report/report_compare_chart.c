/* A picture of one run of a comparison: each resource's leases over time, and what went wrong with them. */
#include "report/report_compare_chart.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "report/report_text.h"

enum { WIDTH = 1376, GUTTER = 46, PLOT = WIDTH - GUTTER - 20, FAULTS = 12, LANES = 3, LANE = 8, GAP = 5, AXIS = 18 };
enum { ROW = LANES * LANE + GAP };

struct chart {
    FILE *out;
    const struct chaos_history *history;
    const struct chaos_verdict *verdict;
    int64_t length_us;
    int height;
};

static double x_of(const struct chart *chart, int64_t at_us) {
    int64_t since_us = at_us - chart->history->start_us;
    since_us = since_us < 0 ? 0 : since_us > chart->length_us ? chart->length_us : since_us;
    return GUTTER + (double)since_us * PLOT / (double)chart->length_us;
}

static int y_of(int resource) {
    return FAULTS + GAP + resource * ROW;
}

static int64_t relied_until(const struct chaos_history *history, const struct chaos_lease *lease) {
    int64_t until_us =
        lease->ended_us != CHAOS_NEVER_US && lease->ended_us < lease->until_us ? lease->ended_us : lease->until_us;
    /* A killed process relies on nothing. */
    for (size_t i = 0; i < history->life_count; i++) {
        const struct chaos_life *life = &history->lives[i];
        bool own = life->client == lease->client && life->spawned_us <= lease->from_us;
        if (own && life->ended_us != CHAOS_NEVER_US && life->ended_us > lease->from_us && life->ended_us < until_us) {
            until_us = life->ended_us;
        }
    }
    return until_us;
}

static void put_lease(const struct chart *chart, const struct chaos_lease *lease, int64_t until_us, int lane) {
    char from[CHAOS_NUMBER_SIZE], length[CHAOS_NUMBER_SIZE];
    double x = x_of(chart, lease->from_us), width = x_of(chart, until_us) - x;
    fprintf(chart->out,
            "<rect class=\"hue%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>client %d, from %s, for "
            "%s</title></rect>\n",
            lease->client % 8, x, y_of(lease->resource) + lane * LANE, width < 1.2 ? 1.2 : width, LANE - 1,
            lease->client + 1, chaos_say_time(lease->from_us - chart->history->start_us, from),
            chaos_say_duration(until_us - lease->from_us, length));
}

/* Each lease in the first lane that is free; where there is none, in the last. They are by time. */
static bool put_leases(const struct chart *chart) {
    const struct chaos_history *history = chart->history;
    int64_t(*free_us)[LANES] = calloc(history->resource_count, sizeof *free_us);
    if (free_us == NULL) {
        errno = ENOMEM;
        return false;
    }
    for (size_t i = 0; i < history->lease_count; i++) {
        const struct chaos_lease *lease = &history->leases[i];
        int64_t *lanes = free_us[lease->resource], until_us = relied_until(history, lease);
        int lane = 0;
        while (lane < LANES - 1 && lanes[lane] > lease->from_us) {
            lane++;
        }
        if (until_us > lease->from_us) {
            lanes[lane] = until_us > lanes[lane] ? until_us : lanes[lane];
            put_lease(chart, lease, until_us, lane);
        }
    }
    free(free_us);
    return true;
}

static void put_rows(const struct chart *chart) {
    for (size_t r = 0; r < chart->history->resource_count; r++) {
        fprintf(chart->out, "<text class=\"name\" x=\"%d\" y=\"%d\">", GUTTER - 8, y_of((int)r) + ROW / 2 + 1);
        chaos_page_text(chart->out, chart->history->resources[r]);
        fprintf(chart->out, "</text><path class=\"rule\" d=\"M%d %dh%d\"/>\n", GUTTER,
                y_of((int)r) + LANES * LANE + GAP / 2, PLOT);
    }
}

static void put_faults(const struct chart *chart) {
    for (size_t i = 0; i < chart->history->band_count; i++) {
        const struct chaos_band *band = &chart->history->bands[i];
        int64_t end_us = band->to_us == CHAOS_NEVER_US ? chaos_history_end_us(chart->history) : band->to_us;
        double x = x_of(chart, band->from_us), width = x_of(chart, end_us) - x;
        fprintf(chart->out, "<rect class=\"fault\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\"><title>", x,
                width < 2.5 ? 2.5 : width, FAULTS - 2);
        chaos_page_text(chart->out, band->text);
        fputs("</title></rect>\n", chart->out);
    }
}

static int compare_times(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Whether the guards leave a quorum of nodes at this time. */
static bool quorum_votes(const struct chaos_history *history, int64_t at_us) {
    size_t kept_out = 0;
    for (size_t n = 0; n < history->node_count; n++) {
        kept_out += chaos_kept_out(history, n, at_us, at_us);
    }
    return history->node_count - kept_out >= chaos_quorum(history);
}

/* Between two moments at which a guard begins or ends to keep a node out, nothing changes. */
static bool put_without_quorum(const struct chart *chart) {
    const struct chaos_history *history = chart->history;
    int64_t *times_us = calloc(2 * history->band_count + 1, sizeof *times_us);
    size_t count = 0;
    if (times_us == NULL) {
        errno = ENOMEM;
        return false;
    }
    for (size_t i = 0; i < history->band_count; i++) {
        const struct chaos_band *band = &history->bands[i];
        if (band->to_us != CHAOS_NEVER_US && chaos_is_guarded(history, &band->fault)) {
            times_us[count++] = band->from_us;
            times_us[count++] = band->to_us + history->protection.ttl_max_ms * 1000;
        }
    }
    if (count > 0) {
        qsort(times_us, count, sizeof *times_us, compare_times);
    }
    for (size_t i = 1; i < count; i++) {
        if (!quorum_votes(history, times_us[i - 1] + (times_us[i] - times_us[i - 1]) / 2)) {
            double x = x_of(chart, times_us[i - 1]), to = x_of(chart, times_us[i]);
            fprintf(chart->out, "<rect class=\"without\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n", x,
                    FAULTS, to - x, chart->height - AXIS - FAULTS);
        }
    }
    free(times_us);
    return true;
}

static void put_violation(const struct chart *chart, const struct chaos_violation *violation) {
    double x = x_of(chart, violation->from_us), width = x_of(chart, violation->to_us) - x;
    int y = y_of(violation->resource);
    if (violation->kind == CHAOS_VIOLATION_OVERLAP) {
        fprintf(chart->out, "<rect class=\"overlap\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>", x - 1,
                y - 2, width < 2 ? 4 : width + 2, LANES * LANE + 3);
    } else if (violation->kind == CHAOS_VIOLATION_LOST_UPDATE) {
        fprintf(chart->out, "<path class=\"lost-update\" d=\"M%.1f %dl7 7m0-7l-7 7\"><title>",
                x_of(chart, violation->to_us) - 3.5, y + 2 * LANE - 1);
    } else {
        return;
    }
    chaos_page_text(chart->out, violation->text);
    fputs(violation->kind == CHAOS_VIOLATION_OVERLAP ? "</title></rect>\n" : "</title></path>\n", chart->out);
}

static void put_refusals(const struct chart *chart) {
    for (size_t i = 0; i < chart->history->refusal_count; i++) {
        const struct chaos_refusal *refusal = &chart->history->refusals[i];
        fprintf(chart->out,
                "<path class=\"refused\" d=\"M%.1f %dl4.5 8h-9z\"><title>client %d: a %s with token %" PRId64
                " was refused, for %" PRId64 " had been seen</title></path>\n",
                x_of(chart, refusal->at_us), y_of(refusal->resource) + 2 * LANE - 1, refusal->client + 1,
                refusal->write ? "write" : "read", refusal->fence, refusal->highest);
    }
}

/* A label a second, or each 2, 5, 10, … so that they do not touch. */
static void put_axis(const struct chart *chart) {
    static const int64_t steps_s[] = {1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600, 7200, 21600};
    size_t step = 0;
    while (step + 1 < sizeof steps_s / sizeof steps_s[0] && chart->length_us / 1000000 / steps_s[step] > 20) {
        step++;
    }
    for (int64_t s = 0; s * 1000000 <= chart->length_us; s += steps_s[step]) {
        double x = x_of(chart, chart->history->start_us + s * 1000000);
        fprintf(chart->out, "<text class=\"time\" x=\"%.1f\" y=\"%d\">%" PRId64 " s</text>", x, chart->height - 4, s);
    }
    fputs("\n", chart->out);
}

bool chaos_compare_chart(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict,
                         int64_t length_us) {
    struct chart chart = {.out = out,
                          .history = history,
                          .verdict = verdict,
                          .length_us = length_us,
                          .height = FAULTS + GAP + (int)history->resource_count * ROW + AXIS};
    fprintf(out,
            "<svg class=\"lane compared\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"The leases of each resource "
            "over time\">\n",
            WIDTH, chart.height);
    bool worked = put_without_quorum(&chart);
    put_rows(&chart);
    worked = worked && put_leases(&chart);
    put_faults(&chart);
    for (size_t i = 0; i < verdict->violation_count; i++) {
        if (verdict->violations[i].resource >= 0) {
            put_violation(&chart, &verdict->violations[i]);
        }
    }
    put_refusals(&chart);
    put_axis(&chart);
    fputs("</svg>\n", out);
    return worked;
}
