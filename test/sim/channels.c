/* The channels on which nodes announce who leads: how clients subscribe to them, and what they
 * hear. */
#include "parts.h"

/* SIM_HEARD: the node does not permit it */
#define REFUSED 0x100U

static unsigned resource_of(const char *name, size_t size) {
    return name[size - 1] == '2';
}

/* Bytes of a client keep their order. */
static void say(struct sim_client *client, unsigned node, enum sim_event_kind kind, unsigned resource) {
    struct sim_world *world = client->world;
    struct sim_subscription *subscription = &client->links[node].subscription;
    const int64_t at_ns = client->step_ns + sim_delay_ns(world);
    subscription->up_ns = at_ns > subscription->up_ns ? at_ns : subscription->up_ns;
    sim_push(world, subscription->up_ns,
             (struct sim_event){.kind = (uint8_t)kind,
                                .client = (uint8_t)client->index,
                                .node = (uint8_t)node,
                                .gen = subscription->gen,
                                .entry = resource});
}

void sim_channels_ask(struct sim_client *client, unsigned node) {
    struct sim_subscription *subscription = &client->links[node].subscription;
    if (client->group == NULL || client->channels == NULL || subscription->asking ||
        subscription->told != REDLOCK_LISTENING) {
        return;
    }
    for (struct redlock_channel *channel = client->channels->first; channel != NULL; channel = channel->next) {
        if (((channel->heard | channel->refused) & REDLOCK_NODE(node)) == 0) {
            subscription->asking = true;
            subscription->asked = channel;
            say(client, node, SIM_HEAR, resource_of(channel->name, strlen(channel->name)));
            return;
        }
    }
}

void sim_hear(void *ctx, const struct redlock_channels *channels) {
    struct sim_client *client = ctx;
    client->channels = channels;
    for (unsigned i = 0; i < sim_nodes_of(client->world, client->index); i++) {
        sim_channels_ask(client, i);
    }
}

void sim_stop_hearing(void *ctx, const struct redlock_channel *channel) {
    struct sim_client *client = ctx;
    for (unsigned i = 0; i < sim_nodes_of(client->world, client->index); i++) {
        struct sim_subscription *subscription = &client->links[i].subscription;
        const bool heard = (channel->heard & REDLOCK_NODE(i)) != 0;
        if (heard || subscription->asked == channel) {
            subscription->asked = heard ? subscription->asked : NULL;
            say(client, i, SIM_LEAVE, resource_of(channel->name, strlen(channel->name)));
        }
    }
}

void sim_channels_forget(struct sim_client *client, unsigned node) {
    struct sim_subscription *subscription = &client->links[node].subscription;
    subscription->asking = false;
    subscription->asked = NULL;
    subscription->up_ns = 0;
    if (client->group == NULL || client->channels == NULL) {
        return; /* the channels are the group's */
    }
    for (struct redlock_channel *channel = client->channels->first; channel != NULL; channel = channel->next) {
        channel->heard &= ~REDLOCK_NODE(node);
        channel->refused &= ~REDLOCK_NODE(node);
    }
}

/* The node reads SUBSCRIBE, on a connection that it believes in. */
void sim_hear_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_node *node = &world->nodes[event->node];
    struct sim_subscription *subscription = &world->clients[event->client].links[event->node].subscription;
    if (node->heard_gen[event->client] != event->gen) {
        return;
    }
    struct sim_event reply = *event;
    reply.kind = SIM_HEARD;
    if (node->refuses_observers) {
        reply.entry |= REFUSED;
    } else {
        node->heard_channels[event->client] |= (uint8_t)(1U << event->entry);
    }
    if (subscription->gen == event->gen) {
        const int64_t at_ns = world->now_ns + sim_delay_ns(world);
        subscription->down_ns = at_ns > subscription->down_ns ? at_ns : subscription->down_ns;
        sim_push(world, subscription->down_ns, reply);
    }
}

/* The client reads the answer. */
void sim_heard_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    struct sim_subscription *subscription = &client->links[event->node].subscription;
    if (client->group == NULL || !subscription->open || subscription->gen != event->gen) {
        return;
    }
    if (client->links[event->node].down_cut_ns > world->now_ns) {
        sim_put_off(world, *event, client->links[event->node].down_cut_ns);
        return;
    }
    struct redlock_channel *channel = subscription->asked;
    const bool refused = (event->entry & REFUSED) != 0;
    subscription->asking = false;
    subscription->asked = NULL;
    sim_client_enter(client);
    if (channel != NULL) {
        *(refused ? &channel->refused : &channel->heard) |= REDLOCK_NODE(event->node);
        SIM_TRACE(world, "client %u %s '%s' of node %u", client->index, refused ? "is refused" : "hears", channel->name,
                  event->node);
        redlock_group_hears(client->group, event->node, channel);
    }
    sim_channels_ask(client, event->node);
    sim_client_leave(client);
}

/* The node reads UNSUBSCRIBE. */
void sim_leave_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_node *node = &world->nodes[event->node];
    if (node->heard_gen[event->client] == event->gen) {
        node->heard_channels[event->client] &= (uint8_t) ~(1U << event->entry);
    }
}

bool sim_announce(struct sim_node *node, const char *channel, size_t channel_size, const char *payload, size_t size) {
    static const size_t prefix_size = sizeof REDLOCK_LEADER_CHANNEL - 1;
    struct sim_world *world = node->world;
    const char *copy = NULL;
    if (channel_size <= prefix_size || memcmp(channel, REDLOCK_LEADER_CHANNEL, prefix_size) != 0) {
        return false;
    }
    world->elections.offices[resource_of(channel, channel_size)].words[node - world->nodes].announced_ns =
        world->now_ns;
    for (unsigned i = 0; i < world->profile.clients; i++) {
        if (node->heard_gen[i] == 0 || (node->heard_channels[i] >> resource_of(channel, channel_size) & 1) == 0) {
            continue;
        }
        if (copy == NULL) {
            char *bytes = sim_arena(world, channel_size + 1);
            memcpy(bytes, channel, channel_size);
            bytes[channel_size] = '\0';
            copy = bytes;
        }
        SIM_TRACE(world, "node %u → client %u: on '%s' '%.*s'", (unsigned)(node - world->nodes), i, copy, (int)size,
                  payload);
        sim_push_to(node, &world->clients[i], copy, payload, size);
    }
    return copy != NULL;
}
