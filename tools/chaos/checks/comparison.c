/* One schedule run three times: without protection, with fencing tokens, and with guards as well.
 * What it shows. Pure. */
#include "checks/comparison.h"

#include <assert.h>
#include <inttypes.h>

#include "checks/numbers.h"

static const struct {
    const char *name, *title;
} sides[CHAOS_SIDES] = {[CHAOS_SIDE_NONE] = {"none", "Without protection"},
                        [CHAOS_SIDE_FENCING] = {"fencing", "With fencing tokens"},
                        [CHAOS_SIDE_GUARDS] = {"guards", "With guards, too"}};

const char *chaos_side_name(enum chaos_side side) {
    assert(side < CHAOS_SIDES);
    return sides[side].name;
}

const char *chaos_side_title(enum chaos_side side) {
    assert(side < CHAOS_SIDES);
    return sides[side].title;
}

struct chaos_protection chaos_side_protection(enum chaos_side side) {
    switch (side) {
    case CHAOS_SIDE_FENCING:
        return (struct chaos_protection){.fencing = true};
    case CHAOS_SIDE_GUARDS:
        return chaos_protection_full();
    default:
        return (struct chaos_protection){0};
    }
}

bool chaos_side_holds(const struct chaos_comparison *comparison, enum chaos_side side) {
    const struct chaos_verdict *verdict = &comparison->verdicts[side];
    size_t hard = chaos_hard_count(&comparison->histories[side], verdict);
    switch (side) {
    case CHAOS_SIDE_NONE:
        return hard == 0 && verdict->violation_count > 0;
    case CHAOS_SIDE_FENCING:
        return hard == 0 && verdict->acquired > 0;
    default:
        return verdict->violation_count == 0 && verdict->acquired > 0;
    }
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
    char cost[128] = "";
    if (verdict->acquired < before->acquired) {
        snprintf(cost, sizeof cost, ", which costs waiting: the lock was got %" PRId64 " times instead of %" PRId64,
                 verdict->acquired, before->acquired);
    }
    snprintf(text, size,
             "no violation. Nodes that had restarted, or whose clocks had jumped, were kept from voting (%" PRId64
             " times, counted by each client)%s.",
             verdict->quarantines, cost);
}

void chaos_side_sentence(const struct chaos_comparison *comparison, enum chaos_side side, char *text, size_t size) {
    bool holds = chaos_side_holds(comparison, side);
    switch (side) {
    case CHAOS_SIDE_NONE:
        say_none(&comparison->verdicts[side], holds, text, size);
        return;
    case CHAOS_SIDE_FENCING:
        say_fencing(&comparison->verdicts[side], holds, text, size);
        return;
    default:
        say_guards(comparison, holds, text, size);
    }
}

enum unit { UNIT_COUNT, UNIT_SHARE, UNIT_MS };
enum needs { NEEDS_NOTHING, NEEDS_FENCING, NEEDS_GUARD };

