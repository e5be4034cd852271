/* The named experiments: what each shows, its settings, and its faults for any number of nodes,
 * clients and seconds. */
#include "faults/experiments.h"

#include <inttypes.h>
#include <string.h>

#include "faults/lists.h"

/*
 * A schedule under way. Times come from the run's length; where something must outlast a ttl, from
 * the ttl. All faults end by nine tenths of the run.
 */
struct plan {
    const struct chaos_settings *settings;
    struct chaos_schedule *schedule;
    size_t nodes, clients, quorum, minority;
    size_t first; /* the node that counts begin at: another one with another seed */
    int64_t from_ms, to_ms;
    uint64_t seed;
};

/* `count` nodes from the index on, around the ring. */
static uint32_t ring(const struct plan *plan, size_t index, size_t count) {
    uint32_t set = 0;
    for (size_t i = 0; i < count; i++) {
        set |= UINT32_C(1) << ((plan->first + index + i) % plan->nodes);
    }
    return set;
}

/* A fault that would hit nobody, as with few nodes or clients, is left out. */
static void add(struct plan *plan, struct chaos_fault fault) {
    if (chaos_fault_hits_somebody(&fault)) {
        chaos_schedule_add(plan->schedule, &fault);
    }
}

static void add_to_nodes(struct plan *plan, enum chaos_fault_kind kind, uint32_t nodes, int64_t at_ms, int64_t for_ms) {
    add(plan, (struct chaos_fault){.kind = kind, .nodes = nodes, .at_ms = at_ms, .for_ms = for_ms});
}

/* How many of such a length fit, within bounds. */
static int64_t fit(const struct plan *plan, int64_t each_ms, int64_t min, int64_t max) {
    return chaos_most(min, chaos_least(max, (plan->to_ms - plan->from_ms) / each_ms));
}

/* After this time all clients have connected again: the longest delay between tries, and a
 * margin. */
enum { RECOVERED_MS = 3000 };

static void minority_down(struct plan *plan) {
    /* In between all have time to be connected again, so that never more than a minority is
     * away. */
    int64_t phases = fit(plan, 6000, 2, 10);
    int64_t phase_ms = (plan->to_ms - plan->from_ms) / phases;
    int64_t gap_ms = chaos_least(RECOVERED_MS + 500, phase_ms / 2);
    for (int64_t phase = 0; phase < phases; phase++) {
        size_t index = (size_t)phase * plan->minority;
        size_t dead = (plan->minority + (phase % 2 == 0)) / 2;
        int64_t at_ms = plan->from_ms + phase * phase_ms, for_ms = phase_ms - gap_ms;
        add_to_nodes(plan, CHAOS_FAULT_KILL, ring(plan, index, dead), at_ms, for_ms);
        add_to_nodes(plan, CHAOS_FAULT_PAUSE, ring(plan, index + dead, plan->minority - dead), at_ms, for_ms);
    }
}

static void rolling_restart(struct plan *plan) {
    int64_t rounds = fit(plan, 6000 * (int64_t)plan->nodes, 1, 5);
    int64_t turns = rounds * (int64_t)plan->nodes;
    int64_t turn_ms = (plan->to_ms - plan->from_ms) / turns;
    for (int64_t turn = 0; turn < turns; turn++) {
        add_to_nodes(plan, CHAOS_FAULT_KILL, ring(plan, (size_t)turn, 1), plan->from_ms + turn * turn_ms,
                     chaos_most(1, chaos_least(5000, turn_ms * 2 / 5)));
    }
}

static void majority_pause(struct plan *plan) {
    /* A short pause that leases outlive, then a long one that none does. */
    int64_t short_ms = chaos_most(100, plan->settings->ttl_ms / 3), long_ms = plan->settings->ttl_ms * 2;
    int64_t pairs = fit(plan, short_ms + long_ms + 2200, 1, 6);
    int64_t pair_ms = (plan->to_ms - plan->from_ms) / pairs;
    for (int64_t pair = 0; pair < pairs; pair++) {
        int64_t at_ms = plan->from_ms + pair * pair_ms, for_ms = chaos_least(short_ms, pair_ms / 5);
        add_to_nodes(plan, CHAOS_FAULT_PAUSE, ring(plan, (size_t)pair, plan->quorum), at_ms, for_ms);
        /* Every other time all of them. */
        size_t count = pair % 2 == 1 ? plan->nodes : plan->quorum;
        add_to_nodes(plan, CHAOS_FAULT_PAUSE, ring(plan, (size_t)pair + 1, count), at_ms + for_ms + pair_ms / 6,
                     chaos_least(long_ms, pair_ms / 2));
    }
}

