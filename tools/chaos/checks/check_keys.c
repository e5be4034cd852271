/* OUTLIVED: no lease outlives the keys of its quorum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks/check_parts.h"

/*
 * A sweep of the auditor asks every node at some moment of its [from, to]. For a lease that is
 * relied on during all of it, a node's answer is
 *   FOR      it showed the token, for as long as was claimed at the sweep's begin
 *   NO_KEY   it showed no key
 *   OTHER    it showed another token
 *   SHORT    it showed the token, but the key is gone by to + pttl (+ 1 ms of rounding), before
 *            the time that was claimed at the sweep's begin
 *   SILENT   it did not answer
 * NO_KEY, OTHER and SHORT are against; a violation is where the others, if all were FOR, would be
 * no quorum.
 *
 * What is proven. No false alarm for a correct lock under Redlock's assumptions: the claim in force
 * at `from` was made after a quorum had granted it until later than its `until` (R1: by the drift
 * at least), an extension moves the keys before it is claimed and never shortens one, and a release
 * begins after the lease's end. So each node of that quorum has the key through all of [from, to]
 * and beyond `until`, wherever in the sweep it was asked: none of them is against, and n - against
 * is a quorum at least.
 * An alarm is right: a node that granted the lease before `from` and is
 * against has lost the key for good by `to` (a token is SET once), or will before `until`, so that
 * at `to` (or then) fewer than a quorum have it. One exception: a SET that reaches a node only
 * during the sweep, after it was asked, while others lose the key during the same sweep before they
 * are asked. Under Redlock's assumptions no node of the quorum loses it. SHORT trusts the node's
 * clock not to run slow: a node whose clock was set back, or slow, between the sweep and `until` is
 * not SHORT. What is missed: a loss that lasts for less than the time between two sweeps, or that
 * nodes which do not answer may hide.
 *
 * A lease that was found lost before its latest promise, by more than the ms that validity is
 * rounded down by, is a violation too, where no sweep has told so: the library says so where a
 * majority of nodes does (R3), and no node of the quorum may, by the same proof.
 *
 * With a guard on, a node that it keeps from voting is not against, whatever it shows: it forgot
 * keys, but until leases that may rest on these have ended it grants nobody anything that counts,
 * so that the lease still excludes others; if it does not, OVERLAP tells. Nor is a loss that the
 * owner saw early a violation then: a node whose clock has jumped makes the library give up the
 * lease at once.
 *
 * Violations of one lease with no sweep between them in which a quorum was FOR are one.
 */
#define ROUNDING_US INT64_C(1000)

enum opinion { FOR, NO_KEY, OTHER, SHORT, SILENT };

struct run {
    const struct chaos_sweep *first, *last; /* NULL while there is none */
    size_t sweeps;
    bool told; /* one has been added */
};

struct bench {
    struct chaos_case *c;
    const struct chaos_sweep **sweeps; /* by resource, then from_us */
    size_t *leases;                    /* indexes, by resource, then from_us */
    size_t *active;                    /* those that may be relied on at the sweep in hand */
    size_t active_count;
    struct run *runs; /* of each lease */
};

/* The last claim that was made by then. */
static const struct chaos_claim *claim_at(const struct chaos_lease *lease, int64_t at_us) {
    size_t low = 0, high = lease->claim_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lease->claims[middle].at_us <= at_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? NULL : &lease->claims[low - 1];
}

static bool clock_fell_behind(const struct chaos_case *c, size_t node, int64_t from_us, int64_t to_us) {
    for (size_t i = 0; i < c->history->band_count; i++) {
        const struct chaos_band *band = &c->history->bands[i];
        bool back = (band->fault.kind == CHAOS_FAULT_CLOCK_JUMP || band->fault.kind == CHAOS_FAULT_CLOCK_SKEW) &&
                    band->fault.amount < 0 && (band->fault.nodes >> node & 1) != 0;
        if (back && band->from_us <= to_us && (band->to_us == CHAOS_NEVER_US || band->to_us >= from_us)) {
            return true;
        }
    }
    return false;
}

/* Whether it says that the lease's key may be another's now. */
static bool is_against(const struct chaos_case *c, enum opinion opinion, const struct chaos_sweep *sweep, size_t node) {
    return (opinion == NO_KEY || opinion == OTHER || opinion == SHORT) &&
           !chaos_kept_out(c->history, node, sweep->from_us, sweep->to_us);
}

