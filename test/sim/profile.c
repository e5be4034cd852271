/* What a schedule may do: sizes, speeds and faults, drawn from its seed. */
#include "faults.h"
#include "parts.h"

static unsigned draw_nodes(struct sim_random *random) {
    static const unsigned char sizes[] = {1, 2, 3, 3, 3, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5, 5, 6, 7, 7, 3};
    return sizes[sim_random_below(random, sizeof sizes)];
}

/* Short ttls end during the schedule; long ones show whether keys are released rather than
 * expired. */
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
    /* Two directions, and some reserve. */
    int64_t least_ms = profile->delay_max_ns * 3 / SIM_MS + 2;
    profile->node_timeout_ms = sim_random_between(random, least_ms, sim_random_percent(random, 80) ? 50 : 400);
}

/* Who waits, and what their queues must stand. */
static void draw_queue(struct sim_profile *profile, struct sim_random *random) {
    if (sim_random_percent(random, 20)) {
        sim_shape_crowd(profile, random);
    }
    for (unsigned i = 0; i < profile->clients && sim_random_percent(random, 30); i++) {
        profile->old_clients |= sim_random_percent(random, 40) ? 1u << i : 0;
    }
    profile->all_probe = sim_random_percent(random, 25);
}

/* What may go wrong with a queue. */
static void draw_queue_faults(struct sim_profile *profile, struct sim_random *random) {
    if (sim_random_percent(random, 60)) {
        profile->stall_permille = 20 + sim_random_below(random, 400);
    }
    if (profile->stalls) {
        profile->overtakes = profile->clock_guard && sim_random_percent(random, 70);
        profile->stall_permille = 100 + sim_random_below(random, 400);
        profile->faults &= 1U << SIM_FAULT_DEAFEN | 1U << SIM_FAULT_STALL | 1U << SIM_FAULT_BREAK |
                           1U << SIM_FAULT_PAUSE | 1U << SIM_FAULT_STEP;
        profile->faults |= 1U << SIM_FAULT_STALL;
        profile->faults &= profile->overtakes ? ~(1U << SIM_FAULT_STEP) : ~0U;
        profile->auto_extend |= profile->overtakes;
    } else if (profile->replaced) {
        profile->faults &= 1U << SIM_FAULT_REPLACE | 1U << SIM_FAULT_BREAK | 1U << SIM_FAULT_STALL;
    } else if (sim_random_percent(random, 6)) {
        profile->refusing = sim_random_below(random, 1U << profile->nodes);
    } else if (sim_random_percent(random, 6)) {
        profile->unopened = sim_random_below(random, 1U << profile->clients);
    }
}

static void draw_election_faults(struct sim_profile *profile, struct sim_random *random) {
    if (sim_random_percent(random, 8)) {
        profile->silent = sim_random_below(random, 1U << profile->nodes);
    }
    if (profile->refusing != 0) {
        /* A candidate wins where it can queue, and needs a quorum of counters there. */
        profile->faults &= ~(1U << SIM_FAULT_LIE);
    }
}

/* 3/2 beside 5/4, or 5/4 beside 5/3; or, what is forbidden, 3/2 beside 5/3. */
static void mix(struct sim_world *world) {
    const bool parted = world->control == SIM_CONTROL_PARTED, grows = parted || world->seed % 2 == 0;
    struct sim_profile *profile = &world->profile;
    profile->nodes = 5;
    for (unsigned i = 0; i < profile->clients; i++) {
        const bool next = i % 2 == 1;
        profile->own_nodes[i] = grows && !next ? 3 : 5;
        profile->own_quorum[i] = grows ? (next ? (parted ? 3 : 4) : 2) : (next ? 3 : 4);
    }
}