static void split(struct plan *plan) {
    static const struct {
        enum chaos_fault_kind kind;
        bool neither; /* no group sees a majority */
    } phases[] = {{CHAOS_FAULT_PARTITION, false},
                  {CHAOS_FAULT_LOSE_REPLIES, false},
                  {CHAOS_FAULT_PARTITION, true},
                  {CHAOS_FAULT_LOSE_REQUESTS, false}};
    const int64_t kinds = (int64_t)(sizeof phases / sizeof *phases);
    uint64_t one = chaos_all((plan->clients + 1) / 2), other = chaos_all(plan->clients) & ~one;
    int64_t rounds = fit(plan, kinds * 6000, 1, 10), slots = rounds * kinds;
    int64_t slot_ms = (plan->to_ms - plan->from_ms) / slots;
    for (int64_t slot = 0; slot < slots; slot++) {
        /* The group of the minority side is cut off from the majority of the nodes, the other group
         * from the rest. */
        size_t index = (size_t)slot * plan->minority;
        uint32_t big = ring(plan, index, plan->quorum), small = (uint32_t)chaos_all(plan->nodes) & ~big;
        bool swapped = (slot / kinds + slot) % 2 == 1;
        struct chaos_fault fault = {.kind = phases[slot % kinds].kind,
                                    .nodes = big,
                                    .clients = swapped ? one : other,
                                    .at_ms = plan->from_ms + slot * slot_ms,
                                    .for_ms = slot_ms * 3 / 5};
        add(plan, fault);
        fault.nodes = phases[slot % kinds].neither ? ring(plan, index + plan->minority, plan->quorum) : small;
        fault.clients = swapped ? other : one;
        add(plan, fault);
    }
}

static void clock_jump(struct plan *plan) {
    /* With a guard the nodes stay away for a ttl: then there is a quorum again for a while. */
    int64_t jumps = fit(plan, plan->settings->ttl_ms + 3000, 2, 12);
    for (int64_t i = 0; i < jumps; i++) {
        add(plan,
            (struct chaos_fault){.kind = CHAOS_FAULT_CLOCK_JUMP,
                                 .nodes = ring(plan, (size_t)i * plan->quorum, plan->quorum),
                                 .at_ms = plan->from_ms + (2 * i + 1) * (plan->to_ms - plan->from_ms) / (2 * jumps),
                                 .amount = plan->settings->ttl_ms * 2});
    }
}

/* Time for a server to start, and for clients to find it again. */
enum { RESTART_MS = 200, DOWN_MS = 100 };

static void memoryless_restarts(struct plan *plan) {
    /* five steps at most, or it would take longer than a ttl */
    size_t group = (plan->nodes + 4) / 5;
    int64_t steps = (int64_t)((plan->nodes + group - 1) / group);
    int64_t burst_ms = steps * RESTART_MS;
    /* With a guard the last node stays away for a ttl more: then all vote for a while. */
    int64_t bursts = fit(plan, burst_ms + plan->settings->ttl_ms + 1000, 1, 20);
    int64_t slot_ms = (plan->to_ms - plan->from_ms) / bursts;
    for (int64_t i = 0; i < bursts * steps; i++) {
        int64_t step = i % steps;
        size_t index = (size_t)step * group;
        size_t count = index + group > plan->nodes ? plan->nodes - index : group;
        add_to_nodes(plan, CHAOS_FAULT_RESTART_EMPTY, ring(plan, index, count),
                     plan->from_ms + i / steps * slot_ms + chaos_least(step * RESTART_MS, step * slot_ms / steps),
                     chaos_most(1, chaos_least(DOWN_MS, slot_ms / steps / 2)));
    }
}

