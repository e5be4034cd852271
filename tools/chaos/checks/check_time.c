/* OVERLAP: no two leases of one resource are relied on at the same time, but shared ones. PAST:
 * nobody works beyond its own lease. LATE: every operation completes by its deadline. */
#include <stdlib.h>

#include "checks/check_parts.h"
#include "values/values.h"

/* Of the leases by their begin, each is compared with the earlier one that lasts longest, of those
 * that it excludes: where any of these lasts into it, that one does. What is proven:
 * tools/chaos/README.md. */

CHAOS_ORDER_OF(compare_leases, chaos_lease, chaos_order_by(x->resource, y->resource, x->from_us, y->from_us))

static int64_t relied_until(const struct chaos_case *c, const struct chaos_lease *lease) {
    return c->relied_until_us[lease - c->history->leases];
}

static const char *mode_of(const struct chaos_lease *lease) {
    return lease->shared ? ", to read" : "";
}

static void add(struct chaos_case *c, const struct chaos_lease *a, const struct chaos_lease *b) {
    int64_t to_us = chaos_least(relied_until(c, a), relied_until(c, b));
    chaos_case_add(c, CHAOS_WRONG(OVERLAP, b->from_us, to_us, a->resource, a->client, b->client),
                   "client %d (token %s%s) relied on it from %.3f s to %.3f s, client %d (token %s%s) from %.3f s to "
                   "%.3f s: both for %.3f ms",
                   a->client + 1, a->token, mode_of(a), chaos_at(c, a->from_us), chaos_at(c, relied_until(c, a)),
                   b->client + 1, b->token, mode_of(b), chaos_at(c, b->from_us), chaos_at(c, relied_until(c, b)),
                   (double)(to_us - b->from_us) / 1e3);
}

void chaos_check_overlap(struct chaos_case *c) {
    const struct chaos_history *h = c->history;
    const struct chaos_lease **leases = chaos_sorted(h->leases, h->lease_count, sizeof *h->leases, compare_leases);
    const struct chaos_lease *longest[] = {NULL, NULL}; /* of those alone; of all */
    for (size_t i = 0; i < h->lease_count; i++) {
        const struct chaos_lease *lease = leases[i], *before = longest[!lease->shared];
        if (relied_until(c, lease) <= lease->from_us) {
            continue;
        }
        if (before != NULL && before->resource == lease->resource && lease->from_us < relied_until(c, before)) {
            add(c, before, lease);
        }
        for (size_t of = lease->shared; of < 2; of++) {
            bool same = longest[of] != NULL && longest[of]->resource == lease->resource;
            longest[of] = same && relied_until(c, longest[of]) >= relied_until(c, lease) ? longest[of] : lease;
        }
    }
    free(leases);
}

/*
 * An increment is done at the latest when the claim ends under which it was written. A process that
 * was stopped in between may end later by as much: no lock can prevent that. What is proven:
 * tools/chaos/README.md.
 */
void chaos_check_late_work(struct chaos_case *c) {
    CHAOS_EACH(const struct chaos_increment, increment, c->history->increments, c->history->increment_count) {
        if (increment->done_us == CHAOS_NEVER_US || increment->done_us <= increment->until_us) {
            continue;
        }
        if (increment->done_us <=
            chaos_case_with_pauses(c, increment->client, increment->intent_us, increment->until_us)) {
            continue;
        }
        chaos_case_add(
            c, CHAOS_WRONG(PAST, increment->until_us, increment->done_us, increment->resource, increment->client, -1),
            "client %d (token %s) had it until %.3f s, and wrote by %.3f s: %.3f ms later", increment->client + 1,
            increment->token, chaos_at(c, increment->until_us), chaos_at(c, increment->done_us),
            (double)(increment->done_us - increment->until_us) / 1e3);
    }
}

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
    int64_t to_us = chaos_over(operation->completed_us, c->end_us);
    const char *outcome =
        operation->completed_us == CHAOS_NEVER_US
            ? "never completed, though its process lived on"
            : TOOL_TEXT(96, "completed at %.3f s with %s", chaos_at(c, operation->completed_us), operation->result);
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