static void draw_trust(struct sim_world *world) {
    struct sim_profile *profile = &world->profile;
    unsigned dice = sim_random_below(&world->random, 100);
    /* Beside guards, a push does most harm. */
    const unsigned trusted = profile->stalls || profile->replaced ? 30 : 60;
    profile->trust = dice < trusted ? SIM_TRUSTED : dice < 88 ? SIM_GUARDED : SIM_RECKLESS;
    if (world->has_elections && profile->trust == SIM_RECKLESS) {
        profile->trust = SIM_GUARDED;
    }
    switch (world->control) {
    case SIM_CONTROL_NONE:
    case SIM_CONTROL_STARVED:
    case SIM_CONTROL_MISQUOTED:
        break;
    case SIM_CONTROL_SPEC: /* with and without restarts without memory */
        profile->trust = world->seed % 2 == 0 ? SIM_TRUSTED : SIM_GUARDED;
        break;
    case SIM_CONTROL_SKEW:
    case SIM_CONTROL_MEMORYLESS:
    case SIM_CONTROL_PARTED:
    case SIM_CONTROL_DEAD:
    case SIM_CONTROL_SILENT:
    case SIM_CONTROL_LOADED:
    case SIM_CONTROL_SHARED_LOADED:
    case SIM_CONTROL_BUNDLES_LOADED:
        profile->trust = SIM_TRUSTED;
        break;
    case SIM_CONTROL_SHARED:
    case SIM_CONTROL_BUNDLES:
    case SIM_CONTROL_PERMITS:
        profile->trust = world->seed % 2 == 0 ? SIM_TRUSTED : SIM_GUARDED;
        break;
    case SIM_CONTROL_MIXED: /* both ways of mixing */
        profile->trust = world->seed / 2 % 2 == 0 ? SIM_TRUSTED : SIM_GUARDED;
        break;
    case SIM_CONTROL_GUARDED:
    case SIM_CONTROL_NO_RESTART_GUARD:
    case SIM_CONTROL_NO_CLOCK_GUARD:
    case SIM_CONTROL_RIGHTED:
    case SIM_CONTROL_STEPPING:
    case SIM_CONTROL_RESTARTING:
    case SIM_CONTROL_REPLACING:
    case SIM_CONTROL_LATE:
        profile->trust = SIM_GUARDED;
        break;
    case SIM_CONTROL_WRONG_AND_LOST:
        profile->trust = SIM_RECKLESS;
        break;
    }
}

static void draw_fencing(struct sim_world *world) {
    struct sim_profile *profile = &world->profile;
    struct sim_random *random = &world->random;
    profile->fencing = sim_random_percent(random, 40) || profile->trust == SIM_RECKLESS;
    profile->counters_die = !profile->fencing || sim_random_percent(random, profile->trust == SIM_GUARDED ? 70 : 50) ||
                            world->control == SIM_CONTROL_WRONG_AND_LOST || world->control == SIM_CONTROL_REPLACING;
    profile->same_digits = !profile->counters_die && sim_random_percent(random, 50);
    profile->storm = profile->trust == SIM_RECKLESS && !profile->counters_die && sim_random_percent(random, 60);
    profile->fence_expiry_ms = sim_random_percent(random, 20) ? 10800000 : 0;
    profile->heal = sim_random_percent(random, 75);
    profile->lock_delay_max_ms =
        sim_random_percent(random, 20) ? sim_random_between(random, 1, 2 * profile->ttl_max_ms) : 0;
}

/* Which guards are on, and what a client may know of a node before it has seen a restart or a step
 * of the clock. */