static void slow_node(struct plan *plan) {
    enum { KINDS = 5, PIECES = 3 };
    int64_t rounds = fit(plan, KINDS * 6000, 1, 10), slots = rounds * KINDS;
    int64_t slot_ms = (plan->to_ms - plan->from_ms) / slots, for_ms = slot_ms * 3 / 5;
    static const struct {
        enum chaos_fault_kind kind;
        int64_t amount; /* of those that last */
    } kinds[KINDS] = {{CHAOS_FAULT_SLOW, 0},
                      {CHAOS_FAULT_DELAY, 80},
                      {CHAOS_FAULT_BUSY, 0},
                      {CHAOS_FAULT_BANDWIDTH, 2000},
                      {CHAOS_FAULT_JITTER, 60}};
    /* In a short run the same nodes all the time: others would be hit before these are well
     * again. */
    size_t others = slot_ms - for_ms >= RECOVERED_MS ? plan->minority : 0;
    for (int64_t slot = 0; slot < slots; slot++) {
        struct chaos_fault fault = {.kind = kinds[slot % KINDS].kind,
                                    .nodes = ring(plan, (size_t)slot * others, plan->minority),
                                    .at_ms = plan->from_ms + slot * slot_ms,
                                    .amount = kinds[slot % KINDS].amount};
        bool lasts = chaos_fault_about(fault.kind)->lasts;
        for (int piece = 0; piece < (lasts ? 1 : PIECES); piece++) {
            if (lasts) {
                fault.clients = chaos_all(plan->clients);
                fault.for_ms = for_ms;
            } else {
                fault.amount = chaos_most(1, chaos_least(1000, for_ms / PIECES * 2 / 3));
            }
            add(plan, fault);
            fault.at_ms += for_ms / PIECES;
        }
    }
}

/* What a queue, and those who read together, must survive, one after the other: so many of them. In
 * between, the order of the line is judged. */
static void in_turn(struct plan *plan, int64_t kinds) {
    enum { KINDS = 7 };
    int64_t slots = kinds * fit(plan, kinds * 6000, 1, 10), slot_ms = (plan->to_ms - plan->from_ms) / slots;
    int64_t for_ms = chaos_most(1, chaos_least(plan->settings->ttl_ms * 2, slot_ms * 2 / 5));
    size_t third = (plan->clients + 2) / 3;
    uint64_t dead = chaos_all(third), stopped = chaos_all(2 * third) & chaos_all(plan->clients) & ~dead;
    for (int64_t slot = 0; slot < slots; slot++) {
        size_t index = (size_t)slot;
        const struct chaos_fault faults[KINDS] = {
            {.kind = CHAOS_FAULT_CLIENT_KILL, .clients = dead, .for_ms = for_ms},
            {.kind = CHAOS_FAULT_KILL, .nodes = ring(plan, index, plan->minority), .for_ms = for_ms},
            {.kind = CHAOS_FAULT_CLIENT_PAUSE, .clients = stopped, .for_ms = for_ms},
            {.kind = CHAOS_FAULT_UNSUBSCRIBE, .nodes = ring(plan, index, plan->quorum)},
            {.kind = CHAOS_FAULT_PAUSE, .nodes = ring(plan, index, plan->minority), .for_ms = for_ms},
            {.kind = CHAOS_FAULT_PARTITION,
             .nodes = ring(plan, index, plan->quorum),
             .clients = dead,
             .for_ms = for_ms},
            {.kind = CHAOS_FAULT_CUT, .nodes = ring(plan, index, plan->quorum), .clients = chaos_all(plan->clients)}};
        struct chaos_fault fault = faults[slot % kinds];
        fault.at_ms = plan->from_ms + slot * slot_ms;
        add(plan, fault);
    }
}

static void queue(struct plan *plan) {
    in_turn(plan, 5);
}

static void readers(struct plan *plan) {
    in_turn(plan, 7);
}

static void everything(struct plan *plan) {
    struct chaos_schedule_shape shape = chaos_settings_shape(plan->settings, chaos_fault_kinds(false));
    chaos_schedule_random(plan->seed, &shape, plan->schedule);
}

