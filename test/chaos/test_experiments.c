/* The named experiments in many shapes: each has a schedule that does what its purpose says. */
#include "faults/experiments.h"
#include "faults/setup.h"
#include "short_memory.h"
#include "test.h"

static int64_t end_ms_of(const struct chaos_fault *fault) {
    return fault->at_ms + chaos_fault_length_ms(fault);
}

static const struct chaos_experiment *find(const char *name) {
    const struct chaos_experiment *experiment = chaos_experiment_find(name);
    assert_non_null(experiment);
    return experiment;
}

static struct chaos_settings settings_of(const char *name, int64_t nodes, int64_t clients, int64_t seconds) {
    struct chaos_settings settings;
    chaos_settings_default(&settings);
    chaos_experiment_settings(find(name), &settings);
    settings.nodes = nodes;
    settings.clients = clients;
    settings.seconds = seconds;
    return settings;
}

static struct chaos_schedule plan(const char *name, const struct chaos_settings *settings, uint64_t seed) {
    struct chaos_schedule schedule;
    struct chaos_error error = {""};
    memset(&schedule, 0x55, sizeof schedule);
    if (!chaos_experiment_schedule(find(name), settings, seed, &schedule, &error)) {
        fail_msg("%s: %s", name, error.text);
    }
    return schedule;
}

static const char *const names[] = {"minority-down",       "rolling-restart", "majority-pause", "split",   "clock-jump",
                                    "memoryless-restarts", "slow-node",       "queue",          "readers", "change",
                                    "change-at-once",      "everything"};
enum { EXPERIMENTS = sizeof names / sizeof *names };

TEST(all_are_there) {
    assert_null(chaos_experiment_at(EXPERIMENTS));
    for (size_t i = 0; i < EXPERIMENTS; i++) {
        const struct chaos_experiment *experiment = chaos_experiment_at(i);
        assert_string_equal(experiment->name, names[i]);
        assert_ptr_equal(find(names[i]), experiment);
        assert_true(strlen(experiment->title) > 5 && strlen(experiment->purpose) > 60);
        assert_int_equal(experiment->breaks, strcmp(names[i], "clock-jump") == 0 ||
                                                 strcmp(names[i], "memoryless-restarts") == 0 ||
                                                 strcmp(names[i], "change-at-once") == 0);
    }
    assert_null(chaos_experiment_find("minority"));
    assert_null(chaos_experiment_find(""));
}

TEST(settings_are_put_over) {
    struct chaos_settings settings;
    chaos_settings_default(&settings);
    assert_int_equal(settings.nodes, 5);
    assert_int_equal(settings.clients, 20);
    assert_int_equal(settings.seconds, 60);
    assert_int_equal(settings.ttl_ms, 2000);
    assert_true(settings.append_only);
    struct chaos_settings same = settings;
    chaos_experiment_settings(find("everything"), &same);
    assert_memory_equal(&same, &settings, sizeof same);
    chaos_experiment_settings(find("memoryless-restarts"), &settings);
    assert_false(settings.append_only);
    assert_int_equal(settings.nodes, 5);
    for (size_t i = 0; i < EXPERIMENTS; i++) {
        struct chaos_settings own = settings_of(names[i], 5, 20, 60);
        /* Without renewal, a hold is shorter than the ttl. */
        assert_true(own.hold_ms < own.ttl_ms && own.resources >= 1 && own.resources <= CHAOS_RESOURCES_MAX);
        assert_int_equal(own.readers, strcmp(names[i], "readers") == 0 ? 80 : 0);
        assert_int_equal(own.append_only, strcmp(names[i], "memoryless-restarts") != 0);
    }
}

/* For any shape: faults are in order, within the run, on existing nodes and clients. Exclusive
 * faults do not overlap on the same target. */
