/* Which nodes the guards keep from voting, and why, in words; reads clocks for that. */
#include "group/guards.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/time.h"

#define SPAN_SIZE 32

bool redlock_guards_open(struct redlock_group *group, const struct redlock_guard_plan *plan) {
    assert(!group->guards);
    struct redlock_guards *guards =
        redlock_requester_new(group, REDLOCK_REQUESTER_GUARDS, sizeof *guards, sizeof *guards);
    if (!guards) {
        return false;
    }
    redlock_guard_init(&guards->guard, plan);
    group->guards = guards;
    group->watching_clocks = plan->clock;
    if (plan->clock) {
        redlock_schedule_set(&group->schedule, &guards->requester.due,
                             redlock_after_ms(redlock_group_now_ns(group), REDLOCK_CLOCK_READ_EVERY_MS));
    }
    return true;
}

static void guards_due(struct redlock_group *group, struct redlock_requester *requester, int64_t now_ns) {
    assert(group->watching_clocks);
    struct redlock_message message = {.operation = REDLOCK_OP_TIME, .token = "", .now_ns = now_ns};
    (void)redlock_requester_send(group, requester, group->ready, &message);
    redlock_schedule_set(&group->schedule, &requester->due, redlock_after_ms(now_ns, REDLOCK_CLOCK_READ_EVERY_MS));
}

/* A close ends the readings of clocks. */
static void guards_close(struct redlock_group *group, struct redlock_requester *requester) {
    assert(group->closing);
    redlock_schedule_set(&group->schedule, &requester->due, REDLOCK_NEVER_NS);
}

static void guards_free(struct redlock_group *group, struct redlock_requester *requester) {
    assert(group->deleting && &group->guards->requester == requester);
    group->guards = NULL;
    redlock_requester_delist(group, requester);
    free(requester);
}

/* The group has read the clock, as in each answer. */
const struct redlock_requester_ops redlock_guards_ops = {.due = guards_due, .close = guards_close, .free = guards_free};

redlock_nodes redlock_guards_may_not_vote(const struct redlock_group *group, int64_t now_ns) {
    return group->guards ? redlock_guard_may_not_vote(&group->guards->guard, now_ns) : 0;
}

redlock_nodes redlock_guards_may_not_vote_by_clock(const struct redlock_group *group, int64_t now_ns) {
    assert(group->guards);
    return redlock_guard_may_not_vote_by_clock(&group->guards->guard, now_ns);
}

redlock_nodes redlock_guards_release(struct redlock_group *group, struct redlock_requester *requester,
                                     redlock_nodes nodes, struct redlock_message *message) {
    const redlock_nodes may_not_serve =
        group->guards ? nodes & (redlock_guard_may_not_vote(&group->guards->guard, message->now_ns) | ~group->ready)
                      : 0;
    redlock_nodes taken = redlock_requester_send(group, requester, nodes & ~may_not_serve, message);
    if (may_not_serve) {
        struct redlock_message only_frees = *message;
        only_frees.handing = REDLOCK_HAND_NOBODY;
        only_frees.by_try = false; /* that hands a lock over that is marked */
        taken |= redlock_requester_send(group, requester, may_not_serve, &only_frees);
    }
    return taken;
}

int64_t redlock_guards_ttl_max_ms(const struct redlock_group *group) {
    return group->guards ? group->guards->guard.plan.ttl_max_ms : REDLOCK_TTL_MS_MAX;
}

/* "0.4 s" or "12 s", rounded up, so never 0. */
static const char *span(int64_t span_ns, char text[SPAN_SIZE]) {
    const int64_t tenths = (span_ns + 99999999) / 100000000;
    if (tenths < 100) {
        (void)snprintf(text, SPAN_SIZE, "%" PRId64 ".%" PRId64 " s", tenths / 10, tenths % 10);
    } else {
        (void)snprintf(text, SPAN_SIZE, "%" PRId64 " s", (tenths + 9) / 10);
    }
    return text;
}

static const char *step(int64_t step_ns, char text[SPAN_SIZE]) {
    const int64_t magnitude_ns = step_ns < 0 ? -step_ns : step_ns;
    (void)snprintf(text, SPAN_SIZE, "%" PRId64 ".%03" PRId64 " s", magnitude_ns / 1000000000,
                   magnitude_ns / 1000000 % 1000);
    return text;
}

/* For how long the node may not vote, and why; 0 and "" if it may. */
static int64_t write_why(const struct redlock_group *group, unsigned node, char why[REDLOCK_GUARDS_WHY_SIZE]) {
    assert(group->guards && node < group->node_count);
    const struct redlock_guard *guard = &group->guards->guard;
    const int64_t now_ns = redlock_group_now_ns(group), until_ns = redlock_guard_until_ns(guard, node, now_ns);
    char jumped[SPAN_SIZE];
    why[0] = '\0';
    step(guard->nodes[node].step_ns, jumped);
    switch (redlock_guard_why(guard, node, now_ns)) {
    case REDLOCK_GUARD_RESTARTED:
        (void)snprintf(why, REDLOCK_GUARDS_WHY_SIZE, "it restarted, and may have forgotten locks");
        break;
    case REDLOCK_GUARD_UNKNOWN:
        (void)snprintf(why, REDLOCK_GUARDS_WHY_SIZE,
                       "met for the first time, it may have restarted and forgotten locks");
        break;
    case REDLOCK_GUARD_CLOCK_STEP:
        (void)snprintf(why, REDLOCK_GUARDS_WHY_SIZE, "its clock jumped forward by %s", jumped);
        break;
    case REDLOCK_GUARD_CLOCK_AHEAD:
        (void)snprintf(why, REDLOCK_GUARDS_WHY_SIZE, "its clock is ahead of the other nodes' by %s", jumped);
        break;
    case REDLOCK_GUARD_CLOCK_UNCONFIRMED:
        (void)snprintf(why, REDLOCK_GUARDS_WHY_SIZE, "its clock is not confirmed by a quorum of nodes yet");
        break;
    case REDLOCK_GUARD_NONE:
        break;
    }
    return until_ns == 0 ? 0 : until_ns - now_ns;
}