/* The first nodes. */
static struct chaos_setup setup_of(size_t count, size_t quorum) {
    return (struct chaos_setup){(uint32_t)chaos_all(count), quorum};
}

/* The nodes that a quorum can do without: the last ones, or the first. */
static uint32_t spare(const struct chaos_setup *setup, bool last) {
    uint32_t nodes = setup->nodes;
    for (size_t left = chaos_count_bits(nodes); left > setup->quorum; left--) {
        nodes &= last ? ~(UINT32_C(1) << (31 - __builtin_clz(nodes))) : nodes - 1;
    }
    return setup->nodes & ~nodes;
}

static void tell(struct plan *plan, const struct chaos_setup *setup, uint64_t clients, int64_t at_ms) {
    add(plan, (struct chaos_fault){.kind = CHAOS_FAULT_CONFIGURE,
                                   .nodes = setup->nodes,
                                   .clients = clients,
                                   .at_ms = at_ms,
                                   .amount = (int64_t)setup->quorum});
}

/*
 * Half of the clients go on to the next setup, and later the others. In between, each half sees no
 * more nodes than its quorum, and those that the other half may see the least: that is when two
 * quorums share the fewest nodes.
 */
static void move_on(struct plan *plan, const struct chaos_setup *from, const struct chaos_setup *to, int64_t at_ms,
                    int64_t for_ms) {
    uint64_t first = chaos_all((plan->clients + 1) / 2), others = chaos_all(plan->clients) & ~first;
    struct chaos_fault cut = {.kind = CHAOS_FAULT_PARTITION, .at_ms = at_ms + for_ms / 4, .for_ms = for_ms / 2};
    tell(plan, to, first, at_ms);
    cut.nodes = spare(to, false);
    cut.clients = first;
    add(plan, cut);
    cut.nodes = spare(from, true);
    cut.clients = others;
    add(plan, cut);
    tell(plan, to, others, at_ms + for_ms);
}

/* Nodes fail at random all the time, clients between the steps. */
static void change(struct plan *plan) {
    const uint32_t of_clients = UINT32_C(1) << CHAOS_FAULT_CLIENT_PAUSE | UINT32_C(1) << CHAOS_FAULT_CLIENT_KILL;
    struct chaos_schedule_shape shape = chaos_settings_shape(plan->settings, chaos_fault_kinds(false) & ~of_clients);
    size_t many = plan->nodes - 1, few = many - 2, least = many / 2 + 1;
    size_t middle = many - few / 2 > least ? many - few / 2 : least;
    struct chaos_setup steps[] = {setup_of(few, few / 2 + 1), setup_of(many, middle), setup_of(many, many / 2 + 1),
                                  setup_of(many, many + 1 - many / 2), setup_of(many, many / 2 + 1)};
    enum { STEPS = sizeof steps / sizeof *steps };
    steps[STEPS - 1].nodes += UINT32_C(1) << (many - 1); /* in place of the last one, the next */
    chaos_schedule_random(plan->seed, &shape, plan->schedule);
    tell(plan, &steps[0], chaos_all(plan->clients), 0);
    int64_t step_ms = (plan->to_ms - plan->from_ms) / (STEPS - 1), third_ms = chaos_most(1, step_ms / 10);
    for (int64_t i = 0; i + 1 < STEPS; i++) {
        int64_t at_ms = plan->from_ms + i * step_ms;
        move_on(plan, &steps[i], &steps[i + 1], at_ms, step_ms / 2);
        add(plan, (struct chaos_fault){.kind = i % 2 == 0 ? CHAOS_FAULT_CLIENT_KILL : CHAOS_FAULT_CLIENT_PAUSE,
                                       .clients = chaos_all((plan->clients + 2) / 3),
                                       .at_ms = at_ms + step_ms * 13 / 20,
                                       .for_ms = third_ms});
    }
}

