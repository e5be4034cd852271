/* A quorum of one's own, and clients with different nodes and quorums beside each other: which of
 * them exclude each other while nodes are changed (docs/operations.md, "Changing the nodes"). */
#include <redlock/election.h>

#include "world.h"

#define LONG_MS 60000

/* The nodes of a configuration, as indexes of world_servers, and its quorum. */
struct setup {
    size_t quorum, count;
    size_t nodes[6];
};

/* The steps of docs/operations.md: three nodes become five; one of five is replaced. */
static const struct setup three_2 = {2, 3, {0, 1, 2}}, five_4 = {4, 5, {0, 1, 2, 3, 4}},
                          five_3 = {3, 5, {0, 1, 2, 3, 4}}, other_3 = {3, 5, {0, 1, 2, 3, 5}};

static int start_six(UNUSED void **state) {
    servers_start(&world_servers, 6, NULL);
    return 0;
}

static redlock_manager *open_setup(const struct setup *setup) {
    const char *uris[6];
    redlock_manager_options options = world_options();
    for (size_t i = 0; i < setup->count; i++) {
        uris[i] = world_servers.uris[setup->nodes[i]];
    }
    options.nodes = uris;
    options.node_count = setup->count;
    options.quorum = setup->quorum;
    redlock_manager *manager = world_manager_with(&options);
    assert_int_equal(redlock_manager_quorum(manager), setup->quorum);
    return manager;
}

/* A lease whose keys are on these nodes only: the others forget it. */
static redlock_lease *hold_on(redlock_manager *manager, const char *resource, redlock_acquire_options *options,
                              unsigned nodes) {
    struct outcome *outcome = world_outcome();
    if (drive_acquire(world_loop, manager, resource, options, outcome) != REDLOCK_OK) {
        fail_msg("acquiring %s: %s", resource, outcome->message);
    }
    assert_true(world_wait_with_key(resource, redlock_manager_node_count(manager), DRIVE_TIMEOUT_MS));
    for (size_t i = 0; i < world_servers.count; i++) {
        if ((nodes >> i & 1U) == 0) {
            (void)server_ask(&world_servers.at[i], "DEL", resource);
        }
    }
    return outcome->lease;
}

TESTS_WITH(start_six, world_end);

