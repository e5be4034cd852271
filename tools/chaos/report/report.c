/* The pages, from the first byte to the last. */
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "report/html.h"
#include "report/parts.h"

static const char *const page = (const char *)chaos_page;

/* The page up to its body; the title tells the violations, of what is named; "" for nothing. */
static void begin_page(FILE *out, const char *title, size_t violations) {
    const char *name = strstr(page, "{{title}}"), *body = strstr(page, "{{body}}");
    bool named = title != NULL && title[0] != '\0';
    fwrite(page, 1, (size_t)(name - page), out);
    chaos_html(out, "%s%sredlock-chaos: %s", named ? title : "", named ? " – " : "",
               CHAOS_MANY(violations, "violation"));
    name += strlen("{{title}}");
    fwrite(name, 1, (size_t)(body - name), out);
}

/* The rest: the script draws `data`, which is taken, and NULL without memory. False with errno. */
static bool end_page(FILE *out, json_t *data) {
    const char *rest = strstr(page, "{{body}}") + strlen("{{body}}"), *place = strstr(rest, "{{data}}");
    fwrite(rest, 1, (size_t)(place - rest), out);
    bool worked = chaos_html_json(out, data);
    fputs(place + strlen("{{data}}"), out);
    json_decref(data);
    if (!worked) {
        errno = ENOMEM;
    }
    return worked && !ferror(out) && fflush(out) == 0;
}

bool chaos_report_write(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict,
                        const struct chaos_experiment *experiment) {
    struct chaos_view view = chaos_view_of(history, verdict, experiment);
    begin_page(out, experiment != NULL ? experiment->title : history->experiment, verdict->violation_count);
    chaos_page_head(out, &view);
    chaos_page_violations(out, &view);
    fputs("<section id=\"time\" aria-labelledby=\"time-title\">\n<h2 id=\"time-title\">Timeline</h2>\n"
          "<p><a class=\"skip\" href=\"#tables\">Skip the timeline</a></p>\n<noscript><p>This part is drawn by "
          "JavaScript, which is off. All figures are on this page without it.</p></noscript>\n</section>\n",
          out);
    chaos_page_tables(out, &view);
    fputs("</main>\n", out);
    return end_page(out, json_pack("{s:[o]}", "runs", chaos_page_data(&view)));
}

/* One schedule without protection, with fencing tokens, and with guards as well. */

static void put_verdict(FILE *out, const struct chaos_comparison *comparison) {
    bool holds = chaos_comparison_holds(comparison);
    bool shows = comparison->verdicts[CHAOS_SIDE_NONE].violation_count > 0;
    chaos_page_verdict(out, holds ? CHAOS_MOOD_CLEAN : CHAOS_MOOD_WRONG,
                       holds   ? "Violations without protection, none with it"
                       : shows ? "The protection does not hold what it promises"
                               : "Nothing went wrong without protection either: this shows nothing");
    for (int side = 0; side < CHAOS_SIDES; side++) {
        char text[512];
        chaos_side_sentence(comparison, (enum chaos_side)side, text, sizeof text);
        chaos_html(out, "<p><b>%s:</b> %s</p>", chaos_sides[side].title, text);
    }
    fputs("</div></section>\n", out);
}

static void put_table(FILE *out, const struct chaos_comparison *comparison) {
    fputs("<section aria-labelledby=\"figures\"><h2 id=\"figures\">Figures</h2>\n<div class=\"wide\"><table "
          "class=\"numbers compared\"><thead><tr><th scope=\"col\"></th>",
          out);
    for (int side = 0; side < CHAOS_SIDES; side++) {
        chaos_html(out, "<th scope=\"col\"><a href=\"%s/report.html\">%s</a></th>", chaos_sides[side].name,
                   chaos_sides[side].title);
    }
    fputs("</tr></thead><tbody>\n", out);
    struct chaos_row row;
    for (size_t i = 0; chaos_row_at(comparison, i, &row); i++) {
        chaos_html(out, "<tr><th scope=\"row\">%s</th>", row.name);
        for (int side = 0; side < CHAOS_SIDES; side++) {
            chaos_html(out, "<td class=\"%s\">%s</td>", row.bad[side] ? "bad" : "",
                       row.figures[side][0] == '\0' ? "–" : row.figures[side]);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n<p class=\"note\">A dash: that protection was off. The share of acquires leaves out "
          "those that were cut by the end of their client. Availability counts acquires during all of which a quorum "
          "of nodes was under no fault: it does not see what the guards cost. The three rows above it do.</p>"
          "</section>\n",
          out);
}

/* Each figure is filled by the script. */
static void put_pictures(FILE *out, const struct chaos_comparison *comparison) {
    fputs("<section id=\"pictures\" aria-labelledby=\"pictures-title\"><h2 id=\"pictures-title\">Who held what</h2>\n"
          "<noscript><p>The pictures are drawn by JavaScript, which is off.</p></noscript>\n",
          out);
    for (int side = 0; side < CHAOS_SIDES; side++) {
        chaos_html(out,
                   "<h3>%s: %s <a href=\"%s/report.html\">the whole page of this run</a></h3>\n<figure></figure>\n",
                   chaos_sides[side].title, CHAOS_MANY(comparison->verdicts[side].violation_count, "violation"),
                   chaos_sides[side].name);
    }
    fputs("</section>\n", out);
}

bool chaos_report_compare(FILE *out, const struct chaos_comparison *comparison,
                          const struct chaos_experiment *experiment) {
    const struct chaos_history *history = &comparison->histories[CHAOS_SIDE_NONE];
    bool named = experiment != NULL;
    json_t *runs[CHAOS_SIDES];
    for (int side = 0; side < CHAOS_SIDES; side++) {
        struct chaos_view view = chaos_view_of(&comparison->histories[side], &comparison->verdicts[side], experiment);
        runs[side] = chaos_page_data(&view);
    }
    begin_page(out, named ? experiment->title : "Faults compared",
               comparison->verdicts[CHAOS_SIDE_GUARDS].violation_count);
    chaos_page_header(
        out, CHAOS_SAY("%s / compared", named ? experiment->name : "a schedule of one's own"), history->version,
        CHAOS_SAY("%s: with and without protection", named ? experiment->title : "Faults of one's own"),
        CHAOS_SAY("%s The same schedule and the same seed, three times.", named ? experiment->purpose : ""));
    put_verdict(out, comparison);
    put_pictures(out, comparison);
    put_table(out, comparison);
    chaos_html(out,
               "<section class=\"repeat\" aria-labelledby=\"repeat\"><h2 id=\"repeat\">Repeat it</h2><p>Seed <b "
               "class=\"number\">%s</b>; the command of each run stands on its page.</p></section>\n</main>\n",
               CHAOS_SAY("%" PRIu64, history->seed));
    return end_page(out, json_pack("{s:[o,o,o]}", "runs", runs[0], runs[1], runs[2]));
}
