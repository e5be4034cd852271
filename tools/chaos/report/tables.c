/* What the page has in lists and tables: violations, checks, operations, recoveries, faults,
 * settings. */
#include <inttypes.h>

#include "report/html.h"
#include "report/parts.h"

enum { VIOLATIONS_AT_ONCE = 5 };

/* The cells of a row, the first being its head. */
#define CELLS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define MS(ms)     CHAOS_SAY("%s ms", CHAOS_COUNT(ms))

void chaos_page_violations(FILE *out, const struct chaos_view *view) {
    size_t count = view->verdict->violation_count;
    size_t shown = count < CHAOS_VIOLATIONS_SHOWN ? count : CHAOS_VIOLATIONS_SHOWN;
    if (count == 0) {
        return;
    }
    fputs("<section id=\"violations\" aria-labelledby=\"violations-title\"><h2 "
          "id=\"violations-title\">Violations</h2>\n<p>Each leads to its place in the timeline.</p>\n"
          "<ol class=\"violations\">\n",
          out);
    for (size_t i = 0; i < shown; i++) {
        const struct chaos_violation *violation = &view->verdict->violations[i];
        if (i == VIOLATIONS_AT_ONCE) {
            chaos_html(out, "</ol>\n<details class=\"more\"><summary>%s more</summary>\n", CHAOS_COUNT(shown - i));
            fprintf(out, "<ol class=\"violations\" start=\"%zu\">\n", i + 1);
        }
        fprintf(out, "<li id=\"v%zu\"><a href=\"#time\" data-violation=\"%zu\">", i + 1, i);
        chaos_html(out, "<span class=\"when\">%s</span> <b>%s</b></a> <span class=\"what\">%s</span></li>\n",
                   CHAOS_TIME(violation->from_us - view->history->start_us),
                   chaos_violation_abouts[violation->kind].name, violation->text);
    }
    fputs("</ol>\n", out);
    if (count > shown) {
        chaos_html(out, "<p>The page shows the first %s; <code>redlock-chaos check</code> tells all %s.</p>\n",
                   CHAOS_COUNT(shown), CHAOS_COUNT(count));
    }
    fputs(shown > VIOLATIONS_AT_ONCE ? "</details>\n</section>\n" : "</section>\n", out);
}

static void put_table(FILE *out, const char *classes, const char *caption, const char *const *columns) {
    chaos_html(out, "<div class=\"wide\"><table class=\"%s\"><caption>%s</caption><thead><tr>", classes, caption);
    for (; *columns != NULL; columns++) {
        chaos_html(out, "<th scope=\"col\">%s</th>", *columns);
    }
    fputs("</tr></thead><tbody>\n", out);
}

static void put_row(FILE *out, bool bad, const char *const *cells) {
    chaos_html(out, "<tr class=\"%s\"><th scope=\"row\">%s</th>", bad ? "bad" : "", *cells);
    while (*++cells != NULL) {
        chaos_html(out, "<td>%s</td>", *cells);
    }
    fputs("</tr>\n", out);
}

static void end_table(FILE *out) {
    fputs("</tbody></table></div>\n", out);
}

static void put_checks(FILE *out, const struct chaos_view *view) {
    put_table(out, "checks", "What was looked for", CELLS("Violation", "Meaning", "Found"));
    for (int i = 0; i < CHAOS_VIOLATION_KINDS; i++) {
        size_t found = view->verdict->counts[i];
        put_row(out, found > 0,
                CELLS(chaos_violation_abouts[i].name, chaos_violation_abouts[i].meaning,
                      found > 0 ? CHAOS_COUNT(found) : "none"));
    }
    end_table(out);
    if (view->history->left_count > 0) {
        fputs("<h3>Left behind</h3><ul>", out);
        for (size_t i = 0; i < view->history->left_count; i++) {
            chaos_html(out, "<li>%s</li>", view->history->left[i]);
        }
        fputs("</ul>\n", out);
    }
}

