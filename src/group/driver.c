/* Drives the core of one lease: steps it, does what it says, runs its callbacks, and ends it. */
#include "group/driver.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/planted.h"
#include "core/time.h"
#include "core/waiter.h"
#include "group/guards.h"
#include "group/line.h"
#include "group/owed.h"
#include "group/sending.h"
#include "group/slots.h"
#include "group/tell.h"
#include "group/waiting.h"
#include "result/result.h"

#define LOSS_SIZE 1024 /* the text of 31 nodes may be longer: then it is cut */

/* The library makes this release (R8). The place in a queue may be served until it is stale; then
 * the key lives for its ttl. */
static void owe(const struct redlock_lease *lease, redlock_nodes nodes, redlock_nodes uncertain,
                enum redlock_handing handing) {
    const int64_t stale_ms = lease->waiting ? redlock_waiter_stale_ms(lease->core.grants) : 0;
    if (lease->core.plan.slots) {
        redlock_slots_owe(lease, nodes, uncertain);
        return;
    }
    (void)redlock_owed_add(lease->group, &(struct redlock_owed_release){.target = lease->target,
                                                                        .token = redlock_handle_own_token(lease),
                                                                        .token_size = lease->token_size,
                                                                        .nodes = nodes,
                                                                        .uncertain = uncertain,
                                                                        .ttl_ms = lease->ttl_sent_max_ms + stale_ms,
                                                                        .handing = handing});
}

void redlock_driver_free(struct redlock_lease *lease) {
    struct redlock_group *group = lease->group;
    const redlock_nodes owing =
        redlock_lease_owing(&lease->core) | (lease->waiting ? redlock_waiting_nodes_in(lease, REDLOCK_PUSH_OWING) : 0);
    if (owing && !group->deleting) {
        /* The library goes on with the release on nodes that have not confirmed it (R8). */
        owe(lease, owing, owing & redlock_keys_late(&lease->core.keys, &lease->core.votes), REDLOCK_HAND_OVER);
    }
    if (lease->waiting) {
        group->lingering -= lease->life == REDLOCK_LIFE_LINGERING;
        redlock_waiting_end(lease);
    }
    redlock_handle_drop_texts(lease);
    redlock_requester_delist(group, &lease->requester);
    redlock_spares_give(&group->spares, lease, (size_t)lease->requester.blocks * REDLOCK_SPARE_BLOCK);
}

/* A node may hand the lock to this token while its place there is good, and anybody who heard the
 * push may say it again there. We must not answer it with a release: the key of a forgotten lease
 * may count for whoever adopted it, and the key of a lost one keeps the lock delay. So the token
 * must be known until no seal of it fits. */
static bool must_linger(const struct redlock_lease *lease) {
    return lease->waiting && redlock_waiting_nodes_in(lease, REDLOCK_PUSH_KEPT) != 0 &&
           !REDLOCK_PLANTED(PUSH_GIVES_FORGOTTEN);
}

static void linger(struct redlock_lease *lease) {
    assert(lease->waiting && lease->requester.in_flight == 0);
    redlock_handle_become(lease, REDLOCK_LIFE_LINGERING);
    lease->group->lingering++;
    redlock_schedule_set(&lease->group->schedule, &lease->requester.due,
                         redlock_after_ms(redlock_group_now_ns(lease->group), REDLOCK_LINE_SEAL_MS_MAX));
}

void redlock_driver_end(struct redlock_lease *lease) {
    const bool over = lease->life == REDLOCK_LIFE_FORGOTTEN ||
                      (lease->life == REDLOCK_LIFE_OVER && lease->core.state == REDLOCK_LEASE_ENDED);
    if (!over || lease->callbacks || lease->in_callback) {
        return;
    }
    if (must_linger(lease)) {
        linger(lease);
        return;
    }
    redlock_driver_free(lease);
}

static void queue_callback(struct redlock_lease *lease, unsigned what) {
    struct redlock_group *group = lease->group;
    const bool is_queued = lease->callbacks != 0;
    lease->callbacks |= (uint8_t)what;
    if (is_queued) {
        return;
    }
    lease->next_callback = NULL;
    if (group->callbacks_last) {
        group->callbacks_last->next_callback = lease;
    } else {
        group->callbacks_first = lease;
    }
    group->callbacks_last = lease;
}

static void note_fence(struct redlock_lease *lease) {
    if (lease->acquired_code == REDLOCK_OK && lease->core.plan.fencing) {
        lease->group->statistics.fenced_slow += lease->core.fence_written;
        lease->group->statistics.fenced_fast += !lease->core.fence_written;
    }
}