static void check(const char *name, const struct chaos_settings *settings, const struct chaos_schedule *schedule) {
    uint64_t clients = settings->clients == 64 ? UINT64_MAX : (UINT64_C(1) << settings->clients) - 1;
    if (schedule->count == 0 && settings->clients > 1) {
        fail_msg("%s has no fault", name);
    }
    for (size_t i = 0; i < schedule->count; i++) {
        const struct chaos_fault *fault = &schedule->faults[i];
        const struct chaos_fault_about *about = chaos_fault_about(fault->kind);
        assert_true(fault->at_ms >= 0 && end_ms_of(fault) <= settings->seconds * 900);
        assert_true(i == 0 || schedule->faults[i - 1].at_ms <= fault->at_ms);
        assert_true(about->target == CHAOS_TARGET_CLIENTS ? fault->nodes == 0 : fault->nodes != 0);
        assert_true(about->target == CHAOS_TARGET_NODES ? fault->clients == 0 : fault->clients != 0);
        assert_true(fault->nodes < UINT64_C(1) << settings->nodes && (fault->clients & ~clients) == 0);
        assert_int_equal(about->lasts, fault->for_ms > 0);
        assert_int_equal(about->amount != CHAOS_AMOUNT_NONE, fault->amount != 0);
        for (size_t j = 0; j < i; j++) {
            const struct chaos_fault *other = &schedule->faults[j];
            bool both =
                about->exclusive && chaos_fault_about(other->kind)->exclusive && (fault->nodes & other->nodes) != 0;
            if (both && end_ms_of(other) >= fault->at_ms) {
                fail_msg("%s: exclusive faults at %lld ms on one node", name, (long long)fault->at_ms);
            }
        }
    }
}

TEST(all_shapes) {
    static const int64_t seconds[] = {5, 8, 10, 12, 15, 20, 30, 60, 61, 600};
    for (size_t i = 0; i < EXPERIMENTS; i++) {
        bool few = strcmp(names[i], "minority-down") != 0 && strcmp(names[i], "rolling-restart") != 0 &&
                   strcmp(names[i], "split") != 0 && strcmp(names[i], "slow-node") != 0;
        int64_t least = strncmp(names[i], "change", 6) == 0 ? 4 : few ? 1 : 3;
        for (int64_t nodes = least; nodes <= CHAOS_NODES_MAX; nodes++) {
            for (size_t s = 0; s < sizeof seconds / sizeof *seconds; s++) {
                struct chaos_settings settings = settings_of(names[i], nodes, (nodes * 7) % 64 + 1, seconds[s]);
                uint64_t seed = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(nodes + (int64_t)s);
                struct chaos_schedule schedule = plan(names[i], &settings, seed);
                check(names[i], &settings, &schedule);
                bool breaks = chaos_schedule_breaks(&schedule, settings.append_only);
                assert_int_equal(breaks, find(names[i])->breaks);
                chaos_schedule_clear(&schedule);
            }
        }
    }
}

TEST(odd_settings) {
    for (size_t i = 0; i < EXPERIMENTS; i++) {
        for (int64_t seconds = 1; seconds < 5; seconds++) {
            struct chaos_settings settings = settings_of(names[i], 5, 1, seconds);
            settings.ttl_ms = seconds % 2 == 0 ? 1 : 600000;
            struct chaos_schedule schedule = plan(names[i], &settings, 3);
            check(names[i], &settings, &schedule);
            chaos_schedule_clear(&schedule);
        }
    }
}

TEST(too_few_nodes) {
    struct chaos_settings settings = settings_of("minority-down", 2, 20, 60);
    struct chaos_schedule schedule = {0};
    struct chaos_error error = {""};
    assert_false(chaos_experiment_schedule(find("minority-down"), &settings, 1, &schedule, &error));
    assert_string_equal(error.text, "3 nodes or more are needed: of 2 none can be missed");
}

static size_t count_bits(uint64_t set) {
    return (size_t)__builtin_popcountll(set);
}

/* The nodes with a fault within [from, to]. */
static uint32_t hit(const struct chaos_schedule *schedule, int64_t from_ms, int64_t to_ms) {
    uint32_t set = 0;
    for (size_t i = 0; i < schedule->count; i++) {
        const struct chaos_fault *fault = &schedule->faults[i];
        set |= fault->at_ms <= to_ms && end_ms_of(fault) >= from_ms ? fault->nodes : 0;
    }
    return set;
}

