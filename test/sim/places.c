/* The checker "placed": once nothing changes any more, whoever waits is in the queue where the
 * nodes keep one and can tell of a grant; and nobody is in a queue where too few nodes could tell
 * it. */
#include "parts.h"

/* A place is asked for again within 10 s, and a refused subscription, too; then comes a try. */
#define PLACED_NS (22500 * SIM_MS)

int64_t sim_places_ns(const struct sim_world *world) {
    return world->profile.calm || world->elections.settled ? 0 : PLACED_NS;
}

/* Nodes that permit a queue, or nodes that can tell the client of a grant. */
static unsigned count_nodes(const struct sim_client *client, bool that_tell) {
    const struct sim_world *world = client->world;
    unsigned count = 0;
    for (unsigned i = 0; i < sim_nodes_of(world, client->index); i++) {
        const struct sim_node *node = &world->nodes[i];
        const bool keeps = !sim_refuses_queue(world, node);
        count += that_tell ? keeps && node->heard_gen[client->index] != 0 : keeps;
    }
    return count;
}

static void check_lease(const struct sim_client *client, const struct redlock_lease_core *lease) {
    struct sim_world *world = client->world;
    const unsigned quorum = sim_quorum_of(world, client->index);
    const bool may_queue = count_nodes(client, false) >= quorum && client->unopened_ns <= world->now_ns;
    const bool polls = lease->state == REDLOCK_LEASE_RETRYING || lease->state == REDLOCK_LEASE_ACQUIRING;
    const bool is_kept_out =
        lease->grants->barred || lease->grants->polls_until_ns > sim_clock_local(&client->clock, world->now_ns);
    if (polls && is_kept_out && may_queue) {
        sim_violation(world, "placed", "client %u polls, though %u nodes keep queues and could tell it of a grant",
                      client->index, count_nodes(client, false));
    } else if (lease->state == REDLOCK_LEASE_QUEUED && client->unopened_ns > world->now_ns) {
        sim_violation(world, "placed", "client %u waits in queues, though only %u nodes could tell it of a grant",
                      client->index, count_nodes(client, true));
    }
}

void sim_places_check(struct sim_world *world) {
    for (unsigned i = 0; i < world->profile.clients; i++) {
        const struct sim_client *client = &world->clients[i];
        if (client->group == NULL || client->closing) {
            continue;
        }
        REDLOCK_REQUESTERS(owner, client->group, REDLOCK_REQUESTER_LEASE) {
            const struct redlock_lease *lease = (const struct redlock_lease *)owner;
            if (lease->waiting != NULL && !redlock_handle_is_forgotten(lease)) {
                check_lease(client, &lease->core);
            }
        }
    }
}
