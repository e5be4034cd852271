/* Which nodes may have the current token's key, and where a request may still set it. */
#include "core/keys.h"

#include <assert.h>

void redlock_keys_begin(struct redlock_keys *keys, redlock_nodes asked) {
    *keys = (struct redlock_keys){.to_release = asked, .may_have = asked};
}

void redlock_keys_wait(struct redlock_keys *keys, redlock_nodes asked) {
    keys->asked_earlier = keys->to_release;
    keys->to_release |= asked;
    keys->may_have |= asked;
}

void redlock_keys_next_round(struct redlock_keys *keys, enum redlock_operation operation,
                             const struct redlock_round *votes, redlock_nodes not_below) {
    keys->may_have = redlock_keys_may_have(keys, operation, votes, not_below);
    keys->to_release = redlock_keys_to_release(keys, operation, votes);
    keys->backing &= keys->may_have;
    keys->set_outside = 0;
    keys->unanswered = redlock_keys_late(keys, votes);
    keys->heal_unanswered = 0;
}

void redlock_keys_sent(struct redlock_keys *keys, enum redlock_operation operation, redlock_nodes taken) {
    if (operation != REDLOCK_OP_RELEASE) {
        keys->unanswered |= taken;
    }
}

void redlock_keys_not_set(struct redlock_keys *keys, redlock_nodes nodes) {
    keys->to_release &= ~nodes | keys->set_outside | keys->asked_earlier;
}

void redlock_keys_granted(struct redlock_keys *keys, redlock_nodes nodes) {
    keys->to_release |= nodes;
    keys->asked_earlier |= nodes;
}

void redlock_keys_lost(struct redlock_keys *keys, redlock_nodes nodes) {
    keys->may_have &= ~nodes;
    keys->set_outside &= ~nodes;
    keys->backing &= ~nodes;
}

void redlock_keys_set_outside(struct redlock_keys *keys, redlock_nodes nodes) {
    keys->to_release |= nodes;
    keys->set_outside |= nodes;
}

void redlock_keys_heal_sent(struct redlock_keys *keys, const struct redlock_round *votes, redlock_nodes asked,
                            redlock_nodes taken) {
    assert((taken & ~asked) == 0);
    keys->unanswered = redlock_keys_late(keys, votes) | taken;
    keys->heal_unanswered |= taken;
    keys->set_outside &= ~(asked & ~taken);
}

void redlock_keys_heal_answered(struct redlock_keys *keys, unsigned node, redlock_vote_kind vote) {
    assert(node < REDLOCK_NODES_MAX);
    const redlock_nodes self = REDLOCK_NODE(node);
    if (vote == REDLOCK_VOTE_FAILED) {
        keys->set_outside &= ~self;
    } else if (vote == REDLOCK_VOTE_GRANTED || vote == REDLOCK_VOTE_DENIED) {
        keys->unanswered &= ~(self & keys->heal_unanswered);
        keys->heal_unanswered &= ~self;
    }
}

redlock_nodes redlock_keys_may_have(const struct redlock_keys *keys, enum redlock_operation operation,
                                    const struct redlock_round *votes, redlock_nodes not_below) {
    switch (operation) {
    case REDLOCK_OP_ACQUIRE:
        return (keys->may_have & ~(votes->denied | votes->failed)) | keys->set_outside;
    case REDLOCK_OP_EXTEND:
        return (keys->may_have & ~votes->denied) | votes->granted | keys->set_outside;
    case REDLOCK_OP_FENCE: /* a node with a higher counter has the key, too */
        return (keys->may_have & ~(votes->denied & ~not_below)) | votes->granted | keys->set_outside;
    default:
        return keys->may_have | keys->set_outside;
    }
}
