/* What was wrong, one by one, and what was looked for. */
#include <inttypes.h>
#include <string.h>

#include "report/report_parts.h"
#include "report/report_text.h"

enum { VIOLATIONS_AT_ONCE = 5 };

static void put_looked_for(FILE *out, const struct chaos_verdict *verdict) {
    fputs(
        "<table class=\"checks\"><caption>What was looked for</caption><thead><tr><th scope=\"col\">Violation</th><th "
        "scope=\"col\">Meaning</th><th scope=\"col\" class=\"n\">Found</th></tr></thead><tbody>\n",
        out);
    for (int i = 0; i < CHAOS_VIOLATION_KINDS; i++) {
        char number[CHAOS_NUMBER_SIZE];
        bool found = verdict->counts[i] > 0;
        fprintf(out, "<tr%s><th scope=\"row\">", found ? " class=\"bad\"" : "");
        chaos_page_text(out, chaos_violation_name((enum chaos_violation_kind)i));
        fputs("</th><td>", out);
        chaos_page_text(out, chaos_violation_meaning((enum chaos_violation_kind)i));
        fprintf(out, "</td><td class=\"n\">%s</td></tr>\n",
                found ? chaos_say_count((int64_t)verdict->counts[i], number) : "none");
    }
    fputs("</tbody></table>\n", out);
}

static void put_violation(FILE *out, const struct chaos_view *view, size_t index) {
    const struct chaos_violation *violation = &view->verdict->violations[index];
    char time[CHAOS_NUMBER_SIZE];
    fprintf(out, "<li id=\"v%zu\"><a href=\"#m%zu\" data-violation=\"%zu\"><span class=\"when\">%s</span> <b>",
            index + 1, index + 1, index, chaos_say_time(violation->from_us - view->history->start_us, time));
    chaos_page_text(out, chaos_violation_name(violation->kind));
    fputs("</b></a> <span class=\"what\">", out);
    chaos_page_text(out, violation->text);
    fputs("</span></li>\n", out);
}

static void put_list(FILE *out, const struct chaos_view *view) {
    size_t count = view->verdict->violation_count;
    size_t shown = count < CHAOS_VIOLATIONS_SHOWN ? count : CHAOS_VIOLATIONS_SHOWN;
    char number[CHAOS_NUMBER_SIZE];
    fputs("<p>Each leads to its place in the timeline.</p>\n<ol class=\"violations\">\n", out);
    for (size_t i = 0; i < shown; i++) {
        if (i == VIOLATIONS_AT_ONCE) {
            fprintf(
                out,
                "</ol>\n<details class=\"more\"><summary>%s more</summary>\n<ol class=\"violations\" start=\"%d\">\n",
                chaos_say_count((int64_t)(shown - i), number), VIOLATIONS_AT_ONCE + 1);
        }
        put_violation(out, view, i);
    }
    fputs("</ol>\n", out);
    if (count > shown) {
        fprintf(out, "<p>The page shows the first %d; <code>redlock-chaos check</code> tells all %s.</p>\n",
                CHAOS_VIOLATIONS_SHOWN, chaos_say_count((int64_t)count, number));
    }
    fputs(shown > VIOLATIONS_AT_ONCE ? "</details>\n" : "", out);
}

void chaos_page_violations(FILE *out, const struct chaos_view *view) {
    if (view->verdict->violation_count == 0) {
        return;
    }
    fputs(
        "<section id=\"violations\" aria-labelledby=\"violations-title\"><h2 id=\"violations-title\">Violations</h2>\n",
        out);
    put_list(out, view);
    fputs("</section>\n", out);
}

void chaos_page_checks(FILE *out, const struct chaos_view *view) {
    put_looked_for(out, view->verdict);
    if (view->history->left_count > 0) {
        fputs("<h3>Left behind</h3><ul>", out);
        for (size_t i = 0; i < view->history->left_count; i++) {
            fputs("<li>", out);
            chaos_page_text(out, view->history->left[i]);
            fputs("</li>", out);
        }
        fputs("</ul>\n", out);
    }
}
