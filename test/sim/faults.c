/* Faults: when one is due, what breaks and for how long; and how everything is repaired at the
 * end. */
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake_store.h"
#include "parts.h"

/* On the scale of a node timeout or of a ttl. */
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

void sim_node_haunt(struct sim_world *world, unsigned index, const char *token, size_t size, int64_t gone_ns) {
    struct sim_node *node = &world->nodes[index];
    unsigned kept = 0;
    for (unsigned i = 0; i < node->ghost_count; i++) {
        if (node->ghosts[i].gone_ns > world->now_ns) {
            node->ghosts[kept++] = node->ghosts[i];
        }
    }
    node->ghost_count = kept;
    if (kept < SIM_GHOSTS_MAX) {
        sim_token_set(node->ghosts[kept].token, token, size);
        node->ghosts[kept].gone_ns = gone_ns;
        node->ghost_count++;
    }
}

void sim_node_lose(struct sim_world *world, unsigned index, struct fake_key *key) {
    if (key->expires_ms != FAKE_NO_TTL) {
        sim_node_haunt(world, index, key->value, key->value_size, key->gone_ns);
    }
    key->used = false;
}

static void crash(struct sim_world *world, unsigned index, enum sim_fault fault) {
    const bool forget = fault != SIM_FAULT_CRASH, replaced = fault == SIM_FAULT_REPLACE;
    struct sim_node *node = &world->nodes[index];
    if (node->down) {
        return;
    }
    node->down = true;
    int64_t until = world->now_ns + draw_duration(world);
    bool at_once = world->profile.forgets_at_once;
    if (at_once && sim_random_percent(&world->random, 60)) {
        until = world->now_ns + sim_random_between(&world->random, 1, 20 * SIM_MS);
    }
    if (forget && world->control == SIM_CONTROL_MEMORYLESS) {
        until = world->now_ns + SIM_MS;
    }
    /* R18 and docs/safety.md: a node that forgot may come back when all that it had granted would
     * have ended. Until then its keys count as present, because it can grant the lock to nobody
     * else. */
    for (unsigned i = 0; i < node->fake.key_count && forget; i++) {
        struct fake_key *key = &node->fake.keys[i];
        if (key->used && at_once) {
            sim_node_lose(world, index, key);
        } else if (key->used && !sim_key_is_counter(key)) {
            until = later(until, key->gone_ns);
        }
    }
    until = forget ? later(until, sim_node_lose_readers(world, index, at_once)) : until;
    /* No RST: the host is gone, not the process. */
    bool silent = !replaced && sim_random_percent(&world->random, 30);
    for (unsigned i = 0; i < world->profile.clients; i++) {
        node->killed_gen[i] = world->clients[i].links[index].gen + 1;
        if (replaced && sim_random_percent(&world->random, 50)) {
            /* A firewall on the way drops what it does not know. */
            world->clients[i].links[index].mute_ns =
                until + sim_random_between(&world->random, 1, 30 * world->profile.node_timeout_ms * SIM_MS);
        } else if (!silent) {
            sim_link_break_at(world, i, index, world->now_ns + sim_delay_ns(world));
        }
    }
    SIM_TRACE(world, "node %u crashes %s memory%s for %.3f ms", index, forget ? "without" : "with",
              silent ? ", silently," : "", (double)(until - world->now_ns) / 1e6);
    sim_subscriptions_die(world, index, silent);
    node->down_until_ns = until;
    sim_push(world, until, (struct sim_event){.kind = SIM_RESTART, .node = (uint8_t)index, .entry = forget + replaced});
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

void sim_link_cut(struct sim_world *world, unsigned client, unsigned node, unsigned ways, int64_t for_ns) {
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

/* Not for long, because each such answer costs a connection. */
static void strange(struct sim_world *world, unsigned node) {
    int64_t for_ns = sim_random_between(&world->random, 1, 10 * world->profile.node_timeout_ms * SIM_MS);
    world->nodes[node].strange_until_ns = world->now_ns + for_ns;
    SIM_TRACE(world, "node %u answers out of protocol for %.3f ms", node, (double)for_ns / 1e6);
}

/* Pauses that end close to a deadline are the most interesting. */
static void pause_client(struct sim_world *world, unsigned index) {
    struct sim_client *client = &world->clients[index];
    int64_t for_ns = draw_duration(world);
    const struct sim_lease *lease = client->slots[sim_random_below(&world->random, world->profile.slots)].lease;
    if (lease != NULL && client->ahead_until_ns <= world->now_ns && sim_random_percent(&world->random, 60)) {
        for_ns = sim_lease_validity_ms(world, lease) * SIM_MS + sim_random_between(&world->random, 0, 8 * SIM_MS);
    }
    sim_client_pause(client, for_ns);
}

#define BACKUP_EVENTS 61

void sim_node_back_up(const struct sim_world *world, struct sim_node *node) {
    if (world->profile.trust == SIM_GUARDED && world->profile.forgets_at_once && world->control != SIM_CONTROL_SPEC &&
        world->events % BACKUP_EVENTS == 0) {
        memcpy(&node->copy, &node->fake, offsetof(struct fake_node, parts[node->fake.part_count]));
        node->has_copy = true;
    }
}

/* An old copy of all data comes back: a backup, or a snapshot of the disk. Its keys end when they
 * would have. Nobody releases a token that was released before. */
static void restore(struct sim_world *world, struct sim_node *node) {
    struct fake_node *fake = &node->fake;
    char token[SIM_TOKEN_SIZE];
    memcpy(fake->keys, node->copy.keys, sizeof fake->keys);
    memcpy(fake->sets, node->copy.sets, sizeof fake->sets);
    memcpy(fake->parts, node->copy.parts, node->copy.part_count * sizeof fake->parts[0]);
    fake->key_count = node->copy.key_count;
    fake->set_count = node->copy.set_count;
    fake->part_count = node->copy.part_count;
    for (unsigned i = 0; i < fake->key_count; i++) {
        struct fake_key *key = &fake->keys[i];
        key->gone_ns = sim_key_gone_ns(node, key);
        if (key->used && !sim_key_is_counter(key)) {
            sim_token_set(token, key->value, key->value_size);
            sim_forget_token(world, token);
            SIM_TRACE(world, "an old copy has '%.*s' = %.8s", key->name_size, key->name, sim_name(token));
        }
    }
    for (unsigned i = 0; i < fake->part_count; i++) {
        sim_token_set(token, fake->parts[i].token, fake->parts[i].token_size);
        sim_forget_token(world, token);
    }
}

/* Sometimes an old snapshot is loaded, with the queues but without the locks, or with all. */
static void forget(struct sim_world *world, struct sim_node *node, bool replaced) {
    if (!replaced && sim_random_percent(&world->random, 60)) {
        fake_node_clear(&node->fake);
    }
    for (unsigned i = 0; i < node->fake.key_count; i++) {
        node->fake.keys[i].used = false;
    }
    for (unsigned i = 0; i < node->fake.set_count; i++) {
        node->fake.sets[i].used = node->fake.sets[i].used && !sim_is_read(&node->fake.sets[i]);
    }
    if (node->has_copy && (world->seed + node->run) % 3 == 0) {
        restore(world, node);
    }
}

void sim_restart_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_node *node = &world->nodes[event->node];
    node->down = false;
    node->fake.scripts = 0;
    node->fake.mode = FAKE_NORMAL;
    node->run++;
    node->began_ns = world->now_ns;
    /* The clock is right before the server starts: uptime counts from then. */
    if (event->entry && node->stepped.off_ns < 0 && world->profile.trust == SIM_GUARDED) {
        node->clock.offset_ns -= node->stepped.off_ns;
        node->stepped.off_ns = 0;
    }
    node->started_us = sim_clock_local(&node->clock, world->now_ns) / 1000;
    sim_quarantine_begin(world, node);
    if (event->entry) {
        forget(world, node, event->entry == 2);
        sim_spec_restarted(world, event->node);
    }
    SIM_TRACE(world, "node %u is back%s", event->node, event->entry ? ", empty" : "");
    if (event->entry && world->profile.steps_at_boot) {
        sim_step_at_boot(world, event->node);
    }
    if (sim_random_percent(&world->random, 40) && world->phase == SIM_ACTIVE) {
        node->fake.mode = FAKE_LOADING;
        sim_push(world, world->now_ns + sim_random_between(&world->random, 1, 100 * SIM_MS),
                 (struct sim_event){.kind = SIM_MODE, .node = event->node});
    }
}

/* Client 0 has its locks on the smallest quorum, because it cannot reach the other nodes. Then it
 * is cut off and does not see clocks step. At the same moment a client meets the nodes that can
 * only compare their clocks with each other. */
void sim_ambush(struct sim_world *world, int64_t at_ns) {
    for (unsigned i = 0; i < (world->profile.nodes - 1) / 2; i++) {
        sim_link_cut(world, 0, i, 3, at_ns);
    }
    sim_push(world, at_ns - 1, (struct sim_event){.kind = SIM_AMBUSH});
}

void sim_ambush_event(struct sim_world *world) {
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        sim_link_cut(world, 0, i, 3, world->profile.ttl_max_ms * SIM_MS);
    }
    for (unsigned i = world->profile.nodes; i > 0; i--) {
        sim_step(world, i - 1);
    }
}

