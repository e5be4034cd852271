/* What the schedules of one kind have in common: who comes, and how long they hold. */
#include "parts.h"

void sim_shape_crowd(struct sim_profile *profile, struct sim_random *random) {
    profile->crowd = true;
    profile->clients = 3 + sim_random_below(random, SIM_CLIENTS_MAX - 2);
    profile->resources = 1;
    profile->slots = 1 + sim_random_percent(random, 20);
}

/* Keys end while pushes are held up, and little else happens. */
static void draw_stalls(struct sim_profile *profile, struct sim_random *random) {
    profile->stalls = true;
    profile->calm = false;
    profile->nodes = 3;
    profile->ttl_min_ms = 40;
    profile->ttl_max_ms = 80;
    profile->delay_max_ns = 1000000;
    profile->delay_min_ns = 200000;
    profile->node_timeout_ms = sim_random_between(random, 5, 20);
}

/* Nodes are replaced while many wait, and little else happens. */
static void draw_replaced(struct sim_profile *profile, struct sim_random *random) {
    profile->replaced = true;
    profile->calm = false;
    profile->nodes = 1 + sim_random_below(random, 3);
    profile->ttl_min_ms = 300;
    profile->ttl_max_ms = 3000;
}

/* Those who wait are served while clocks end keys that their holders count on, or while nodes
 * forget them. */
static void draw_long_holds(struct sim_profile *profile, struct sim_random *random) {
    profile->calm = false;
    profile->crowd = profile->holds_long = true;
    profile->nodes = sim_random_percent(random, 50) ? 3 : 5;
    profile->clients = 4 + sim_random_below(random, SIM_CLIENTS_MAX - 3);
    profile->resources = profile->slots = 1;
    profile->old_clients = 0;
    profile->ttl_min_ms = 300;
    profile->ttl_max_ms = 2000;
}

/* Nothing fails but those who stand in line before the clients. Places are refreshed so rarely that
 * a refresh is no help. */
static void draw_dead(struct sim_profile *profile, struct sim_random *random) {
    profile->calm = profile->crowd = true;
    profile->clients = 2 + sim_random_below(random, SIM_CLIENTS_MAX - 1);
    profile->resources = 1;
    profile->old_clients = 0;
    profile->holds_long = sim_random_percent(random, 50);
    profile->ttl_min_ms = 4000;
    profile->ttl_max_ms = 20000;
}

/* Connections die without a sound, and all else is well: who renews keeps the lock. */
static void draw_silences(struct sim_profile *profile, struct sim_random *random) {
    profile->calm = profile->crowd = false;
    profile->auto_extend = true;
    profile->nodes = sim_random_percent(random, 50) ? 3 : 5;
    profile->clients = 2;
    profile->node_timeout_ms = 50;
    profile->ttl_min_ms = sim_random_between(random, 4, 100) * profile->node_timeout_ms;
    profile->ttl_max_ms = 5 * profile->ttl_min_ms / 2;
}

/* Leases live long enough for the quiet end, in which leaders renew them all the time. */
static void draw_elections(struct sim_profile *profile, struct sim_random *random) {
    static const int64_t ranges[][2] = {{150, 600}, {300, 3000}, {2000, 8000}, {5000, 30000}};
    const unsigned range = sim_random_below(random, sizeof ranges / sizeof *ranges);
    profile->calm = sim_random_percent(random, 25);
    profile->crowd = false;
    profile->clients = 2 + sim_random_below(random, SIM_CLIENTS_MAX - 2);
    profile->resources = 1 + sim_random_percent(random, 15);
    profile->slots = 1 + sim_random_percent(random, 40);
    profile->old_clients = 0;
    profile->ttl_min_ms = ranges[range][0];
    profile->ttl_max_ms = ranges[range][1];
}

static unsigned draw_readers(struct sim_random *random) {
    static const unsigned char percents[] = {20, 50, 80, 95};
    return percents[sim_random_below(random, sizeof percents)];
}

/* Many of them wait for one lock, or hold it together. */
static void draw_shared(struct sim_profile *profile, struct sim_random *random) {
    profile->readers = draw_readers(random);
    if (sim_random_percent(random, 60)) {
        sim_shape_crowd(profile, random);
    }
}

/* Many want both resources, in either order. Some read one of them, or both. */
static void draw_bundles(struct sim_profile *profile, struct sim_random *random) {
    if (sim_random_percent(random, 60)) {
        sim_shape_crowd(profile, random);
    }
    profile->bundles = 40 + sim_random_below(random, 61);
    profile->readers = sim_random_percent(random, 40) ? draw_readers(random) : 0;
    profile->resources = 2;
}

/* Limits are small, so many wait. */
static void draw_permits(struct sim_profile *profile, struct sim_random *random) {
    profile->limit = 1 + sim_random_below(random, SIM_LIMIT_MAX);
    if (sim_random_percent(random, 60)) {
        sim_shape_crowd(profile, random);
    }
}

void sim_shape_draw(struct sim_world *world) {
    struct sim_profile *profile = &world->profile;
    struct sim_random *random = &world->random;
    if (world->has_elections) {
        draw_elections(profile, random);
    } else if (world->control == SIM_CONTROL_STEPPING || world->control == SIM_CONTROL_RESTARTING) {
        draw_long_holds(profile, random);
    } else if (world->control == SIM_CONTROL_REPLACING) {
        sim_shape_crowd(profile, random);
        draw_replaced(profile, random);
        profile->holds_long = true;
    } else if (world->control == SIM_CONTROL_LATE) {
        profile->calm = false;
    } else if (world->control == SIM_CONTROL_DEAD) {
        draw_dead(profile, random);
    } else if (world->control == SIM_CONTROL_SILENT) {
        draw_silences(profile, random);
    } else if (sim_is_loaded(world->control)) {
        sim_load_draw(profile, random);
        if (world->control == SIM_CONTROL_SHARED_LOADED) {
            profile->readers = draw_readers(random);
            profile->nodes = 2 + sim_random_below(random, 4); /* an even number splits more often */
        }
        if (world->control == SIM_CONTROL_BUNDLES_LOADED) {
            profile->bundles = 50 + sim_random_below(random, 51);
            profile->resources = 2;
        }
    } else if (world->control == SIM_CONTROL_SHARED) {
        draw_shared(profile, random);
    } else if (world->control == SIM_CONTROL_BUNDLES) {
        draw_bundles(profile, random);
    } else if (world->control == SIM_CONTROL_PERMITS) {
        draw_permits(profile, random);
    } else if (world->control == SIM_CONTROL_SPEC) {
        sim_spec_draw(profile, random);
    } else if (profile->crowd && sim_random_percent(random, 30)) {
        draw_stalls(profile, random);
    } else if (profile->crowd && sim_random_percent(random, 30)) {
        draw_replaced(profile, random);
    }
}
