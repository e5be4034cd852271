/* The clock guard, with servers whose wall clocks the test moves: what a jump does to held leases
 * and to later votes. */
#include "backends/clock.h"
#include "world.h"

#define TTL_MS     60000
#define TTL_MAX_MS 120000
#define JUMP_MS    30000 /* less than the ttl: the key itself stays */

static char folder[] = "/tmp/redlock-clocks-XXXXXX";
static struct chaos_clock *clocks[5];

/* Starts the server, for the first time or again, with a wall clock that the test sets. */
static void start_with_clock(size_t index) {
    char path[sizeof folder + 16];
    snprintf(path, sizeof path, "%s/%zu", folder, index);
    if (!clocks[index]) {
        clocks[index] = chaos_clock_open(path);
    }
    if (!clocks[index] || setenv(CHAOS_CLOCK_ENV, path, 1) != 0 || setenv("LD_PRELOAD", CLOCK_SHIM, 1) != 0) {
        support_fatal("no clock in %s", path);
    }
    if (index == world_servers.count) {
        servers_add(&world_servers, NULL);
    } else {
        server_restart(&world_servers.at[index]);
    }
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv(CHAOS_CLOCK_ENV);
}

static int start_with_clocks(size_t count) {
    for (size_t i = 0; i < count; i++) {
        start_with_clock(i);
    }
    return 0;
}

static int three_with_clocks(UNUSED void **state) {
    if (!mkdtemp(folder)) {
        return -1;
    }
    support_remove_tree_at_death(folder);
    return start_with_clocks(3);
}

static int five_with_clocks(UNUSED void **state) {
    return start_with_clocks(5);
}

static int end_with_clocks(void **state) {
    for (size_t i = 0; i < world_servers.count; i++) {
        chaos_clock_close(clocks[i]);
        clocks[i] = NULL;
    }
    int result = world_end(state);
    world_servers.count = 0;
    return result;
}

/* All servers run, and their clocks are right. */
static int set_up(void **state) {
    for (size_t i = 0; i < world_servers.count; i++) {
        if (world_servers.at[i].pid == 0) {
            start_with_clock(i);
        }
        chaos_clock_jump(clocks[i], -chaos_clock_read_ns(clocks[i], 0) / 1000000);
    }
    return world_setup(state);
}

static redlock_manager *watching(void) {
    redlock_manager_options options = world_options();
    options.clock_guard = true;
    options.ttl_max_ms = TTL_MAX_MS;
    return world_manager_with(&options);
}

static redlock_lease *acquire_watched(redlock_manager *manager, const char *resource, struct loss *loss) {
    const redlock_acquire_options options = world_loss_options(TTL_MS, 0, loss);
    return world_acquire_with(manager, resource, &options);
}

TESTS_WITH(three_with_clocks, end_with_clocks);
#define CLOCK_TEST(name) TEST_HAS(name, set_up, world_teardown, NULL, (world_outcome()), UNUSED struct outcome *outcome)

