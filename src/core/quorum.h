/* The votes of a round: whether they make a quorum, can make one no more, or leave it open (R4,
 * R5). */
#ifndef REDLOCK_CORE_QUORUM_H
#define REDLOCK_CORE_QUORUM_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <redlock/redlock.h>

/* A set of nodes: bit i is node i. */
typedef uint32_t redlock_nodes;

#define REDLOCK_NODE(i) ((redlock_nodes)1 << (i))

/* The first n nodes; n is 1 to REDLOCK_NODES_MAX. */
redlock_nodes redlock_nodes_all(unsigned n);

/* Sums pairs of bits, then fours, then bytes. Without a branch, because it runs at every vote. */
static inline unsigned redlock_nodes_count(redlock_nodes nodes) {
    nodes -= nodes >> 1 & 0x55555555U;
    nodes = (nodes & 0x33333333U) + (nodes >> 2 & 0x33333333U);
    return ((nodes + (nodes >> 4)) & 0x0f0f0f0fU) * 0x01010101U >> 24;
}

/* The index of the lowest node; `nodes` is not empty. */
static inline unsigned redlock_nodes_first(redlock_nodes nodes) {
    assert(nodes != 0);
    return (unsigned)__builtin_ctz(nodes);
}

enum redlock_outcome { REDLOCK_ROUND_PENDING, REDLOCK_ROUND_WON, REDLOCK_ROUND_LOST };

/* One request to some nodes, and their votes. The votes are disjoint sets. A node that was asked
 * and is in none of them is pending. */
struct redlock_round {
    redlock_nodes asked;
    redlock_nodes granted, denied, failed, unknown;
    uint8_t quorum;
    uint8_t granted_count;
};

/* The least quorum: n/2 + 1 of the configured nodes, reachable or not. A group may have a larger
 * one. */
unsigned redlock_quorum(unsigned n);

/* Starts a new round that asks these nodes first. */
void redlock_round_start(struct redlock_round *round, unsigned quorum, redlock_nodes asked);

/* Asks more nodes. A node that was asked before keeps its vote. */
static inline void redlock_round_ask(struct redlock_round *round, redlock_nodes nodes) {
    round->asked |= nodes;
}

/* Counts the same vote of some nodes. Only the first vote of a node counts, and only if it was
 * asked. PENDING and ABSTAINED are no votes. Returns the nodes whose vote counted. */
redlock_nodes redlock_round_vote(struct redlock_round *round, redlock_nodes nodes, redlock_vote_kind vote);

static inline redlock_nodes redlock_round_pending(const struct redlock_round *round) {
    return round->asked & ~(round->granted | round->denied | round->failed | round->unknown);
}

/* Whether no node has voted anything but GRANTED. */
static inline bool redlock_round_has_only_grants(const struct redlock_round *round) {
    return (round->denied | round->failed | round->unknown) == 0;
}

enum redlock_outcome redlock_round_outcome(const struct redlock_round *round);

/* Whether one more GRANTED wins the round. */
static inline bool redlock_round_lacks_one(const struct redlock_round *round) {
    return round->granted_count + 1 == round->quorum;
}

/* Counts the GRANTED of one of these nodes, if it may still vote. */
static inline void redlock_round_grant(struct redlock_round *round, redlock_nodes node) {
    const redlock_nodes counted = node & redlock_round_pending(round);
    round->granted |= counted;
    round->granted_count = (uint8_t)(round->granted_count + (counted != 0));
}

/* Makes UNKNOWN votes of what these nodes have granted. */
void redlock_round_void(struct redlock_round *round, redlock_nodes nodes);

/* For a LOST round: could the nodes that answered, or may still answer, have made a quorum (R13)?
 * Then others hold the lock: CONTENDED, not NO_QUORUM. */
bool redlock_round_answered(const struct redlock_round *round);

/* The same for a round that ended before its last votes: pending nodes count as not answered. */
bool redlock_round_answered_by_now(const struct redlock_round *round);

#endif
