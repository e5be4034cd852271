/* Waiting for the lock while nodes hang or are down, or while the loop stands still. */
#include "world.h"

TESTS_WITH(world_five, world_end);

WORLD_TEST(a_wait_ends_at_its_deadline_when_every_node_hangs) {
    redlock_manager *manager = world_manager_all(60000);
    servers_each(&world_servers, 0, 5, server_pause);
    int64_t before_ms = support_now_ms();
    int code = drive_acquire(world_loop, manager, "hung", TIMES(600000, 500), outcome);
    assert_is(code, REDLOCK_ERR_NO_QUORUM);
    assert_in_range(outcome->at_ms - before_ms, 499, 500 + 2000);
    servers_each(&world_servers, 0, 5, server_resume);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

MANAGER_TEST(waits_for_nodes_that_are_down) {
    struct outcome *waiter = world_outcome(), *released = world_outcome();
    servers_each(&world_servers, 0, 3, server_kill);
    assert_is(redlock_acquire(manager, "outage", TIMES(60000, DRIVE_TIMEOUT_MS), NULL, outcome_collect, waiter),
              REDLOCK_OK);
    drive_for(world_loop, 300);
    assert_int_equal(waiter->runs, 0);
    servers_each(&world_servers, 0, 3, server_restart);
    assert_true(outcome_wait(world_loop, waiter));
    assert_is(waiter->code, REDLOCK_OK);
    assert_is(drive_release(world_loop, waiter->lease, released), REDLOCK_OK);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

/* The nodes answer at once, but the program is busy outside of the loop for longer than the node
 * timeout. */
WORLD_TEST(a_late_loop_does_not_make_answers_late) {
    redlock_manager *manager = world_manager_all(1000);
    for (int i = 0; i < 3; i++) {
        assert_is(redlock_acquire(manager, "slow-host", NULL, NULL, outcome_collect, outcome), REDLOCK_OK);
        ev_run(world_loop, EVRUN_NOWAIT);
        support_pause_ms(2000);
        assert_true(outcome_wait(world_loop, outcome));
        if (outcome->code != REDLOCK_OK) {
            fail_msg("%s", outcome->message);
        }
        redlock_lease *lease = outcome->lease;
        assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
        outcome_clear(outcome);
    }
}