static void note_results(struct redlock_lease *lease, const struct redlock_actions *actions, int64_t now_ns) {
    struct redlock_group *group = lease->group;
    if (actions->acquired) {
        lease->acquired_code = (int8_t)actions->acquired_code;
        lease->span_ns = now_ns - lease->span_ns;
        note_fence(lease);
        queue_callback(lease, REDLOCK_CALLBACK_ACQUIRED);
    }
    if (actions->extended) {
        lease->extended_code = (int8_t)actions->extended_code;
        if (lease->extend_pending) {
            queue_callback(lease, REDLOCK_CALLBACK_EXTENDED);
        }
    }
    if (actions->expiring) {
        queue_callback(lease, REDLOCK_CALLBACK_EXPIRING);
    }
    if (actions->lost) {
        lease->loss = actions->lost_by_votes                  ? REDLOCK_LOSS_VOTES
                      : actions->lost_by_clock                ? REDLOCK_LOSS_CLOCK
                      : redlock_lease_is_capped(&lease->core) ? REDLOCK_LOSS_CAP
                                                              : REDLOCK_LOSS_DEADLINE;
        group->statistics.lost++;
        queue_callback(lease, REDLOCK_CALLBACK_LOST);
    }
    if (actions->released) {
        lease->released_code = (int8_t)actions->released_code;
        group->statistics.released += actions->released_code == REDLOCK_OK;
        queue_callback(lease, REDLOCK_CALLBACK_RELEASED);
    }
}

static void publish(struct redlock_lease *lease, int64_t now_ns) {
    struct redlock_group *group = lease->group;
    const int64_t until_ns = redlock_lease_held_until_ns(&lease->core);
    const int64_t before_ns = atomic_load_explicit(&lease->held_until_ns, memory_order_relaxed);
    if (until_ns != before_ns) {
        atomic_store_explicit(&lease->held_until_ns, until_ns, memory_order_release);
        if (lease->watch) {
            atomic_store_explicit(lease->watch, until_ns, memory_order_release);
        }
        group->statistics.leases_held += (uint64_t)(until_ns != 0) - (uint64_t)(before_ns != 0);
        if (until_ns == 0) {
            redlock_tell_held(lease, now_ns < before_ns ? now_ns : before_ns);
        }
    }
    redlock_schedule_set(&group->schedule, &lease->requester.due, redlock_lease_next_ns(&lease->core));
}

static int fresh_token(struct redlock_lease *lease, const struct redlock_actions *actions, int64_t now_ns) {
    const bool for_place = actions->send == REDLOCK_OP_WAIT;
    const int code = for_place ? redlock_line_open(&lease->group->line, &lease->group->env) : REDLOCK_OK;
    if (code != REDLOCK_OK || (actions->round == 1 && !for_place)) {
        return code; /* the token of the first try was drawn with the request */
    }
    return redlock_sending_draw_token(lease, now_ns, for_place);
}

void redlock_driver_feed(struct redlock_lease *lease, const struct redlock_event *event) {
    struct redlock_actions actions;
    const enum redlock_lease_state before = lease->core.state;
    redlock_lease_step(&lease->core, event, &actions);
    if (event->type == REDLOCK_EVENT_VOTE && lease->core.state == before && actions.send == REDLOCK_OP_NONE &&
        !actions.deadline_moved && before != REDLOCK_LEASE_QUEUED) {
        return; /* most votes decide nothing: nothing to do, and no timer changes */
    }
    if (actions.round_over) {
        redlock_tell_round_over(lease, &actions, event->now_ns);
    }
    if (actions.cleanup) { /* R8 */
        owe(lease, actions.cleanup, actions.uncertain, actions.handing);
    }
    redlock_nodes refused = 0;
    int random_code = REDLOCK_OK;
    if (actions.send != REDLOCK_OP_NONE) {
        if (actions.fresh_token) {
            random_code = fresh_token(lease, &actions, event->now_ns);
        }
        refused = random_code == REDLOCK_OK ? redlock_sending_round(lease, &actions) : 0;
    }
    if (actions.heal) {
        redlock_sending_heal(lease, actions.heal);
    }
    if (lease->waiting) {
        redlock_waiting_stepped(lease, before, &actions);
    }
    note_results(lease, &actions, event->now_ns);
    redlock_tell_log_step(lease, before, &actions, event->now_ns);
    if (random_code != REDLOCK_OK) {
        /* Without a token there is no attempt. Nothing was sent, so nothing needs a cleanup. */
        const enum redlock_lease_state then = lease->core.state;
        redlock_lease_step(
            &lease->core,
            &(struct redlock_event){.type = REDLOCK_EVENT_CANCEL, .now_ns = event->now_ns, .code = random_code},
            &actions);
        if (lease->waiting) {
            redlock_waiting_stepped(lease, then, &actions);
        }
        note_results(lease, &actions, event->now_ns);
    }
    if (refused) {
        redlock_driver_feed(lease, &(struct redlock_event){.type = REDLOCK_EVENT_REFUSED,
                                                           .now_ns = event->now_ns,
                                                           .nodes = refused,
                                                           .may_not_vote = event->may_not_vote,
                                                           .round = lease->core.round});
        return;
    }
    publish(lease, event->now_ns);
    if (lease->core.plan.slots && redlock_handle_permits(lease)->stepped) {
        redlock_handle_permits(lease)->stepped(lease, actions.round_over);
    }
}

