/* The verdict in words, and as the last line that scripts read; and what guards promise: which
 * faults they are for, and which nodes they keep from voting. */
#include <inttypes.h>
#include <stdio.h>

#include "checks/check_parts.h"
#include "checks/numbers.h"

enum { TEXTS_SHOWN = 3 };

char *chaos_verdict_line(const struct chaos_verdict *verdict, char *buffer, size_t size) {
    int64_t share = chaos_availability_10000(verdict);
    char availability[24] = "none"; /* a script must not take it for perfect */
    if (verdict->healthy_acquires > 0) {
        snprintf(availability, sizeof availability, "%" PRId64 ".%04" PRId64, share / 10000, share % 10000);
    }
    snprintf(buffer, size, "violations=%zu lost_updates=%" PRId64 " operations=%" PRId64 " availability=%s",
             verdict->violation_count, verdict->lost_updates, verdict->operations, availability);
    return buffer;
}

/* " (12 contended, 3 without a quorum)", without those that are 0. */
struct part {
    int64_t count;
    const char *name;
};

static void parts(FILE *out, const struct part *list, size_t count) {
    const char *before = " (";
    for (size_t i = 0; i < count; i++) {
        if (list[i].count > 0) {
            fprintf(out, "%s%s %s", before, CHAOS_COUNT(list[i].count), list[i].name);
            before = ", ";
        }
    }
    fputs(before[0] == ',' ? ")" : "", out);
}

static void say_done(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict) {
    const struct part failures[] = {{verdict->contended, "contended"},
                                    {verdict->no_quorum, "without a quorum"},
                                    {verdict->too_slow, "too slow"},
                                    {verdict->other, "cut by the end of their client"}};
    const struct part losses[] = {{verdict->release_lost, "of a lost lease"},
                                  {verdict->release_no_quorum, "without a quorum"}};
    fprintf(out, "%s, %s (%s, %s), %s, %.1f s%s%s, seed %" PRIu64 ":\n%s, %s got the lock",
            CHAOS_MANY(history->client_count, "client"), CHAOS_MANY(history->node_count, "node"), history->version,
            history->backend, CHAOS_MANY(history->resource_count, "resource"),
            chaos_seconds(history, chaos_history_end_us(history)), history->experiment[0] == '\0' ? "" : ", ",
            history->experiment, history->seed, CHAOS_MANY(verdict->acquires, "acquire"),
            CHAOS_COUNT(verdict->acquired));
    parts(out, failures, sizeof failures / sizeof failures[0]);
    fprintf(out, "; %s", CHAOS_MANY(verdict->releases, "release"));
    parts(out, losses, sizeof losses / sizeof losses[0]);
    fprintf(out, "; %s of the shared counters", CHAOS_MANY(verdict->increments, "increment"));
    if (verdict->reads > 0) {
        fprintf(out, ", %s under shared leases", CHAOS_MANY(verdict->reads, "read"));
    }
    fprintf(out, "; %s lost in the owner's eyes; the auditor looked at the keys %s.\n",
            CHAOS_MANY(verdict->leases_lost, "lease"), CHAOS_MANY(history->sweep_count, "time"));
}

static void say_availability(FILE *out, const struct chaos_verdict *verdict) {
    if (verdict->healthy_acquires == 0) {
        fputs("Availability: no acquire had a healthy quorum all the time.\n", out);
        return;
    }
    int64_t share = chaos_availability_10000(verdict);
    fprintf(out,
            "Availability: of %s acquires that had a healthy quorum all the time, %s got the lock (%" PRId64
            ".%02" PRId64
            " %%). With a healthy quorum for all clients, the longest time without a success was %.3f s.\n",
            CHAOS_COUNT(verdict->healthy_acquires), CHAOS_COUNT(verdict->healthy_acquired), share / 100, share % 100,
            (double)verdict->longest_gap_us / 1e6);
}

static void say_latency(FILE *out, const char *what, const struct chaos_percentiles *latency) {
    if (latency->count > 0) {
        fprintf(out, "%s: half within %.1f ms, 90 %% within %.1f ms, 99 %% within %.1f ms, all within %.1f ms.\n", what,
                (double)latency->p50_us / 1e3, (double)latency->p90_us / 1e3, (double)latency->p99_us / 1e3,
                (double)latency->max_us / 1e3);
    }
}

static void say_recoveries(FILE *out, const struct chaos_verdict *verdict) {
    size_t seen = verdict->recovered;
    if (verdict->recovery_count == 0) {
        return;
    }
    fprintf(out, "Recovery: a quorum came back %s", CHAOS_MANY(verdict->recovery_count, "time"));
    if (seen > 0) {
        fprintf(out, "; the next success followed after %.3f s", (double)verdict->recovered_least_us / 1e6);
    }
    if (seen > 1) {
        fprintf(out, " to %.3f s", (double)verdict->recovered_most_us / 1e6);
    }
    if (seen < verdict->recovery_count) {
        fprintf(out, "; %s there was none before the next outage or the end",
                CHAOS_MANY(verdict->recovery_count - seen, "time"));
    }
    fputs(".\n", out);
}

