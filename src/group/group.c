/* What all requesters of a group share: lists, the schedule, counts and the next wake-up. */
#include "group/group.h"

#include <assert.h>

#include "core/time.h"

int redlock_group_check_open(struct redlock_group *group) {
    if (group->closing) {
        return REDLOCK_ERR_CLOSED;
    }
    /* A request for zero bytes only checks for a fork. */
    return group->env.random(group->env.ctx, NULL, 0) == REDLOCK_ERR_FORKED ? REDLOCK_ERR_FORKED : REDLOCK_OK;
}

int redlock_group_tell_refused(struct redlock_group *group) {
    group->env.log(group->env.ctx, REDLOCK_LOG_ERROR, "invalid argument: %s", group->invalid);
    return REDLOCK_ERR_INVALID;
}

/* Whether a close has nothing to wait for. It does not wait for releases owed by nodes that are
 * down. */
static bool drained(const struct redlock_group *group) {
    assert(group->lingering <= group->requesters[REDLOCK_REQUESTER_LEASE].count);
    return group->requesters[REDLOCK_REQUESTER_LEASE].count == group->lingering &&
           group->requesters[REDLOCK_REQUESTER_QUERY].count == 0 && group->in_flight == 0;
}

bool redlock_group_close_is_due(const struct redlock_group *group) {
    return group->drained && (redlock_group_now_ns(group) >= group->close_deadline_ns || drained(group));
}

/* The next wake-up. It is now if callbacks wait, if owed releases must be asked, or if a close is
 * due. */
static int64_t soonest_ns(const struct redlock_group *group, int64_t when_ns) {
    /* While callbacks run, the function that runs them calls redlock_group_rearm() afterwards. */
    if (!group->in_callbacks &&
        (redlock_group_has_callbacks(group) || group->owed_next || redlock_group_close_is_due(group))) {
        return 0;
    }
    return group->drained && group->close_deadline_ns < when_ns ? group->close_deadline_ns : when_ns;
}

void redlock_group_wake_at(struct redlock_group *group, int64_t when_ns) {
    when_ns = soonest_ns(group, when_ns);
    if (when_ns != group->armed_ns) {
        group->armed_ns = when_ns;
        group->env.wake_at(group->env.ctx, when_ns);
    }
}

void redlock_requester_enlist(struct redlock_group *group, struct redlock_requester *requester,
                              enum redlock_requester_kind kind) {
    requester->kind = (uint8_t)kind;
    redlock_list_append(&group->requesters[kind].list, &requester->entry);
    group->requesters[kind].count++;
}

redlock_nodes redlock_requester_send(struct redlock_group *group, struct redlock_requester *requester,
                                     redlock_nodes nodes, struct redlock_message *message) {
    message->requester = requester;
    requester->by_source = message->by_source ? requester->by_source | nodes : requester->by_source & ~nodes;
    const redlock_nodes taken = nodes ? group->env.send(group->env.ctx, nodes, message) : 0;
    assert((taken & ~nodes) == 0);
    const unsigned count = redlock_nodes_count(taken);
    requester->in_flight += count;
    group->in_flight += count;
    return taken;
}

/* Those of another size make room, one at a time. */
void redlock_spares_give(struct redlock_spares *spares, void *memory, size_t size) {
    struct redlock_spare *spare = memory;
    if (spares->size != size && spares->first) {
        free(redlock_spares_take(spares, spares->size));
    } else if (spares->count != REDLOCK_SPARES_MAX) {
        spares->size = size;
        spare->next = spares->first;
        spares->first = spare;
        spares->count++;
        return;
    }
    free(memory);
}

void redlock_spares_clear(struct redlock_spares *spares) {
    while (spares->first) {
        free(redlock_spares_take(spares, spares->size));
    }
}

void redlock_requester_queue_oneshot(struct redlock_group *group, struct redlock_oneshot *oneshot) {
    redlock_list_append(&group->oneshots, &oneshot->done);
    group->oneshots_waiting++;
}

static void timer_due(struct redlock_group *group, struct redlock_requester *requester, int64_t now_ns) {
    (void)group, (void)now_ns;
    ((struct redlock_timer *)requester)->ring((struct redlock_timer *)requester);
}

const struct redlock_requester_ops redlock_timer_ops = {.due = timer_due};

bool redlock_timer_open(struct redlock_group *group, struct redlock_timer *timer,
                        void (*ring)(struct redlock_timer *timer)) {
    assert(ring);
    *timer = (struct redlock_timer){.requester = {.kind = REDLOCK_REQUESTER_TIMER}, .ring = ring};
    return redlock_schedule_reserve(&group->schedule);
}

void redlock_timer_close(struct redlock_group *group, struct redlock_timer *timer) {
    assert(timer->ring);
    redlock_schedule_unreserve(&group->schedule, &timer->requester.due);
}

void redlock_timer_set(struct redlock_group *group, struct redlock_timer *timer, int64_t when_ns) {
    assert(timer->ring);
    redlock_schedule_set(&group->schedule, &timer->requester.due, when_ns);
    redlock_group_rearm(group);
}
