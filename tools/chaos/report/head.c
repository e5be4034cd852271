/* The head of the page: what was run, the verdict, the figures, how to repeat it. */
#include <inttypes.h>

#include "report/html.h"
#include "report/parts.h"

/* How the verdict is shown: a class of the style sheet, a sign, and words that need neither. */
static const struct {
    const char *class, *sign, *words;
} moods[] = {
    [CHAOS_MOOD_CLEAN] = {"clean", "<path d=\"M7 16.5l6 6 12-13\"/>",
                          "; no update was lost; every operation ended by its deadline; nothing was left behind."},
    [CHAOS_MOOD_EXPECTED] = {"expected", "<path d=\"M16 7v11M16 23v1.5\"/>",
                             " These faults break what Redlock assumes: a node forgot keys, or its clock was wrong. So "
                             "violations are what to expect here; they show what the assumption is worth."},
    [CHAOS_MOOD_WRONG] = {"wrong", "<path d=\"M9 9l14 14M23 9L9 23\"/>", ""},
    [CHAOS_MOOD_NOTHING] = {"nothing", "<path d=\"M8 16h16\"/>",
                            " So there was little that could have gone wrong: this run proves nothing."}};

static enum chaos_mood mood_of(const struct chaos_view *view) {
    const struct chaos_verdict *verdict = view->verdict;
    bool expected = view->history->breaks_assumptions && !chaos_all_guarded(view->history) &&
                    chaos_hard_count(view->history, verdict) == 0;
    return verdict->violation_count > 0 ? expected ? CHAOS_MOOD_EXPECTED : CHAOS_MOOD_WRONG
           : verdict->acquired == 0     ? CHAOS_MOOD_NOTHING
                                        : CHAOS_MOOD_CLEAN;
}

/* What the faults and the protection have to do with it. */
static const char *reason_of(const struct chaos_view *view, enum chaos_mood mood) {
    const struct chaos_history *history = view->history;
    bool guarded = chaos_all_guarded(history), breaks = history->breaks_assumptions;
    if (mood == CHAOS_MOOD_WRONG) {
        return view->verdict->counts[CHAOS_VIOLATION_INCOMPLETE] == view->verdict->violation_count
                   ? " What is known of it is not whole: it proves nothing."
               : guarded ? " The guards are on against all of these faults: this must not happen."
               : breaks  ? " Some of them have nothing to do with the faults that break what Redlock assumes."
                         : " None of these faults breaks what Redlock assumes: this must not happen.";
    }
    if (mood == CHAOS_MOOD_EXPECTED && history->protection.fencing) {
        return " Fencing tokens keep the resource whole all the same: no stale access was granted, no update lost.";
    }
    if (mood == CHAOS_MOOD_CLEAN && breaks) {
        return guarded
                   ? " These faults break what Redlock assumes; the guards kept the nodes that they hit from voting."
                   : " That is luck: these faults break what Redlock assumes, so another seed may well show "
                     "violations.";
    }
    return "";
}

void chaos_page_verdict(FILE *out, enum chaos_mood mood, const char *headline) {
    fprintf(out,
            "<section class=\"verdict %s\" aria-labelledby=\"verdict\"><svg class=\"sign\" viewBox=\"0 0 32 32\" "
            "aria-hidden=\"true\">%s",
            moods[mood].class, moods[mood].sign);
    chaos_html(out, "</svg><div><h2 id=\"verdict\">%s</h2>", headline);
}

/* "20 clients acquired 3 resources 9,812 times on 5 nodes within 60 s, under 34 faults." */
static void put_verdict(FILE *out, const struct chaos_view *view) {
    const struct chaos_history *history = view->history;
    enum chaos_mood mood = mood_of(view);
    size_t count = view->verdict->violation_count, faults = history->band_count;
    chaos_page_verdict(out, mood,
                       CHAOS_SAY("%s%s", count == 0 ? "No violation" : CHAOS_MANY(count, "violation"),
                                 mood == CHAOS_MOOD_NOTHING    ? ", but nothing was acquired"
                                 : mood == CHAOS_MOOD_EXPECTED ? ", as expected"
                                                               : ""));
    const char *alone = mood != CHAOS_MOOD_CLEAN ? ""
                        : history->readers == 0
                            ? " At no time did two clients rely on one resource"
                            : " At no time did a client rely on a resource that another one had alone";
    chaos_html(out, "<p>%s acquired %s %s on %s within %s, %s%s.%s%s%s</p></div></section>\n",
               CHAOS_MANY(history->client_count, "client"), CHAOS_MANY(history->resource_count, "resource"),
               CHAOS_MANY(view->verdict->acquired, "time"), CHAOS_MANY(history->node_count, "node"),
               CHAOS_DURATION(view->end_us), faults == 0 ? "without faults" : "under ",
               faults == 0 ? "" : CHAOS_MANY(faults, "fault"), alone, moods[mood].words, reason_of(view, mood));
}

/* What more there is to say stands in one line or two; NULL for none. */
static void put_figure(FILE *out, const char *name, const char *value, const char *more, const char *and_more,
                       bool bad) {
    chaos_html(out, "<div class=\"%s\"><dt>%s</dt><dd><b>%s</b>", bad ? "bad" : "", name, value);
    if (more != NULL) {
        chaos_html(out, "<span>%s</span>", more);
    }
    if (and_more != NULL) {
        chaos_html(out, "<span>%s</span>", and_more);
    }
    fputs("</dd></div>\n", out);
}

