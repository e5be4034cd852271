/* PAST: nobody works beyond its own lease. */
#include "checks/check_parts.h"

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
