/* The guards at work: what nodes say of themselves comes in, nodes are kept from voting, votes are voided, clocks are read. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "group/state.h"

#define READ_EVERY_MS INT64_C(1000) /* with the clock guard: each node's clock, also while nothing is locked */
#define WHY_SIZE      200
#define SPAN_SIZE     32

struct redlock_guards {
    struct redlock_owner owner; /* of the readings; in no list */
    struct redlock_guard guard;
    char why[WHY_SIZE];
};

bool redlock_guards_open(redlock_manager *manager, const struct redlock_guard_plan *plan) {
    struct redlock_guards *guards = calloc(1, sizeof *guards);
    if (!guards || !redlock_schedule_reserve(&manager->schedule)) {
        free(guards);
        return false;
    }
    redlock_guard_init(&guards->guard, plan);
    guards->owner.kind = REDLOCK_OWNER_GUARDS;
    manager->guards = guards;
    manager->watching_clocks = plan->clock;
    if (plan->clock) {
        redlock_schedule_set(&manager->schedule, &guards->owner.due,
                             redlock_after_ms(redlock_manager_now_ns(manager), READ_EVERY_MS));
    }
    return true;
}

void redlock_guards_free(redlock_manager *manager) {
    if (manager->guards) {
        redlock_schedule_unreserve(&manager->schedule, &manager->guards->owner.due);
        free(manager->guards);
        manager->guards = NULL;
    }
}

void redlock_guards_close(redlock_manager *manager) {
    if (manager->guards) {
        redlock_schedule_set(&manager->schedule, &manager->guards->owner.due, REDLOCK_NEVER_NS);
    }
}

redlock_nodes redlock_guards_barred(const redlock_manager *manager, int64_t now_ns) {
    return manager->guards ? redlock_guard_barred(&manager->guards->guard, now_ns) : 0;
}

redlock_nodes redlock_guards_barred_by_clock(const redlock_manager *manager, int64_t now_ns) {
    return redlock_guard_barred_by_clock(&manager->guards->guard, now_ns);
}

int64_t redlock_guards_ttl_max_ms(const redlock_manager *manager) {
    return manager->guards ? manager->guards->guard.plan.ttl_max_ms : REDLOCK_TTL_MS_MAX;
}

/* --- In words --- */

/* "0.4 s", "12 s": rounded up, so that it is never 0. */
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

/* For how long the node may not vote, and why; 0 and "" where it may. */
static int64_t write_why(const redlock_manager *manager, unsigned node, char why[WHY_SIZE]) {
    const struct redlock_guard *guard = &manager->guards->guard;
    const int64_t now_ns = redlock_manager_now_ns(manager), until_ns = redlock_guard_until_ns(guard, node, now_ns);
    char jumped[SPAN_SIZE];
    why[0] = '\0';
    step(guard->nodes[node].step_ns, jumped);
    switch (redlock_guard_why(guard, node, now_ns)) {
    case REDLOCK_GUARD_RESTARTED:
        (void)snprintf(why, WHY_SIZE, "it restarted, and may have forgotten locks");
        break;
    case REDLOCK_GUARD_UNKNOWN:
        (void)snprintf(why, WHY_SIZE, "met for the first time, it may have restarted and forgotten locks");
        break;
    case REDLOCK_GUARD_CLOCK_STEP:
        (void)snprintf(why, WHY_SIZE, "its clock jumped forward by %s", jumped);
        break;
    case REDLOCK_GUARD_CLOCK_AHEAD:
        (void)snprintf(why, WHY_SIZE, "its clock is ahead of the other nodes' by %s", jumped);
        break;
    case REDLOCK_GUARD_CLOCK_UNCONFIRMED:
        (void)snprintf(why, WHY_SIZE, "its clock is not confirmed by a quorum of nodes yet");
        break;
    case REDLOCK_GUARD_NONE:
        break;
    }
    return until_ns == 0 ? 0 : until_ns - now_ns;
}

