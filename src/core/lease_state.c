/* What attempts and extensions share: to start a round, and to clean up. */
#include "core/lease_state.h"

void redlock_lease_start_round(struct redlock_lease_core *lease, enum redlock_operation operation, redlock_nodes nodes,
                               int64_t now_ns, struct redlock_actions *actions) {
    if (actions->fresh_token) { /* R10 */
        redlock_keys_begin(&lease->keys, nodes);
    } else {
        redlock_keys_next_round(&lease->keys, lease->operation, &lease->votes, lease->fence.not_below);
    }
    redlock_round_start(&lease->votes, lease->votes.quorum, nodes);
    lease->operation = operation;
    lease->round++;
    lease->start_ns = now_ns;
    actions->send = operation;
    actions->send_nodes = nodes;
    actions->round = lease->round;
}

/* R8: release wherever a request that sets the key went. */
void redlock_lease_clean_up(struct redlock_lease_core *lease, struct redlock_actions *actions) {
    actions->cleanup = lease->keys.touched;
    actions->uncertain = lease->keys.touched & redlock_keys_late(&lease->keys, &lease->votes);
    lease->keys.touched = 0;
}
