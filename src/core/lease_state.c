/* What the states share: a round starts, the keys are released, the relations of the fields. */
#include "core/lease_state.h"

#include "core/planted.h"
#include "core/time.h"

void redlock_lease_start_round(struct redlock_lease_core *lease, enum redlock_operation operation, redlock_nodes nodes,
                               int64_t now_ns, struct redlock_actions *actions) {
    if (actions->fresh_token) { /* R10 */
        redlock_keys_begin(&lease->keys, nodes);
    } else {
        redlock_keys_next_round(&lease->keys, lease->operation, &lease->votes, lease->fence.not_below);
    }
    lease->fence.not_below = 0;
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
    actions->cleanup = redlock_keys_to_release(&lease->keys, lease->operation, &lease->votes);
    actions->uncertain = actions->cleanup & redlock_keys_late(&lease->keys, &lease->votes);
    lease->keys.to_release = 0;
}

int64_t redlock_lease_retry_ns(struct redlock_lease_core *lease, int64_t now_ns) {
    const struct redlock_plan *plan = &lease->plan;
    return redlock_after_ns(
        now_ns, redlock_delay_between_ns(&lease->jitter, plan->retry_delay_min_ms, plan->retry_delay_max_ms));
}

int redlock_lease_extend_check(const struct redlock_lease_core *lease, int64_t now_ns) {
    bool ended = now_ns >= lease->deadline_ns && !REDLOCK_PLANTED(EXTEND_AFTER_END);
    switch (lease->state) {
    case REDLOCK_LEASE_ADOPTED:
        return REDLOCK_OK;
    case REDLOCK_LEASE_HELD:
        return ended ? REDLOCK_ERR_LOST : REDLOCK_OK;
    case REDLOCK_LEASE_EXTENDING:
        return lease->extend_by_caller ? REDLOCK_ERR_BUSY : ended ? REDLOCK_ERR_LOST : REDLOCK_OK;
    default:
        return REDLOCK_ERR_LOST;
    }
}

/* Without a branch: the core's tests are to reach every one. */
static bool implies(bool if_this, bool then_that) {
    return !if_this | then_that;
}

static bool is_in(redlock_nodes some, redlock_nodes of) {
    return (some & ~of) == 0;
}

static bool is_one_of(unsigned what, unsigned bits) {
    return (bits >> what & 1) != 0;
}

/* The operation of each state that has a round. */
static bool fits_operation(const struct redlock_lease_core *lease) {
    static const uint8_t operations[] = {
        [REDLOCK_LEASE_ACQUIRING] = REDLOCK_OP_ACQUIRE, [REDLOCK_LEASE_FENCING] = REDLOCK_OP_FENCE,
        [REDLOCK_LEASE_QUEUED] = REDLOCK_OP_WAIT,       [REDLOCK_LEASE_EXTENDING] = REDLOCK_OP_EXTEND,
        [REDLOCK_LEASE_RELEASING] = REDLOCK_OP_RELEASE, [REDLOCK_LEASE_ENDED] = REDLOCK_OP_NONE};
    return implies(redlock_lease_round_is_open(lease), operations[lease->state] == lease->operation);
}

const char *redlock_lease_check(const struct redlock_lease_core *lease, bool truthful) {
    const struct redlock_round *votes = &lease->votes;
    const struct redlock_keys *keys = &lease->keys;
    const redlock_nodes all = redlock_nodes_all(lease->node_count);
    const bool holds = is_one_of(lease->state, 1U << REDLOCK_LEASE_HELD | 1U << REDLOCK_LEASE_EXTENDING);
    const bool was_taken = is_one_of(lease->state, 1U << REDLOCK_LEASE_EXTENDING | 1U << REDLOCK_LEASE_LOST);
    const bool gave_up = is_one_of(lease->state, 1U << REDLOCK_LEASE_RETRYING | 1U << REDLOCK_LEASE_LOST);
    const redlock_nodes may_have = redlock_keys_may_have(keys, lease->operation, votes, lease->fence.not_below);
    const redlock_nodes to_release = redlock_keys_to_release(keys, lease->operation, votes);
    const redlock_nodes voted = votes->granted | votes->denied | votes->failed | votes->unknown;
    const unsigned votes_count = redlock_nodes_count(votes->granted) + redlock_nodes_count(votes->denied) +
                                 redlock_nodes_count(votes->failed) + redlock_nodes_count(votes->unknown);
    const bool owns_keys = keys->to_release != 0; /* until the cleanup */
    const struct {
        const char *relation;
        bool is_true;
    } relations[] = {
        {"votes are of nodes that were asked", is_in(voted, votes->asked)},
        {"a node has one vote", redlock_nodes_count(voted) == votes_count},
        {"granted_count counts the granted", votes->granted_count == redlock_nodes_count(votes->granted)},
        {"nodes are those of the group",
         is_in(votes->asked | keys->to_release | keys->may_have | keys->unanswered, all)},
        {"heal_unanswered is in unanswered", is_in(keys->heal_unanswered, keys->unanswered)},
        {"asked_earlier is in to_release", implies(owns_keys, is_in(keys->asked_earlier, keys->to_release))},
        {"set_outside is in to_release", implies(owns_keys, is_in(keys->set_outside, keys->to_release))},
        {"backing may have the key",
         implies(truthful, is_in(keys->backing, keys->may_have | keys->set_outside | votes->granted))},
        {"backing is in to_release", implies(owns_keys & truthful, is_in(keys->backing, to_release))},
        {"a quorum may have the key of what is held",
         implies(holds & lease->was_held & truthful, redlock_nodes_count(may_have) >= votes->quorum)},
        {"the round is that of the state", fits_operation(lease)},
        {"HELD was held", implies(lease->state == REDLOCK_LEASE_HELD, lease->was_held)},
        {"only EXTENDING answers the caller",
         implies(lease->extend_by_caller, lease->state == REDLOCK_LEASE_EXTENDING)},
        {"QUEUED has a queue", implies(lease->state == REDLOCK_LEASE_QUEUED, lease->grants != NULL)},
        {"who gave up has cleaned up", implies(gave_up & !redlock_lease_delays(lease), !owns_keys)},
        {"a quorum is some of the nodes", (votes->quorum >= 1) & (votes->quorum <= lease->node_count)},
        {"EXTENDING and LOST were held or adopted", implies(was_taken, lease->was_held | lease->is_adopted)},
        {"ADOPTED was never held",
         implies(lease->state == REDLOCK_LEASE_ADOPTED, lease->is_adopted & !lease->was_held)},
        {"only who heals has a time for it", implies(lease->heal_ns != REDLOCK_NEVER_NS, lease->plan.heal)},
        {"only a fencing token is written", implies(lease->fence_written, lease->plan.fencing)},
        {"what was told to expire was held", implies(lease->expiring_told, lease->was_held)},
    };
    for (unsigned i = 0; i < sizeof relations / sizeof *relations; i++) {
        if (!relations[i].is_true) {
            return relations[i].relation;
        }
    }
    return NULL;
}
