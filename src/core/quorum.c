/* Counts the votes of a round, and decides the round as early as possible (R4, R5). */
#include "core/quorum.h"

#include <assert.h>

redlock_nodes redlock_nodes_all(unsigned n) {
    assert(n >= 1 && n <= REDLOCK_NODES_MAX);
    return REDLOCK_NODE(n) - 1;
}

unsigned redlock_quorum(unsigned n) {
    assert(n >= 1 && n <= REDLOCK_NODES_MAX);
    return n / 2 + 1;
}

void redlock_round_start(struct redlock_round *round, unsigned quorum, redlock_nodes asked) {
    *round = (struct redlock_round){.quorum = (uint8_t)quorum};
    redlock_round_ask(round, asked);
}

redlock_nodes redlock_round_vote(struct redlock_round *round, redlock_nodes nodes, redlock_vote_kind vote) {
    const redlock_nodes counted = nodes & redlock_round_pending(round);
    switch (vote) {
    case REDLOCK_VOTE_GRANTED:
        round->granted |= counted;
        round->granted_count = (uint8_t)redlock_nodes_count(round->granted);
        break;
    case REDLOCK_VOTE_DENIED:
        round->denied |= counted;
        break;
    case REDLOCK_VOTE_FAILED:
        round->failed |= counted;
        break;
    case REDLOCK_VOTE_UNKNOWN:
        round->unknown |= counted;
        break;
    case REDLOCK_VOTE_ABSTAINED:
    case REDLOCK_VOTE_PENDING:
        return 0;
    }
    return counted;
}

void redlock_round_void(struct redlock_round *round, redlock_nodes nodes) {
    round->unknown |= round->granted & nodes;
    round->granted &= ~nodes;
    round->granted_count = (uint8_t)redlock_nodes_count(round->granted);
}

enum redlock_outcome redlock_round_outcome(const struct redlock_round *round) {
    const unsigned granted = round->granted_count;
    if (granted >= round->quorum) {
        return REDLOCK_ROUND_WON;
    }
    if (granted + redlock_nodes_count(redlock_round_pending(round)) < round->quorum) {
        return REDLOCK_ROUND_LOST;
    }
    return REDLOCK_ROUND_PENDING;
}

bool redlock_round_answered(const struct redlock_round *round) {
    return redlock_nodes_count(round->asked & ~(round->failed | round->unknown)) >= round->quorum;
}

bool redlock_round_answered_by_now(const struct redlock_round *round) {
    return redlock_nodes_count(round->granted | round->denied) >= round->quorum;
}
