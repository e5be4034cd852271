/* The checker on random histories of a correct lock: never an alarm; and with one corruption: always found. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "check_parts.h"
#include "check_world.h"

#define SLACK_US INT64_C(1000000)

enum { HISTORIES = 3000, LENGTH_US = 4000000 };

static size_t nodes_of(uint64_t seed) {
    static const size_t nodes[] = {1, 3, 5, 4, 7};
    return nodes[seed % 5];
}

static void no_alarm(void **state) {
    (void)state;
    size_t leases = 0, lost = 0, sights = 0;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        struct kit kit;
        struct chaos_verdict verdict;
        world_make(&kit, seed, nodes_of(seed), LENGTH_US);
        assert_true(chaos_check(&kit.history, SLACK_US, &verdict));
        if (verdict.violation_count > 0) {
            fail_msg("seed %" PRIu64 ": %s: %s", seed, chaos_violation_name(verdict.violations[0].kind),
                     verdict.violations[0].text);
        }
        assert_int_equal(verdict.lost_updates, 0);
        leases += kit.history.lease_count;
        lost += (size_t)verdict.leases_lost;
        sights += kit.history.sweep_count;
        chaos_verdict_clear(&verdict);
        kit_clear(&kit);
    }
    /* There was something to be alarmed about. */
    assert_true(leases > 100000 && lost > 5000 && sights > 200000);
}

/* Each changes one thing, at random; the kinds of which one must be told, as bits; 0 if the history has nothing to change in this way. */
#define BIT(kind) (1U << CHAOS_VIOLATION_##kind)
typedef unsigned (*corruption)(struct kit *kit, const struct chaos_case *c, uint64_t *random);

static size_t pick(uint64_t *random, size_t count) {
    return (size_t)world_random(random, (int64_t)count - 1);
}

static const struct chaos_lease *next_lease(const struct chaos_history *history, size_t index) {
    for (size_t i = index + 1; i < history->lease_count; i++) {
        if (history->leases[i].resource == history->leases[index].resource) {
            return &history->leases[i];
        }
    }
    return NULL;
}

/* A lease begins one µs before the one before it has ended. */
static unsigned begin_early(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    size_t index = pick(random, kit->history.lease_count);
    struct chaos_lease *lease = (struct chaos_lease *)next_lease(&kit->history, index);
    if (lease == NULL || c->relied_until_us[index] <= kit->history.leases[index].from_us) {
        return 0;
    }
    int64_t from_us = c->relied_until_us[index] - 1;
    if (chaos_case_life(c, lease->client, from_us) != chaos_case_life(c, lease->client, lease->from_us)) {
        return 0; /* its process did not run by then */
    }
    lease->from_us = lease->claims[0].at_us = from_us;
    return BIT(OVERLAP);
}

/* A promise that lasts one µs into the next one's lease. */
static unsigned promise_more(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    size_t index = pick(random, kit->history.lease_count);
    struct chaos_lease *lease = &kit->history.leases[index];
    const struct chaos_lease *next = next_lease(&kit->history, index);
    const struct chaos_life *life = chaos_case_life(c, lease->client, lease->from_us);
    if (next == NULL || life->ended_us <= next->from_us ||
        c->relied_until_us[next - kit->history.leases] <= next->from_us) {
        return 0;
    }
    lease->until_us = lease->claims[lease->claim_count - 1].until_us = next->from_us + 1;
    lease->ended_us = next->from_us + 1;
    return BIT(OVERLAP);
}

/* A sweep that lies in a lease; false if there is none. */
static bool find_sweep(struct kit *kit, const struct chaos_case *c, uint64_t *random, size_t *lease,
                       struct chaos_sweep **sweep) {
    *lease = pick(random, kit->history.lease_count);
    for (size_t i = 0; i < kit->history.sweep_count; i++) {
        *sweep = &kit->history.sweeps[i];
        if ((*sweep)->resource == kit->history.leases[*lease].resource &&
            (*sweep)->from_us >= kit->history.leases[*lease].from_us && (*sweep)->to_us < c->relied_until_us[*lease]) {
            return true;
        }
    }
    return false;
}

/* As many nodes as must be against it; which ones is random. */
static unsigned spoil(struct kit *kit, const struct chaos_case *c, uint64_t *random, const char *token) {
    struct chaos_sweep *sweep;
    size_t lease, nodes = kit->history.node_count, first = pick(random, nodes);
    if (!find_sweep(kit, c, random, &lease, &sweep)) {
        return 0;
    }
    size_t against = nodes - chaos_quorum(&kit->history) + 1;
    for (size_t i = 0; i < against; i++) {
        struct chaos_sight *sight = &sweep->nodes[(first + i) % nodes];
        *sight = (struct chaos_sight){.answered = true, .pttl_ms = token[0] == '\0' ? 0 : 200};
        snprintf(sight->token, sizeof sight->token, "%s", token);
    }
    return BIT(OUTLIVED);
}

static unsigned lose_keys(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    return spoil(kit, c, random, "");
}

