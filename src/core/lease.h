/* The life of one lock, from the first attempt to the release: a state machine whose events carry
 * the time. The table of its states is in core/lease_state.h. */
#ifndef REDLOCK_CORE_LEASE_H
#define REDLOCK_CORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/held.h"
#include "core/lease_state.h"

/* Its memory is all zero. */
void redlock_lease_init(struct redlock_lease_core *lease, unsigned node_count, unsigned quorum, uint32_t jitter_seed);
/* Lets it wait in a queue. The memory, with a node entry for each node, is borrowed and zero. */
void redlock_lease_may_queue(struct redlock_lease_core *lease, struct redlock_grants *grants);
void redlock_lease_step(struct redlock_lease_core *lease, const struct redlock_event *event,
                        struct redlock_actions *actions);

/*
 * Counts a vote of the current round if it cannot decide anything, and returns true. The caller
 * makes a VOTE event of any other vote. Most votes only need counting: GRANTED, in a round that is
 * not lost, and not the vote that makes the quorum.
 */
static inline bool redlock_lease_count_only(struct redlock_lease_core *lease, unsigned node, redlock_vote_kind vote) {
    struct redlock_round *votes = &lease->votes;
    const redlock_nodes lost = votes->denied | votes->failed | votes->unknown;
    if (vote != REDLOCK_VOTE_GRANTED || redlock_round_lacks_one(votes) ||
        (lost != 0 && redlock_nodes_count(votes->asked & ~lost) < votes->quorum)) {
        return false;
    }
    redlock_round_grant(votes, REDLOCK_NODE(node));
    return true;
}

/* When the next TIMER event is due; REDLOCK_NEVER_NS for never. */
int64_t redlock_lease_next_ns(const struct redlock_lease_core *lease);

/* Whether auto_extend_max_ms has ended the renewals of a lease that is or was held. */
bool redlock_lease_is_capped(const struct redlock_lease_core *lease);

/* The nodes that have not confirmed the release of this lease. */
static inline redlock_nodes redlock_lease_owing(const struct redlock_lease_core *lease) {
    const struct redlock_round *votes = &lease->votes;
    return lease->operation == REDLOCK_OP_RELEASE ? votes->asked & ~(votes->granted | votes->denied) : 0;
}

/*
 * Whether a GRANTED of this node counts in the current round, if guards keep these nodes from
 * voting. In an acquire, a node does not count once it is in quarantine, even if we asked it
 * before: its key must be released. In an extension, a node does not count if its clock jumped and
 * it does not back the lease: its key may replace one that ended too early.
 */
bool redlock_lease_counts_under_guards(const struct redlock_lease_core *lease, unsigned node,
                                       redlock_nodes may_not_vote, redlock_nodes may_not_vote_by_clock);

/* The ttl of the keys that the current round sets: longer than the lease by the lock delay. */
static inline int64_t redlock_lease_key_ttl_ms(const struct redlock_lease_core *lease) {
    return (int64_t)lease->round_ttl_ms + lease->plan.lock_delay_ms;
}

/* The deadline that the owner may rely on; 0 if the lease is not held. */
int64_t redlock_lease_held_until_ns(const struct redlock_lease_core *lease);

#endif
