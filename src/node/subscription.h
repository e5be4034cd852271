/* A node's second connection, which only subscribes: it hears who was handed a lock. */
#ifndef REDLOCK_NODE_SUBSCRIPTION_H
#define REDLOCK_NODE_SUBSCRIPTION_H

#include "node/subscription_state.h"

/* Returns 0 or REDLOCK_ERR_NO_MEMORY. */
int redlock_subscription_init(struct redlock_subscription *subscription, struct redlock_node *node);
void redlock_subscription_free(struct redlock_subscription *subscription);

/* The node has become READY on a new connection, or has a channel now. */
void redlock_subscription_begin(struct redlock_subscription *subscription);

static inline bool redlock_subscription_listens(const struct redlock_subscription *subscription) {
    return subscription->link.state == REDLOCK_LINK_OPEN;
}

/* Subscribes to the next of `channels`, if it listens. */
void redlock_subscription_hear(struct redlock_subscription *subscription);
/* The channel leaves the list. */
void redlock_subscription_leave(struct redlock_subscription *subscription, const struct redlock_channel *channel);

/* The node's first connection has ended. */
void redlock_subscription_end(struct redlock_subscription *subscription);

#endif
