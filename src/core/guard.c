/* Quarantines, as in the table of core/guard.h. */
#include "core/guard.h"

#include <assert.h>
#include <string.h>

#include "core/number.h"
#include "core/planted.h"
#include "core/time.h"

#define NS_PER_S       INT64_C(1000000000)
#define CLOCK_APART_NS NS_PER_S       /* two clocks agree if they are this close */
#define CLOCK_FRESH_NS (3 * NS_PER_S) /* older readings are not compared */
/* three years; more makes no difference and might not fit */
#define UPTIME_S_MAX INT64_C(100000000)

static int64_t end_of_quarantine_ns(const struct redlock_guard *guard, int64_t now_ns) {
    const int64_t ttl_max_ms = guard->plan.ttl_max_ms;
    return redlock_after_ms(now_ns, REDLOCK_PLANTED(QUARANTINE_SHORT) ? ttl_max_ms / 4
                                                                      : ttl_max_ms + redlock_drift_ms(ttl_max_ms));
}

static void quarantine_for_clock(struct redlock_guard *guard, unsigned node, enum redlock_guard_reason reason,
                                 int64_t step_ns, int64_t now_ns) {
    assert(node < guard->plan.node_count && reason >= REDLOCK_GUARD_CLOCK_STEP);
    struct redlock_guard_node *known = &guard->nodes[node];
    known->clock_until_ns = end_of_quarantine_ns(guard, now_ns);
    known->clock_reason = reason;
    known->step_ns = step_ns;
    guard->suspects |= REDLOCK_NODE(node);
}

/* Fewer than a quorum of clocks are wrong at any one time. So compare only readings of about the
 * same time. */
static bool is_fresh(const struct redlock_clock *clock, int64_t now_ns) {
    return clock->known && now_ns - clock->at_ns <= CLOCK_FRESH_NS;
}

/* How far the node's clock may be ahead of a quorum of nodes, itself included, or apart from them:
 * the quorum-th smallest of all differences. One clock of that quorum is right. False if fewer
 * clocks were read recently. */
static bool off_quorum_ns(const struct redlock_guard *guard, unsigned node, bool behind_too, int64_t now_ns,
                          int64_t *off_ns) {
    const struct redlock_clock *clock = &guard->nodes[node].clock;
    const unsigned quorum = guard->plan.quorum;
    int64_t smallest_ns[REDLOCK_NODES_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < guard->plan.node_count; i++) {
        const struct redlock_clock *other = &guard->nodes[i].clock;
        if (!is_fresh(other, now_ns)) {
            continue;
        }
        const int64_t ahead_ns = redlock_clock_difference_ns(clock->offset_ns, other->offset_ns);
        const int64_t by_ns = behind_too && ahead_ns < 0 ? -ahead_ns : ahead_ns;
        const int64_t most_ns =
            i == node ? 0 : redlock_clock_difference_ns(by_ns, -(clock->error_ns + other->error_ns));
        redlock_number_insert(smallest_ns, count++, most_ns);
    }
    if (count < quorum) {
        return false;
    }
    *off_ns = smallest_ns[REDLOCK_PLANTED(CLOCK_MEDIAN) ? (count - 1) / 2 : quorum - 1];
    return true;
}

/* How long the node's current run has lasted at least. Uses the uptime from its greeting, if other
 * clocks confirm its clock. One clock never does, even if one node is a quorum. */
static int64_t surely_up_ns(const struct redlock_guard *guard, unsigned node, int64_t now_ns) {
    const struct redlock_guard_node *known = &guard->nodes[node];
    int64_t off_ns;
    assert(now_ns >= known->greeted_ns && now_ns >= known->run_after_ns);
    if (known->uptime_s < 2 || known->uptime_stepped || guard->plan.quorum < 2) {
        return 0;
    }
    if (!is_fresh(&known->clock, now_ns) || !off_quorum_ns(guard, node, true, now_ns, &off_ns) ||
        off_ns > CLOCK_APART_NS) {
        return 0;
    }
    const int64_t whole_s = (known->uptime_s < UPTIME_S_MAX ? known->uptime_s : UPTIME_S_MAX) - 1;
    assert(whole_s * NS_PER_S >= off_ns);
    const int64_t up_ns = redlock_after_ns(whole_s * NS_PER_S - off_ns, now_ns - known->greeted_ns);
    const int64_t at_most_ns = now_ns - known->run_after_ns;
    return known->run_follows && at_most_ns < up_ns ? at_most_ns : up_ns;
}

