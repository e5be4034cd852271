/* What a node says on a subscription: it handed a lock to a waiter, or who holds one has changed.
 * Pure. */
#ifndef REDLOCK_WIRE_PUSH_H
#define REDLOCK_WIRE_PUSH_H

#include <stdbool.h>

#include "wire/message.h"
#include "wire/reply.h"

/* Reads a message on this channel. False if it is anything else: then the push is unset. What it
 * points to is part of the reply. */
bool redlock_wire_push(const struct redlock_reply *reply, const char *channel, struct redlock_push *push);

/* The same for any message on the channel of whichever resource. */
bool redlock_wire_hint(const struct redlock_reply *reply, struct redlock_hint *hint);

#endif
