/* What stays in sight above the timeline: its tools, an overview of the whole run, the time axis. And what all its drawings are made of. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_parts.h"
#include "report/report_text.h"

enum { OVERVIEW_HEIGHT = 40, OVERVIEW_RATE = 28, AXIS_HEIGHT = 24 };

/* Between the axis' times: 1, 2 or 5 times a power of ten, 90 pixels or more. */
static int64_t step_us(const struct chaos_view *view) {
    int64_t least_us = view->end_us * 90 / CHAOS_VIEW_PLOT, power = 1000;
    while (power * 10 <= least_us) {
        power *= 10;
    }
    return power >= least_us       ? power
           : 2 * power >= least_us ? 2 * power
           : 5 * power >= least_us ? 5 * power
                                   : 10 * power;
}

void chaos_lane_begin(FILE *out, const char *classes, int height, const char *label) {
    fprintf(out, "<svg class=\"lane %s\" viewBox=\"0 0 %d %d\" data-h=\"%d\" role=\"group\" aria-label=\"", classes,
            CHAOS_VIEW_WIDTH, height, height);
    chaos_page_text(out, label);
    fputs("\">\n", out);
}

void chaos_plot_begin(FILE *out, const struct chaos_view *view, enum chaos_plot plot, int y, int height) {
    fprintf(out,
            "<svg class=\"plot%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %" PRId64
            " %d\" preserveAspectRatio=\"none\">\n",
            plot == CHAOS_PLOT_WHOLE ? " whole" : "", CHAOS_VIEW_GUTTER, y, CHAOS_VIEW_PLOT, height, view->ticks,
            height);
    if (plot == CHAOS_PLOT_WINDOW) {
        int64_t step = step_us(view);
        fprintf(out, "<path class=\"grid\" data-h=\"%d\" d=\"", height);
        for (int64_t at = step; at < view->end_us; at += step) {
            fprintf(out, "M%" PRId64 " 0V%d", at / view->tick_us, height);
        }
        fputs("\"/>\n", out);
    }
}

void chaos_plot_end(FILE *out) {
    fputs("</svg>\n", out);
}

void chaos_lane_end(FILE *out) {
    fputs("</svg>\n", out);
}

static void put_legend(FILE *out, const struct chaos_view *view) {
    static const char *const shades[CHAOS_SHADES] = {"down: killed or paused", "link: cut off, delayed, cut",
                                                     "impaired: slow, refusing", "forgets keys, or has a wrong clock"};
    bool seen[CHAOS_SHADES] = {false};
    fputs("<ul class=\"legend\" aria-label=\"Legend\">", out);
    for (size_t i = 0; i < view->history->resource_count; i++) {
        fprintf(out, "<li><i class=\"key hue%zu\"></i>", i % CHAOS_VIEW_HUES);
        chaos_page_text(out, view->history->resources[i]);
        fputs("</li>", out);
    }
    for (size_t i = 0; i < view->history->band_count; i++) {
        seen[chaos_view_shade(&view->history->bands[i])] = true;
    }
    for (size_t i = 0; i < CHAOS_SHADES; i++) {
        if (seen[i]) {
            fprintf(out, "<li><i class=\"key %s\"></i>%s</li>", chaos_view_shade_class((enum chaos_shade)i), shades[i]);
        }
    }
    fputs("<li><i class=\"key stroke wait\"></i>waits for a lock</li>"
          "<li><i class=\"key stroke denied\"></i>not acquired: held by others</li>"
          "<li><i class=\"key stroke failed\"></i>not acquired: no quorum in time</li>"
          "<li><i class=\"key stroke lost\"></i>lease lost</li>",
          out);
    if (view->verdict->violation_count > 0) {
        fputs("<li><i class=\"key violation\"></i>violation</li>", out);
    }
    fputs("</ul>\n", out);
}

static void put_tools(FILE *out) {
    fputs(
        "<div class=\"tools\" role=\"toolbar\" aria-label=\"Zoom and move\">"
        "<button type=\"button\" data-do=\"in\" aria-label=\"Zoom in\" title=\"Zoom in (+)\">+</button>"
        "<button type=\"button\" data-do=\"out\" aria-label=\"Zoom out\" title=\"Zoom out (-)\">&minus;</button>"
        "<button type=\"button\" data-do=\"left\" aria-label=\"Earlier\" title=\"Earlier (left arrow)\">&larr;</button>"
        "<button type=\"button\" data-do=\"right\" aria-label=\"Later\" title=\"Later (right arrow)\">&rarr;</button>"
        "<button type=\"button\" data-do=\"all\" title=\"The whole run (0)\">All</button>"
        "<output id=\"shown\" aria-live=\"polite\"></output>"
        "<span class=\"hint\" id=\"hint\">Click the timeline, then: wheel or + &minus; zooms, dragging or &larr; "
        "&rarr; moves, "
        "&uarr; &darr; picks a row, n and p go from lease to lease.</span></div>\n",
        out);
}