CLOCK_TEST(steady_clocks_change_nothing) {
    redlock_manager *manager = watching();
    struct loss *loss = world_loss();
    redlock_lease *lease = acquire_watched(manager, "door", loss);
    drive_for(world_loop, 2500); /* over several readings */
    assert_is(drive_extend(world_loop, lease, TTL_MS, outcome), REDLOCK_OK);
    assert_int_equal(loss->runs, 0);
    assert_int_equal(world_statistics(manager).clock_jumps, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(world_node_info(manager, i).quarantine_ms, 0);
    }
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

CLOCK_TEST(a_lease_on_a_bare_quorum_is_lost_at_once) {
    redlock_manager *manager = watching();
    struct loss *loss = world_loss();
    const char *name = world_servers.at[1].name;
    server_kill(&world_servers.at[2]);
    redlock_lease *lease = acquire_watched(manager, "door", loss);
    assert_true(world_wait_with_key("door", 2, DRIVE_TIMEOUT_MS));
    chaos_clock_jump(clocks[1], JUMP_MS);
    /* Long before its deadline. */
    assert_true(drive_until(world_loop, loss_came, loss, DRIVE_TIMEOUT_MS));
    assert_int_equal(loss->validity_ms, 0);
    if (!strstr(loss->reason, name) || !strstr(loss->reason, "clock jumped forward by ")) {
        fail_msg("names neither node nor jump: %s", loss->reason);
    }
    redlock_node_info info = world_node_info(manager, 1);
    assert_true(info.quarantine_ms > 0);
    assert_contains(info.quarantine, "clock jumped forward by ");
    assert_int_equal(world_statistics(manager).clock_jumps, 1);
    assert_int_equal(world_statistics(manager).quarantines, 1);
    assert_int_equal(world_statistics(manager).lost, 1);
    assert_contains(world_log.text, "it says ");
    assert_contains(world_log.text, "of our CLOCK_BOOTTIME");
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
    assert_int_equal(loss->runs, 1);
}

CLOCK_TEST(a_node_whose_clock_has_jumped_casts_no_vote) {
    redlock_manager *manager = watching();
    redlock_acquire_options options = world_acquire_options(TTL_MS, 0);
    chaos_clock_jump(clocks[0], JUMP_MS);
    server_kill(&world_servers.at[1]);
    /* Seen in an earlier reading, or in the answer with the vote. */
    assert_is(drive_acquire(world_loop, manager, "door", &options, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(world_statistics(manager).clock_jumps, 1);
    start_with_clock(1);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
    assert_true(world_wait_without_key("door", DRIVE_TIMEOUT_MS));
    assert_is(drive_acquire(world_loop, manager, "door", &options, outcome), REDLOCK_OK);
    assert_is(outcome_vote(outcome, 0), REDLOCK_VOTE_ABSTAINED);
    assert_contains(outcome_vote_error(outcome, 0), "clock jumped forward by ");
    assert_contains(outcome_vote_error(outcome, 0), "no vote for ");
    redlock_lease *lease = outcome->lease;
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

TESTS_WITH(five_with_clocks, end_with_clocks);

/* A has the lock on nodes 0, 1 and 2, and two of these jump. Again and again, new clients that have
 * read no clock ask for the lock, because the order in which the nodes greet them differs. The two
 * must never be a majority of the clocks that are known first. */
CLOCK_TEST(two_of_five_that_are_ahead_let_nobody_in) {
    redlock_manager *first = world_manager_all(PATIENT_MS);
    server_kill(&world_servers.at[3]);
    server_kill(&world_servers.at[4]);
    redlock_lease *lease = world_acquire(first, "door", TTL_MS);
    assert_true(world_wait_with_key("door", 3, DRIVE_TIMEOUT_MS));
    start_with_clock(3);
    start_with_clock(4);
    chaos_clock_jump(clocks[0], 2 * TTL_MS);
    chaos_clock_jump(clocks[1], 2 * TTL_MS);
    for (int round = 0; round < 20; round++) {
        redlock_manager *second = watching();
        assert_int_not_equal(drive_acquire(world_loop, second, "door", TIMES(TTL_MS, 0), outcome), REDLOCK_OK);
        assert_is(outcome_vote(outcome, 0), REDLOCK_VOTE_ABSTAINED);
        assert_is(outcome_vote(outcome, 1), REDLOCK_VOTE_ABSTAINED);
        assert_is(outcome_vote(outcome, 2), REDLOCK_VOTE_DENIED);
        assert_contains(world_node_info(second, 1).quarantine, "ahead of the other nodes'");
        for (size_t i = 2; i < 5; i++) {
            assert_int_equal(world_node_info(second, i).quarantine_ms, 0);
        }
        world_close(second);
    }
    assert_true(redlock_lease_validity_ms(lease) > 0);
    (void)drive_release(world_loop, lease, outcome);
}

/* The control: what happens without the guard. */
CLOCK_TEST(without_the_guard_the_lease_outlives_its_key) {
    redlock_manager *first = world_manager_all(PATIENT_MS), *second = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire(first, "door", TTL_MS);
    /* three are enough for the acquire */
    assert_true(world_wait_with_key("door", 5, DRIVE_TIMEOUT_MS));
    for (size_t i = 0; i < 3; i++) {
        chaos_clock_jump(clocks[i], 2 * TTL_MS);
    }
    /* A server may see the jump one command late. */
    assert_true(world_wait_with_key("door", 2, DRIVE_TIMEOUT_MS));
    redlock_lease *other = world_acquire(second, "door", TTL_MS);
    assert_true(redlock_lease_validity_ms(lease) > 0 && redlock_lease_validity_ms(other) > 0);
    assert_is(drive_release(world_loop, other, outcome), REDLOCK_OK);
    assert_int_not_equal(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}
