/* One schedule run three times: without protection, with fencing tokens, and with guards as well.
 * What it shows. Pure. */
#include "checks/comparison.h"

#include <inttypes.h>

#include "checks/numbers.h"
#include "values/values.h"

const struct chaos_side_about chaos_sides[] = {[CHAOS_SIDE_NONE] = {"none", "Without protection"},
                                               [CHAOS_SIDE_FENCING] = {"fencing", "With fencing tokens"},
                                               [CHAOS_SIDE_GUARDS] = {"guards", "With guards, too"}};

struct chaos_protection chaos_side_protection(enum chaos_side side) {
    return side == CHAOS_SIDE_GUARDS ? chaos_protection_full()
                                     : (struct chaos_protection){.fencing = side == CHAOS_SIDE_FENCING};
}

bool chaos_side_holds(const struct chaos_comparison *comparison, enum chaos_side side) {
    const struct chaos_verdict *verdict = &comparison->verdicts[side];
    size_t hard = chaos_hard_count(&comparison->histories[side], verdict), all = verdict->violation_count;
    bool shows = side == CHAOS_SIDE_NONE ? all > 0 : verdict->acquired > 0;
    return shows && (side == CHAOS_SIDE_GUARDS ? all : hard) == 0;
}

bool chaos_comparison_holds(const struct chaos_comparison *comparison) {
    bool holds = true;
    for (int side = 0; side < CHAOS_SIDES; side++) {
        holds &= chaos_side_holds(comparison, (enum chaos_side)side);
    }
    return holds;
}

static int64_t count(const struct chaos_verdict *verdict, enum chaos_violation_kind kind) {
    return (int64_t)verdict->counts[kind];
}

static const char *were_lost(int64_t updates) {
    return updates == 1 ? "was lost" : "were lost";
}

static void say_none(const struct chaos_verdict *verdict, bool holds, char *text, size_t size) {
    if (verdict->violation_count == 0) {
        snprintf(text, size, "nothing went wrong, so this run shows nothing: try another seed, or more seconds.");
        return;
    }
    snprintf(text, size, "two clients relied on one lease %s, and %s of the resource %s%s.",
             CHAOS_MANY(count(verdict, CHAOS_VIOLATION_OVERLAP), "time"), CHAOS_MANY(verdict->lost_updates, "update"),
             were_lost(verdict->lost_updates),
             holds ? "" : "; but there are violations that these faults do not explain");
}

static void say_fencing(const struct chaos_verdict *verdict, bool holds, char *text, size_t size) {
    int64_t refused = verdict->reads_refused + verdict->writes_refused;
    snprintf(text, size,
             "leases overlapped %s all the same; the resource refused %s access%s with old tokens and granted %s, and "
             "%s %s%s.",
             CHAOS_MANY(count(verdict, CHAOS_VIOLATION_OVERLAP), "time"), CHAOS_COUNT(refused),
             refused == 1 ? "" : "es", CHAOS_COUNT(count(verdict, CHAOS_VIOLATION_STALE)),
             CHAOS_MANY(verdict->lost_updates, "update"), were_lost(verdict->lost_updates),
             holds ? "" : "; that must not be");
}

static void say_guards(const struct chaos_comparison *comparison, bool holds, char *text, size_t size) {
    const struct chaos_verdict *before = &comparison->verdicts[CHAOS_SIDE_NONE],
                               *verdict = &comparison->verdicts[CHAOS_SIDE_GUARDS];
    if (verdict->violation_count > 0) {
        snprintf(text, size, "there are %zu violations, which must not be.", verdict->violation_count);
        return;
    }
    if (!holds) {
        snprintf(text, size, "nobody got the lock: this run proves nothing.");
        return;
    }
    const char *cost =
        verdict->acquired >= before->acquired
            ? ""
            : TOOL_TEXT(128, ", which costs waiting: the lock was got %" PRId64 " times instead of %" PRId64,
                        verdict->acquired, before->acquired);
    snprintf(text, size,
             "no violation. Nodes that had restarted, or whose clocks had jumped, were kept from voting (%" PRId64
             " times, counted by each client)%s.",
             verdict->quarantines, cost);
}

void chaos_side_sentence(const struct chaos_comparison *comparison, enum chaos_side side, char *text, size_t size) {
    bool holds = chaos_side_holds(comparison, side);
    if (side == CHAOS_SIDE_GUARDS) {
        say_guards(comparison, holds, text, size);
    } else {
        (side == CHAOS_SIDE_NONE ? say_none : say_fencing)(&comparison->verdicts[side], holds, text, size);
    }
}

enum unit { COUNT, SHARE, MS };