/* Acquires a second over the whole run, faults as a thin line below them, violations across. */
static void put_overview(FILE *out, const struct chaos_view *view, const struct chaos_bucket *buckets, size_t count) {
    int64_t most = 1, width_us = chaos_view_bucket_us(view);
    fputs("<div class=\"overview\">", out);
    chaos_lane_begin(out, "", OVERVIEW_HEIGHT, "Overview of the whole run: acquires, faults, violations");
    fprintf(out,
            "<g class=\"names\" transform=\"translate(%d)\"><text y=\"%d\"><tspan class=\"long\">whole run</tspan>"
            "<tspan class=\"short\">all</tspan></text></g>",
            CHAOS_VIEW_GUTTER - 10, OVERVIEW_HEIGHT / 2 + 4);
    chaos_plot_begin(out, view, CHAOS_PLOT_WHOLE, 0, OVERVIEW_HEIGHT);
    for (size_t i = 0; i < count; i++) {
        most = buckets[i].acquired > most ? buckets[i].acquired : most;
    }
    fprintf(out, "<path class=\"rate\" d=\"M0 %d", OVERVIEW_RATE);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "V%" PRId64 "H%" PRId64, OVERVIEW_RATE - buckets[i].acquired * (OVERVIEW_RATE - 2) / most,
                chaos_view_tick(view, view->history->start_us + ((int64_t)i + 1) * width_us));
    }
    fprintf(out, "V%dz\"/>", OVERVIEW_RATE);
    for (size_t i = 0; i < view->history->band_count; i++) {
        const struct chaos_band *band = &view->history->bands[i];
        int64_t from = chaos_view_tick(view, band->from_us),
                to = chaos_view_tick(view, chaos_view_band_end(view, band));
        fprintf(out, "<path class=\"%s\" d=\"M%" PRId64 " %dH%" PRId64 "v7H%" PRId64 "z\"/>",
                chaos_view_shade_class(chaos_view_shade(band)), from, OVERVIEW_RATE + 3, to, from);
    }
    fputs("<path class=\"marks\" d=\"", out);
    for (size_t i = 0; i < view->verdict->violation_count && i < CHAOS_VIOLATIONS_SHOWN; i++) {
        fprintf(out, "M%" PRId64 " 0v%d", chaos_view_tick(view, view->verdict->violations[i].from_us), OVERVIEW_HEIGHT);
    }
    fputs("\"/>\n", out);
    chaos_plot_end(out);
    chaos_lane_end(out);
    fputs("<div class=\"brush\"></div></div>\n", out);
}

static void put_axis(FILE *out, const struct chaos_view *view) {
    int64_t step = step_us(view);
    chaos_lane_begin(out, "axis", AXIS_HEIGHT, "Time since the start");
    fputs("<g class=\"times\">", out);
    for (int64_t at = 0; at <= view->end_us; at += step) {
        char time[CHAOS_NUMBER_SIZE];
        if (step < 1000000) {
            chaos_say_time(at, time);
        } else {
            snprintf(time, sizeof time, "%" PRId64 " s", at / 1000000);
        }
        fprintf(out, "<text x=\"%" PRId64 "\" y=\"16\">%s</text>",
                CHAOS_VIEW_GUTTER + at * CHAOS_VIEW_PLOT / (view->end_us + 1), time);
    }
    fputs("</g>\n", out);
    chaos_lane_end(out);
}

bool chaos_page_window(FILE *out, const struct chaos_view *view) {
    size_t count;
    struct chaos_bucket *buckets = chaos_view_buckets(view, &count);
    if (buckets == NULL) {
        errno = ENOMEM;
        return false;
    }
    fputs("<section id=\"time\" aria-labelledby=\"time-title\">\n<h2 id=\"time-title\">Timeline</h2>\n"
          "<p><a class=\"skip\" href=\"#tables\">Skip the timeline</a></p>\n",
          out);
    put_legend(out, view);
    fputs("<div class=\"window\">", out);
    put_tools(out);
    put_overview(out, view, buckets, count);
    put_axis(out, view);
    fputs("</div>\n", out);
    free(buckets);
    return true;
}