/* The clock for fencing tokens: the clock of the client that is furthest ahead, as far as we
 * know. */
static int64_t wall_us(const struct redlock_group *group, const struct redlock_plan *plan) {
    return plan->fencing ? group->env.wall_us(group->env.ctx) + group->fence_ahead_us : 0;
}

int64_t redlock_driver_wall_us(const struct redlock_lease *lease) {
    return wall_us(lease->group, &lease->core.plan);
}

struct redlock_event redlock_driver_event(const struct redlock_lease *lease, enum redlock_event_type type,
                                          redlock_nodes nodes) {
    const int64_t now_ns = redlock_group_now_ns(lease->group);
    return (struct redlock_event){.type = type,
                                  .now_ns = now_ns,
                                  .nodes = nodes,
                                  .wall_us = redlock_driver_wall_us(lease),
                                  .may_not_vote = redlock_guards_may_not_vote(lease->group, now_ns)};
}

/* A first try would jump the queue, or nobody would be told of it, or it was made. */
static bool is_in_line(const struct redlock_lease *lease) {
    return lease->waiting && (lease->target->announced || lease->waiting->in_line ||
                              redlock_line_is_in_line(&lease->group->line, lease->target));
}

void redlock_driver_begin(struct redlock_lease *lease, const struct redlock_plan *plan, int64_t now_ns) {
    struct redlock_group *group = lease->group;
    redlock_driver_feed(lease, &(struct redlock_event){.type = REDLOCK_EVENT_BEGIN,
                                                       .now_ns = now_ns,
                                                       .wall_us = wall_us(group, plan),
                                                       .may_not_vote = redlock_guards_may_not_vote(group, now_ns),
                                                       .in_line = is_in_line(lease),
                                                       .plan = plan});
}

/* A jump of a clock lowers no counter. So votes for a fencing token still count while enough other
 * nodes back the lock itself. */
static bool is_void(const struct redlock_lease *lease, unsigned node) {
    const struct redlock_lease_core *core = &lease->core;
    return core->state == REDLOCK_LEASE_FENCING
               ? redlock_keys_jump_breaks(core->keys.backing, REDLOCK_NODE(node), core->votes.quorum)
               : lease->details[node].kind == REDLOCK_VOTE_GRANTED;
}

void redlock_driver_void(struct redlock_lease *lease, unsigned node, struct redlock_text *why) {
    assert(node < lease->group->node_count);
    /* A result that waits for its callback keeps the votes that decided it. A release needs no
     * earlier votes. */
    const bool forgotten = redlock_handle_is_forgotten(lease);
    if (forgotten || lease->callbacks || lease->core.operation == REDLOCK_OP_RELEASE || !is_void(lease, node)) {
        why = NULL;
    }
    if (why) {
        redlock_handle_put_text(lease, node, redlock_text_keep(why));
        lease->details[node].kind = REDLOCK_VOTE_UNKNOWN;
    }
    if (!forgotten) {
        const struct redlock_event event = redlock_driver_event(lease, REDLOCK_EVENT_VOID, REDLOCK_NODE(node));
        redlock_driver_feed(lease, &event);
    }
}