static void put_percentiles(FILE *out, const char *name, const struct chaos_percentiles *took) {
    bool any = took->count > 0;
    put_row(out, false,
            CELLS(name, CHAOS_COUNT(took->count), any ? CHAOS_DURATION(took->p50_us) : "–",
                  any ? CHAOS_DURATION(took->p90_us) : "–", any ? CHAOS_DURATION(took->p99_us) : "–",
                  any ? CHAOS_DURATION(took->max_us) : "–"));
}

static void put_result(FILE *out, const char *name, int64_t number, int64_t of) {
    put_row(out, false, CELLS(name, CHAOS_COUNT(number), of == 0 ? "–" : CHAOS_SHARE(number * 10000 / of)));
}

static void put_operations(FILE *out, const struct chaos_view *view) {
    const struct chaos_verdict *verdict = view->verdict;
    fputs("<div class=\"pair\"><div>", out);
    put_table(out, "numbers", "How long it took, where it succeeded",
              CELLS("Operation", "Number", "Median", "90 %", "99 %", "Longest"));
    put_percentiles(out, "acquire", &verdict->acquire);
    put_percentiles(out, "acquire, at the first attempt", &verdict->acquire_first_try);
    put_percentiles(out, "acquire, handed over in a queue", &verdict->acquire_in_line);
    if (verdict->acquire_to_read.count > 0) {
        put_percentiles(out, "acquire, to read", &verdict->acquire_to_read);
        put_percentiles(out, "acquire, to write", &verdict->acquire_to_write);
    }
    put_percentiles(out, "release", &verdict->release);
    end_table(out);
    fputs("</div><div>", out);
    put_table(out, "numbers", "What operations came to", CELLS("Result", "Number", "Share"));
    put_result(out, "acquired", verdict->acquired, verdict->acquires);
    put_result(out, "held by others until the end of the wait", verdict->contended, verdict->acquires);
    put_result(out, "no quorum of nodes", verdict->no_quorum, verdict->acquires);
    put_result(out, "too slow", verdict->too_slow, verdict->acquires);
    put_result(out, "others, as when the run ended", verdict->other, verdict->acquires);
    put_result(out, "released", verdict->released, verdict->releases);
    put_result(out, "released too late: lost before", verdict->release_lost, verdict->releases);
    put_result(out, "release found no quorum", verdict->release_no_quorum, verdict->releases);
    end_table(out);
    chaos_html(out,
               "<p class=\"note\">%s ended without a release: their owners saw it in time and stopped. %s got the lock "
               "before one that had begun earlier.</p>\n</div></div>",
               CHAOS_MANY(verdict->leases_lost, "lease"), CHAOS_MANY(verdict->passed_over, "acquire"));
}

static void put_recoveries(FILE *out, const struct chaos_view *view) {
    const struct chaos_verdict *verdict = view->verdict;
    int64_t start_us = view->history->start_us;
    if (verdict->recovery_count == 0) {
        fputs("<p>At all times all clients had a healthy quorum: there was nothing to recover from.</p>\n", out);
        return;
    }
    put_table(out, "numbers", "After each time without a healthy quorum",
              CELLS("Quorum back at", "First acquire at", "Took"));
    CHAOS_EACH(const struct chaos_recovery, recovery, verdict->recoveries, verdict->recovery_count) {
        bool came = recovery->acquired_us != CHAOS_NEVER_US;
        put_row(out, false,
                CELLS(CHAOS_TIME(recovery->healed_us - start_us),
                      came ? CHAOS_TIME(recovery->acquired_us - start_us) : "none before the next fault or the end",
                      came ? CHAOS_DURATION(recovery->acquired_us - recovery->healed_us) : "–"));
    }
    end_table(out);
}

