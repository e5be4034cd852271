/* A row a node and a row a client. Drawn here for 1200 pixels; the page's script draws bars anew for each zoom. */
#include <inttypes.h>
#include <string.h>

#include "report/report_parts.h"
#include "report/report_text.h"

enum { LABELS_MAX = 800 };

/* Writes rectangles and strokes of one path, each relative to the one before. Rectangles that nearly touch become one: nobody sees less than half a pixel. */
struct pen {
    FILE *out;
    int64_t x;
    int y;
    int64_t gap, least;
    bool pending;
    int64_t from, to;
    int top, height;
};

static struct pen pen_new(FILE *out, const struct chaos_view *view) {
    return (struct pen){
        .out = out, .gap = view->ticks * 2 / 5 / CHAOS_VIEW_PLOT, .least = view->ticks * 7 / 10 / CHAOS_VIEW_PLOT + 1};
}

static void pen_flush(struct pen *pen) {
    if (pen->pending) {
        int64_t width = pen->to - pen->from < pen->least ? pen->least : pen->to - pen->from;
        fprintf(pen->out, "m%" PRId64 " %dh%" PRId64 "v%dh-%" PRId64 "z", pen->from - pen->x, pen->top - pen->y, width,
                pen->height, width);
        pen->x = pen->from;
        pen->y = pen->top;
        pen->pending = false;
    }
}

static void pen_bar(struct pen *pen, int64_t from, int64_t to, int top, int height) {
    if (pen->pending && pen->top == top && from - pen->to <= pen->gap && from >= pen->from) {
        pen->to = to > pen->to ? to : pen->to;
        return;
    }
    pen_flush(pen);
    pen->pending = true;
    pen->from = from;
    pen->to = to;
    pen->top = top;
    pen->height = height;
}

static void pen_tick(struct pen *pen, int64_t at, int top, int height) {
    if (pen->pending && pen->top == top && at - pen->from <= pen->least) {
        return;
    }
    fprintf(pen->out, "m%" PRId64 " %dv%d", at - pen->x, top - pen->y, height);
    pen->x = at;
    pen->y = top + height;
    pen->pending = true; /* one is there: the next must keep its distance */
    pen->from = at;
    pen->top = top;
}

static int client_y(const struct chaos_view *view, int client) {
    return view->clients_y + client * view->pitch;
}

static void put_names(FILE *out, const struct chaos_view *view) {
    fprintf(out, "<g class=\"names\" transform=\"translate(%d)\">", CHAOS_VIEW_GUTTER - 10);
    if (view->verdict->violation_count > 0) {
        fputs("<text class=\"bad\" y=\"13\"><tspan class=\"long\">violations</tspan><tspan "
              "class=\"short\">!</tspan></text>",
              out);
    }
    for (size_t i = 0; i < view->history->node_count; i++) {
        fprintf(out, "<text y=\"%d\"><tspan class=\"long\">node </tspan><tspan class=\"short\">n</tspan>%zu</text>",
                view->node_y[i] + view->node_height[i] / 2 + 4, i + 1);
    }
    for (size_t i = 0; i < view->history->client_count; i++) {
        fprintf(out, "<text y=\"%d\"><tspan class=\"long\">client </tspan><tspan class=\"short\">c</tspan>%zu</text>",
                client_y(view, (int)i) + view->pitch / 2 + 4, i + 1);
    }
    fputs("</g>\n<path class=\"rule\" d=\"", out);
    for (size_t i = 0; i < view->history->node_count; i++) {
        fprintf(out, "M0 %d.5H9999", view->node_y[i] + view->node_height[i] - 1);
    }
    for (size_t i = 0; i + 1 < view->history->client_count; i++) {
        fprintf(out, "M0 %d.5H9999", client_y(view, (int)i + 1) - 1);
    }
    fputs("\"/>\n", out);
}

static void put_rectangle(FILE *out, int64_t from, int64_t to, int y, int height) {
    fprintf(out, "M%" PRId64 " %dh%" PRId64 "v%dH%" PRId64 "z", from, y, to - from, height, from);
}

