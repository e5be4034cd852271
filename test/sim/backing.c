/* The nodes that back a lease, without those whose vote a step of their clock made void, as far as
 * the client can know: it has read the clock before and after. */
#include "parts.h"

/* Its index, or -1. */
static int find(const struct sim_world *world, unsigned client, const char *token) {
    for (unsigned i = world->backing_count; i-- > 0;) {
        const struct sim_backing *backing = &world->backings[i];
        if (backing->client == client && sim_token_is(backing->token, token)) {
            return (int)i;
        }
    }
    return -1;
}

void sim_backing_clock(struct sim_client *client, unsigned node, const struct sim_stepped *stepped) {
    struct sim_world *world = client->world;
    struct sim_link *link = &client->links[node];
    /* Steps back and forward between two readings may cancel out. */
    const int64_t by_ns = stepped->off_ns - link->off_ns;
    bool seen = link->clock_read && by_ns > 0 && by_ns >= world->profile.step_min_ns;
    link->clock_read = true;
    link->off_ns = stepped->off_ns;
    link->steps = seen ? stepped->steps : link->steps;
    link->jumped_ns = seen ? stepped->jumped_ns : link->jumped_ns;
    world->changes += seen;
    for (unsigned i = 0; i < world->backing_count && seen; i++) {
        struct sim_backing *backing = &world->backings[i];
        if (backing->client == client->index && backing->steps[node] < stepped->steps) {
            backing->voided |= REDLOCK_NODE(node);
        }
    }
}

void sim_backing_granted(struct sim_client *client, unsigned node, const char *token, uint32_t steps) {
    struct sim_world *world = client->world;
    world->changes++;
    int at = find(world, client->index, token);
    if (at < 0) {
        if (world->backing_count == SIM_BACKINGS_MAX) {
            return;
        }
        at = (int)world->backing_count++;
        world->backings[at] = (struct sim_backing){.client = (uint8_t)client->index};
        memcpy(world->backings[at].token, token, SIM_TOKEN_SIZE);
    }
    struct sim_backing *backing = &world->backings[at];
    if ((backing->granted & REDLOCK_NODE(node)) != 0 && steps < backing->steps[node]) {
        return; /* a push that comes late: the later vote stands */
    }
    backing->granted |= REDLOCK_NODE(node);
    if (steps < client->links[node].steps) { /* a push that comes late */
        backing->voided |= REDLOCK_NODE(node);
    } else {
        backing->voided &= ~REDLOCK_NODE(node);
    }
    backing->steps[node] = steps;
}

uint32_t sim_backing_nodes(const struct sim_world *world, const struct sim_lease *lease) {
    int at = find(world, lease->client, lease->token);
    if (at < 0 || world->backing_count == SIM_BACKINGS_MAX) {
        return redlock_nodes_all(world->profile.nodes);
    }
    return world->backings[at].granted & ~world->backings[at].voided;
}
