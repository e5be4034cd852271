/* A group of nodes and the leases on it: creation, events from the env, timers, close. */
#include "group/entry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/holder.h"
#include "core/time.h"
#include "group/driver.h"
#include "group/guards.h"
#include "group/observer.h"
#include "group/owed.h"
#include "group/query.h"
#include "group/tell.h"
#include "group/votes.h"
#include "group/waiting.h"
#include "wire/holder_query.h"

static const struct redlock_requester_ops *const ops[REDLOCK_REQUESTER_KINDS] = {
    [REDLOCK_REQUESTER_LEASE] = &redlock_lease_ops,       [REDLOCK_REQUESTER_OWED] = &redlock_owed_ops,
    [REDLOCK_REQUESTER_QUERY] = &redlock_query_ops,       [REDLOCK_REQUESTER_LISTING] = &redlock_listing_ops,
    [REDLOCK_REQUESTER_OBSERVER] = &redlock_observer_ops, [REDLOCK_REQUESTER_GUARDS] = &redlock_guards_ops,
    [REDLOCK_REQUESTER_BUNDLE] = &redlock_bundle_ops,     [REDLOCK_REQUESTER_TIMER] = &redlock_timer_ops,
};

/* Low digits that make our fencing tokens differ from those of other clients. */
static uint16_t draw_fence_client(const struct redlock_env *env) {
    uint16_t drawn = 0;
    /* Without random bytes, no acquire works anyway. */
    (void)env->random(env->ctx, &drawn, sizeof drawn);
    return redlock_fence_client(drawn);
}

static bool open_guards(struct redlock_group *group, const redlock_manager_options *options) {
    const struct redlock_guard_plan plan = {.restart = options->restart_guard,
                                            .clock = options->clock_guard,
                                            .first_boot = options->first_boot,
                                            .ttl_max_ms = options->ttl_max_ms,
                                            .node_count = group->node_count,
                                            .quorum = group->quorum,
                                            .start_ns = redlock_group_now_ns(group)};
    return !redlock_guard_is_on(&plan) || redlock_guards_open(group, &plan);
}

static void keep_holder(struct redlock_group *group, const char *holder) {
    const size_t size = holder ? strlen(holder) : 0;
    assert(size <= REDLOCK_HOLDER_SIZE_MAX);
    if (size > 0) {
        group->holder[0] = REDLOCK_HOLDER_AT;
        memcpy(group->holder + 1, holder, size);
        group->holder_size = (uint8_t)(1 + size);
    }
}

struct redlock_group *redlock_group_new(const struct redlock_env *env, const redlock_manager_options *options,
                                        const char *const *node_names) {
    assert(options->node_count >= 1 && options->node_count <= REDLOCK_NODES_MAX);
    assert(options->quorum == 0 ||
           (options->quorum > options->node_count / 2 && options->quorum <= options->node_count));
    assert(options->node_timeout_ms > 0 && options->node_timeout_ms <= REDLOCK_TIMEOUT_MS_MAX);
    struct redlock_group *group = calloc(1, sizeof *group);
    if (!group) {
        return NULL;
    }
    const char *prefix = options->key_prefix ? options->key_prefix : "";
    group->env = *env;
    for (unsigned i = 0; i < REDLOCK_REQUESTER_KINDS; i++) {
        redlock_list_init(&group->requesters[i].list);
    }
    redlock_list_init(&group->oneshots);
    group->failure = (struct redlock_error_text){group->invalid, sizeof group->invalid};
    group->node_count = (unsigned)options->node_count;
    group->quorum = options->quorum != 0 ? (unsigned)options->quorum : redlock_quorum(group->node_count);
    group->key_prefix = strdup(prefix);
    group->fence_suffix = strdup(options->fence_suffix ? options->fence_suffix : REDLOCK_FENCE_SUFFIX);
    group->wait_suffix = strdup(options->wait_suffix ? options->wait_suffix : REDLOCK_WAIT_SUFFIX);
    if (!group->key_prefix || !group->fence_suffix || !group->wait_suffix || !open_guards(group, options)) {
        redlock_group_delete(group);
        return NULL;
    }
    group->key_prefix_size = strlen(prefix);
    assert(group->key_prefix_size < REDLOCK_RESOURCE_SIZE_MAX);
    group->fence_keys = (struct redlock_fence_keys){.suffix = group->fence_suffix,
                                                    .suffix_size = strlen(group->fence_suffix),
                                                    .expiry_ms = options->fence_expiry_ms};
    keep_holder(group, options->holder);
    group->fence_client = draw_fence_client(env);
    group->node_names = node_names;
    group->node_timeout_ns = options->node_timeout_ms * REDLOCK_NS_PER_MS;
    group->connect_timeout_ns = options->connect_timeout_ms * REDLOCK_NS_PER_MS;
    group->log_level = options->log_level;
    group->armed_ns = REDLOCK_NEVER_NS;
    group->on_event = options->on_event;
    group->event_data = options->event_data;
    return group;
}