struct redlock_text *redlock_guards_text(struct redlock_group *group, unsigned node) {
    char why[REDLOCK_GUARDS_WHY_SIZE], left[SPAN_SIZE];
    const int64_t left_ns = group->guards ? write_why(group, node, why) : 0;
    if (left_ns <= 0) {
        return NULL;
    }
    return redlock_text_new(REDLOCK_CAUSE_QUARANTINE, "no vote for %s: %s", span(left_ns, left), why);
}

int64_t redlock_group_node_quarantine_ms(const struct redlock_group *group, unsigned node, const char **why) {
    *why = "";
    if (!group->guards) {
        return 0;
    }
    const int64_t left_ns = write_why(group, node, group->guards->why);
    *why = group->guards->why;
    return (left_ns + REDLOCK_NS_PER_MS - 1) / REDLOCK_NS_PER_MS;
}

/* A first meeting is only INFO: a node that has been up for long may vote a moment later, when more
 * clocks are known. */
void redlock_guards_log(struct redlock_group *group, unsigned node) {
    char why[REDLOCK_GUARDS_WHY_SIZE], left[SPAN_SIZE];
    const int64_t left_ns = write_why(group, node, why);
    const bool is_first_meeting =
        redlock_guard_why(&group->guards->guard, node, redlock_group_now_ns(group)) == REDLOCK_GUARD_UNKNOWN;
    group->env.log(group->env.ctx, is_first_meeting ? REDLOCK_LOG_INFO : REDLOCK_LOG_WARNING,
                   "node %s: no vote for %s: %s", group->node_names[node], span(left_ns, left), why);
}

/* A clock that is confirmed at once is not worth a message. */
redlock_nodes redlock_guards_greet(struct redlock_group *group, unsigned node, const struct redlock_greeting *greeting,
                                   bool *jumped) {
    assert(group->guards && node < group->node_count);
    struct redlock_guard *guard = &group->guards->guard;
    enum redlock_guard_reason before[REDLOCK_NODES_MAX];
    const int64_t now_ns = redlock_group_now_ns(group);
    for (unsigned i = 0; i < group->node_count; i++) {
        before[i] = redlock_guard_why(guard, i, now_ns);
    }
    const redlock_nodes begun = redlock_guard_greet(guard, node, greeting, now_ns, jumped);
    for (unsigned i = 0; i < group->node_count; i++) {
        if (before[i] != REDLOCK_GUARD_NONE && before[i] != REDLOCK_GUARD_CLOCK_UNCONFIRMED &&
            redlock_guard_why(guard, i, now_ns) == REDLOCK_GUARD_NONE) {
            group->env.log(group->env.ctx, REDLOCK_LOG_INFO, "node %s: it may vote: %s", group->node_names[i],
                           before[i] == REDLOCK_GUARD_CLOCK_AHEAD ? "its clock agrees with a quorum of nodes"
                                                                  : "it has been up for longer than ttl_max");
        }
    }
    return begun;
}

/* Logs which clock jumped, how far, and what both clocks said. */
void redlock_guards_log_step(struct redlock_group *group, unsigned node, const struct redlock_clock_sample *sample,
                             int64_t step_ns) {
    char by[SPAN_SIZE];
    group->env.log(group->env.ctx, REDLOCK_LOG_WARNING,
                   "node %s: its clock jumped %s by %s: it says %" PRId64 ".%06" PRId64 ", at %" PRId64 ".%06" PRId64
                   " of our CLOCK_BOOTTIME; %s",
                   group->node_names[node], step_ns > 0 ? "forward" : "back", step(step_ns, by),
                   sample->server_us / 1000000, sample->server_us % 1000000, sample->read_ns / 1000000000,
                   sample->read_ns / 1000 % 1000000,
                   step_ns > 0 ? "the votes that it gave are void" : "its keys live longer, which costs waiting only");
}

int64_t redlock_guards_park_until_ns(const struct redlock_group *group, int64_t wait_ms, int64_t now_ns) {
    assert(group->guards);
    const bool quorum = redlock_nodes_count(group->ready) >= group->quorum;
    int64_t most_ns = quorum ? group->node_timeout_ns : group->connect_timeout_ns;
    if (wait_ms > 0 && wait_ms < most_ns / REDLOCK_NS_PER_MS) {
        most_ns = wait_ms * REDLOCK_NS_PER_MS;
    }
    return now_ns + (most_ns > group->node_timeout_ns ? most_ns : group->node_timeout_ns);
}
