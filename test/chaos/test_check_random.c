/* The checker on random histories of a correct lock: no false alarm, and it finds every single
 * corruption. */
#include <inttypes.h>
#include <time.h>

#include "check_corrupt.h"
#include "test.h"

enum { HISTORIES = 3000, LENGTH_US = 4000000 };

static size_t nodes_of(uint64_t seed) {
    static const size_t nodes[] = {1, 3, 5, 4, 7};
    return nodes[seed % 5];
}

TEST(no_alarm) {
    size_t leases = 0, lost = 0, sights = 0;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        struct kit kit;
        struct chaos_verdict verdict;
        world_make(&kit, seed, nodes_of(seed), LENGTH_US);
        kit.history.protection.fencing = seed % 2 == 0;
        chaos_check(&kit.history, SLACK_US, &verdict);
        if (verdict.violation_count > 0) {
            fail_msg("seed %" PRIu64 ": %s: %s", seed, chaos_violation_abouts[verdict.violations[0].kind].name,
                     verdict.violations[0].text);
        }
        assert_int_equal(verdict.lost_updates, 0);
        leases += kit.history.lease_count;
        lost += (size_t)verdict.leases_lost;
        sights += kit.history.sweep_count;
        chaos_verdict_clear(&verdict);
        kit_clear(&kit);
    }
    /* There was enough that could have raised an alarm. */
    assert_true(leases > 100000 && lost > 5000 && sights > 200000);
}

/* Clients that read together, each for as long as it likes. */
TEST(no_alarm_with_readers) {
    size_t beside = 0, reads = 0;
    for (uint64_t seed = 1; seed <= HISTORIES / 3; seed++) {
        struct kit kit;
        struct chaos_verdict verdict;
        world_make_shared(&kit, seed, nodes_of(seed), LENGTH_US);
        kit.history.protection.fencing = seed % 2 == 0;
        chaos_check(&kit.history, SLACK_US, &verdict);
        if (verdict.violation_count > 0) {
            fail_msg("seed %" PRIu64 ": %s: %s", seed, chaos_violation_abouts[verdict.violations[0].kind].name,
                     verdict.violations[0].text);
        }
        chaos_verdict_clear(&verdict);
        reads += kit.history.read_count;
        /* Where the modes are not known, they hold it at the same time. */
        for (size_t i = 0; i < kit.history.lease_count; i++) {
            kit.history.leases[i].shared = false;
        }
        chaos_check(&kit.history, SLACK_US, &verdict);
        beside += verdict.counts[CHAOS_VIOLATION_OVERLAP];
        chaos_verdict_clear(&verdict);
        kit_clear(&kit);
    }
    assert_true(reads > 20000 && beside > 10000);
}

TEST(one_corruption) {
    enum { WAYS_MAX = 64 };
    size_t found[WAYS_MAX] = {0};
    assert_true(corruption_count <= WAYS_MAX);
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        struct kit kit;
        struct chaos_case c;
        struct chaos_verdict verdict = {0};
        uint64_t random = seed * 7919;
        size_t way = seed % corruption_count;
        unsigned expected = 0;
        world_make(&kit, seed, nodes_of(seed / corruption_count), LENGTH_US);
        chaos_case_open(&c, &kit.history, SLACK_US, &verdict);
        for (int tries = 0; expected == 0 && tries < 200; tries++) {
            expected = corruptions[way].corrupt(&kit, &c, &random);
        }
        chaos_case_close(&c);
        kit_sort(&kit);
        chaos_check(&kit.history, SLACK_US, &verdict);
        bool seen = false;
        for (size_t kind = 0; kind < CHAOS_VIOLATION_KINDS; kind++) {
            seen |= (expected >> kind & 1) != 0 && verdict.counts[kind] > 0;
        }
        if (expected != 0 && !seen) {
            fail_msg("seed %" PRIu64 ": %s was not found", seed, corruptions[way].name);
        }
        found[way] += seen;
        chaos_verdict_clear(&verdict);
        kit_clear(&kit);
    }
    for (size_t way = 0; way < corruption_count; way++) {
        if (found[way] < HISTORIES / corruption_count / 2) {
            fail_msg("%s could be tried in %zu histories only", corruptions[way].name, found[way]);
        }
    }
}

/* A time near the original one, or any that the reader accepts. */
static void shake(int64_t *at_us, uint64_t *random) {
    switch (world_random(random, 3)) {
    case 0:
        *at_us = world_random(random, INT64_C(1000000000000000));
        break;
    case 1:
        *at_us = world_random(random, 1) == 0 ? 0 : INT64_C(1000000000000000);
        break;
    default:
        *at_us += world_random(random, 4000000) - 2000000;
        break;
    }
}

