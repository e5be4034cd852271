/* The time of a lease: extend, renewal, its deadline when every node hangs, and its loss. */
#include "world.h"

static bool is_lost(void *data) {
    return ((struct loss *)data)->runs > 0;
}

static bool has_expired(void *data) {
    return redlock_lease_validity_ms(data) == 0;
}

TESTS_WITH(world_five, world_end);

MANAGER_TEST(validity_follows_the_formula) {
    int64_t before_ms = support_now_ms();
    redlock_lease *lease = world_acquire(manager, "formula", 100000);
    int64_t validity_ms = redlock_lease_validity_ms(lease), after_ms = support_now_ms();
    /* ttl - elapsed - (ttl / 100 + 2) */
    assert_in_range(validity_ms, 100000 - 1002 - (after_ms - before_ms) - 1, 100000 - 1002);
    int64_t pttl_ms = INT64_MAX;
    for (size_t i = 0; i < 5; i++) {
        if (server_has_key(&world_servers.at[i], "formula") &&
            server_pttl_ms(&world_servers.at[i], "formula") < pttl_ms) {
            pttl_ms = server_pttl_ms(&world_servers.at[i], "formula");
        }
    }
    assert_true(redlock_lease_validity_ms(lease) < pttl_ms);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

/* R12: an extension to less than the time left is granted and does not shorten the lease. */
MANAGER_TEST(extend_lengthens_and_never_shortens) {
    redlock_lease *lease = world_acquire_all(manager, "stretch", 60000);
    static const int64_t ttls_ms[] = {120000, 30000, 200000};
    int64_t start_ms = 0, ttl_ms = 0; /* of the longest ttl */
    for (size_t i = 0; i < 3; i++) {
        int64_t before_ms = support_now_ms();
        if (ttls_ms[i] > ttl_ms) {
            start_ms = before_ms;
            ttl_ms = ttls_ms[i];
        }
        assert_is(drive_extend(world_loop, lease, ttls_ms[i], outcome), REDLOCK_OK);
        int64_t validity_ms = redlock_lease_validity_ms(lease), passed_ms = support_now_ms() - start_ms;
        int64_t most_ms = ttl_ms - ttl_ms / 100 - 2;
        assert_in_range(validity_ms, most_ms - passed_ms - 1, most_ms);
        size_t longest = 0; /* by now a quorum has surely applied the extension */
        for (size_t k = 0; k < 5; k++) {
            int64_t left_ms = server_pttl_ms(&world_servers.at[k], "stretch");
            longest += left_ms <= ttl_ms && left_ms >= ttl_ms - (support_now_ms() - start_ms) - 1;
        }
        assert_true(longest >= 3);
    }
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

WORLD_TEST(a_failed_extend_keeps_the_deadline) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    redlock_lease *lease = world_acquire(manager, "torn", 60000);
    servers_each(&world_servers, 0, 3, server_pause);
    static const int64_t ttls_ms[] = {120000, 20000};
    for (size_t i = 0; i < 2; i++) {
        int64_t before_ms = support_now_ms(), validity_ms = redlock_lease_validity_ms(lease);
        assert_is(drive_extend(world_loop, lease, ttls_ms[i], outcome), REDLOCK_ERR_NO_QUORUM);
        int64_t left_ms = redlock_lease_validity_ms(lease), passed_ms = support_now_ms() - before_ms;
        assert_in_range(left_ms, validity_ms - passed_ms - 2, validity_ms);
    }
    servers_each(&world_servers, 0, 3, server_resume);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 5));
    assert_is(drive_extend(world_loop, lease, 200000, outcome), REDLOCK_OK);
    assert_true(redlock_lease_validity_ms(lease) > 120000);
    world_release_all(lease, NULL);
}

