/* Calls the callbacks of a lease: the results of its requests, and its loss. */
#ifndef REDLOCK_GROUP_CALLBACKS_H
#define REDLOCK_GROUP_CALLBACKS_H

#include "group/handle.h"

/* Runs the waiting callbacks of one lease. Then frees the lease if it is over. */
void redlock_callbacks_run(struct redlock_lease *lease);

/* Calls `cb` with what an acquire that goes on has found so far, as if it had ended with `code`. */
void redlock_callbacks_describe(const struct redlock_lease *lease, int code, redlock_callback cb, void *data);

#endif
