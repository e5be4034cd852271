/* Which nodes may have the current token's key, which of them back the lease, and where a request may still set the key
 * late. */
#ifndef REDLOCK_CORE_KEYS_H
#define REDLOCK_CORE_KEYS_H

#include "core/operation.h"
#include "core/quorum.h"

/*
 * A node may have the key unless it surely refused the SET, or said "missing" or "another token" since, and was not healed
 * after that. Fewer such nodes than a quorum: the lock is known to be lost.
 *
 * A request that sets the key may land late, after its timeout (R9). A node's GRANTED or DENIED ends that: answers come in
 * order. But a HEAL is no round, so a vote of the round that it came after does not tell of it.
 */
struct redlock_keys {
    redlock_nodes touched; /* to be released: a request that sets the key went there */
    redlock_nodes keepers; /* may have the key, as of the start of the current round */
    redlock_nodes healed;  /* asked to HEAL since then: what they say to this round is not the last word any more */
    redlock_nodes late;    /* may set the key late, as of the sending of the current round */
    redlock_nodes healing; /* of these, the ones whose last request is a HEAL */
    redlock_nodes backing; /* the lease stands on their votes */
};

/* A fresh token, for which these nodes are asked. */
void redlock_keys_begin(struct redlock_keys *keys, redlock_nodes asked);
/* The current round is over, another one of this token begins. `told`: of a FENCE round, the nodes with a higher counter. */
void redlock_keys_next_round(struct redlock_keys *keys, enum redlock_operation operation,
                             const struct redlock_round *votes, redlock_nodes told);
/* These nodes took the current round's request. */
void redlock_keys_sent(struct redlock_keys *keys, enum redlock_operation operation, redlock_nodes taken);
/* The SET surely did nothing there. */
void redlock_keys_not_set(struct redlock_keys *keys, redlock_nodes nodes);

/* These nodes are to be asked to HEAL. */
void redlock_keys_heal(struct redlock_keys *keys, redlock_nodes nodes);
/* Of these, only some were, and took it. R4: what the others said before stands. */
void redlock_keys_heal_sent(struct redlock_keys *keys, const struct redlock_round *votes, redlock_nodes asked,
                            redlock_nodes taken);
void redlock_keys_heal_answered(struct redlock_keys *keys, unsigned node, redlock_vote_kind vote);

/* The nodes that may have the key, by what is known now. */
redlock_nodes redlock_keys_keepers(const struct redlock_keys *keys, enum redlock_operation operation,
                                   const struct redlock_round *votes, redlock_nodes told);

/* The nodes where a request may still set the key late. */
static inline redlock_nodes redlock_keys_late(const struct redlock_keys *keys, const struct redlock_round *votes) {
    return keys->late & (~(votes->granted | votes->denied) | keys->healing);
}

#endif