static enum opinion opinion_of(const struct chaos_case *c, const struct chaos_lease *lease,
                               const struct chaos_sweep *sweep, size_t node) {
    const struct chaos_sight *sight = &sweep->nodes[node];
    if (!sight->answered) {
        return SILENT;
    }
    if (sight->token[0] == '\0') {
        return NO_KEY;
    }
    if (strcmp(sight->token, lease->token) != 0) {
        return OTHER;
    }
    const struct chaos_claim *claim = claim_at(lease, sweep->from_us);
    if (sight->pttl_ms == -1 || claim == NULL || claim->until_us <= sweep->to_us) {
        return FOR;
    }
    /* to + pttl * 1000 + 1000 < until, without a number that may be too large */
    bool too_short = sight->pttl_ms < (claim->until_us - sweep->to_us - 1) / 1000;
    return too_short && !clock_fell_behind(c, node, sweep->from_us, claim->until_us) ? SHORT : FOR;
}

static void describe(char *text, size_t size, enum opinion opinion, size_t node, int64_t pttl_ms) {
    switch (opinion) {
    case FOR:
        snprintf(text, size, "node %zu has it", node + 1);
        return;
    case NO_KEY:
        snprintf(text, size, "node %zu no key", node + 1);
        return;
    case OTHER:
        snprintf(text, size, "node %zu another's token", node + 1);
        return;
    case SHORT:
        snprintf(text, size, "node %zu has it for %lld ms more only", node + 1, (long long)pttl_ms);
        return;
    case SILENT:
        snprintf(text, size, "node %zu did not answer", node + 1);
        return;
    }
}

static bool add(struct bench *bench, size_t index) {
    struct chaos_case *c = bench->c;
    const struct chaos_history *history = c->history;
    const struct chaos_lease *lease = &history->leases[index];
    const struct run *run = &bench->runs[index];
    char nodes[CHAOS_NODES_MAX * 64] = "";
    size_t length = 0, against = 0;
    for (size_t n = 0; n < history->node_count; n++) {
        enum opinion opinion = opinion_of(c, lease, run->first, n);
        char text[64];
        describe(text, sizeof text, opinion, n, run->first->nodes[n].pttl_ms);
        against += is_against(c, opinion, run->first, n);
        length += (size_t)snprintf(nodes + length, sizeof nodes - length, "%s%s", n == 0 ? "" : ", ", text);
    }
    const struct chaos_claim *claim = claim_at(lease, run->first->from_us);
    struct chaos_violation violation = chaos_violation_of(CHAOS_VIOLATION_OUTLIVED, run->first->from_us,
                                                          run->last->to_us, lease->resource, lease->client, -1);
    bool worked = chaos_case_add(
        c, violation,
        "client %d (token %s) relied on it until %.3f s, but from %.3f s to %.3f s (%zu sweep%s) at most "
        "%zu of %zu nodes had it for so long, and a quorum is %zu; at first: %s",
        lease->client + 1, lease->token, chaos_at(c, claim == NULL ? lease->until_us : claim->until_us),
        chaos_at(c, run->first->from_us), chaos_at(c, run->last->to_us), run->sweeps, run->sweeps == 1 ? "" : "s",
        history->node_count - against, history->node_count, chaos_quorum(history), nodes);
    bench->runs[index] = (struct run){.told = true};
    return worked;
}

static bool any_kept_out(const struct chaos_case *c, int64_t at_us) {
    for (size_t n = 0; n < c->history->node_count; n++) {
        if (chaos_kept_out(c->history, n, at_us, at_us)) {
            return true;
        }
    }
    return false;
}

/* For leases of which no sweep has told it. */
static bool judge_loss(struct bench *bench, size_t index) {
    struct chaos_case *c = bench->c;
    const struct chaos_history *history = c->history;
    const struct chaos_lease *lease = &history->leases[index];
    bool early = lease->ended_us != CHAOS_NEVER_US && !lease->released &&
                 chaos_plus(lease->ended_us, ROUNDING_US) < lease->until_us;
    if (!early || bench->runs[index].told || any_kept_out(c, lease->ended_us)) {
        return true;
    }
    struct chaos_violation violation = chaos_violation_of(CHAOS_VIOLATION_OUTLIVED, lease->ended_us, lease->until_us,
                                                          lease->resource, lease->client, -1);
    return chaos_case_add(
        c, violation,
        "client %d (token %s) had been promised it until %.3f s, but found it lost at %.3f s, though it "
        "had not released it",
        lease->client + 1, lease->token, chaos_at(c, lease->until_us), chaos_at(c, lease->ended_us));
}

