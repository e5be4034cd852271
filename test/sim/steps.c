/* Steps of nodes' clocks, and which of them guards must notice. */
#include "parts.h"

/* Moves a node's clock: keys end sooner, or later. */
static void step_clock(struct sim_world *world, unsigned index, int64_t by_ns) {
    struct sim_node *node = &world->nodes[index];
    if (by_ns > 0) {
        sim_haunt_readers(world, index);
    }
    node->clock.offset_ns += by_ns;
    node->stepped.off_ns += by_ns;
    if (by_ns > 0) {
        node->stepped.steps++;
        node->stepped.jumped_ns = world->now_ns;
        node->stepped_ns = world->now_ns;
    } else {
        node->stepped_back = true;
        node->has_copy = false; /* what has ended would come back to life */
    }
    if (node->stepped.off_ns == 0) {
        node->righted_ns = world->now_ns;
    }
    world->changes++;
    SIM_TRACE(world, "node %u: its clock steps by %.3f ms", index, (double)by_ns / 1e6);
    for (unsigned i = 0; i < node->fake.key_count; i++) {
        struct fake_key *key = &node->fake.keys[i];
        if (!key->used || key->expires_ms == FAKE_NO_TTL) {
            continue;
        }
        int64_t gone_ns = sim_key_gone_ns(node, key);
        if (by_ns > 0 && key->gone_ns > world->now_ns) {
            sim_node_lose(world, index, key);
            key->used = true;
        }
        key->gone_ns = gone_ns;
    }
}

/* A guard compares only clocks that were read within three seconds. */
#define AT_ONE_TIME_NS (3200 * SIM_MS)

/* Of the first so many nodes. */
static unsigned wrong_clocks(const struct sim_world *world, unsigned nodes) {
    unsigned wrong = 0;
    for (unsigned i = 0; i < nodes; i++) {
        const struct sim_node *node = &world->nodes[i];
        wrong += node->stepped.off_ns != 0 || world->now_ns < node->righted_ns + AT_ONE_TIME_NS;
    }
    return wrong;
}

/* Guards compare clocks, and of a client's nodes, fewer than its quorum are wrong at one time
 * (docs/safety.md): any of them, met in any order. A step of a clock that was read before shows
 * without a comparison. */
static bool may_go_wrong(const struct sim_world *world, unsigned node) {
    const struct sim_profile *profile = &world->profile;
    const bool needs_others = !profile->early || profile->forgets_at_once;
    if (profile->trust != SIM_GUARDED || !needs_others || (profile->nodes == 1 && profile->early)) {
        return wrong_clocks(world, profile->nodes) < profile->nodes;
    }
    for (unsigned i = 0; i < profile->clients; i++) {
        const unsigned nodes = sim_nodes_of(world, i);
        if (node < nodes && wrong_clocks(world, nodes) + 1 >= sim_quorum_of(world, i)) {
            return false;
        }
    }
    return true;
}

/* Each client has read the present clock, or will find it right at its first reading. */
static bool all_have_read(const struct sim_world *world, unsigned node) {
    for (unsigned i = 0; i < world->profile.clients; i++) {
        const struct sim_link *link = &world->clients[i].links[node];
        if (world->control == SIM_CONTROL_RIGHTED && !link->clock_read) {
            continue;
        }
        int64_t known_ns = link->clock_read ? link->off_ns : 0;
        if (world->clients[i].group != NULL && known_ns != world->nodes[node].stepped.off_ns) {
            return false;
        }
    }
    return true;
}

/* Whether this clock may go forward or back now, as far as guards must notice it. They cannot see
 * two steps that cancel out between two readings, or that set a clock right before the first
 * reading. */
static bool may_step(const struct sim_world *world, unsigned index, bool forward) {
    const struct sim_profile *profile = &world->profile;
    const struct sim_node *node = &world->nodes[index];
    if (node->stepped.off_ns == 0 && !may_go_wrong(world, index)) {
        return false;
    }
    if (profile->trust != SIM_GUARDED) {
        return true;
    }
    int64_t over_ns = node->stepped_ns + profile->guarded_ttl_max_ms * SIM_MS * 105 / 100;
    return forward ? all_have_read(world, index) : world->now_ns > over_ns;
}

static void step(struct sim_world *world, unsigned index) {
    const struct sim_profile *profile = &world->profile;
    const struct sim_node *node = &world->nodes[index];
    int64_t by_ns = sim_random_between(&world->random, profile->step_min_ns, profile->step_max_ns);
    by_ns = sim_random_percent(&world->random, 60) ? by_ns : -by_ns;
    if (node->stepped.off_ns != 0) {
        by_ns = -node->stepped.off_ns; /* it is set right */
    }
    if (may_step(world, index, by_ns > 0)) {
        step_clock(world, index, by_ns);
    }
}

void sim_step(struct sim_world *world, unsigned index) {
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        if (world->nodes[i].stepped.off_ns != 0 && sim_random_percent(&world->random, 50)) {
            index = i;
        }
    }
    step(world, index);
}

void sim_step_all(struct sim_world *world) {
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        step(world, i);
    }
}

void sim_step_another(struct sim_world *world, unsigned node) {
    const unsigned nodes = world->profile.nodes,
                   another = (node + 1 + sim_random_below(&world->random, nodes - 1)) % nodes;
    if (world->phase == SIM_ACTIVE && world->nodes[another].stepped.off_ns == 0 && may_step(world, another, true)) {
        step_clock(world, another,
                   sim_random_between(&world->random, world->profile.step_min_ns, world->profile.step_max_ns));
    }
}

void sim_step_at_boot(struct sim_world *world, unsigned node) {
    if (may_go_wrong(world, node) && sim_random_percent(&world->random, 50)) {
        step_clock(world, node,
                   sim_random_between(&world->random, world->profile.step_min_ns, world->profile.step_max_ns));
    }
}
