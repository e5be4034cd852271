/* Which nodes may have the current token's key, which of them back the lease, and where a request
 * may still set the key. */
#ifndef REDLOCK_CORE_KEYS_H
#define REDLOCK_CORE_KEYS_H

#include "core/operation.h"
#include "core/quorum.h"

/*
 * What we know of the current token's key, node by node. The votes of the current round are beside
 * it, in struct redlock_round; "by now" takes them in. An answer is GRANTED or DENIED: requests of
 * a connection are answered in order, so it ends all that went there before. A request without an
 * answer may still run after its timeout (R9).
 *
 * set              a node joins                            a node leaves
 * to_release       it is asked to set the key, now or at   the SET was FAILED, unless it is in
 *                  HELD (HEAL); it granted a WAIT; with    asked_earlier or set_outside; the
 *                  the next round: it granted an EXTEND    cleanup takes them all
 *                  (another lease of the token set it)
 * asked_earlier    it is to be released, and one more      never
 *                  WAIT goes out; it granted a WAIT
 * may_have         it is asked to set the key; with the    with the next round: DENIED, or FAILED
 *                  next round: it granted, or is in        in an ACQUIRE, unless it is in
 *                  set_outside; adopted: any node          set_outside; its grant is lost
 * set_outside      a HEAL is due there; it granted a WAIT  with the next round; its HEAL was FAILED
 *                  after the lease was HELD                or not sent; its grant is lost
 * unanswered       it takes a request that may set the     with the next round or HEAL: it answered
 *                  key or prolong it                       by then; as heal_unanswered: an answer
 * heal_unanswered  it takes a HEAL                         it answers that; with the next round
 * backing          its vote makes the deadline, or comes   other votes make the deadline; its vote
 *                  late and is as good                     is void; with may_have
 *
 * A fresh token empties them all.
 *
 * - If fewer nodes than a quorum may have the key by now, the lock is lost. After a WAIT, all who
 *   were asked may have it, whatever they answered: they may grant it later, and push that.
 * - A FENCE that is DENIED for the node's counter says that the node has the key.
 * - A HEAL is not a round. A vote of the round before it says nothing about the HEAL.
 * - Until the cleanup, asked_earlier and set_outside are in to_release. If nodes tell the truth, so
 *   is backing by now, and all of it may have the key. `unanswered` is not: an EXTEND goes to all
 *   nodes.
 * - Fewer than a quorum may be backing a lease that is HELD. A node that says the key is gone backs
 *   nothing, but the lock is lost only when that is certain: when too few nodes may have the key.
 *   A jump of any clock loses it then.
 */
struct redlock_keys {
    redlock_nodes to_release;
    redlock_nodes asked_earlier;   /* of to_release, whatever the current WAIT did there */
    redlock_nodes may_have;        /* by what was said before the current round */
    redlock_nodes set_outside;     /* of the current round, so its vote is out of date */
    redlock_nodes unanswered;      /* by what was said before the current round */
    redlock_nodes heal_unanswered; /* of unanswered: the last request is a HEAL */
    redlock_nodes backing;         /* the deadline depends on their votes */
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

/* Whether fewer nodes than a quorum back a lease when the votes are void that these nodes gave
 * before their clocks jumped. A node that has said since that the key is gone backs nothing, so it
 * is no matter whether it is among them: its vote counted for the deadline. */
static inline bool redlock_keys_jump_breaks(redlock_nodes backing, redlock_nodes jumped, unsigned quorum) {
    return redlock_nodes_count(backing & ~jumped) < quorum;
}

/* We will ask these nodes to HEAL, or they granted a WAIT after its round. */
void redlock_keys_set_outside(struct redlock_keys *keys, redlock_nodes nodes);
/* Only some of the `asked` nodes took the HEAL. What the others said before still counts (R4). */
void redlock_keys_heal_sent(struct redlock_keys *keys, const struct redlock_round *votes, redlock_nodes asked,
                            redlock_nodes taken);
void redlock_keys_heal_answered(struct redlock_keys *keys, unsigned node, redlock_vote_kind vote);

/* The nodes that a release must reach by now. */
static inline redlock_nodes redlock_keys_to_release(const struct redlock_keys *keys, enum redlock_operation operation,
                                                    const struct redlock_round *votes) {
    const bool extends = operation == REDLOCK_OP_EXTEND && keys->to_release != 0;
    return keys->to_release | (extends ? votes->granted : 0);
}

/* The nodes that may have the key by now. */
redlock_nodes redlock_keys_may_have(const struct redlock_keys *keys, enum redlock_operation operation,
                                    const struct redlock_round *votes, redlock_nodes not_below);

/* The nodes where a request may still set the key or prolong it. */
static inline redlock_nodes redlock_keys_late(const struct redlock_keys *keys, const struct redlock_round *votes) {
    return keys->unanswered & (~(votes->granted | votes->denied) | keys->heal_unanswered);
}

#endif