/* The step in the middle is left out. */
static void change_at_once(struct plan *plan) {
    size_t few = plan->nodes - (plan->nodes % 2 == 0 ? 3 : 2);
    struct chaos_setup from = setup_of(few, few / 2 + 1), to = setup_of(plan->nodes, plan->quorum);
    tell(plan, &from, chaos_all(plan->clients), 0);
    move_on(plan, &from, &to, plan->from_ms, plan->to_ms - plan->from_ms);
}

/* Of the settings 0 means: as they were. */
struct entry {
    struct chaos_experiment about;
    size_t nodes_min;
    struct chaos_settings settings;
    bool forgets; /* nodes without an AOF */
    void (*plan)(struct plan *plan);
};

static const struct entry entries[] = {
    {.about.name = "minority-down",
     .about.title = "A minority of the nodes down",
     .about.purpose = "Of five nodes two are away, one killed and one paused; then others in turn, never more. Every "
                      "acquire must succeed, and hardly later than before.",
     .nodes_min = 3,
     .settings = {.resources = 10},
     .plan = minority_down},
    {.about.name = "rolling-restart",
     .about.title = "Every node restarted in turn",
     .about.purpose = "One node after the other is killed and started again with the keys of its append-only file. "
                      "Leases are kept, and nobody waits.",
     .nodes_min = 3,
     .settings = {.resources = 10},
     .plan = rolling_restart},
    {.about.name = "majority-pause",
     .about.title = "A majority of the nodes hangs",
     .about.purpose = "Three of five nodes, or all, stop for longer than the ttl, and also for a short while. A client "
                      "that holds a lease gives it up at its deadline. Nobody gets a lease meanwhile. All goes on soon "
                      "after the nodes wake up.",
     .settings = {.resources = 20, .ttl_ms = 1000, .hold_ms = 400},
     .plan = majority_pause},
    {.about.name = "split",
     .about.title = "The network splits",
     .about.purpose = "Half of the clients see most of the nodes, the other half the rest. Then only requests or only "
                      "replies are lost. For a while no side sees a majority. Only a side with a majority gets locks.",
     .nodes_min = 3,
     .settings = {.resources = 6},
     .plan = split},
    {.about.name = "clock-jump",
     .about.title = "Clocks jump forward",
     .about.purpose =
         "The wall clocks of three of five nodes step forward by more than the ttl while leases are held: "
         "the nodes forget the keys too early. Redlock assumes that clocks do not jump, so two clients are "
         "expected to hold one lock, unless the clock guard is on (--protect).",
     .about.breaks = true,
     .settings = {.resources = 6, .ttl_ms = 3000, .hold_ms = 1500, .think_ms = 50},
     .plan = clock_jump},
    {.about.name = "memoryless-restarts",
     .about.title = "Nodes come back empty",
     .about.purpose =
         "Nodes without an append-only file are restarted one after another within a ttl. Together they "
         "forget a lease that is held. Redlock assumes that nodes remember, so two clients are expected to "
         "hold one lock, unless the restart guard is on (--protect).",
     .about.breaks = true,
     .settings = {.resources = 6, .ttl_ms = 3000, .hold_ms = 1500, .think_ms = 50},
     .forgets = true,
     .plan = memoryless_restarts},
    {.about.name = "slow-node",
     .about.title = "A minority of the nodes is slow",
     .about.purpose = "Two of five nodes sleep, run long scripts, or sit behind links with delay, jitter or little "
                      "bandwidth. The others decide: acquires stay quick, and every one succeeds.",
     .nodes_min = 3,
     .settings = {.resources = 10},
     .plan = slow_node},
    {.about.name = "queue",
     .about.title = "All wait for one lock",
     .about.purpose = "All clients queue for one lock, and hold it only for a moment. Clients in line are killed and "
                      "stopped, nodes are killed and paused, subscriptions are closed. Whoever came first is served "
                      "first.",
     .settings = {.resources = 1, .hold_ms = 10},
     .plan = queue},
    {.about.name = "readers",
     .about.title = "Many read, some write",
     .about.purpose = "Most clients read two resources, and have them together; the others write. Clients of both "
                      "kinds are killed, stopped and cut off, nodes are killed and paused, connections are reset. "
                      "Nobody reads while another one writes, and no reader passes a writer who came first.",
     .settings = {.resources = 2, .hold_ms = 50, .readers = 80},
     .plan = readers},
    {.about.name = "change",
     .about.title = "The nodes are changed",
     .about.purpose = "Three nodes become five, and then one of the five is replaced, while all clients go on: half of "
                      "them begin anew with the next nodes and quorum, and later the other half. Meanwhile each half "
                      "sees no more nodes than its quorum, and everything fails at random. The quorums of two steps "
                      "that follow each other always share a node.",
     .nodes_min = 4,
     .settings = {.nodes = 6},
     .plan = change},
    {.about.name = "change-at-once",
     .about.title = "The nodes are changed at once",
     .about.purpose = "Three nodes become five without the step in the middle, where four of five must grant. Some "
                      "clients lock on nodes 1 and 2, others on nodes 3, 4 and 5, so two clients are expected to hold "
                      "one lock.",
     .about.breaks = true,
     .nodes_min = 4,
     .settings = {.hold_ms = 200, .think_ms = 50},
     .plan = change_at_once},
    {.about.name = "everything",
     .about.title = "Everything at once, at random",
     .about.purpose =
         "All faults that Redlock must endure come at random from the seed, one to three at a time, now and "
         "then on a majority of the nodes. No lock may ever have two holders.",
     .plan = everything},
};

