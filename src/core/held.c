/* The states HELD and EXTENDING of core/lease_state.h, the extends of ADOPTED, and how a lease is
 * lost. */
#include "core/held.h"

#include <assert.h>

#include "core/planted.h"
#include "core/time.h"

/* A failed renewal is tried again after a quarter of the time left, but never sooner than this. */
#define RENEWAL_RETRY_MIN_MS 10

static void end_round(int code, struct redlock_actions *actions) {
    actions->round_over = true;
    actions->round_code = code;
}

void redlock_held_answer(struct redlock_lease_core *lease, int code, struct redlock_actions *actions) {
    if (!lease->extend_by_caller) {
        return;
    }
    lease->extend_by_caller = false;
    actions->extended = true;
    actions->extended_code = code;
}

static int64_t renewals_end_ns(const struct redlock_lease_core *lease) {
    int64_t max_ms = lease->plan.auto_extend_max_ms;
    return max_ms > 0 ? redlock_after_ms(lease->begun_ns, max_ms) : REDLOCK_NEVER_NS;
}

static void schedule_renewal(struct redlock_lease_core *lease, int64_t when_ns) {
    bool allowed = lease->plan.auto_extend && when_ns < renewals_end_ns(lease);
    lease->next_try_ns = allowed ? when_ns : REDLOCK_NEVER_NS;
}

/* A third of the ttl, or up to a tenth of that sooner: leases that were acquired together should
 * not renew together. */
static int64_t renewal_delay_ns(struct redlock_lease_core *lease) {
    const int64_t third_ns = lease->round_ttl_ms * REDLOCK_NS_PER_MS / 3;
    return redlock_between_ns(&lease->jitter, third_ns - third_ns / 10, third_ns);
}

/* Whether the deadline was set before the current round won. */
static bool is_deadline_set(const struct redlock_lease_core *lease) {
    return lease->operation == REDLOCK_OP_FENCE || lease->operation == REDLOCK_OP_WAIT;
}

/* The lease came from a queue, maybe with a second round trip for its fencing token. */
static bool stands_on_grants(const struct redlock_lease_core *lease) {
    return lease->operation == REDLOCK_OP_WAIT || (lease->grants && lease->operation == REDLOCK_OP_FENCE);
}

/* The time that the deadline is counted from. A FENCE round starts later than that, and grants of a
 * queue may come from earlier WAITs. */
static int64_t term_start_ns(const struct redlock_lease_core *lease) {
    return is_deadline_set(lease) ? lease->deadline_ns - redlock_deadline_ns(0, lease->round_ttl_ms) : lease->start_ns;
}

int64_t redlock_held_heal_ns(const struct redlock_lease_core *lease) {
    return lease->plan.heal ? term_start_ns(lease) + lease->round_ttl_ms * REDLOCK_NS_PER_MS / 10 : REDLOCK_NEVER_NS;
}

/*
 * Heals only after a won round and before the old deadline (docs/protocols.md, "Healing"). A tenth
 * of the ttl is left for late votes; grants of a queue may have come long after the start. Locks
 * that are held for less time are not healed, which saves requests.
 */
static void schedule_heal(struct redlock_lease_core *lease, int64_t now_ns, int64_t before_ns) {
    const int64_t late_ns = stands_on_grants(lease) ? now_ns - term_start_ns(lease) : 0;
    const int64_t tenth_ns = redlock_after_ns(redlock_held_heal_ns(lease), late_ns);
    const int64_t half_ns = now_ns + (before_ns - now_ns) / 2;
    lease->heal_ns = !lease->plan.heal ? REDLOCK_NEVER_NS : tenth_ns < half_ns ? tenth_ns : half_ns;
    lease->heal_before_ns = before_ns;
}

static int64_t round_deadline_ns(const struct redlock_lease_core *lease) {
    return redlock_deadline_ns(term_start_ns(lease), lease->round_ttl_ms);
}

/* Keep the later deadline (R12), unless this round shows that a quorum no longer has keys that live
 * so long. */