static bool judge(struct bench *bench, const struct chaos_sweep *sweep, size_t index) {
    const struct chaos_history *history = bench->c->history;
    size_t against = 0, silent = 0;
    for (size_t n = 0; n < history->node_count; n++) {
        enum opinion opinion = opinion_of(bench->c, &history->leases[index], sweep, n);
        silent += opinion == SILENT;
        against += is_against(bench->c, opinion, sweep, n);
    }
    struct run *run = &bench->runs[index];
    if (history->node_count - against < chaos_quorum(history)) {
        run->first = run->first == NULL ? sweep : run->first;
        run->last = sweep;
        run->sweeps++;
        return true;
    }
    bool well = history->node_count - against - silent >= chaos_quorum(history);
    return !well || run->first == NULL || add(bench, index);
}

/* The sweeps and leases of one resource, each from begin to end. */
static bool judge_resource(struct bench *bench, const size_t sweeps[2], const size_t leases[2]) {
    const struct chaos_case *c = bench->c;
    size_t next = leases[0];
    bench->active_count = 0;
    for (size_t i = sweeps[0]; i < sweeps[1]; i++) {
        const struct chaos_sweep *sweep = bench->sweeps[i];
        while (next < leases[1] && c->history->leases[bench->leases[next]].from_us <= sweep->from_us) {
            bench->active[bench->active_count++] = bench->leases[next++];
        }
        size_t kept = 0;
        for (size_t a = 0; a < bench->active_count; a++) {
            size_t index = bench->active[a];
            if (c->relied_until_us[index] <= sweep->from_us) {
                continue;
            }
            bench->active[kept++] = index;
            if (c->relied_until_us[index] > sweep->to_us && !judge(bench, sweep, index)) {
                return false;
            }
        }
        bench->active_count = kept;
    }
    return true;
}

/* Both lists are by time already: counting them by resource keeps that order. begins has one more
 * for the end. */
static void group(struct bench *bench, size_t *sweep_begins, size_t *lease_begins) {
    const struct chaos_history *history = bench->c->history;
    size_t sweeps = 0, leases = 0;
    for (size_t r = 0; r < history->resource_count; r++) {
        sweep_begins[r] = sweeps;
        lease_begins[r] = leases;
        for (size_t i = 0; i < history->sweep_count; i++) {
            if (history->sweeps[i].resource == (int)r) {
                bench->sweeps[sweeps++] = &history->sweeps[i];
            }
        }
        for (size_t i = 0; i < history->lease_count; i++) {
            if (history->leases[i].resource == (int)r) {
                bench->leases[leases++] = i;
            }
        }
    }
    sweep_begins[history->resource_count] = sweeps;
    lease_begins[history->resource_count] = leases;
}

bool chaos_check_keys(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    struct bench bench = {.c = c};
    size_t *begins = malloc(2 * (history->resource_count + 1) * sizeof *begins);
    bench.sweeps = malloc((history->sweep_count + 1) * sizeof *bench.sweeps);
    bench.leases = malloc((history->lease_count + 1) * sizeof *bench.leases);
    bench.active = malloc((history->lease_count + 1) * sizeof *bench.active);
    bench.runs = calloc(history->lease_count + 1, sizeof *bench.runs);
    bool worked =
        begins != NULL && bench.sweeps != NULL && bench.leases != NULL && bench.active != NULL && bench.runs != NULL;
    if (worked) {
        size_t *lease_begins = begins + history->resource_count + 1;
        group(&bench, begins, lease_begins);
        for (size_t r = 0; worked && r < history->resource_count; r++) {
            worked = judge_resource(&bench, &begins[r], &lease_begins[r]);
        }
        for (size_t i = 0; worked && i < history->lease_count; i++) {
            worked = (bench.runs[i].first == NULL || add(&bench, i)) && judge_loss(&bench, i);
        }
    }
    free(begins);
    free(bench.sweeps);
    free(bench.leases);
    free(bench.active);
    free(bench.runs);
    return worked;
}