/* A push is held up, and the client's requests to that node are, too. Pushes of the others do not
 * come either, so the client learns of their grants by the answers to its next WAIT. It then holds
 * the lock when the old push arrives. */
void sim_overtake(struct sim_world *world, unsigned client, unsigned node, int64_t for_ns) {
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        sim_subscription_stall(world, client, i, for_ns);
    }
    sim_link_cut(world, client, node, 1, 4 * for_ns);
}

static void set_wall(struct sim_world *world, unsigned client) {
    int64_t most_ns = (world->profile.storm ? 1 : 5000) * SIM_MS;
    int64_t by_ns = sim_random_between(&world->random, -most_ns, most_ns);
    world->clients[client].wall_off_ns += by_ns;
    SIM_TRACE(world, "client %u: its wall clock steps by %.3f ms", client, (double)by_ns / 1e6);
}

/* Drops every lock. */
static void drop_locks(struct sim_world *world) {
    SIM_TRACE(world, "all nodes drop their locks");
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        for (unsigned k = 0; k < world->nodes[i].fake.key_count; k++) {
            struct fake_key *key = &world->nodes[i].fake.keys[k];
            key->used = key->used && sim_key_is_counter(key);
        }
    }
}

/* Counters, if they may be lost; locks only if no lease depends on them; a queue always. */
static void evict(struct sim_world *world, unsigned index) {
    struct fake_node *node = &world->nodes[index].fake;
    if (world->profile.storm && sim_random_percent(&world->random, 70)) {
        drop_locks(world);
        return;
    }
    unsigned from = sim_random_below(&world->random, FAKE_KEYS_MAX);
    if (sim_random_percent(&world->random, 30)) {
        struct fake_key *set = &node->sets[from % FAKE_SETS_MAX];
        if (sim_is_read(set) && world->profile.trust != SIM_RECKLESS) {
            return;
        }
        SIM_TRACE(world, "node %u drops '%.*s'", index, set->name_size, set->name);
        set->used = false;
        return;
    }
    for (unsigned i = 0; i < node->key_count; i++) {
        struct fake_key *key = &node->keys[(from + i) % node->key_count];
        bool allowed = sim_key_is_counter(key) ? world->profile.counters_die : world->profile.trust == SIM_RECKLESS;
        if (key->used && allowed) {
            SIM_TRACE(world, "node %u drops '%.*s'", index, key->name_size, key->name);
            key->used = false;
            return;
        }
    }
}

