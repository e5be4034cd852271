/* The lease's state machine: the table above enum redlock_lease_state, as code. */
#include "core/lease.h"

#include <assert.h>

#include "core/backoff.h"
#include "core/planted.h"
#include "core/validity.h"

/* A failed renewal is tried again after a quarter of what is left, but not sooner than this. */
#define RENEWAL_RETRY_MIN_MS 10

static int64_t min_ns(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static redlock_nodes all_nodes(const struct redlock_lease_core *lease) {
    return redlock_nodes_all(lease->node_count);
}

/* R1: the round starts now, before its first byte is sent. */
static void start_round(struct redlock_lease_core *lease, enum redlock_operation operation, redlock_nodes nodes,
                        int64_t now_ns, struct redlock_actions *actions) {
    redlock_round_start(&lease->votes, lease->node_count, nodes);
    lease->operation = operation;
    lease->round++;
    lease->start_ns = now_ns;
    actions->send = operation;
    actions->send_nodes = nodes;
    actions->round = lease->round;
}

/* R8. Not twice: the nodes are somebody else's duty from here on. */
static void clean_up(struct redlock_lease_core *lease, struct redlock_actions *actions) {
    actions->cleanup = lease->touched;
    lease->touched = 0;
}

static void tell_extended(struct redlock_lease_core *lease, int code, struct redlock_actions *actions) {
    if (!lease->extend_by_caller) {
        return;
    }
    lease->extend_by_caller = false;
    actions->extended = true;
    actions->extended_code = code;
}

static void end_acquire(struct redlock_lease_core *lease, int code, struct redlock_actions *actions) {
    lease->state = REDLOCK_LEASE_ENDED;
    actions->acquired = true;
    actions->acquired_code = code;
}

static void begin_attempt(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    int64_t deadline_ns = redlock_deadline_ns(now_ns, lease->plan.ttl_ms);
    if (deadline_ns <= now_ns) {
        end_acquire(lease, REDLOCK_ERR_TOO_SLOW, actions);
        return;
    }
    start_round(lease, REDLOCK_OP_ACQUIRE, all_nodes(lease), now_ns, actions);
    lease->state = REDLOCK_LEASE_ACQUIRING;
    lease->attempts++;
    lease->touched = all_nodes(lease);
    lease->round_ttl_ms = lease->plan.ttl_ms;
    lease->deadline_ns = deadline_ns;
}

static void lose_attempt(struct redlock_lease_core *lease, int code, int64_t now_ns, struct redlock_actions *actions) {
    const struct redlock_plan *plan = &lease->plan;
    clean_up(lease, actions);
    lease->last_code = code;
    if (plan->wait_timeout_ms == 0 || now_ns >= lease->wait_until_ns) {
        end_acquire(lease, code, actions);
        return;
    }
    int64_t delay_ns = redlock_delay_between_ns(&lease->jitter, plan->retry_delay_min_ms, plan->retry_delay_max_ms);
    lease->state = REDLOCK_LEASE_WAITING;
    lease->next_try_ns = redlock_after_ns(now_ns, delay_ns);
}

static int64_t renewals_end_ns(const struct redlock_lease_core *lease) {
    int64_t max_ms = lease->plan.auto_extend_max_ms;
    return max_ms > 0 ? redlock_after_ms(lease->begun_ns, max_ms) : REDLOCK_NEVER_NS;
}

static void schedule_renewal(struct redlock_lease_core *lease, int64_t when_ns) {
    bool allowed = lease->plan.auto_extend && when_ns < renewals_end_ns(lease);
    lease->next_try_ns = allowed ? when_ns : REDLOCK_NEVER_NS;
}

/* A third of the ttl, or up to a tenth of that sooner: leases that were taken together are not renewed together. */
static int64_t renewal_delay_ns(struct redlock_lease_core *lease) {
    const int64_t third_ns = lease->round_ttl_ms * REDLOCK_NS_PER_MS / 3;
    return redlock_between_ns(&lease->jitter, third_ns - third_ns / 10, third_ns);
}

/* The current round is WON, in time. */
static void hold(struct redlock_lease_core *lease, int64_t now_ns) {
    if (!lease->was_held) {
        lease->begun_ns = now_ns;
    }
    /* R12: no extension shortens a key, so the later deadline stands, whichever request made it. */
    const int64_t round_ns = redlock_deadline_ns(lease->start_ns, lease->round_ttl_ms);
    if (!lease->was_held || round_ns > lease->deadline_ns) {
        lease->deadline_ns = round_ns;
    }
    lease->was_held = true;
    lease->state = REDLOCK_LEASE_HELD;
    if (lease->plan.auto_extend) {
        schedule_renewal(lease, lease->start_ns + renewal_delay_ns(lease));
    } else {
        lease->next_try_ns = REDLOCK_NEVER_NS;
    }
}

static void lose_lease(struct redlock_lease_core *lease, bool by_votes, struct redlock_actions *actions) {
    clean_up(lease, actions);
    lease->state = REDLOCK_LEASE_LOST;
    actions->lost = lease->was_held;
    actions->lost_by_votes = lease->was_held && by_votes;
    tell_extended(lease, REDLOCK_ERR_LOST, actions);
}

/* R13: the reason would still depend on nodes that are silent. Each answers or times out, so the wait is short. */
static bool is_reason_open(const struct redlock_round *votes) {
    return redlock_round_answered(votes) && !redlock_round_answered_by_now(votes);
}

static int reason_by_now(const struct redlock_round *votes) {
    return redlock_round_answered_by_now(votes) ? REDLOCK_ERR_CONTENDED : REDLOCK_ERR_NO_QUORUM;
}

static void win_attempt(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    if (now_ns >= lease->deadline_ns) {
        lose_attempt(lease, REDLOCK_ERR_TOO_SLOW, now_ns, actions);
        return;
    }
    hold(lease, now_ns);
    actions->acquired = true;
    actions->acquired_code = REDLOCK_OK;
}

static void decide_acquire(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    const struct redlock_round *votes = &lease->votes;
    enum redlock_outcome outcome = redlock_round_outcome(votes);
    bool wait_over = now_ns >= lease->wait_until_ns;
    if (outcome == REDLOCK_ROUND_WON) {
        win_attempt(lease, now_ns, actions);
    } else if (outcome == REDLOCK_ROUND_LOST && !is_reason_open(votes)) {
        lose_attempt(lease, reason_by_now(votes), now_ns, actions);
    } else if (wait_over && lease->last_code != REDLOCK_OK) {
        lose_attempt(lease, lease->last_code, now_ns, actions); /* cut short: the attempt before tells more */
    } else if (wait_over || now_ns >= lease->deadline_ns) {
        lose_attempt(lease, reason_by_now(votes), now_ns, actions);
    }
}

static void start_extend(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    int64_t candidate_ns = redlock_deadline_ns(now_ns, lease->plan.ttl_ms);
    start_round(lease, REDLOCK_OP_EXTEND, all_nodes(lease), now_ns, actions);
    lease->state = REDLOCK_LEASE_EXTENDING;
    lease->round_ttl_ms = lease->plan.ttl_ms;
    if (!lease->was_held) {
        lease->deadline_ns = candidate_ns;
    }
}

static void fail_extend(struct redlock_lease_core *lease, int code, int64_t now_ns, struct redlock_actions *actions) {
    tell_extended(lease, code, actions);
    lease->state = lease->was_held ? REDLOCK_LEASE_HELD : REDLOCK_LEASE_ADOPTED;
    int64_t delay_ms = redlock_validity_ms(lease->deadline_ns, now_ns) / 4;
    if (delay_ms < RENEWAL_RETRY_MIN_MS) {
        delay_ms = RENEWAL_RETRY_MIN_MS;
    }
    schedule_renewal(lease, now_ns + redlock_delay_between_ns(&lease->jitter, delay_ms, delay_ms + delay_ms / 4));
}

/* Too few nodes are left that may hold our key (those that were not asked never did): a quorum of ours cannot exist. */
static bool denied_by_most(const struct redlock_round *votes) {
    return redlock_nodes_count(votes->all & ~(votes->denied | votes->abstained)) < votes->quorum;
}

/* The deadline has come, of the lease or, where it was never held, of the round. */
static void pass_deadline(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    bool won = redlock_round_outcome(&lease->votes) == REDLOCK_ROUND_WON;
    if (lease->was_held) {
        lose_lease(lease, false, actions);
    } else {
        fail_extend(lease, won ? REDLOCK_ERR_TOO_SLOW : REDLOCK_ERR_NO_QUORUM, now_ns, actions);
    }
}

/* What the lease's deadline does not stop is in time: it is the later of the old one and, once won, the round's own. */
static void decide_extend(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    if (now_ns >= lease->deadline_ns && !REDLOCK_PLANTED(EXTEND_AFTER_END)) {
        pass_deadline(lease, now_ns, actions);
        return;
    }
    switch (redlock_round_outcome(&lease->votes)) {
    case REDLOCK_ROUND_WON:
        tell_extended(lease, REDLOCK_OK, actions);
        hold(lease, now_ns);
        break;
    case REDLOCK_ROUND_LOST:
        if (denied_by_most(&lease->votes)) {
            lose_lease(lease, true, actions);
        } else {
            fail_extend(lease, REDLOCK_ERR_NO_QUORUM, now_ns, actions);
        }
        break;
    case REDLOCK_ROUND_PENDING:
        break;
    }
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

static void on_extend(struct redlock_lease_core *lease, const struct redlock_event *event,
                      struct redlock_actions *actions) {
    int check = redlock_lease_extend_check(lease, event->now_ns);
    if (check == REDLOCK_ERR_BUSY) {
        return;
    }
    bool too_short = redlock_deadline_ns(0, event->ttl_ms) <= 0;
    if (check == REDLOCK_OK && !too_short) {
        lease->extend_by_caller = true;
        lease->plan.ttl_ms = event->ttl_ms;
        start_extend(lease, event->now_ns, actions);
        return;
    }
    if (check == REDLOCK_ERR_LOST && (lease->state == REDLOCK_LEASE_HELD || lease->state == REDLOCK_LEASE_EXTENDING)) {
        lose_lease(lease, false, actions);
    }
    actions->extended = true;
    actions->extended_code = check == REDLOCK_OK ? REDLOCK_ERR_TOO_SLOW : check;
}

/* R15: LOST is said only where it is known; where silent nodes leave it open, every vote is waited for. */
static void decide_release(struct redlock_lease_core *lease, struct redlock_actions *actions) {
    const struct redlock_round *votes = &lease->votes;
    if (redlock_round_outcome(votes) == REDLOCK_ROUND_WON) {
        actions->released_code = REDLOCK_OK;
    } else if (denied_by_most(votes)) {
        actions->released_code = REDLOCK_ERR_LOST;
    } else if (redlock_round_pending(votes) == 0) {
        actions->released_code = REDLOCK_ERR_NO_QUORUM;
    } else {
        return;
    }
    lease->state = REDLOCK_LEASE_ENDED;
    actions->released = true;
}

static void on_release(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    switch (lease->state) {
    case REDLOCK_LEASE_ADOPTED:
    case REDLOCK_LEASE_HELD:
    case REDLOCK_LEASE_EXTENDING:
        tell_extended(lease, REDLOCK_ERR_CANCELLED, actions);
        lease->state = REDLOCK_LEASE_RELEASING;
        assert(redlock_nodes_count(lease->touched) >= lease->votes.quorum);
        start_round(lease, REDLOCK_OP_RELEASE, lease->touched, now_ns, actions);
        break;
    case REDLOCK_LEASE_LOST:
        lease->state = REDLOCK_LEASE_ENDED;
        actions->released = true;
        actions->released_code = REDLOCK_ERR_LOST;
        break;
    default:
        break;
    }
}

static void on_cancel(struct redlock_lease_core *lease, int code, struct redlock_actions *actions) {
    if (lease->state != REDLOCK_LEASE_ACQUIRING && lease->state != REDLOCK_LEASE_WAITING) {
        return;
    }
    clean_up(lease, actions);
    end_acquire(lease, code, actions);
}

/* When the clock alone ends a lease that is held or being extended (R3). */
static int64_t loss_ns(const struct redlock_lease_core *lease) {
    bool put_off = REDLOCK_PLANTED(LOSS_ON_REPLY_ONLY) ||
                   (REDLOCK_PLANTED(EXTEND_AFTER_END) && lease->state == REDLOCK_LEASE_EXTENDING);
    return put_off ? REDLOCK_NEVER_NS : lease->deadline_ns;
}

static void on_timer(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    bool ended = now_ns >= loss_ns(lease);
    bool due = now_ns >= lease->next_try_ns;
    switch (lease->state) {
    case REDLOCK_LEASE_ACQUIRING:
        decide_acquire(lease, now_ns, actions);
        break;
    case REDLOCK_LEASE_WAITING:
        if (now_ns >= lease->wait_until_ns) {
            end_acquire(lease, lease->last_code, actions);
        } else if (due) {
            begin_attempt(lease, now_ns, actions);
        }
        break;
    case REDLOCK_LEASE_HELD:
        if (ended && !(due && REDLOCK_PLANTED(EXTEND_AFTER_END))) {
            lose_lease(lease, false, actions);
        } else if (due && now_ns < renewals_end_ns(lease)) {
            start_extend(lease, now_ns, actions);
        } else if (due) {
            lease->next_try_ns = REDLOCK_NEVER_NS;
        }
        break;
    case REDLOCK_LEASE_EXTENDING:
        if (ended) {
            pass_deadline(lease, now_ns, actions);
        }
        break;
    default:
        break;
    }
}

/* Votes of the current round have come in. */
static void decide(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    switch (lease->state) {
    case REDLOCK_LEASE_ACQUIRING:
        decide_acquire(lease, now_ns, actions);
        break;
    case REDLOCK_LEASE_EXTENDING:
        decide_extend(lease, now_ns, actions);
        break;
    case REDLOCK_LEASE_RELEASING:
        decide_release(lease, actions);
        break;
    case REDLOCK_LEASE_HELD:
        if (now_ns >= lease->deadline_ns) {
            lose_lease(lease, false, actions);
        } else if (denied_by_most(&lease->votes)) {
            lose_lease(lease, true, actions);
        }
        break;
    default:
        break;
    }
}

static void on_votes(struct redlock_lease_core *lease, redlock_nodes nodes, redlock_vote_kind vote, int64_t now_ns,
                     struct redlock_actions *actions) {
    bool untouched = vote == REDLOCK_VOTE_FAILED || vote == REDLOCK_VOTE_ABSTAINED ||
                     (REDLOCK_PLANTED(NO_RELEASE_TIMED_OUT) && vote == REDLOCK_VOTE_UNKNOWN);
    redlock_nodes counted = redlock_round_vote(&lease->votes, nodes & all_nodes(lease), vote);
    if (untouched && lease->operation == REDLOCK_OP_ACQUIRE) {
        lease->touched &= ~counted;
    }
    decide(lease, now_ns, actions);
}

static void on_begin(struct redlock_lease_core *lease, const struct redlock_event *event,
                     struct redlock_actions *actions) {
    if (lease->state != REDLOCK_LEASE_IDLE) {
        return;
    }
    lease->plan = *event->plan;
    /* With no time to wait, the one attempt is bounded by its votes and its deadline. */
    if (lease->plan.wait_timeout_ms > 0) {
        lease->wait_until_ns = redlock_after_ms(event->now_ns, lease->plan.wait_timeout_ms);
    }
    begin_attempt(lease, event->now_ns, actions);
}

static void on_adopt(struct redlock_lease_core *lease, const struct redlock_event *event) {
    if (lease->state != REDLOCK_LEASE_IDLE) {
        return;
    }
    lease->plan = *event->plan;
    lease->state = REDLOCK_LEASE_ADOPTED;
    lease->touched = all_nodes(lease);
}

void redlock_lease_init(struct redlock_lease_core *lease, unsigned node_count, uint32_t jitter_seed) {
    *lease = (struct redlock_lease_core){.state = REDLOCK_LEASE_IDLE,
                                         .node_count = (uint8_t)node_count,
                                         .jitter = jitter_seed,
                                         .wait_until_ns = REDLOCK_NEVER_NS,
                                         .next_try_ns = REDLOCK_NEVER_NS};
    redlock_round_start(&lease->votes, node_count, 0);
}

void redlock_lease_step(struct redlock_lease_core *lease, const struct redlock_event *event,
                        struct redlock_actions *actions) {
    *actions = (struct redlock_actions){.send = REDLOCK_OP_NONE};
    switch (event->type) {
    case REDLOCK_EVENT_BEGIN:
        on_begin(lease, event, actions);
        break;
    case REDLOCK_EVENT_ADOPT:
        on_adopt(lease, event);
        break;
    case REDLOCK_EVENT_VOTE:
        if (event->round == lease->round) {
            on_votes(lease, event->nodes, event->vote, event->now_ns, actions);
        }
        break;
    case REDLOCK_EVENT_REFUSED:
        on_votes(lease, event->nodes, REDLOCK_VOTE_FAILED, event->now_ns, actions);
        break;
    case REDLOCK_EVENT_TIMER:
        on_timer(lease, event->now_ns, actions);
        break;
    case REDLOCK_EVENT_CANCEL:
        on_cancel(lease, event->code, actions);
        break;
    case REDLOCK_EVENT_EXTEND:
        on_extend(lease, event, actions);
        break;
    case REDLOCK_EVENT_RELEASE:
        on_release(lease, event->now_ns, actions);
        break;
    }
}

int64_t redlock_lease_next_ns(const struct redlock_lease_core *lease) {
    switch (lease->state) {
    case REDLOCK_LEASE_ACQUIRING:
        return min_ns(lease->deadline_ns, lease->wait_until_ns);
    case REDLOCK_LEASE_WAITING:
        return min_ns(lease->next_try_ns, lease->wait_until_ns);
    case REDLOCK_LEASE_HELD:
        return min_ns(loss_ns(lease), lease->next_try_ns);
    case REDLOCK_LEASE_EXTENDING:
        return loss_ns(lease);
    default:
        return REDLOCK_NEVER_NS;
    }
}

bool redlock_lease_is_capped(const struct redlock_lease_core *lease) {
    return lease->plan.auto_extend && lease->next_try_ns == REDLOCK_NEVER_NS;
}

int64_t redlock_lease_held_until_ns(const struct redlock_lease_core *lease) {
    bool held = lease->state == REDLOCK_LEASE_HELD || lease->state == REDLOCK_LEASE_EXTENDING;
    return held && lease->was_held ? lease->deadline_ns : 0;
}