static void shake_history(struct kit *kit, uint64_t *random) {
    struct chaos_history *history = &kit->history;
    struct chaos_lease *lease = &history->leases[pick(random, history->lease_count)];
    struct chaos_operation *operation = &history->operations[pick(random, history->operation_count)];
    struct chaos_increment *increment = &history->increments[pick(random, history->increment_count)];
    struct chaos_read *read = &history->reads[pick(random, history->read_count)];
    struct chaos_sweep *sweep = &history->sweeps[pick(random, history->sweep_count)];
    struct chaos_life *life = &history->lives[pick(random, history->life_count)];
    struct chaos_band *band = &history->bands[pick(random, history->band_count)];
    int64_t *const times_us[] = {&lease->from_us,
                                 &lease->until_us,
                                 &lease->ended_us,
                                 &lease->claims[lease->claim_count - 1].at_us,
                                 &operation->invoked_us,
                                 &operation->deadline_us,
                                 &operation->completed_us,
                                 &increment->intent_us,
                                 &increment->done_us,
                                 &increment->until_us,
                                 &increment->read,
                                 &increment->fence,
                                 &increment->read_number,
                                 &increment->write_number,
                                 &operation->fence,
                                 &read->at_us,
                                 &read->until_us,
                                 &read->count,
                                 &read->fence,
                                 &read->number,
                                 &operation->ticket,
                                 &sweep->from_us,
                                 &sweep->to_us,
                                 &sweep->nodes[0].pttl_ms,
                                 &life->spawned_us,
                                 &life->ended_us,
                                 &band->from_us,
                                 &band->to_us,
                                 &history->counters[0],
                                 &history->finish_us};
    shake(times_us[pick(random, sizeof times_us / sizeof times_us[0])], random);
    band->fault.kind = (enum chaos_fault_kind)pick(random, CHAOS_FAULT_KINDS);
    band->fault.nodes = (uint32_t)pick(random, 1U << history->node_count);
    band->fault.amount = world_random(random, INT64_C(20000000000)) - INT64_C(10000000000);
    operation->resource = (int)pick(random, WORLD_RESOURCES);
    lease->released = !lease->released;
    lease->shared = !lease->shared;
    operation->shared = !operation->shared;
    history->protection.clock_guard = !history->protection.clock_guard;
    history->protection.ttl_max_ms = world_random(random, INT64_C(1000000000));
}

/* A history without sense has a verdict too. A sanitizer finds other errors. */
TEST(nonsense) {
    for (uint64_t seed = 1; seed <= HISTORIES / 3; seed++) {
        struct kit kit;
        struct chaos_verdict verdict;
        uint64_t random = seed;
        size_t told = 0;
        world_make_shared(&kit, seed, nodes_of(seed), LENGTH_US);
        assert_true(kit.history.read_count > 0 && kit.history.increment_count > 0);
        kit_band(&kit, CHAOS_FAULT_KILL, 1, 0, 1000, 2000);
        kit_queue(&kit, 0, UINT32_MAX, kit.history.operations[0].token);
        for (int64_t times = world_random(&random, 60); times >= 0; times--) {
            shake_history(&kit, &random);
        }
        kit_sort(&kit);
        chaos_check(&kit.history, SLACK_US, &verdict);
        for (size_t i = 0; i < verdict.violation_count; i++) {
            assert_true(i == 0 || verdict.violations[i - 1].from_us <= verdict.violations[i].from_us);
            assert_non_null(verdict.violations[i].text);
        }
        for (size_t kind = 0; kind < CHAOS_VIOLATION_KINDS; kind++) {
            told += verdict.counts[kind];
        }
        assert_int_equal(told, verdict.violation_count);
        assert_true(verdict.healthy_acquired <= verdict.healthy_acquires && verdict.longest_gap_us >= 0);
        char *words;
        size_t size;
        FILE *out = open_memstream(&words, &size);
        assert_non_null(out);
        chaos_verdict_say(out, &kit.history, &verdict);
        assert_int_equal(fclose(out), 0);
        assert_contains(words, "acquire");
        free(words);
        chaos_verdict_clear(&verdict);
        kit_clear(&kit);
    }
}

/* A run of 60 s with 20 clients has about 100,000 operations and 4,000 sweeps. */
TEST(speed) {
    struct kit kit;
    struct chaos_verdict verdict;
    struct timespec before, after;
    kit_begin(&kit, 5, 20, 3);
    for (int64_t i = 0; i < 50000; i++) {
        char token[CHAOS_TOKEN_SIZE];
        int64_t at_us = 10000 + i / 3 * 3600 + i % 3;
        snprintf(token, sizeof token, "%016" PRIx64, (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15));
        size_t lease = kit_acquire(&kit, (int)(i % 18), (int)(i % 3), token, at_us, at_us + 900000);
        kit_increment(&kit, lease, i / 3, at_us + 500, at_us + 600);
        kit_release(&kit, lease, at_us + 2000);
    }
    for (int64_t i = 0; i < 4000; i++) {
        kit_sweep(&kit, (int)(i % 3), 20000 + i * 15000, 20000 + i * 15000 + 2000);
    }
    for (int64_t i = 0; i < 300; i++) {
        kit_band(&kit, CHAOS_FAULT_CLIENT_PAUSE, 0, UINT64_C(1) << (i % 20), i * 200000, i * 200000 + 10);
        kit_band(&kit, CHAOS_FAULT_PARTITION, 3, UINT64_C(0xfffff), i * 200000, i * 200000 + 150000);
    }
    kit_finish(&kit, 70000000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    chaos_check(&kit.history, SLACK_US, &verdict);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    double took_s = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    print_message("%zu operations, %zu sweeps: %.3f s of processor time\n", kit.history.operation_count,
                  kit.history.sweep_count, took_s);
    assert_int_equal(verdict.operations, 100000);
    assert_int_equal(verdict.counts[CHAOS_VIOLATION_OVERLAP], 0);
    assert_true(took_s < 2.0);
    chaos_verdict_clear(&verdict);
    kit_clear(&kit);
}
