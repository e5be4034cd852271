/* The life of one lock, from the first attempt to the last release: a state machine fed with events that
 * carry the time. The table of its states is in core/lease_state.h. */
#ifndef REDLOCK_CORE_LEASE_H
#define REDLOCK_CORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/extension.h"
#include "core/lease_state.h"

void redlock_lease_init(struct redlock_lease_core *lease, unsigned node_count, unsigned quorum, uint32_t jitter_seed);
void redlock_lease_step(struct redlock_lease_core *lease, const struct redlock_event *event,
                        struct redlock_actions *actions);

/*
 * Counts a vote on the current round that cannot decide anything, and returns true; any other is left to a VOTE event. Most
 * are of this kind: GRANTED, of a round that is not lost, and not the one that makes the quorum.
 */
static inline bool redlock_lease_count_only(struct redlock_lease_core *lease, unsigned node, redlock_vote_kind vote) {
    struct redlock_round *votes = &lease->votes;
    const redlock_nodes pending = redlock_round_pending(votes);
    if (vote != REDLOCK_VOTE_GRANTED || redlock_round_lacks_one(votes) ||
        redlock_nodes_count(votes->granted | pending) < votes->quorum) {
        return false;
    }
    votes->granted |= REDLOCK_NODE(node) & pending;
    return true;
}

/* Whether the votes of the current round are still waited for. */
static inline bool redlock_lease_round_is_open(const struct redlock_lease_core *lease) {
    return lease->state == REDLOCK_LEASE_ACQUIRING || lease->state == REDLOCK_LEASE_FENCING ||
           lease->state == REDLOCK_LEASE_EXTENDING || lease->state == REDLOCK_LEASE_RELEASING;
}

/* When a TIMER event is due next; REDLOCK_NEVER_NS for never. */
int64_t redlock_lease_next_ns(const struct redlock_lease_core *lease);

/* Of a lease that is or was held: no automatic renewal comes any more, because of auto_extend_max_ms. */
bool redlock_lease_is_capped(const struct redlock_lease_core *lease);

/* The nodes that have not confirmed the release that this lease asked for. */
static inline redlock_nodes redlock_lease_owing(const struct redlock_lease_core *lease) {
    const struct redlock_round *votes = &lease->votes;
    return lease->operation == REDLOCK_OP_RELEASE ? votes->asked & ~(votes->granted | votes->denied) : 0;
}

/*
 * Whether the GRANTED of this node counts in the current round, where guards keep these nodes from voting, and some of them
 * because of their clock. A node that was asked for the lock and has come under a guard since does not count: what it set is
 * to be released. Nor does it count for an extension where a key that was set after a jump of its clock may stand in the
 * place of one that ended too early.
 */
bool redlock_lease_counts_under_guards(const struct redlock_lease_core *lease, unsigned node,
                                       redlock_nodes may_not_vote, redlock_nodes may_not_vote_by_clock);

/* How long a key lives that the current round sets: the lock delay longer than the lease. */
static inline int64_t redlock_lease_key_ttl_ms(const struct redlock_lease_core *lease) {
    return (int64_t)lease->round_ttl_ms + lease->plan.lock_delay_ms;
}

/* The deadline as the owner may rely on it; 0 where nothing is held. */
int64_t redlock_lease_held_until_ns(const struct redlock_lease_core *lease);

#endif
