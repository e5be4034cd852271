/* An attempt to acquire: asks the nodes, wins or loses, gets a fencing token. These are the states
 * before HELD in core/lease_state.h. */
#include "core/attempt.h"

#include <assert.h>

#include "core/held.h"
#include "core/planted.h"
#include "core/time.h"
#include "core/waiter.h"

void redlock_attempt_end(struct redlock_lease_core *lease, int code, struct redlock_actions *actions) {
    assert(code != REDLOCK_OK && !redlock_lease_is_held(lease));
    lease->state = REDLOCK_LEASE_ENDED;
    actions->acquired = true;
    actions->acquired_code = code;
}

static bool may_queue(const struct redlock_lease_core *lease, int64_t now_ns) {
    return lease->grants && !lease->grants->barred && now_ns >= lease->grants->polls_until_ns;
}

static void lose(struct redlock_lease_core *lease, int code, const struct redlock_event *event,
                 struct redlock_actions *actions) {
    assert(code != REDLOCK_OK && !redlock_lease_is_held(lease));
    const int64_t now_ns = event->now_ns;
    redlock_lease_clean_up(lease, actions);
    lease->last_code = (int8_t)code;
    if (lease->plan.wait_timeout_ms == 0 || now_ns >= lease->wait_until_ns) {
        redlock_attempt_end(lease, code, actions);
        return;
    }
    actions->round_over = true;
    actions->round_code = code;
    /* Without a fencing token the lock is of no use. A new place would be served at once, again and
     * again, so try after the delay. */
    if (may_queue(lease, now_ns) && lease->state != REDLOCK_LEASE_FENCING) {
        redlock_waiter_enter(lease, event, actions);
        return;
    }
    lease->state = REDLOCK_LEASE_RETRYING;
    const bool rests = REDLOCK_PLANTED(PERMITS_GATE_RESTS) && lease->plan.slots;
    lease->next_try_ns = lease->plan.at_no_gate || rests ? REDLOCK_NEVER_NS : redlock_lease_retry_ns(lease, now_ns);
}

void redlock_attempt_begin(struct redlock_lease_core *lease, const struct redlock_event *event,
                           struct redlock_actions *actions) {
    const int64_t deadline_ns = redlock_deadline_ns(event->now_ns, lease->plan.ttl_ms);
    const redlock_nodes asked = redlock_nodes_all(lease->node_count) & ~event->may_not_vote;
    if (deadline_ns <= event->now_ns) {
        redlock_attempt_end(lease, REDLOCK_ERR_TOO_SLOW, actions);
        return;
    }
    if (lease->plan.fencing) {
        const bool is_there = redlock_fence_propose(&lease->fence, event->wall_us);
        assert(is_there); /* we follow only counters that a clock explains */
    }
    lease->fence_written = false;
    if (event->in_line && may_queue(lease, event->now_ns)) {
        redlock_waiter_enter(lease, event, actions);
        return;
    }
    if (lease->grants) { /* late grants of the last place say nothing of this token */
        redlock_grants_begin(lease->grants, lease->node_count, 0);
    }
    actions->fresh_token = true;
    lease->attempts++;
    lease->round_ttl_ms = lease->plan.ttl_ms;
    lease->deadline_ns = deadline_ns;
    if (redlock_nodes_count(asked) < lease->votes.quorum) {
        redlock_lease_start_round(lease, REDLOCK_OP_ACQUIRE, 0, event->now_ns, actions);
        lose(lease, REDLOCK_ERR_NO_QUORUM, event, actions);
        return;
    }
    redlock_lease_start_round(lease, REDLOCK_OP_ACQUIRE, asked, event->now_ns, actions);
    lease->state = REDLOCK_LEASE_ACQUIRING;
    lease->heal_ns = redlock_held_heal_ns(lease);
}

/* R13: the reason still depends on silent nodes. Each of them answers or times out soon, so
 * wait. */