static void draw_guards(struct sim_profile *profile, struct sim_random *random, enum sim_control control) {
    static const struct {
        redlock_restart_guard restart;
        bool clock, first_boot, early;
        int64_t uptime_s;
    } kinds[] = {
        {REDLOCK_RESTART_GUARD_OBSERVED, true, false, true, 86400},
        {REDLOCK_RESTART_GUARD_OBSERVED, false, false, true, 0},
        {REDLOCK_RESTART_GUARD_STRICT, true, true, true, 0},
        {REDLOCK_RESTART_GUARD_STRICT, true, false, false, 86400},
        {REDLOCK_RESTART_GUARD_STRICT, true, false, false, 0},
        {REDLOCK_RESTART_GUARD_STRICT, false, false, false, 86400},
        {REDLOCK_RESTART_GUARD_OFF, true, false, false, 86400},
        {REDLOCK_RESTART_GUARD_OFF, true, false, true, 86400},
    };
    const unsigned count = sizeof kinds / sizeof *kinds;
    /* The last two have no restart guard. */
    const bool restarts = control == SIM_CONTROL_RESTARTING || control == SIM_CONTROL_REPLACING;
    const unsigned drawn = restarts ? count - 2 : count;
    unsigned kind = control == SIM_CONTROL_STEPPING ? count - 1 : sim_random_below(random, drawn);
    if (control == SIM_CONTROL_LATE) {
        kind = kind % 2 == 0 ? 3 : 6; /* up for long: only their clocks are in doubt */
    } else if (control == SIM_CONTROL_MIXED || control == SIM_CONTROL_SPEC) {
        kind = kind % 2 == 0 ? 1 : 5; /* the restart guard alone: quorums confirm clocks */
    }
    profile->restart_guard = kinds[kind].restart;
    profile->clock_guard = kinds[kind].clock;
    profile->first_boot = kinds[kind].first_boot;
    profile->early = kinds[kind].early;
    profile->uptime_ns = kinds[kind].uptime_s * 1000 * SIM_MS;
    profile->forgets_at_once = profile->restart_guard != REDLOCK_RESTART_GUARD_OFF;
    profile->steps_at_boot = profile->forgets_at_once && (!profile->clock_guard || sim_random_percent(random, 40));
    profile->guarded_ttl_max_ms = profile->ttl_max_ms + profile->lock_delay_max_ms;
    if (profile->guarded_ttl_max_ms < 100) {
        profile->guarded_ttl_max_ms = 100; /* room for what comes after the faults */
    }
}

/* Above what two readings of a clock can differ by, with the slowest round trip and the longest
 * time between them (docs/safety.md). */
static void set_steps(struct sim_profile *profile) {
    /* The longest time that a client is paused or a node is down. Each clock is read once a second
     * while the node is up. */
    int64_t pause_ms = 30 * profile->node_timeout_ms;
    if (pause_ms < profile->ttl_max_ms * 11 / 10) {
        pause_ms = profile->ttl_max_ms * 11 / 10;
    }
    int64_t trip_ms = 2 * profile->node_timeout_ms + (profile->prompt ? 0 : 2 * pause_ms + 1100);
    int64_t between_ms = profile->prompt ? pause_ms + 4000 : profile->active_ns / SIM_MS + 30000;
    profile->step_min_ns = (trip_ms + between_ms / 50 + (profile->early ? 0 : 2000)) * SIM_MS;
    profile->step_max_ns = profile->step_min_ns + (profile->prompt ? profile->ttl_max_ms : 120000) * SIM_MS;
}

/* The faults that an assumption forbids. */
static void limit_faults(struct sim_profile *profile) {
    unsigned forbidden = 0;
    if (profile->trust == SIM_TRUSTED || (profile->trust == SIM_GUARDED && !profile->clock_guard)) {
        forbidden |= 1u << SIM_FAULT_STEP;
    }
    if (profile->counters_die) {
        forbidden |= 1u << SIM_FAULT_WALL;
    } else {
        forbidden |= 1u << SIM_FAULT_FORGET | 1u << SIM_FAULT_REPLACE;
    }
    if (profile->counters_die || profile->nodes < 3) {
        forbidden |= 1u << SIM_FAULT_LIE;
    }
    if (!profile->fencing) {
        forbidden |= 1u << SIM_FAULT_WALL | 1u << SIM_FAULT_LIE;
    }
    if (profile->prompt) {
        forbidden |= 1u << SIM_FAULT_HANG | 1u << SIM_FAULT_CUT | 1u << SIM_FAULT_ISOLATE | 1u << SIM_FAULT_PAUSE |
                     1u << SIM_FAULT_BLOCK | 1u << SIM_FAULT_SLOW | 1u << SIM_FAULT_SILENT;
        profile->faults |= 1u << SIM_FAULT_STEP;
    }
    profile->faults &= ~forbidden;
}

