/* A lease that is QUEUED: takes a place on every node, and decides when to ask again and when to
 * yield. */
#ifndef REDLOCK_CORE_WAITER_H
#define REDLOCK_CORE_WAITER_H

#include "core/lease_state.h"

/*
 * What a waiter does while it has no quorum of grants. It decides when a quorum has answered its
 * last WAIT, or when no more answers can come (node_timeout_ms).
 *
 * grants  what the answers say                    what the waiter does
 * none    fewer than a quorum answered            WAIT that takes, after the retry delay
 *         not behind, no earlier waiter has a node or keeps us out of one, and the last WAIT did
 *         not take                                WAIT that takes, at once
 *         first in line                           WAIT that takes, when the holder's keys have
 *                                                 ended at a quorum: the holder may be dead
 *         others are before us                    WAIT, later than the first would: those before
 *                                                 us may be dead, too. 10 ms later for each of
 *                                                 them; from the eighth on, and where the lock is
 *                                                 split, 20 to 80 ms later, at random
 *         first in line where a stranger holds    WAIT that takes, after 10 to 40 ms at random: a
 *                                                 poll. Later after 1/16 to 1/4 of the time for
 *                                                 which we have seen this holder, within the retry
 *                                                 delay
 *         not behind, and a node has timed out    WAIT, after the retry delay: the answer that
 *                                                 came too late may have been a grant
 *         not behind, and we have just handed nodes to nobody
 *                                                 WAIT, after the retry delay: the earlier waiter
 *                                                 may have no node by now, so that it does not look
 *         the ticket is wrong                     the next WAIT comes after a RELEASE, under the
 *                                                 right ticket and a fresh token
 * some    the others had no time to grant yet     look: WAIT that takes, after twice the slowest
 *                                                 answer, 2 ms at least
 *         looked: behind                          yield; the lock goes to nobody
 *         looked: an earlier waiter has a node,   yield; the lock goes to the next in line there,
 *         or keeps us out of one                  or to nobody after two yields in a row
 *         looked: fewer than a quorum answered    yield; WAIT that takes, after the retry delay
 *         looked: none of these                   look again, after twice the time
 * any     a node can push to us, or can be asked and has not answered
 *                                                 WAIT, 2 ms later: it may have skipped us,
 *                                                 or was not asked
 *         a node says that the lock is left free, or somebody gave up a place where it is free
 *                                                 WAIT, 52 ms later
 *         fewer nodes than a quorum can push to us by now
 *                                                 WAIT, after the retry delay: they skip us
 *         -                                       WAIT after a quarter of the ttl, 2.5 s at most,
 *                                                 ± 10 %: a refresh. A place is good for three
 *
 * - "Keeps us out": we would read, others read there, and the first in line writes. It has no lock
 *   there, so we are not behind it.
 * - "Behind": one other token has the lock at a quorum of nodes. "First in line": nobody waits
 *   before us at one of the nodes. A "stranger" will not hand the lock over: another library, or a
 *   version from before the mark. "Yield": release everywhere, and WAIT under a fresh token.
 * - "That takes": it takes the lock if it is free. A plain WAIT takes it unless the waiter is
 *   behind: where the holder has lost its key, the lock stays free for the holder to heal. The WAIT
 *   of a yield to others takes nothing.
 */

/*
 * Whether a lease takes places. In between it tries again after the retry delay, as without a
 * queue.
 *
 * state    event                                              → state
 * QUEUES   a quorum of nodes cannot keep its queue             → POLLS, until a random time
 *          too few nodes can push to us (struct redlock_line)  → BARRED
 * POLLS    that time has come                                  → QUEUES, at its next try
 * BARRED   enough nodes can push to us                         → QUEUES, at its next try
 *
 * POLLS lasts for 0.25 to 0.5 s at first, then for twice as long each time, and 10 s at most. It is
 * short again when a quorum has answered a WAIT.
 */
void redlock_waiter_poll(struct redlock_lease_core *lease, int64_t now_ns);

/* A place that was not refreshed for so long is not served. */
int64_t redlock_waiter_stale_ms(const struct redlock_grants *grants);
/* The keys of a queue that nobody refreshes end after this. It is the same for all: a WAIT of a
 * short ttl must not end the places of others. */
#define REDLOCK_WAITER_QUEUE_TTL_MS 15000

/* Takes a place under a fresh token, or the lock if it is free. */
void redlock_waiter_enter(struct redlock_lease_core *lease, const struct redlock_event *event,
                          struct redlock_actions *actions);
/* Takes in a vote on a WAIT, a push, a LISTEN or a READY. */
void redlock_waiter_note(struct redlock_lease_core *lease, const struct redlock_event *event);
bool redlock_waiter_has_quorum(const struct redlock_lease_core *lease);
/* The lease counts from here, and depends on these nodes. Only with a quorum of grants. */
void redlock_waiter_stand_on_grants(struct redlock_lease_core *lease);
/* There is no quorum of grants: asks again, yields, or waits on. */
void redlock_waiter_go_on(struct redlock_lease_core *lease, const struct redlock_event *event,
                          struct redlock_actions *actions);
/* For a lease that is held already. A grant may back it. "Queued" says that the node has lost the
 * key that it had granted. */
void redlock_waiter_note_late(struct redlock_lease_core *lease, const struct redlock_event *event);
/* Whether the release of this lease leaves the lock free for REDLOCK_HAND_LATER ms, so that those
 * who are not in line get a chance. About once in 10 s of handovers, however short each is. */
bool redlock_waiter_leaves_free(struct redlock_lease_core *lease, int64_t now_ns);
/* Why the wait ends without the lock. */
int redlock_waiter_reason(const struct redlock_lease_core *lease);

#endif
