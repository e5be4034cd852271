/* Faults: when one is due, what breaks and for how long; and how everything is mended at the end. */
#include "faults.h"

#include <string.h>

#include "world.h"

/* On the scale of whatever is going on: a node timeout, or a ttl. */
static int64_t draw_duration(struct sim_world *world) {
    const struct sim_profile *profile = &world->profile;
    int64_t scale_ms = sim_random_percent(&world->random, 60)   ? 3 * profile->node_timeout_ms
                       : sim_random_percent(&world->random, 80) ? profile->ttl_max_ms * 11 / 10
                                                                : 30 * profile->node_timeout_ms;
    return sim_random_between(&world->random, 1, scale_ms * SIM_MS);
}

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static void crash(struct sim_world *world, unsigned index, bool forget) {
    struct sim_node *node = &world->nodes[index];
    if (node->down) {
        return;
    }
    node->down = true;
    int64_t until = world->now_ns + draw_duration(world);
    bool control = world->control == SIM_CONTROL_MEMORYLESS;
    if (forget && control) {
        until = world->now_ns + SIM_MS;
    }
    /* R18 and docs/safety.md: a node that forgot may come back when all it had granted would have ended. Until then
     * what it had counts as there, for nobody else can be granted it. */
    for (unsigned i = 0; i < node->fake.key_count && forget && !control; i++) {
        if (node->fake.keys[i].used) {
            until = later(until, node->fake.keys[i].gone_ns);
        }
    }
    if (forget && control) {
        node->fake.key_count = 0;
    }
    bool silent = sim_random_percent(&world->random, 30); /* no RST: the host is gone, not the process */
    for (unsigned i = 0; i < world->profile.clients; i++) {
        node->killed_gen[i] = world->clients[i].links[index].gen + 1;
        if (!silent) {
            sim_link_break_at(world, i, index, world->now_ns + sim_delay_ns(world));
        }
    }
    SIM_TRACE(world, "node %u crashes %s memory%s for %.3f ms", index, forget ? "without" : "with",
              silent ? ", silently," : "", (double)(until - world->now_ns) / 1e6);
    node->down_until_ns = until;
    sim_push(world, until, (struct sim_event){.kind = SIM_RESTART, .node = (uint8_t)index, .entry = forget});
}

void sim_restart_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_node *node = &world->nodes[event->node];
    node->down = false;
    node->fake.scripts = 0;
    node->fake.mode = FAKE_NORMAL;
    if (event->entry) {
        node->fake.key_count = 0;
        memset(node->fake.keys, 0, sizeof node->fake.keys);
    }
    SIM_TRACE(world, "node %u is back%s", event->node, event->entry ? ", empty" : "");
    if (sim_random_percent(&world->random, 40) && world->phase == SIM_ACTIVE) {
        node->fake.mode = FAKE_LOADING;
        sim_push(world, world->now_ns + sim_random_between(&world->random, 1, 100 * SIM_MS),
                 (struct sim_event){.kind = SIM_MODE, .node = event->node});
    }
}

void sim_mode_event(struct sim_world *world, const struct sim_event *event) {
    world->nodes[event->node].fake.mode = FAKE_NORMAL;
    SIM_TRACE(world, "node %u works normally again", event->node);
}

static void change_mode(struct sim_world *world, unsigned index) {
    static const char *const names[] = {"normal", "LOADING", "out of memory", "a replica", "unable to persist"};
    struct sim_node *node = &world->nodes[index];
    node->fake.mode = (enum fake_mode)(FAKE_OOM + sim_random_below(&world->random, 3));
    SIM_TRACE(world, "node %u is %s", index, names[node->fake.mode]);
    sim_push(world, world->now_ns + draw_duration(world), (struct sim_event){.kind = SIM_MODE, .node = (uint8_t)index});
}

/* ways: 1 towards the node, 2 towards the client, 3 both */
static void cut(struct sim_world *world, unsigned client, unsigned node, unsigned ways, int64_t for_ns) {
    struct sim_link *link = &world->clients[client].links[node];
    if (ways & 1) {
        link->up_cut_ns = later(link->up_cut_ns, world->now_ns + for_ns);
    }
    if (ways & 2) {
        link->down_cut_ns = later(link->down_cut_ns, world->now_ns + for_ns);
    }
    SIM_TRACE(world, "nothing passes %s client %u and node %u for %.3f ms",
              ways == 1   ? "from"
              : ways == 2 ? "back between"
                          : "between",
              client, node, (double)for_ns / 1e6);
}

static void block(struct sim_world *world, unsigned client, unsigned node, int64_t for_ns) {
    struct sim_link *link = &world->clients[client].links[node];
    link->blocked_ns = later(link->blocked_ns, world->now_ns + for_ns);
    SIM_TRACE(world, "client %u: the socket to node %u takes nothing for %.3f ms", client, node, (double)for_ns / 1e6);
    sim_push(world, world->now_ns + for_ns,
             (struct sim_event){.kind = SIM_UNBLOCK, .client = (uint8_t)client, .node = (uint8_t)node});
}

