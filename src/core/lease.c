/* The state machine of a lease, as in the table of core/lease_state.h. */
#include "core/lease.h"

#include <assert.h>

#include "core/attempt.h"
#include "core/held.h"
#include "core/planted.h"
#include "core/time.h"
#include "core/waiter.h"

static void end(struct redlock_lease_core *lease, int code, struct redlock_actions *actions) {
    lease->state = REDLOCK_LEASE_ENDED;
    actions->released = true;
    actions->released_code = code;
}

/* R15: report LOST only if it is certain. While silent nodes leave it open, wait for every vote. */
static void decide_release(struct redlock_lease_core *lease, struct redlock_actions *actions) {
    const struct redlock_round *votes = &lease->votes;
    if (redlock_round_outcome(votes) == REDLOCK_ROUND_WON) {
        end(lease, REDLOCK_OK, actions);
    } else if (redlock_nodes_count(votes->asked & ~votes->denied) < votes->quorum) {
        /* The nodes that were not asked never had the key. */
        end(lease, REDLOCK_ERR_LOST, actions);
    } else if (redlock_round_pending(votes) == 0) {
        end(lease, REDLOCK_ERR_NO_QUORUM, actions);
    }
}

static void on_release(struct redlock_lease_core *lease, int64_t now_ns, bool may_leave_free,
                       struct redlock_actions *actions) {
    switch (lease->state) {
    case REDLOCK_LEASE_ADOPTED:
    case REDLOCK_LEASE_HELD:
    case REDLOCK_LEASE_EXTENDING:
        if (lease->was_held && redlock_lease_delays(lease) && now_ns >= lease->deadline_ns) {
            redlock_held_lose(lease, REDLOCK_LOST_AT_DEADLINE, actions);
            end(lease, REDLOCK_ERR_LOST, actions);
            break;
        }
        redlock_held_answer(lease, REDLOCK_ERR_CANCELLED, actions);
        lease->state = REDLOCK_LEASE_RELEASING;
        assert(redlock_nodes_count(lease->keys.to_release) >= lease->votes.quorum);
        redlock_lease_start_round(lease, REDLOCK_OP_RELEASE,
                                  redlock_keys_to_release(&lease->keys, lease->operation, &lease->votes), now_ns,
                                  actions);
        if (may_leave_free && redlock_waiter_leaves_free(lease, now_ns)) {
            actions->handing = REDLOCK_HAND_LATER;
        }
        break;
    case REDLOCK_LEASE_LOST:
        end(lease, REDLOCK_ERR_LOST, actions);
        break;
    default:
        break;
    }
}

static void on_cancel(struct redlock_lease_core *lease, int code, struct redlock_actions *actions) {
    switch (lease->state) {
    case REDLOCK_LEASE_IDLE:
    case REDLOCK_LEASE_PARKED:
    case REDLOCK_LEASE_ACQUIRING:
    case REDLOCK_LEASE_FENCING:
    case REDLOCK_LEASE_QUEUED:
    case REDLOCK_LEASE_RETRYING:
        redlock_lease_clean_up(lease, actions);
        redlock_attempt_end(lease, code, actions);
        break;
    default:
        break;
    }
}

static void on_park(struct redlock_lease_core *lease, const struct redlock_event *event) {
    if (lease->state == REDLOCK_LEASE_IDLE) {
        lease->plan = *event->plan;
        lease->next_try_ns = event->until_ns;
        lease->state = REDLOCK_LEASE_PARKED;
    } else if (lease->state == REDLOCK_LEASE_PARKED) {
        lease->next_try_ns = redlock_min_ns(lease->next_try_ns, event->until_ns);
    }
}

static void on_begin(struct redlock_lease_core *lease, const struct redlock_event *event,
                     struct redlock_actions *actions) {
    if (lease->state == REDLOCK_LEASE_IDLE) {
        lease->plan = *event->plan;
    } else if (lease->state != REDLOCK_LEASE_PARKED) {
        return;
    }
    lease->next_try_ns = REDLOCK_NEVER_NS;
    /* Without a wait, votes and the deadline end the one attempt. */
    if (lease->plan.wait_timeout_ms > 0) {
        lease->wait_until_ns = redlock_after_ms(event->now_ns, lease->plan.wait_timeout_ms);
    }
    redlock_attempt_begin(lease, event, actions);
}