struct redlock_text *redlock_guards_text(redlock_manager *manager, unsigned node) {
    char why[WHY_SIZE], left[SPAN_SIZE];
    const int64_t left_ns = manager->guards ? write_why(manager, node, why) : 0;
    return left_ns > 0 ? redlock_text_new("no vote for %s: %s", span(left_ns, left), why) : NULL;
}

int64_t redlock_manager_node_quarantine_ms(const redlock_manager *manager, unsigned node, const char **why) {
    *why = "";
    if (!manager->guards) {
        return 0;
    }
    const int64_t left_ns = write_why(manager, node, manager->guards->why);
    *why = manager->guards->why;
    return (left_ns + REDLOCK_NS_PER_MS - 1) / REDLOCK_NS_PER_MS;
}

/* A first meeting is no event: a node that has long been up may vote a moment later, once the others have told their clocks. */
static void log_quarantine(redlock_manager *manager, unsigned node) {
    char why[WHY_SIZE], left[SPAN_SIZE];
    const int64_t left_ns = write_why(manager, node, why);
    const bool is_first_meeting =
        redlock_guard_why(&manager->guards->guard, node, redlock_manager_now_ns(manager)) == REDLOCK_GUARD_UNKNOWN;
    manager->env.log(manager->env.ctx, is_first_meeting ? REDLOCK_LOG_INFO : REDLOCK_LOG_WARNING,
                     "node %s: no vote for %s: %s", manager->node_names[node], span(left_ns, left), why);
}

/* Why each node may not vote. */
static void write_reasons(const redlock_manager *manager, int64_t now_ns, enum redlock_guard_reason *why) {
    for (unsigned i = 0; i < manager->node_count; i++) {
        why[i] = redlock_guard_why(&manager->guards->guard, i, now_ns);
    }
}

/* A clock that is confirmed at once is no event either. */
static void log_lifted(const redlock_manager *manager, int64_t now_ns, const enum redlock_guard_reason *before) {
    for (unsigned i = 0; i < manager->node_count; i++) {
        if (before[i] != REDLOCK_GUARD_NONE && before[i] != REDLOCK_GUARD_CLOCK_UNCONFIRMED &&
            redlock_guard_why(&manager->guards->guard, i, now_ns) == REDLOCK_GUARD_NONE) {
            manager->env.log(manager->env.ctx, REDLOCK_LOG_INFO, "node %s: it may vote: %s", manager->node_names[i],
                             before[i] == REDLOCK_GUARD_CLOCK_AHEAD ? "its clock agrees with a quorum of nodes"
                                                                    : "it has been up for longer than ttl_max");
        }
    }
}

/* "and logs both clocks" (protocols.md 4). */
static void log_step(redlock_manager *manager, unsigned node, const struct redlock_clock_sample *sample,
                     int64_t step_ns) {
    char by[SPAN_SIZE];
    manager->env.log(
        manager->env.ctx, REDLOCK_LOG_WARNING,
        "node %s: its clock jumped %s by %s: it says %" PRId64 ".%06" PRId64 ", at %" PRId64 ".%06" PRId64
        " of our CLOCK_BOOTTIME; %s",
        manager->node_names[node], step_ns > 0 ? "forward" : "back", step(step_ns, by), sample->server_us / 1000000,
        sample->server_us % 1000000, sample->read_ns / 1000000000, sample->read_ns / 1000 % 1000000,
        step_ns > 0 ? "the votes that it gave are void" : "its keys live longer, which costs waiting only");
}

/* --- What comes in --- */

static void void_votes(redlock_manager *manager, unsigned node) {
    struct redlock_text *why = redlock_guards_text(manager, node);
    for (struct redlock_owner *owner = manager->leases.first, *next; owner; owner = next) {
        next = owner->next;
        redlock_lease_void((struct redlock_lease *)owner, node, why);
    }
    redlock_text_drop(why);
}

