/* OUTLIVED: no lease outlives the keys of its quorum. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks/check_parts.h"
#include "values/values.h"

/*
 * A sweep of the auditor asks every node at some moment of its [from, to]. For a lease that is
 * relied on during all of it, a node's answer is
 *   FOR      it showed the token, alone or among those who read, for as long as was claimed at the
 *            sweep's begin
 *   NO_KEY   it showed no key
 *   OTHER    it showed another token, or others only
 *   SHORT    it showed the token, but the key, or the reader's entry, is gone by to + pttl (+ 1 ms
 *            of rounding), before the time that was claimed at the sweep's begin
 *   SILENT   it did not answer
 * NO_KEY, OTHER and SHORT are against; a violation is where the others, if all were FOR, would be
 * no quorum.
 *
 * A lease that was found lost before its latest promise, by more than the ms that validity is
 * rounded down by, is a violation too, where no sweep has told so: the library says so where a
 * majority of nodes does (R3), and no node of the quorum may, by the same proof.
 *
 * A node that a guard keeps from voting is not against, and a node that the client does not ask is
 * not counted. What is proven: tools/chaos/README.md.
 *
 * Violations of one lease with no sweep between them in which a quorum was FOR are one.
 */
#define ROUNDING_US INT64_C(1000)

enum opinion { FOR, NO_KEY, OTHER, SHORT, SILENT };

/* Sweeps in which a lease had no quorum, with none between them in which a quorum was FOR. */
struct run {
    const struct chaos_sweep *first, *last; /* NULL while there is none */
    size_t sweeps;
};

/* The last claim that was made by then. */
static const struct chaos_claim *claim_at(const struct chaos_lease *lease, int64_t at_us) {
    struct chaos_claim later = {.at_us = chaos_plus(at_us, 1)};
    size_t count = chaos_count_before(lease->claims, lease->claim_count, sizeof later, &later, tool_number_order);
    return count == 0 ? NULL : &lease->claims[count - 1];
}

