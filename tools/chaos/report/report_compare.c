/* The page of a comparison: one schedule without protection, with fencing tokens, and with guards as well. */
#include <inttypes.h>

#include "report/report.h"
#include "report/report_assets.h"
#include "report/report_compare_chart.h"
#include "report/report_parts.h"
#include "report/report_text.h"

static void put_head(FILE *out, const struct chaos_history *history, const struct chaos_experiment *experiment) {
    fputs("<header>\n<p class=\"over\">redlock-chaos <span aria-hidden=\"true\">/</span> ", out);
    chaos_page_text(out, experiment != NULL ? experiment->name : "a schedule of one's own");
    fputs(" <span aria-hidden=\"true\">/</span> compared <span aria-hidden=\"true\">/</span> ", out);
    chaos_page_text(out, history->version);
    fputs("</p>\n<h1>", out);
    chaos_page_text(out, experiment != NULL ? experiment->title : "Faults of one's own");
    fputs(": with and without protection</h1>\n<p class=\"purpose\">", out);
    chaos_page_text(out, experiment != NULL ? experiment->purpose : "");
    fputs(" The same schedule and the same seed, three times.</p>\n</header>\n<main>\n", out);
}

static void put_verdict(FILE *out, const struct chaos_comparison *comparison) {
    static const char good[] = "<path d=\"M7 16.5l6 6 12-13\"/>", wrong[] = "<path d=\"M9 9l14 14M23 9L9 23\"/>";
    bool holds = chaos_comparison_holds(comparison);
    bool shows = comparison->verdicts[CHAOS_SIDE_NONE].violation_count > 0;
    char text[512];
    fprintf(out,
            "<section class=\"verdict %s\" aria-labelledby=\"verdict\"><svg class=\"sign\" viewBox=\"0 0 32 32\" "
            "aria-hidden=\"true\">%s</svg><div><h2 id=\"verdict\">%s</h2>",
            holds ? "clean" : "wrong", holds ? good : wrong,
            holds   ? "Violations without protection, none with it"
            : shows ? "The protection does not hold what it promises"
                    : "Nothing went wrong without protection either: this shows nothing");
    for (int side = 0; side < CHAOS_SIDES; side++) {
        chaos_side_sentence(comparison, (enum chaos_side)side, text, sizeof text);
        fprintf(out, "<p><b>%s:</b> ", chaos_side_title((enum chaos_side)side));
        chaos_page_text(out, text);
        fputs("</p>", out);
    }
    fputs("</div></section>\n", out);
}

static void put_table(FILE *out, const struct chaos_comparison *comparison) {
    fputs("<section aria-labelledby=\"figures\"><h2 id=\"figures\">Figures</h2>\n<div class=\"wide\"><table "
          "class=\"numbers compared\"><thead><tr><th scope=\"col\"></th>",
          out);
    for (int side = 0; side < CHAOS_SIDES; side++) {
        const char *name = chaos_side_name((enum chaos_side)side);
        fprintf(out, "<th scope=\"col\"><a href=\"%s/report.html\">%s</a></th>", name,
                chaos_side_title((enum chaos_side)side));
    }
    fputs("</tr></thead><tbody>\n", out);
    for (size_t row = 0; row < chaos_row_count(); row++) {
        fprintf(out, "<tr><th scope=\"row\">%s</th>", chaos_row_at(row).name);
        for (int side = 0; side < CHAOS_SIDES; side++) {
            char text[64];
            bool above_0;
            chaos_row_figure(comparison, row, (enum chaos_side)side, text, sizeof text, &above_0);
            fprintf(out, "<td%s>%s</td>", above_0 && chaos_row_at(row).bad ? " class=\"bad\"" : "",
                    text[0] == '\0' ? "&ndash;" : text);
        }
        fputs("</tr>\n", out);
    }
    fputs(
        "</tbody></table></div>\n<p class=\"note\">A dash: that protection was off. The share of acquires leaves out "
        "those that were cut by the end of their client. Availability counts acquires during all of which a quorum of "
        "nodes was under no fault: it does not see what the guards cost, the three rows above it do.</p></section>\n",
        out);
}

static void put_legend(FILE *out, bool guards) {
    fputs("<ul class=\"legend\"><li><i class=\"key hue0\"></i>a lease, while its owner relies on it</li><li><i "
          "class=\"key violation\"></i>two owners at once</li><li><i class=\"key lost-update\"></i>lost update</li>"
          "<li><i class=\"key refused\"></i>access with an old token, refused</li><li><i class=\"key breaks\"></i>"
          "fault</li>",
          out);
    fputs(guards ? "<li><i class=\"key without\"></i>guards leave no quorum that may vote</li></ul>\n" : "</ul>\n",
          out);
}

static bool put_sides(FILE *out, const struct chaos_comparison *comparison) {
    int64_t length_us = 1;
    for (int side = 0; side < CHAOS_SIDES; side++) {
        const struct chaos_history *history = &comparison->histories[side];
        int64_t own_us = chaos_history_end_us(history) - history->start_us;
        length_us = own_us > length_us ? own_us : length_us;
    }
    fputs("<section aria-labelledby=\"pictures\"><h2 id=\"pictures\">Who held what</h2>\n", out);
    put_legend(out, true);
    bool worked = true;
    for (int side = 0; worked && side < CHAOS_SIDES; side++) {
        char number[CHAOS_NUMBER_SIZE];
        const struct chaos_verdict *verdict = &comparison->verdicts[side];
        fprintf(out, "<h3>%s: %s <a href=\"%s/report.html\">the whole page of this run</a></h3>\n",
                chaos_side_title((enum chaos_side)side),
                chaos_say_many((int64_t)verdict->violation_count, "violation", number),
                chaos_side_name((enum chaos_side)side));
        worked = chaos_compare_chart(out, &comparison->histories[side], verdict, length_us);
    }
    fputs("</section>\n", out);
    return worked;
}

bool chaos_report_compare(FILE *out, const struct chaos_comparison *comparison,
                          const struct chaos_experiment *experiment) {
    const struct chaos_history *history = &comparison->histories[CHAOS_SIDE_NONE];
    size_t violations = comparison->verdicts[CHAOS_SIDE_GUARDS].violation_count;
    chaos_page_begin(out, experiment != NULL ? experiment->title : "Faults compared", violations);
    put_head(out, history, experiment);
    put_verdict(out, comparison);
    bool worked = put_sides(out, comparison);
    put_table(out, comparison);
    fprintf(out,
            "<section class=\"repeat\" aria-labelledby=\"repeat\"><h2 id=\"repeat\">Repeat it</h2><p>Seed <b "
            "class=\"number\">%" PRIu64 "</b>; the command of each run stands on its page.</p></section>\n",
            history->seed);
    fputs("</main>\n</body>\n</html>\n", out);
    return worked && !ferror(out) && fflush(out) == 0;
}
