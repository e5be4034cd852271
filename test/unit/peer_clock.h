/* The clock of a test that is a server to its own node. */
#ifndef TEST_UNIT_PEER_CLOCK_H
#define TEST_UNIT_PEER_CLOCK_H

#include <stdint.h>

/*
 * CLOCK_BOOTTIME goes on with the real one, but by no more than this from one look at it to the
 * next; each turn looks. The node and its server share one thread, which others may keep from the
 * processor for longer than a timeout. Then the node would wait for a server that could not answer.
 */
#define PEER_CLOCK_STEP_NS INT64_C(2000000)

/* The machine slept for so long, in all. */
void peer_clock_sleep_s(int64_t asleep_s);

#endif