static bool does_deadline_stand(const struct redlock_lease_core *lease) {
    return lease->was_held && round_deadline_ns(lease) <= lease->deadline_ns &&
           redlock_nodes_count(lease->keys.backing & ~lease->votes.denied) >= lease->votes.quorum;
}

/* The lease now depends on the current round alone, and on the nodes that still grant it. */
static void stand_on_round(struct redlock_lease_core *lease) {
    const int64_t deadline_ns = round_deadline_ns(lease);
    lease->expiring_told =
        lease->expiring_told && (deadline_ns == lease->deadline_ns || REDLOCK_PLANTED(EXPIRING_ONCE));
    lease->deadline_ns = deadline_ns;
    lease->backing_grows = !is_deadline_set(lease);
    lease->keys.backing = lease->backing_grows ? lease->votes.granted : lease->keys.backing;
}

/* A waiter may have asked long ago: its grants are old, and little of the ttl is left. */
static void renew_if_short(struct redlock_lease_core *lease, int64_t now_ns) {
    const int64_t whole_ns = redlock_deadline_ns(0, lease->round_ttl_ms);
    if (lease->deadline_ns - now_ns < whole_ns / 4 * 3) {
        lease->next_try_ns = now_ns;
    }
}

void redlock_held_begin(struct redlock_lease_core *lease, int64_t now_ns) {
    const bool adopted = lease->operation == REDLOCK_OP_EXTEND && !lease->was_held;
    const int64_t old_deadline_ns = lease->deadline_ns;
    if (!lease->was_held) {
        lease->begun_ns = now_ns;
    }
    if (does_deadline_stand(lease)) {
        lease->keys.backing &= ~lease->votes.denied;
    } else {
        stand_on_round(lease);
    }
    lease->was_held = true;
    lease->state = REDLOCK_LEASE_HELD;
    if (lease->plan.auto_extend) {
        schedule_renewal(lease, term_start_ns(lease) + renewal_delay_ns(lease));
    } else {
        lease->next_try_ns = REDLOCK_NEVER_NS;
    }
    if (stands_on_grants(lease)) {
        renew_if_short(lease, now_ns);
    }
    if (adopted) {
        /* Nobody here knows whether it was held without a gap until now. */
        lease->heal_ns = REDLOCK_NEVER_NS;
    } else {
        schedule_heal(lease, now_ns, old_deadline_ns);
    }
}

void redlock_held_lose(struct redlock_lease_core *lease, enum redlock_lease_loss how, struct redlock_actions *actions) {
    assert(redlock_lease_is_held(lease));
    if (!redlock_lease_delays(lease)) {
        redlock_lease_clean_up(lease, actions);
    }
    if (lease->state == REDLOCK_LEASE_EXTENDING) {
        end_round(REDLOCK_ERR_LOST, actions);
    }
    lease->state = REDLOCK_LEASE_LOST;
    actions->lost = lease->was_held;
    actions->lost_by_votes = lease->was_held && how == REDLOCK_LOST_BY_VOTES;
    actions->lost_by_clock = lease->was_held && how == REDLOCK_LOST_BY_CLOCK;
    redlock_held_answer(lease, REDLOCK_ERR_LOST, actions);
}

static void start(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    int64_t candidate_ns = redlock_deadline_ns(now_ns, lease->plan.ttl_ms);
    lease->keys.backing = redlock_lease_backing_nodes(lease);
    lease->backing_grows = lease->renews_at_once = false;
    lease->heal_ns = REDLOCK_NEVER_NS;
    redlock_lease_start_round(lease, REDLOCK_OP_EXTEND, redlock_nodes_all(lease->node_count), now_ns, actions);
    lease->state = REDLOCK_LEASE_EXTENDING;
    lease->round_ttl_ms = lease->plan.ttl_ms;
    if (!lease->was_held) {
        lease->deadline_ns = candidate_ns;
    }
    if (lease->is_adopted) {
        /* Another client may have set keys, too. */
        lease->keys.may_have = redlock_nodes_all(lease->node_count);
    }
}