/* Ends the quarantine of each node that has surely been up for longer than ttl_max and its drift.
 * Call it when more clocks are known. */
static void review_uptimes(struct redlock_guard *guard, int64_t now_ns) {
    const int64_t proof_ns = (guard->plan.ttl_max_ms + redlock_drift_ms(guard->plan.ttl_max_ms)) * REDLOCK_NS_PER_MS;
    for (unsigned i = 0; i < guard->plan.node_count; i++) {
        if (surely_up_ns(guard, i, now_ns) > proof_ns) {
            guard->nodes[i].run_until_ns = 0;
        }
    }
}

/* Compares an unconfirmed clock with the others. Returns true if it is newly found to be ahead. */
static bool compare_clock(struct redlock_guard *guard, unsigned node, int64_t now_ns) {
    assert((guard->unjudged & REDLOCK_NODE(node)) != 0);
    struct redlock_guard_node *known = &guard->nodes[node];
    int64_t ahead_ns;
    if (now_ns >= known->clock_until_ns) {
        guard->unjudged &= ~REDLOCK_NODE(node); /* any loss from before its first reading is over */
        return false;
    }
    if (!is_fresh(&known->clock, now_ns) || !off_quorum_ns(guard, node, false, now_ns, &ahead_ns)) {
        return false;
    }
    if (ahead_ns <= CLOCK_APART_NS) {
        guard->unjudged &= ~REDLOCK_NODE(node);
        known->clock_until_ns = 0;
        return false;
    }
    const bool is_new = known->clock_reason != REDLOCK_GUARD_CLOCK_AHEAD;
    known->clock_reason = REDLOCK_GUARD_CLOCK_AHEAD;
    known->step_ns = ahead_ns;
    return is_new;
}

/* Reviews every node when more is known. Returns the nodes whose clock is newly found to be
 * ahead. */
static redlock_nodes review(struct redlock_guard *guard, int64_t now_ns) {
    redlock_nodes ahead = 0;
    review_uptimes(guard, now_ns);
    for (unsigned i = 0; i < guard->plan.node_count; i++) {
        if ((guard->unjudged & REDLOCK_NODE(i)) != 0 && compare_clock(guard, i, now_ns)) {
            ahead |= REDLOCK_NODE(i);
        }
    }
    return ahead;
}

/* Nobody knows whether a clock that is new to us has jumped. So its node is in quarantine until the
 * clock is confirmed. */
static void quarantine_unconfirmed(struct redlock_guard *guard, unsigned node, int64_t now_ns) {
    if (guard->plan.clock) {
        quarantine_for_clock(guard, node, REDLOCK_GUARD_CLOCK_UNCONFIRMED, 0, now_ns);
        guard->unjudged |= REDLOCK_NODE(node);
    }
}

/* After a step, no comparison confirms the clock any more: it is not the clock that we first
 * read. */
static enum redlock_clock_verdict read_clock(struct redlock_guard *guard, unsigned node,
                                             const struct redlock_clock_sample *sample, int64_t *step_ns) {
    struct redlock_guard_node *known = &guard->nodes[node];
    const enum redlock_clock_verdict verdict = redlock_clock_judge(&known->clock, sample, step_ns);
    if (verdict != REDLOCK_CLOCK_STEADY) {
        guard->unjudged &= ~REDLOCK_NODE(node);
    }
    return verdict;
}

/* An empty run_id is never the same run. */
static bool is_same_run(const struct redlock_guard_node *known, const char *run_id) {
    return run_id[0] != '\0' && strcmp(known->run_id, run_id) == 0;
}