bool chaos_is_guarded(const struct chaos_history *history, const struct chaos_fault *fault) {
    const struct chaos_protection *protection = &history->protection;
    switch (fault->kind) {
    case CHAOS_FAULT_CLOCK_JUMP:
        return protection->clock_guard;
    case CHAOS_FAULT_KILL:
    case CHAOS_FAULT_RESTART_EMPTY:
        /* An append-only file that is deleted makes a node look as if it remembered. */
        return history->memoryless && protection->restart_guard != CHAOS_RESTART_GUARD_OFF;
    default:
        return false;
    }
}

/*
 * Votes that a node forgot at a time r support leases that end by r + ttl_max (docs/safety.md), and
 * for so long the guard keeps it from voting. r lies between the fault's begin and its end.
 */
bool chaos_kept_out(const struct chaos_history *history, size_t node, int64_t from_us, int64_t to_us) {
    for (size_t i = 0; i < history->band_count && chaos_has_guard(&history->protection); i++) {
        const struct chaos_band *band = &history->bands[i];
        if (!chaos_hits_node(&band->fault, node) || band->from_us > to_us || !chaos_is_guarded(history, &band->fault)) {
            continue;
        }
        int64_t end_us = band->to_us == CHAOS_NEVER_US ? chaos_history_end_us(history) : band->to_us;
        if (from_us <= chaos_plus(end_us, history->protection.ttl_max_ms * 1000)) {
            return true;
        }
    }
    return false;
}

/* The kinds, as bits, of faults that could be begun and that break the assumptions, where nodes
 * forget. */
static uint32_t broken_kinds(const struct chaos_history *history) {
    uint32_t kinds = 0;
    CHAOS_EACH(const struct chaos_band, band, history->bands, history->band_count) {
        bool begun = band->error == NULL || band->error[0] == '\0';
        kinds |= begun && chaos_fault_breaks(&band->fault, true) ? UINT32_C(1) << band->fault.kind : 0;
    }
    return kinds;
}

/* Whether two clients ran beside each other whose quorums need not share a node. */
static bool parts_clients(const struct chaos_history *history) {
    for (size_t i = 0; chaos_is_configured(history) && i < history->life_count; i++) {
        for (size_t j = 0; j < i; j++) {
            const struct chaos_life *a = &history->lives[i], *b = &history->lives[j];
            bool beside = a->client != b->client && chaos_over(b->ended_us, INT64_MAX) >= a->spawned_us &&
                          chaos_over(a->ended_us, INT64_MAX) >= b->spawned_us;
            if (beside && !chaos_setups_meet(&a->setup, &b->setup)) {
                return true;
            }
        }
    }
    return false;
}

/* By the schedule, or by hand in any experiment. */
bool chaos_breaks_assumptions(const struct chaos_history *history) {
    return history->breaks_assumptions || (broken_kinds(history) & ~(UINT32_C(1) << CHAOS_FAULT_KILL)) != 0 ||
           parts_clients(history);
}

bool chaos_all_guarded(const struct chaos_history *history) {
    size_t breaking = 0, guarded = 0;
    for (size_t i = 0; i < history->band_count; i++) {
        const struct chaos_fault *fault = &history->bands[i].fault;
        bool breaks = chaos_fault_breaks(fault, history->memoryless);
        breaking += breaks;
        guarded += breaks && chaos_is_guarded(history, fault);
    }
    return breaking > 0 && guarded == breaking;
}

size_t chaos_hard_count(const struct chaos_history *history, const struct chaos_verdict *verdict) {
    size_t soft = verdict->counts[CHAOS_VIOLATION_OVERLAP] + verdict->counts[CHAOS_VIOLATION_OUTLIVED];
    soft += history->protection.fencing
                ? 0
                : verdict->counts[CHAOS_VIOLATION_LOST_UPDATE] + verdict->counts[CHAOS_VIOLATION_CHANGED];
    return verdict->violation_count - soft;
}

static void say_broken(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict) {
    const char *before = " (";
    const uint32_t kinds = broken_kinds(history);
    if (parts_clients(history)) {
        fputs("This run lets clients lock beside each other whose quorums need not share a node: violations are "
              "expected.\n",
              out);
        return;
    }
    fputs("Redlock assumes that a node keeps its keys for their ttl, and that clocks run at about one rate. This run "
          "breaks that",
          out);
    for (size_t kind = 0; kind < CHAOS_FAULT_KINDS; kind++) {
        if (kind != CHAOS_FAULT_KILL && (kinds >> kind & 1) != 0) {
            fprintf(out, "%s%s", before, chaos_fault_about((enum chaos_fault_kind)kind)->name);
            before = ", ";
        }
    }
    if (before[0] == ' ' && (kinds >> CHAOS_FAULT_KILL & 1) != 0) {
        fputs(" (nodes were killed that keep nothing on disk)", out);
    }
    const char *expected = verdict->violation_count > 0
                               ? "violations are expected here, and show what it costs."
                               : "violations were expected here, but nobody was harmed this time.";
    if (chaos_all_guarded(history)) {
        expected = verdict->violation_count > 0 ? "the guards are on, so violations must not happen."
                                                : "the guards are on, and no violation is expected.";
    }
    fprintf(out, "%s: %s\n", before[0] == ',' ? ")" : "", expected);
}