static unsigned steal_keys(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    return spoil(kit, c, random, "a stranger's one");
}

/* The keys that are there end before what was promised. */
static unsigned shorten_keys(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    struct chaos_sweep *sweep;
    size_t index, nodes = kit->history.node_count;
    if (!find_sweep(kit, c, random, &index, &sweep)) {
        return 0;
    }
    struct chaos_lease *lease = &kit->history.leases[index];
    int64_t until_us = 0;
    for (size_t i = 0; i < lease->claim_count && lease->claims[i].at_us <= sweep->from_us; i++) {
        until_us = lease->claims[i].until_us;
    }
    if (until_us < sweep->to_us + 1001) {
        return 0;
    }
    for (size_t n = 0; n < nodes; n++) {
        sweep->nodes[n] = (struct chaos_sight){.answered = true, .pttl_ms = (until_us - sweep->to_us - 1001) / 1000};
        memcpy(sweep->nodes[n].token, lease->token, sizeof lease->token);
    }
    return BIT(OUTLIVED);
}

static unsigned lose_early(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_lease *lease = &kit->history.leases[pick(random, kit->history.lease_count)];
    if (lease->released || lease->ended_us == CHAOS_NEVER_US) {
        return 0;
    }
    lease->ended_us = lease->until_us - 1001;
    return BIT(OUTLIVED);
}

static struct chaos_increment *find_done(struct kit *kit, uint64_t *random) {
    struct chaos_increment *increment = &kit->history.increments[pick(random, kit->history.increment_count)];
    return increment->done_us == CHAOS_NEVER_US ? NULL : increment;
}

static unsigned read_twice(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_increment *one = find_done(kit, random), *other = find_done(kit, random);
    if (one == NULL || other == NULL || one == other || one->resource != other->resource) {
        return 0;
    }
    one->read = other->read;
    return BIT(LOST_UPDATE);
}

static unsigned lower_counter(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    const struct chaos_increment *one = find_done(kit, random);
    if (one == NULL) {
        return 0;
    }
    kit->history.counters[one->resource] = world_random(random, one->read);
    return BIT(LOST_UPDATE);
}

static unsigned raise_counter(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    int64_t *counter = &kit->history.counters[pick(random, WORLD_RESOURCES)];
    *counter += 2 + world_random(random, 9); /* what a killed process may have written is one */
    return BIT(LOST_UPDATE);
}

static struct chaos_operation *find_operation(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    struct chaos_operation *operation = &kit->history.operations[pick(random, kit->history.operation_count)];
    for (size_t i = 0; i < kit->history.band_count; i++) {
        if ((kit->history.bands[i].fault.clients >> operation->client & 1) != 0 &&
            kit->history.bands[i].fault.kind == CHAOS_FAULT_CLIENT_PAUSE) {
            return NULL;
        }
    }
    const struct chaos_life *life = chaos_case_life(c, operation->client, operation->invoked_us);
    return life->ended_us > operation->deadline_us + SLACK_US ? operation : NULL;
}

static unsigned complete_late(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    struct chaos_operation *operation = find_operation(kit, c, random);
    if (operation == NULL) {
        return 0;
    }
    operation->completed_us = operation->deadline_us + SLACK_US + 1;
    return BIT(LATE);
}

static unsigned never_complete(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    struct chaos_operation *operation = find_operation(kit, c, random);
    if (operation == NULL) {
        return 0;
    }
    operation->completed_us = CHAOS_NEVER_US;
    return BIT(LATE);
}

static unsigned crash(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    kit->history.lives[pick(random, kit->history.life_count)].expected = false;
    return BIT(CRASH);
}

static unsigned leave(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    (void)random;
    kit_leave(kit, "3 keys on node 2");
    return BIT(LEFT);
}

static unsigned cut_end(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    (void)random;
    kit->history.finish_us = CHAOS_NEVER_US;
    return BIT(INCOMPLETE);
}

static unsigned same_token(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_lease *one = &kit->history.leases[pick(random, kit->history.lease_count)];
    struct chaos_lease *other = &kit->history.leases[pick(random, kit->history.lease_count)];
    if (one->client == other->client) {
        return 0;
    }
    memcpy(one->token, other->token, sizeof one->token);
    return BIT(INCOMPLETE);
}

static unsigned forget_lease(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_history *history = &kit->history;
    size_t index = pick(random, history->lease_count);
    struct chaos_lease *lease = &history->leases[index];
    /* One that was held for long may be one that was over at the first look. */
    if (!lease->released || lease->ended_us - lease->from_us > 250000) {
        return 0;
    }
    free(lease->claims);
    memmove(lease, lease + 1, (--history->lease_count - index) * sizeof *lease);
    return BIT(INCOMPLETE);
}