/* The lie stays after all faults have healed. It costs only the vote of that node, and counters
 * never fall. */
static void lie(struct sim_world *world) {
    const unsigned liar = world->profile.nodes - 1;
    const uint64_t now = (uint64_t)(SIM_WALL_NS + world->now_ns), minute = UINT64_C(60000000000);
    const uint64_t lies[] = {now + 10 * minute,          now + 120 * minute,
                             now + 2 * 24 * 60 * minute, UINT64_C(7226582400000000000),
                             REDLOCK_FENCE_MAX - 1,      REDLOCK_FENCE_MAX};
    struct fake_node *node = &world->nodes[liar].fake;
    char name[64], digits[REDLOCK_FENCE_DIGITS];
    const int size = snprintf(name, sizeof name, "%s%s:fence", world->seed % 3 == 0 ? "lock:" : "",
                              sim_resource_name(sim_random_below(&world->random, world->profile.resources)));
    const struct sim_argument counter = {name, (size_t)size}, number = {digits, sizeof digits};
    redlock_fence_format(lies[sim_random_below(&world->random, sizeof lies / sizeof *lies)], digits);
    const struct fake_key *key = fake_find(node, &counter);
    if (key == NULL || (key->value_size == sizeof digits && memcmp(key->value, digits, sizeof digits) < 0)) {
        (void)fake_add(node, &counter, &number);
        SIM_TRACE(world, "node %u has the counter '%s' at %.20s", liar, name, digits);
    }
}

