/* The pages, from the first byte to the last. */
#include "report/report.h"

#include <errno.h>
#include <string.h>

#include "report/html.h"
#include "report/parts.h"

/* Writes the page from *at to the mark, and moves *at behind it. */
static void put_until(FILE *out, const char **at, const char *mark) {
    const char *end = strstr(*at, mark);
    fwrite(*at, 1, (size_t)(end - *at), out);
    *at = end + strlen(mark);
}

bool chaos_page_write(FILE *out, const char *title, size_t violations, void (*body)(FILE *out, const void *what),
                      const void *what, json_t *data) {
    const char *at = (const char *)chaos_page;
    bool named = title != NULL && title[0] != '\0';
    put_until(out, &at, "{{title}}");
    chaos_html(out, "%s%sredlock-chaos: %s", named ? title : "", named ? " – " : "",
               CHAOS_MANY(violations, "violation"));
    put_until(out, &at, "{{body}}");
    body(out, what);
    put_until(out, &at, "{{data}}");
    bool worked = chaos_html_json(out, data);
    fputs(at, out);
    json_decref(data);
    if (!worked) {
        errno = ENOMEM;
    }
    return worked && !ferror(out) && fflush(out) == 0;
}

static void put_run(FILE *out, const void *what) {
    const struct chaos_view *view = what;
    chaos_page_head(out, view);
    chaos_page_violations(out, view);
    fputs("<section id=\"time\" aria-labelledby=\"time-title\">\n<h2 id=\"time-title\">Timeline</h2>\n"
          "<p><a class=\"skip\" href=\"#tables\">Skip the timeline</a></p>\n<noscript><p>This part is drawn by "
          "JavaScript, which is off. All figures are on this page "
          "without it.</p></noscript>\n</section>\n",
          out);
    chaos_page_tables(out, view);
    fputs("</main>\n", out);
}

bool chaos_report_write(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict,
                        const struct chaos_experiment *experiment) {
    struct chaos_view view = chaos_view_of(history, verdict, experiment);
    return chaos_page_write(out, experiment != NULL ? experiment->title : history->experiment, verdict->violation_count,
                            put_run, &view, json_pack("{s:[o]}", "runs", chaos_page_data(&view)));
}