/* When the clock ends a lease that is held or being extended (R3). */
static int64_t loss_ns(const struct redlock_lease_core *lease) {
    bool put_off = REDLOCK_PLANTED(LOSS_ON_REPLY_ONLY) ||
                   (REDLOCK_PLANTED(EXTEND_AFTER_END) && lease->state == REDLOCK_LEASE_EXTENDING);
    return put_off ? REDLOCK_NEVER_NS : lease->deadline_ns;
}

static void try_again(struct redlock_lease_core *lease, const struct redlock_event *event, bool due,
                      struct redlock_actions *actions) {
    if (event->now_ns >= lease->wait_until_ns) {
        redlock_attempt_end(lease, lease->last_code, actions);
    } else if (due) {
        redlock_attempt_begin(lease, event, actions);
    }
}

/* We stand at the gate of the slots, or do not any more. What is under way goes on: whether we
 * stand there is what nodes ask. */
static void on_gate(struct redlock_lease_core *lease, const struct redlock_event *event,
                    struct redlock_actions *actions) {
    const bool admitted = event->type == REDLOCK_EVENT_ADMIT;
    lease->plan.at_no_gate = !admitted;
    if (lease->state == REDLOCK_LEASE_RETRYING) {
        lease->next_try_ns = admitted ? lease->next_try_ns : REDLOCK_NEVER_NS;
        try_again(lease, event, admitted, actions);
    }
}

static void on_timer(struct redlock_lease_core *lease, const struct redlock_event *event,
                     struct redlock_actions *actions) {
    const int64_t now_ns = event->now_ns;
    const bool ended = now_ns >= loss_ns(lease), due = now_ns >= lease->next_try_ns;
    switch (lease->state) {
    case REDLOCK_LEASE_PARKED:
        if (due) {
            on_begin(lease, event, actions);
        }
        break;
    case REDLOCK_LEASE_ACQUIRING:
    case REDLOCK_LEASE_FENCING:
        lease->heal_ns = now_ns < lease->heal_ns ? lease->heal_ns : REDLOCK_NEVER_NS;
        redlock_attempt_decide(lease, event, actions);
        break;
    case REDLOCK_LEASE_QUEUED:
        redlock_attempt_queued(lease, event, actions);
        break;
    case REDLOCK_LEASE_RETRYING:
        try_again(lease, event, due, actions);
        break;
    case REDLOCK_LEASE_HELD:
    case REDLOCK_LEASE_EXTENDING:
        if (ended && !(due && REDLOCK_PLANTED(EXTEND_AFTER_END))) {
            redlock_held_pass_deadline(lease, now_ns, actions);
        } else {
            redlock_held_due(lease, now_ns, actions);
        }
        break;
    default:
        break;
    }
}

/* The votes of the current round have changed. */
static void decide(struct redlock_lease_core *lease, const struct redlock_event *event,
                   struct redlock_actions *actions) {
    switch (lease->state) {
    case REDLOCK_LEASE_ACQUIRING:
    case REDLOCK_LEASE_FENCING:
        redlock_attempt_decide(lease, event, actions);
        break;
    case REDLOCK_LEASE_QUEUED:
        redlock_attempt_queued(lease, event, actions);
        break;
    case REDLOCK_LEASE_EXTENDING:
        redlock_held_decide(lease, event->now_ns, actions);
        break;
    case REDLOCK_LEASE_RELEASING:
        decide_release(lease, actions);
        break;
    case REDLOCK_LEASE_HELD:
        if (lease->operation == REDLOCK_OP_WAIT) {
            redlock_waiter_note_late(lease, event);
        }
        redlock_held_late(lease, event->now_ns, actions);
        break;
    default:
        break;
    }
}

static void on_votes(struct redlock_lease_core *lease, const struct redlock_event *event, redlock_vote_kind vote,
                     struct redlock_actions *actions) {
    bool not_set =
        vote == REDLOCK_VOTE_FAILED || (REDLOCK_PLANTED(NO_RELEASE_TIMED_OUT) && vote == REDLOCK_VOTE_UNKNOWN);
    redlock_nodes counted = redlock_round_vote(&lease->votes, event->nodes, vote);
    if (not_set && (lease->operation == REDLOCK_OP_ACQUIRE ||
                    lease->operation == REDLOCK_OP_WAIT)) { /* R8: no release goes there */
        redlock_keys_not_set(&lease->keys, counted);
    }
    decide(lease, event, actions);
}