/* A fault: a link to its line in the table of faults, which tells its words without a script too. */
static void put_band(FILE *out, const struct chaos_view *view, size_t index) {
    const struct chaos_band *band = &view->history->bands[index];
    int64_t from = chaos_view_tick(view, band->from_us), to = chaos_view_tick(view, chaos_view_band_end(view, band));
    fprintf(out, "<a class=\"band %s%s\" href=\"#f%zu\"><title>", chaos_view_shade_class(chaos_view_shade(band)),
            band->error != NULL ? " broken" : "", index + 1);
    chaos_page_text(out, band->text);
    fputs("</title>", out);
    if (band->fault.nodes != 0) {
        fputs("<path class=\"on-node\" d=\"", out);
        for (size_t i = 0; i < view->history->node_count; i++) {
            if (band->fault.nodes >> i & 1) {
                int lane = view->lanes[index * view->history->node_count + i];
                put_rectangle(out, from, to, view->node_y[i] + 3 + lane * CHAOS_VIEW_LANE, CHAOS_VIEW_LANE - 2);
            }
        }
        fputs("\"/>", out);
    }
    if (band->fault.clients != 0) {
        fputs("<path class=\"on-client\" d=\"", out);
        for (size_t i = 0, end = 0; i < view->history->client_count; i = end + 1) {
            for (end = i; end < view->history->client_count && (band->fault.clients >> end & 1); end++) {
            }
            if (end > i) {
                put_rectangle(out, from, to, client_y(view, (int)i), (int)(end - i) * view->pitch - 1);
            }
        }
        fputs("\"/>", out);
    }
    fputs("</a>\n", out);
}

/* The names of faults on nodes; those that do not fit wait for a closer look. */
static void put_labels(FILE *out, const struct chaos_view *view) {
    int left = LABELS_MAX;
    fputs("<g class=\"labels\" aria-hidden=\"true\">", out);
    for (size_t i = 0; i < view->history->band_count; i++) {
        const struct chaos_band *band = &view->history->bands[i];
        const char *name = chaos_fault_about(band->fault.kind)->name;
        int64_t from = chaos_view_tick(view, band->from_us);
        int64_t to = chaos_view_tick(view, chaos_view_band_end(view, band));
        int64_t width = (to - from) * CHAOS_VIEW_PLOT / view->ticks;
        for (size_t n = 0; n < view->history->node_count && left > 0; n++) {
            if ((band->fault.nodes >> n & 1) == 0) {
                continue;
            }
            left--;
            fprintf(
                out, "<text class=\"%s%s\" data-f=\"%" PRId64 "\" data-t=\"%" PRId64 "\" x=\"%" PRId64 "\" y=\"%d\">",
                chaos_view_shade_class(chaos_view_shade(band)), width < (int64_t)strlen(name) * 6 + 10 ? " off" : "",
                from, to, CHAOS_VIEW_GUTTER + from * CHAOS_VIEW_PLOT / view->ticks + 5,
                view->node_y[n] + 14 + view->lanes[i * view->history->node_count + n] * CHAOS_VIEW_LANE);
            chaos_page_text(out, name);
            fputs("</text>", out);
        }
    }
    fputs("</g>\n", out);
}

static void put_leases(FILE *out, const struct chaos_view *view, size_t hue) {
    struct pen pen = pen_new(out, view);
    fprintf(out, "<path class=\"lease hue%zu\" data-bars=\"%zu\" d=\"", hue, hue);
    for (size_t i = 0; i < view->lease_first[view->history->client_count]; i++) {
        const struct chaos_lease *lease = &view->history->leases[view->leases[i]];
        enum chaos_how how;
        if ((size_t)lease->resource % CHAOS_VIEW_HUES == hue) {
            pen_bar(&pen, chaos_view_tick(view, lease->from_us),
                    chaos_view_tick(view, chaos_view_lease_end(view, lease, &how)),
                    client_y(view, lease->client) + (view->pitch - view->bar) / 2, view->bar);
        }
    }
    pen_flush(&pen);
    fputs("\"/>\n", out);
}

/* Leases that ended badly: a mark where they were lost; a thin bar for as long as nodes keep what a dead client held. */
static void put_bad_ends(FILE *out, const struct chaos_view *view, enum chaos_how which) {
    struct pen pen = pen_new(out, view);
    bool died = which == CHAOS_HOW_DIED;
    fprintf(out, "<path class=\"%s\" data-bars=\"%s\" d=\"", died ? "kept" : "lost", died ? "kept" : "lost");
    for (size_t i = 0; i < view->lease_first[view->history->client_count]; i++) {
        const struct chaos_lease *lease = &view->history->leases[view->leases[i]];
        enum chaos_how how;
        int64_t end_us = chaos_view_lease_end(view, lease, &how);
        int y = client_y(view, lease->client);
        if (how != which) {
            continue;
        }
        if (died) {
            pen_bar(&pen, chaos_view_tick(view, end_us), chaos_view_tick(view, lease->until_us),
                    y + view->pitch / 2 - 1, 3);
        } else {
            pen_tick(&pen, chaos_view_tick(view, end_us), y + 1, view->pitch - 3);
        }
    }
    if (died) {
        pen_flush(&pen);
    }
    fputs("\"/>\n", out);
}

