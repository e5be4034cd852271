/* A small world with a correct quorum lock. It makes random histories: nodes with keys, clients
 * that are paused and killed, an auditor. */
#include "check_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 8, TTL_MS = 300 };

#define TTL_US   INT64_C(300000)
#define DRIFT_US INT64_C(5000)

/* A key on a node, while it exists. Extensions move its expiry. */
struct key {
    int resource;
    size_t node;
    char token[CHAOS_TOKEN_SIZE];
    bool shared;
    int64_t from_us, to_us;
    struct {
        int64_t at_us, expires_us;
    } steps[STEPS_MAX];
    size_t step_count;
};

struct world {
    struct kit *kit;
    uint64_t random;
    size_t nodes, quorum;
    struct key *keys;
    size_t key_count, key_capacity;
    int64_t free_us[WORLD_CLIENTS]; /* when the client can start something */
    int64_t next_us[WORLD_RESOURCES];
    int64_t counters[WORLD_RESOURCES];
    int64_t fences[WORLD_RESOURCES];   /* the highest fencing token */
    int64_t accesses[WORLD_RESOURCES]; /* that the guarded resource has granted */
    int64_t tokens;
};

int64_t world_random(uint64_t *state, int64_t max) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((z ^ (z >> 31)) % ((uint64_t)max + 1));
}

static int64_t between(struct world *world, int64_t from, int64_t to) {
    return from + world_random(&world->random, to - from);
}

static bool chance(struct world *world, int percent) {
    return world_random(&world->random, 99) < percent;
}

/* One lease in the making. Its keys are the last ones in the world. */
struct round {
    int client, resource;
    bool shared;
    char token[CHAOS_TOKEN_SIZE];
    int64_t start_us;
    int64_t decided_us;  /* when it was won or lost */
    int64_t deadline_us; /* of the lease */
    int64_t fence;
    size_t first_key;
};

/* Removes late keys: a SET that was long on its way finds this key and is refused. */
static void refuse_later(struct world *world, const struct round *round, size_t node, int64_t at_us) {
    for (size_t i = 0; i < world->key_count; i++) {
        struct key *key = &world->keys[i];
        bool together = round->shared && key->shared;
        if (key->resource == round->resource && key->node == node && key->from_us >= at_us && !together) {
            key->to_us = key->from_us;
        }
    }
}

static void add_key(struct world *world, const struct round *round, size_t node, int64_t at_us) {
    if (world->key_count == world->key_capacity) {
        world->key_capacity = world->key_capacity == 0 ? 256 : 2 * world->key_capacity;
        world->keys = realloc(world->keys, world->key_capacity * sizeof *world->keys);
        if (world->keys == NULL) {
            abort();
        }
    }
    struct key *key = &world->keys[world->key_count++];
    *key = (struct key){.resource = round->resource,
                        .node = node,
                        .shared = round->shared,
                        .from_us = at_us,
                        .to_us = at_us + TTL_US,
                        .step_count = 1};
    key->steps[0].at_us = at_us;
    key->steps[0].expires_us = at_us + TTL_US;
    snprintf(key->token, sizeof key->token, "%s", round->token);
}

static bool is_at(const struct key *key, int resource, size_t node, int64_t at_us) {
    return key->resource == resource && key->node == node && key->from_us <= at_us && at_us < key->to_us;
}

