/* LATE: every operation completes by its deadline. */
#include "checks/check_parts.h"

/*
 * An operation is late if it completed after its deadline + slack + the time for which its process
 * was stopped in between, or if its process lived on beyond that and it never completed.
 *
 * What is proven. No false alarm: a process is stopped only between a fault's begin (written down
 * before SIGSTOP) and its heal (after SIGCONT), so that what is allowed for is never less than it
 * was stopped; and AFTER_PAUSE_US for it to catch up with the answers and timers that wait for it.
 * A stop that begins after all that was allowed is no excuse. What is missed: lateness by no more
 * than these allowances.
 */
#define AFTER_PAUSE_US INT64_C(100000)

static int64_t allowed_until(const struct chaos_case *c, const struct chaos_operation *operation) {
    const struct chaos_history *history = c->history;
    int64_t until_us = chaos_plus(operation->deadline_us, c->slack_us);
    /* stops up to here have been counted: they may overlap */
    int64_t counted_us = operation->invoked_us;
    for (size_t i = 0; i < history->band_count; i++) {
        const struct chaos_band *band = &history->bands[i];
        if (band->fault.kind != CHAOS_FAULT_CLIENT_PAUSE || (band->fault.clients >> operation->client & 1) == 0) {
            continue;
        }
        int64_t to_us = band->to_us == CHAOS_NEVER_US ? c->end_us : band->to_us;
        int64_t from_us = band->from_us > counted_us ? band->from_us : counted_us;
        if (band->from_us > until_us || to_us <= from_us) {
            continue;
        }
        until_us = chaos_plus(chaos_plus(until_us, to_us - from_us), AFTER_PAUSE_US);
        counted_us = to_us;
    }
    return until_us;
}

static bool add_late(struct chaos_case *c, const struct chaos_operation *operation, int64_t until_us) {
    const char *what = operation->what == CHAOS_ACQUIRE ? "an acquire" : "a release";
    struct chaos_violation violation =
        chaos_violation_of(CHAOS_VIOLATION_LATE, operation->deadline_us,
                           operation->completed_us == CHAOS_NEVER_US ? c->end_us : operation->completed_us,
                           operation->resource, operation->client, -1);
    double invoked_s = chaos_at(c, operation->invoked_us);
    double due_s = chaos_at(c, operation->deadline_us), until_s = chaos_at(c, until_us);
    if (operation->completed_us == CHAOS_NEVER_US) {
        return chaos_case_add(c, violation,
                              "%s of client %d that was invoked at %.3f s and due by %.3f s (with slack and pauses by "
                              "%.3f s) never completed, though its process lived on",
                              what, operation->client + 1, invoked_s, due_s, until_s);
    }
    return chaos_case_add(c, violation,
                          "%s of client %d that was invoked at %.3f s and due by %.3f s (with slack and pauses by "
                          "%.3f s) completed at %.3f s with %s",
                          what, operation->client + 1, invoked_s, due_s, until_s, chaos_at(c, operation->completed_us),
                          operation->result);
}

bool chaos_check_operations(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    for (size_t i = 0; i < history->operation_count; i++) {
        const struct chaos_operation *operation = &history->operations[i];
        int64_t seen_us = operation->completed_us; /* it was under way until then */
        if (seen_us == CHAOS_NEVER_US) {
            const struct chaos_life *life = chaos_case_life(c, operation->client, operation->invoked_us);
            seen_us = life == NULL || life->ended_us == CHAOS_NEVER_US ? c->end_us : life->ended_us;
        }
        /* Most are in time by their own deadline: pauses need not be looked for. */
        if (seen_us <= chaos_plus(operation->deadline_us, c->slack_us)) {
            continue;
        }
        int64_t until_us = allowed_until(c, operation);
        if (seen_us > until_us && !add_late(c, operation, until_us)) {
            return false;
        }
    }
    return true;
}
