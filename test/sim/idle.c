/* The checker of locks that lie idle: the dead in line keep no lock from the living. */
#include "parts.h"

/* A lock may be left free for 50 ms. Then those who are not the first look within 80 ms. What they
 * find costs round trips, and so does the place of who comes meanwhile. */
#define BOUND_NS      (150 * SIM_MS)
#define BOUND_TRAVELS 20
/* Who dies while it leaves the lock free tells nobody: a refresh finds it. */
#define LEFT_NS    (50 * SIM_MS)
#define REFRESH_NS (2500 * SIM_MS)

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

/* For how long the lock may lie idle. */
static int64_t bound_ns(const struct sim_world *world, unsigned resource) {
    const int64_t travels_ns = BOUND_TRAVELS * world->profile.delay_max_ns;
    const int64_t crashed_after_ns = world->crashed_ns - world->idle_ns[resource];
    const bool nobody_tells = crashed_after_ns >= 0 && crashed_after_ns <= LEFT_NS + travels_ns;
    return BOUND_NS + travels_ns + (nobody_tells ? REFRESH_NS : 0);
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
        } else if (world->now_ns - world->idle_ns[r] > bound_ns(world, r)) {
            sim_violation(world, "idle", "'%s' is free for %.3f ms at %u nodes beside somebody who waits for it",
                          sim_resource_name(r), (double)(world->now_ns - world->idle_ns[r]) / 1e6, idle);
        }
    }
}
