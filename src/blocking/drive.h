/* Who drives the loop of a worker: the worker's own thread, or a caller, until its own call is
 * done. */
#ifndef REDLOCK_BLOCKING_DRIVE_H
#define REDLOCK_BLOCKING_DRIVE_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Who drives makes the turns of the loop, and owns all that belongs to the loop. A caller that
 * finds nobody at it drives: then its call crosses no thread. The thread has nothing to do for
 * that call, so it must not wake for it: neither when the caller begins, nor when replies come, nor
 * when the caller exits. So it naps for a time after a caller has driven, and then looks at the
 * loop itself. Nobody watches the loop during the nap: what comes then waits for up to three naps.
 *
 * A caller whose own call waits drives for no longer than that, too: then the thread wants to
 * drive. For a caller may be slow, or stop in a signal handler, and all others would wait for it.
 *
 * state     who drives  the thread                   claim      exit              pass
 * WATCHED   nobody      polls the loop's descriptor  → BLIND    –                 –
 * NAPPING   nobody      naps                         → CALLER   –                 –
 * CALLER    a caller    naps                         no         → NAPPING         → THREAD, wakes
 * BLIND     a caller    polls on                     no         → NAPPING, wakes  → THREAD, wakes
 * WANTED    a caller    naps longer and longer       no         → THREAD, wakes   → THREAD, wakes
 * THREAD    the thread  drives, or is being woken    no         –                 –
 *
 * A caller claims, and then exits or passes the drive to the thread. It passes as soon as it sees
 * WANTED. If it is blind for as long as a nap, it wakes the thread. Has it waited for the loop
 * before it exits, it has looked, too. A call that is done at once does not look: however many of
 * them there are, the thread must. The thread's own steps:
 *
 * state     what happens                             → state
 * THREAD    it has nothing to do                     → NAPPING
 *           it has looked at the loop, and nothing
 *           came                                     → WATCHED
 * WATCHED   the loop's descriptor is readable        → THREAD   it looks
 * NAPPING   a nap is over, nobody looked meanwhile   → THREAD   it looks
 * CALLER    a nap is over, since whose beginning a
 *           caller drives, nobody looked meanwhile   → WANTED   it wakes who drives
 * BLIND     it wakes                                 → CALLER
 *
 * No wake-up is lost: the eventfd stays readable until the thread has read it. But who stops may be
 * stopped itself between its step and that: so the thread looks at the state again. A caller puts
 * its call into the mailbox before it claims; who stops driving looks into the mailbox after that.
 * So one of the two sees the other.
 */
enum redlock_drive_state {
    REDLOCK_DRIVE_WATCHED,
    REDLOCK_DRIVE_NAPPING,
    REDLOCK_DRIVE_CALLER,
    REDLOCK_DRIVE_BLIND,
    REDLOCK_DRIVE_WANTED,
    REDLOCK_DRIVE_THREAD
};

#define REDLOCK_DRIVE_NAP_MS 1

struct redlock_drive {
    atomic_uint word; /* the state; above it, how many callers have looked */
    int wake_up;      /* an eventfd */
};

/* The thread drives. Returns 0 or an errno. */
int redlock_drive_init(struct redlock_drive *drive);
void redlock_drive_destroy(struct redlock_drive *drive);

/* A caller: whether it drives now. */
bool redlock_drive_claim(struct redlock_drive *drive);
/* A caller that drives stops; nobody drives then, or the thread does. `looked`: it has waited for
 * the loop. */
void redlock_drive_exit(struct redlock_drive *drive, bool looked);
void redlock_drive_pass(struct redlock_drive *drive);
/* Whether it must pass. */
bool redlock_drive_is_wanted(const struct redlock_drive *drive);
/* Whether it is blind. If it still drives after a nap, it ends that. */
bool redlock_drive_is_blind(const struct redlock_drive *drive);
void redlock_drive_end_blind(struct redlock_drive *drive);

/* The thread stops driving. `watches`: it has looked at the loop, and nothing came. */
void redlock_drive_rest(struct redlock_drive *drive, bool watches);
/* Then: the thread drives again, if nobody does. */
bool redlock_drive_resume(struct redlock_drive *drive);
/* Or it sleeps until it drives again, and returns true. It must look at the loop then, whose
 * descriptor this is. False: it wants to drive, so wake who does, and call this again. */
bool redlock_drive_sleep(struct redlock_drive *drive, int loop_fd);

#endif
