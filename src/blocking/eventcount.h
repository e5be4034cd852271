/* An eventcount: many threads sleep, each until its own call is done. One system call wakes all
 * that are done. */
#ifndef REDLOCK_BLOCKING_EVENTCOUNT_H
#define REDLOCK_BLOCKING_EVENTCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * With one semaphore for each sleeper, the finisher would need a system call for each of them, and
 * the kernel might switch to a sleeper in the middle of the finisher's work. Here the finisher
 * finishes many sleepers and notifies once.
 *
 * The state of a sleeper. The sleeper owns it until redlock_eventcount_sleep() returns.
 *
 * state    means                          sleep                   finish
 * AWAKE    not done, nobody to wake       → ASLEEP, and sleeps    → DONE
 * ASLEEP   not done, must be woken        sleeps on               → DONE, woken at the next notify
 * DONE     done, the sleeper's own again  returns                 –
 *
 * No wake-up is lost. The sleeper reads `epoch` (1) and sets ASLEEP (2). It sleeps only if `epoch`
 * has not changed: the kernel compares it (3) under the lock that it holds to wake (6). The
 * finisher sets DONE (4), raises `epoch` (5) and wakes (6). If (4) comes before (2), the sleeper
 * finds DONE and does not sleep. Else (1) and (2) come before (4) and (5), so the sleeper has read
 * the old value. Then (3) either sees the new value and does not sleep, or comes before (6), which
 * wakes it. (Only a rise by 2^32 between (1) and (3) would not change `epoch`.)
 *
 * A signal, or a notify for another sleeper with the same bit, also wakes a sleeper. It finds that
 * it is not done, and sleeps again.
 */
enum redlock_sleeper_state { REDLOCK_SLEEPER_AWAKE, REDLOCK_SLEEPER_ASLEEP, REDLOCK_SLEEPER_DONE };

/* Lives on the stack of the thread that sleeps. */
struct redlock_sleeper {
    atomic_uint state; /* enum redlock_sleeper_state */
    uint32_t bit;      /* its bit in the row */
    unsigned row;
    bool alone; /* no other sleeper has this bit */
};

#define REDLOCK_EVENTCOUNT_ROWS 8 /* of 32 bits each; above 256 sleepers, some share a bit */

struct redlock_eventcount {
    struct {
        atomic_uint epoch; /* the futex */
        atomic_uint taken; /* bits in use by a sleeper that is alone */
        uint32_t to_wake;  /* the finisher's: sleepers that are done and must be woken */
    } rows[REDLOCK_EVENTCOUNT_ROWS];
};

void redlock_eventcount_init(struct redlock_eventcount *eventcount);

/* The sleeper calls add before anybody can finish it, and remove when it will not sleep again. */
void redlock_eventcount_add(struct redlock_eventcount *eventcount, struct redlock_sleeper *sleeper);
void redlock_eventcount_remove(struct redlock_eventcount *eventcount, const struct redlock_sleeper *sleeper);
/* The sleeper calls this. Returns when it is finished, and then sees what the finisher wrote
 * before. */
void redlock_eventcount_sleep(struct redlock_eventcount *eventcount, struct redlock_sleeper *sleeper);

/* Only who drives the loop finishes and notifies. The sleeper may be gone when this returns: it may
 * not have slept. */
void redlock_eventcount_finish(struct redlock_eventcount *eventcount, struct redlock_sleeper *sleeper);
/* Wakes all sleepers that were finished since the last notify. */
void redlock_eventcount_notify(struct redlock_eventcount *eventcount);

#endif
