/* LATE: every operation completes by its deadline. */
#include "checks/check_parts.h"

/*
 * An operation is late if it completed after its deadline + slack + the time for which its process
 * was stopped in between, or if its process lived on beyond that and it never completed.
 * What is proven: tools/chaos/README.md.
 */
#define AFTER_PAUSE_US INT64_C(100000) /* to catch up with answers and timers that wait */

int64_t chaos_case_with_pauses(const struct chaos_case *c, int client, int64_t from_us, int64_t until_us) {
    const struct chaos_history *history = c->history;
    /* stops up to here have been counted: they may overlap */
    int64_t counted_us = from_us;
    CHAOS_EACH(const struct chaos_band, band, history->bands, history->band_count) {
        bool stops = band->fault.kind == CHAOS_FAULT_CLIENT_PAUSE && chaos_hits_client(&band->fault, (size_t)client);
        int64_t begin_us = chaos_most(band->from_us, counted_us), to_us = chaos_over(band->to_us, c->end_us);
        if (stops && band->from_us <= until_us && to_us > begin_us) {
            until_us = chaos_plus(chaos_plus(until_us, to_us - begin_us), AFTER_PAUSE_US);
            counted_us = to_us;
        }
    }
    return until_us;
}

static void add_late(struct chaos_case *c, const struct chaos_operation *operation, int64_t until_us) {
    char outcome[96] = "never completed, though its process lived on";
    int64_t to_us = chaos_over(operation->completed_us, c->end_us);
    if (operation->completed_us != CHAOS_NEVER_US) {
        snprintf(outcome, sizeof outcome, "completed at %.3f s with %s", chaos_at(c, operation->completed_us),
                 operation->result);
    }
    chaos_case_add(c, CHAOS_WRONG(LATE, operation->deadline_us, to_us, operation->resource, operation->client, -1),
                   "%s of client %d that was invoked at %.3f s and due by %.3f s (with slack and pauses by %.3f s) %s",
                   operation->what == CHAOS_ACQUIRE ? "an acquire" : "a release", operation->client + 1,
                   chaos_at(c, operation->invoked_us), chaos_at(c, operation->deadline_us), chaos_at(c, until_us),
                   outcome);
}

void chaos_check_operations(struct chaos_case *c) {
    const struct chaos_history *history = c->history;
    CHAOS_EACH(const struct chaos_operation, operation, history->operations, history->operation_count) {
        int64_t seen_us = operation->completed_us; /* it was under way until then */
        if (seen_us == CHAOS_NEVER_US) {
            const struct chaos_life *life = chaos_case_life(c, operation->client, operation->invoked_us);
            seen_us = life == NULL ? c->end_us : chaos_over(life->ended_us, c->end_us);
        }
        /* Most are in time by their own deadline: pauses need not be looked for. */
        if (seen_us > chaos_plus(operation->deadline_us, c->slack_us)) {
            int64_t until_us = chaos_case_with_pauses(c, operation->client, operation->invoked_us,
                                                      chaos_plus(operation->deadline_us, c->slack_us));
            if (seen_us > until_us) {
                add_late(c, operation, until_us);
            }
        }
    }
}
