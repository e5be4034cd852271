/* The guards at work. All of it may be called without guards, and then does nothing. */
#ifndef REDLOCK_GROUP_GUARDS_H
#define REDLOCK_GROUP_GUARDS_H

#include "core/guard.h"
#include "group/owner.h"

void redlock_guards_read_clock(struct redlock_group *group, unsigned node, const struct redlock_clock_sample *sample);
/* With guards only: the node's answer is a sign of life of its run. */
void redlock_guards_seen(struct redlock_group *group, unsigned node, const struct redlock_answer *answer);
void redlock_guards_due(struct redlock_group *group, int64_t now_ns);
/* A node is ready, or its first try is over: acquires that came too early for a guard begin once all have. */
void redlock_guards_ready_changed(struct redlock_group *group);

#endif