/* X(name, unit, what it needs, whether it is harm, value of v) */
#define ROW_MAP(X)                                                                                                     \
    X("violations", COUNT, NOTHING, true, (int64_t)v->violation_count)                                                 \
    X("overlapping leases", COUNT, NOTHING, true, count(v, CHAOS_VIOLATION_OVERLAP))                                   \
    X("leases that outlived their keys", COUNT, NOTHING, true, count(v, CHAOS_VIOLATION_OUTLIVED))                     \
    X("lost updates", COUNT, NOTHING, true, v->lost_updates)                                                           \
    X("stale accesses granted", COUNT, FENCING, true, count(v, CHAOS_VIOLATION_STALE))                                 \
    X("stale reads refused", COUNT, FENCING, false, v->reads_refused)                                                  \
    X("stale writes refused", COUNT, FENCING, false, v->writes_refused)                                                \
    X("fencing tokens in one round trip", COUNT, FENCING, false, v->fenced_fast)                                       \
    X("fencing tokens written back", COUNT, FENCING, false, v->fenced_slow)                                            \
    X("nodes kept from voting, by all clients", COUNT, GUARD, false, v->quarantines)                                   \
    X("jumps of clocks noticed, by all clients", COUNT, GUARD, false, v->clock_jumps)                                  \
    X("operations", COUNT, NOTHING, false, v->operations)                                                              \
    X("acquires that got the lock", COUNT, NOTHING, false, v->acquired)                                                \
    X("acquires that did not, but for the end", COUNT, NOTHING, false, v->contended + v->no_quorum + v->too_slow)      \
    X("share of them that did", SHARE, NOTHING, false,                                                                 \
      v->acquires == v->other ? -1 : v->acquired * 10000 / (v->acquires - v->other))                                   \
    X("acquire, median", MS, NOTHING, false, v->acquire.p50_us)                                                        \
    X("acquire, 90 %", MS, NOTHING, false, v->acquire.p90_us)                                                          \
    X("longest time without a success", MS, NOTHING, false, v->longest_without_us)                                     \
    X("availability under no fault", SHARE, NOTHING, false, v->healthy_acquires == 0 ? -1 : chaos_availability_10000(v))

static const struct {
    struct chaos_row row;
    enum unit unit;
    enum needs needs;
} rows[] = {
#define X(name, unit, needs, bad, value) {{name, bad}, UNIT_##unit, NEEDS_##needs},
    ROW_MAP(X)
#undef X
};

static int64_t value_of(const struct chaos_verdict *v, size_t index) {
    const int64_t values[] = {
#define X(name, unit, needs, bad, value) value,
        ROW_MAP(X)
#undef X
    };
    return values[index];
}

size_t chaos_row_count(void) {
    return sizeof rows / sizeof rows[0];
}

struct chaos_row chaos_row_at(size_t index) {
    assert(index < chaos_row_count());
    return rows[index].row;
}

void chaos_row_figure(const struct chaos_comparison *comparison, size_t index, enum chaos_side side, char *text,
                      size_t size, bool *above_0) {
    const struct chaos_protection *protection = &comparison->histories[side].protection;
    int64_t value = value_of(&comparison->verdicts[side], index);
    bool applies = (rows[index].needs != NEEDS_FENCING || protection->fencing) &&
                   (rows[index].needs != NEEDS_GUARD || chaos_has_guard(protection)) && value >= 0;
    *above_0 = applies && value > 0;
    if (!applies) {
        text[0] = '\0';
    } else if (rows[index].unit == UNIT_SHARE) {
        snprintf(text, size, "%" PRId64 ".%02" PRId64 " %%", value / 100, value % 100);
    } else if (rows[index].unit == UNIT_MS) {
        snprintf(text, size, value < 999950 ? "%.1f ms" : "%.2f s", (double)value / (value < 999950 ? 1e3 : 1e6));
    } else {
        snprintf(text, size, "%" PRId64, value);
    }
}

void chaos_comparison_say(FILE *out, const struct chaos_comparison *comparison) {
    char text[512];
    bool above_0;
    fprintf(out, "%-40s", "");
    for (int side = 0; side < CHAOS_SIDES; side++) {
        fprintf(out, "%22s", chaos_side_title((enum chaos_side)side));
    }
    fputs("\n", out);
    for (size_t row = 0; row < chaos_row_count(); row++) {
        fprintf(out, "%-40s", rows[row].row.name);
        for (int side = 0; side < CHAOS_SIDES; side++) {
            chaos_row_figure(comparison, row, (enum chaos_side)side, text, sizeof text, &above_0);
            fprintf(out, "%22s", text[0] == '\0' ? "-" : text);
        }
        fputs("\n", out);
    }
    for (int side = 0; side < CHAOS_SIDES; side++) {
        chaos_side_sentence(comparison, (enum chaos_side)side, text, sizeof text);
        fprintf(out, "%s: %s\n", chaos_side_title((enum chaos_side)side), text);
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
