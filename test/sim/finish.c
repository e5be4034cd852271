/* The quiet end of each schedule: faults heal, users finish, no key may be left, each resource can
 * be taken again. */
#include <assert.h>

#include "parts.h"

/* The longest time that a healthy client needs for its owed releases: a stalled or lost connection,
 * its backoff of 2 s, and a release that was just delayed by 2 s. */
#define SETTLE_NS (8000 * SIM_MS)

/* Returns when the next client runs that does not run now. */
static int64_t finish_users(struct sim_world *world) {
    int64_t next_ns = SIM_NEVER;
    for (unsigned i = 0; i < world->profile.clients; i++) {
        struct sim_client *client = &world->clients[i];
        if (client->group == NULL || client->closing) {
            continue;
        }
        if (client->busy_until_ns > world->now_ns) {
            next_ns = client->busy_until_ns < next_ns ? client->busy_until_ns : next_ns;
            continue;
        }
        sim_client_enter(client);
        sim_user_finish(client);
        sim_client_leave(client);
    }
    return next_ns;
}

/* Users finish while much is still broken. What they could not finish must end by itself. */
void sim_heal_event(struct sim_world *world) {
    if (world->phase == SIM_ACTIVE) {
        world->phase = SIM_SETTLING;
        SIM_TRACE(world, "no more faults; users finish");
    }
    /* Elections go on: somebody must lead. */
    const int64_t next_ns = world->has_elections ? SIM_NEVER : finish_users(world), healed_ns = sim_faults_heal(world);
    if (next_ns != SIM_NEVER || healed_ns > world->now_ns) {
        sim_push(world, next_ns < healed_ns ? next_ns : healed_ns, (struct sim_event){.kind = SIM_HEAL});
        return;
    }
    SIM_TRACE(world, "all faults are healed");
    if (world->has_elections) {
        sim_steady_begin(world);
    } else {
        sim_push(world, world->now_ns + sim_settle_ns(world), (struct sim_event){.kind = SIM_LEFTOVER});
    }
}

int64_t sim_settle_ns(const struct sim_world *world) {
    /* If nothing has failed, nothing needs a second try. */
    return world->profile.calm && !world->profile.one_hung && !world->profile.waking
               ? 4 * world->profile.delay_max_ns + 2 * SIM_MS
               : SETTLE_NS + 25 * world->profile.node_timeout_ms * SIM_MS;
}

void sim_finish(struct sim_world *world) {
    const int64_t next_ns = finish_users(world);
    assert(next_ns == SIM_NEVER); /* faults have healed */
    (void)next_ns;
    sim_push(world, world->now_ns + sim_settle_ns(world), (struct sim_event){.kind = SIM_LEFTOVER});
}

void sim_forget_token(struct sim_world *world, const char *token) {
    if (world->forgotten_count < SIM_FORGOTTEN_MAX) {
        memcpy(world->forgotten[world->forgotten_count++], token, SIM_TOKEN_SIZE);
    }
}

bool sim_may_stay(const struct sim_world *world, const char *token) {
    const unsigned client = (unsigned)(sim_name(token)[1] - '0');
    if (token[0] == 'p' || sim_name(token)[0] == 'd') {
        return true; /* a peer's, or that of one who is dead */
    }
    if (world->clients[client].closing) {
        return true; /* close() gives releases one node timeout; a crash none */
    }
    for (unsigned i = 0; i < world->forgotten_count; i++) {
        if (sim_token_is(token, world->forgotten[i])) {
            return true;
        }
    }
    return false;
}

static bool may_stay(const struct sim_world *world, const struct fake_key *key) {
    char token[SIM_TOKEN_SIZE];
    sim_token_set(token, key->value, key->value_size);
    return sim_may_stay(world, token);
}

void sim_leftover_event(struct sim_world *world) {
    /* Without CLIENT KILL a SET may run after its release: docs/protocols.md, "Late SETs". */
    const bool checked = world->profile.may_kill || (world->profile.calm && !world->profile.one_hung);
    int64_t free_ns = world->now_ns;
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        const struct fake_node *node = &world->nodes[i].fake;
        sim_node_clock(world, &world->nodes[i]);
        if (checked && !world->nodes[i].stepped_back) {
            sim_lines_left(world, i);
        }
        for (unsigned k = 0; k < node->key_count; k++) {
            const struct fake_key *key = &node->keys[k];
            if (!key->used || key->gone_ns <= world->now_ns || sim_key_is_counter(key)) {
                continue;
            }
            if (key->gone_ns > free_ns) {
                free_ns = key->gone_ns;
            }
            if (checked && !world->nodes[i].stepped_back && !may_stay(world, key)) {
                sim_violation(world, "leftover", "node %u still has '%.*s' = %.8s, for %.3f ms more", i, key->name_size,
                              key->name, sim_key_name(key), (double)(key->gone_ns - world->now_ns) / 1e6);
            }
        }
    }
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        const int64_t gone_ns = sim_readers_left(world, i, checked && !world->nodes[i].stepped_back);
        free_ns = gone_ns > free_ns ? gone_ns : free_ns;
    }
    for (unsigned i = 0; i < world->profile.clients; i++) {
        if (world->clients[i].group != NULL && !world->clients[i].closing) {
            sim_check_idle(&world->clients[i]);
        }
    }
    world->phase = SIM_PROBING;
    if (sim_is_guarded(world)) {
        /* Quarantines end. */
        free_ns += (world->profile.guarded_ttl_max_ms * 102 / 100 + 10) * SIM_MS;
    }
    sim_push(world, free_ns + SIM_MS, (struct sim_event){.kind = SIM_PROBE});
}

static bool is_here(const struct sim_client *client) {
    return client->group != NULL && !client->closing;
}

/* Takes the next resource again: one client, or all at once. */
static void probe(struct sim_world *world) {
    const unsigned most = world->profile.all_probe ? world->profile.clients : 1;
    for (unsigned i = 0; i < world->profile.clients && world->probes < most; i++) {
        if (is_here(&world->clients[i])) {
            sim_client_enter(&world->clients[i]);
            world->probes += sim_user_acquire(&world->clients[i], 0, world->probed, true);
            sim_client_leave(&world->clients[i]);
        }
    }
}

void sim_probe_event(struct sim_world *world) {
    if (world->probed < world->profile.resources) {
        probe(world);
        return;
    }
    world->phase = SIM_CLOSING;
    for (unsigned i = 0; i < world->profile.clients; i++) {
        struct sim_client *client = &world->clients[i];
        if (!is_here(client)) {
            continue;
        }
        sim_client_enter(client);
        sim_user_close(client);
        sim_client_leave(client);
    }
}
