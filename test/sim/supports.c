/* Votes that a step of a node's clock makes void, as far as a client can know: it has read the clock before and after. */
#include <string.h>

#include "core/quorum.h"
#include "world.h"

/* Its place, or -1. */
static int find(const struct sim_world *world, unsigned client, const char *token) {
    for (unsigned i = world->support_count; i-- > 0;) {
        const struct sim_support *support = &world->supports[i];
        if (support->client == client && memcmp(support->token, token, SIM_TOKEN_SIZE) == 0) {
            return (int)i;
        }
    }
    return -1;
}

void sim_support_clock(struct sim_client *client, unsigned node, const struct sim_stepped *stepped) {
    struct sim_world *world = client->world;
    struct sim_link *link = &client->links[node];
    /* Steps back and forward between two readings may come to nothing. */
    bool seen = link->clock_read && stepped->off_ns - link->off_ns >= world->profile.step_min_ns;
    link->clock_read = true;
    link->off_ns = stepped->off_ns;
    for (unsigned i = 0; i < world->support_count && seen; i++) {
        struct sim_support *support = &world->supports[i];
        if (support->client == client->index && support->steps[node] < stepped->steps) {
            support->voided |= REDLOCK_NODE(node);
        }
    }
}

void sim_support_granted(struct sim_client *client, unsigned node, const char *token, uint32_t steps) {
    struct sim_world *world = client->world;
    int at = find(world, client->index, token);
    if (at < 0) {
        if (world->support_count == SIM_SUPPORTS_MAX) {
            return;
        }
        at = (int)world->support_count++;
        world->supports[at] = (struct sim_support){.client = (uint8_t)client->index};
        memcpy(world->supports[at].token, token, SIM_TOKEN_SIZE);
    }
    struct sim_support *support = &world->supports[at];
    support->granted |= REDLOCK_NODE(node);
    support->voided &= ~REDLOCK_NODE(node);
    support->steps[node] = steps;
}

bool sim_support_is_enough(const struct sim_world *world, const struct sim_lease *lease) {
    int at = find(world, lease->client, lease->token);
    if (at < 0 || world->support_count == SIM_SUPPORTS_MAX) {
        return true;
    }
    const struct sim_support *support = &world->supports[at];
    return redlock_nodes_count(support->granted & ~support->voided) > world->profile.nodes / 2;
}