TEST(never_more_than_a_minority) {
    static const char *const gentle[] = {"minority-down", "rolling-restart", "slow-node"};
    for (size_t i = 0; i < 3; i++) {
        for (int64_t nodes = 3; nodes <= 31; nodes++) {
            for (int64_t seconds = 10; seconds <= 60; seconds += 10) {
                struct chaos_settings settings = settings_of(gentle[i], nodes, 20, seconds);
                struct chaos_schedule schedule = plan(gentle[i], &settings, 5);
                uint32_t all = 0;
                for (int64_t now_ms = 0; now_ms < seconds * 1000; now_ms += 25) {
                    assert_true(count_bits(hit(&schedule, now_ms, now_ms)) <= (size_t)(nodes - 1) / 2);
                    all |= hit(&schedule, now_ms, now_ms);
                }
                assert_true(nodes > 5 || seconds < 60 || count_bits(all) == (size_t)nodes);
                chaos_schedule_clear(&schedule);
            }
        }
    }
}

TEST(minority_down_has_two_of_five_down) {
    for (int64_t seconds = 10; seconds <= 60; seconds += 50) {
        struct chaos_settings settings = settings_of("minority-down", 5, 20, seconds);
        struct chaos_schedule schedule = plan("minority-down", &settings, 1);
        int64_t down_ms = 0;
        for (size_t i = 0; i < schedule.count; i += 2) {
            assert_int_equal(schedule.faults[i].kind, CHAOS_FAULT_KILL);
            assert_int_equal(schedule.faults[i + 1].kind, CHAOS_FAULT_PAUSE);
            assert_int_equal(count_bits(schedule.faults[i].nodes | schedule.faults[i + 1].nodes), 2);
            down_ms += schedule.faults[i].for_ms;
        }
        assert_true(down_ms >= seconds * 1000 / 3);
        chaos_schedule_clear(&schedule);
    }
}

TEST(majority_pause_outlasts_the_ttl) {
    for (int64_t seconds = 10; seconds <= 60; seconds += 5) {
        struct chaos_settings settings = settings_of("majority-pause", 5, 20, seconds);
        struct chaos_schedule schedule = plan("majority-pause", &settings, 1);
        size_t longer = 0, shorter = 0;
        for (size_t i = 0; i < schedule.count; i++) {
            assert_true(count_bits(schedule.faults[i].nodes) >= 3);
            longer += schedule.faults[i].for_ms >= settings.ttl_ms * 3 / 2;
            shorter += schedule.faults[i].for_ms < settings.ttl_ms / 2;
        }
        assert_true(longer >= 1 && shorter >= 1 && longer + shorter == schedule.count);
        chaos_schedule_clear(&schedule);
    }
}

TEST(split_leaves_one_side_or_none) {
    struct chaos_settings settings = settings_of("split", 5, 20, 12);
    struct chaos_schedule schedule = plan("split", &settings, 4);
    size_t sides[3] = {0};
    assert_int_equal(schedule.count, 8);
    for (size_t i = 0; i < schedule.count; i += 2) {
        const struct chaos_fault *a = &schedule.faults[i], *b = &schedule.faults[i + 1];
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->at_ms, b->at_ms);
        assert_true((a->clients & b->clients) == 0 && (a->clients | b->clients) == 0xfffff);
        sides[(count_bits(a->nodes) < 3) + (count_bits(b->nodes) < 3)]++;
    }
    assert_int_equal(sides[0], 1); /* for a while no side has a majority */
    assert_int_equal(sides[1], 3);
    chaos_schedule_clear(&schedule);
}

TEST(breaking_ones_break_a_majority) {
    for (int64_t seconds = 10; seconds <= 60; seconds += 5) {
        struct chaos_settings settings = settings_of("clock-jump", 5, 20, seconds);
        struct chaos_schedule schedule = plan("clock-jump", &settings, 1);
        assert_true(schedule.count >= 2);
        for (size_t i = 0; i < schedule.count; i++) {
            assert_int_equal(count_bits(schedule.faults[i].nodes), 3);
            assert_true(schedule.faults[i].amount > settings.ttl_ms);
            /* Between faults, guards leave a quorum for a while. */
            assert_true(i == 0 || schedule.faults[i].at_ms - schedule.faults[i - 1].at_ms > settings.ttl_ms + 500);
        }
        chaos_schedule_clear(&schedule);
        settings = settings_of("memoryless-restarts", 5, 20, seconds);
        schedule = plan("memoryless-restarts", &settings, 1);
        assert_int_equal(
            count_bits(hit(&schedule, schedule.faults[0].at_ms, schedule.faults[0].at_ms + settings.ttl_ms / 2)), 5);
        for (size_t i = 5; i < schedule.count; i += 5) {
            assert_true(schedule.faults[i].at_ms - schedule.faults[i - 1].at_ms > settings.ttl_ms + 500);
        }
        chaos_schedule_clear(&schedule);
    }
}

