/* Quarantines against random events: nodes restart, forget or remember, and their clocks step,
 * while one client connects to them, loses them and reads their clocks. A node that may vote has
 * forgotten nothing within the last ttl_max, and no node is kept out for longer than the table of
 * core/guard.h says. */

#include "core/guard.h"
#include "core/time.h"
#include "test.h"

#define MS REDLOCK_NS_PER_MS
#define S  (1000 * MS)

#define TTL_MAX_MS 30000
#define TTL_MAX_NS (TTL_MAX_MS * MS)
#define LENGTH_NS  (30302 * MS) /* with its drift */
#define EPOCH_US   INT64_C(1795167037000000)
#define NODES      7
#define EVENTS     80
#define LONG_AGO   (-10000 * S)

struct server {
    unsigned run;
    int64_t offset_ns;     /* of its wall clock */
    int64_t wall_start_us; /* on its wall clock, when the run began */
    int64_t forgot_ns;     /* when it last forgot votes that matter to us */
    int64_t known_ns;      /* when we last could learn of it */
    bool met, connected, stepped;
};

struct world {
    uint32_t random;
    int64_t now_ns;
    unsigned nodes, wrong; /* the clocks of the first few step */
    struct server servers[NODES];
    struct redlock_guard guard;
};

static unsigned kept_out_checks, free_checks, lifted;

static int64_t draw(struct world *world, int64_t below) {
    const uint64_t high = redlock_jitter_next(&world->random);
    return (int64_t)((high << 31 ^ redlock_jitter_next(&world->random)) % (uint64_t)below);
}

static int64_t wall_us(const struct world *world, const struct server *server) {
    return EPOCH_US + (world->now_ns + server->offset_ns) / 1000;
}

static bool is_observed_only(const struct world *world) {
    return world->guard.plan.restart == REDLOCK_RESTART_GUARD_OBSERVED || world->guard.plan.first_boot;
}

/* Only the strict guard covers a restart before we met the node. */
static void restart(struct world *world, struct server *server) {
    server->run++;
    server->connected = false;
    server->wall_start_us = wall_us(world, server);
    if ((server->met || !is_observed_only(world)) && world->guard.plan.restart != REDLOCK_RESTART_GUARD_OFF) {
        server->forgot_ns = world->now_ns;
    }
}

/* A guard cannot see two steps that cancel out between two readings, or a start with a clock
 * behind. Neither happens here (core/guard.h lists them). */
static void step(struct world *world, struct server *server) {
    const bool clock = world->guard.plan.clock;
    if (server->stepped || (!server->met && (world->nodes == 1 || server->offset_ns != 0))) {
        return;
    }
    int64_t step_ns = 10 * S + draw(world, 200 * S);
    if (draw(world, 2) == 0) {
        step_ns = -step_ns;
    }
    if (server->offset_ns + step_ns < 0 && (!clock || !server->met)) {
        step_ns = -step_ns;
    }
    server->stepped = true;
    server->offset_ns += step_ns;
    if (step_ns > 0 && clock) {
        server->forgot_ns = world->now_ns;
    }
}

static struct redlock_clock_sample read_clock(struct world *world, struct server *server) {
    struct redlock_clock_sample sample = {.sent_ns = world->now_ns};
    world->now_ns += draw(world, 10 * MS);
    sample.server_us = wall_us(world, server);
    world->now_ns += draw(world, 10 * MS);
    sample.read_ns = world->now_ns;
    server->stepped = false;
    return sample;
}

/* Right after the guard was asked: the node may vote only if it forgot nothing that matters. */
static void check(struct world *world, unsigned node) {
    struct server *server = &world->servers[node];
    const int64_t until_ns = redlock_guard_until_ns(&world->guard, node, world->now_ns);
    const bool may_not_vote = (redlock_guard_may_not_vote(&world->guard, world->now_ns) & REDLOCK_NODE(node)) != 0;
    assert_int_equal(may_not_vote, until_ns != 0);
    assert_int_equal(may_not_vote, redlock_guard_why(&world->guard, node, world->now_ns) != REDLOCK_GUARD_NONE);
    assert_true(!may_not_vote || until_ns <= server->known_ns + LENGTH_NS);
    if (!may_not_vote) {
        assert_true(server->forgot_ns <= world->now_ns - TTL_MAX_NS);
        free_checks++;
        lifted +=
            world->guard.nodes[node].run_reason != REDLOCK_GUARD_NONE && world->guard.nodes[node].run_until_ns == 0;
    }
    kept_out_checks += may_not_vote;
}