static void slow(struct sim_world *world, unsigned client, unsigned node) {
    struct sim_link *link = &world->clients[client].links[node];
    int64_t by_ns = sim_random_between(&world->random, 0, 3 * world->profile.node_timeout_ms * SIM_MS);
    link->up_ns = later(link->up_ns, world->now_ns + by_ns);
    link->down_ns = later(link->down_ns, world->now_ns + sim_random_between(&world->random, 0, by_ns));
    SIM_TRACE(world, "client %u: bytes to node %u are held up for %.3f ms", client, node, (double)by_ns / 1e6);
}

/* Not for long: each answer of this kind costs a connection. */
static void strange(struct sim_world *world, unsigned node) {
    int64_t for_ns = sim_random_between(&world->random, 1, 10 * world->profile.node_timeout_ms * SIM_MS);
    world->nodes[node].strange_until_ns = world->now_ns + for_ns;
    SIM_TRACE(world, "node %u answers out of protocol for %.3f ms", node, (double)for_ns / 1e6);
}

/* A pause is the more interesting the closer it ends to a deadline. */
static void pause_client(struct sim_world *world, unsigned index) {
    struct sim_client *client = &world->clients[index];
    int64_t for_ns = draw_duration(world);
    const struct sim_lease *lease = client->slots[sim_random_below(&world->random, world->profile.slots)].lease;
    if (lease != NULL && client->ahead_until_ns <= world->now_ns && sim_random_percent(&world->random, 60)) {
        for_ns = sim_lease_validity_ms(world, lease) * SIM_MS + sim_random_between(&world->random, 0, 8 * SIM_MS);
    }
    sim_client_pause(client, for_ns);
}

static void happen(struct sim_world *world, enum sim_fault fault) {
    unsigned node = sim_random_below(&world->random, world->profile.nodes);
    unsigned client = sim_random_below(&world->random, world->profile.clients);
    struct sim_node *at = &world->nodes[node];
    int64_t for_ns = draw_duration(world);
    switch (fault) {
    case SIM_FAULT_HANG:
        at->hung_until_ns = later(at->hung_until_ns, world->now_ns + for_ns);
        SIM_TRACE(world, "node %u hangs for %.3f ms", node, (double)for_ns / 1e6);
        break;
    case SIM_FAULT_CRASH:
    case SIM_FAULT_FORGET:
        crash(world, node, fault == SIM_FAULT_FORGET);
        break;
    case SIM_FAULT_BREAK:
        sim_link_break(world, client, node);
        break;
    case SIM_FAULT_CUT:
        cut(world, client, node, 1 + sim_random_below(&world->random, 3), for_ns);
        break;
    case SIM_FAULT_ISOLATE:
        for (unsigned i = 0; i < world->profile.nodes; i++) {
            cut(world, client, i, 3, for_ns);
        }
        break;
    case SIM_FAULT_PAUSE:
        pause_client(world, client);
        break;
    case SIM_FAULT_SCRIPTS:
        at->fake.scripts = 0;
        SIM_TRACE(world, "node %u: its scripts are flushed", node);
        break;
    case SIM_FAULT_MODE:
        change_mode(world, node);
        break;
    case SIM_FAULT_BLOCK:
        block(world, client, node, for_ns);
        break;
    case SIM_FAULT_STRANGE:
        strange(world, node);
        break;
    case SIM_FAULT_SLOW:
        slow(world, client, node);
        break;
    case SIM_FAULTS:
        break;
    }
}

void sim_fault_event(struct sim_world *world) {
    if (world->phase != SIM_ACTIVE) {
        return;
    }
    unsigned pick = sim_random_below(&world->random, SIM_FAULTS);
    while ((world->profile.faults & 1u << pick) == 0) {
        pick = (pick + 1) % SIM_FAULTS;
    }
    happen(world, (enum sim_fault)pick);
    sim_push(world, world->now_ns + sim_random_between(&world->random, 1, 2 * world->profile.fault_gap_ns),
             (struct sim_event){.kind = SIM_FAULT});
}

int64_t sim_faults_heal(struct sim_world *world) {
    int64_t healed = world->now_ns;
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        struct sim_node *node = &world->nodes[i];
        node->fake.mode = FAKE_NORMAL;
        healed = later(healed, later(node->hung_until_ns, node->strange_until_ns));
        if (node->down) {
            healed = later(healed, node->down_until_ns);
        }
        for (unsigned k = 0; k < world->profile.clients; k++) {
            const struct sim_link *link = &world->clients[k].links[i];
            healed = later(healed, later(later(link->up_cut_ns, link->down_cut_ns), later(link->up_ns, link->down_ns)));
            healed = later(healed, later(link->blocked_ns, node->late_ns[k]));
        }
    }
    for (unsigned k = 0; k < world->profile.clients; k++) {
        healed = later(healed, world->clients[k].busy_until_ns);
    }
    return healed;
}
