/* Many threads asleep, each until what it waits for is done; one system call wakes all those of whom that is so. */
#ifndef REDLOCK_BLOCKING_BELL_H
#define REDLOCK_BLOCKING_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A semaphore for each sleeper would cost the finisher one system call for each, and a switch to the sleeper and back
 * in the middle of its work. Here it finishes many and rings once: then all are runnable, and run one after the other.
 *
 * The state of a sleeper, which is the sleeper's until redlock_bell_sleep() returns:
 *
 * state    means                          sleep                   finish
 * AWAKE    not done, nobody to be woken   → ASLEEP, and sleeps    → DONE
 * ASLEEP   not done, will have to be woken sleeps on              → DONE, rung for by the next ring
 * DONE     done; the finisher is through  returns                 –
 *
 * No wake-up is lost. A sleeper reads `rings` (1), says ASLEEP (2), and sleeps only if `rings` is still what it read,
 * which the kernel checks (3) under the lock under which it wakes (6). The finisher says DONE (4), raises `rings` (5)
 * and wakes (6). If (4) comes before (2), the sleeper finds DONE and does not sleep. Else (1) and (2) come before (4)
 * and (5), so what was read is the old value: (3) either sees the new one and does not sleep, or is before (6), which
 * wakes it. (`rings` would have to rise by 2^32 between (1) and (3) to look unchanged.)
 *
 * A sleeper that is woken for another's sake, because they share a bit, or by a signal, finds that it is not done and
 * sleeps on.
 */
enum redlock_sleeper_state { REDLOCK_SLEEPER_AWAKE, REDLOCK_SLEEPER_ASLEEP, REDLOCK_SLEEPER_DONE };

/* On the stack of the thread that sleeps. */
struct redlock_sleeper {
    atomic_uint state; /* enum redlock_sleeper_state */
    uint32_t bit;      /* in its row: who is woken when the row is rung */
    unsigned row;
    bool alone; /* nobody else has this bit */
};

#define REDLOCK_BELL_ROWS 8 /* of 32 sleepers with a bit of their own each; more than 256 share bits */

struct redlock_bell {
    struct {
        atomic_uint rings; /* the futex */
        atomic_uint taken; /* bits that have a sleeper of their own */
        uint32_t to_ring;  /* the finisher's: bits of those who sleep and are done */
    } rows[REDLOCK_BELL_ROWS];
};

void redlock_bell_init(struct redlock_bell *bell);

/* A sleeper's: before anybody can finish it, and when it will not sleep any more. */
void redlock_bell_enter(struct redlock_bell *bell, struct redlock_sleeper *sleeper);
void redlock_bell_leave(struct redlock_bell *bell, const struct redlock_sleeper *sleeper);
/* A sleeper's. Returns when it is finished; what the finisher wrote before is seen. */
void redlock_bell_sleep(struct redlock_bell *bell, struct redlock_sleeper *sleeper);

/* The one finisher's. The sleeper may be gone when this returns: it need not have slept. */
void redlock_bell_finish(struct redlock_bell *bell, struct redlock_sleeper *sleeper);
/* The finisher's: wakes all that were finished since the last ring. */
void redlock_bell_ring(struct redlock_bell *bell);

#endif