static bool is_reason_open(const struct redlock_round *votes) {
    return redlock_round_answered(votes) && !redlock_round_answered_by_now(votes);
}

static int reason_by_now(const struct redlock_round *votes) {
    return redlock_round_answered_by_now(votes) ? REDLOCK_ERR_CONTENDED : REDLOCK_ERR_NO_QUORUM;
}

static void win(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    redlock_held_begin(lease, now_ns);
    actions->acquired = true;
    actions->acquired_code = REDLOCK_OK;
}

/* The nodes that granted the lock. */
static redlock_nodes granted(const struct redlock_lease_core *lease) {
    return lease->operation == REDLOCK_OP_WAIT ? lease->grants->granted : lease->votes.granted;
}

/* Nodes that have raised their counter, and nodes that may still raise it to a higher number. */
static redlock_nodes may_accept(const struct redlock_lease_core *lease) {
    const redlock_nodes beaten = lease->operation == REDLOCK_OP_FENCE ? lease->fence.not_below : 0;
    return granted(lease) | redlock_round_pending(&lease->votes) | beaten;
}

/* Why no number is left: the counters of a quorum are used up (LIMIT), or those of fewer nodes are,
 * and the other nodes are no quorum (NO_QUORUM). */
static int reason_without_number(const struct redlock_lease_core *lease) {
    const bool ended = redlock_nodes_count(lease->fence.far) >= lease->votes.quorum;
    return ended ? REDLOCK_ERR_LIMIT : REDLOCK_ERR_NO_QUORUM;
}

/*
 * The slow path of docs/protocols.md, "Fencing tokens": writes a number above every counter that
 * was seen to the nodes where the lock may be ours. The number is the fencing token once a quorum
 * has raised its counters to it. Ignores a counter that may be a lie, as long as the other nodes
 * make a quorum.
 */
static void write_back(struct redlock_lease_core *lease, const struct redlock_event *event,
                       struct redlock_actions *actions) {
    assert(lease->plan.fencing);
    const struct redlock_round *votes = &lease->votes;
    const redlock_nodes not_ours = lease->operation == REDLOCK_OP_ACQUIRE ? votes->denied
                                   : lease->operation == REDLOCK_OP_WAIT  ? ~granted(lease)
                                                                          : ~votes->asked;
    const bool follow = redlock_nodes_count(may_accept(lease) & ~lease->fence.far) < votes->quorum;
    /* Who reads takes what it met, so that others need not follow again; but a waiter asked long
     * ago. */
    const int64_t wall_us = lease->fence.reads && lease->operation != REDLOCK_OP_WAIT ? 0 : event->wall_us;
    if (!redlock_fence_raise(&lease->fence, wall_us, follow)) {
        lease->state = REDLOCK_LEASE_FENCING;
        lose(lease, reason_without_number(lease), event, actions);
        return;
    }
    lease->state = REDLOCK_LEASE_FENCING;
    lease->fence_written = true;
    redlock_lease_start_round(lease, REDLOCK_OP_FENCE, lease->keys.to_release & ~not_ours, event->now_ns, actions);
}

/* Whether the token counts in the broken variants of docs/protocols.md, "Fencing tokens". */
static bool is_fenced_as_planted(struct redlock_lease_core *lease, int64_t wall_us) {
    if (REDLOCK_PLANTED(FENCE_INCR)) {
        lease->fence.token = lease->fence.seen;
        return true;
    }
    return REDLOCK_PLANTED(FENCE_NO_WRITE_BACK) && redlock_fence_raise(&lease->fence, wall_us, true);
}

static bool is_fenced(struct redlock_lease_core *lease, int64_t wall_us) {
    return !lease->plan.fencing || lease->operation == REDLOCK_OP_FENCE ||
           (lease->operation == REDLOCK_OP_ACQUIRE &&
            redlock_fence_is_won(&lease->fence, lease->votes.granted, lease->votes.quorum)) ||
           is_fenced_as_planted(lease, wall_us);
}