/* It has its own tokens, and does not know of queues. */
static void take_as_peer(struct sim_world *world) {
    const int64_t ttl_ms = sim_random_between(&world->random, world->profile.ttl_min_ms, world->profile.ttl_max_ms);
    const unsigned resource = sim_random_below(&world->random, world->profile.resources);
    char name[FAKE_NAME_MAX], token[24];
    const int name_size =
        snprintf(name, sizeof name, "%s%s", world->seed % 3 == 0 ? "lock:" : "", sim_resource_name(resource));
    const int size = snprintf(token, sizeof token, "peer%llu", (unsigned long long)world->events);
    const struct sim_argument key = {name, (size_t)name_size}, value = {token, (size_t)size};
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        struct sim_node *node = &world->nodes[i];
        sim_node_clock(world, node);
        struct fake_key *taken =
            node->down || fake_find(&node->fake, &key) != NULL ? NULL : fake_add(&node->fake, &key, &value);
        if (taken != NULL) {
            taken->expires_ms = node->fake.now_ms + ttl_ms;
            taken->gone_ns = sim_key_gone_ns(node, taken);
            SIM_TRACE(world, "node %u: %s takes '%s' for %lld ms", i, token, name, (long long)ttl_ms);
        }
    }
}

/* What is on the way on them never arrives. */
static void silence(struct sim_world *world, unsigned client, unsigned node) {
    const bool all = world->control == SIM_CONTROL_SILENT || sim_random_percent(&world->random, 50);
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        struct sim_link *link = &world->clients[client].links[i];
        if ((all || i == node) && (link->state == SIM_LINK_READY || link->state == SIM_LINK_STALLED)) {
            link->silent_gen = link->gen;
            SIM_TRACE(world, "client %u: the connection to node %u passes nothing any more", client, i);
        }
    }
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
    case SIM_FAULT_REPLACE:
        crash(world, node, fault);
        break;
    case SIM_FAULT_BREAK:
        sim_link_break(world, client, node);
        break;
    case SIM_FAULT_CUT:
        sim_link_cut(world, client, node, 1 + sim_random_below(&world->random, 3), for_ns);
        break;
    case SIM_FAULT_ISOLATE:
        for (unsigned i = 0; i < world->profile.nodes; i++) {
            sim_link_cut(world, client, i, 3, for_ns);
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
    case SIM_FAULT_STEP:
        if (world->control == SIM_CONTROL_STEPPING) {
            sim_step_all(world);
        } else {
            sim_step(world, node);
        }
        break;
    case SIM_FAULT_WALL:
        set_wall(world, client);
        break;
    case SIM_FAULT_EVICT:
        evict(world, node);
        break;
    case SIM_FAULT_LIE:
        lie(world);
        break;
    case SIM_FAULT_STALL:
        sim_subscription_stall(world, client, node, for_ns);
        break;
    case SIM_FAULT_DEAFEN:
        sim_subscription_kill(world, client, node);
        break;
    case SIM_FAULT_PEER:
        take_as_peer(world);
        break;
    case SIM_FAULT_ACL:
        sim_plague_forbid(world, node, for_ns);
        break;
    case SIM_FAULT_UNOPENED:
        sim_plague_starve(world, client, for_ns);
        break;
    case SIM_FAULT_DEAD:
        sim_plague_die_in_line(world);
        break;
    case SIM_FAULT_SILENT:
        silence(world, client, node);
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
    if (world->profile.late_max_ms > 0) {
        sim_load_late(world);
    } else {
        happen(world, (enum sim_fault)pick);
    }
    sim_push(world, world->now_ns + sim_random_between(&world->random, 1, 2 * world->profile.fault_gap_ns),
             (struct sim_event){.kind = SIM_FAULT});
}

int64_t sim_faults_heal(struct sim_world *world) {
    int64_t healed = world->now_ns;
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        struct sim_node *node = &world->nodes[i];
        node->fake.mode = FAKE_NORMAL;
        healed = later(healed, later(later(node->hung_until_ns, node->strange_until_ns), node->forbids_ns));
        if (node->down) {
            healed = later(healed, node->down_until_ns);
        }
        for (unsigned k = 0; k < world->profile.clients; k++) {
            const struct sim_link *link = &world->clients[k].links[i];
            healed = later(healed, later(later(link->up_cut_ns, link->down_cut_ns), later(link->up_ns, link->down_ns)));
            healed = later(healed, later(link->blocked_ns, node->late_ns[k]));
            if (link->silent_gen == link->gen) {
                sim_link_break(world, k, i); /* the keepalive has found it */
            }
            healed = later(healed, later(later(link->subscription.down_ns, link->deaf_ns), link->mute_ns));
        }
    }
    for (unsigned k = 0; k < world->profile.clients; k++) {
        const struct sim_client *client = &world->clients[k];
        healed = later(healed, client->busy_until_ns);
        healed = client->unopened_ns != SIM_NEVER ? later(healed, client->unopened_ns) : healed;
    }
    return healed;
}
