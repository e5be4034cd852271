/* The pages, from the first byte to the last. */
#include "report/report.h"

#include <errno.h>
#include <string.h>

#include "report/html.h"
#include "report/parts.h"

static const char *const page = (const char *)chaos_page;

void chaos_page_begin(FILE *out, const char *title, size_t violations) {
    const char *name = strstr(page, "{{title}}"), *body = strstr(page, "{{body}}");
    bool named = title != NULL && title[0] != '\0';
    fwrite(page, 1, (size_t)(name - page), out);
    chaos_html(out, "%s%sredlock-chaos: %s", named ? title : "", named ? " – " : "",
               CHAOS_MANY(violations, "violation"));
    name += strlen("{{title}}");
    fwrite(name, 1, (size_t)(body - name), out);
}

bool chaos_page_end(FILE *out, json_t *data) {
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
    chaos_page_begin(out, experiment != NULL ? experiment->title : history->experiment, verdict->violation_count);
    chaos_page_head(out, &view);
    chaos_page_violations(out, &view);
    fputs("<section id=\"time\" aria-labelledby=\"time-title\">\n<h2 id=\"time-title\">Timeline</h2>\n"
          "<p><a class=\"skip\" href=\"#tables\">Skip the timeline</a></p>\n<noscript><p>This part is drawn by "
          "JavaScript, which is off. All figures are on this page without it.</p></noscript>\n</section>\n",
          out);
    chaos_page_tables(out, &view);
    fputs("</main>\n", out);
    return chaos_page_end(out, json_pack("{s:[o]}", "runs", chaos_page_data(&view)));
}