int redlock_group_listen(struct redlock_group *group) {
    return redlock_line_open(&group->line, &group->env);
}

void redlock_group_delete(struct redlock_group *group) {
    group->deleting = true;
    for (unsigned kind = 0; kind < REDLOCK_REQUESTER_KINDS; kind++) {
        REDLOCK_REQUESTERS(requester, group, kind) {
            ops[kind]->free(group, requester);
        }
    }
    redlock_schedule_clear(&group->schedule);
    redlock_spares_clear(&group->spares);
    redlock_line_clear(&group->line);
    free(group->wait_suffix);
    free(group->fence_suffix);
    free(group->key_prefix);
    free(group);
}

static void void_votes(struct redlock_group *group, unsigned node) {
    struct redlock_text *why = redlock_guards_text(group, node);
    REDLOCK_REQUESTERS(requester, group, REDLOCK_REQUESTER_LEASE) {
        redlock_driver_void((struct redlock_lease *)requester, node, why);
    }
    redlock_text_drop(why);
}

static void count_jump(struct redlock_group *group, unsigned node, const struct redlock_clock_sample *sample,
                       int64_t step_ns) {
    group->statistics.clock_jumps++;
    redlock_guards_log_step(group, node, sample, step_ns);
    void_votes(group, node);
}

static void note_begun(struct redlock_group *group, redlock_nodes begun) {
    const struct redlock_guard *guard = &group->guards->guard;
    assert((begun & ~redlock_nodes_all(group->node_count)) == 0);
    group->statistics.quarantines += redlock_nodes_count(begun);
    for (unsigned i = 0; begun >> i != 0; i++) {
        if (begun & REDLOCK_NODE(i)) {
            redlock_guards_log(group, i);
            if (guard->ahead & REDLOCK_NODE(i)) {
                void_votes(group, i); /* it was asked before its clock could be compared */
            }
        }
    }
}

void redlock_group_node_greeted(struct redlock_group *group, unsigned node, const struct redlock_greeting *greeting) {
    assert(node < group->node_count);
    struct redlock_guards *guards = group->guards;
    redlock_line_note_clock(&group->line, node, &greeting->clock);
    if (!guards) {
        return;
    }
    bool jumped = false;
    const redlock_nodes begun = redlock_guards_greet(group, node, greeting, &jumped);
    if (jumped) {
        count_jump(group, node, &greeting->clock, guards->guard.nodes[node].step_ns);
    }
    note_begun(group, begun);
    redlock_group_rearm(group); /* callbacks run in the next turn */
}

