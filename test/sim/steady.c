/* The quiet end of a schedule with elections: somebody leads, all know it, and the next one leads
 * after each who resigns. Then all end. */
#include "parts.h"

#define ROUNDS 3

/* What is left of the faults, keys of the dead, quarantines, a place that is asked for again, and
 * the news. */
static int64_t patience_ns(const struct sim_world *world) {
    const struct sim_profile *profile = &world->profile;
    const int64_t term_ms = profile->ttl_max_ms * 102 / 100 + profile->lock_delay_max_ms;
    const int64_t quarantine_ms = sim_is_guarded(world) ? 2 * profile->guarded_ttl_max_ms * 102 / 100 : 0;
    return sim_settle_ns(world) + (2 * term_ms + quarantine_ms + 22500) * SIM_MS;
}

static struct sim_candidate *leader_of(struct sim_world *world, unsigned resource) {
    for (unsigned i = 0; i < world->elections.count; i++) {
        struct sim_candidate *candidate = &world->elections.candidates[i];
        if (candidate->resource == resource && sim_is_leading(candidate)) {
            return candidate;
        }
    }
    return NULL;
}

static bool is_wanted(const struct sim_world *world, unsigned resource) {
    for (unsigned i = 0; i < world->elections.count; i++) {
        const struct sim_candidate *candidate = &world->elections.candidates[i];
        if (candidate->resource == resource && sim_is_told(candidate) && candidate->wants) {
            return true;
        }
    }
    return false;
}

/* Somebody who should know of the leader, and does not; NULL for none. */
static const struct sim_candidate *ignorant(const struct sim_world *world, unsigned resource,
                                            const struct sim_candidate *leader) {
    const char *token = leader != NULL ? leader->client->slots[leader->slot].lease->token : "";
    for (unsigned i = 0; i < world->elections.count; i++) {
        const struct sim_candidate *candidate = &world->elections.candidates[i];
        if (candidate->resource == resource && sim_is_told(candidate) &&
            (!candidate->knows || strcmp(candidate->known, token) != 0)) {
            return candidate;
        }
    }
    return NULL;
}

static bool is_steady(struct sim_world *world, unsigned resource) {
    const struct sim_candidate *leader = leader_of(world, resource);
    const struct sim_candidate *last = ignorant(world, resource, leader);
    const bool is_vacant = leader == NULL && is_wanted(world, resource);
    if (!is_vacant && last == NULL) {
        return true;
    }
    if (world->now_ns > world->elections.steady_by_ns && is_vacant) {
        sim_violation(world, "elected", "after all faults healed, nobody leads '%s'", sim_resource_name(resource));
    } else if (world->now_ns > world->elections.steady_by_ns) {
        sim_violation(world, "observed", "after all faults healed, client %u/%u does not know who leads '%s'",
                      last->client->index, last->slot, sim_resource_name(resource));
    }
    return false;
}

static void resign(struct sim_world *world) {
    for (unsigned r = 0; r < world->profile.resources; r++) {
        struct sim_candidate *leader = leader_of(world, r);
        if (leader != NULL) {
            sim_client_enter(leader->client);
            sim_candidate_resign(leader);
            sim_client_leave(leader->client);
        }
    }
}

/* When the keys that nodes have now will be gone: where a clock went back, they live for long. */
static int64_t free_ns(const struct sim_world *world) {
    int64_t free_ns = world->now_ns;
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        const struct fake_node *node = &world->nodes[i].fake;
        for (unsigned k = 0; k < node->key_count; k++) {
            const struct fake_key *key = &node->keys[k];
            free_ns = key->used && key->expires_ms != FAKE_NO_TTL && !sim_key_is_counter(key) && key->gone_ns > free_ns
                          ? key->gone_ns
                          : free_ns;
        }
    }
    return free_ns;
}

void sim_steady_begin(struct sim_world *world) {
    const int64_t settled_ns = sim_places_ns(world);
    world->elections.steady_by_ns = free_ns(world) + patience_ns(world) + settled_ns;
    sim_push(world, world->now_ns + settled_ns, (struct sim_event){.kind = SIM_STEADY});
}

void sim_steady_event(struct sim_world *world) {
    bool all = true;
    if (!world->elections.settled) {
        world->elections.settled = true;
        sim_places_check(world);
    }
    for (unsigned r = 0; r < world->profile.resources; r++) {
        all = is_steady(world, r) && all;
    }
    if (!all && world->now_ns <= world->elections.steady_by_ns) {
        const int64_t step_ns = sim_random_between(&world->random, 1, 20) * SIM_MS;
        sim_push(world, world->now_ns + step_ns, (struct sim_event){.kind = SIM_STEADY});
    } else if (all && world->elections.round++ < ROUNDS) {
        SIM_TRACE(world, "round %u: who leads resigns", world->elections.round);
        resign(world);
        sim_steady_begin(world);
    } else {
        SIM_TRACE(world, "all elections end");
        sim_finish(world);
    }
}
