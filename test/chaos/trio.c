/* Three runs of a comparison: without protection, with fencing tokens, with guards. */
#include "trio.h"

#include <stdlib.h>

void trio_make_side(struct kit *kit, enum chaos_side side) {
    kit_begin(kit, 5, 3, 2);
    kit->history.protection = chaos_side_protection(side);
    kit->history.protection.ttl_max_ms = side == CHAOS_SIDE_GUARDS ? 1000 : 0;
    kit->history.breaks_assumptions = true;
    kit_sweep(kit, 1, 1 * S, 1100 * MS);
    kit_band(kit, CHAOS_FAULT_CLOCK_JUMP, 0x07, 0, 1300 * MS, 1300 * MS);
    kit->history.bands[0].fault.amount = 5000;
}

size_t trio_acquire(struct kit *kit, int client, const char *token, int64_t fence, int64_t from_us) {
    size_t lease = kit_acquire(kit, client, 0, token, from_us, from_us + 900 * MS);
    kit_fence(kit, token, fence);
    return lease;
}

struct trio *trio_make(void) {
    struct trio *trio = calloc(1, sizeof *trio);
    for (int side = 0; trio != NULL && side < CHAOS_SIDES; side++) {
        struct kit *kit = &trio->kits[side];
        bool fenced = side != CHAOS_SIDE_NONE;
        trio_make_side(kit, (enum chaos_side)side);
        size_t one = trio_acquire(kit, 0, "a", fenced ? 10 : 0, 1 * S);
        size_t two = trio_acquire(kit, 1, "b", fenced ? 11 : 0, side == CHAOS_SIDE_GUARDS ? 2500 * MS : 1500 * MS);
        int64_t read_us = side == CHAOS_SIDE_GUARDS ? 2600 * MS : 1600 * MS;
        size_t old = kit_increment(kit, one, 0, 1100 * MS, side == CHAOS_SIDE_FENCING ? CHAOS_NEVER_US : 1700 * MS);
        size_t new = kit_increment(kit, two, side == CHAOS_SIDE_GUARDS, read_us, read_us + 50 * MS);
        if (fenced) {
            kit_receipts(kit, old, 10, 1, side == CHAOS_SIDE_FENCING ? 0 : 2);
            kit_receipts(kit, new, 11, side == CHAOS_SIDE_FENCING ? 2 : 3, side == CHAOS_SIDE_FENCING ? 3 : 4);
            kit_tally(kit, 0, 3 * S, 1, side == CHAOS_SIDE_GUARDS ? 3 : 0);
        }
        if (side == CHAOS_SIDE_FENCING) {
            kit_refuse(kit, old, 0, 0, 1710 * MS, 10, 11);
        }
        kit_release(kit, one, 1750 * MS);
        kit_release(kit, two, 3300 * MS);
        kit_finish(kit, 9 * S);
    }
    return trio;
}

/* The histories are the kits'. */
void trio_free(struct trio *trio) {
    for (int side = 0; side < CHAOS_SIDES; side++) {
        chaos_verdict_clear(&trio->comparison.verdicts[side]);
        kit_clear(&trio->kits[side]);
    }
    free(trio);
}

void trio_judge(struct trio *trio) {
    for (int side = 0; side < CHAOS_SIDES; side++) {
        chaos_verdict_clear(&trio->comparison.verdicts[side]);
        trio->comparison.histories[side] = trio->kits[side].history;
        chaos_check(&trio->kits[side].history, 1 * S, &trio->comparison.verdicts[side]);
    }
}
