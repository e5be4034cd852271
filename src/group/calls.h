/* What the layers above ask of a lease, which is of one resource or of several. */
#ifndef REDLOCK_GROUP_CALLS_H
#define REDLOCK_GROUP_CALLS_H

#include <stdbool.h>

#include <redlock/redlock.h>

/* Its owner has the handle, and wants to be told of its end. */
bool redlock_calls_tell_owner(const redlock_lease *lease);

#endif
