/* A lease that is QUEUED: takes a place on every node, and decides when to ask again and when to
 * yield. */
#ifndef REDLOCK_CORE_WAITER_H
#define REDLOCK_CORE_WAITER_H

#include "core/lease_state.h"

/*
 * What a waiter does when, while it has no quorum of grants. "Behind": one other token has a
 * quorum. A WAIT takes a lock that is free, unless the waiter is behind: a key that the holder has
 * lost at some node stays free for the holder to heal.
 *
 * no grant; behind, and a stranger holds        ask at random, if it is the first in line
 * no grant; behind                              ask when the holder's keys have ended at a quorum,
 *                                               if it is the first in line
 * no grant; not behind, no earlier waiter has a node, and its WAIT took nothing
 *                                               ask at once, and take
 * no grant; fewer than a quorum answered        ask after the retry delay
 * some grants                                   look: ask once the others had time to grant, too
 * some grants after a look; behind              yield: the lock goes to nobody
 * some grants after a look; an earlier waiter has a node
 *                                               yield: the lock goes to the next in line there
 * some grants after a look; fewer than a quorum answered
 *                                               yield, and ask after the retry delay
 * some grants after a look; none of these       look again, after twice the time
 * always                                        ask after a quarter of the ttl (2.5 s at most)
 *
 * But it asks again only once a quorum has answered, or nobody else will (node_timeout_ms).
 */

/* An entry that was not refreshed for so long is not served. */
int64_t redlock_waiter_stale_ms(const struct redlock_queue *queue);
/* The keys of a queue that nobody refreshes end after this. */
int64_t redlock_waiter_queue_ttl_ms(const struct redlock_queue *queue);

/* Takes a place under a fresh token, or the lock if it is free. */
void redlock_waiter_enter(struct redlock_lease_core *lease, const struct redlock_event *event,
                          struct redlock_actions *actions);
/* Takes in a vote on a WAIT, a push, or a LISTEN. */
void redlock_waiter_note(struct redlock_lease_core *lease, const struct redlock_event *event);
bool redlock_waiter_has_quorum(const struct redlock_lease_core *lease);
/* The lease counts from here, and depends on these nodes. Only with a quorum of grants. */
void redlock_waiter_stand_on_grants(struct redlock_lease_core *lease);
/* There is no quorum of grants: asks again, yields, or waits on. */
void redlock_waiter_go_on(struct redlock_lease_core *lease, const struct redlock_event *event,
                          struct redlock_actions *actions);
/* A grant came to a lease that is held already: it may back the lease. Or "queued": the node has
 * lost the key that it had granted. */
void redlock_waiter_note_late(struct redlock_lease_core *lease, const struct redlock_event *event);
/* Why the wait ends without the lock. */
int redlock_waiter_reason(const struct redlock_lease_core *lease);

#endif
