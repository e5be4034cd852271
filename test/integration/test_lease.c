/* The end of a lease by its own clock: when the keys live on, and when every node hangs. And what
 * an inspection returns. */
#include "world.h"

static bool has_expired(void *data) {
    return redlock_lease_validity_ms(data) == 0;
}

TESTS_WITH(world_five, world_end);

MANAGER_TEST(no_extend_after_the_deadline_even_if_the_keys_live) {
    for (int turns = 0; turns < 2; turns++) {
        struct loss *loss = world_loss();
        redlock_acquire_options options = world_loss_options(1500, 0, loss);
        assert_is(drive_acquire(world_loop, manager, "overdue", &options, outcome), REDLOCK_OK);
        redlock_lease *lease = outcome->lease;
        /* Somebody makes the keys persistent. Our own clock still ends the lease. */
        servers_ask(&world_servers, 0, 5, "PERSIST", "overdue");
        if (turns) {
            assert_true(drive_until(world_loop, loss_came, loss, DRIVE_TIMEOUT_MS));
        }
        while (!has_expired(lease)) {
            support_pause_ms(5);
        }
        /* The validity is rounded down. Unless `turns`, no timer of the library has run yet. */
        support_pause_ms(5);
        assert_int_equal(loss->runs, turns);
        assert_is(redlock_extend(lease, 60000, outcome_collect, outcome), REDLOCK_ERR_LOST);
        assert_int_equal(redlock_lease_validity_ms(lease), 0);
        drive_for(world_loop, 20);
        assert_int_equal(world_statistics(manager).extends, 0); /* nothing was sent */
        assert_int_equal(loss->runs, 1);
        assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
        /* Our keys are deleted anyway. */
        assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    }
}

/* Returns how many ms after the deadline on_lost ran, rounded up; negative if it ran before. */
static int64_t lateness_when_all_hang(redlock_manager *manager) {
    struct outcome *outcome = world_outcome();
    struct loss *loss = world_loss();
    redlock_acquire_options options = world_loss_options(2500, 0, loss);
    options.auto_extend = true;
    redlock_lease *lease = world_acquire_with(manager, "hung", &options);
    servers_each(&world_servers, 0, 5, server_pause);
    /* The deadline of the lease on CLOCK_BOOTTIME, from its validity, which is rounded down. A
     * renewal that was under way at the pause may move it, so the last one counts. */
    int64_t deadline_ns = 0;
    while (loss->runs == 0) {
        int64_t now_ns = support_now_ns(), validity_ms = redlock_lease_validity_ms(lease);
        if (validity_ms > 0) {
            deadline_ns = now_ns + (validity_ms + 1) * 1000000;
        }
        /* Only the timers of the library wake it: no node answers. */
        ev_run(world_loop, EVRUN_ONCE);
        assert_true(support_now_ns() < now_ns + INT64_C(20000000000));
    }
    assert_int_equal(loss->validity_ms, 0);
    assert_true(strlen(loss->reason) > 10);
    servers_each(&world_servers, 0, 5, server_resume);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 5));
    drive_for(world_loop, 50);
    assert_int_equal(loss->runs, 1);
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    return (loss->at_ns - deadline_ns + 999999) / 1000000;
}

/* The best of several rounds shows what the library does. A loaded machine may delay any one of
 * them. */
WORLD_TEST(lost_once_and_in_time_when_every_node_hangs) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    int64_t best_ms = INT64_MAX;
    for (int round = 0; round < 20 && best_ms > 5; round++) {
        int64_t late_ms = lateness_when_all_hang(manager);
        best_ms = late_ms < best_ms ? late_ms : best_ms;
    }
    assert_true(best_ms <= 5);
}

MANAGER_TEST(inspect_returns_the_holder_of_each_node) {
    assert_is(drive_inspect(world_loop, manager, "seen", outcome), REDLOCK_OK);
    assert_true(outcome_votes(outcome, REDLOCK_VOTE_DENIED) >= 3);
    redlock_lease *lease = world_acquire_all(manager, "seen", 60000);
    server_ask(&world_servers.at[0], "SET", "seen", "foreign");
    server_ask(&world_servers.at[1], "DEL", "seen");
    server_ask(&world_servers.at[1], "HSET", "seen", "field", "value");
    assert_is(drive_inspect(world_loop, manager, "seen", outcome), REDLOCK_OK);
    size_t ours = 0;
    for (size_t i = 0; i < 5; i++) {
        redlock_vote vote = {.size = sizeof vote};
        assert_is(redlock_result_vote(outcome->copy, i, &vote), REDLOCK_OK);
        if (vote.kind != REDLOCK_VOTE_GRANTED) {
            continue; /* not waited for */
        }
        if (i >= 2) {
            assert_string_equal(vote.holder, redlock_lease_token(lease));
            assert_in_range(vote.holder_ttl_ms, 1, 60000);
            ours++;
        } else {
            assert_string_not_equal(vote.holder, redlock_lease_token(lease));
            assert_int_equal(vote.holder_ttl_ms, -1);
        }
    }
    assert_true(ours >= 1);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    /* Of another type: not ours. */
    assert_string_equal(server_ask(&world_servers.at[1], "TYPE", "seen"), "hash");
}