static void put_fault(FILE *out, const struct chaos_view *view, size_t index) {
    const struct chaos_band *band = &view->history->bands[index];
    int64_t length_us = chaos_view_band_end(view, band) - band->from_us;
    bool lasts = chaos_fault_about(band->fault.kind)->lasts;
    fprintf(out, "<tr id=\"f%zu\"><th scope=\"row\"><a href=\"#time\" data-fault=\"%zu\">", index + 1, index);
    chaos_html(out, "%s</a></th><td>%s</td><td><i class=\"key %s\"></i>%s</td><td>%s",
               CHAOS_TIME(band->from_us - view->history->start_us),
               lasts && band->to_us == CHAOS_NEVER_US ? "to the end"
               : lasts || length_us > 50000           ? CHAOS_DURATION(length_us)
                                                      : "at once",
               chaos_view_shade(band), chaos_fault_about(band->fault.kind)->name, band->text);
    if (band->error != NULL) {
        chaos_html(out, " <span class=\"error\">Did not work: %s</span>", band->error);
    }
    fputs("</td></tr>\n", out);
}

static void put_faults(FILE *out, const struct chaos_view *view) {
    if (view->history->band_count == 0) {
        fputs("<p>There were none.</p>\n", out);
        return;
    }
    put_table(out, "faults", "All faults, by time", CELLS("From", "For", "Fault", "What happened"));
    for (size_t i = 0; i < view->history->band_count; i++) {
        put_fault(out, view, i);
    }
    end_table(out);
}

/* A value of NULL: it does not apply. */
static void put_setting(FILE *out, const char *name, const char *value) {
    if (value != NULL) {
        put_row(out, false, CELLS(name, value));
    }
}

static void put_settings(FILE *out, const struct chaos_view *view) {
    const struct chaos_history *history = view->history;
    const struct chaos_protection *protection = &history->protection;
    bool guarded = chaos_has_guard(protection);
    put_table(out, "settings", "How it was set up", CELLS("Setting", "Value"));
    put_setting(out, "nodes run as", history->backend);
    put_setting(out, "nodes", CHAOS_COUNT(history->node_count));
    put_setting(out, "quorum", chaos_is_configured(history) ? "as configured" : CHAOS_COUNT(chaos_quorum(history)));
    put_setting(out, "clients", CHAOS_COUNT(history->client_count));
    put_setting(out, "clients that read", history->readers > 0 ? CHAOS_SAY("%" PRId64 " %%", history->readers) : NULL);
    put_setting(out, "resources", CHAOS_COUNT(history->resource_count));
    put_setting(out, "ttl", MS(history->ttl_ms));
    put_setting(out, "node timeout", MS(history->node_timeout_ms));
    put_setting(out, "wait of an acquire", MS(history->wait_ms));
    put_setting(out, "order", history->polls ? "none: clients poll" : "fair: clients queue");
    put_setting(out, "TLS", history->tls ? "on" : NULL);
    put_setting(out, "fencing tokens", protection->fencing ? "on" : "off");
    put_setting(out, "restart guard", chaos_restart_guard_name(protection->restart_guard));
    put_setting(out, "clock guard", protection->clock_guard ? "on" : "off");
    put_setting(out, "first boot", !guarded ? NULL : protection->first_boot ? "yes, of the first processes" : "no");
    put_setting(out, "ttl_max", guarded ? MS(protection->ttl_max_ms) : NULL);
    put_setting(out, "lock delay", protection->lock_delay_ms > 0 ? MS(protection->lock_delay_ms) : NULL);
    put_setting(out, "healing", protection->no_heal ? "off" : NULL);
    end_table(out);
}

void chaos_page_tables(FILE *out, const struct chaos_view *view) {
    static const struct {
        const char *id, *title;
        void (*put)(FILE *out, const struct chaos_view *view);
    } sections[] = {{"checks", "Checks", put_checks},
                    {"latency", "Operations", put_operations},
                    {"recoveries", "Recoveries", put_recoveries},
                    {"faults", "Faults", put_faults},
                    {"settings", "Settings", put_settings}};
    fputs("<div id=\"tables\">\n", out);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        chaos_html(out, "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2>\n", sections[i].id, sections[i].id,
                   sections[i].title);
        sections[i].put(out, view);
        fputs("</section>\n", out);
    }
    fputs("</div>\n", out);
}
