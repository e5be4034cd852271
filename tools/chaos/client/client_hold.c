/* A client that holds a lease: what it relies on, and the counter that the lease guards. */
#include "client/client_hold.h"

#include <errno.h>

/*
 * The library rounds the validity down to ms, and time passes between our look at the clock and its
 * own, so what one look says differs from the next by a little. Only a renewal moves it by as much
 * as the first of these. When the end of the claim is as near as the second (less than 1 ms, so
 * that one more claim is enough), what little more the library says is claimed as well: nothing is
 * done beyond a claim.
 */
enum { RENEWED_US = 20000, NEAR_END_US = 500, LOOK_US = 5000 };

struct hold {
    struct chaos_journal *journal;
    const struct chaos_stop *stop;
    const redlock_lease *lease;
    const struct chaos_held *held;
    const struct chaos_resource *resource;
    int64_t until_us; /* claimed last; 0: nothing yet */
};

enum look { LOOK_LOST, LOOK_CLAIMED, LOOK_VALID };

/* Our clock is read first: now + validity is never later than the deadline that the library
 * keeps. */
static enum look look(struct hold *hold) {
    int64_t now_us = chaos_now_us();
    int64_t validity_ms = redlock_lease_validity_ms(hold->lease);
    int64_t until_us = now_us + validity_ms * 1000;
    if (validity_ms == 0) {
        return LOOK_LOST;
    }
    bool renewed = until_us - hold->until_us >= RENEWED_US;
    bool near_end = until_us > hold->until_us && hold->until_us - now_us < NEAR_END_US;
    if (!renewed && !near_end) {
        return LOOK_VALID;
    }
    chaos_journal_claim(hold->journal, now_us, hold->held, until_us);
    hold->until_us = until_us;
    return LOOK_CLAIMED;
}

/* False if the lease is lost meanwhile. */
static bool stay(struct hold *hold, int64_t hold_us) {
    int64_t end_us = chaos_now_us() + hold_us;
    bool stopped = false;
    while (look(hold) != LOOK_LOST) {
        int64_t left_us = end_us - chaos_now_us();
        if (left_us <= 0 || stopped) {
            return true;
        }
        stopped = chaos_stop_wait_us(hold->stop, left_us < LOOK_US ? left_us : LOOK_US);
    }
    return false;
}

enum increment { INCREMENT_DONE, INCREMENT_LOST, INCREMENT_REFUSED, INCREMENT_BROKEN };

static enum increment refused(const struct hold *hold, int64_t read, const struct chaos_receipt *receipt) {
    chaos_journal_refused(hold->journal, hold->held, read, receipt);
    return INCREMENT_REFUSED;
}

static enum increment increment(struct hold *hold, int64_t work_us) {
    int64_t read = 0;
    struct chaos_receipt receipt;
    enum chaos_access access = chaos_resource_read(hold->resource, &read, &receipt);
    if (access != CHAOS_ACCESS_GRANTED) {
        return access == CHAOS_ACCESS_BROKEN ? INCREMENT_BROKEN : refused(hold, -1, &receipt);
    }
    chaos_journal_intent(hold->journal, hold->held, read, &receipt);
    if (!stay(hold, work_us)) {
        return INCREMENT_LOST;
    }
    enum look seen;
    /* What a claim costs must not lie between the look that counts and the write. */
    while ((seen = look(hold)) == LOOK_CLAIMED) {
    }
    if (seen == LOOK_LOST) {
        return INCREMENT_LOST;
    }
    access = chaos_resource_write(hold->resource, read + 1, &receipt);
    int64_t now_us = chaos_now_us();
    if (access != CHAOS_ACCESS_GRANTED) {
        return access == CHAOS_ACCESS_BROKEN ? INCREMENT_BROKEN : refused(hold, read, &receipt);
    }
    chaos_journal_done(hold->journal, now_us, hold->held, read, hold->until_us, &receipt);
    return INCREMENT_DONE;
}

bool chaos_hold(struct chaos_journal *journal, const struct chaos_stop *stop, const redlock_lease *lease,
                const struct chaos_held *held, const struct chaos_resource *resource,
                const struct chaos_hold_plan *plan) {
    struct hold hold = {.journal = journal, .stop = stop, .lease = lease, .held = held, .resource = resource};
    enum increment came = stay(&hold, plan->before_us) ? increment(&hold, plan->work_us) : INCREMENT_LOST;
    if (came == INCREMENT_BROKEN) {
        return false;
    }
    /* Without a claim there is nothing to end: its validity was over when it was first looked
     * at. */
    if (hold.until_us != 0) {
        chaos_journal_end(journal, held, came == INCREMENT_LOST ? "lost" : "release");
    }
    return true;
}