static void connect(struct world *world, unsigned node) {
    struct server *server = &world->servers[node];
    const char run_id[] = {(char)('A' + server->run % 26), (char)('a' + server->run / 26 % 26), 0};
    struct redlock_greeting greeting = {.run_id = draw(world, 20) == 0 ? "" : run_id};
    const int64_t now_us = wall_us(world, server);
    greeting.uptime_s = now_us < server->wall_start_us ? -1 : now_us / 1000000 - server->wall_start_us / 1000000;
    greeting.clock = read_clock(world, server);
    bool jumped;
    if (!server->met) {
        server->known_ns = world->now_ns;
    }
    const redlock_nodes began =
        redlock_guard_greet(&world->guard, node, &greeting, world->now_ns, &jumped) | (jumped ? REDLOCK_NODE(node) : 0);
    for (unsigned i = 0; i < world->nodes; i++) {
        if ((began & REDLOCK_NODE(i)) != 0) {
            world->servers[i].known_ns = world->now_ns;
        }
    }
    server->met = server->connected = true;
    check(world, node);
}

static void vote(struct world *world, unsigned node) {
    struct server *server = &world->servers[node];
    const struct redlock_clock_sample sample = read_clock(world, server);
    if (redlock_guard_sample(&world->guard, node, &sample, world->now_ns, NULL) == REDLOCK_CLOCK_FORWARD) {
        server->known_ns = world->now_ns;
    }
    check(world, node);
}

static void happen(struct world *world) {
    const unsigned node = (unsigned)draw(world, world->nodes);
    struct server *server = &world->servers[node];
    world->now_ns += draw(world, draw(world, 4) == 0 ? 20 * S : S);
    switch (draw(world, 12)) {
    case 0:
        restart(world, server);
        break;
    case 1:
        if (node < world->wrong) {
            step(world, server);
        }
        break;
    case 2:
        server->connected = false;
        break;
    default:
        if (!server->connected) {
            connect(world, node);
        } else if (world->guard.plan.clock) {
            vote(world, node);
        }
    }
}

static void begin(struct world *world, uint32_t seed) {
    *world = (struct world){.random = seed, .now_ns = 1000 * S};
    world->nodes = 1 + (unsigned)draw(world, NODES);
    world->wrong = world->nodes == 1 ? 1 : world->nodes / 2; /* fewer than a quorum */
    redlock_guard_init(&world->guard, &(struct redlock_guard_plan){.restart = (redlock_restart_guard)draw(world, 3),
                                                                   .clock = draw(world, 3) != 0,
                                                                   .first_boot = draw(world, 4) == 0,
                                                                   .start_ns = world->now_ns,
                                                                   .ttl_max_ms = TTL_MAX_MS,
                                                                   .node_count = world->nodes,
                                                                   .quorum = redlock_quorum(world->nodes)});
    for (unsigned i = 0; i < world->nodes; i++) {
        struct server *server = &world->servers[i];
        server->offset_ns = i < world->wrong ? 0 : draw(world, 200 * MS);
        server->forgot_ns = server->known_ns = LONG_AGO;
        world->now_ns -= 100 * S - draw(world, 100 * S);
        restart(world, server);
        world->now_ns = 1000 * S;
    }
}

TEST(no_node_votes_within_ttl_max_of_forgetting) {
    for (uint32_t seed = 1; seed <= 40000; seed++) {
        struct world world;
        begin(&world, seed);
        for (int event = 0; event < EVENTS; event++) {
            happen(&world);
        }
    }
    assert_true(kept_out_checks > 100000 && free_checks > 100000 && lifted > 1000);
}

/* Nodes that have been up for long, with the right time, may vote as soon as we have met a
 * quorum. */
TEST(right_nodes_may_vote) {
    for (uint32_t seed = 1; seed <= 2000; seed++) {
        struct world world;
        begin(&world, seed);
        if (world.nodes == 1) {
            continue; /* one clock confirms no other */
        }
        world.now_ns += 40 * S;
        for (unsigned i = 0; i < world.nodes; i++) {
            connect(&world, i);
        }
        assert_int_equal(redlock_guard_may_not_vote(&world.guard, world.now_ns), 0);
    }
}