static void count_jump(redlock_manager *manager, unsigned node, const struct redlock_clock_sample *sample,
                       int64_t step_ns) {
    manager->statistics.clock_jumps++;
    log_step(manager, node, sample, step_ns);
    void_votes(manager, node);
}

static void note_begun(redlock_manager *manager, redlock_nodes begun) {
    const struct redlock_guard *guard = &manager->guards->guard;
    manager->statistics.quarantines += redlock_nodes_count(begun);
    for (unsigned i = 0; begun >> i != 0; i++) {
        if (begun & REDLOCK_NODE(i)) {
            log_quarantine(manager, i);
            if (guard->ahead & REDLOCK_NODE(i)) {
                void_votes(manager, i); /* of an acquire under way: it was asked before its clock could be compared */
            }
        }
    }
}

void redlock_manager_node_greeted(redlock_manager *manager, unsigned node, const struct redlock_greeting *greeting) {
    struct redlock_guards *guards = manager->guards;
    if (!guards) {
        return;
    }
    bool jumped = false;
    enum redlock_guard_reason before[REDLOCK_NODES_MAX];
    const int64_t now_ns = redlock_manager_now_ns(manager);
    write_reasons(manager, now_ns, before);
    const redlock_nodes begun = redlock_guard_greet(&guards->guard, node, greeting, now_ns, &jumped);
    log_lifted(manager, now_ns, before);
    if (jumped) {
        count_jump(manager, node, &greeting->clock, guards->guard.nodes[node].step_ns);
    }
    note_begun(manager, begun);
}

void redlock_guards_read_clock(redlock_manager *manager, unsigned node, const struct redlock_clock_sample *sample) {
    int64_t step_ns = 0;
    if (!manager->watching_clocks) {
        return;
    }
    switch (redlock_guard_sample(&manager->guards->guard, node, sample, redlock_manager_now_ns(manager), &step_ns)) {
    case REDLOCK_CLOCK_FORWARD:
        manager->statistics.quarantines++;
        count_jump(manager, node, sample, step_ns);
        log_quarantine(manager, node);
        break;
    case REDLOCK_CLOCK_BACKWARD:
        log_step(manager, node, sample, step_ns);
        break;
    case REDLOCK_CLOCK_STEADY:
        break;
    }
    note_begun(manager, manager->guards->guard.ahead);
}

void redlock_guards_seen(redlock_manager *manager, unsigned node, const struct redlock_answer *answer) {
    if (answer->vote == REDLOCK_VOTE_GRANTED || answer->vote == REDLOCK_VOTE_DENIED) {
        redlock_guard_seen(&manager->guards->guard, node, answer->read_ns);
    }
}

void redlock_guards_answer(redlock_manager *manager, unsigned node, const struct redlock_answer *answer) {
    if (answer->clock.server_us != 0) {
        redlock_guards_read_clock(manager, node, &answer->clock);
    }
}

void redlock_guards_due(redlock_manager *manager, int64_t now_ns) {
    struct redlock_guards *guards = manager->guards;
    struct redlock_message message = {.operation = REDLOCK_OP_TIME, .key = "", .token = "", .now_ns = now_ns};
    (void)redlock_manager_send(manager, &guards->owner, manager->ready, &message);
    redlock_schedule_set(&manager->schedule, &guards->owner.due, redlock_after_ms(now_ns, READ_EVERY_MS));
}

void redlock_guards_settled(redlock_manager *manager) {
    if (!manager->guards || !redlock_manager_all_settled(manager)) {
        return;
    }
    for (struct redlock_owner *owner = manager->leases.first, *next; owner; owner = next) {
        next = owner->next;
        struct redlock_lease *lease = (struct redlock_lease *)owner;
        if (lease->core.state == REDLOCK_LEASE_IDLE && !lease->forgotten) {
            redlock_lease_begin(lease, &lease->core.plan, redlock_manager_now_ns(manager));
        }
    }
}