static void put_waits(FILE *out, const struct chaos_view *view) {
    struct pen pen = pen_new(out, view);
    fputs("<path class=\"wait\" data-bars=\"wait\" d=\"", out);
    for (size_t i = 0; i < view->operation_first[view->history->client_count]; i++) {
        const struct chaos_operation *operation = &view->history->operations[view->operations[i]];
        if (operation->what == CHAOS_ACQUIRE && operation->completed_us != CHAOS_NEVER_US) {
            pen_bar(&pen, chaos_view_tick(view, operation->invoked_us), chaos_view_tick(view, operation->completed_us),
                    client_y(view, operation->client) + view->pitch / 2, 1);
        }
    }
    pen_flush(&pen);
    fputs("\"/>\n", out);
}

static void put_failures(FILE *out, const struct chaos_view *view, bool contended) {
    struct pen pen = pen_new(out, view);
    fprintf(out, "<path class=\"%s\" data-bars=\"%s\" d=\"", contended ? "denied" : "failed",
            contended ? "denied" : "failed");
    for (size_t i = 0; i < view->operation_first[view->history->client_count]; i++) {
        const struct chaos_operation *operation = &view->history->operations[view->operations[i]];
        if (chaos_view_failed(operation) && !chaos_view_given_up(operation) &&
            (strcmp(operation->result, "CONTENDED") == 0) == contended) {
            pen_tick(&pen, chaos_view_tick(view, operation->completed_us),
                     client_y(view, operation->client) + view->pitch - 7, 5);
        }
    }
    fputs("\"/>\n", out);
}

static void put_violation(FILE *out, const struct chaos_view *view, size_t index) {
    const struct chaos_violation *violation = &view->verdict->violations[index];
    int64_t from = chaos_view_tick(view, violation->from_us), to = chaos_view_tick(view, violation->to_us);
    to = to < from ? from : to;
    fprintf(out, "<a class=\"violation\" id=\"m%zu\" href=\"#v%zu\" tabindex=\"-1\"><title>", index + 1, index + 1);
    chaos_page_text(out, violation->text);
    fprintf(out, "</title><path class=\"flag\" d=\"M%" PRId64 " 2v%d\"/><path class=\"where\" d=\"", from,
            CHAOS_VIEW_VIOLATIONS - 2);
    for (int i = 0; i < 2; i++) {
        if (violation->clients[i] >= 0) {
            put_rectangle(out, from, to, client_y(view, violation->clients[i]), view->pitch - 1);
        }
    }
    fputs("\"/></a>\n", out);
}

/* Patterns stretch with the plot: the script turns that back. */
static void put_patterns(FILE *out, const struct chaos_view *view) {
    int64_t per_10000_pixels = view->ticks * 10000 / CHAOS_VIEW_PLOT;
    static const char *const names[] = {"hatch", "hatch-soft"};
    fputs("<defs>", out);
    for (size_t i = 0; i < 2; i++) {
        fprintf(out,
                "<pattern id=\"%s\" class=\"%s\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
                "patternTransform=\"scale(%" PRId64 ".%04" PRId64 " 1)\"><rect width=\"6\" height=\"6\"/><path d=\"M-1 "
                "1l2-2M0 6l6-6M5 7l2-2\"/></pattern>",
                names[i], names[i], per_10000_pixels / 10000, per_10000_pixels % 10000);
    }
    fputs("</defs>\n", out);
}

void chaos_page_rows(FILE *out, const struct chaos_view *view) {
    chaos_lane_begin(out, "rows", view->height, "Nodes and their faults, clients and their leases, over time");
    put_patterns(out, view);
    put_names(out, view);
    chaos_plot_begin(out, view, CHAOS_PLOT_WINDOW, 0, view->height);
    for (size_t i = 0; i < view->history->band_count; i++) {
        put_band(out, view, i);
    }
    put_waits(out, view);
    for (size_t i = 0; i < view->history->resource_count && i < CHAOS_VIEW_HUES; i++) {
        put_leases(out, view, i);
    }
    fputs("<path class=\"renewed\" data-bars=\"renewed\" d=\"\"/>\n", out);
    put_bad_ends(out, view, CHAOS_HOW_DIED);
    put_bad_ends(out, view, CHAOS_HOW_LOST);
    put_failures(out, view, true);
    put_failures(out, view, false);
    for (size_t i = 0; i < view->verdict->violation_count && i < CHAOS_VIOLATIONS_SHOWN; i++) {
        put_violation(out, view, i);
    }
    fputs("<path class=\"chosen\" data-bars=\"chosen\" d=\"\"/>\n", out);
    chaos_plot_end(out);
    put_labels(out, view);
    chaos_lane_end(out);
}
