/* The head of the page: what was run, the verdict, the figures, how to repeat it. */
#include <inttypes.h>

#include "report/html.h"
#include "report/parts.h"

/* How the verdict is shown: a class of the style sheet, a sign, and words that need neither. */
static const struct {
    const char *class, *sign;
} moods[] = {[CHAOS_MOOD_CLEAN] = {"clean", "<path d=\"M7 16.5l6 6 12-13\"/>"},
             [CHAOS_MOOD_EXPECTED] = {"expected", "<path d=\"M16 7v11M16 23v1.5\"/>"},
             [CHAOS_MOOD_WRONG] = {"wrong", "<path d=\"M9 9l14 14M23 9L9 23\"/>"},
             [CHAOS_MOOD_NOTHING] = {"nothing", "<path d=\"M8 16h16\"/>"}};

static enum chaos_mood mood_of(const struct chaos_view *view) {
    const struct chaos_verdict *verdict = view->verdict;
    bool expected = view->history->breaks_assumptions && !chaos_all_guarded(view->history) &&
                    chaos_hard_count(view->history, verdict) == 0;
    return verdict->violation_count > 0 ? expected ? CHAOS_MOOD_EXPECTED : CHAOS_MOOD_WRONG
           : verdict->acquired == 0     ? CHAOS_MOOD_NOTHING
                                        : CHAOS_MOOD_CLEAN;
}

/* "20 clients acquired 3 resources 9,812 times on 5 nodes within 60 s, under 34 faults." */
static void put_what_was_done(FILE *out, const struct chaos_view *view) {
    const struct chaos_history *history = view->history;
    chaos_html(out, "%s acquired %s %s on %s within %s, %s%s.", CHAOS_MANY(history->client_count, "client"),
               CHAOS_MANY(history->resource_count, "resource"), CHAOS_MANY(view->verdict->acquired, "time"),
               CHAOS_MANY(history->node_count, "node"), CHAOS_DURATION(view->end_us),
               history->band_count == 0 ? "without faults" : "under ",
               history->band_count == 0 ? "" : CHAOS_MANY(history->band_count, "fault"));
}

static void put_judgement(FILE *out, const struct chaos_view *view, enum chaos_mood mood) {
    switch (mood) {
    case CHAOS_MOOD_CLEAN:
        fputs(" At no time did two clients rely on one resource; no update was lost; every operation ended by its "
              "deadline; nothing "
              "was left behind.",
              out);
        fputs(!view->history->breaks_assumptions ? ""
              : chaos_all_guarded(view->history)
                  ? " These faults break what Redlock assumes; the guards kept the nodes that they hit from voting."
                  : " That is luck: these faults break what Redlock assumes, so another seed may "
                    "well show violations.",
              out);
        break;
    case CHAOS_MOOD_NOTHING:
        fputs(" So there was little that could have gone wrong: this run proves nothing.", out);
        break;
    case CHAOS_MOOD_EXPECTED:
        fputs(" These faults break what Redlock assumes: a node forgot keys, or its clock was wrong. So violations are "
              "what to "
              "expect here; they show what the assumption is worth.",
              out);
        fputs(view->history->protection.fencing
                  ? " Fencing tokens keep the resource whole all the same: no stale access was granted, no update lost."
                  : "",
              out);
        break;
    case CHAOS_MOOD_WRONG:
        if (view->verdict->counts[CHAOS_VIOLATION_INCOMPLETE] == view->verdict->violation_count) {
            fputs(" What is known of it is not whole: it proves nothing.", out);
            break;
        }
        fputs(chaos_all_guarded(view->history) ? " The guards are on against all of these faults: this must not happen."
              : view->history->breaks_assumptions
                  ? " Some of them have nothing to do with the faults that break what Redlock assumes."
                  : " None of these faults breaks what Redlock assumes: this must not happen.",
              out);
    }
}

void chaos_page_verdict(FILE *out, enum chaos_mood mood, const char *headline) {
    fprintf(out,
            "<section class=\"verdict %s\" aria-labelledby=\"verdict\"><svg class=\"sign\" viewBox=\"0 0 32 32\" "
            "aria-hidden=\"true\">%s",
            moods[mood].class, moods[mood].sign);
    chaos_html(out, "</svg><div><h2 id=\"verdict\">%s</h2>", headline);
}