TEST(slow_node_has_all_its_kinds) {
    struct chaos_settings settings = settings_of("slow-node", 5, 20, 10);
    struct chaos_schedule schedule = plan("slow-node", &settings, 1);
    uint32_t kinds = 0;
    for (size_t i = 0; i < schedule.count; i++) {
        const struct chaos_fault *fault = &schedule.faults[i];
        kinds |= UINT32_C(1) << fault->kind;
        /* The node is slow for the library: more than its timeout. */
        assert_true(fault->kind == CHAOS_FAULT_BANDWIDTH || fault->amount > settings.node_timeout_ms);
    }
    assert_int_equal(count_bits(kinds), 5);
    chaos_schedule_clear(&schedule);
}

/* Each kind that a queue must survive, and a calm between them in which the order can be judged. */
TEST(queue_has_all_its_kinds) {
    struct chaos_settings settings = settings_of("queue", 5, 20, 60);
    struct chaos_schedule schedule = plan("queue", &settings, 1);
    uint32_t kinds = 0;
    uint64_t clients = 0;
    assert_int_equal(settings.resources, 1);
    for (size_t i = 0; i < schedule.count; i++) {
        const struct chaos_fault *fault = &schedule.faults[i];
        kinds |= UINT32_C(1) << fault->kind;
        assert_true(fault->clients == 0 || (clients & fault->clients) == 0);
        clients |= fault->clients;
        assert_true(i == 0 || fault->at_ms - end_ms_of(fault - 1) > settings.ttl_ms + 3000);
    }
    assert_int_equal(count_bits(kinds), 5);
    assert_true(count_bits(clients) >= 10 && count_bits(clients) < 20);
    chaos_schedule_clear(&schedule);
}

/* The setups of all clients over time: neighbours in time meet, and some do not that are further
 * apart. */
TEST(change_goes_by_steps_that_meet) {
    for (int64_t nodes = 4; nodes <= CHAOS_NODES_MAX; nodes++) {
        struct chaos_settings settings = settings_of("change", nodes, 20, 60);
        struct chaos_schedule schedule = plan("change", &settings, 1);
        struct chaos_setup steps[8] = {{0}};
        size_t count = 0;
        uint64_t moved = 0;
        for (size_t i = 0; i < schedule.count; i++) {
            const struct chaos_fault *fault = &schedule.faults[i];
            if (fault->kind != CHAOS_FAULT_CONFIGURE) {
                continue;
            }
            struct chaos_setup told = chaos_setup_of(fault);
            assert_true(told.quorum > count_bits(told.nodes) / 2 && told.quorum <= count_bits(told.nodes));
            if (moved == 0) {
                assert_true(count < 8);
                steps[count++] = told;
            }
            assert_true(chaos_setups_meet(&told, &steps[count - 1]) && told.nodes == steps[count - 1].nodes);
            assert_true((moved & fault->clients) == 0);
            moved |= fault->clients;
            moved = moved == 0xfffff ? 0 : moved;
        }
        assert_int_equal(count, 5);
        for (size_t i = 1; i < count; i++) {
            assert_true(chaos_setups_meet(&steps[i - 1], &steps[i]));
        }
        assert_true(nodes % 2 == 1 || !chaos_setups_meet(&steps[0], &steps[2]));
        assert_true(nodes % 2 == 1 || !chaos_setups_meet(&steps[2], &steps[4]));
        assert_int_equal(count_bits(steps[2].nodes | steps[4].nodes), nodes); /* one was replaced */
        assert_int_equal(count_bits(steps[4].nodes), nodes - 1);
        chaos_schedule_clear(&schedule);
    }
}