static void on_won(struct redlock_lease_core *lease, const struct redlock_event *event,
                   struct redlock_actions *actions) {
    if (event->now_ns >= lease->deadline_ns) {
        lose(lease, REDLOCK_ERR_TOO_SLOW, event, actions);
        return;
    }
    if (lease->operation == REDLOCK_OP_ACQUIRE) {
        lease->keys.backing = lease->votes.granted;
    }
    if (is_fenced(lease, event->wall_us)) {
        win(lease, event->now_ns, actions);
    } else {
        write_back(lease, event, actions);
    }
}

/* Some counters are not below the number. With a higher number, a quorum could still accept. */
static bool is_beaten(const struct redlock_lease_core *lease) {
    return lease->operation == REDLOCK_OP_FENCE && lease->fence.not_below != 0 &&
           redlock_nodes_count(may_accept(lease)) >= lease->votes.quorum;
}

void redlock_attempt_decide(struct redlock_lease_core *lease, const struct redlock_event *event,
                            struct redlock_actions *actions) {
    const struct redlock_round *votes = &lease->votes;
    const enum redlock_outcome outcome = redlock_round_outcome(votes);
    const bool wait_over = event->now_ns >= lease->wait_until_ns, in_time = event->now_ns < lease->deadline_ns;
    if (outcome == REDLOCK_ROUND_WON) {
        on_won(lease, event, actions);
    } else if (outcome == REDLOCK_ROUND_LOST && in_time && !wait_over && is_beaten(lease)) {
        write_back(lease, event, actions);
    } else if (outcome == REDLOCK_ROUND_LOST && !is_reason_open(votes)) {
        lose(lease, reason_by_now(votes), event, actions);
    } else if (wait_over && lease->last_code != REDLOCK_OK) {
        /* No time was left for this attempt, so report the one before. */
        lose(lease, lease->last_code, event, actions);
    } else if (wait_over || !in_time) {
        lose(lease, reason_by_now(votes), event, actions);
    }
}

void redlock_attempt_queued(struct redlock_lease_core *lease, const struct redlock_event *event,
                            struct redlock_actions *actions) {
    assert(lease->state == REDLOCK_LEASE_QUEUED && lease->grants);
    redlock_waiter_note(lease, event);
    if (redlock_waiter_has_quorum(lease)) {
        redlock_waiter_stand_on_grants(lease);
        on_won(lease, event, actions);
    } else if (event->now_ns >= lease->wait_until_ns) {
        lose(lease, redlock_waiter_reason(lease), event, actions);
    } else if (event->type == REDLOCK_EVENT_POLL) {
        /* These nodes answer, but keep no queue. So what the last try found still stands. */
        const int reason = lease->last_code != REDLOCK_OK ? lease->last_code : redlock_waiter_reason(lease);
        redlock_waiter_poll(lease, event->now_ns);
        lose(lease, reason, event, actions);
    } else {
        redlock_waiter_go_on(lease, event, actions);
    }
}

/* A node whose clock jumped may have lost the key (docs/protocols.md, "Clock guard"). */
void redlock_attempt_void(struct redlock_lease_core *lease, const struct redlock_event *event,
                          struct redlock_actions *actions) {
    assert(lease->state == REDLOCK_LEASE_ACQUIRING || lease->state == REDLOCK_LEASE_FENCING);
    if (lease->operation == REDLOCK_OP_ACQUIRE) {
        redlock_round_void(&lease->votes, event->nodes);
        redlock_attempt_decide(lease, event, actions);
        return;
    }
    const bool breaks = redlock_keys_jump_breaks(lease->keys.backing, event->nodes, lease->votes.quorum);
    lease->keys.backing &= ~event->nodes;
    if (breaks) {
        lose(lease, REDLOCK_ERR_NO_QUORUM, event, actions);
    }
}