static void note_counter(struct redlock_lease_core *lease, const struct redlock_event *event) {
    const unsigned node = redlock_event_node(event);
    if (lease->fence.reads && lease->operation == REDLOCK_OP_ACQUIRE && event->vote == REDLOCK_VOTE_GRANTED) {
        redlock_fence_told(&lease->fence, node, event->counter, event->wall_us);
    } else {
        redlock_fence_note(&lease->fence, node, event->accepted, event->counter, event->wall_us);
    }
}

static void on_vote(struct redlock_lease_core *lease, const struct redlock_event *event,
                    struct redlock_actions *actions) {
    if (event->round != lease->round) {
        return;
    }
    if (event->accepted || event->counter != 0) {
        note_counter(lease, event);
    }
    if (event->vote == REDLOCK_VOTE_GRANTED) { /* by one node: nothing to count */
        redlock_round_grant(&lease->votes, event->nodes);
        decide(lease, event, actions);
    } else {
        on_votes(lease, event, event->vote, actions);
    }
}

/* Grants, and what else is no answer of the current round. */
static void on_queue(struct redlock_lease_core *lease, const struct redlock_event *event,
                     struct redlock_actions *actions) {
    switch (lease->state) {
    case REDLOCK_LEASE_QUEUED:
        redlock_attempt_queued(lease, event, actions);
        break;
    case REDLOCK_LEASE_FENCING:
    case REDLOCK_LEASE_HELD:
    case REDLOCK_LEASE_EXTENDING:
        if (event->type == REDLOCK_EVENT_GRANT && lease->grants) {
            redlock_waiter_note_late(lease, event);
        } else if (event->type == REDLOCK_EVENT_READY && lease->state != REDLOCK_LEASE_FENCING) {
            redlock_held_ready(lease, event->nodes, event->now_ns);
        }
        break;
    default:
        break;
    }
}

static void on_void(struct redlock_lease_core *lease, const struct redlock_event *event,
                    struct redlock_actions *actions) {
    assert(event->nodes != 0);
    if (lease->grants) { /* pushes from before the jump may still come */
        redlock_grants_void(lease->grants, event->nodes);
    }
    switch (lease->state) {
    case REDLOCK_LEASE_ACQUIRING:
    case REDLOCK_LEASE_FENCING:
        redlock_attempt_void(lease, event, actions);
        break;
    case REDLOCK_LEASE_QUEUED:
        redlock_attempt_queued(lease, event, actions);
        break;
    case REDLOCK_LEASE_HELD:
    case REDLOCK_LEASE_EXTENDING:
        redlock_held_void(lease, event->nodes, event->now_ns, actions);
        break;
    default:
        break;
    }
}

static void on_adopt(struct redlock_lease_core *lease, const struct redlock_event *event) {
    if (lease->state != REDLOCK_LEASE_IDLE) {
        return;
    }
    assert(event->plan);
    lease->plan = *event->plan;
    lease->state = REDLOCK_LEASE_ADOPTED;
    lease->is_adopted = true;
    redlock_keys_begin(&lease->keys, redlock_nodes_all(lease->node_count));
}

void redlock_lease_init(struct redlock_lease_core *lease, unsigned node_count, unsigned quorum, uint32_t jitter_seed) {
    lease->node_count = (uint8_t)node_count;
    lease->jitter = jitter_seed;
    lease->wait_until_ns = lease->next_try_ns = lease->heal_ns = REDLOCK_NEVER_NS;
    redlock_round_start(&lease->votes, quorum, 0);
}

void redlock_lease_may_queue(struct redlock_lease_core *lease, struct redlock_grants *grants) {
    assert(grants);
    lease->grants = grants;
}

/* Planted bugs break relations, too; the simulator finds them by what they do. */
static void check(const struct redlock_lease_core *lease) {
#ifdef REDLOCK_PLANTED_BUGS
    assert(redlock_planted_bug != REDLOCK_BUG_NONE || redlock_lease_check(lease, true) == NULL);
#elif defined REDLOCK_CHECKED
    assert(redlock_lease_check(lease, false) == NULL);
#else
    (void)lease;
#endif
}

