/* The server's end of a subscription that died without a sound. */
#ifndef REDLOCK_NODE_ZOMBIE_H
#define REDLOCK_NODE_ZOMBIE_H

#include "node/subscription_state.h"

/*
 * The server does not see such a death for minutes. Until then it counts the dead connection as one
 * that listens. That does no harm as long as its manager lives. But when that dies, its waiters
 * would look alive, and be handed locks. So the next connection to the same run of the server kills
 * the dead one by its id, before it subscribes.
 */

/* The server has said the id of this connection; 0 before that. */
void redlock_zombie_note(struct redlock_subscription *subscription, int64_t client_id);

/* This connection ends, and the server may not hear of it. Does nothing if it is closed. */
void redlock_zombie_left(struct redlock_subscription *subscription);

/* Whether there is one to kill, on a connection that reaches the node's server. */
bool redlock_zombie_is_there(const struct redlock_subscription *subscription);

/* Asks for its end, once. Returns false without memory. */
bool redlock_zombie_kill(struct redlock_subscription *subscription);

#endif
