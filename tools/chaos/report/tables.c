/* What the page has in lists and tables: violations, checks, operations, recoveries, faults,
 * settings. */
#include <inttypes.h>

#include "report/html.h"
#include "report/parts.h"

enum { VIOLATIONS_AT_ONCE = 5 };

/* The cells of a row, the first being its head. */
#define CELLS(...) ((const char *const[]){__VA_ARGS__, NULL})

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
            chaos_html(out,
                       "</ol>\n<details class=\"more\"><summary>%zu more</summary>\n<ol class=\"violations\" "
                       "start=\"%d\">\n",
                       shown - i, VIOLATIONS_AT_ONCE + 1);
        }
        fprintf(out, "<li id=\"v%zu\"><a href=\"#time\" data-violation=\"%zu\">", i + 1, i);
        chaos_html(out, "<span class=\"when\">%s</span> <b>%s</b></a> <span class=\"what\">%s</span></li>\n",
                   CHAOS_TIME(violation->from_us - view->history->start_us), chaos_violation_name(violation->kind),
                   violation->text);
    }
    fputs("</ol>\n", out);
    if (count > shown) {
        chaos_html(out, "<p>The page shows the first %d; <code>redlock-chaos check</code> tells all %zu.</p>\n",
                   CHAOS_VIOLATIONS_SHOWN, count);
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

static void put_row(FILE *out, const char *const *cells) {
    chaos_html(out, "<tr><th scope=\"row\">%s</th>", *cells);
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
        chaos_html(out, "<tr class=\"%s\"><th scope=\"row\">%s</th><td>%s</td><td class=\"n\">%s</td></tr>\n",
                   found > 0 ? "bad" : "", chaos_violation_name((enum chaos_violation_kind)i),
                   chaos_violation_meaning((enum chaos_violation_kind)i), found > 0 ? CHAOS_COUNT(found) : "none");
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
    put_row(out, CELLS(name, CHAOS_COUNT(took->count), any ? CHAOS_DURATION(took->p50_us) : "–",
                       any ? CHAOS_DURATION(took->p90_us) : "–", any ? CHAOS_DURATION(took->p99_us) : "–",
                       any ? CHAOS_DURATION(took->max_us) : "–"));
}

static void put_result(FILE *out, const char *name, int64_t number, int64_t of) {
    put_row(out, CELLS(name, CHAOS_COUNT(number), of == 0 ? "–" : CHAOS_SHARE(number * 10000 / of)));
}

static void put_operations(FILE *out, const struct chaos_verdict *verdict) {
    fputs("<div class=\"pair\"><div>", out);
    put_table(out, "numbers", "How long it took, where it succeeded",
              CELLS("Operation", "Number", "Median", "90 %", "99 %", "Longest"));
    put_percentiles(out, "acquire", &verdict->acquire);
    put_percentiles(out, "acquire, at the first attempt", &verdict->acquire_first_try);
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
               "<p class=\"note\">%s ended without a release: their owners saw it in time and stopped.</p>\n"
               "</div></div>",
               CHAOS_MANY(verdict->leases_lost, "lease"));
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
    for (size_t i = 0; i < verdict->recovery_count; i++) {
        const struct chaos_recovery *recovery = &verdict->recoveries[i];
        bool came = recovery->acquired_us != CHAOS_NEVER_US;
        put_row(out,
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

static void put_ms(FILE *out, const char *name, int64_t ms) {
    chaos_html(out, "<tr><th scope=\"row\">%s</th><td>%" PRId64 " ms</td></tr>\n", name, ms);
}

static void put_protection(FILE *out, const struct chaos_protection *protection) {
    put_row(out, CELLS("fencing tokens", protection->fencing ? "on" : "off"));
    put_row(out, CELLS("restart guard", chaos_restart_guard_name(protection->restart_guard)));
    put_row(out, CELLS("clock guard", protection->clock_guard ? "on" : "off"));
    if (chaos_has_guard(protection)) {
        put_row(out, CELLS("first boot", protection->first_boot ? "yes, of the first processes" : "no"));
        put_ms(out, "ttl_max", protection->ttl_max_ms);
    }
    if (protection->lock_delay_ms > 0) {
        put_ms(out, "lock delay", protection->lock_delay_ms);
    }
    if (protection->no_heal) {
        put_row(out, CELLS("healing", "off"));
    }
}

static void put_settings(FILE *out, const struct chaos_history *history) {
    put_table(out, "settings", "How it was set up", CELLS("Setting", "Value"));
    put_row(out, CELLS("nodes run as", history->backend == NULL ? "" : history->backend));
    put_row(out, CELLS("nodes", CHAOS_COUNT(history->node_count)));
    put_row(out, CELLS("quorum", CHAOS_COUNT(chaos_quorum(history))));
    put_row(out, CELLS("clients", CHAOS_COUNT(history->client_count)));
    put_row(out, CELLS("resources", CHAOS_COUNT(history->resource_count)));
    put_ms(out, "ttl", history->ttl_ms);
    put_ms(out, "node timeout", history->node_timeout_ms);
    put_ms(out, "wait of an acquire", history->wait_ms);
    put_protection(out, &history->protection);
    end_table(out);
}

void chaos_page_tables(FILE *out, const struct chaos_view *view) {
    fputs("<div id=\"tables\">\n<section aria-labelledby=\"checks\"><h2 id=\"checks\">Checks</h2>\n", out);
    put_checks(out, view);
    fputs("</section>\n<section aria-labelledby=\"latency\"><h2 id=\"latency\">Operations</h2>\n", out);
    put_operations(out, view->verdict);
    fputs("</section>\n<section aria-labelledby=\"recoveries\"><h2 id=\"recoveries\">Recoveries</h2>\n", out);
    put_recoveries(out, view);
    fputs("</section>\n<section aria-labelledby=\"faults\"><h2 id=\"faults\">Faults</h2>\n", out);
    put_faults(out, view);
    fputs("</section>\n<section aria-labelledby=\"settings\"><h2 id=\"settings\">Settings</h2>\n", out);
    put_settings(out, view->history);
    fputs("</section>\n</div>\n", out);
}
