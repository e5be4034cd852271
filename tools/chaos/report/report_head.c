/* The head of the page: what was run, the verdict, the figures, how to repeat it. */
#include <inttypes.h>

#include "report/report_parts.h"
#include "report/report_text.h"

/* How the verdict is shown: a sign, a colour, and words that need neither. */
enum mood { MOOD_CLEAN, MOOD_EXPECTED, MOOD_WRONG, MOOD_NOTHING };

static enum mood mood_of(const struct chaos_view *view) {
    const struct chaos_verdict *verdict = view->verdict;
    size_t hard = chaos_hard_count(view->history, verdict);
    if (verdict->violation_count > 0) {
        bool expected = view->history->breaks_assumptions && !chaos_all_guarded(view->history) && hard == 0;
        return expected ? MOOD_EXPECTED : MOOD_WRONG;
    }
    return verdict->acquired == 0 ? MOOD_NOTHING : MOOD_CLEAN;
}

static void put_headline(FILE *out, const struct chaos_view *view, enum mood mood) {
    char number[CHAOS_NUMBER_SIZE];
    switch (mood) {
    case MOOD_CLEAN:
        fputs("No violation", out);
        break;
    case MOOD_NOTHING:
        fputs("No violation, but nothing was acquired", out);
        break;
    case MOOD_EXPECTED:
    case MOOD_WRONG:
        fputs(chaos_say_many((int64_t)view->verdict->violation_count, "violation", number), out);
        fputs(mood == MOOD_EXPECTED ? ", as expected" : "", out);
    }
}

/* "20 clients acquired 3 resources 9,812 times on 5 nodes within 60 s, under 34 faults." */
static void put_what_was_done(FILE *out, const struct chaos_view *view) {
    const struct chaos_history *history = view->history;
    char clients[CHAOS_NUMBER_SIZE], resources[CHAOS_NUMBER_SIZE], times[CHAOS_NUMBER_SIZE], nodes[CHAOS_NUMBER_SIZE];
    char duration[CHAOS_NUMBER_SIZE], faults[CHAOS_NUMBER_SIZE];
    fprintf(out, "%s acquired %s %s on %s within %s, ",
            chaos_say_many((int64_t)history->client_count, "client", clients),
            chaos_say_many((int64_t)history->resource_count, "resource", resources),
            chaos_say_many(view->verdict->acquired, "time", times),
            chaos_say_many((int64_t)history->node_count, "node", nodes), chaos_say_duration(view->end_us, duration));
    if (history->band_count == 0) {
        fputs("without faults.", out);
    } else {
        fprintf(out, "under %s.", chaos_say_many((int64_t)history->band_count, "fault", faults));
    }
}

static bool only_incomplete(const struct chaos_verdict *verdict) {
    return verdict->counts[CHAOS_VIOLATION_INCOMPLETE] == verdict->violation_count;
}