WORLD_TEST(a_quorum_is_more_than_half_and_no_more_than_all) {
    static const struct {
        size_t nodes, quorum, is;
    } cases[] = {{1, 0, 1}, {1, 1, 1}, {1, 2, 0}, {2, 1, 0}, {2, 2, 2}, {3, 0, 2}, {3, 1, 0}, {3, 3, 3},
                 {4, 2, 0}, {4, 3, 3}, {5, 0, 3}, {5, 2, 0}, {5, 4, 4}, {5, 5, 5}, {5, 6, 0}, {5, SIZE_MAX, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char error[256] = "", range[64];
        redlock_manager_options options = world_options();
        redlock_manager *manager = NULL;
        options.node_count = cases[i].nodes;
        options.quorum = cases[i].quorum;
        if (cases[i].is == 0) {
            assert_is(redlock_manager_create(world_loop, &options, &manager, error, sizeof error), REDLOCK_ERR_INVALID);
            snprintf(range, sizeof range, "it must be %zu to %zu (more", cases[i].nodes / 2 + 1, cases[i].nodes);
            assert_contains(error, range);
            continue;
        }
        manager = world_manager_at_once(&options);
        assert_int_equal(redlock_manager_quorum(manager), cases[i].is);
        world_close(manager);
    }
}

WORLD_TEST(options_of_an_older_program_have_the_least_quorum) {
    redlock_manager_options options = world_options();
    options.node_count = 5;
    options.quorum = 5;
    options.size = offsetof(redlock_manager_options, quorum);
    assert_int_equal(redlock_manager_quorum(world_manager_at_once(&options)), 3);
}

WORLD_TEST(a_larger_quorum_tolerates_fewer_nodes) {
    redlock_manager *manager = open_setup(&five_4);
    server_kill(&world_servers.at[0]);
    redlock_lease *lease = world_acquire(manager, "fewer", LONG_MS);
    assert_is(drive_extend(world_loop, lease, LONG_MS, outcome), REDLOCK_OK);
    server_kill(&world_servers.at[1]);
    assert_is(drive_acquire(world_loop, manager, "none", NULL, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_contains(outcome->message, ", 4 are needed");
    assert_is(drive_extend(world_loop, lease, LONG_MS, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_is(drive_inspect(world_loop, manager, "fewer", outcome), REDLOCK_ERR_NO_QUORUM);
    assert_is(drive_connect(world_loop, manager, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_NO_QUORUM);
}

/* Two of five nodes without the key: three can have it, but the quorum is four. */
WORLD_TEST(a_lease_is_lost_when_fewer_than_its_quorum_can_have_it) {
    static const struct {
        const struct setup *setup;
        unsigned nodes;
        int code;
    } cases[] = LIST({&five_4, 0x0f, REDLOCK_OK}, {&five_4, 0x07, REDLOCK_ERR_LOST}, {&five_3, 0x07, REDLOCK_OK},
                     {&five_3, 0x03, REDLOCK_ERR_LOST});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        redlock_acquire_options options = world_acquire_options(LONG_MS, 0);
        outcome = world_outcome();
        struct loss *loss = world_loss();
        options.heal = false;
        options.on_lost = loss_collect;
        options.lost_data = loss;
        redlock_lease *lease = hold_on(open_setup(cases[i].setup), "part", &options, cases[i].nodes);
        assert_int_equal(drive_extend(world_loop, lease, LONG_MS, outcome), cases[i].code);
        assert_int_equal(loss->runs, cases[i].code != REDLOCK_OK);
        if (loss->runs) {
            assert_contains(loss->reason, "no quorum can have it");
        }
        (void)drive_release(world_loop, lease, outcome);
        assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    }
}

/* Each holds the lock on the fewest nodes that it needs, and chosen so that the other misses as
 * many of them as possible. */
WORLD_TEST(quorums_exclude_each_other_if_they_are_more_than_the_nodes_of_both) {
    static const struct {
        const struct setup *holder, *rival;
        unsigned nodes; /* of the holder's keys */
        int code;
    } cases[] = {
        {&three_2, &five_4, 0x03, REDLOCK_ERR_CONTENDED}, /* 2 + 4 > 5 */
        {&five_4, &three_2, 0x1e, REDLOCK_ERR_CONTENDED},
        {&five_4, &five_3, 0x0f, REDLOCK_ERR_CONTENDED}, /* 4 + 3 > 5 */
        {&five_3, &five_4, 0x07, REDLOCK_ERR_CONTENDED},
        {&five_4, &other_3, 0x1e, REDLOCK_ERR_CONTENDED}, /* 4 + 3 > 6 */
        {&other_3, &five_4, 0x23, REDLOCK_ERR_CONTENDED},
        /* The forbidden pairs: this is what they cost. */
        {&three_2, &five_3, 0x03, REDLOCK_OK}, /* 2 + 3 = 5 */
        {&five_3, &three_2, 0x1c, REDLOCK_OK},
        {&five_3, &other_3, 0x1c, REDLOCK_OK}, /* 3 + 3 = 6 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        redlock_acquire_options options = world_acquire_options(LONG_MS, 0);
        struct outcome *released = world_outcome();
        outcome = world_outcome();
        options.heal = false;
        redlock_manager *holder = open_setup(cases[i].holder), *rival = open_setup(cases[i].rival);
        redlock_lease *lease = hold_on(holder, "pair", &options, cases[i].nodes);
        if (drive_acquire(world_loop, rival, "pair", &options, outcome) != cases[i].code) {
            fail_msg("pair %zu: %s", i, outcome->message);
        }
        assert_true(redlock_lease_validity_ms(lease) > 0);
        if (outcome->lease) {
            assert_true(redlock_lease_validity_ms(outcome->lease) > 0); /* two holders */
            assert_is(drive_release(world_loop, outcome->lease, released), REDLOCK_OK);
        }
        (void)drive_release(world_loop, lease, released);
        assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
        world_close(holder);
        world_close(rival);
    }
}

static uint64_t fence_of(const struct setup *setup, const char *resource) {
    redlock_acquire_options options = world_acquire_options(LONG_MS, 0);
    struct outcome *outcome = world_outcome();
    redlock_manager *manager = open_setup(setup);
    options.fencing = true;
    if (drive_acquire(world_loop, manager, resource, &options, outcome) != REDLOCK_OK) {
        fail_msg("acquiring %s: %s", resource, outcome->message);
    }
    const uint64_t fence = redlock_lease_fence(outcome->lease);
    world_release_all(outcome->lease, resource);
    world_close(manager);
    return fence;
}

/* Counters that are ahead of all clocks show what the nodes hand on, and what they do not. */
WORLD_TEST(fencing_tokens_rise_if_the_middle_step_has_taken_one) {
    const uint64_t ahead = UINT64_C(600) * 1000000 * 1000; /* ten minutes: the library follows it */
    char counter[32];
    for (int middle = 0; middle < 2; middle++) {
        const uint64_t first = fence_of(&three_2, "step");
        snprintf(counter, sizeof counter, "%020llu", (unsigned long long)(first + ahead));
        /* The last token of step 1 is on 1 and 2 only. */
        for (size_t i = 0; i < world_servers.count; i++) {
            assert_string_equal(i < 2 ? server_ask(&world_servers.at[i], "SET", "step:fence", counter) : "OK", "OK");
        }
        if (middle) {
            assert_true(fence_of(&five_4, "step") > first + ahead);
        }
        server_kill(&world_servers.at[0]);
        server_kill(&world_servers.at[1]);
        const uint64_t last = fence_of(&five_3, "step");
        assert_int_equal(last > first + ahead, middle);
        server_restart(&world_servers.at[0]);
        server_restart(&world_servers.at[1]);
        servers_reset(&world_servers);
    }
}

static bool is_in(const struct setup *setup, size_t node) {
    for (size_t i = 0; i < setup->count; i++) {
        if (setup->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

/* Somebody waits for "step" at all nodes that both have. */
static bool is_in_line(void *data) {
    const struct setup *const *pair = data;
    for (size_t i = 0; i < world_servers.count; i++) {
        if (is_in(pair[0], i) && is_in(pair[1], i) && !server_has_key(&world_servers.at[i], "step:wait")) {
            return false;
        }
    }
    return true;
}

/* A waiter of the next step is in line at the nodes of the holder, too. */
WORLD_TEST(a_lock_is_handed_over_between_steps) {
    static const struct setup *pairs[][2] = {
        {&three_2, &five_4}, {&five_4, &three_2}, {&five_4, &five_3}, {&five_3, &five_4}, {&five_4, &other_3}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct outcome *waiter = world_outcome(), *released = world_outcome();
        redlock_manager *holder = open_setup(pairs[i][0]), *next = open_setup(pairs[i][1]);
        redlock_lease *lease = world_acquire(holder, "step", LONG_MS);
        /* A node that has not answered yet might give the key to the waiter, not a place. */
        assert_true(world_wait_with_key("step", pairs[i][0]->count, DRIVE_TIMEOUT_MS));
        assert_is(redlock_acquire(next, "step", TIMES(LONG_MS, DRIVE_TIMEOUT_MS), NULL, outcome_collect, waiter),
                  REDLOCK_OK);
        assert_true(drive_until(world_loop, is_in_line, pairs[i], DRIVE_TIMEOUT_MS));
        drive_for(world_loop, 200);
        assert_int_equal(waiter->runs, 0);
        const int64_t begin_ms = support_now_ms();
        assert_is(drive_release(world_loop, lease, released), REDLOCK_OK);
        assert_true(outcome_wait(world_loop, waiter));
        assert_is(waiter->code, REDLOCK_OK);
        assert_in_range(waiter->at_ms - begin_ms, 0, 5000); /* long before the ttl of the keys */
        assert_int_equal(world_statistics(next).handed_over, 1);
        assert_is(drive_release(world_loop, waiter->lease, released), REDLOCK_OK);
        world_close(holder);
        world_close(next);
        servers_reset(&world_servers);
    }
}

/* A token of three nodes is on too few for a quorum of four. */
WORLD_TEST(a_token_is_not_handed_to_the_next_step) {
    redlock_acquire_options options = world_acquire_options(LONG_MS, 0);
    redlock_lease *lease = world_acquire(open_setup(&three_2), "token", LONG_MS), *adopted = NULL;
    assert_true(world_wait_with_key("token", 3, DRIVE_TIMEOUT_MS));
    redlock_manager *next = open_setup(&five_4);
    assert_is(redlock_adopt(next, "token", redlock_lease_token(lease), &options, &adopted), REDLOCK_OK);
    assert_is(drive_extend(world_loop, adopted, LONG_MS, outcome), REDLOCK_ERR_LOST);
    assert_is(drive_release(world_loop, adopted, outcome), REDLOCK_ERR_LOST);
    (void)drive_release(world_loop, lease, outcome);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}
