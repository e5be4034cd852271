/* What a user does next, by chance. */
#include "parts.h"

static unsigned pick_resource(struct sim_world *world) {
    return sim_random_below(&world->random, world->profile.resources);
}

/* A lease of any client, to adopt. */
static struct sim_lease *pick_lease(struct sim_world *world) {
    struct sim_client *client = &world->clients[sim_random_below(&world->random, world->profile.clients)];
    struct sim_lease *lease = client->slots[sim_random_below(&world->random, world->profile.slots)].lease;
    return lease != NULL && !client->closing && client->ahead_until_ns <= world->now_ns ? lease : NULL;
}

static void act_idle(struct sim_client *client, unsigned slot) {
    struct sim_world *world = client->world;
    unsigned dice = sim_random_below(&world->random, 100);
    if (dice < 85) {
        sim_user_acquire(client, slot, pick_resource(world), false);
    } else if (dice < 90) {
        sim_user_inspect(client, pick_resource(world));
    } else if (dice < 92) {
        sim_user_connect(client);
    } else if (dice < 97 && world->control != SIM_CONTROL_SPEC) {
        struct sim_lease *lease = pick_lease(world);
        if (lease != NULL) {
            sim_user_adopt(lease, client, slot);
        }
    }
}

static bool releases_soon(const struct sim_profile *profile) {
    return profile->crowd && !profile->overtakes && !profile->replaced && !profile->holds_long;
}

static void act_held(struct sim_client *client, struct sim_lease *lease) {
    struct sim_world *world = client->world;
    unsigned dice = sim_random_below(&world->random, 100);
    if (lease->lost) {
        if (dice < 70) {
            sim_user_release(lease);
        } else if (dice < 80) {
            sim_user_forget(lease);
        } else if (dice < 90) {
            sim_user_extend(lease);
        }
        return;
    }
    if (dice < (releases_soon(&world->profile) ? 75u : 35u)) {
        sim_user_release(lease);
    } else if (dice < 70) {
        sim_user_extend(lease);
    } else if (dice < 73) {
        sim_user_forget(lease);
    } else if (dice < 78 && !world->profile.calm && !world->profile.prompt) {
        sim_client_pause(client,
                         sim_random_between(&world->random, 0, (sim_lease_validity_ms(world, lease) + 5) * SIM_MS));
    }
}

/* All begin to wait at about the same time, once in a second, and nobody comes meanwhile. */
static void act_in_line(struct sim_client *client, unsigned slot) {
    struct sim_world *world = client->world;
    const struct sim_slot *at = &client->slots[slot];
    const bool begins = world->now_ns % (1000 * SIM_MS) < 20 * SIM_MS;
    if (at->acquiring != NULL) {
        if (sim_random_permille(&world->random, 2)) {
            sim_user_cancel(at->acquiring);
        }
    } else if (at->lease == NULL && begins && world->lease_count < SIM_LEASES_MAX / 2) {
        sim_user_acquire(client, slot, world->profile.bundles > 0 ? pick_resource(world) : 0, false);
    }
}

void sim_user_act(struct sim_client *client, unsigned slot) {
    struct sim_world *world = client->world;
    struct sim_slot *at = &client->slots[slot];
    world->users++;
    if (world->profile.late_max_ms > 0) {
        act_in_line(client, slot);
        return;
    }
    if (world->has_elections) {
        sim_candidate_act(client, slot);
        return;
    }
    if (at->lease != NULL) {
        act_held(client, at->lease);
    } else if (at->acquiring == NULL) {
        act_idle(client, slot);
    } else if (sim_random_percent(&world->random, world->profile.crowd ? 8 : 30)) {
        sim_user_cancel(at->acquiring);
    }
}

/* The process ends without any release; its keys stay until their ttl. */
static void crash(struct sim_client *client) {
    struct sim_world *world = client->world;
    SIM_TRACE(world, "client %u crashes", client->index);
    client->crashed = client->closing = true;
    sim_spec_gave_up(client);
    world->crashed_ns = world->now_ns;
    for (unsigned i = 0; i < SIM_SLOTS_MAX; i++) {
        if (client->slots[i].lease != NULL) {
            sim_lease_end(client->slots[i].lease);
        }
        client->slots[i] = (struct sim_slot){0};
    }
    for (unsigned i = 0; i < world->call_count; i++) {
        if (world->calls[i].client == client) {
            world->calls[i].done = true;
        }
    }
    sim_candidates_gone(client);
    sim_client_count(client);
    redlock_elections_free(&client->elections);
    redlock_group_delete(client->group);
    client->group = NULL;
    sim_subscriptions_leave(client);
}

/* Just after having begun something, and perhaps just before a pause. */
static void leave(struct sim_client *client) {
    struct sim_world *world = client->world;
    for (unsigned i = sim_random_below(&world->random, 4); i > 0; i--) {
        sim_user_act(client, sim_random_below(&world->random, world->profile.slots));
    }
    sim_user_close(client);
    redlock_callback never = sim_on_inspected; /* its call would be NULL */
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.ttl_ms = world->profile.ttl_max_ms;
    if (redlock_group_acquire(client->group, "r1", &options, NULL, never, NULL) != REDLOCK_ERR_CLOSED ||
        redlock_group_inspect(client->group, "r1", never, NULL) != REDLOCK_ERR_CLOSED) {
        sim_violation(world, "refused", "a closing group took a request");
    }
    if (!world->profile.calm && !world->profile.prompt && sim_random_percent(&world->random, 30)) {
        sim_client_pause(client, sim_random_between(&world->random, 0, 4 * world->profile.node_timeout_ms) * SIM_MS);
    }
}

static bool others_stay(const struct sim_client *client) {
    const struct sim_world *world = client->world;
    for (unsigned i = 0; i < world->profile.clients; i++) {
        if (i != client->index && world->clients[i].group != NULL && !world->clients[i].closing) {
            return true;
        }
    }
    return false;
}

/* entry: the slot; gen 1: out of turn */
void sim_user_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    if (client->group == NULL || client->closing || world->phase != SIM_ACTIVE) {
        return;
    }
    sim_client_enter(client);
    if (event->gen == 1 && world->profile.late_max_ms > 0) { /* it has held the lock for its time */
        sim_user_release(client->slots[event->entry].lease);
    } else if (!sim_random_permille(&world->random, 12) || world->profile.late_max_ms > 0 || !others_stay(client)) {
        sim_user_act(client, event->entry);
    } else if (sim_random_percent(&world->random, 75)) {
        leave(client);
    } else {
        crash(client);
    }
    sim_client_leave(client);
    if (event->gen == 0) {
        sim_push(world, world->now_ns + sim_random_between(&world->random, 1, 2 * world->profile.user_gap_ns), *event);
    }
}

void sim_user_finish(struct sim_client *client) {
    for (unsigned i = 0; i < SIM_SLOTS_MAX && client->group != NULL; i++) {
        if (client->slots[i].acquiring != NULL) {
            sim_user_cancel(client->slots[i].acquiring);
        }
        if (client->slots[i].candidate != NULL) {
            sim_candidate_end(client->slots[i].candidate);
        } else if (client->slots[i].lease != NULL) {
            sim_user_release(client->slots[i].lease);
        }
    }
}
