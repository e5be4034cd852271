/* Latency and availability over the timeline's time. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_parts.h"
#include "report/report_text.h"

enum { LATENCY_HEIGHT = 190, SHARE_HEIGHT = 120, STRIP_HEIGHT = 18, STRIP_Y = SHARE_HEIGHT + 6, PAD = 6 };

/* A logarithmic scale in whole decades. */
struct scale {
    int64_t low_us, high_us;
};

static struct scale scale_of(const struct chaos_view *view) {
    struct scale scale = {100, 1000};
    int64_t most = 0, least = INT64_MAX;
    for (size_t i = 0; i < view->history->operation_count; i++) {
        const struct chaos_operation *operation = &view->history->operations[i];
        if (operation->what == CHAOS_ACQUIRE && strcmp(operation->result, "OK") == 0) {
            int64_t us = operation->completed_us - operation->invoked_us;
            most = us > most ? us : most;
            least = us < least ? us : least;
        }
    }
    while (scale.low_us > 1 && least < scale.low_us) {
        scale.low_us /= 10;
    }
    while (scale.high_us < most && scale.high_us < INT64_MAX / 100) {
        scale.high_us *= 10;
    }
    return scale;
}

/* 4096 times the logarithm to base 2 of a positive number, by squaring: the same on every machine. */
static int64_t logarithm(int64_t number) {
    int64_t result = 0;
    uint64_t mantissa = (uint64_t)number;
    for (; mantissa >= UINT64_C(1) << 31; mantissa >>= 1) {
        result++;
    }
    result += 30;
    for (; mantissa < UINT64_C(1) << 30; mantissa <<= 1) {
        result--;
    }
    for (int i = 0; i < 12; i++) {
        mantissa = mantissa * mantissa >> 30;
        bool doubled = mantissa >= UINT64_C(1) << 31;
        mantissa >>= doubled;
        result = 2 * result + doubled;
    }
    return result;
}

static int scale_y(const struct scale *scale, int64_t us) {
    int64_t low = logarithm(scale->low_us), whole = logarithm(scale->high_us) - low;
    int64_t above = logarithm(us < scale->low_us ? scale->low_us : us) - low;
    return LATENCY_HEIGHT - PAD - (int)((above * (LATENCY_HEIGHT - 2 * PAD) + whole / 2) / whole);
}

static void put_scale(FILE *out, const struct scale *scale) {
    fprintf(out, "<g class=\"names\" transform=\"translate(%d)\">", CHAOS_VIEW_GUTTER - 10);
    for (int64_t us = scale->low_us; us <= scale->high_us; us *= 10) {
        char text[CHAOS_NUMBER_SIZE];
        const char *unit = us < 1000 ? "µs" : us < 1000000 ? "ms" : "s";
        int64_t divisor = us < 1000 ? 1 : us < 1000000 ? 1000 : 1000000;
        fprintf(out, "<text y=\"%d\">%s %s</text>", scale_y(scale, us) + 4, chaos_say_count(us / divisor, text), unit);
    }
    fputs("</g><path class=\"rule\" d=\"", out);
    for (int64_t us = scale->low_us; us <= scale->high_us; us *= 10) {
        fprintf(out, "M%d %d.5H9999", CHAOS_VIEW_GUTTER, scale_y(scale, us));
    }
    fputs("\"/>\n", out);
}

/* A dot an acquire; those that fall on the same pixel are one. */
static void put_dots(FILE *out, const struct chaos_view *view, const struct scale *scale, bool retried,
                     uint8_t *drawn) {
    int64_t last_x = 0;
    int last_y = 0;
    fprintf(out, "<path class=\"%s\" d=\"", retried ? "dots retried" : "dots");
    for (size_t i = 0; i < view->history->operation_count; i++) {
        const struct chaos_operation *operation = &view->history->operations[i];
        if (operation->what != CHAOS_ACQUIRE || strcmp(operation->result, "OK") != 0 ||
            (operation->attempts > 1) != retried) {
            continue;
        }
        int64_t pixel = chaos_view_tick(view, operation->completed_us) * (CHAOS_VIEW_PLOT - 1) / view->ticks;
        int y = scale_y(scale, operation->completed_us - operation->invoked_us);
        uint8_t *cell = &drawn[pixel * LATENCY_HEIGHT + y];
        if (*cell == 0) {
            int64_t x = chaos_view_tick(view, operation->completed_us);
            *cell = 1;
            fprintf(out, "m%" PRId64 " %dh0", x - last_x, y - last_y);
            last_x = x;
            last_y = y;
        }
    }
    fputs("\"/>\n", out);
}