/* Of any neighbours about as many read as of all. */
TEST(readers_and_writers_take_turns) {
    struct chaos_settings settings = settings_of("readers", 5, 20, 60);
    size_t reading = 0;
    for (size_t client = 0; client < 20; client++) {
        reading += chaos_settings_reads(&settings, client);
        assert_true(client % 5 == 0 || reading == 4 * (client / 5) + client % 5);
    }
    assert_int_equal(reading, 16);
    for (settings.readers = 0; settings.readers <= 100; settings.readers += 100) {
        for (size_t client = 0; client < CHAOS_CLIENTS_MAX; client++) {
            assert_int_equal(chaos_settings_reads(&settings, client), settings.readers == 100);
        }
    }
}

/* All that is done to a queue, and links are cut off and reset. */
TEST(readers_come_to_all_kinds_of_harm) {
    struct chaos_settings settings = settings_of("readers", 5, 20, 20);
    struct chaos_schedule schedule = plan("readers", &settings, 1);
    uint32_t kinds = 0, expected;
    struct chaos_error error;
    assert_true(
        chaos_fault_kinds_parse("client-kill,kill,client-pause,unsubscribe,pause,partition,cut", &expected, &error));
    for (size_t i = 0; i < schedule.count; i++) {
        const struct chaos_fault *fault = &schedule.faults[i];
        kinds |= UINT32_C(1) << fault->kind;
        bool of_nodes = fault->nodes != 0 && fault->clients == 0 && fault->kind != CHAOS_FAULT_UNSUBSCRIBE;
        assert_true(!of_nodes || count_bits(fault->nodes) == 2);
    }
    assert_int_equal(kinds, expected);
    chaos_schedule_clear(&schedule);
}

/* For half of the clients nothing is left but their quorum, and for the others another one. */
TEST(change_at_once_leaves_two_quorums) {
    struct chaos_settings settings = settings_of("change-at-once", 5, 20, 60);
    struct chaos_schedule schedule = plan("change-at-once", &settings, 1);
    uint32_t left[2] = {0x07, 0x1f};
    uint64_t halves[2] = {0xffc00, 0x3ff};
    for (size_t i = 0; i < schedule.count; i++) {
        for (int half = 0; half < 2; half++) {
            const struct chaos_fault *fault = &schedule.faults[i];
            left[half] &= fault->kind == CHAOS_FAULT_PARTITION && fault->clients == halves[half] ? ~fault->nodes : ~0U;
        }
    }
    assert_int_equal(left[0], 0x03);
    assert_int_equal(left[1], 0x1c);
    chaos_schedule_clear(&schedule);
}

TEST(everything_comes_from_the_seed) {
    struct chaos_settings settings = settings_of("everything", 5, 20, 20);
    struct chaos_schedule_shape shape = {5, 20, 20000, 0, true};
    struct chaos_error error;
    assert_true(chaos_fault_kinds_parse("safe", &shape.kinds, &error));
    struct chaos_schedule one = plan("everything", &settings, 9), same;
    chaos_schedule_random(9, &shape, &same);
    char *first = chaos_schedule_format(&one, 5, 20), *second = chaos_schedule_format(&same, 5, 20);
    assert_string_equal(first, second);
    free(first);
    free(second);
    chaos_schedule_clear(&one);
    chaos_schedule_clear(&same);
}

static enum short_end plan_once(void *what) {
    const char *name = what;
    struct chaos_settings settings;
    struct chaos_schedule schedule;
    struct chaos_error error;
    chaos_settings_default(&settings);
    return chaos_experiment_schedule(chaos_experiment_find(name), &settings, 1, &schedule, &error) ? SHORT_ENOUGH
                                                                                                   : SHORT_TOLD;
}

TEST(memory_runs_out) {
    for (size_t i = 0; i < EXPERIMENTS; i++) {
        long at = 1;
        for (enum short_end end; (end = short_run(at, plan_once, (char *)(uintptr_t)names[i])) != SHORT_ENOUGH; at++) {
            assert_int_equal(end, SHORT_ENDED);
        }
        assert_true(at > 1);
    }
}
