/* Applies the guards. Without guards, these functions do nothing. */
#ifndef REDLOCK_GROUP_GUARDS_H
#define REDLOCK_GROUP_GUARDS_H

#include "core/guard.h"
#include "group/owner.h"

void redlock_guards_read_clock(struct redlock_group *group, unsigned node, const struct redlock_clock_sample *sample);
/* Only with guards: an answer shows that this run of the node is still there. */
void redlock_guards_seen(struct redlock_group *group, unsigned node, const struct redlock_answer *answer);
void redlock_guards_due(struct redlock_group *group, int64_t now_ns);
/* Until when an acquire is parked that comes before the first try of every node is over. That try
 * may take the connect timeout. Once a quorum is ready, nobody waits for the other nodes longer
 * than a node timeout (R7), and nobody longer than the acquire may wait, if it may. */
int64_t redlock_guards_park_until_ns(const struct redlock_group *group, int64_t wait_ms, int64_t now_ns);
/* A node is ready, or its first try is over. When this is true of all nodes, parked acquires
 * begin. */
void redlock_guards_ready_changed(struct redlock_group *group);

#endif
