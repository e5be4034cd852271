/* The channels that a node's second connection hears beside the manager's own: their states are in
 * node/subscription_state.h. */
#ifndef REDLOCK_NODE_HEARING_H
#define REDLOCK_NODE_HEARING_H

#include "node/subscription_state.h"
#include "wire/reply.h"

/* The connection is no more: forgets what was heard, asked or refused on it. */
void redlock_hearing_forget(struct redlock_subscription *subscription);
/* Subscribes to the next channel that it does not hear yet. Returns false without memory. */
bool redlock_hearing_ask(struct redlock_subscription *subscription);
/* SUBSCRIBE to one of the channels was answered. Then it may ask for the next one. */
void redlock_hearing_answered(struct redlock_subscription *subscription, bool heard);
/* What was refused may be permitted by now: an ACL may have changed. */
void redlock_hearing_ask_again(struct redlock_subscription *subscription);
/* The channel has left the list. */
void redlock_hearing_leave(struct redlock_subscription *subscription, const struct redlock_channel *channel);
/* Somebody has said something on one of the channels, or on the manager's own. */
void redlock_hearing_message(struct redlock_subscription *subscription, const struct redlock_reply *reply);

#endif
