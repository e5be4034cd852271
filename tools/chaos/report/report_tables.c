/* The tables at the page's end: checks, percentiles, results, recoveries, faults, settings. */
#include <inttypes.h>

#include "report/report_parts.h"
#include "report/report_text.h"

static void put_table(FILE *out, const char *classes, const char *caption, const char *const *columns) {
    fprintf(out, "<div class=\"wide\"><table class=\"%s\"><caption>%s</caption><thead><tr>", classes, caption);
    for (; *columns != NULL; columns++) {
        fprintf(out, "<th scope=\"col\">%s</th>", *columns);
    }
    fputs("</tr></thead><tbody>\n", out);
}

static void end_table(FILE *out) {
    fputs("</tbody></table></div>\n", out);
}

static void put_duration(FILE *out, int64_t us, bool known) {
    char buffer[CHAOS_NUMBER_SIZE];
    fprintf(out, "<td>%s</td>", known ? chaos_say_duration(us, buffer) : "&ndash;");
}

static void put_percentiles(FILE *out, const char *name, const struct chaos_percentiles *percentiles) {
    char buffer[CHAOS_NUMBER_SIZE];
    bool known = percentiles->count > 0;
    fprintf(out, "<tr><th scope=\"row\">%s</th><td>%s</td>", name,
            chaos_say_count((int64_t)percentiles->count, buffer));
    put_duration(out, percentiles->p50_us, known);
    put_duration(out, percentiles->p90_us, known);
    put_duration(out, percentiles->p99_us, known);
    put_duration(out, percentiles->max_us, known);
    fputs("</tr>\n", out);
}

static void put_latencies(FILE *out, const struct chaos_verdict *verdict) {
    static const char *const columns[] = {"Operation", "Number", "Median", "90 %", "99 %", "Longest", NULL};
    put_table(out, "numbers", "How long it took, where it succeeded", columns);
    put_percentiles(out, "acquire", &verdict->acquire);
    put_percentiles(out, "acquire, at the first attempt", &verdict->acquire_first_try);
    put_percentiles(out, "release", &verdict->release);
    end_table(out);
}

static void put_result(FILE *out, const char *name, int64_t number, int64_t of) {
    char buffer[CHAOS_NUMBER_SIZE], share[CHAOS_NUMBER_SIZE];
    fprintf(out, "<tr><th scope=\"row\">%s</th><td>%s</td><td>%s</td></tr>\n", name, chaos_say_count(number, buffer),
            of == 0 ? "&ndash;" : chaos_say_share(number * 10000 / of, share));
}

static void put_results(FILE *out, const struct chaos_verdict *verdict) {
    static const char *const columns[] = {"Result", "Number", "Share", NULL};
    put_table(out, "numbers", "What operations came to", columns);
    put_result(out, "acquired", verdict->acquired, verdict->acquires);
    put_result(out, "held by others until the end of the wait", verdict->contended, verdict->acquires);
    put_result(out, "no quorum of nodes", verdict->no_quorum, verdict->acquires);
    put_result(out, "too slow", verdict->too_slow, verdict->acquires);
    put_result(out, "others, as when the run ended", verdict->other, verdict->acquires);
    put_result(out, "released", verdict->released, verdict->releases);
    put_result(out, "released too late: lost before", verdict->release_lost, verdict->releases);
    put_result(out, "release found no quorum", verdict->release_no_quorum, verdict->releases);
    end_table(out);
    char number[CHAOS_NUMBER_SIZE];
    fprintf(out, "<p class=\"note\">%s ended without a release: their owners saw it in time and stopped.</p>\n",
            chaos_say_many(verdict->leases_lost, "lease", number));
}

static void put_recoveries(FILE *out, const struct chaos_view *view) {
    static const char *const columns[] = {"Quorum back at", "First acquire at", "Took", NULL};
    const struct chaos_verdict *verdict = view->verdict;
    if (verdict->recovery_count == 0) {
        fputs("<p>At all times all clients had a healthy quorum: there was nothing to recover from.</p>\n", out);
        return;
    }
    put_table(out, "numbers", "After each time without a healthy quorum", columns);
    for (size_t i = 0; i < verdict->recovery_count; i++) {
        const struct chaos_recovery *recovery = &verdict->recoveries[i];
        bool came = recovery->acquired_us != CHAOS_NEVER_US;
        char healed[CHAOS_NUMBER_SIZE], acquired[CHAOS_NUMBER_SIZE];
        fprintf(out, "<tr><th scope=\"row\">%s</th><td>%s</td>",
                chaos_say_time(recovery->healed_us - view->history->start_us, healed),
                came ? chaos_say_time(recovery->acquired_us - view->history->start_us, acquired)
                     : "none before the next fault or the end");
        put_duration(out, recovery->acquired_us - recovery->healed_us, came);
        fputs("</tr>\n", out);
    }
    end_table(out);
}

