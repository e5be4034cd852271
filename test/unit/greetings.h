/* For tests of quarantines: one guard, what nodes say to it, and what it must decide. */
#ifndef REDLOCK_TEST_GREETINGS_H
#define REDLOCK_TEST_GREETINGS_H

#include "core/guard.h"
#include "core/time.h"

#define MS REDLOCK_NS_PER_MS
#define S  (1000 * MS)

#define TTL_MAX_MS 30000
#define LENGTH_NS  (30302 * MS) /* with its drift */
#define EPOCH_US   INT64_C(1795167037000000)
#define T0         (1000 * S)

#define OFF      REDLOCK_RESTART_GUARD_OFF
#define OBSERVED REDLOCK_RESTART_GUARD_OBSERVED
#define STRICT   REDLOCK_RESTART_GUARD_STRICT

extern struct redlock_guard guard;
extern bool jumped; /* of the last greeting */

void start(redlock_restart_guard restart, bool clock, unsigned node_count);

/* A reading without delay at now_ns, of a clock that is ahead by ahead_ns. */
struct redlock_clock_sample reading_at(int64_t now_ns, int64_t ahead_ns);

struct said {
    int64_t up_s;
    int64_t ahead_ns;
    bool no_clock;
};

redlock_nodes greet(unsigned node, const char *run_id, int64_t now_ns, struct said said);
enum redlock_clock_verdict sample(unsigned node, int64_t now_ns, int64_t ahead_ns);

void expect_free(unsigned node, int64_t now_ns);
/* The node is in quarantine until until_ns, and no longer. */
void expect_quarantine(unsigned node, int64_t now_ns, int64_t until_ns, enum redlock_guard_reason why);

#endif
