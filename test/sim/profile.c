/* What a schedule may do: sizes, speeds and faults, drawn from its seed. */
#include "faults.h"
#include "world.h"

static unsigned draw_nodes(struct sim_random *random) {
    static const unsigned char sizes[] = {1, 2, 3, 3, 3, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5, 5, 6, 7, 7, 3};
    return sizes[sim_random_below(random, sizeof sizes)];
}

/* Short ttls end while things happen; long ones show whether keys are released rather than expired. */
static void draw_ttl(struct sim_profile *profile, struct sim_random *random) {
    static const int64_t ranges[][2] = {{1, 40}, {20, 150}, {100, 600}, {300, 3000}, {20000, 60000}, {50, 30000}};
    unsigned range = sim_random_below(random, sizeof ranges / sizeof *ranges);
    profile->ttl_min_ms = ranges[range][0];
    profile->ttl_max_ms = ranges[range][1];
}

static void draw_speed(struct sim_profile *profile, struct sim_random *random) {
    static const int64_t delay_us[] = {100, 300, 1000, 4000};
    profile->delay_max_ns = delay_us[sim_random_below(random, 4)] * 1000;
    profile->delay_min_ns = profile->delay_max_ns / (1 + sim_random_below(random, 20));
    /* Two ways, and something to spare. */
    int64_t least_ms = profile->delay_max_ns * 3 / SIM_MS + 2;
    profile->node_timeout_ms = sim_random_between(random, least_ms, sim_random_percent(random, 80) ? 50 : 400);
}

void sim_profile_draw(struct sim_world *world) {
    struct sim_profile *profile = &world->profile;
    struct sim_random *random = &world->random;
    *profile = (struct sim_profile){.nodes = draw_nodes(random),
                                    .clients = 2 + sim_random_below(random, 3),
                                    .resources = 1 + sim_random_percent(random, 30),
                                    .slots = 1 + sim_random_below(random, SIM_SLOTS_MAX),
                                    .calm = sim_random_percent(random, 15),
                                    .may_kill = sim_random_percent(random, 80),
                                    .auto_extend = sim_random_percent(random, 50)};
    draw_ttl(profile, random);
    draw_speed(profile, random);
    /* Things happen on the scale of the ttl or of the node timeout. */
    int64_t scale_ms =
        sim_random_percent(random, 50) ? (profile->ttl_min_ms + profile->ttl_max_ms) / 2 : profile->node_timeout_ms * 2;
    if (scale_ms < 2) {
        scale_ms = 2;
    }
    unsigned users = profile->clients * profile->slots;
    profile->active_ns = scale_ms * SIM_MS * sim_random_between(random, 2, 6);
    profile->user_gap_ns = profile->active_ns * (int64_t)users / sim_random_between(random, 10, 30);
    profile->fault_gap_ns = profile->active_ns / sim_random_between(random, 1, 12);
    if (world->control == SIM_CONTROL_MEMORYLESS) {
        profile->calm = false;
    }
    profile->one_hung = profile->calm && profile->nodes >= 3 && sim_random_percent(random, 40);
    if (profile->calm) {
        return;
    }
    profile->leaps = sim_random_percent(random, 50);
    profile->leap_permille = profile->leaps ? 2 + sim_random_below(random, 15) : 0;
    profile->no_random_permille = sim_random_percent(random, 5) ? 100 : 0;
    profile->spike_permille = sim_random_percent(random, 40) ? sim_random_below(random, 120) : 0;
    profile->faults = (unsigned)sim_random_next(random) & ((1u << SIM_FAULTS) - 1);
    if (world->control == SIM_CONTROL_MEMORYLESS) {
        profile->faults |= 1u << SIM_FAULT_FORGET;
    }
}
