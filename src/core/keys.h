/* Which nodes may have the current token's key, which of them back the lease, and where a request
 * may still set the key. */
#ifndef REDLOCK_CORE_KEYS_H
#define REDLOCK_CORE_KEYS_H

#include "core/operation.h"
#include "core/quorum.h"

/*
 * A node may have the key, unless it surely refused the SET, or said "missing" or "another token"
 * after that and was not healed since. If fewer nodes than a quorum may have the key, the lock is
 * lost.
 *
 * A request that sets the key may still run after its timeout (R9). GRANTED or DENIED ends that,
 * because answers come in order. But a HEAL is not a round. A vote of the round before it says
 * nothing about the HEAL.
 */
struct redlock_keys {
    redlock_nodes touched; /* to be released: we sent them a request that sets the key */
    redlock_nodes before;  /* of these, the nodes that an earlier WAIT touched, or that granted */
    redlock_nodes keepers; /* nodes that might have the key when the current round started */
    redlock_nodes healed;  /* asked to HEAL since then: this round's vote is out of date */
    /* An earlier request may still set the key, as of the sending of the current round. */
    redlock_nodes late;
    redlock_nodes healing; /* of `late`, the nodes whose last request is a HEAL */
    redlock_nodes backing; /* the lease depends on their votes */
};

/* A new attempt asks these nodes, with a fresh token. */
void redlock_keys_begin(struct redlock_keys *keys, redlock_nodes asked);
/* One more WAIT with the same token asks these nodes. */
void redlock_keys_wait(struct redlock_keys *keys, redlock_nodes asked);
/* The current round is over; another one with this token begins. After a FENCE round, `not_below`
 * has the nodes with a higher counter. */
void redlock_keys_next_round(struct redlock_keys *keys, enum redlock_operation operation,
                             const struct redlock_round *votes, redlock_nodes not_below);
/* These nodes took the current round's request. */
void redlock_keys_sent(struct redlock_keys *keys, enum redlock_operation operation, redlock_nodes taken);
/* The SET surely did nothing on these nodes. */
void redlock_keys_not_set(struct redlock_keys *keys, redlock_nodes nodes);

/* These nodes granted a WAIT, whatever they answer to others. */
void redlock_keys_granted(struct redlock_keys *keys, redlock_nodes nodes);
/* These nodes granted, and have said since that they have the key no more. */
void redlock_keys_lost(struct redlock_keys *keys, redlock_nodes nodes);

/* We will ask these nodes to HEAL, or they have told us of a grant. */
void redlock_keys_heal(struct redlock_keys *keys, redlock_nodes nodes);
/* Only some of the `asked` nodes took the HEAL. What the others said before still counts (R4). */
void redlock_keys_heal_sent(struct redlock_keys *keys, const struct redlock_round *votes, redlock_nodes asked,
                            redlock_nodes taken);
void redlock_keys_heal_answered(struct redlock_keys *keys, unsigned node, redlock_vote_kind vote);

/* The nodes that may have the key now. */
redlock_nodes redlock_keys_keepers(const struct redlock_keys *keys, enum redlock_operation operation,
                                   const struct redlock_round *votes, redlock_nodes not_below);

/* The nodes where a request may still set the key. */
static inline redlock_nodes redlock_keys_late(const struct redlock_keys *keys, const struct redlock_round *votes) {
    return keys->late & (~(votes->granted | votes->denied) | keys->healing);
}

#endif
