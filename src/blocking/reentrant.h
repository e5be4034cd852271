/* Who of this client holds what, and how often: the counts of reentrant leases, kept here and never on the nodes. */
#ifndef REDLOCK_BLOCKING_REENTRANT_H
#define REDLOCK_BLOCKING_REENTRANT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <redlock/redlock.h>

/* A thread, or an id that the caller names; the two never meet. */
struct redlock_holder {
    bool is_thread;
    uint64_t id;
};

/* The owner that a caller means by `id`: 0 is the calling thread. */
struct redlock_holder redlock_holder_of(uint64_t id);

/*
 * One owner's hold on one resource.
 *
 * state      event                          next
 * (none)     enter                        → TAKING     the caller acquires, then says settle
 * TAKING     enter                        → TAKING     waits for what comes of it
 *            settle with a lease          → HELD       count 1
 *            settle without               → (none)     of those who wait, one acquires in its turn
 * HELD       enter, the lease is valid    → HELD       count + 1, the same lease
 *            enter, the lease is lost     → HELD       LOST
 *            leave, count above 1         → HELD       count − 1
 *            leave, count 1               → GIVING     the caller releases, then says given
 * GIVING     enter                        → GIVING     waits for what comes of it
 *            given, the handle has ended  → (none)     of those who wait, one acquires
 *            given, it has not            → HELD       count 1
 */
enum redlock_hold_state { REDLOCK_HOLD_TAKING, REDLOCK_HOLD_HELD, REDLOCK_HOLD_GIVING };

struct redlock_hold {
    struct redlock_hold *next; /* in its bucket */
    enum redlock_hold_state state;
    struct redlock_holder owner;
    redlock_lease *lease; /* HELD, GIVING */
    uint32_t count;
    uint64_t hash;
    char resource[];
};

#define REDLOCK_HOLD_BUCKETS_FIRST 16

struct redlock_reentrant {
    pthread_mutex_t mutex;
    pthread_cond_t decided; /* something that others wait for was settled or given */
    size_t waiting;
    uint32_t count_max;
    atomic_size_t holds; /* read without the mutex to let leases pass that are surely not reentrant */
    size_t bucket_count; /* a power of two */
    struct redlock_hold **buckets;
};

/* REDLOCK_OK, REDLOCK_ERR_NO_MEMORY or REDLOCK_ERR_SYSTEM. A hold's count may grow to count_max. */
int redlock_reentrant_init(struct redlock_reentrant *table, uint32_t count_max);
/* Frees what is left, when no other thread can come any more. */
void redlock_reentrant_destroy(struct redlock_reentrant *table);
/* The same in a child process, where a thread that is not there may hold the mutex for ever: then it is left alone. */
void redlock_reentrant_abandon(struct redlock_reentrant *table);

enum redlock_enter {
    REDLOCK_ENTER_TAKE,   /* acquire, then redlock_reentrant_settle(*hold) */
    REDLOCK_ENTER_SHARED, /* *lease is held once more */
    REDLOCK_ENTER_ERROR   /* *code: LOST, LIMIT, NO_MEMORY; CONTENDED when the time to wait was over */
};

/*
 * Waits while another thread of the same owner acquires or releases, until deadline_ns of CLOCK_BOOTTIME at most
 * (INT64_MAX: as long as it takes).
 */
enum redlock_enter redlock_reentrant_enter(struct redlock_reentrant *table, const char *resource,
                                           struct redlock_holder owner, int64_t deadline_ns, struct redlock_hold **hold,
                                           redlock_lease **lease, int *code);
/* lease: what was acquired, or NULL; the hold is gone then. */
void redlock_reentrant_settle(struct redlock_reentrant *table, struct redlock_hold *hold, redlock_lease *lease);

enum redlock_leave {
    REDLOCK_LEAVE_STRANGE,  /* not a reentrant lease */
    REDLOCK_LEAVE_REFUSED,  /* another owner's */
    REDLOCK_LEAVE_RETAINED, /* one less, still held */
    REDLOCK_LEAVE_LAST      /* release it, then redlock_reentrant_given(*hold) */
};

enum redlock_leave redlock_reentrant_leave(struct redlock_reentrant *table, redlock_lease *lease,
                                           struct redlock_holder owner, struct redlock_hold **hold);
/*
 * For ending the handle without a release: LAST as above, if the count is 1 and the owner is the thread given, or an
 * id, which nobody can prove; RETAINED if the count is above 1, and then nothing has changed.
 */
enum redlock_leave redlock_reentrant_forget(struct redlock_reentrant *table, redlock_lease *lease,
                                            struct redlock_holder thread, struct redlock_hold **hold);
void redlock_reentrant_given(struct redlock_reentrant *table, struct redlock_hold *hold, bool ended);

#endif