static void put_fault(FILE *out, const struct chaos_view *view, size_t index) {
    const struct chaos_band *band = &view->history->bands[index];
    char from[CHAOS_NUMBER_SIZE], length[CHAOS_NUMBER_SIZE];
    int64_t end_us = chaos_view_band_end(view, band);
    bool lasts = chaos_fault_about(band->fault.kind)->lasts;
    fprintf(out,
            "<tr id=\"f%zu\"><th scope=\"row\"><a href=\"#time\" data-fault=\"%zu\">%s</a></th><td>%s</td><td><i "
            "class=\"key "
            "%s\"></i>",
            index + 1, index, chaos_say_time(band->from_us - view->history->start_us, from),
            lasts && band->to_us == CHAOS_NEVER_US    ? "to the end"
            : lasts || end_us > band->from_us + 50000 ? chaos_say_duration(end_us - band->from_us, length)
                                                      : "at once",
            chaos_view_shade_class(chaos_view_shade(band)));
    chaos_page_text(out, chaos_fault_about(band->fault.kind)->name);
    fputs("</td><td>", out);
    chaos_page_text(out, band->text);
    if (band->error != NULL) {
        fputs(" <span class=\"error\">Did not work: ", out);
        chaos_page_text(out, band->error);
        fputs("</span>", out);
    }
    fputs("</td></tr>\n", out);
}

static void put_faults(FILE *out, const struct chaos_view *view) {
    static const char *const columns[] = {"From", "For", "Fault", "What happened", NULL};
    if (view->history->band_count == 0) {
        fputs("<p>There were none.</p>\n", out);
        return;
    }
    put_table(out, "faults", "All faults, by time", columns);
    for (size_t i = 0; i < view->history->band_count; i++) {
        put_fault(out, view, i);
    }
    end_table(out);
}

static void put_setting(FILE *out, const char *name, int64_t number, const char *unit) {
    char buffer[CHAOS_NUMBER_SIZE];
    fprintf(out, "<tr><th scope=\"row\">%s</th><td>%s%s</td></tr>\n", name, chaos_say_count(number, buffer), unit);
}

static void put_choice(FILE *out, const char *name, const char *choice) {
    fprintf(out, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", name, choice);
}

static void put_protection(FILE *out, const struct chaos_protection *protection) {
    put_choice(out, "fencing tokens", protection->fencing ? "on" : "off");
    put_choice(out, "restart guard", chaos_restart_guard_name(protection->restart_guard));
    put_choice(out, "clock guard", protection->clock_guard ? "on" : "off");
    if (chaos_has_guard(protection)) {
        put_choice(out, "first boot", protection->first_boot ? "yes, of the first processes" : "no");
        put_setting(out, "ttl_max", protection->ttl_max_ms, " ms");
    }
    if (protection->lock_delay_ms > 0) {
        put_setting(out, "lock delay", protection->lock_delay_ms, " ms");
    }
    if (protection->no_heal) {
        put_choice(out, "healing", "off");
    }
}

static void put_settings(FILE *out, const struct chaos_history *history) {
    static const char *const columns[] = {"Setting", "Value", NULL};
    put_table(out, "settings", "How it was set up", columns);
    fputs("<tr><th scope=\"row\">nodes run as</th><td>", out);
    chaos_page_text(out, history->backend);
    fputs("</td></tr>\n", out);
    put_setting(out, "nodes", (int64_t)history->node_count, "");
    put_setting(out, "quorum", (int64_t)chaos_quorum(history), "");
    put_setting(out, "clients", (int64_t)history->client_count, "");
    put_setting(out, "resources", (int64_t)history->resource_count, "");
    put_setting(out, "ttl", history->ttl_ms, " ms");
    put_setting(out, "node timeout", history->node_timeout_ms, " ms");
    put_setting(out, "wait of an acquire", history->wait_ms, " ms");
    put_protection(out, &history->protection);
    end_table(out);
}

void chaos_page_tables(FILE *out, const struct chaos_view *view) {
    fputs("<div id=\"tables\">\n<section aria-labelledby=\"checks\"><h2 id=\"checks\">Checks</h2>\n", out);
    chaos_page_checks(out, view);
    fputs("</section>\n<section aria-labelledby=\"latency\"><h2 id=\"latency\">Operations</h2>\n<div "
          "class=\"pair\"><div>",
          out);
    put_latencies(out, view->verdict);
    fputs("</div><div>", out);
    put_results(out, view->verdict);
    fputs("</div></div></section>\n<section aria-labelledby=\"recoveries\"><h2 id=\"recoveries\">Recoveries</h2>\n",
          out);
    put_recoveries(out, view);
    fputs("</section>\n<section aria-labelledby=\"faults\"><h2 id=\"faults\">Faults</h2>\n", out);
    put_faults(out, view);
    fputs("</section>\n<section aria-labelledby=\"settings\"><h2 id=\"settings\">Settings</h2>\n", out);
    put_settings(out, view->history);
    fputs("</section>\n</div>\n", out);
}
