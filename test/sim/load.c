/* Schedules of a machine with a high load: --control loaded. */
#include "parts.h"

/* A machine has more to do than it can, and nothing else is wrong. Places are refreshed so rarely
 * that a refresh is no help. */
void sim_load_draw(struct sim_profile *profile, struct sim_random *random) {
    static const int64_t late_ms[] = {20, 60, 100, 200};
    profile->calm = false;
    profile->crowd = true;
    profile->nodes = sim_random_percent(random, 50) ? 3 : 5;
    profile->clients = 2 + sim_random_below(random, SIM_CLIENTS_MAX - 1);
    profile->slots = 1 + sim_random_below(random, SIM_SLOTS_MAX);
    profile->resources = 1;
    profile->old_clients = 0;
    profile->ttl_min_ms = 10000;
    profile->ttl_max_ms = 20000;
    profile->node_timeout_ms = 50;
    profile->delay_max_ns = 300000;
    profile->delay_min_ns = 30000;
    profile->deafens = sim_random_percent(random, 50);
    profile->late_max_ms = late_ms[sim_random_below(random, 4)];
    profile->blocks = sim_random_percent(random, 20);
    if (profile->blocks) {
        profile->ttl_max_ms = 2 * (profile->ttl_min_ms = 30000);
    }
}

/* Each process is late for 5 to 60 % of the time. */
void sim_load_pace(struct sim_profile *profile, struct sim_random *random) {
    const int64_t mean_ms = 4 + profile->late_max_ms / 10, share = sim_random_between(random, 5, 60);
    profile->fencing = profile->heal = false;
    profile->lock_delay_max_ms = 0;
    profile->active_ns = (profile->blocks ? 12000 : 2000) * SIM_MS;
    profile->user_gap_ns = sim_random_between(random, 2, 10) * SIM_MS;
    profile->fault_gap_ns = mean_ms * SIM_MS * 100 / share / (profile->nodes + profile->clients);
}

/* Mostly by little. */
static int64_t draw_late_ns(struct sim_world *world) {
    const int64_t most_ms = sim_random_percent(&world->random, 80) ? 10 : world->profile.late_max_ms;
    return sim_random_between(&world->random, 1, most_ms * SIM_MS);
}

static void run_node_late(struct sim_world *world, unsigned index) {
    struct sim_node *node = &world->nodes[index];
    const int64_t for_ns = draw_late_ns(world);
    if (node->hung_until_ns <= world->now_ns) {
        node->hung_until_ns = world->now_ns + for_ns;
        SIM_TRACE(world, "node %u does not run for %.3f ms", index, (double)for_ns / 1e6);
    }
}

/* One of all processes does not run for a while; or many nodes do not. */
void sim_load_late(struct sim_world *world) {
    const unsigned nodes = world->profile.nodes, at = sim_random_below(&world->random, nodes + world->profile.clients);
    const bool most = sim_random_percent(&world->random, 10);
    for (unsigned i = 0; i < nodes; i++) {
        if (i == at || (most && sim_random_percent(&world->random, 50))) {
            run_node_late(world, i);
        }
    }
    if (world->profile.deafens && sim_random_percent(&world->random, 3)) {
        sim_subscription_kill(world, at % world->profile.clients, sim_random_below(&world->random, nodes));
    }
    if (at >= nodes && world->clients[at - nodes].busy_until_ns <= world->now_ns) {
        sim_client_pause(&world->clients[at - nodes], draw_late_ns(world));
    }
}

static bool is_idle(const struct sim_client *client) {
    for (unsigned i = 0; i < SIM_SLOTS_MAX; i++) {
        if (client->slots[i].acquiring != NULL || client->slots[i].lease != NULL) {
            return false;
        }
    }
    return true;
}

/* Nobody may need it now: a program that waits for its user, say. */
void sim_load_released(struct sim_client *client) {
    struct sim_world *world = client->world;
    redlock_statistics now = {.size = sizeof now};
    if (!world->profile.blocks || world->phase != SIM_ACTIVE || client->closing) {
        return;
    }
    redlock_group_statistics(client->group, &now);
    if (now.left_free > client->left_free && is_idle(client)) {
        sim_client_pause(client, sim_random_between(&world->random, 1, 3000) * SIM_MS);
        client->blocked_ns = client->busy_until_ns;
    }
    client->left_free = now.left_free;
}