/* first_boot says that no node has a history. That is true only for the first ttl_max. A node that
 * we meet later may have one. */
static bool is_first_boot(const struct redlock_guard *guard, int64_t now_ns) {
    return guard->plan.first_boot && now_ns < redlock_after_ms(guard->plan.start_ns, guard->plan.ttl_max_ms);
}

/* Whether an earlier run of the node may have given votes that this run has forgotten. */
static bool may_have_forgotten(const struct redlock_guard *guard, const struct redlock_guard_node *known,
                               int64_t now_ns) {
    switch (guard->plan.restart) {
    case REDLOCK_RESTART_GUARD_OBSERVED:
        return known->greeted;
    case REDLOCK_RESTART_GUARD_STRICT:
        return known->greeted || !is_first_boot(guard, now_ns);
    case REDLOCK_RESTART_GUARD_OFF:
        break;
    }
    return false;
}

static void quarantine_for_run(struct redlock_guard *guard, unsigned node, int64_t now_ns) {
    assert(guard->plan.restart != REDLOCK_RESTART_GUARD_OFF);
    struct redlock_guard_node *known = &guard->nodes[node];
    known->run_until_ns = end_of_quarantine_ns(guard, now_ns);
    known->run_reason = known->greeted ? REDLOCK_GUARD_RESTARTED : REDLOCK_GUARD_UNKNOWN;
    guard->suspects |= REDLOCK_NODE(node);
}

static void trust_uptime(const struct redlock_guard *guard, struct redlock_guard_node *known, int64_t uptime_s,
                         int64_t now_ns) {
    if (REDLOCK_PLANTED(QUARANTINE_BY_UPTIME) && known->run_until_ns != 0) {
        const int64_t capped_s = uptime_s < 0 ? 0 : uptime_s < UPTIME_S_MAX ? uptime_s : UPTIME_S_MAX;
        const int64_t left_ms = guard->plan.ttl_max_ms - capped_s * 1000;
        known->run_until_ns = left_ms > 0 ? redlock_after_ms(now_ns, left_ms) : 0;
    }
}

static void remember(struct redlock_guard_node *known, const struct redlock_greeting *greeting, int64_t now_ns) {
    if (!is_same_run(known, greeting->run_id)) {
        const size_t size = strlen(greeting->run_id);
        known->uptime_stepped = false;
        known->run_follows = known->greeted;
        known->run_after_ns = known->seen_ns;
        if (size < sizeof known->run_id) {
            memcpy(known->run_id, greeting->run_id, size + 1);
        } else {
            known->run_id[0] = '\0'; /* no server has such a long run_id */
        }
    }
    known->greeted = true;
    known->uptime_s = redlock_clock_has_time(&greeting->clock) ? greeting->uptime_s : -1;
    known->greeted_ns = known->seen_ns = now_ns;
}

void redlock_guard_init(struct redlock_guard *guard, const struct redlock_guard_plan *plan) {
    assert(plan->node_count >= 1 && plan->node_count <= REDLOCK_NODES_MAX);
    assert(plan->quorum >= 1 && plan->quorum <= plan->node_count && plan->ttl_max_ms > 0);
    *guard = (struct redlock_guard){.plan = *plan};
}

redlock_nodes redlock_guard_greet(struct redlock_guard *guard, unsigned node, const struct redlock_greeting *greeting,
                                  int64_t now_ns, bool *jumped) {
    assert(node < guard->plan.node_count);
    struct redlock_guard_node *known = &guard->nodes[node];
    int64_t step_ns;
    if (!known->greeted || (!known->clock.known && redlock_clock_has_time(&greeting->clock))) {
        quarantine_unconfirmed(guard, node, now_ns);
    }
    const enum redlock_clock_verdict verdict = read_clock(guard, node, &greeting->clock, &step_ns);
    *jumped = guard->plan.clock && verdict == REDLOCK_CLOCK_FORWARD;
    if (*jumped) {
        quarantine_for_clock(guard, node, REDLOCK_GUARD_CLOCK_STEP, step_ns, now_ns);
    }
    const bool another = !is_same_run(known, greeting->run_id) && may_have_forgotten(guard, known, now_ns);
    if (another) {
        quarantine_for_run(guard, node, now_ns);
    }
    remember(known, greeting, now_ns);
    known->uptime_stepped = known->uptime_stepped || verdict == REDLOCK_CLOCK_FORWARD;
    trust_uptime(guard, known, greeting->uptime_s, now_ns);
    guard->ahead = review(guard, now_ns);
    return guard->ahead | (*jumped || (another && known->run_until_ns > now_ns) ? REDLOCK_NODE(node) : 0);
}