static void fail(struct redlock_lease_core *lease, int code, int64_t now_ns, struct redlock_actions *actions) {
    assert(lease->state == REDLOCK_LEASE_EXTENDING && code != REDLOCK_OK);
    end_round(code, actions);
    redlock_held_answer(lease, code, actions);
    lease->state = lease->was_held ? REDLOCK_LEASE_HELD : REDLOCK_LEASE_ADOPTED;
    int64_t delay_ms = redlock_validity_ms(lease->deadline_ns, now_ns) / 4;
    if (delay_ms < RENEWAL_RETRY_MIN_MS) {
        delay_ms = RENEWAL_RETRY_MIN_MS;
    }
    const int64_t delay_ns = redlock_delay_between_ns(&lease->jitter, delay_ms, delay_ms + delay_ms / 4);
    schedule_renewal(lease, lease->renews_at_once ? now_ns : now_ns + delay_ns);
}

static bool is_gone(const struct redlock_lease_core *lease) {
    return redlock_nodes_count(redlock_keys_may_have(&lease->keys, lease->operation, &lease->votes,
                                                     lease->fence.not_below)) < lease->votes.quorum;
}

void redlock_held_pass_deadline(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    assert(redlock_lease_is_held(lease));
    if (lease->was_held) {
        redlock_held_lose(lease, REDLOCK_LOST_AT_DEADLINE, actions);
    } else {
        const bool won = redlock_round_outcome(&lease->votes) == REDLOCK_ROUND_WON;
        fail(lease, won ? REDLOCK_ERR_TOO_SLOW : REDLOCK_ERR_NO_QUORUM, now_ns, actions);
    }
}

/* A vote before the lease's deadline is in time. The deadline is the later of the old one and, once
 * the round is won, the round's own. */
void redlock_held_decide(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    if (now_ns >= lease->deadline_ns && !REDLOCK_PLANTED(EXTEND_AFTER_END)) {
        redlock_held_pass_deadline(lease, now_ns, actions);
        return;
    }
    if (is_gone(lease)) {
        redlock_held_lose(lease, REDLOCK_LOST_BY_VOTES, actions);
        return;
    }
    switch (redlock_round_outcome(&lease->votes)) {
    case REDLOCK_ROUND_WON:
        if (!does_deadline_stand(lease) && now_ns >= round_deadline_ns(lease)) {
            redlock_held_lose(lease, REDLOCK_LOST_AT_DEADLINE, actions);
            break;
        }
        end_round(REDLOCK_OK, actions);
        redlock_held_answer(lease, REDLOCK_OK, actions);
        redlock_held_begin(lease, now_ns);
        break;
    case REDLOCK_ROUND_LOST:
        fail(lease, REDLOCK_ERR_NO_QUORUM, now_ns, actions);
        break;
    case REDLOCK_ROUND_PENDING:
        break;
    }
}

void redlock_held_late(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    assert(lease->state == REDLOCK_LEASE_HELD);
    if (now_ns >= lease->deadline_ns) {
        redlock_held_lose(lease, REDLOCK_LOST_AT_DEADLINE, actions);
    } else if (is_gone(lease)) {
        redlock_held_lose(lease, REDLOCK_LOST_BY_VOTES, actions);
    } else if (lease->operation == REDLOCK_OP_EXTEND && !lease->backing_grows &&
               redlock_round_outcome(&lease->votes) == REDLOCK_ROUND_WON && !does_deadline_stand(lease)) {
        stand_on_round(lease);
        actions->deadline_moved = true;
        if (now_ns >= lease->deadline_ns) {
            redlock_held_lose(lease, REDLOCK_LOST_AT_DEADLINE, actions);
        }
    }
}

void redlock_held_extend(struct redlock_lease_core *lease, const struct redlock_event *event,
                         struct redlock_actions *actions) {
    int check = redlock_lease_extend_check(lease, event->now_ns);
    if (check == REDLOCK_ERR_BUSY) {
        return;
    }
    bool too_short = redlock_deadline_ns(0, event->ttl_ms) <= 0;
    if (check == REDLOCK_OK && !too_short) {
        lease->extend_by_caller = true;
        lease->plan.ttl_ms = (int32_t)event->ttl_ms;
        start(lease, event->now_ns, actions);
        return;
    }
    if (check == REDLOCK_ERR_LOST && (lease->state == REDLOCK_LEASE_HELD || lease->state == REDLOCK_LEASE_EXTENDING)) {
        redlock_held_lose(lease, REDLOCK_LOST_AT_DEADLINE, actions);
    }
    actions->extended = true;
    actions->extended_code = check == REDLOCK_OK ? REDLOCK_ERR_TOO_SLOW : check;
}