static unsigned forget_acquire(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    (void)c;
    struct chaos_history *history = &kit->history;
    size_t index = pick(random, history->operation_count);
    struct chaos_operation *operation = &history->operations[index];
    bool led = false;
    for (size_t i = 0; i < history->lease_count; i++) {
        led |= history->leases[i].client == operation->client &&
               history->leases[i].from_us - operation->completed_us <= 300 &&
               history->leases[i].from_us >= operation->completed_us;
    }
    if (operation->what != CHAOS_ACQUIRE || !led) {
        return 0;
    }
    memmove(operation, operation + 1, (--history->operation_count - index) * sizeof *operation);
    return BIT(INCOMPLETE);
}

static unsigned claim_dead(struct kit *kit, const struct chaos_case *c, uint64_t *random) {
    const struct chaos_lease *lease = &kit->history.leases[pick(random, kit->history.lease_count)];
    struct chaos_life *life = (struct chaos_life *)chaos_case_life(c, lease->client, lease->from_us);
    life->ended_us = lease->from_us - 1;
    return BIT(INCOMPLETE);
}

static void one_corruption(void **state) {
    (void)state;
    static const struct {
        const char *name;
        corruption corrupt;
    } all[] = {{"begin_early", begin_early},
               {"promise_more", promise_more},
               {"lose_keys", lose_keys},
               {"steal_keys", steal_keys},
               {"shorten_keys", shorten_keys},
               {"lose_early", lose_early},
               {"read_twice", read_twice},
               {"lower_counter", lower_counter},
               {"raise_counter", raise_counter},
               {"complete_late", complete_late},
               {"never_complete", never_complete},
               {"crash", crash},
               {"leave", leave},
               {"cut_end", cut_end},
               {"same_token", same_token},
               {"forget_lease", forget_lease},
               {"forget_acquire", forget_acquire},
               {"claim_dead", claim_dead}};
    enum { WAYS = sizeof all / sizeof all[0] };
    size_t found[WAYS] = {0};
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        struct kit kit;
        struct chaos_case c;
        struct chaos_verdict verdict = {0};
        uint64_t random = seed * 7919;
        size_t way = seed % WAYS;
        unsigned expected = 0;
        world_make(&kit, seed, nodes_of(seed / WAYS), LENGTH_US);
        assert_true(chaos_case_open(&c, &kit.history, SLACK_US, &verdict));
        for (int tries = 0; expected == 0 && tries < 200; tries++) {
            expected = all[way].corrupt(&kit, &c, &random);
        }
        chaos_case_close(&c);
        kit_sort(&kit);
        assert_true(chaos_check(&kit.history, SLACK_US, &verdict));
        bool seen = false;
        for (size_t kind = 0; kind < CHAOS_VIOLATION_KINDS; kind++) {
            seen |= (expected >> kind & 1) != 0 && verdict.counts[kind] > 0;
        }
        if (expected != 0 && !seen) {
            fail_msg("seed %" PRIu64 ": %s was not found", seed, all[way].name);
        }
        found[way] += seen;
        chaos_verdict_clear(&verdict);
        kit_clear(&kit);
    }
    for (size_t way = 0; way < WAYS; way++) {
        if (found[way] < HISTORIES / WAYS / 2) {
            fail_msg("%s could be tried in %zu histories only", all[way].name, found[way]);
        }
    }
}

/* A time near the one that it was, or any that the reader lets pass. */
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
}

/* A history that makes no sense has a verdict, too; a sanitizer says what else may go wrong. */
static void nonsense(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= HISTORIES / 3; seed++) {
        struct kit kit;
        struct chaos_verdict verdict;
        uint64_t random = seed;
        size_t told = 0;
        world_make(&kit, seed, nodes_of(seed), LENGTH_US / 4);
        kit_band(&kit, CHAOS_FAULT_KILL, 1, 0, 1000, 2000);
        for (int64_t times = world_random(&random, 60); times >= 0; times--) {
            shake_history(&kit, &random);
        }
        kit_sort(&kit);
        assert_true(chaos_check(&kit.history, SLACK_US, &verdict));
        for (size_t i = 0; i < verdict.violation_count; i++) {
            assert_true(i == 0 || verdict.violations[i - 1].from_us <= verdict.violations[i].from_us);
            assert_non_null(verdict.violations[i].text);
        }
        for (size_t kind = 0; kind < CHAOS_VIOLATION_KINDS; kind++) {
            told += verdict.counts[kind];
        }
        assert_int_equal(told, verdict.violation_count);
        assert_true(verdict.healthy_acquired <= verdict.healthy_acquires && verdict.longest_gap_us >= 0);
        char *words = chaos_verdict_words(&kit.history, &verdict);
        assert_non_null(words);
        free(words);
        chaos_verdict_clear(&verdict);
        kit_clear(&kit);
    }
}

/* A run of 60 s with 20 clients has about 100,000 operations and 4,000 sweeps. */
static void speed(void **state) {
    (void)state;
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
    assert_true(chaos_check(&kit.history, SLACK_US, &verdict));
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_alarm), cmocka_unit_test(one_corruption),
                                       cmocka_unit_test(nonsense), cmocka_unit_test(speed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
