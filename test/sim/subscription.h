/* A client's second connection to a node, which only subscribes: opened by env.listen(), and by
 * itself again whenever the first connection is ready; closed with the first connection. */
#ifndef SIM_SUBSCRIPTION_H
#define SIM_SUBSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/message.h"

#define SIM_CHANNEL_SIZE 64

struct redlock_channel;
struct sim_world;
struct sim_client;
struct sim_event;
struct sim_node;

struct sim_subscription {
    enum redlock_listening told; /* to the group */
    bool open;
    uint32_t gen;     /* of the connection */
    uint8_t failures; /* in a row */
    uint8_t refusals; /* likewise, of SUBSCRIBE */
    int64_t down_ns;  /* the last arrival: pushes keep their order */
    int64_t up_ns;    /* likewise, towards the node */
    /* For the channel of a leader; the answer is to come. */
    bool asking;
    struct redlock_channel *asked; /* NULL if it has left meanwhile */
};

/* env.listen() */
void sim_listen(void *ctx, const char *channel);
/* The first connection is ready, or is lost. Call these in a step of the client. */
void sim_subscription_begin(struct sim_client *client, unsigned node);
void sim_subscription_end(struct sim_client *client, unsigned node);

/* The node closes the connection. Its client may be the last to know. */
void sim_subscription_kill(struct sim_world *world, unsigned client, unsigned node);
/* The process of the node ends: so do all its subscriptions. `silent`: few clients
 * notice. */
void sim_subscriptions_die(struct sim_world *world, unsigned node, bool silent);
/* The process of a client ended. */
void sim_subscriptions_leave(struct sim_client *client);
/* Pushes of this node come no sooner from now on. */
void sim_subscription_stall(struct sim_world *world, unsigned client, unsigned node, int64_t for_ns);

/* Whether its ACL lacks what a queue needs. */
bool sim_refuses_queue(const struct sim_world *world, const struct sim_node *node);

/* A message on this channel, whose name lives long enough, is on its way to a client. */
void sim_push_to(struct sim_node *node, struct sim_client *client, const char *channel, const char *payload,
                 size_t size);
/* The same, said by somebody else. With `steps`, it is what the node has said, when its clock had
 * made so many. */
void sim_push_forged(struct sim_node *node, struct sim_client *client, const char *channel, const char *payload,
                     size_t size, const uint32_t *steps);
/* What PUBLISH does: `ctx` is the struct sim_node. Returns whether somebody is subscribed. */
/* That of the process of SIM_FAULT_DEAD. */
#define SIM_DEAD_CHANNEL "redlock:ofthedead"

/* Whether somebody subscribes to this channel. */
bool sim_hears(void *ctx, const char *channel, size_t channel_size);
bool sim_publish(void *ctx, const char *channel, size_t channel_size, const char *payload, size_t size);

void sim_subscribe_event(struct sim_world *world, const struct sim_event *event);
void sim_listening_event(struct sim_world *world, const struct sim_event *event);
void sim_push_event(struct sim_world *world, const struct sim_event *event);
void sim_deaf_event(struct sim_world *world, const struct sim_event *event);
void sim_unheard_event(struct sim_world *world, const struct sim_event *event);
void sim_resubscribe_event(struct sim_world *world, const struct sim_event *event);

#endif
