/* The counts of reentrant leases: which owner of this client holds which resource, and how often.
 * Nodes know nothing of them. */
#ifndef REDLOCK_BLOCKING_REENTRANT_H
#define REDLOCK_BLOCKING_REENTRANT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <redlock/redlock.h>

#include "blocking/cancellable.h"
#include "blocking/monitor.h"

/* A thread, or an id that the caller chose. The two are never equal. */
struct redlock_hold_owner {
    bool is_thread;
    uint64_t id;
};

/* The owner for this `id`. 0 is the calling thread. */
struct redlock_hold_owner redlock_hold_owner_of(uint64_t id);

/*
 * One owner's hold on one resource. The events are the functions below.
 *
 * state      event                          next
 * (none)     enter                        → TAKING     the caller acquires, then says acquire_done
 * TAKING     enter                        → TAKING     waits for the result
 *            acquire_done with a lease    → HELD       count 1
 *            acquire_done without one     → (none)     one of those who wait acquires next
 * HELD       enter, the lease is valid    → HELD       count + 1, the same lease
 *            enter, the lease is lost     → HELD       LOST
 *            enter to write, it reads     → HELD       UPGRADE: it would wait for itself
 *            downgrade, count 1           → HELD       it reads from now on
 *            downgrade, count above 1     → HELD       BUSY: others count on having it alone
 *            exit, count above 1          → HELD       count − 1
 *            exit, count 1                → GIVING     the caller releases, then says release_done
 * GIVING     enter                        → GIVING     waits for the result
 *            release_done, handle ended   → (none)     one of those who wait acquires next
 *            release_done, it did not end → HELD       count 1
 */
enum redlock_hold_state { REDLOCK_HOLD_TAKING, REDLOCK_HOLD_HELD, REDLOCK_HOLD_GIVING };

struct redlock_hold {
    struct redlock_hold *next; /* in its bucket */
    enum redlock_hold_state state;
    bool reads; /* its lease does; one that does not may also be entered to read */
    struct redlock_hold_owner owner;
    redlock_lease *lease; /* HELD, GIVING */
    uint32_t count;
    uint64_t hash;
    char resource[];
};

#define REDLOCK_HOLD_BUCKETS_FIRST 16

struct redlock_reentrant {
    struct redlock_monitor monitor; /* notified when an acquire or a release of a hold is done */
    size_t waiting;
    uint32_t count_max;
    atomic_size_t holds; /* read without the mutex: while it is 0, no lease is reentrant */
    size_t bucket_count; /* a power of two */
    struct redlock_hold **buckets;
};

/* Returns REDLOCK_OK, REDLOCK_ERR_NO_MEMORY or REDLOCK_ERR_SYSTEM. count_max limits each hold's
 * count. */
int redlock_reentrant_init(struct redlock_reentrant *table, uint32_t count_max);
/* Call it when no other thread can use the table any more. */
void redlock_reentrant_destroy(struct redlock_reentrant *table);
/* The same in a child process. If a thread of the parent held the mutex at the fork, nobody can
 * unlock it here: then this does nothing. */
void redlock_reentrant_abandon(struct redlock_reentrant *table);

/*
 * Waits while another thread of the same owner acquires or releases, until deadline_ns of
 * CLOCK_BOOTTIME (INT64_MAX: no limit), or until `call` is cancelled.
 * REDLOCK_OK: with *hold, acquire, and then say redlock_reentrant_acquire_done(*hold). Without it,
 * the count of *lease was raised.
 * REDLOCK_ERR_: UPGRADE, LOST, LIMIT, NO_MEMORY, CANCELLED; CONTENDED after deadline_ns.
 */
int redlock_reentrant_enter(struct redlock_reentrant *table, const char *resource, struct redlock_hold_owner owner,
                            bool reads, int64_t deadline_ns, const struct redlock_cancellable *call,
                            struct redlock_hold **hold, redlock_lease **lease);
/* A call was cancelled: those who wait look whether it is theirs. */
void redlock_reentrant_wake(struct redlock_reentrant *table);
/* `lease` is what was acquired. NULL if nothing was: then the hold is gone. */
void redlock_reentrant_acquire_done(struct redlock_reentrant *table, struct redlock_hold *hold, redlock_lease *lease);

/* Before a downgrade: REDLOCK_OK or REDLOCK_ERR_BUSY. With a *hold, say
 * redlock_reentrant_downgrade_refused() if nothing came of it. */
int redlock_reentrant_downgrade(struct redlock_reentrant *table, const redlock_lease *lease,
                                struct redlock_hold **hold);
void redlock_reentrant_downgrade_refused(struct redlock_reentrant *table, struct redlock_hold *hold);

enum redlock_exit {
    REDLOCK_EXIT_STRANGE,  /* not a reentrant lease */
    REDLOCK_EXIT_REFUSED,  /* another owner's */
    REDLOCK_EXIT_RETAINED, /* the count is one less; the lease is still held */
    REDLOCK_EXIT_LAST      /* release it, then redlock_reentrant_release_done(*hold) */
};

/* With `forget`, ends a handle without a release: LAST if the count is 1 and the owner is this
 * thread, or an id: nobody can prove an id. RETAINED if the count is above 1; then nothing
 * changes. */
enum redlock_exit redlock_reentrant_exit(struct redlock_reentrant *table, redlock_lease *lease,
                                         struct redlock_hold_owner owner, bool forget, struct redlock_hold **hold);
void redlock_reentrant_release_done(struct redlock_reentrant *table, struct redlock_hold *hold, bool ended);

#endif
