/* Which nodes the guards keep from voting, and why, in words. Without guards: none. */
#ifndef REDLOCK_GROUP_GUARDS_H
#define REDLOCK_GROUP_GUARDS_H

#include "core/guard.h"
#include "group/group.h"

/* each node's clock, even when nothing is locked */
#define REDLOCK_CLOCK_READ_EVERY_MS INT64_C(1000)
#define REDLOCK_GUARDS_WHY_SIZE     200

struct redlock_guards {
    struct redlock_requester requester; /* first member; of the readings of clocks */
    struct redlock_guard guard;
    char why[REDLOCK_GUARDS_WHY_SIZE];
};

/* False if there is no memory. */
bool redlock_guards_open(struct redlock_group *group, const struct redlock_guard_plan *plan);

redlock_nodes redlock_guards_may_not_vote(const struct redlock_group *group, int64_t now_ns);
/* Of these, the nodes whose clock is the reason. Only with a guard. */
redlock_nodes redlock_guards_may_not_vote_by_clock(const struct redlock_group *group, int64_t now_ns);
/* Sends a RELEASE, or the EXTEND of a shared lock, as redlock_requester_send() does. Nodes in
 * quarantine hand the lock to nobody: they may have a key from an old copy of the data. A node that
 * is not ready may be such a run when it gets what is queued for it. */
redlock_nodes redlock_guards_release(struct redlock_group *group, struct redlock_requester *requester,
                                     redlock_nodes nodes, struct redlock_message *message);
/* Why the node may not vote now, as a new reference. NULL if it may, or if there is no memory. */
struct redlock_text *redlock_guards_text(struct redlock_group *group, unsigned node);
/* The longest ttl that the guards allow, lock delay included; REDLOCK_TTL_MS_MAX without guards. */
int64_t redlock_guards_ttl_max_ms(const struct redlock_group *group);

/* Until when an acquire is parked that comes before the first try of every node is over. That try
 * may take the connect timeout. Once a quorum is ready, nobody waits for the other nodes longer
 * than a node timeout (R7), and nobody longer than the acquire may wait, if it may. */
int64_t redlock_guards_park_until_ns(const struct redlock_group *group, int64_t wait_ms, int64_t now_ns);

/* Only with guards. redlock_guard_greet(), and logs which nodes may vote since then. */
redlock_nodes redlock_guards_greet(struct redlock_group *group, unsigned node, const struct redlock_greeting *greeting,
                                   bool *jumped);
/* Logs why the node may not vote. */
void redlock_guards_log(struct redlock_group *group, unsigned node);
void redlock_guards_log_step(struct redlock_group *group, unsigned node, const struct redlock_clock_sample *sample,
                             int64_t step_ns);

#endif