static void guards_read_clock(struct redlock_group *group, unsigned node, const struct redlock_clock_sample *sample) {
    int64_t step_ns = 0;
    if (!group->watching_clocks) {
        return;
    }
    switch (redlock_guard_sample(&group->guards->guard, node, sample, redlock_group_now_ns(group), &step_ns)) {
    case REDLOCK_CLOCK_FORWARD:
        group->statistics.quarantines++;
        count_jump(group, node, sample, step_ns);
        redlock_guards_log(group, node);
        break;
    case REDLOCK_CLOCK_BACKWARD:
        redlock_guards_log_step(group, node, sample, step_ns);
        break;
    case REDLOCK_CLOCK_STEADY:
        break;
    }
    note_begun(group, group->guards->guard.ahead);
}

static void guards_ready_changed(struct redlock_group *group) {
    if (!group->guards) {
        return;
    }
    const int64_t now_ns = redlock_group_now_ns(group);
    const bool all = redlock_group_all_first_tries_done(group);
    REDLOCK_REQUESTERS(requester, group, REDLOCK_REQUESTER_LEASE) {
        struct redlock_lease *lease = (struct redlock_lease *)requester;
        if (lease->core.state != REDLOCK_LEASE_PARKED) {
            continue;
        }
        if (all) {
            redlock_driver_begin(lease, &lease->core.plan, now_ns);
        } else {
            const int64_t until_ns = redlock_guards_park_until_ns(group, lease->core.plan.wait_timeout_ms, now_ns);
            redlock_driver_feed(
                lease, &(struct redlock_event){.type = REDLOCK_EVENT_PARK, .now_ns = now_ns, .until_ns = until_ns});
        }
    }
}

/* Callbacks that are added now run in the next turn. Inlined, it would cost a plain lock some
 * instructions. */
__attribute__((noinline)) static void run_oneshots(struct redlock_group *group) {
    for (uint64_t left = group->oneshots_waiting; left > 0; left--) {
        struct redlock_list_entry *first = redlock_list_pop(&group->oneshots);
        assert(first);
        struct redlock_requester *requester = &REDLOCK_CONTAINER(first, struct redlock_oneshot, done)->requester;
        group->oneshots_waiting--;
        ops[requester->kind]->callback(group, requester);
    }
}

static void run_callbacks(struct redlock_group *group) {
    if (group->in_callbacks || !redlock_group_has_callbacks(group)) {
        redlock_group_rearm(group);
        return; /* inside a callback; our caller runs the rest after it */
    }
    group->in_callbacks = true;
    /* Run only the callbacks that wait now: one that tries again and fails at once must not keep us
     * here. */
    const struct redlock_lease *last = group->callbacks_last;
    while (group->callbacks_first) {
        struct redlock_lease *lease = group->callbacks_first;
        const bool was_last = lease == last;
        group->callbacks_first = lease->next_callback;
        if (!group->callbacks_first) {
            group->callbacks_last = NULL;
        }
        lease->next_callback = NULL;
        redlock_driver_run_callbacks(lease);
        if (was_last) {
            break;
        }
    }
    if (group->oneshots_waiting > 0) {
        run_oneshots(group);
    }
    group->in_callbacks = false;
    redlock_group_rearm(group);
}

/* With the mark of a waiter, too. Only a try is answered so. */
static bool is_own(const struct redlock_lease *lease, const char *value, size_t size) {
    const char *own = redlock_handle_own_token(lease);
    return lease->token_size == size && own[0] == (value[0] | REDLOCK_TRY_MARK) &&
           memcmp(own + 1, value + 1, size - 1) == 0;
}

/* A value in an answer to an acquire may be the lease's own token. A later attempt has another. */
static void compare(const struct redlock_lease *lease, unsigned node, struct redlock_answer *answer) {
    const struct redlock_env *env = &lease->group->env;
    const bool is_ours = is_own(lease, answer->holder, answer->holder_size);
    const bool is_first_ours = answer->named == REDLOCK_NAMED_TWICE && is_own(lease, answer->first, answer->first_size);
    if ((is_ours || is_first_ours) && redlock_holder_query_compared(answer, is_first_ours, is_ours)) {
        env->proven(env->ctx, node);
    }
}