static void put_figures(FILE *out, const struct chaos_verdict *verdict) {
    const char *all = CHAOS_MANY(verdict->acquires, "acquire"), *counted = CHAOS_COUNT(verdict->healthy_acquires);
    const struct chaos_percentiles *line = &verdict->acquire_in_line;
    bool any = verdict->healthy_acquires > 0;
    fputs("<dl class=\"figures\">\n", out);
    put_figure(out, "Violations", CHAOS_COUNT(verdict->violation_count), NULL, NULL, verdict->violation_count > 0);
    put_figure(out, "Lost updates", CHAOS_COUNT(verdict->lost_updates),
               CHAOS_SAY("of %s", CHAOS_MANY(verdict->increments, "increment")), NULL, verdict->lost_updates > 0);
    put_figure(out, "Operations", CHAOS_COUNT(verdict->operations),
               CHAOS_SAY("%s, %s", all, CHAOS_MANY(verdict->releases, "release")), NULL, false);
    put_figure(out, "Availability", any ? CHAOS_SHARE(chaos_availability_10000(verdict)) : "–",
               any ? CHAOS_SAY("%s of %s", CHAOS_COUNT(verdict->healthy_acquired),
                               CHAOS_MANY(verdict->healthy_acquires, "acquire"))
                   : "no acquire under a healthy quorum",
               verdict->healthy_acquires < verdict->acquires
                   ? CHAOS_SAY("%s of %s counted", counted, CHAOS_COUNT(verdict->acquires))
                   : NULL,
               false);
    put_figure(out, "Longest gap", verdict->acquired > 0 ? CHAOS_DURATION(verdict->longest_gap_us) : "–",
               "between two acquires", NULL, false);
    put_figure(out, "Waits in line", CHAOS_COUNT(line->count),
               line->count == 0
                   ? "nobody queued"
                   : CHAOS_SAY("median %s, longest %s", CHAOS_DURATION(line->p50_us), CHAOS_DURATION(line->max_us)),
               CHAOS_SAY("%s passed over", CHAOS_COUNT(verdict->passed_over)), false);
    put_figure(out, "Recoveries", CHAOS_COUNT(verdict->recovery_count),
               verdict->recovered == 0 ? "after no healthy quorum"
                                       : CHAOS_SAY("slowest %s", CHAOS_DURATION(verdict->recovered_most_us)),
               NULL, false);
    fputs("</dl>\n<p class=\"note\">Availability and the longest gap count only the time in which a quorum of nodes "
          "was healthy: without faults, and for long enough after the last one that a client has connected again."
          "</p>\n",
          out);
}

static void put_protection(FILE *out, const struct chaos_protection *protection, const struct chaos_verdict *verdict) {
    if (protection->fencing) {
        chaos_html(out, "<p class=\"note\">Fencing tokens are on: the resource refused %s and %s and granted %s.</p>\n",
                   CHAOS_MANY(verdict->reads_refused, "stale read"), CHAOS_MANY(verdict->writes_refused, "stale write"),
                   CHAOS_COUNT(verdict->counts[CHAOS_VIOLATION_STALE]));
    }
    if (chaos_has_guard(protection)) {
        chaos_html(out,
                   "<p class=\"note\">Guards are on (restarts: %s; clocks: %s): clients kept nodes from voting %s; %s "
                   "of clocks were noticed.</p>\n",
                   chaos_restart_guard_name(protection->restart_guard),
                   protection->clock_guard ? "watched" : "not watched", CHAOS_MANY(verdict->quarantines, "time"),
                   CHAOS_MANY(verdict->clock_jumps, "jump"));
    }
}

void chaos_page_header(FILE *out, const char *name, const char *version, const char *title, const char *purpose) {
    static const char slash[] = "<span aria-hidden=\"true\">/</span>";
    fprintf(out, "<header>\n<p class=\"over\">redlock-chaos %s ", slash);
    chaos_html(out, "%s ", name);
    fputs(slash, out);
    chaos_html(out, " %s</p>\n<h1>%s</h1>\n<p class=\"purpose\">%s</p>\n</header>\n<main>\n", version, title, purpose);
}

void chaos_page_head(FILE *out, const struct chaos_view *view) {
    const struct chaos_history *history = view->history;
    const struct chaos_experiment *experiment = view->experiment;
    bool named = history->experiment != NULL && history->experiment[0] != '\0';
    chaos_page_header(out, named ? history->experiment : "a schedule of one's own", history->version,
                      experiment != NULL ? experiment->title
                      : named            ? history->experiment
                                         : "Faults of one's own",
                      experiment != NULL ? experiment->purpose : "");
    put_verdict(out, view);
    put_figures(out, view->verdict);
    put_protection(out, &history->protection, view->verdict);
    chaos_html(out,
               "<section class=\"repeat\" aria-labelledby=\"repeat\"><h2 id=\"repeat\">Repeat it</h2><p>Seed <b "
               "class=\"number\">%s</b> breaks the same things at the same times.</p><div class=\"command\"><pre "
               "tabindex=\"0\"><code>%s</code></pre><button type=\"button\" id=\"copy\" hidden>Copy</button></div>"
               "</section>\n",
               CHAOS_SAY("%" PRIu64, history->seed), history->command);
}