static void draw_faults(struct sim_world *world) {
    struct sim_profile *profile = &world->profile;
    profile->faults = (unsigned)sim_random_next(&world->random) & ((1u << SIM_FAULTS) - 1);
    if (profile->trust != SIM_TRUSTED) {
        bool forget = !profile->clock_guard || sim_random_percent(&world->random, profile->stalls     ? 20
                                                                                  : profile->replaced ? 90
                                                                                                      : 50);
        if (sim_random_percent(&world->random, 50)) {
            profile->faults &= (unsigned)sim_random_next(&world->random); /* little else */
        }
        profile->faults |= 1u << (!forget ? SIM_FAULT_STEP : profile->replaced ? SIM_FAULT_REPLACE : SIM_FAULT_FORGET);
    }
    if (profile->storm) {
        profile->faults &= (unsigned)sim_random_next(&world->random);
        profile->faults |= 1u << SIM_FAULT_EVICT;
    }
    limit_faults(profile);
    if (world->seed % 8 != 0) {
        profile->faults &= ~(1u << SIM_FAULT_DEAD); /* it costs time */
    }
    set_steps(profile);
    switch (world->control) {
    case SIM_CONTROL_MEMORYLESS:
        profile->faults |= 1u << SIM_FAULT_FORGET;
        profile->forgets_at_once = true;
        break;
    case SIM_CONTROL_NO_RESTART_GUARD:
        profile->restart_guard = REDLOCK_RESTART_GUARD_OFF;
        break;
    case SIM_CONTROL_NO_CLOCK_GUARD:
        profile->clock_guard = false;
        break;
    case SIM_CONTROL_WRONG_AND_LOST:
        profile->faults |= 1u << SIM_FAULT_WALL;
        break;
    case SIM_CONTROL_STEPPING:
        profile->faults &= 1U << SIM_FAULT_DEAFEN | 1U << SIM_FAULT_STALL | 1U << SIM_FAULT_BREAK;
        profile->faults |= 1U << SIM_FAULT_STEP;
        break;
    case SIM_CONTROL_RESTARTING:
        profile->faults &= 1U << SIM_FAULT_FORGET | 1U << SIM_FAULT_REPLACE | 1U << SIM_FAULT_BREAK;
        profile->faults |= 1U << SIM_FAULT_CRASH;
        break;
    case SIM_CONTROL_REPLACING:
        profile->faults |= 1U << SIM_FAULT_REPLACE;
        break;
    case SIM_CONTROL_LATE:
        profile->faults |= 1U << SIM_FAULT_STEP;
        break;
    case SIM_CONTROL_SILENT:
        profile->faults = 1U << SIM_FAULT_SILENT;
        break;
    case SIM_CONTROL_LOADED:
    case SIM_CONTROL_SHARED_LOADED:
    case SIM_CONTROL_BUNDLES_LOADED:
        profile->faults = 1U << SIM_FAULT_PAUSE;
        break;
    case SIM_CONTROL_NONE:
    case SIM_CONTROL_DEAD:
    case SIM_CONTROL_SKEW:
    case SIM_CONTROL_GUARDED:
    case SIM_CONTROL_RIGHTED:
    case SIM_CONTROL_STARVED:
    case SIM_CONTROL_MIXED:
    case SIM_CONTROL_PARTED:
    case SIM_CONTROL_MISQUOTED:
    case SIM_CONTROL_SHARED:
    case SIM_CONTROL_BUNDLES:
    case SIM_CONTROL_PERMITS:
    case SIM_CONTROL_SPEC:
        break;
    }
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
    draw_queue(profile, random);
    draw_ttl(profile, random);
    draw_speed(profile, random);
    sim_shape_draw(world);
    if (world->control == SIM_CONTROL_MIXED || world->control == SIM_CONTROL_PARTED) {
        mix(world);
    }
    draw_trust(world);
    draw_fencing(world);
    /* Events come on the scale of the ttl or of the node timeout. */
    int64_t scale_ms =
        sim_random_percent(random, 50) ? (profile->ttl_min_ms + profile->ttl_max_ms) / 2 : profile->node_timeout_ms * 2;
    if (scale_ms < 2) {
        scale_ms = 2;
    }
    unsigned users = profile->clients * profile->slots;
    profile->active_ns = scale_ms * SIM_MS * sim_random_between(random, 2, profile->stalls ? 20 : 6);
    profile->user_gap_ns = profile->active_ns * (int64_t)users / sim_random_between(random, 10, 30);
    profile->fault_gap_ns = profile->active_ns / sim_random_between(random, 1, 12);
    if (profile->trust == SIM_GUARDED) {
        draw_guards(profile, random, world->control);
        /* Quarantines end during the schedule. */
        profile->active_ns += sim_random_below(random, 5) * profile->guarded_ttl_max_ms * SIM_MS;
        profile->user_gap_ns = profile->active_ns * (int64_t)users / sim_random_between(random, 20, 60);
        profile->fault_gap_ns = profile->active_ns / sim_random_between(random, 2, 40);
    }
    if (profile->storm) {
        profile->fault_gap_ns = profile->active_ns / sim_random_between(random, 20, 100);
        profile->user_gap_ns = profile->active_ns * (int64_t)users / sim_random_between(random, 40, 100);
    }
    if (world->control == SIM_CONTROL_SILENT) {
        profile->active_ns = 6 * profile->ttl_max_ms * SIM_MS;
        profile->user_gap_ns = profile->active_ns * (int64_t)users / 12;
        profile->fault_gap_ns = profile->ttl_min_ms * SIM_MS;
    }
    if (sim_is_loaded(world->control)) {
        sim_load_pace(profile, random);
    }
    if (world->control == SIM_CONTROL_SPEC) {
        sim_spec_pace(world);
    }
    if (world->control == SIM_CONTROL_REPLACING) {
        /* Locks are taken again between two faults, when quarantines have ended. */
        profile->active_ns = 12 * profile->ttl_max_ms * SIM_MS;
        profile->user_gap_ns = profile->active_ns * (int64_t)users / 60;
        profile->fault_gap_ns = 2 * profile->ttl_max_ms * SIM_MS;
    }
    if (profile->trust == SIM_RECKLESS || world->control == SIM_CONTROL_MEMORYLESS) {
        profile->calm = false;
    }
    profile->one_hung = profile->calm && profile->nodes >= 3 && sim_random_percent(random, 40);
    profile->waking = profile->calm && !profile->one_hung && !profile->fencing && !world->has_elections &&
                      sim_random_percent(random, 40);
    if (world->control == SIM_CONTROL_DEAD) {
        profile->one_hung = false;
        profile->faults = 1u << SIM_FAULT_DEAD;
        profile->active_ns = sim_random_between(random, 1, 4) * profile->ttl_max_ms * SIM_MS;
        profile->user_gap_ns = profile->active_ns * (int64_t)users / sim_random_between(random, 10, 60);
        profile->fault_gap_ns = 5000 * SIM_MS;
    }
    if (profile->calm) {
        return;
    }
    profile->leaps = sim_random_percent(random, 50);
    profile->leap_permille = profile->leaps ? 2 + sim_random_below(random, 15) : 0;
    profile->no_random_permille = sim_random_percent(random, 5) ? 100 : 0;
    profile->spike_permille = sim_random_percent(random, 40) ? sim_random_below(random, 120) : 0;
    profile->forgets_at_once = profile->forgets_at_once || profile->trust == SIM_RECKLESS;
    profile->prompt = profile->trust == SIM_GUARDED && profile->clock_guard && profile->early && !profile->stalls &&
                      (sim_random_percent(random, 50) || world->control == SIM_CONTROL_STEPPING);
    profile->prompt |= world->control == SIM_CONTROL_SILENT;
    if (profile->prompt) {
        profile->leaps = false;
        profile->leap_permille = profile->spike_permille = 0;
    }
    draw_faults(world);
    if (profile->late_max_ms > 0) {
        profile->leaps = true;
        profile->leap_permille = sim_random_below(random, 5);
        profile->spike_permille = profile->no_random_permille = 0;
        return;
    }
    draw_queue_faults(profile, random);
    if (world->has_elections) {
        draw_election_faults(profile, random);
    }
}
