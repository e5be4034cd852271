/* Observers: asks nodes who leads, now and when a change is announced, and tells the caller. */
#ifndef REDLOCK_GROUP_OBSERVER_H
#define REDLOCK_GROUP_OBSERVER_H

#include <redlock/election.h>

#include "group/group.h"

#define REDLOCK_OBSERVERS_MAX 1024

/* Its caller begins to lead under this token, or has begun just now, if that is over already: then
 * the callback is not told of it. */
void redlock_observer_lead(struct redlock_observer *observer, const char *token, bool leads_still);

/* Who has a lock may have changed on this node. */
void redlock_observers_hinted(struct redlock_group *group, unsigned node, const struct redlock_hint *hint);
/* The node hears this channel now, or refuses it. NULL: it hears no channel any more. */
void redlock_observers_hear(struct redlock_group *group, unsigned node, const struct redlock_channel *channel);
/* See redlock_group_moved(). */
void redlock_observers_moved(struct redlock_group *group, unsigned node);

#endif
