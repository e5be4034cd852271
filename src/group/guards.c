/* Applies the guards: takes what nodes say, voids votes, reads the clocks, begins parked
 * acquires. */
#include "group/guards.h"

#include "core/validity.h"
#include "group/lease.h"
#include "group/quarantine.h"

static void void_votes(struct redlock_group *group, unsigned node) {
    struct redlock_text *why = redlock_quarantine_text(group, node);
    for (struct redlock_owner *owner = group->leases.first, *next; owner; owner = next) {
        next = owner->next;
        redlock_lease_void((struct redlock_lease *)owner, node, why);
    }
    redlock_text_drop(why);
}

static void count_jump(struct redlock_group *group, unsigned node, const struct redlock_clock_sample *sample,
                       int64_t step_ns) {
    group->statistics.clock_jumps++;
    redlock_quarantine_log_step(group, node, sample, step_ns);
    void_votes(group, node);
}

static void note_begun(struct redlock_group *group, redlock_nodes begun) {
    const struct redlock_guard *guard = &group->guards->guard;
    group->statistics.quarantines += redlock_nodes_count(begun);
    for (unsigned i = 0; begun >> i != 0; i++) {
        if (begun & REDLOCK_NODE(i)) {
            redlock_quarantine_log(group, i);
            if (guard->ahead & REDLOCK_NODE(i)) {
                void_votes(group, i); /* it was asked before its clock could be compared */
            }
        }
    }
}

void redlock_group_node_greeted(struct redlock_group *group, unsigned node, const struct redlock_greeting *greeting) {
    struct redlock_guards *guards = group->guards;
    redlock_line_note_clock(&group->line, node, &greeting->clock);
    if (!guards) {
        return;
    }
    bool jumped = false;
    enum redlock_guard_reason before[REDLOCK_NODES_MAX];
    const int64_t now_ns = redlock_group_now_ns(group);
    redlock_quarantine_reasons(group, now_ns, before);
    const redlock_nodes begun = redlock_guard_greet(&guards->guard, node, greeting, now_ns, &jumped);
    redlock_quarantine_log_lifted(group, now_ns, before);
    if (jumped) {
        count_jump(group, node, &greeting->clock, guards->guard.nodes[node].step_ns);
    }
    note_begun(group, begun);
}

void redlock_guards_read_clock(struct redlock_group *group, unsigned node, const struct redlock_clock_sample *sample) {
    int64_t step_ns = 0;
    if (!group->watching_clocks) {
        return;
    }
    switch (redlock_guard_sample(&group->guards->guard, node, sample, redlock_group_now_ns(group), &step_ns)) {
    case REDLOCK_CLOCK_FORWARD:
        group->statistics.quarantines++;
        count_jump(group, node, sample, step_ns);
        redlock_quarantine_log(group, node);
        break;
    case REDLOCK_CLOCK_BACKWARD:
        redlock_quarantine_log_step(group, node, sample, step_ns);
        break;
    case REDLOCK_CLOCK_STEADY:
        break;
    }
    note_begun(group, group->guards->guard.ahead);
}

void redlock_guards_seen(struct redlock_group *group, unsigned node, const struct redlock_answer *answer) {
    if (answer->vote == REDLOCK_VOTE_GRANTED || answer->vote == REDLOCK_VOTE_DENIED) {
        redlock_guard_seen(&group->guards->guard, node, answer->read_ns);
    }
}

void redlock_guards_due(struct redlock_group *group, int64_t now_ns) {
    struct redlock_guards *guards = group->guards;
    struct redlock_message message = {.operation = REDLOCK_OP_TIME, .token = "", .now_ns = now_ns};
    (void)redlock_group_send(group, &guards->owner, group->ready, &message);
    redlock_schedule_set(&group->schedule, &guards->owner.due, redlock_after_ms(now_ns, REDLOCK_CLOCK_READ_EVERY_MS));
}

int64_t redlock_guards_park_until_ns(const struct redlock_group *group, int64_t wait_ms, int64_t now_ns) {
    const bool quorum = redlock_nodes_count(group->ready) >= group->quorum;
    int64_t most_ns = quorum ? group->node_timeout_ns : group->connect_timeout_ns;
    if (wait_ms > 0 && wait_ms < most_ns / REDLOCK_NS_PER_MS) {
        most_ns = wait_ms * REDLOCK_NS_PER_MS;
    }
    return now_ns + (most_ns > group->node_timeout_ns ? most_ns : group->node_timeout_ns);
}

void redlock_guards_ready_changed(struct redlock_group *group) {
    if (!group->guards) {
        return;
    }
    const int64_t now_ns = redlock_group_now_ns(group);
    const bool all = redlock_group_all_first_tries_done(group);
    for (struct redlock_owner *owner = group->leases.first, *next; owner; owner = next) {
        next = owner->next;
        struct redlock_lease *lease = (struct redlock_lease *)owner;
        if (lease->core.state != REDLOCK_LEASE_PARKED) {
            continue;
        }
        if (all) {
            redlock_lease_begin(lease, &lease->core.plan, now_ns);
        } else {
            const int64_t until_ns = redlock_guards_park_until_ns(group, lease->core.plan.wait_timeout_ms, now_ns);
            redlock_lease_feed(
                lease, &(struct redlock_event){.type = REDLOCK_EVENT_PARK, .now_ns = now_ns, .until_ns = until_ns});
        }
    }
}