void redlock_group_answer(struct redlock_group *group, struct redlock_requester *requester, uint32_t round,
                          unsigned node, struct redlock_answer *answer) {
    assert(requester->in_flight > 0 && node < group->node_count);
    requester->in_flight--;
    group->in_flight--;
    if (answer->named != REDLOCK_NAMED_NOT && requester->kind == REDLOCK_REQUESTER_LEASE) {
        compare((struct redlock_lease *)requester, node, answer);
    }
    if (group->guards && (answer->vote == REDLOCK_VOTE_GRANTED || answer->vote == REDLOCK_VOTE_DENIED)) {
        redlock_guard_seen(&group->guards->guard, node, answer->read_ns);
    }
    if (answer->clock.server_us != 0) {
        redlock_line_note_clock(&group->line, node, &answer->clock);
        /* This may end the round of this answer. */
        guards_read_clock(group, node, &answer->clock);
    }
    if (requester->kind == REDLOCK_REQUESTER_LEASE) {
        redlock_votes_answer((struct redlock_lease *)requester, round, node, answer);
    } else if (ops[requester->kind]->answer) {
        ops[requester->kind]->answer(group, requester, node, answer);
    }
    run_callbacks(group);
}

/* A grant that does more than count. */
__attribute__((noinline)) static void take_grant(struct redlock_group *group, struct redlock_requester *requester,
                                                 uint32_t round, unsigned node, int64_t read_ns) {
    struct redlock_answer answer;
    redlock_answer_begin(&answer, REDLOCK_VOTE_GRANTED);
    answer.read_ns = read_ns;
    redlock_group_answer(group, requester, round, node, &answer);
}

/* What few grants do that only count. */
__attribute__((noinline)) static void end_count(struct redlock_group *group, struct redlock_lease *lease,
                                                uint32_t round, unsigned node) {
    if (round == lease->core.round) {
        redlock_tell_log_vote(lease, node, NULL);
    }
    if (lease->requester.in_flight == 0) {
        redlock_driver_free_if_over(lease);
        run_callbacks(group);
    }
}

/* Most grants only count. They change no timer and no callback. */
void redlock_group_granted(struct redlock_group *group, struct redlock_requester *requester, uint32_t round,
                           unsigned node, int64_t read_ns) {
    struct redlock_lease *lease = (struct redlock_lease *)requester;
    assert(requester->in_flight > 0 && node < group->node_count);
    if (requester->kind != REDLOCK_REQUESTER_LEASE || !redlock_votes_count(group, lease, round, node, read_ns)) {
        take_grant(group, requester, round, node, read_ns);
        return;
    }
    group->in_flight--;
    if ((--requester->in_flight == 0) | (group->log_level >= REDLOCK_LOG_DEBUG)) {
        end_count(group, lease, round, node);
    }
}

/* A close has waited long enough, or nothing is left to wait for. Every callback still runs
 * (R14). */
static void end(struct redlock_group *group) {
    assert(group->closing && group->drained);
    const redlock_group_drained done = group->drained;
    group->drained = NULL;
    REDLOCK_REQUESTERS(requester, group, REDLOCK_REQUESTER_LEASE) {
        redlock_driver_abort((struct redlock_lease *)requester);
    }
    while (redlock_group_has_callbacks(group)) {
        /* This ends: the group refuses requests now, and every handle has ended. */
        run_callbacks(group);
    }
    done(group->drained_ctx); /* this deletes the group */
}