/* Whether somebody keeps it out there. */
static bool is_kept_out(const struct world *world, const struct round *round, size_t node, int64_t at_us) {
    for (size_t i = 0; i < world->key_count; i++) {
        const struct key *key = &world->keys[i];
        if (is_at(key, round->resource, node, at_us) && !(round->shared && key->shared)) {
            return true;
        }
    }
    return false;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sends SET to all nodes. Some nodes are cut off, and their SET may arrive later. Returns true if a
 * quorum granted. */
static bool run_round(struct world *world, struct round *round) {
    int64_t granted_us[CHAOS_NODES_MAX];
    size_t granted = 0;
    round->first_key = world->key_count;
    for (size_t n = 0; n < world->nodes; n++) {
        bool cut = chance(world, 10);
        int64_t at_us = round->start_us + (cut ? between(world, 5000, 200000) : between(world, 100, 3000));
        if (is_kept_out(world, round, n, at_us) || (cut && chance(world, 50))) {
            continue;
        }
        refuse_later(world, round, n, at_us);
        add_key(world, round, n, at_us);
        if (!cut) {
            granted_us[granted++] = at_us;
        }
    }
    bool won = granted >= world->quorum;
    qsort(granted_us, granted, sizeof *granted_us, compare);
    round->decided_us = (won ? granted_us[world->quorum - 1] : round->start_us + 3000) + between(world, 100, 1000);
    round->deadline_us = round->start_us + TTL_US - DRIFT_US;
    return won;
}

/* Deletes reach most nodes that have the key. A delete follows a late SET on the same node. */
static void delete_keys(struct world *world, const struct round *round, int64_t at_us) {
    for (size_t i = round->first_key; i < world->key_count; i++) {
        struct key *key = &world->keys[i];
        int64_t gone_us = (key->from_us > at_us ? key->from_us : at_us) + between(world, 100, 2000);
        if (gone_us < key->to_us && chance(world, 90)) {
            key->to_us = gone_us;
        }
    }
}

/* Extends the key on most nodes that have it. If a quorum did, moves the deadline and returns
 * true. */
static bool extend(struct world *world, struct round *round, int64_t start_us) {
    int64_t done_us[CHAOS_NODES_MAX];
    size_t done = 0;
    for (size_t i = round->first_key; i < world->key_count; i++) {
        struct key *key = &world->keys[i];
        int64_t at_us = start_us + between(world, 100, 3000);
        if (at_us < key->from_us || at_us >= key->to_us || key->step_count == STEPS_MAX || chance(world, 8)) {
            continue;
        }
        key->steps[key->step_count].at_us = at_us;
        key->steps[key->step_count++].expires_us = at_us + TTL_US;
        key->to_us = at_us + TTL_US;
        done_us[done++] = at_us;
    }
    if (done < world->quorum) {
        return false;
    }
    qsort(done_us, done, sizeof *done_us, compare);
    round->decided_us = done_us[world->quorum - 1] + between(world, 100, 1000);
    round->deadline_us = start_us + TTL_US - DRIFT_US;
    return true;
}

/* When the client takes its lease to end: the time left, rounded down to ms when it looks. */
static int64_t promise(const struct round *round, int64_t at_us) {
    return at_us + (round->deadline_us - at_us) / 1000 * 1000;
}

static int64_t release(struct world *world, const struct round *round, int64_t at_us, const char *result) {
    int64_t completed_us = at_us + between(world, 500, 4000);
    if (chance(world, 3)) {
        /* The client is paused here, sometimes beyond the deadline. */
        int64_t resumed_us = at_us + between(world, 50000, 3000000);
        kit_band(world->kit, CHAOS_FAULT_CLIENT_PAUSE, 0, UINT64_C(1) << round->client, at_us + 100, resumed_us);
        completed_us = resumed_us + between(world, 0, 90000);
    }
    kit_operation(world->kit, round->client, round->resource, CHAOS_RELEASE, at_us, completed_us, result);
    return completed_us;
}

static void die(struct world *world, const struct round *round, int64_t at_us) {
    int64_t told_us = at_us + between(world, 0, 20000);
    int64_t back_us = told_us + between(world, 50000, 300000);
    kit_kill(world->kit, round->client, told_us);
    kit_spawn(world->kit, round->client, back_us);
    kit_band(world->kit, CHAOS_FAULT_CLIENT_KILL, 0, UINT64_C(1) << round->client, at_us - 50, back_us);
    world->free_us[round->client] = back_us + 1000;
    world->next_us[round->resource] = at_us;
}

/* The resource numbers every access that it grants, whether a line reports it or not. */
static void increment(struct world *world, const struct round *round, size_t lease, int64_t intent_us, int64_t done_us,
                      bool writes) {
    int64_t *counter = &world->counters[round->resource], *accesses = &world->accesses[round->resource];
    if (round->shared) {
        kit_read(world->kit, lease, *counter, intent_us, round->fence, ++*accesses);
        if (done_us != CHAOS_NEVER_US) {
            kit_read(world->kit, lease, *counter, done_us, round->fence, ++*accesses);
        }
        return;
    }
    size_t index = kit_increment(world->kit, lease, *counter, intent_us, done_us);
    int64_t read_number = ++*accesses;
    *counter += writes;
    *accesses += writes;
    kit_receipts(world->kit, index, round->fence, read_number, done_us == CHAOS_NEVER_US ? 0 : *accesses);
}

/* The client is killed at some moment around its increment. */
static void hold_until_death(struct world *world, const struct round *round, size_t lease, int64_t claimed_us,
                             int64_t until_us) {
    int64_t intent_us = between(world, claimed_us, claimed_us + (until_us - claimed_us) / 3);
    int64_t died_us = between(world, intent_us + 100, until_us + 100000);
    switch (between(world, 0, 3)) {
    case 0: /* before the increment */
        break;
    case 1: /* before the write */
        increment(world, round, lease, intent_us, CHAOS_NEVER_US, false);
        break;
    case 2: /* after the write, before the line */
        increment(world, round, lease, intent_us, CHAOS_NEVER_US, true);
        break;
    default:
        increment(world, round, lease, intent_us, intent_us + 50, true);
        break;
    }
    die(world, round, died_us);
}

/* The client is paused or too slow, so its lease ends first. */
static void hold_too_long(struct world *world, const struct round *round, size_t lease, int64_t claimed_us) {
    int64_t ended_us = round->deadline_us + between(world, -900, 40000);
    if (chance(world, 40)) {
        int64_t stopped_us = between(world, claimed_us, round->deadline_us - 1000);
        ended_us = round->deadline_us + between(world, 0, 800000);
        kit_band(world->kit, CHAOS_FAULT_CLIENT_PAUSE, 0, UINT64_C(1) << round->client, stopped_us - 20, ended_us + 20);
        if (chance(world, 50)) {
            increment(world, round, lease, stopped_us, CHAOS_NEVER_US, false);
        }
    }
    kit_end(world->kit, lease, ended_us, false);
    delete_keys(world, round, ended_us);
    world->free_us[round->client] = release(world, round, ended_us, "LOST");
    world->next_us[round->resource] = ended_us;
}

static void hold(struct world *world, struct round *round, size_t lease, int64_t claimed_us, int64_t until_us) {
    int64_t last_us = claimed_us, tried_us = claimed_us;
    for (int64_t renewals = chance(world, 25) ? between(world, 1, 4) : 0; renewals > 0; renewals--) {
        int64_t start_us = tried_us + TTL_US / 3 + between(world, 0, 20000);
        tried_us = start_us;
        if (start_us + 5000 < round->deadline_us && extend(world, round, start_us)) {
            last_us = round->decided_us + between(world, 0, 5000);
            until_us = promise(round, last_us);
            kit_claim(world->kit, lease, last_us, until_us);
        }
    }
    int64_t ended_us = between(world, last_us + 1000, last_us + (until_us - last_us) / 2);
    increment(world, round, lease, ended_us - 500, ended_us - 100, true);
    kit_end(world->kit, lease, ended_us, true);
    delete_keys(world, round, ended_us);
    world->free_us[round->client] = release(world, round, ended_us, "OK");
    world->next_us[round->resource] = ended_us;
}

/* The client wins, but is paused until nothing of the lease is left. */
static void wake_too_late(struct world *world, const struct round *round) {
    int64_t resumed_us = round->deadline_us + between(world, 0, 300000);
    kit_band(world->kit, CHAOS_FAULT_CLIENT_PAUSE, 0, UINT64_C(1) << round->client, round->decided_us + 5, resumed_us);
    delete_keys(world, round, resumed_us);
    world->free_us[round->client] = release(world, round, resumed_us, "LOST");
    world->next_us[round->resource] = round->deadline_us;
}

static void acquire(struct world *world, int client, int resource, bool shared) {
    struct round round = {.client = client, .resource = resource, .shared = shared};
    int64_t free_us = world->free_us[round.client], next_us = world->next_us[resource];
    int64_t invoked_us = (free_us > next_us ? free_us : next_us) + between(world, 1, 20000);
    snprintf(round.token, sizeof round.token, "%016" PRIx64, (uint64_t)++world->tokens * UINT64_C(0x9e3779b97f4a7c15));
    round.start_us = invoked_us + between(world, 10, 2000);
    if (!run_round(world, &round)) {
        delete_keys(world, &round, round.decided_us);
        kit_operation(world->kit, round.client, resource, CHAOS_ACQUIRE, invoked_us, round.decided_us,
                      chance(world, 50) ? "CONTENDED" : "NO_QUORUM");
        world->free_us[round.client] = round.decided_us;
        world->next_us[resource] = round.decided_us;
        return;
    }
    size_t operation =
        kit_operation(world->kit, round.client, resource, CHAOS_ACQUIRE, invoked_us, round.decided_us, "OK");
    round.fence = world->fences[resource] + between(world, 1, 3);
    world->fences[resource] = shared ? world->fences[resource] : round.fence;
    kit_fence(world->kit, round.token, round.fence);
    world->kit->history.operations[operation].shared = shared;
    if (chance(world, 2)) {
        wake_too_late(world, &round);
        return;
    }
    int64_t claimed_us = round.decided_us + between(world, 0, 300), until_us = promise(&round, claimed_us);
    size_t lease = kit_lease(world->kit, round.client, resource, round.token, claimed_us, until_us);
    world->kit->history.leases[lease].shared = shared;
    if (chance(world, 10)) {
        hold_until_death(world, &round, lease, claimed_us, until_us);
    } else if (chance(world, 12)) {
        hold_too_long(world, &round, lease, claimed_us);
    } else {
        hold(world, &round, lease, claimed_us, until_us);
    }
}

static void turn(struct world *world, int resource) {
    int client = (int)between(world, 0, WORLD_CLIENTS - 1);
    for (int c = 0; c < WORLD_CLIENTS; c++) {
        client = world->free_us[c] < world->free_us[client] && chance(world, 60) ? c : client;
    }
    acquire(world, client, resource, false);
}

/* Some clients begin at about the same time, and each has it for as long as it likes. */
static void read_together(struct world *world, int resource) {
    int64_t *next_us = &world->next_us[resource], from_us = *next_us, last_us = from_us;
    int first = (int)between(world, 0, WORLD_CLIENTS - 1);
    for (int64_t i = between(world, 2, 5); i > 0; i--) {
        *next_us = from_us + between(world, 0, 100000);
        acquire(world, (int)(first + i) % WORLD_CLIENTS, resource, true);
        last_us = *next_us > last_us ? *next_us : last_us;
    }
    *next_us = last_us;
    world->fences[resource] += 3; /* the highest that one of them can have */
}

/* Asks each node at some moment of the sweep. Its answer is rounded up or down. */
static void look(struct world *world, int resource, int64_t from_us) {
    int64_t to_us = from_us + (chance(world, 50) ? between(world, 200, 2000) : between(world, 2000, 40000));
    size_t sweep = kit_sweep(world->kit, resource, from_us, to_us);
    for (size_t n = 0; n < world->nodes; n++) {
        int64_t at_us = between(world, from_us, to_us);
        if (chance(world, 4)) {
            kit_silent(world->kit, sweep, UINT32_C(1) << n);
            continue;
        }
        for (size_t i = world->key_count; i-- > 0;) {
            const struct key *key = &world->keys[i];
            int64_t expires_us = 0;
            if (!is_at(key, resource, n, at_us)) {
                continue;
            }
            for (size_t s = 0; s < key->step_count && key->steps[s].at_us <= at_us; s++) {
                expires_us = key->steps[s].expires_us;
            }
            (key->shared ? kit_see_reader : kit_see)(world->kit, sweep, UINT32_C(1) << n, key->token,
                                                     (expires_us - at_us) / 1000 + between(world, 0, 1));
            if (!key->shared) {
                break;
            }
        }
    }
}

static void make(struct kit *kit, uint64_t seed, size_t nodes, int64_t length_us, bool shared) {
    struct world world = {.kit = kit, .random = seed, .nodes = nodes, .quorum = nodes / 2 + 1};
    kit_begin(kit, nodes, WORLD_CLIENTS, WORLD_RESOURCES);
    kit->history.ttl_ms = TTL_MS;
    kit->history.protection.fencing = true;
    for (int c = 0; c < WORLD_CLIENTS; c++) {
        world.free_us[c] = 1000;
    }
    for (bool more = true; more;) {
        more = false;
        for (int r = 0; r < WORLD_RESOURCES; r++) {
            if (world.next_us[r] < length_us) {
                (shared && chance(&world, 50) ? read_together : turn)(&world, r);
                more = true;
            }
        }
    }
    for (int r = 0; r < WORLD_RESOURCES; r++) {
        for (int64_t at_us = between(&world, 0, 50000); at_us < length_us; at_us += between(&world, 40000, 60000)) {
            look(&world, r, at_us);
        }
    }
    kit_finish(kit, length_us + 30000000);
    memcpy(kit->history.counters, world.counters, sizeof world.counters);
    free(world.keys);
}

void world_make(struct kit *kit, uint64_t seed, size_t nodes, int64_t length_us) {
    make(kit, seed, nodes, length_us, false);
}

void world_make_shared(struct kit *kit, uint64_t seed, size_t nodes, int64_t length_us) {
    make(kit, seed, nodes, length_us, true);
}