/* Which protection was on, and what it did. */
static void say_protection(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict) {
    const struct chaos_protection *protection = &history->protection;
    if (chaos_has_guard(protection)) {
        fprintf(
            out,
            "Guards: restarts %s%s, clocks %s, ttl_max %.1f s: %s of nodes, %s %s noticed, counted by each client.\n",
            chaos_restart_guard_name(protection->restart_guard), protection->first_boot ? " (first boot)" : "",
            protection->clock_guard ? "watched" : "not watched", (double)protection->ttl_max_ms / 1e3,
            CHAOS_MANY(verdict->quarantines, "quarantine"), CHAOS_COUNT(verdict->clock_jumps),
            verdict->clock_jumps == 1 ? "jump of a clock" : "jumps of clocks");
    }
    if (protection->fencing) {
        fprintf(out, "Fencing: %s tokens at once, %s written back; the resource refused %s and %s, and granted %s.\n",
                CHAOS_COUNT(verdict->fenced_fast), CHAOS_COUNT(verdict->fenced_slow),
                CHAOS_MANY(verdict->reads_refused, "stale read"), CHAOS_MANY(verdict->writes_refused, "stale write"),
                CHAOS_COUNT(verdict->counts[CHAOS_VIOLATION_STALE]));
    }
    if (chaos_has_guard(protection) || protection->fencing) {
        fprintf(out, "%s set again on nodes that had lost them, or never had them.\n",
                CHAOS_MANY(verdict->healed, "key"));
    }
}

/* Those prove nothing. */
static void say_not_begun(FILE *out, const struct chaos_history *history) {
    int64_t not_begun = 0;
    for (size_t i = 0; i < history->band_count; i++) {
        not_begun += history->bands[i].error != NULL && history->bands[i].error[0] != '\0';
    }
    if (not_begun > 0) {
        fprintf(out,
                "Of %zu faults, %" PRId64 " did not happen, or not on all of their nodes: history.jsonl says why.\n",
                history->band_count, not_begun);
    }
}

static void say_violations(FILE *out, const struct chaos_verdict *verdict) {
    for (size_t kind = 0; kind < CHAOS_VIOLATION_KINDS; kind++) {
        size_t shown = 0;
        if (verdict->counts[kind] == 0) {
            continue;
        }
        fprintf(out, "%s: %zu (%s)\n", chaos_violation_abouts[kind].name, verdict->counts[kind],
                chaos_violation_abouts[kind].meaning);
        for (size_t i = 0; i < verdict->violation_count && shown < TEXTS_SHOWN; i++) {
            if ((size_t)verdict->violations[i].kind == kind) {
                fprintf(out, "  %s\n", verdict->violations[i].text);
                shown++;
            }
        }
        if (verdict->counts[kind] > shown) {
            fprintf(out, "  and %s more\n", CHAOS_COUNT(verdict->counts[kind] - shown));
        }
    }
}

void chaos_verdict_say(FILE *out, const struct chaos_history *history, const struct chaos_verdict *verdict) {
    bool breaks = chaos_breaks_assumptions(history);
    say_done(out, history, verdict);
    say_protection(out, history, verdict);
    say_availability(out, verdict);
    say_latency(out, "Acquires that got the lock", &verdict->acquire);
    say_latency(out, "Of these, at the first try", &verdict->acquire_first_try);
    say_latency(out, "Handed over in a queue", &verdict->acquire_in_line);
    if (verdict->acquire_to_read.count > 0) {
        say_latency(out, "To read", &verdict->acquire_to_read);
        say_latency(out, "To write", &verdict->acquire_to_write);
    }
    fprintf(out, "%s got the lock before one that had begun earlier; of %s it is known whether that was wrong.\n",
            CHAOS_MANY(verdict->passed_over, "acquire"), CHAOS_COUNT(verdict->order_judged));
    say_latency(out, "Releases", &verdict->release);
    say_recoveries(out, verdict);
    say_not_begun(out, history);
    if (!breaks && verdict->release_lost > 0) {
        fprintf(out,
                "%s %s answered by LOST, though no fault ended keys early. That is well where the lease was over by "
                "its deadline, or where a node was asked once more because its first answer did not come.\n",
                CHAOS_MANY(verdict->release_lost, "release"), verdict->release_lost == 1 ? "was" : "were");
    }
    if (breaks) {
        say_broken(out, history, verdict);
    }
    if (verdict->violation_count == 0) {
        fputs("No violation.\n", out);
        return;
    }
    fprintf(out, "%s:\n", CHAOS_MANY(verdict->violation_count, "violation"));
    say_violations(out, verdict);
}