void redlock_group_wake(struct redlock_group *group) {
    group->armed_ns = REDLOCK_NEVER_NS;
    /* At most as many as there are now: an item that is due again at once waits for the next
     * turn. */
    for (uint32_t left = group->schedule.count; left > 0; left--) {
        const int64_t now_ns = redlock_group_now_ns(group);
        struct redlock_due *item = redlock_schedule_pop(&group->schedule, now_ns);
        if (!item) {
            break;
        }
        struct redlock_requester *requester = REDLOCK_CONTAINER(item, struct redlock_requester, due);
        ops[requester->kind]->due(group, requester, now_ns);
    }
    redlock_owed_go_on(group);
    run_callbacks(group);
    if (!group->in_callbacks && redlock_group_close_is_due(group)) {
        end(group);
    }
}

void redlock_group_pushed(struct redlock_group *group, unsigned node, const struct redlock_push *push) {
    assert(node < group->node_count);
    redlock_votes_pushed(group, node, push);
    run_callbacks(group);
}

void redlock_group_listens(struct redlock_group *group, unsigned node, enum redlock_listening listening,
                           struct redlock_text *why) {
    assert(node < group->node_count);
    redlock_votes_listens(group, node, listening, why);
    if (listening != REDLOCK_LISTENING) {
        redlock_observers_hear(group, node, NULL);
    }
    run_callbacks(group);
}

void redlock_group_moved(struct redlock_group *group, unsigned node) {
    assert(node < group->node_count);
    redlock_votes_moved(group, node);
    redlock_observers_moved(group, node);
    redlock_group_rearm(group); /* callbacks run with redlock_group_ready_changed() */
}

void redlock_group_hinted(struct redlock_group *group, unsigned node, const struct redlock_hint *hint) {
    assert(node < group->node_count);
    redlock_observers_hinted(group, node, hint);
    run_callbacks(group);
}

void redlock_group_hears(struct redlock_group *group, unsigned node, const struct redlock_channel *channel) {
    assert(node < group->node_count && channel);
    redlock_observers_hear(group, node, channel);
    run_callbacks(group);
}

void redlock_group_ready_changed(struct redlock_group *group, unsigned node, bool ready) {
    assert(node < group->node_count);
    if (ready != ((group->ready & REDLOCK_NODE(node)) != 0) || !(group->first_try_done & REDLOCK_NODE(node))) {
        redlock_tell_node(group, node, ready);
    }
    group->first_try_done |= REDLOCK_NODE(node);
    if (ready) {
        group->ready |= REDLOCK_NODE(node);
        group->line.met |= REDLOCK_NODE(node);
        REDLOCK_REQUESTERS(requester, group, REDLOCK_REQUESTER_LEASE) {
            redlock_driver_ready((struct redlock_lease *)requester, node);
        }
        redlock_owed_node_ready(group, node);
    } else {
        group->ready &= ~REDLOCK_NODE(node);
    }
    guards_ready_changed(group);
    redlock_queries_ready_changed(group);
    run_callbacks(group);
}

void redlock_group_drain(struct redlock_group *group, redlock_group_drained done, void *ctx) {
    assert(!group->closing && done);
    group->closing = true;
    group->drained = done;
    group->drained_ctx = ctx;
    /* One node timeout for the releases that this sends, and one to send them again after
     * NOSCRIPT. */
    group->close_deadline_ns = redlock_group_now_ns(group) + 2 * group->node_timeout_ns + REDLOCK_NS_PER_MS;
    for (unsigned kind = 0; kind < REDLOCK_REQUESTER_KINDS; kind++) {
        REDLOCK_REQUESTERS(requester, group, kind) {
            if (ops[kind]->close) {
                ops[kind]->close(group, requester);
            }
        }
    }
    redlock_group_rearm(group);
}

int redlock_group_statistics(struct redlock_group *group, redlock_statistics *statistics) {
    const int code = redlock_check_struct(&group->failure, "statistics", statistics);
    if (code != REDLOCK_OK) {
        return redlock_group_refuse(group, code);
    }
    redlock_statistics now = group->statistics;
    now.releases_owed = group->requesters[REDLOCK_REQUESTER_OWED].count;
    redlock_fill_struct(statistics, &now, sizeof now);
    return REDLOCK_OK;
}