static void put_line(FILE *out, const struct chaos_view *view, const struct scale *scale,
                     const struct chaos_bucket *buckets, size_t count, bool high) {
    int64_t width_us = chaos_view_bucket_us(view);
    fprintf(out, "<path class=\"line %s\" d=\"", high ? "p99" : "p50");
    bool pen_down = false;
    for (size_t i = 0; i < count; i++) {
        if (buckets[i].acquired > 0) {
            int64_t middle = ((int64_t)i * width_us + width_us / 2) / view->tick_us;
            fprintf(out, "%c%" PRId64 " %d", pen_down ? 'L' : 'M', middle,
                    scale_y(scale, high ? buckets[i].p99_us : buckets[i].p50_us));
        }
        pen_down = buckets[i].acquired > 0;
    }
    fputs("\"/>\n", out);
}

/* "500 ms", "1 s", "20 s" */
static char *interval(const struct chaos_view *view, char *buffer) {
    int64_t ms = chaos_view_bucket_us(view) / 1000;
    bool seconds = ms % 1000 == 0;
    snprintf(buffer, CHAOS_NUMBER_SIZE, "%" PRId64 " %s", seconds ? ms / 1000 : ms, seconds ? "s" : "ms");
    return buffer;
}

static bool put_latency(FILE *out, const struct chaos_view *view, const struct chaos_bucket *buckets, size_t count) {
    struct scale scale = scale_of(view);
    uint8_t *drawn = calloc((size_t)CHAOS_VIEW_PLOT * LATENCY_HEIGHT, 1);
    if (drawn == NULL) {
        return false;
    }
    char width[CHAOS_NUMBER_SIZE];
    fprintf(
        out,
        "<h3>How long a successful acquire took</h3>\n<ul class=\"legend\"><li><i class=\"key dot\"></i>at the first "
        "attempt</li><li><i class=\"key dot retried\"></i>after more attempts</li><li><i class=\"key stroke p50\">"
        "</i>median of each %s</li><li><i class=\"key stroke p99\"></i>99th percentile</li></ul>\n",
        interval(view, width));
    chaos_lane_begin(out, "chart", LATENCY_HEIGHT,
                     "Time that successful acquires took, on a logarithmic scale, over time");
    put_scale(out, &scale);
    chaos_plot_begin(out, view, CHAOS_PLOT_WINDOW, 0, LATENCY_HEIGHT);
    put_dots(out, view, &scale, true, drawn);
    memset(drawn, 0, (size_t)CHAOS_VIEW_PLOT * LATENCY_HEIGHT);
    put_dots(out, view, &scale, false, drawn);
    put_line(out, view, &scale, buckets, count, false);
    put_line(out, view, &scale, buckets, count, true);
    chaos_plot_end(out);
    chaos_lane_end(out);
    free(drawn);
    return true;
}

static int share_y(int64_t part, int64_t whole) {
    return SHARE_HEIGHT - (int)(part * (SHARE_HEIGHT - 2) / (whole == 0 ? 1 : whole));
}

/* One of the three shares: what lies between `below` and `below` + `part` of each interval's acquires. */
static void put_share(FILE *out, const struct chaos_view *view, const struct chaos_bucket *buckets, size_t count,
                      int which) {
    static const char *const classes[] = {"acquired", "contended", "unserved"};
    int64_t width_us = chaos_view_bucket_us(view);
    fprintf(out, "<path class=\"%s\" d=\"", classes[which]);
    for (size_t i = 0; i < count; i++) {
        const struct chaos_bucket *bucket = &buckets[i];
        int64_t parts[] = {0, bucket->acquired, bucket->acquired + bucket->contended,
                           bucket->acquired + bucket->contended + bucket->failed};
        if (parts[which + 1] > parts[which]) {
            int64_t from = (int64_t)i * width_us / view->tick_us, to = from + width_us / view->tick_us;
            int64_t gap = width_us / view->tick_us / 12;
            fprintf(out, "M%" PRId64 " %dH%" PRId64 "V%dH%" PRId64 "z", from, share_y(parts[which], parts[3]), to - gap,
                    share_y(parts[which + 1], parts[3]), from);
        }
    }
    fputs("\"/>\n", out);
}