enum redlock_clock_verdict redlock_guard_sample(struct redlock_guard *guard, unsigned node,
                                                const struct redlock_clock_sample *sample, int64_t now_ns,
                                                int64_t *step_ns) {
    assert(node < guard->plan.node_count);
    struct redlock_guard_node *known = &guard->nodes[node];
    int64_t moved_ns = 0;
    enum redlock_clock_verdict verdict = REDLOCK_CLOCK_STEADY;
    guard->ahead = 0;
    if (guard->plan.clock && redlock_clock_has_time(sample)) {
        if (!known->clock.known) {
            quarantine_unconfirmed(guard, node, now_ns);
        }
        verdict = read_clock(guard, node, sample, &moved_ns);
        known->seen_ns = now_ns;
        if (verdict == REDLOCK_CLOCK_FORWARD) {
            known->uptime_stepped = true;
            quarantine_for_clock(guard, node, REDLOCK_GUARD_CLOCK_STEP, moved_ns, now_ns);
        }
        if (verdict != REDLOCK_CLOCK_STEADY) {
            known->uptime_s = -1; /* the uptime was computed with the clock before the step */
        }
        if (guard->unjudged != 0) {
            guard->ahead = review(guard, now_ns);
        }
    }
    if (step_ns) {
        *step_ns = moved_ns;
    }
    return verdict;
}

void redlock_guard_seen(struct redlock_guard *guard, unsigned node, int64_t at_ns) {
    assert(node < guard->plan.node_count);
    struct redlock_guard_node *known = &guard->nodes[node];
    if (at_ns > known->seen_ns) {
        known->seen_ns = at_ns;
    }
}

redlock_nodes redlock_guard_may_not_vote(const struct redlock_guard *guard, int64_t now_ns) {
    redlock_nodes may_not_vote = 0;
    for (unsigned i = 0; guard->suspects >> i != 0; i++) {
        if (redlock_guard_until_ns(guard, i, now_ns) != 0) {
            may_not_vote |= REDLOCK_NODE(i);
        }
    }
    return may_not_vote;
}

redlock_nodes redlock_guard_may_not_vote_by_clock(const struct redlock_guard *guard, int64_t now_ns) {
    redlock_nodes may_not_vote = 0;
    for (unsigned i = 0; guard->suspects >> i != 0; i++) {
        const struct redlock_guard_node *known = &guard->nodes[i];
        if (known->clock_until_ns > now_ns && known->clock_reason != REDLOCK_GUARD_CLOCK_UNCONFIRMED) {
            may_not_vote |= REDLOCK_NODE(i);
        }
    }
    return may_not_vote;
}

int64_t redlock_guard_until_ns(const struct redlock_guard *guard, unsigned node, int64_t now_ns) {
    const struct redlock_guard_node *known = &guard->nodes[node];
    const int64_t until_ns = known->run_until_ns > known->clock_until_ns ? known->run_until_ns : known->clock_until_ns;
    return until_ns > now_ns ? until_ns : 0;
}

enum redlock_guard_reason redlock_guard_why(const struct redlock_guard *guard, unsigned node, int64_t now_ns) {
    assert(node < guard->plan.node_count);
    const struct redlock_guard_node *known = &guard->nodes[node];
    if (redlock_guard_until_ns(guard, node, now_ns) == 0) {
        return REDLOCK_GUARD_NONE;
    }
    return known->run_until_ns >= known->clock_until_ns ? known->run_reason : known->clock_reason;
}
