/* Which nodes may have the current token's key, and where a request may still set it. */
#include "core/keys.h"

void redlock_keys_begin(struct redlock_keys *keys, redlock_nodes asked) {
    *keys = (struct redlock_keys){.touched = asked, .keepers = asked};
}

void redlock_keys_wait(struct redlock_keys *keys, redlock_nodes asked) {
    keys->before = keys->touched;
    keys->touched |= asked;
    keys->keepers |= asked;
}

void redlock_keys_next_round(struct redlock_keys *keys, enum redlock_operation operation,
                             const struct redlock_round *votes, redlock_nodes not_below) {
    keys->keepers = redlock_keys_keepers(keys, operation, votes, not_below);
    keys->healed = 0;
    keys->late = redlock_keys_late(keys, votes);
    keys->healing = 0;
}

void redlock_keys_sent(struct redlock_keys *keys, enum redlock_operation operation, redlock_nodes taken) {
    if (operation != REDLOCK_OP_RELEASE) {
        keys->late |= taken;
    }
}

void redlock_keys_not_set(struct redlock_keys *keys, redlock_nodes nodes) {
    keys->touched &= ~nodes | keys->healed | keys->before;
}

void redlock_keys_granted(struct redlock_keys *keys, redlock_nodes nodes) {
    keys->touched |= nodes;
    keys->before |= nodes;
}

void redlock_keys_lost(struct redlock_keys *keys, redlock_nodes nodes) {
    keys->keepers &= ~nodes;
    keys->healed &= ~nodes;
    keys->backing &= ~nodes;
}

void redlock_keys_heal(struct redlock_keys *keys, redlock_nodes nodes) {
    keys->touched |= nodes;
    keys->healed |= nodes;
}

void redlock_keys_heal_sent(struct redlock_keys *keys, const struct redlock_round *votes, redlock_nodes asked,
                            redlock_nodes taken) {
    keys->late = redlock_keys_late(keys, votes) | taken;
    keys->healing |= taken;
    keys->healed &= ~(asked & ~taken);
}

void redlock_keys_heal_answered(struct redlock_keys *keys, unsigned node, redlock_vote_kind vote) {
    const redlock_nodes self = REDLOCK_NODE(node);
    if (vote == REDLOCK_VOTE_FAILED) {
        keys->healed &= ~self;
    } else if (vote == REDLOCK_VOTE_GRANTED || vote == REDLOCK_VOTE_DENIED) {
        keys->late &= ~(self & keys->healing);
        keys->healing &= ~self;
    }
}

redlock_nodes redlock_keys_keepers(const struct redlock_keys *keys, enum redlock_operation operation,
                                   const struct redlock_round *votes, redlock_nodes not_below) {
    switch (operation) {
    case REDLOCK_OP_ACQUIRE:
        return (keys->keepers & ~(votes->denied | votes->failed)) | keys->healed;
    case REDLOCK_OP_EXTEND:
        return (keys->keepers & ~votes->denied) | votes->granted | keys->healed;
    case REDLOCK_OP_FENCE: /* a node with a higher counter has the key, too */
        return (keys->keepers & ~(votes->denied & ~not_below)) | votes->granted | keys->healed;
    default:
        return keys->keepers | keys->healed;
    }
}