/* The lock is wanted, or kept, with one node more. */
void redlock_driver_ready(struct redlock_lease *lease, unsigned node) {
    assert(node < lease->group->node_count);
    const struct redlock_group *group = lease->group;
    const enum redlock_lease_state state = lease->core.state;
    const bool keeps = (state == REDLOCK_LEASE_HELD || state == REDLOCK_LEASE_EXTENDING) &&
                       redlock_nodes_count(group->ready) >= group->quorum;
    if (!redlock_handle_is_forgotten(lease) && (keeps || state == REDLOCK_LEASE_QUEUED)) {
        const struct redlock_event event = redlock_driver_event(lease, REDLOCK_EVENT_READY, REDLOCK_NODE(node));
        redlock_driver_feed(lease, &event);
    }
}

void redlock_driver_due(struct redlock_lease *lease, int64_t now_ns) {
    if (redlock_handle_is_forgotten(lease)) {
        assert(lease->life == REDLOCK_LIFE_LINGERING && lease->requester.in_flight == 0);
        redlock_driver_free(lease);
        return;
    }
    const uint32_t round = lease->core.state == REDLOCK_LEASE_HELD ? lease->core.round : 0;
    const int64_t planned_ns = lease->core.next_try_ns;
    redlock_driver_feed(lease,
                        &(struct redlock_event){.type = REDLOCK_EVENT_TIMER,
                                                .now_ns = now_ns,
                                                .wall_us = wall_us(lease->group, &lease->core.plan),
                                                .may_not_vote = redlock_guards_may_not_vote(lease->group, now_ns),
                                                .misplaced = lease->waiting && redlock_waiting_is_misplaced(lease),
                                                .in_line = is_in_line(lease)});
    if (round != 0 && lease->core.operation == REDLOCK_OP_EXTEND && lease->core.round != round) {
        redlock_tell_renewed(lease, planned_ns, now_ns);
    }
    redlock_driver_free_if_over(lease);
}

int redlock_driver_trouble(const struct redlock_lease *lease) {
    const int code = lease->core.last_code;
    return code == REDLOCK_ERR_CONTENDED ? REDLOCK_OK : code;
}

void redlock_driver_abort(struct redlock_lease *lease) {
    assert(lease->group->closing);
    if (redlock_handle_has_span(lease) && !(lease->callbacks & REDLOCK_CALLBACK_RELEASED)) {
        lease->released_code = REDLOCK_ERR_CLOSED;
        queue_callback(lease, REDLOCK_CALLBACK_RELEASED);
    }
}

void redlock_driver_retire(struct redlock_lease *lease) {
    if (atomic_load_explicit(&lease->held_until_ns, memory_order_relaxed) != 0) {
        lease->group->statistics.leases_held--;
        redlock_tell_held(lease, redlock_group_now_ns(lease->group));
    }
    redlock_handle_become(lease, REDLOCK_LIFE_FORGOTTEN);
    if (lease->waiting) {
        redlock_waiting_keep(lease);
    }
    redlock_schedule_set(&lease->group->schedule, &lease->requester.due, REDLOCK_NEVER_NS);
    REDLOCK_TELL(lease, forgotten, FORGOTTEN, REDLOCK_OK, lease->span_ns);
    if (lease->extend_pending) {
        lease->extended_code = REDLOCK_ERR_CANCELLED;
        queue_callback(lease, REDLOCK_CALLBACK_EXTENDED);
    }
    redlock_driver_free_if_over(lease);
}

static void run_callback(const struct redlock_lease *lease, enum redlock_result_of of, int code, redlock_callback cb,
                         void *data) {
    struct redlock_result_vote votes[REDLOCK_NODES_MAX];
    struct redlock_result result = {.code = code,
                                    .of = of,
                                    .loss =
                                        code == REDLOCK_ERR_LOST ? (enum redlock_loss)lease->loss : REDLOCK_LOSS_NONE,
                                    .attempts = of == REDLOCK_RESULT_ACQUIRE ? lease->core.attempts : 1,
                                    .votes = votes};
    if (of == REDLOCK_RESULT_ACQUIRE && code == REDLOCK_OK) {
        result.lease = (struct redlock_lease *)(uintptr_t)lease;
    }
    if (of == REDLOCK_RESULT_ACQUIRE && lease->waiting) {
        result.passed_over = lease->core.grants->passed_over;
    }
    redlock_handle_fill_result(lease, &result);
    if (of == REDLOCK_RESULT_EXTEND) {
        result.ttl_ms = lease->extend_ttl_ms;
    }
    /* `cb` may start a new round of this lease, which drops the texts. Keep them until `cb` has
     * returned. */
    struct redlock_text *texts[REDLOCK_NODES_MAX];
    unsigned kept = 0;
    for (redlock_nodes at = lease->texts; at != 0; at &= at - 1) {
        texts[kept++] = redlock_text_keep(lease->details[redlock_nodes_first(at)].text);
    }
    cb(&result, data);
    while (kept > 0) {
        redlock_text_drop(texts[--kept]);
    }
}