MANAGER_TEST(one_extend_at_a_time_and_a_release_replaces_it) {
    struct outcome *first = world_outcome(), *second = world_outcome(), *released = world_outcome();
    redlock_lease *lease = world_acquire(manager, "busy", 60000);
    assert_is(redlock_extend(lease, 60000, outcome_collect, first), REDLOCK_OK);
    assert_is(redlock_extend(lease, 60000, outcome_collect, second), REDLOCK_ERR_BUSY);
    assert_is(redlock_release(lease, outcome_collect, released), REDLOCK_OK);
    assert_true(outcome_wait(world_loop, released));
    assert_true(outcome_wait(world_loop, first));
    assert_is(first->code, REDLOCK_ERR_CANCELLED);
    assert_is(released->code, REDLOCK_OK);
    assert_int_equal(second->runs, 0);
    /* No extend came after the release. */
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

MANAGER_TEST(no_extend_after_the_deadline_even_if_the_keys_live) {
    for (int turns = 0; turns < 2; turns++) {
        struct loss *loss = world_loss();
        redlock_acquire_options options = world_acquire_options(1500, 0);
        options.on_lost = loss_collect;
        options.lost_data = loss;
        assert_is(drive_acquire(world_loop, manager, "overdue", &options, outcome), REDLOCK_OK);
        redlock_lease *lease = outcome->lease;
        /* Somebody makes the keys persistent. Our own clock still ends the lease. */
        servers_ask(&world_servers, 0, 5, "PERSIST", "overdue");
        if (turns) {
            assert_true(drive_until(world_loop, is_lost, loss, DRIVE_TIMEOUT_MS));
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

static redlock_lease *acquire_renewed(redlock_manager *manager, const char *resource, int64_t ttl_ms, int64_t cap_ms,
                                      struct loss *loss) {
    struct outcome *outcome = world_outcome();
    redlock_acquire_options options = world_acquire_options(ttl_ms, 0);
    options.auto_extend = true;
    options.auto_extend_max_ms = cap_ms;
    options.on_lost = loss_collect;
    options.lost_data = loss;
    if (drive_acquire(world_loop, manager, resource, &options, outcome) != REDLOCK_OK) {
        fail_msg("%s", outcome->message);
    }
    return outcome->lease;
}

struct watched {
    redlock_lease *lease;
    struct loss *loss;
    int64_t deadline_ms; /* the latest that it had */
};

/* The clock is read first: the deadline is not later than this, however slow the machine is. */
static bool is_lost_at_its_deadline(void *data) {
    struct watched *watched = data;
    const int64_t now_ms = support_now_ms();
    const int64_t left_ms = watched->loss->runs == 0 ? redlock_lease_validity_ms(watched->lease) : 0;
    if (left_ms > 0 && now_ms + left_ms > watched->deadline_ms) {
        watched->deadline_ms = now_ms + left_ms;
    }
    return watched->loss->runs > 0;
}

MANAGER_TEST(renewal_is_capped) {
    struct loss *loss = world_loss();
    redlock_lease *lease = acquire_renewed(manager, "capped", 1500, 2000, loss);
    const int64_t left_ms = redlock_lease_validity_ms(lease);
    const int64_t first_ms = support_now_ms() + left_ms;
    struct watched watched = {.lease = lease, .loss = loss};
    assert_true(drive_until(world_loop, is_lost_at_its_deadline, &watched, DRIVE_TIMEOUT_MS));
    /* Each renewal moves the deadline by as much as has passed since the acquire, never more than
     * the cap. Each of both times is rounded by less than 2 ms. */
    assert_true(watched.deadline_ms - first_ms <= 2000 + 2);
    assert_int_equal(loss->validity_ms, 0);
    uint64_t extends = world_statistics(manager).extends;
    assert_true(extends >= 1);
    drive_for(world_loop, 1000);
    assert_int_equal(loss->runs, 1);
    assert_int_equal(world_statistics(manager).extends, extends);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
}

/* Returns how many ms after the deadline on_lost ran, rounded up; negative if it ran before. */
static int64_t lateness_when_all_hang(redlock_manager *manager) {
    struct outcome *outcome = world_outcome();
    struct loss *loss = world_loss();
    redlock_lease *lease = acquire_renewed(manager, "hung", 2500, 0, loss);
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

MANAGER_TEST(lost_early_when_most_nodes_deny_it) {
    struct loss *loss = world_loss();
    redlock_lease *lease = acquire_renewed(manager, "stolen", 3000, 0, loss);
    assert_true(world_wait_with_key("stolen", 5, DRIVE_TIMEOUT_MS));
    servers_ask(&world_servers, 0, 3, "SET", "stolen", "thief");
    assert_true(drive_until(world_loop, is_lost, loss, DRIVE_TIMEOUT_MS));
    assert_int_equal(loss->validity_ms, 0);
    assert_int_equal(loss->runs, 1);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
    /* The keys of the thief stay, ours are gone. */
    assert_true(world_wait_with_key("stolen", 3, DRIVE_TIMEOUT_MS));
    assert_string_equal(server_ask(&world_servers.at[0], "GET", "stolen"), "thief");
}

static bool are_two_down(void *data) {
    size_t ready = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        redlock_node_info info = {.size = sizeof info};
        ready += redlock_manager_node(data, i, &info) == REDLOCK_OK && info.state == REDLOCK_NODE_READY;
    }
    return ready == world_servers.count - 2;
}

/* Two nodes were down and never had the key. One of the other three loses it: then the lease is
 * lost. */
MANAGER_TEST(lost_early_when_too_few_can_have_it) {
    struct loss *loss = world_loss();
    redlock_acquire_options options = world_acquire_options(60000, 0);
    options.on_lost = loss_collect;
    options.lost_data = loss;
    server_kill(&world_servers.at[3]);
    server_kill(&world_servers.at[4]);
    assert_true(drive_until(world_loop, are_two_down, manager, DRIVE_TIMEOUT_MS));
    assert_is(drive_acquire(world_loop, manager, "thin", &options, outcome), REDLOCK_OK);
    redlock_lease *lease = outcome->lease;
    assert_string_equal(server_ask(&world_servers.at[0], "FLUSHALL"), "OK");
    assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_ERR_LOST);
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    assert_int_equal(loss->runs, 1);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
    assert_true(world_wait_without_key("thin", DRIVE_TIMEOUT_MS));
}

WORLD_TEST(renewal_outlives_a_pause_shorter_than_the_ttl) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    struct loss *loss = world_loss();
    redlock_lease *lease = acquire_renewed(manager, "pause", 8000, 0, loss);
    servers_each(&world_servers, 0, 3, server_pause);
    drive_for(world_loop, 4500); /* past a renewal at a third, and its timeout */
    assert_true(redlock_lease_validity_ms(lease) > 0);
    uint64_t failed = world_statistics(manager).extends_failed;
    assert_true(failed >= 1);
    servers_each(&world_servers, 0, 3, server_resume);
    drive_for(world_loop, 5000); /* past the first deadline */
    assert_int_equal(loss->runs, 0);
    assert_true(redlock_lease_validity_ms(lease) > 0);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
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
