/* The eventcount: one futex for each row of 32 sleepers; one bit wakes one sleeper. */
#include "blocking/eventcount.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static long futex(atomic_uint *word, int operation, uint32_t value, uint32_t bits) {
    return syscall(SYS_futex, word, operation, value, NULL, NULL, bits);
}

void redlock_eventcount_init(struct redlock_eventcount *eventcount) {
    for (unsigned i = 0; i < REDLOCK_EVENTCOUNT_ROWS; i++) {
        atomic_init(&eventcount->rows[i].epoch, 0);
        atomic_init(&eventcount->rows[i].taken, 0);
        eventcount->rows[i].to_wake = 0;
    }
}

/* The lowest bit of the row that is free, or 0. */
static uint32_t take_bit(atomic_uint *taken) {
    unsigned seen = atomic_load_explicit(taken, memory_order_relaxed);
    while (seen != UINT32_MAX) {
        uint32_t bit = ~seen & (seen + 1);
        if (atomic_compare_exchange_weak_explicit(taken, &seen, seen | bit, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return bit;
        }
    }
    return 0;
}

void redlock_eventcount_add(struct redlock_eventcount *eventcount, struct redlock_sleeper *sleeper) {
    atomic_init(&sleeper->state, REDLOCK_SLEEPER_AWAKE);
    for (sleeper->row = 0; sleeper->row < REDLOCK_EVENTCOUNT_ROWS; sleeper->row++) {
        sleeper->bit = take_bit(&eventcount->rows[sleeper->row].taken);
        if (sleeper->bit) {
            assert((sleeper->bit & (sleeper->bit - 1)) == 0);
            sleeper->alone = true;
            return;
        }
    }
    /* All bits are taken, so share one. Threads whose stacks are far apart rarely share. */
    uintptr_t page = (uintptr_t)sleeper >> 12;
    sleeper->row = (unsigned)(page / 32 % REDLOCK_EVENTCOUNT_ROWS);
    sleeper->bit = UINT32_C(1) << page % 32;
    sleeper->alone = false;
}

void redlock_eventcount_remove(struct redlock_eventcount *eventcount, const struct redlock_sleeper *sleeper) {
    if (sleeper->alone) {
        unsigned before =
            atomic_fetch_and_explicit(&eventcount->rows[sleeper->row].taken, ~sleeper->bit, memory_order_relaxed);
        assert(before & sleeper->bit);
        (void)before;
    }
}

void redlock_eventcount_sleep(struct redlock_eventcount *eventcount, struct redlock_sleeper *sleeper) {
    assert(sleeper->row < REDLOCK_EVENTCOUNT_ROWS && sleeper->bit != 0);
    atomic_uint *epoch = &eventcount->rows[sleeper->row].epoch;
    for (;;) {
        unsigned seen = atomic_load(epoch), state = REDLOCK_SLEEPER_AWAKE;
        if (!atomic_compare_exchange_strong(&sleeper->state, &state, REDLOCK_SLEEPER_ASLEEP) &&
            state == REDLOCK_SLEEPER_DONE) {
            return;
        }
        long failed = futex(epoch, FUTEX_WAIT_BITSET_PRIVATE, seen, sleeper->bit);
        assert(failed == 0 || errno == EAGAIN || errno == EINTR);
        (void)failed;
    }
}

void redlock_eventcount_finish(struct redlock_eventcount *eventcount, struct redlock_sleeper *sleeper) {
    assert(sleeper->row < REDLOCK_EVENTCOUNT_ROWS && sleeper->bit != 0);
    uint32_t *to_wake = &eventcount->rows[sleeper->row].to_wake, bit = sleeper->bit;
    unsigned before = atomic_exchange(&sleeper->state, REDLOCK_SLEEPER_DONE);
    assert(before != REDLOCK_SLEEPER_DONE);
    if (before == REDLOCK_SLEEPER_ASLEEP) {
        *to_wake |= bit;
    }
}

void redlock_eventcount_notify(struct redlock_eventcount *eventcount) {
    for (unsigned i = 0; i < REDLOCK_EVENTCOUNT_ROWS; i++) {
        if (eventcount->rows[i].to_wake == 0) {
            continue;
        }
        atomic_fetch_add(&eventcount->rows[i].epoch, 1);
        long woken = futex(&eventcount->rows[i].epoch, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, eventcount->rows[i].to_wake);
        assert(woken >= 0);
        (void)woken;
        eventcount->rows[i].to_wake = 0;
    }
}