static bool clock_fell_behind(const struct chaos_case *c, size_t node, int64_t from_us, int64_t to_us) {
    CHAOS_EACH(const struct chaos_band, band, c->history->bands, c->history->band_count) {
        bool back =
            chaos_fault_is_of_clock(band->fault.kind) && band->fault.amount < 0 && chaos_hits_node(&band->fault, node);
        if (back && band->from_us <= to_us && chaos_over(band->to_us, INT64_MAX) >= from_us) {
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

/* For how long the node has the token; -1: for ever; NULL: it has not. */
static const int64_t *time_left(const struct chaos_sight *sight, const char *token) {
    CHAOS_EACH(const struct chaos_reader, reader, sight->readers, sight->reader_count) {
        if (strcmp(reader->token, token) == 0) {
            return &reader->left_ms;
        }
    }
    return strcmp(sight->token, token) == 0 ? &sight->pttl_ms : NULL;
}

static enum opinion opinion_of(const struct chaos_case *c, const struct chaos_lease *lease,
                               const struct chaos_sweep *sweep, size_t node) {
    const struct chaos_sight *sight = &sweep->nodes[node];
    if (!sight->answered) {
        return SILENT;
    }
    const int64_t *left_ms = time_left(sight, lease->token);
    if (left_ms == NULL) {
        return sight->token[0] == '\0' && sight->reader_count == 0 ? NO_KEY : OTHER;
    }
    const struct chaos_claim *claim = claim_at(lease, sweep->from_us);
    if (*left_ms == -1 || claim == NULL || claim->until_us <= sweep->to_us) {
        return FOR;
    }
    /* to + pttl * 1000 + 1000 < until, without a number that may be too large */
    bool too_short = *left_ms < (claim->until_us - sweep->to_us - 1) / 1000;
    return too_short && !clock_fell_behind(c, node, sweep->from_us, claim->until_us) ? SHORT : FOR;
}

/* As enum opinion has them. */
static const char *const opinions[] = {"has it", "no key", "another's token", "has it for", "did not answer"};

static void add_run(struct chaos_case *c, const struct chaos_lease *lease, const struct run *run) {
    const struct chaos_history *history = c->history;
    const struct chaos_setup setup = chaos_case_setup(c, lease->client, lease->from_us);
    char nodes[CHAOS_NODES_MAX * 64] = "";
    size_t against = 0;
    for (size_t n = 0; n < history->node_count; n++) {
        if ((setup.nodes >> n & 1) == 0) {
            continue;
        }
        enum opinion opinion = opinion_of(c, lease, run->first, n);
        against += is_against(c, opinion, run->first, n);
        tool_append(nodes, sizeof nodes, "%snode %zu %s", nodes[0] == '\0' ? "" : ", ", n + 1, opinions[opinion]);
        if (opinion == SHORT) {
            tool_append(nodes, sizeof nodes, " %" PRId64 " ms more only",
                        *time_left(&run->first->nodes[n], lease->token));
        }
    }
    const struct chaos_claim *claim = claim_at(lease, run->first->from_us);
    chaos_case_add(c, CHAOS_WRONG(OUTLIVED, run->first->from_us, run->last->to_us, lease->resource, lease->client, -1),
                   "client %d (token %s) relied on it until %.3f s, but from %.3f s to %.3f s (%zu sweep%s) at most "
                   "%zu of %zu nodes had it for so long, and a quorum is %zu; at first: %s",
                   lease->client + 1, lease->token, chaos_at(c, claim == NULL ? lease->until_us : claim->until_us),
                   chaos_at(c, run->first->from_us), chaos_at(c, run->last->to_us), run->sweeps,
                   run->sweeps == 1 ? "" : "s", chaos_count_bits(setup.nodes) - against, chaos_count_bits(setup.nodes),
                   setup.quorum, nodes);
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
static void judge_loss(struct chaos_case *c, const struct chaos_lease *lease) {
    bool early = lease->ended_us != CHAOS_NEVER_US && !lease->released &&
                 chaos_plus(lease->ended_us, ROUNDING_US) < lease->until_us;
    if (!early || any_kept_out(c, lease->ended_us)) {
        return;
    }
    chaos_case_add(c, CHAOS_WRONG(OUTLIVED, lease->ended_us, lease->until_us, lease->resource, lease->client, -1),
                   "client %d (token %s) had been promised it until %.3f s, but found it lost at %.3f s, though it "
                   "had not released it",
                   lease->client + 1, lease->token, chaos_at(c, lease->until_us), chaos_at(c, lease->ended_us));
}

CHAOS_ORDER_OF(compare_sweeps, chaos_sweep, chaos_order_by(x->resource, y->resource, x->from_us, y->from_us))

static void judge_lease(struct chaos_case *c, const struct chaos_lease *lease, int64_t until_us,
                        const struct chaos_sweep *const *sweeps) {
    const struct chaos_sweep *sought = &(struct chaos_sweep){.resource = lease->resource, .from_us = lease->from_us};
    const struct chaos_setup setup = chaos_case_setup(c, lease->client, lease->from_us);
    size_t count = c->history->sweep_count;
    struct run run = {0};
    bool told = false;
    for (size_t i = chaos_count_before(sweeps, count, sizeof sought, &sought, compare_sweeps);
         i < count && sweeps[i]->resource == lease->resource && sweeps[i]->from_us < until_us; i++) {
        size_t backing = 0, silent = 0;
        if (sweeps[i]->to_us >= until_us) {
            continue;
        }
        for (size_t n = 0; n < c->history->node_count; n++) {
            const bool asked = (setup.nodes >> n & 1) != 0;
            enum opinion opinion = opinion_of(c, lease, sweeps[i], n);
            silent += asked && opinion == SILENT;
            backing += asked && !is_against(c, opinion, sweeps[i], n);
        }
        if (backing < setup.quorum) {
            run = (struct run){run.first == NULL ? sweeps[i] : run.first, sweeps[i], run.sweeps + 1};
            told = true;
        } else if (run.first != NULL && backing - silent >= setup.quorum) {
            add_run(c, lease, &run);
            run = (struct run){0};
        }
    }
    if (run.first != NULL) {
        add_run(c, lease, &run);
    }
    if (!told) {
        judge_loss(c, lease);
    }
}

void chaos_check_keys(struct chaos_case *c) {
    const struct chaos_history *h = c->history;
    const struct chaos_sweep **sweeps = chaos_sorted(h->sweeps, h->sweep_count, sizeof *h->sweeps, compare_sweeps);
    for (size_t i = 0; i < h->lease_count; i++) {
        judge_lease(c, &h->leases[i], c->relied_until_us[i], sweeps);
    }
    free(sweeps);
}