void chaos_settings_default(struct chaos_settings *settings) {
    *settings = (struct chaos_settings){.nodes = 5,
                                        .clients = 20,
                                        .resources = 3,
                                        .seconds = 60,
                                        .ttl_ms = 2000,
                                        .node_timeout_ms = 50,
                                        .wait_ms = 10000,
                                        .hold_ms = 20,
                                        .think_ms = 200,
                                        .append_only = true};
}

const struct chaos_experiment *chaos_experiment_at(size_t index) {
    return index < sizeof entries / sizeof *entries ? &entries[index].about : NULL;
}

const struct chaos_experiment *chaos_experiment_find(const char *name) {
    size_t i = 0;
    while (chaos_experiment_at(i) != NULL && strcmp(name, entries[i].about.name) != 0) {
        i++;
    }
    return chaos_experiment_at(i);
}

/* What is told outside is the first member. */
static const struct entry *entry_of(const struct chaos_experiment *experiment) {
    return (const struct entry *)experiment;
}

void chaos_experiment_settings(const struct chaos_experiment *experiment, struct chaos_settings *settings) {
    const struct entry *entry = entry_of(experiment);
    const struct chaos_settings *own = &entry->settings;
    settings->nodes = own->nodes > 0 ? own->nodes : settings->nodes;
    settings->resources = own->resources > 0 ? own->resources : settings->resources;
    settings->ttl_ms = own->ttl_ms > 0 ? own->ttl_ms : settings->ttl_ms;
    settings->hold_ms = own->hold_ms > 0 ? own->hold_ms : settings->hold_ms;
    settings->think_ms = own->think_ms > 0 ? own->think_ms : settings->think_ms;
    settings->readers = own->readers > 0 ? own->readers : settings->readers;
    settings->append_only = !entry->forgets && settings->append_only;
}

bool chaos_experiment_schedule(const struct chaos_experiment *experiment, const struct chaos_settings *settings,
                               uint64_t seed, struct chaos_schedule *schedule, struct chaos_error *error) {
    const struct entry *entry = entry_of(experiment);
    *schedule = (struct chaos_schedule){0};
    if (settings->nodes < (int64_t)entry->nodes_min) {
        return chaos_fail(error, "%zu nodes or more are needed: of %" PRId64 " none can be missed", entry->nodes_min,
                          settings->nodes);
    }
    size_t nodes = (size_t)settings->nodes;
    struct plan plan = {.settings = settings,
                        .schedule = schedule,
                        .nodes = nodes,
                        .clients = (size_t)settings->clients,
                        .quorum = nodes / 2 + 1,
                        .minority = (nodes - 1) / 2,
                        .first = (size_t)(seed % nodes),
                        .from_ms = chaos_least(2000, settings->seconds * 100),
                        .to_ms = settings->seconds * 900,
                        .seed = seed};
    entry->plan(&plan);
    return true;
}
