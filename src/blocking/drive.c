/* The drive: one atomic word, and an eventfd that wakes the thread. */
#include "blocking/drive.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WANTED_MAX_MS 64
#define STATE_MASK    7U
#define ONE_LOOK      8U

static_assert(REDLOCK_DRIVE_THREAD <= (int)STATE_MASK, "the state fits below the count");

static enum redlock_drive_state state_of(unsigned word) {
    return (enum redlock_drive_state)(word & STATE_MASK);
}

/* Replaces the state that `word` had, if nothing has changed since. Else `word` becomes what it is
 * now. */
static bool step(struct redlock_drive *drive, unsigned *word, enum redlock_drive_state next) {
    return atomic_compare_exchange_strong(&drive->word, word, (*word & ~STATE_MASK) | next);
}

int redlock_drive_init(struct redlock_drive *drive) {
    atomic_init(&drive->word, REDLOCK_DRIVE_THREAD);
    drive->wake_up = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return drive->wake_up < 0 ? errno : 0;
}

void redlock_drive_destroy(struct redlock_drive *drive) {
    (void)close(drive->wake_up);
}

static void wake(const struct redlock_drive *drive) {
    const uint64_t one = 1;
    const ssize_t written = write(drive->wake_up, &one, sizeof one);
    assert(written == (ssize_t)sizeof one);
    (void)written;
}

bool redlock_drive_claim(struct redlock_drive *drive) {
    unsigned word = atomic_load(&drive->word);
    while (state_of(word) <= REDLOCK_DRIVE_NAPPING) {
        const enum redlock_drive_state next =
            state_of(word) == REDLOCK_DRIVE_WATCHED ? REDLOCK_DRIVE_BLIND : REDLOCK_DRIVE_CALLER;
        if (atomic_compare_exchange_weak(&drive->word, &word, (word & ~STATE_MASK) | next)) {
            return true;
        }
    }
    return false;
}

static bool caller_drives(unsigned word) {
    return state_of(word) >= REDLOCK_DRIVE_CALLER && state_of(word) <= REDLOCK_DRIVE_WANTED;
}

/* The thread may step meanwhile. */
void redlock_drive_exit(struct redlock_drive *drive, bool looked) {
    unsigned word = atomic_load(&drive->word), next;
    do {
        assert(caller_drives(word));
        next = state_of(word) == REDLOCK_DRIVE_WANTED ? REDLOCK_DRIVE_THREAD : REDLOCK_DRIVE_NAPPING;
        next += (word & ~STATE_MASK) + (looked ? ONE_LOOK : 0);
    } while (!atomic_compare_exchange_weak(&drive->word, &word, next));
    if (state_of(word) != REDLOCK_DRIVE_CALLER) {
        wake(drive);
    }
}

void redlock_drive_pass(struct redlock_drive *drive) {
    unsigned word = atomic_load(&drive->word);
    do {
        assert(caller_drives(word));
    } while (!step(drive, &word, REDLOCK_DRIVE_THREAD));
    wake(drive);
}

bool redlock_drive_is_wanted(const struct redlock_drive *drive) {
    return state_of(atomic_load(&drive->word)) == REDLOCK_DRIVE_WANTED;
}

bool redlock_drive_is_blind(const struct redlock_drive *drive) {
    return state_of(atomic_load(&drive->word)) == REDLOCK_DRIVE_BLIND;
}

void redlock_drive_end_blind(struct redlock_drive *drive) {
    unsigned word = atomic_load(&drive->word);
    if (state_of(word) == REDLOCK_DRIVE_BLIND && step(drive, &word, REDLOCK_DRIVE_CALLER)) {
        wake(drive);
    }
}

void redlock_drive_rest(struct redlock_drive *drive, bool watches) {
    unsigned word = atomic_load(&drive->word);
    assert(state_of(word) == REDLOCK_DRIVE_THREAD);
    const bool stepped = step(drive, &word, watches ? REDLOCK_DRIVE_WATCHED : REDLOCK_DRIVE_NAPPING);
    assert(stepped);
    (void)stepped;
}

bool redlock_drive_resume(struct redlock_drive *drive) {
    unsigned word = atomic_load(&drive->word);
    while (state_of(word) <= REDLOCK_DRIVE_NAPPING) {
        if (step(drive, &word, REDLOCK_DRIVE_THREAD)) {
            return true;
        }
    }
    return false;
}

/* Sleeps until it is woken, the time is over, or this descriptor is readable (-1: none).
 * Returns whether it is that. */
static bool sleep_until(const struct redlock_drive *drive, int timeout_ms, int fd) {
    struct pollfd watched[] = {{.fd = drive->wake_up, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    const int ready = poll(watched, 2, timeout_ms);
    assert(ready >= 0 || errno == EINTR);
    if (ready > 0 && watched[0].revents != 0) {
        uint64_t count;
        (void)!read(drive->wake_up, &count, sizeof count);
    }
    return ready > 0 && watched[1].revents != 0;
}

/* After a nap: whether nobody has looked at the loop since `seen`. A caller that drives now may
 * have claimed a moment ago, so it gets one more nap. */
static bool ends_naps(unsigned word, unsigned seen) {
    return state_of(seen) != REDLOCK_DRIVE_THREAD && word / ONE_LOOK == seen / ONE_LOOK &&
           (state_of(word) == REDLOCK_DRIVE_NAPPING || state_of(seen) == REDLOCK_DRIVE_CALLER);
}

bool redlock_drive_sleep(struct redlock_drive *drive, int loop_fd) {
    unsigned seen = REDLOCK_DRIVE_THREAD; /* what it saw before the nap; THREAD: nothing */
    int wanted_ms = REDLOCK_DRIVE_NAP_MS;
    for (;;) {
        unsigned word = atomic_load(&drive->word);
        switch (state_of(word)) {
        case REDLOCK_DRIVE_THREAD:
            return true;
        case REDLOCK_DRIVE_WATCHED:
            if (sleep_until(drive, -1, loop_fd)) {
                (void)step(drive, &word, REDLOCK_DRIVE_THREAD);
            }
            break;
        case REDLOCK_DRIVE_NAPPING:
        case REDLOCK_DRIVE_CALLER:
            if (!ends_naps(word, seen)) {
                seen = word;
                (void)sleep_until(drive, REDLOCK_DRIVE_NAP_MS, -1);
            } else if (state_of(word) == REDLOCK_DRIVE_NAPPING) {
                (void)step(drive, &word, REDLOCK_DRIVE_THREAD);
            } else if (step(drive, &word, REDLOCK_DRIVE_WANTED)) {
                return false;
            }
            break;
        case REDLOCK_DRIVE_BLIND:
            (void)step(drive, &word, REDLOCK_DRIVE_CALLER);
            break;
        case REDLOCK_DRIVE_WANTED:
            (void)sleep_until(drive, wanted_ms, -1);
            wanted_ms = wanted_ms < WANTED_MAX_MS ? 2 * wanted_ms : wanted_ms;
            break;
        }
    }
}