static void put_judgement(FILE *out, const struct chaos_view *view, enum mood mood) {
    switch (mood) {
    case MOOD_CLEAN:
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
    case MOOD_NOTHING:
        fputs(" So there was little that could have gone wrong: this run proves nothing.", out);
        break;
    case MOOD_EXPECTED:
        fputs(" These faults break what Redlock assumes: a node forgot keys, or its clock was wrong. So violations are "
              "what to "
              "expect here; they show what the assumption is worth.",
              out);
        fputs(view->history->protection.fencing
                  ? " Fencing tokens keep the resource whole all the same: no stale access was granted, no update lost."
                  : "",
              out);
        break;
    case MOOD_WRONG:
        if (only_incomplete(view->verdict)) {
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

static void put_verdict(FILE *out, const struct chaos_view *view) {
    static const char *const classes[] = {"clean", "expected", "wrong", "nothing"};
    static const char *const signs[] = {"<path d=\"M7 16.5l6 6 12-13\"/>", "<path d=\"M16 7v11M16 23v1.5\"/>",
                                        "<path d=\"M9 9l14 14M23 9L9 23\"/>", "<path d=\"M8 16h16\"/>"};
    enum mood mood = mood_of(view);
    fprintf(out,
            "<section class=\"verdict %s\" aria-labelledby=\"verdict\"><svg class=\"sign\" viewBox=\"0 0 32 32\" "
            "aria-hidden=\"true\">%s</svg><div><h2 id=\"verdict\">",
            classes[mood], signs[mood]);
    put_headline(out, view, mood);
    fputs("</h2><p>", out);
    put_what_was_done(out, view);
    put_judgement(out, view, mood);
    fputs("</p></div></section>\n", out);
}

static void put_figure(FILE *out, const char *name, const char *value, const char *more, bool bad) {
    fprintf(out, "<div%s><dt>%s</dt><dd><b>%s</b>", bad ? " class=\"bad\"" : "", name, value);
    if (more != NULL) {
        fprintf(out, "<span>%s</span>", more);
    }
    fputs("</dd></div>\n", out);
}

static void put_recoveries_figure(FILE *out, const struct chaos_verdict *verdict) {
    char number[CHAOS_NUMBER_SIZE], worst[CHAOS_NUMBER_SIZE], more[CHAOS_NUMBER_SIZE * 2] = "after no healthy quorum";
    int64_t most_us = -1;
    for (size_t i = 0; i < verdict->recovery_count; i++) {
        const struct chaos_recovery *recovery = &verdict->recoveries[i];
        if (recovery->acquired_us != CHAOS_NEVER_US && recovery->acquired_us - recovery->healed_us > most_us) {
            most_us = recovery->acquired_us - recovery->healed_us;
        }
    }
    if (most_us >= 0) {
        snprintf(more, sizeof more, "slowest %s", chaos_say_duration(most_us, worst));
    }
    put_figure(out, "Recoveries", chaos_say_count((int64_t)verdict->recovery_count, number), more, false);
}

static void put_figures(FILE *out, const struct chaos_view *view) {
    const struct chaos_verdict *verdict = view->verdict;
    char value[CHAOS_NUMBER_SIZE], a[CHAOS_NUMBER_SIZE], b[CHAOS_NUMBER_SIZE], more[3 * CHAOS_NUMBER_SIZE];
    fputs("<dl class=\"figures\">\n", out);
    put_figure(out, "Violations", chaos_say_count((int64_t)verdict->violation_count, value), NULL,
               verdict->violation_count > 0);
    snprintf(more, sizeof more, "of %s", chaos_say_many(verdict->increments, "increment", a));
    put_figure(out, "Lost updates", chaos_say_count(verdict->lost_updates, value), more, verdict->lost_updates > 0);
    snprintf(more, sizeof more, "%s, %s", chaos_say_many(verdict->acquires, "acquire", a),
             chaos_say_many(verdict->releases, "release", b));
    put_figure(out, "Operations", chaos_say_count(verdict->operations, value), more, false);
    snprintf(more, sizeof more, "%s of %s", chaos_say_count(verdict->healthy_acquired, a),
             chaos_say_count(verdict->healthy_acquires, b));
    bool any = verdict->healthy_acquires > 0;
    put_figure(out, "Availability", any ? chaos_say_share(chaos_availability_10000(verdict), value) : "&ndash;",
               any ? more : "no acquire under a healthy quorum", false);
    put_figure(out, "Longest gap",
               verdict->acquired > 0 ? chaos_say_duration(verdict->longest_gap_us, value) : "&ndash;",
               "between two acquires", false);
    put_recoveries_figure(out, verdict);
    fputs(
        "</dl>\n<p class=\"note\">Availability and the longest gap count only what happened while a quorum of nodes "
        "was healthy: without faults, and for long enough after the last one that a client has connected again.</p>\n",
        out);
}

static void put_protection(FILE *out, const struct chaos_view *view) {
    const struct chaos_protection *protection = &view->history->protection;
    const struct chaos_verdict *verdict = view->verdict;
    char a[CHAOS_NUMBER_SIZE], b[CHAOS_NUMBER_SIZE], c[CHAOS_NUMBER_SIZE];
    if (protection->fencing) {
        fprintf(out, "<p class=\"note\">Fencing tokens are on: the resource refused %s and %s and granted %s.</p>\n",
                chaos_say_many(verdict->reads_refused, "stale read", a),
                chaos_say_many(verdict->writes_refused, "stale write", b),
                chaos_say_count((int64_t)verdict->counts[CHAOS_VIOLATION_STALE], c));
    }
    if (chaos_has_guard(protection)) {
        fprintf(out,
                "<p class=\"note\">Guards are on (restarts: %s; clocks: %s): clients kept nodes from voting %s; %s of "
                "clocks were noticed.</p>\n",
                chaos_restart_guard_name(protection->restart_guard),
                protection->clock_guard ? "watched" : "not watched", chaos_say_many(verdict->quarantines, "time", a),
                chaos_say_many(verdict->clock_jumps, "jump", b));
    }
}

static void put_repeat(FILE *out, const struct chaos_history *history) {
    fprintf(out,
            "<section class=\"repeat\" aria-labelledby=\"repeat\"><h2 id=\"repeat\">Repeat it</h2><p>Seed <b "
            "class=\"number\">%" PRIu64 "</b> breaks the same things at the same times.</p>"
            "<div class=\"command\"><pre tabindex=\"0\"><code>",
            history->seed);
    chaos_page_text(out, history->command);
    fputs("</code></pre><button type=\"button\" id=\"copy\" hidden>Copy</button></div></section>\n", out);
}

void chaos_page_head(FILE *out, const struct chaos_view *view) {
    const struct chaos_history *history = view->history;
    bool named = history->experiment != NULL && history->experiment[0] != '\0';
    fputs("<header>\n<p class=\"over\">redlock-chaos", out);
    if (named) {
        fputs(" <span aria-hidden=\"true\">/</span> ", out);
        chaos_page_text(out, history->experiment);
    }
    fputs(" <span aria-hidden=\"true\">/</span> ", out);
    chaos_page_text(out, history->version);
    fputs("</p>\n<h1>", out);
    chaos_page_text(out, view->experiment != NULL ? view->experiment->title
                         : named                  ? history->experiment
                                                  : "Faults of one's own");
    fputs("</h1>\n", out);
    if (view->experiment != NULL) {
        fputs("<p class=\"purpose\">", out);
        chaos_page_text(out, view->experiment->purpose);
        fputs("</p>\n", out);
    }
    fputs("</header>\n<main>\n", out);
    put_verdict(out, view);
    put_figures(out, view);
    put_protection(out, view);
    put_repeat(out, history);
}