void redlock_driver_describe(const struct redlock_lease *lease, enum redlock_result_of of, int code,
                             redlock_callback cb, void *data) {
    assert(code != REDLOCK_OK);
    run_callback(lease, of, code, cb, data);
}

static void count_acquired(struct redlock_group *group, int code) {
    redlock_statistics *statistics = &group->statistics;
    statistics->requests_pending--;
    switch (code) {
    case REDLOCK_OK:
        statistics->acquired++;
        break;
    case REDLOCK_ERR_CONTENDED:
        statistics->contended++;
        break;
    case REDLOCK_ERR_NO_QUORUM:
        statistics->no_quorum++;
        break;
    case REDLOCK_ERR_TOO_SLOW:
        statistics->too_slow++;
        break;
    default:
        statistics->cancelled++;
    }
}

static void call_acquired(struct redlock_lease *lease) {
    const redlock_callback cb = lease->cb;
    count_acquired(lease->group, lease->acquired_code);
    lease->cb = NULL;
    redlock_handle_become(lease, lease->acquired_code == REDLOCK_OK ? REDLOCK_LIFE_OUT : REDLOCK_LIFE_OVER);
    redlock_tell_acquire_ended(lease);
    run_callback(lease, REDLOCK_RESULT_ACQUIRE, lease->acquired_code, cb, lease->data);
}

static void call_extended(struct redlock_lease *lease) {
    const redlock_callback cb = lease->extend_cb;
    lease->extend_pending = false;
    lease->extend_cb = NULL;
    lease->group->statistics.requests_pending--;
    if (cb) {
        run_callback(lease, REDLOCK_RESULT_EXTEND, lease->extended_code, cb, lease->extend_data);
    }
}

/* Other callbacks may have run since it was decided (R1): one that ended the lease, or was slow. */
__attribute__((noinline, cold)) static void call_expiring(struct redlock_lease *lease) {
    assert(lease->core.plan.expiring_ms > 0);
    const struct redlock_expiring *expiring = redlock_handle_expiring(lease);
    const int64_t remaining_ms = redlock_handle_validity_ms(lease);
    if (lease->life != REDLOCK_LIFE_OUT || remaining_ms == 0) {
        return;
    }
    lease->group->statistics.expiring++;
    redlock_tell_expiring(lease, remaining_ms);
    if (expiring) {
        expiring->cb(lease, remaining_ms, expiring->data);
    }
}

__attribute__((noinline, cold)) static void call_lost(struct redlock_lease *lease) {
    char reason[LOSS_SIZE];
    assert(lease->loss != REDLOCK_LOSS_NONE);
    redlock_tell_lost(lease);
    if (lease->lost_cb && lease->life == REDLOCK_LIFE_OUT) {
        redlock_handle_loss_text(lease, reason, sizeof reason);
        lease->lost_cb(lease, reason, lease->lost_data);
    }
}

static void call_released(struct redlock_lease *lease) {
    const redlock_callback cb = lease->cb;
    lease->cb = NULL;
    lease->group->statistics.requests_pending -= lease->life == REDLOCK_LIFE_RELEASING;
    redlock_tell_released(lease);
    redlock_handle_become(lease, REDLOCK_LIFE_OVER);
    if (cb) {
        run_callback(lease, REDLOCK_RESULT_RELEASE, lease->released_code, cb, lease->data);
    }
}

void redlock_driver_run_callbacks(struct redlock_lease *lease) {
    /* Callbacks that are added now run in the next turn. Else a caller that tries again and fails
     * at once would loop here. */
    const unsigned callbacks = lease->callbacks;
    lease->callbacks = 0;
    lease->in_callback = true;
    if (callbacks & REDLOCK_CALLBACK_ACQUIRED) {
        call_acquired(lease);
    }
    if (callbacks & REDLOCK_CALLBACK_EXTENDED) {
        call_extended(lease);
    }
    if (callbacks & REDLOCK_CALLBACK_EXPIRING) {
        call_expiring(lease);
    }
    if (callbacks & REDLOCK_CALLBACK_LOST) {
        call_lost(lease);
    }
    if (callbacks & REDLOCK_CALLBACK_RELEASED) {
        call_released(lease);
    }
    lease->in_callback = false;
    redlock_driver_free_if_over(lease);
}
