/* Whether the votes of a round make a quorum, cannot make one any more, or leave it open (R4, R5). */
#ifndef REDLOCK_CORE_QUORUM_H
#define REDLOCK_CORE_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

#include <redlock/redlock.h>

/* A set of nodes: bit i is node i. */
typedef uint32_t redlock_nodes;

#define REDLOCK_NODE(i) ((redlock_nodes)1 << (i))

/* The first n nodes; n is 1 to REDLOCK_NODES_MAX. */
redlock_nodes redlock_nodes_all(unsigned n);
unsigned redlock_nodes_count(redlock_nodes nodes);

enum redlock_outcome { REDLOCK_ROUND_PENDING, REDLOCK_ROUND_WON, REDLOCK_ROUND_LOST };

/* One request to the nodes, and their votes. The sets are disjoint; a node in none of them is pending. */
struct redlock_round {
    redlock_nodes all;
    redlock_nodes granted, denied, failed, unknown, abstained;
    uint8_t quorum;
};

/* n/2 + 1 of the configured nodes, reachable or not. */
unsigned redlock_quorum(unsigned n);

/* Nodes of the n that are not asked abstain. */
void redlock_round_start(struct redlock_round *round, unsigned n, redlock_nodes asked);

/* The first vote of a node counts; returns false for a second one, which changes nothing. PENDING is not a vote. */
bool redlock_round_vote(struct redlock_round *round, unsigned node, redlock_vote_kind vote);

redlock_nodes redlock_round_pending(const struct redlock_round *round);
enum redlock_outcome redlock_round_outcome(const struct redlock_round *round);

/* Of a LOST round: could the nodes that answered, or still may, have made a quorum (R13)? Then others hold it:
 * CONTENDED, not NO_QUORUM. */
bool redlock_round_answered(const struct redlock_round *round);

/* Of a LOST round that ended before its votes were in: the pending ones count as not answered. */
bool redlock_round_answered_by_now(const struct redlock_round *round);

#endif