static void put_unwell(FILE *out, const struct chaos_view *view, const struct chaos_step *steps, size_t count) {
    int64_t clients = (int64_t)(view->history->client_count == 0 ? 1 : view->history->client_count);
    fputs("<path class=\"unwell\" d=\"", out);
    for (size_t i = 0; i < count; i++) {
        int64_t to = i + 1 < count ? steps[i + 1].tick : view->ticks;
        if (steps[i].clients > 0 && to > steps[i].tick) {
            int height = (int)((steps[i].clients * STRIP_HEIGHT + clients - 1) / clients);
            fprintf(out, "M%" PRId64 " %dH%" PRId64 "V%dH%" PRId64 "z", steps[i].tick, STRIP_Y + STRIP_HEIGHT, to,
                    STRIP_Y + STRIP_HEIGHT - height, steps[i].tick);
        }
    }
    fputs("\"/>\n<path class=\"unwell behind\" d=\"", out);
    for (size_t i = 0; i < count; i++) {
        int64_t to = i + 1 < count ? steps[i + 1].tick : view->ticks;
        if (steps[i].clients > 0 && to > steps[i].tick) {
            fprintf(out, "M%" PRId64 " 0H%" PRId64 "V%dH%" PRId64 "z", steps[i].tick, to, SHARE_HEIGHT, steps[i].tick);
        }
    }
    fputs("\"/>\n", out);
}

static bool put_availability(FILE *out, const struct chaos_view *view, const struct chaos_bucket *buckets,
                             size_t count) {
    size_t step_count;
    struct chaos_step *steps = chaos_view_unwell(view, &step_count);
    if (steps == NULL) {
        return false;
    }
    char width[CHAOS_NUMBER_SIZE];
    fprintf(
        out,
        "<h3>What became of acquires</h3>\n<ul class=\"legend\"><li><i class=\"key "
        "acquired\"></i>acquired</li><li><i class=\"key contended\"></i>held by others until the end of the wait"
        "</li><li><i class=\"key unserved\"></i>no quorum in time</li><li><i class=\"key unwell\"></i>clients without "
        "a healthy quorum</li><li>a bar: %s</li></ul>\n",
        interval(view, width));
    chaos_lane_begin(out, "chart", STRIP_Y + STRIP_HEIGHT, "Share of acquires that succeeded, over time");
    fprintf(
        out,
        "<g class=\"names\" transform=\"translate(%d)\"><text y=\"10\">100 %%</text><text y=\"%d\">50 %%</text><text "
        "y=\"%d\">0 %%</text><text y=\"%d\"><tspan class=\"long\">unhealthy</tspan><tspan class=\"short\">ill</tspan>"
        "</text></g><path class=\"rule\" d=\"M%d %d.5H9999M%d %d.5H9999\"/>\n",
        CHAOS_VIEW_GUTTER - 10, SHARE_HEIGHT / 2 + 4, SHARE_HEIGHT, STRIP_Y + STRIP_HEIGHT - 3, CHAOS_VIEW_GUTTER,
        SHARE_HEIGHT / 2, CHAOS_VIEW_GUTTER, STRIP_Y + STRIP_HEIGHT - 1);
    chaos_plot_begin(out, view, CHAOS_PLOT_WINDOW, 0, STRIP_Y + STRIP_HEIGHT);
    put_unwell(out, view, steps, step_count);
    for (int i = 0; i < 3; i++) {
        put_share(out, view, buckets, count, i);
    }
    chaos_plot_end(out);
    chaos_lane_end(out);
    free(steps);
    return true;
}

bool chaos_page_charts(FILE *out, const struct chaos_view *view) {
    size_t count;
    struct chaos_bucket *buckets = chaos_view_buckets(view, &count);
    bool any = view->verdict->acquired > 0;
    bool worked = buckets != NULL && (!any || put_latency(out, view, buckets, count)) &&
                  put_availability(out, view, buckets, count);
    fputs("<div class=\"cross\" hidden></div></div>\n<div id=\"tip\" role=\"status\" hidden></div>\n</section>\n", out);
    free(buckets);
    if (!worked) {
        errno = ENOMEM;
    }
    return worked;
}