static void heal(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    assert(lease->state == REDLOCK_LEASE_HELD && lease->plan.heal);
    lease->heal_ns = REDLOCK_NEVER_NS;
    if (now_ns >= lease->heal_before_ns) {
        return;
    }
    actions->heal = redlock_nodes_all(lease->node_count) & ~redlock_lease_backing_nodes(lease);
    redlock_keys_set_outside(&lease->keys, actions->heal);
}

void redlock_held_settle(struct redlock_lease_core *lease, const struct redlock_plan *plan, int64_t now_ns) {
    if (!redlock_lease_is_held(lease)) {
        return; /* lost in this very turn */
    }
    lease->plan.unsettled = false;
    lease->plan.auto_extend = plan->auto_extend;
    lease->plan.auto_extend_max_ms = plan->auto_extend_max_ms;
    lease->begun_ns = now_ns;
    if (lease->state == REDLOCK_LEASE_HELD) {
        schedule_renewal(lease, lease->next_try_ns);
        renew_if_short(lease, now_ns);
    }
}

int64_t redlock_held_expiring_ns(const struct redlock_lease_core *lease) {
    const bool told = lease->plan.expiring_ms == 0 || lease->expiring_told || !lease->was_held;
    return told ? REDLOCK_NEVER_NS : lease->deadline_ns - lease->plan.expiring_ms * REDLOCK_NS_PER_MS;
}

void redlock_held_due(struct redlock_lease_core *lease, int64_t now_ns, struct redlock_actions *actions) {
    assert(redlock_lease_is_held(lease));
    if (now_ns >= redlock_held_expiring_ns(lease)) {
        lease->expiring_told = actions->expiring = true;
    }
    if (lease->state == REDLOCK_LEASE_EXTENDING) {
        return;
    }
    if (now_ns >= lease->next_try_ns) {
        if (now_ns < renewals_end_ns(lease)) {
            start(lease, now_ns, actions);
            return;
        }
        lease->next_try_ns = REDLOCK_NEVER_NS;
    }
    if (now_ns >= lease->heal_ns) {
        heal(lease, now_ns, actions);
    }
}

/* A renewal that failed for want of answers need not wait for its delay: a node that did not answer
 * can be asked. So each node that comes back causes one round at most. */
void redlock_held_ready(struct redlock_lease_core *lease, redlock_nodes nodes, int64_t now_ns) {
    assert(redlock_lease_is_held(lease));
    const struct redlock_round *votes = &lease->votes;
    if (lease->operation != REDLOCK_OP_EXTEND || !(nodes & ~(votes->granted | votes->denied))) {
        return;
    }
    if (lease->state == REDLOCK_LEASE_EXTENDING) {
        lease->renews_at_once = true;
    } else if (lease->next_try_ns != REDLOCK_NEVER_NS && redlock_round_outcome(votes) == REDLOCK_ROUND_LOST) {
        lease->next_try_ns = now_ns;
    }
}

/* A step forward voids the votes that the node gave before it (docs/protocols.md, "Clock guard").
 * The votes of the current round are void too: the node may have given them before the step. */
void redlock_held_void(struct redlock_lease_core *lease, redlock_nodes nodes, int64_t now_ns,
                       struct redlock_actions *actions) {
    assert(redlock_lease_is_held(lease));
    const redlock_nodes backing = redlock_lease_backing_nodes(lease);
    lease->keys.backing = backing & ~nodes;
    redlock_round_void(&lease->votes, nodes);
    if (lease->was_held && redlock_keys_jump_breaks(backing, nodes, lease->votes.quorum)) {
        redlock_held_lose(lease, REDLOCK_LOST_BY_CLOCK, actions);
    } else if (lease->state == REDLOCK_LEASE_EXTENDING) {
        redlock_held_decide(lease, now_ns, actions);
    }
}
