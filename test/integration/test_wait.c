/* Waiting for a lock that others hold: contention, deadlines, cancelling. */
#include "world.h"

static void foreign_everywhere(const char *key) {
    servers_say(&world_servers, 0, world_servers.count, "OK", "SET", key, "foreign");
}

TESTS_WITH(world_five, world_end);

WORLD_TEST(waits_until_the_holder_releases) {
    redlock_manager *first = world_manager_all(PATIENT_MS), *second = world_manager_all(PATIENT_MS);
    struct outcome *waiter = world_outcome(), *released = world_outcome();
    redlock_lease *lease = world_acquire(first, "queue", 60000);
    assert_is(redlock_acquire(second, "queue", TIMES(60000, DRIVE_TIMEOUT_MS), NULL, outcome_collect, waiter),
              REDLOCK_OK);
    drive_for(world_loop, 400);
    assert_int_equal(waiter->runs, 0);
    assert_is(drive_release(world_loop, lease, released), REDLOCK_OK);
    assert_true(outcome_wait(world_loop, waiter));
    assert_is(waiter->code, REDLOCK_OK);
    assert_true(waiter->attempts > 1);
    assert_is(drive_release(world_loop, waiter->lease, released), REDLOCK_OK);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

MANAGER_TEST(a_wait_ends_at_its_deadline) {
    foreign_everywhere("stuck");
    int64_t before_ms = support_now_ms();
    assert_is(drive_acquire(world_loop, manager, "stuck", TIMES(60000, 700), outcome), REDLOCK_ERR_CONTENDED);
    int64_t waited_ms = outcome->at_ms - before_ms;
    /* The wait may end early if no further attempt fits in, but not at once, and never late. */
    assert_in_range(waited_ms, 700 - 200 - 1, 700 + 2000);
    assert_true(outcome->attempts >= 2);
    assert_int_equal(world_statistics(manager).contended, 1);
}

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

MANAGER_TEST(waits_for_ever_until_cancelled) {
    struct outcome *waiter = world_outcome();
    redlock_request *request = NULL;
    foreign_everywhere("never");
    assert_is(redlock_acquire(manager, "never", TIMES(60000, REDLOCK_WAIT_FOREVER), &request, outcome_collect, waiter),
              REDLOCK_OK);
    drive_for(world_loop, 600);
    assert_int_equal(waiter->runs, 0);
    redlock_request_cancel(request);
    redlock_request_cancel(request);
    assert_int_equal(waiter->runs, 0);
    assert_true(outcome_wait(world_loop, waiter));
    assert_is(waiter->code, REDLOCK_ERR_CANCELLED);
    assert_true(waiter->attempts > 1);
    drive_for(world_loop, 300);
    assert_int_equal(waiter->runs, 1);
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

#define CROWD 12

struct crowd {
    int holders, most_holders, served;
};

static void on_served(const redlock_result *result, void *data) {
    struct crowd *crowd = data;
    if (redlock_result_code(result) == REDLOCK_OK) {
        crowd->served++;
    }
}

static void on_entered(const redlock_result *result, void *data) {
    struct crowd *crowd = data;
    if (redlock_result_code(result) != REDLOCK_OK) {
        return;
    }
    if (++crowd->holders > crowd->most_holders) {
        crowd->most_holders = crowd->holders;
    }
    assert_true(redlock_lease_validity_ms(redlock_result_lease(result)) > 0);
    crowd->holders--;
    redlock_release(redlock_result_lease(result), on_served, crowd);
}

static bool all_served(void *data) {
    return ((struct crowd *)data)->served == CROWD;
}

WORLD_TEST(contending_managers_are_all_served_one_at_a_time) {
    static struct crowd crowd;
    crowd = (struct crowd){0};
    for (int i = 0; i < CROWD; i++) {
        redlock_manager *manager = world_manager_all(PATIENT_MS);
        assert_is(redlock_acquire(manager, "door", TIMES(60000, REDLOCK_WAIT_FOREVER), NULL, on_entered, &crowd),
                  REDLOCK_OK);
    }
    assert_true(drive_until(world_loop, all_served, &crowd, 40000));
    assert_int_equal(crowd.most_holders, 1);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}
