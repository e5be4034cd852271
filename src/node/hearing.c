/* The channels that a node's second connection hears beside the manager's own. */
#include "node/hearing.h"

#include "node/handshake.h"
#include "node/node_state.h"
#include "wire/push.h"

void redlock_hearing_ask_again(struct redlock_subscription *subscription) {
    const redlock_nodes node = REDLOCK_NODE(subscription->node->index);
    for (struct redlock_channel *channel = subscription->channels ? subscription->channels->first : NULL; channel;
         channel = channel->next) {
        channel->refused &= ~node;
    }
}

void redlock_hearing_forget(struct redlock_subscription *subscription) {
    const redlock_nodes node = REDLOCK_NODE(subscription->node->index);
    subscription->asking = subscription->no_memory = false;
    subscription->asked = NULL;
    subscription->leaving = subscription->leaving_first = 0;
    for (struct redlock_channel *channel = subscription->channels ? subscription->channels->first : NULL; channel;
         channel = channel->next) {
        channel->heard &= ~node;
    }
    redlock_hearing_ask_again(subscription);
}

bool redlock_hearing_ask(struct redlock_subscription *subscription) {
    const redlock_nodes node = REDLOCK_NODE(subscription->node->index);
    struct redlock_channel *channel = subscription->channels != NULL ? subscription->channels->first : NULL;
    while (channel != NULL && ((channel->heard | channel->refused) & node) != 0) {
        channel = channel->next;
    }
    if (channel == NULL || subscription->asking || subscription->state != REDLOCK_SUBSCRIPTION_LISTENING) {
        return true;
    }
    subscription->asking = true;
    subscription->asked = channel;
    subscription->leaving_first = subscription->leaving;
    return redlock_handshake_say(&subscription->connection.hello, (const char *[4]){"SUBSCRIBE", channel->name});
}

void redlock_hearing_answered(struct redlock_subscription *subscription, bool heard) {
    const struct redlock_node *node = subscription->node;
    struct redlock_channel *channel = subscription->asked;
    subscription->asking = false;
    subscription->asked = NULL;
    if (channel != NULL) {
        *(heard ? &channel->heard : &channel->refused) |= REDLOCK_NODE(node->index);
        node->listener.hears(node->listener.ctx, node->index, channel);
    }
}

void redlock_hearing_leave(struct redlock_subscription *subscription, const struct redlock_channel *channel) {
    const bool heard = (channel->heard & REDLOCK_NODE(subscription->node->index)) != 0;
    if (!heard && subscription->asked != channel) {
        return;
    }
    subscription->asked = heard ? subscription->asked : NULL;
    subscription->leaving++;
    subscription->no_memory |=
        !redlock_handshake_say(&subscription->connection.hello, (const char *[4]){"UNSUBSCRIBE", channel->name});
    subscription->node->reactor.flush_soon(subscription->node->reactor.ctx, &subscription->connection.watch);
}

void redlock_hearing_message(struct redlock_subscription *subscription, const struct redlock_reply *reply) {
    const struct redlock_node *node = subscription->node;
    struct redlock_push push;
    struct redlock_hint hint;
    if (redlock_wire_push(reply, subscription->channel, &push)) {
        node->listener.pushed(node->listener.ctx, node->index, &push);
    } else if (redlock_wire_hint(reply, &hint)) {
        node->listener.hinted(node->listener.ctx, node->index, &hint);
    } else if (!subscription->push_warned) {
        subscription->push_warned = true;
        node->reactor.log(node->reactor.ctx, REDLOCK_LOG_WARNING,
                          "node %s: a message on the channel %s is not ours, and ignored", node->address.name,
                          subscription->channel);
    }
}
