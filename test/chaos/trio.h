/* Three runs of a comparison: without protection, with fencing tokens, with guards. */
#ifndef CHAOS_TRIO_H
#define CHAOS_TRIO_H

#include "checks/comparison.h"
#include "kit.h"

#define S  INT64_C(1000000)
#define MS INT64_C(1000)

struct trio {
    struct kit kits[CHAOS_SIDES];
    struct chaos_comparison comparison;
};

/* A side whose only events are clocks that jump. */
void trio_make_side(struct kit *kit, enum chaos_side side);
size_t trio_acquire(struct kit *kit, int client, const char *token, int64_t fence, int64_t from_us);
/* Without protection: an overlap and a lost update. With tokens: an overlap and a refused write.
 * With guards: no violation. Returns NULL without memory. */
struct trio *trio_make(void);
void trio_judge(struct trio *trio);
void trio_free(struct trio *trio);

#endif
