/* Faults that befall those who wait: no rights, no second connection, and death in line. */
#include <stdio.h>

#include "fake_store.h"
#include "parts.h"

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

void sim_plague_forbid(struct sim_world *world, unsigned node, int64_t for_ns) {
    const bool all = sim_random_percent(&world->random, 60);
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        if (all || i == node) {
            world->nodes[i].forbids_ns = later(world->nodes[i].forbids_ns, world->now_ns + for_ns);
            SIM_TRACE(world, "node %u permits no queue for %.3f ms", i, (double)for_ns / 1e6);
        }
    }
}

void sim_plague_starve(struct sim_world *world, unsigned client, int64_t for_ns) {
    world->clients[client].unopened_ns = later(world->clients[client].unopened_ns, world->now_ns + for_ns);
    SIM_TRACE(world, "client %u can open no second connection for %.3f ms", client, (double)for_ns / 1e6);
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        sim_subscription_kill(world, client, i);
    }
}

void sim_plague_die_in_line(struct sim_world *world) {
    const unsigned resource = sim_random_below(&world->random, world->profile.resources);
    const unsigned count = 40 + sim_random_below(&world->random, 160);
    /* Longer than a refresh takes: all who wait know when the key of one who died ends. */
    const int64_t ttl_ms = world->profile.ttl_max_ms < 4000 ? world->profile.ttl_max_ms : 4000;
    char names[2][FAKE_NAME_MAX], token[SIM_TOKEN_SIZE + 1];
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        struct sim_node *node = &world->nodes[i];
        struct fake_key *sets[2];
        sim_node_clock(world, node);
        for (unsigned k = 0; k < 2; k++) {
            const int size = snprintf(names[k], sizeof names[k], "%s%s:wait%s", world->seed % 3 == 0 ? "lock:" : "",
                                      sim_resource_name(resource), k == 0 ? "" : "er");
            const struct sim_argument name = {names[k], (size_t)size};
            sets[k] = fake_find(&node->fake, &name);
            if (sets[k] == NULL && !node->down &&
                (sets[k] = fake_add_set(&node->fake, &name, k == 0 ? FAKE_ZSET : FAKE_HASH)) != NULL) {
                fake_expire(&node->fake, sets[k], SIM_QUEUE_TTL_MAX);
            }
        }
        /* The living need room, too. */
        const unsigned room = fake_queue_room(&node->fake) / 2;
        unsigned at = 0;
        (void)snprintf(token, sizeof token, "%016x%s%031llx", 0, "d", (unsigned long long)world->events);
        for (unsigned k = 0; k < count && k + 32 < room && sets[0] != NULL && sets[1] != NULL && !node->down; k++) {
            token[SIM_TICKET_SIZE - 2] = "0123456789abcdef"[(k + 1) >> 4];
            token[SIM_TICKET_SIZE - 1] = "0123456789abcdef"[(k + 1) & 15];
            fake_queue_add(&node->fake, sets, ttl_ms, token, SIM_DEAD_CHANNEL,
                           (const int64_t[]){k + 1, (int64_t)(k % 7) * 2000 - 500}, &at);
        }
    }
    world->dead_ns = world->now_ns + sim_random_between(&world->random, 0, 8000 * SIM_MS);
    SIM_TRACE(world, "%u who wait for '%s' die at %.3f ms", count, sim_resource_name(resource),
              (double)world->dead_ns / 1e6);
}