/* "" for a value below 0: it does not apply. */
static void say_figure(char *text, size_t size, enum unit unit, int64_t value) {
    text[0] = '\0';
    if (unit == SHARE && value >= 0) {
        snprintf(text, size, "%" PRId64 ".%02" PRId64 " %%", value / 100, value % 100);
    } else if (unit == MS && value >= 0) {
        snprintf(text, size, value < 999950 ? "%.1f ms" : "%.2f s", (double)value / (value < 999950 ? 1e3 : 1e6));
    } else if (value >= 0) {
        snprintf(text, size, "%" PRId64, value);
    }
}

static bool find_figure(const struct chaos_comparison *comparison, size_t index, enum chaos_side side,
                        struct chaos_row *row) {
    const struct chaos_verdict *v = &comparison->verdicts[side];
    const struct chaos_protection *protection = &comparison->histories[side].protection;
    const int64_t tried = v->acquired + v->contended + v->no_quorum + v->too_slow;
    const bool fencing = protection->fencing, guard = chaos_has_guard(protection);
    const struct {
        const char *name;
        bool bad; /* a number above 0 is harm */
        enum unit unit;
        int64_t value;
    } rows[] = {
        {"violations", true, COUNT, (int64_t)v->violation_count},
        {"overlapping leases", true, COUNT, count(v, CHAOS_VIOLATION_OVERLAP)},
        {"leases that outlived their keys", true, COUNT, count(v, CHAOS_VIOLATION_OUTLIVED)},
        {"lost updates", true, COUNT, v->lost_updates},
        {"stale accesses granted", true, COUNT, fencing ? count(v, CHAOS_VIOLATION_STALE) : -1},
        {"stale reads refused", false, COUNT, fencing ? v->reads_refused : -1},
        {"stale writes refused", false, COUNT, fencing ? v->writes_refused : -1},
        {"fencing tokens in one round trip", false, COUNT, fencing ? v->fenced_fast : -1},
        {"fencing tokens written back", false, COUNT, fencing ? v->fenced_slow : -1},
        {"nodes kept from voting, by all clients", false, COUNT, guard ? v->quarantines : -1},
        {"jumps of clocks noticed, by all clients", false, COUNT, guard ? v->clock_jumps : -1},
        {"operations", false, COUNT, v->operations},
        {"acquires that got the lock", false, COUNT, v->acquired},
        {"acquires that did not, but for the end", false, COUNT, tried - v->acquired},
        {"share of them that did", false, SHARE, tried == 0 ? -1 : v->acquired * 10000 / tried},
        {"acquire, median", false, MS, v->acquire.p50_us},
        {"acquire, 90 %", false, MS, v->acquire.p90_us},
        {"longest time without a success", false, MS, v->longest_without_us},
        {"availability under no fault", false, SHARE, v->healthy_acquires == 0 ? -1 : chaos_availability_10000(v)},
    };
    if (index >= sizeof rows / sizeof rows[0]) {
        return false;
    }
    row->name = rows[index].name;
    row->bad[side] = rows[index].bad && rows[index].value > 0;
    say_figure(row->figures[side], sizeof row->figures[side], rows[index].unit, rows[index].value);
    return true;
}

bool chaos_row_at(const struct chaos_comparison *comparison, size_t index, struct chaos_row *row) {
    bool found = true;
    for (int side = 0; side < CHAOS_SIDES; side++) {
        found &= find_figure(comparison, index, (enum chaos_side)side, row);
    }
    return found;
}

void chaos_comparison_say(FILE *out, const struct chaos_comparison *comparison) {
    char text[512];
    struct chaos_row row;
    fprintf(out, "%-40s", "");
    for (int side = 0; side < CHAOS_SIDES; side++) {
        fprintf(out, "%22s", chaos_sides[side].title);
    }
    fputs("\n", out);
    for (size_t i = 0; chaos_row_at(comparison, i, &row); i++) {
        fprintf(out, "%-40s", row.name);
        for (int side = 0; side < CHAOS_SIDES; side++) {
            fprintf(out, "%22s", row.figures[side][0] == '\0' ? "-" : row.figures[side]);
        }
        fputs("\n", out);
    }
    for (int side = 0; side < CHAOS_SIDES; side++) {
        chaos_side_sentence(comparison, (enum chaos_side)side, text, sizeof text);
        fprintf(out, "%s: %s\n", chaos_sides[side].title, text);
    }
    fprintf(
        out, "comparison=%s none=%zu fencing=%zu guards=%zu\n", chaos_comparison_holds(comparison) ? "holds" : "fails",
        comparison->verdicts[CHAOS_SIDE_NONE].violation_count, comparison->verdicts[CHAOS_SIDE_FENCING].violation_count,
        comparison->verdicts[CHAOS_SIDE_GUARDS].violation_count);
}

void chaos_comparison_clear(struct chaos_comparison *comparison) {
    for (int side = 0; side < CHAOS_SIDES; side++) {
        chaos_verdict_clear(&comparison->verdicts[side]);
        chaos_history_clear(&comparison->histories[side]);
    }
}
