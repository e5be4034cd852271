/* The page that shows a run, from its first byte to its last. */
#include "report/report.h"

#include <errno.h>

#include "report/report_assets.h"
#include "report/report_parts.h"
#include "report/report_text.h"

void chaos_page_begin(FILE *out, const char *title, size_t violations) {
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "script-src "
          "'unsafe-inline'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" "
          "content=\"no-referrer\">\n<title>",
          out);
    chaos_page_text(out, title);
    fprintf(out, "%sredlock-chaos: %zu violation%s</title>\n<style>\n",
            title != NULL && title[0] != '\0' ? " &ndash; " : "", violations, violations == 1 ? "" : "s");
    fwrite(chaos_page_css, 1, chaos_page_css_size, out);
    fputs("</style>\n</head>\n<body>\n", out);
}

bool chaos_report_write(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict,
                        const struct chaos_experiment *experiment) {
    struct chaos_view view;
    bool worked = chaos_view_make(&view, history, verdict, experiment);
    if (worked) {
        chaos_page_begin(out, experiment != NULL ? experiment->title : history->experiment, verdict->violation_count);
        chaos_page_head(out, &view);
        chaos_page_violations(out, &view);
        worked = chaos_page_window(out, &view);
        fputs("<div class=\"lanes\">\n", out);
        chaos_page_rows(out, &view);
        worked = worked && chaos_page_charts(out, &view);
        chaos_page_tables(out, &view);
        fputs("</main>\n", out);
        worked = worked && chaos_page_data(out, &view);
        fputs("<script>\n", out);
        fwrite(chaos_page_js, 1, chaos_page_js_size, out);
        fputs("</script>\n</body>\n</html>\n", out);
    } else {
        errno = ENOMEM;
    }
    chaos_view_clear(&view);
    return worked && !ferror(out) && fflush(out) == 0;
}
