/* What the tests of events begin with: a group whose events are kept. */
#ifndef REDLOCK_TEST_TOLD_KIT_H
#define REDLOCK_TEST_TOLD_KIT_H

#include <redlock/telemetry.h>

#include "queue_kit.h"

/* What on_event was told. */
struct told {
    redlock_telemetry_event event;
    char resource[16], node[16], reason[256];
};
extern struct told told[64];
extern unsigned told_count;

extern const struct group_setup three_told, five_told;
int open_told(void **state);
#define TOLD_TEST(function, setup) SEEN_TEST(function, open_told, setup)

/* These events, and no others, since the last look. */
#define assert_told(...)                                                                                               \
    do {                                                                                                               \
        const redlock_telemetry_kind kinds_[] = {__VA_ARGS__};                                                         \
        check_told(kinds_, sizeof kinds_ / sizeof *kinds_, __LINE__);                                                  \
    } while (0)
void check_told(const redlock_telemetry_kind *kinds, size_t count, int line);
void assert_nothing_told(void);
/* The last event. */
const struct told *last(void);
redlock_telemetry snapshot(void);

#define STARTED   REDLOCK_TELEMETRY_STARTED
#define DENIED    REDLOCK_TELEMETRY_DENIED
#define QUEUED    REDLOCK_TELEMETRY_QUEUED
#define ACQUIRED  REDLOCK_TELEMETRY_ACQUIRED
#define FAILED    REDLOCK_TELEMETRY_FAILED
#define ADOPTED   REDLOCK_TELEMETRY_ADOPTED
#define EXTENDED  REDLOCK_TELEMETRY_EXTENDED
#define LOST      REDLOCK_TELEMETRY_LOST
#define RELEASED  REDLOCK_TELEMETRY_RELEASED
#define FORGOTTEN REDLOCK_TELEMETRY_FORGOTTEN
#define NODE_UP   REDLOCK_TELEMETRY_NODE_UP
#define NODE_DOWN REDLOCK_TELEMETRY_NODE_DOWN
#define EXPIRING  REDLOCK_TELEMETRY_EXPIRING

#endif
