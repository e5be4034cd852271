/* The time of all tools: CLOCK_BOOTTIME, which also counts while the machine is suspended, and
 * which nobody moves. Async-signal-safe. */
#ifndef TOOL_CLOCK_H
#define TOOL_CLOCK_H

#include <assert.h>
#include <stdint.h>
#include <time.h>

static inline int64_t tool_now_ns(void) {
    struct timespec now;
    int failed = clock_gettime(CLOCK_BOOTTIME, &now); /* for an unknown clock only */
    assert(failed == 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t tool_now_us(void) {
    return tool_now_ns() / 1000;
}

static inline int64_t tool_now_ms(void) {
    return tool_now_ns() / 1000000;
}

#endif