void redlock_lease_step(struct redlock_lease_core *lease, const struct redlock_event *event,
                        struct redlock_actions *actions) {
    *actions = (struct redlock_actions){.send = REDLOCK_OP_NONE};
    switch (event->type) {
    case REDLOCK_EVENT_PARK:
        on_park(lease, event);
        break;
    case REDLOCK_EVENT_BEGIN:
        on_begin(lease, event, actions);
        break;
    case REDLOCK_EVENT_ADOPT:
        on_adopt(lease, event);
        break;
    case REDLOCK_EVENT_VOTE:
        on_vote(lease, event, actions);
        break;
    case REDLOCK_EVENT_REFUSED:
        on_votes(lease, event, REDLOCK_VOTE_FAILED, actions);
        break;
    case REDLOCK_EVENT_GRANT:
    case REDLOCK_EVENT_LISTEN:
    case REDLOCK_EVENT_LEFT:
    case REDLOCK_EVENT_READY:
    case REDLOCK_EVENT_POLL:
        on_queue(lease, event, actions);
        break;
    case REDLOCK_EVENT_ADMIT:
    case REDLOCK_EVENT_EXCLUDE:
        on_gate(lease, event, actions);
        break;
    case REDLOCK_EVENT_VOID:
        on_void(lease, event, actions);
        break;
    case REDLOCK_EVENT_TIMER:
        on_timer(lease, event, actions);
        break;
    case REDLOCK_EVENT_CANCEL:
        on_cancel(lease, event->code, actions);
        break;
    case REDLOCK_EVENT_DOWNGRADE:
        lease->shared |= redlock_lease_extend_check(lease, event->now_ns) == REDLOCK_OK;
        redlock_held_extend(lease, event, actions);
        break;
    case REDLOCK_EVENT_EXTEND:
        redlock_held_extend(lease, event, actions);
        break;
    case REDLOCK_EVENT_SETTLE:
        redlock_held_settle(lease, event->plan, event->now_ns);
        break;
    case REDLOCK_EVENT_RELEASE:
        on_release(lease, event->now_ns, event->may_leave_free, actions);
        break;
    }
    check(lease);
}

int64_t redlock_lease_next_ns(const struct redlock_lease_core *lease) {
    switch (lease->state) {
    case REDLOCK_LEASE_PARKED:
        return lease->next_try_ns;
    case REDLOCK_LEASE_ACQUIRING:
    case REDLOCK_LEASE_FENCING:
        return redlock_min_ns(redlock_min_ns(lease->deadline_ns, lease->wait_until_ns), lease->heal_ns);
    case REDLOCK_LEASE_QUEUED:
    case REDLOCK_LEASE_RETRYING:
        return redlock_min_ns(lease->next_try_ns, lease->wait_until_ns);
    case REDLOCK_LEASE_HELD:
        return redlock_min_ns(redlock_min_ns(loss_ns(lease), redlock_held_expiring_ns(lease)),
                              redlock_min_ns(lease->next_try_ns, lease->heal_ns));
    case REDLOCK_LEASE_EXTENDING:
        return redlock_min_ns(loss_ns(lease), redlock_held_expiring_ns(lease));
    default:
        return REDLOCK_NEVER_NS;
    }
}

bool redlock_lease_counts_under_guards(const struct redlock_lease_core *lease, unsigned node,
                                       redlock_nodes may_not_vote, redlock_nodes may_not_vote_by_clock) {
    assert(node < lease->node_count);
    switch (lease->operation) {
    case REDLOCK_OP_ACQUIRE:
    case REDLOCK_OP_WAIT:
        return (may_not_vote & REDLOCK_NODE(node)) == 0;
    case REDLOCK_OP_EXTEND:
        return (may_not_vote_by_clock & ~lease->keys.backing & REDLOCK_NODE(node)) == 0;
    default:
        return true;
    }
}

bool redlock_lease_is_capped(const struct redlock_lease_core *lease) {
    return lease->plan.auto_extend && lease->next_try_ns == REDLOCK_NEVER_NS;
}

int64_t redlock_lease_held_until_ns(const struct redlock_lease_core *lease) {
    const bool held = lease->state == REDLOCK_LEASE_HELD || lease->state == REDLOCK_LEASE_EXTENDING;
    return held && lease->was_held ? lease->deadline_ns : 0;
}