static void put_verdict(FILE *out, const struct chaos_view *view) {
    enum chaos_mood mood = mood_of(view);
    size_t count = view->verdict->violation_count;
    char headline[80];
    snprintf(headline, sizeof headline, "%s%s", count == 0 ? "No violation" : CHAOS_MANY(count, "violation"),
             mood == CHAOS_MOOD_NOTHING    ? ", but nothing was acquired"
             : mood == CHAOS_MOOD_EXPECTED ? ", as expected"
                                           : "");
    chaos_page_verdict(out, mood, headline);
    fputs("<p>", out);
    put_what_was_done(out, view);
    put_judgement(out, view, mood);
    fputs("</p></div></section>\n", out);
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

static void put_recoveries_figure(FILE *out, const struct chaos_verdict *verdict) {
    char more[CHAOS_NUMBER_SIZE * 2] = "after no healthy quorum";
    int64_t most_us = -1;
    for (size_t i = 0; i < verdict->recovery_count; i++) {
        const struct chaos_recovery *recovery = &verdict->recoveries[i];
        if (recovery->acquired_us != CHAOS_NEVER_US && recovery->acquired_us - recovery->healed_us > most_us) {
            most_us = recovery->acquired_us - recovery->healed_us;
        }
    }
    if (most_us >= 0) {
        snprintf(more, sizeof more, "slowest %s", CHAOS_DURATION(most_us));
    }
    put_figure(out, "Recoveries", CHAOS_COUNT(verdict->recovery_count), more, NULL, false);
}

/* Says so where only a part of the acquires counts. */
static void put_availability_figure(FILE *out, const struct chaos_verdict *verdict) {
    char got[80], counted[80];
    snprintf(got, sizeof got, "%s of %s", CHAOS_COUNT(verdict->healthy_acquired),
             CHAOS_MANY(verdict->healthy_acquires, "acquire"));
    snprintf(counted, sizeof counted, "%s of %s counted", CHAOS_COUNT(verdict->healthy_acquires),
             CHAOS_COUNT(verdict->acquires));
    bool any = verdict->healthy_acquires > 0;
    put_figure(out, "Availability", any ? CHAOS_SHARE(chaos_availability_10000(verdict)) : "–",
               any ? got : "no acquire under a healthy quorum",
               verdict->healthy_acquires < verdict->acquires ? counted : NULL, false);
}

static void put_figures(FILE *out, const struct chaos_view *view) {
    const struct chaos_verdict *verdict = view->verdict;
    char more[3 * CHAOS_NUMBER_SIZE];
    fputs("<dl class=\"figures\">\n", out);
    put_figure(out, "Violations", CHAOS_COUNT(verdict->violation_count), NULL, NULL, verdict->violation_count > 0);
    snprintf(more, sizeof more, "of %s", CHAOS_MANY(verdict->increments, "increment"));
    put_figure(out, "Lost updates", CHAOS_COUNT(verdict->lost_updates), more, NULL, verdict->lost_updates > 0);
    snprintf(more, sizeof more, "%s, %s", CHAOS_MANY(verdict->acquires, "acquire"),
             CHAOS_MANY(verdict->releases, "release"));
    put_figure(out, "Operations", CHAOS_COUNT(verdict->operations), more, NULL, false);
    put_availability_figure(out, verdict);
    put_figure(out, "Longest gap", verdict->acquired > 0 ? CHAOS_DURATION(verdict->longest_gap_us) : "–",
               "between two acquires", NULL, false);
    put_recoveries_figure(out, verdict);
    fputs("</dl>\n<p class=\"note\">Availability and the longest gap count only the time in which a quorum of nodes "
          "was healthy: without faults, and for long enough after the last one that a client has connected again."
          "</p>\n",
          out);
}

static void put_protection(FILE *out, const struct chaos_view *view) {
    const struct chaos_protection *protection = &view->history->protection;
    const struct chaos_verdict *verdict = view->verdict;
    if (protection->fencing) {
        chaos_html(out,
                   "<p class=\"note\">Fencing tokens are on: the resource refused %s and %s and granted %zu.</p>\n",
                   CHAOS_MANY(verdict->reads_refused, "stale read"), CHAOS_MANY(verdict->writes_refused, "stale write"),
                   verdict->counts[CHAOS_VIOLATION_STALE]);
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

static void put_repeat(FILE *out, const struct chaos_history *history) {
    char seed[CHAOS_NUMBER_SIZE];
    snprintf(seed, sizeof seed, "%" PRIu64, history->seed);
    chaos_html(out,
               "<section class=\"repeat\" aria-labelledby=\"repeat\"><h2 id=\"repeat\">Repeat it</h2><p>Seed <b "
               "class=\"number\">%s</b> breaks the same things at the same times.</p><div class=\"command\"><pre "
               "tabindex=\"0\"><code>%s</code></pre><button type=\"button\" id=\"copy\" hidden>Copy</button></div>"
               "</section>\n",
               seed, history->command);
}

void chaos_page_head(FILE *out, const struct chaos_view *view) {
    const struct chaos_history *history = view->history;
    bool named = history->experiment != NULL && history->experiment[0] != '\0';
    fputs("<header>\n<p class=\"over\">redlock-chaos", out);
    if (named) {
        chaos_html(out, " <span aria-hidden=\"true\">/</span> %s", history->experiment);
    }
    chaos_html(out, " <span aria-hidden=\"true\">/</span> %s</p>\n<h1>%s</h1>\n", history->version,
               view->experiment != NULL ? view->experiment->title
               : named                  ? history->experiment
                                        : "Faults of one's own");
    if (view->experiment != NULL) {
        chaos_html(out, "<p class=\"purpose\">%s</p>\n", view->experiment->purpose);
    }
    fputs("</header>\n<main>\n", out);
    put_verdict(out, view);
    put_figures(out, view);
    put_protection(out, view);
    put_repeat(out, history);
}
