/* The checker of locks that lie idle: the dead in line keep no lock from the living. */
#include "parts.h"

/* A lock may be left free for 50 ms. Then those who are not the first look within 80 ms. What they
 * find costs round trips, and so does the place of who comes meanwhile. */
#define BOUND_NS      (150 * SIM_MS)
#define BOUND_TRAVELS 20

/* Whether somebody is in line at the node who is alive, and whom it can tell. */
static bool has_living(struct sim_world *world, unsigned node, unsigned resource) {
    const struct sim_node *at = &world->nodes[node];
    const struct fake_key *queue = sim_key_at(world, node, resource, ":wait");
    for (unsigned i = 0; queue != NULL && i < at->fake.part_count; i++) {
        char token[SIM_TOKEN_SIZE];
        sim_token_set(token, at->fake.parts[i].token, at->fake.parts[i].token_size);
        if (at->fake.parts[i].set == queue->id && sim_name(token)[0] == 'c' &&
            at->heard_gen[sim_name(token)[1] - '0'] != 0) {
            return true;
        }
    }
    return false;
}

void sim_check_free(struct sim_world *world) {
    for (unsigned r = 0; r < world->profile.resources; r++) {
        unsigned idle = 0;
        for (unsigned i = 0; i < world->profile.nodes; i++) {
            sim_node_clock(world, &world->nodes[i]);
            const struct fake_key *lock = sim_key_at(world, i, r, "");
            idle += lock == NULL && has_living(world, i, r);
        }
        if (idle <= world->profile.nodes / 2 || world->phase != SIM_ACTIVE) {
            world->idle_ns[r] = 0;
        } else if (world->idle_ns[r] == 0) {
            world->idle_ns[r] = world->now_ns;
        } else if (world->now_ns - world->idle_ns[r] > BOUND_NS + BOUND_TRAVELS * world->profile.delay_max_ns) {
            sim_violation(world, "idle", "'%s' is free for %.3f ms at %u nodes beside somebody who waits for it",
                          sim_resource_name(r), (double)(world->now_ns - world->idle_ns[r]) / 1e6, idle);
        }
    }
}
