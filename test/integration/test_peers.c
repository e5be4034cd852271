/* Scenarios from the tests of other lock libraries. The name of each test begins with the name of
 * that library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static void set_foreign(struct server *server, const char *key) {
    assert_string_equal(server_ask(server, "SET", key, "foreign"), "OK");
}

TESTS_WITH(world_five, world_end);

WORLD_TEST(redsync_all_masks_of_foreign_keys_on_four_nodes) {
    redlock_manager *manager = world_manager(world_servers.uris, 4, PATIENT_MS);
    struct outcome *outcome = world_outcome();
    for (unsigned mask = 0; mask < 16; mask++) {
        char key[32];
        unsigned foreign = 0;
        snprintf(key, sizeof key, "mask-%u", mask);
        for (unsigned i = 0; i < 4; i++) {
            if (mask & (1U << i)) {
                set_foreign(&world_servers.at[i], key);
                foreign++;
            }
        }
        redlock_acquire_options options = world_acquire_options(20000, 0);
        int code = drive_acquire(world_loop, manager, key, &options, outcome);
        if (foreign <= 1) {
            assert_is(code, REDLOCK_OK);
            assert_true(world_wait_with_key(key, 4, DRIVE_TIMEOUT_MS));
            assert_is(drive_release(world_loop, outcome->lease, outcome), REDLOCK_OK);
        } else {
            assert_is(code, REDLOCK_ERR_CONTENDED);
            assert_null(outcome->lease);
            assert_true(outcome_votes(outcome, REDLOCK_VOTE_DENIED) >= 2);
        }
        assert_true(world_wait_with_key(key, foreign, DRIVE_TIMEOUT_MS));
        for (unsigned i = 0; i < 4; i++) {
            assert_string_equal(server_ask(&world_servers.at[i], "GET", key), mask & (1U << i) ? "foreign" : "(nil)");
        }
    }
}

WORLD_TEST(node_redlock_extends_beside_a_foreign_key_without_ttl) {
    redlock_manager *manager = world_manager(world_servers.uris, 3, PATIENT_MS);
    struct outcome *outcome = world_outcome();
    set_foreign(&world_servers.at[1], "stuck");
    redlock_lease *lease = world_acquire(manager, "stuck", 20000);
    for (int round = 1; round <= 3; round++) {
        int64_t ttl_ms = 20000 + 5000 * round, before_ms = support_now_ms();
        assert_is(drive_extend(world_loop, lease, ttl_ms, outcome), REDLOCK_OK);
        for (size_t i = 0; i < 3; i += 2) {
            int64_t left_ms = server_pttl_ms(&world_servers.at[i], "stuck");
            int64_t passed_ms = support_now_ms() - before_ms;
            /* Within 200 ms of the ttl, less the time that this machine took to look. */
            assert_in_range(left_ms, ttl_ms - passed_ms - 200, ttl_ms);
        }
        assert_string_equal(server_ask(&world_servers.at[1], "GET", "stuck"), "foreign");
        assert_int_equal(server_pttl_ms(&world_servers.at[1], "stuck"), -1);
    }
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    assert_true(world_wait_with_key("stuck", 1, DRIVE_TIMEOUT_MS));
    assert_string_equal(server_ask(&world_servers.at[1], "GET", "stuck"), "foreign");
}

struct calls_wanted {
    struct server *server;
    long long calls, calls_max;
};

static bool has_set_calls(void *data) {
    const struct calls_wanted *wanted = data;
    const long long calls = world_calls(wanted->server, "set");
    return calls >= wanted->calls && calls <= wanted->calls_max;
}

WORLD_TEST(node_redlock_counts_attempts_and_leaves_the_third_node_empty) {
    redlock_manager *manager = world_manager(world_servers.uris, 3, PATIENT_MS);
    struct outcome *outcome = world_outcome();
    set_foreign(&world_servers.at[0], "held");
    set_foreign(&world_servers.at[1], "held");
    for (int waits = 0; waits < 2; waits++) {
        redlock_acquire_options options = world_acquire_options(20000, waits ? 450 : 0);
        options.retry_delay_min_ms = options.retry_delay_max_ms = 100;
        options.order = REDLOCK_ORDER_NONE;
        long long sets_before = world_calls(&world_servers.at[2], "set");
        uint64_t attempts_before = world_statistics(manager).attempts;
        assert_is(drive_acquire(world_loop, manager, "held", &options, outcome), REDLOCK_ERR_CONTENDED);
        if (waits) {
            /* 0, 100, 200, 300, 400 ms, or fewer on a slow machine. */
            assert_in_range(outcome->attempts, 2, 5);
        } else {
            assert_int_equal(outcome->attempts, 1);
        }
        assert_int_equal(world_statistics(manager).attempts - attempts_before, outcome->attempts);
        /* The end of the wait ends an attempt that began just before. */
        for (size_t i = 0; i < 2; i++) {
            redlock_vote_kind vote = outcome_vote(outcome, i);
            assert_true(vote == REDLOCK_VOTE_DENIED || (waits && vote == REDLOCK_VOTE_PENDING));
        }
        redlock_vote_kind third = outcome_vote(outcome, 2);
        assert_true(third == REDLOCK_VOTE_GRANTED || third == REDLOCK_VOTE_PENDING);
        /* The last SET may still be on its way, with its release behind it. */
        const long long attempts = (long long)outcome->attempts;
        /* Until the connection has proven that it understands GET, each is sent twice. */
        struct calls_wanted wanted = {&world_servers.at[2], sets_before + attempts, sets_before + 2 * attempts};
        assert_true(drive_until(world_loop, has_set_calls, &wanted, DRIVE_TIMEOUT_MS));
        assert_true(world_wait_with_key("held", 2, DRIVE_TIMEOUT_MS));
        assert_string_equal(server_ask(&world_servers.at[2], "GET", "held"), "(nil)");
    }
}

/* One of ten clients that each take the same name a hundred times. */
struct locker {
    redlock_manager *manager;
    redlock_acquire_options options;
    int left, failures;
    int *holders, *most_holders, *unfinished;
};

static void locker_released(const redlock_result *result, void *data);

static void locker_acquired(const redlock_result *result, void *data) {
    struct locker *locker = data;
    if (redlock_result_code(result) != REDLOCK_OK) {
        locker->failures++;
        --*locker->unfinished;
        return;
    }
    if (++*locker->holders > *locker->most_holders) {
        *locker->most_holders = *locker->holders;
    }
    --*locker->holders; /* a rival may be granted as soon as the release is on its way */
    if (redlock_release(redlock_result_lease(result), locker_released, locker) != REDLOCK_OK) {
        locker->failures++;
    }
}

static void locker_ask(struct locker *locker) {
    if (redlock_acquire(locker->manager, "popular", &locker->options, NULL, locker_acquired, locker) != REDLOCK_OK) {
        locker->failures++;
        --*locker->unfinished;
    }
}

static void locker_released(const redlock_result *result, void *data) {
    struct locker *locker = data;
    if (redlock_result_code(result) != REDLOCK_OK) {
        locker->failures++;
    }
    if (--locker->left > 0) {
        locker_ask(locker);
    } else {
        --*locker->unfinished;
    }
}

static bool is_zero(void *data) {
    return *(int *)data == 0;
}

WORLD_TEST(rueidis_ten_lockers_take_one_name_a_hundred_times_each) {
    static struct locker lockers[10];
    static int holders, most_holders, unfinished;
    holders = most_holders = 0;
    unfinished = 10;
    for (size_t i = 0; i < 10; i++) {
        lockers[i] = (struct locker){.manager = world_manager(world_servers.uris, 3, PATIENT_MS),
                                     .options = world_acquire_options(60000, REDLOCK_WAIT_FOREVER),
                                     .left = 100,
                                     .holders = &holders,
                                     .most_holders = &most_holders,
                                     .unfinished = &unfinished};
        lockers[i].options.retry_delay_min_ms = 0;
        lockers[i].options.retry_delay_max_ms = 5;
    }
    for (size_t i = 0; i < 10; i++) {
        locker_ask(&lockers[i]);
    }
    assert_true(drive_until(world_loop, is_zero, &unfinished, 60000));
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(lockers[i].failures, 0);
        assert_int_equal(lockers[i].left, 0);
    }
    assert_int_equal(most_holders, 1);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

struct cancelled_waiters {
    int completed, wrong;
};

static void on_cancelled(const redlock_result *result, void *data) {
    struct cancelled_waiters *waiters = data;
    waiters->completed++;
    if (redlock_result_code(result) != REDLOCK_ERR_CANCELLED) {
        waiters->wrong++;
    }
}

static bool hundred_completed(void *data) {
    return ((struct cancelled_waiters *)data)->completed >= 100;
}

WORLD_TEST(rueidis_a_hundred_rounds_of_a_hundred_cancelled_waiters) {
    static struct cancelled_waiters waiters;
    redlock_manager *manager = world_manager(world_servers.uris, 3, PATIENT_MS);
    redlock_acquire_options options = world_acquire_options(60000, REDLOCK_WAIT_FOREVER);
    for (size_t i = 0; i < 3; i++) {
        set_foreign(&world_servers.at[i], "wanted");
    }
    for (int round = 0; round < 100; round++) {
        redlock_request *requests[100];
        waiters = (struct cancelled_waiters){0};
        for (size_t i = 0; i < 100; i++) {
            assert_is(redlock_acquire(manager, "wanted", &options, &requests[i], on_cancelled, &waiters), REDLOCK_OK);
        }
        for (int turns = round % 4; turns > 0; turns--) {
            /* Cancelled before the write, in flight, and between attempts. */
            ev_run(world_loop, EVRUN_NOWAIT);
        }
        assert_int_equal(waiters.completed, 0);
        for (size_t i = 0; i < 100; i++) {
            redlock_request_cancel(requests[i]);
        }
        assert_int_equal(waiters.completed, 0);
        assert_true(drive_until(world_loop, hundred_completed, &waiters, DRIVE_TIMEOUT_MS));
        assert_int_equal(waiters.completed, 100);
        assert_int_equal(waiters.wrong, 0);
    }
    assert_int_equal(world_statistics(manager).cancelled, 10000);
    assert_int_equal(world_statistics(manager).requests_pending, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(server_ask(&world_servers.at[i], "GET", "wanted"), "foreign");
    }
}

/* The first `up` of `count` nodes are there, the others refuse connections. */
static int acquire_with(size_t up, size_t count, const char *resource, struct outcome *outcome) {
    const char *uris[8];
    for (size_t i = 0; i < count; i++) {
        uris[i] = i < up ? world_servers.uris[i] : world_closed_uri();
    }
    redlock_manager *manager = world_manager(uris, count, PATIENT_MS);
    redlock_acquire_options options = world_acquire_options(20000, 0);
    int code = drive_acquire(world_loop, manager, resource, &options, outcome);
    if (code == REDLOCK_OK) {
        struct outcome *released = world_outcome();
        assert_is(drive_release(world_loop, outcome->lease, released), REDLOCK_OK);
    }
    world_close(manager);
    return code;
}

WORLD_TEST(redlock_net_needs_a_quorum_of_the_configured_nodes) {
    struct outcome *outcome = world_outcome();
    assert_is(acquire_with(3, 3, "three-of-three", outcome), REDLOCK_OK);
    assert_is(acquire_with(3, 5, "three-of-five", outcome), REDLOCK_OK);
    assert_is(acquire_with(0, 3, "none-of-three", outcome), REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_FAILED), 3);
    assert_is(acquire_with(3, 6, "three-of-six", outcome), REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_FAILED), 3);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

static bool all_ran(void *data) {
    struct outcome **racers = data;
    for (; *racers; racers++) {
        if ((*racers)->runs == 0) {
            return false;
        }
    }
    return true;
}

WORLD_TEST(redlock_net_of_three_racers_exactly_one_wins) {
    struct outcome *racers[4] = {NULL};
    for (size_t i = 0; i < 3; i++) {
        redlock_manager *manager = world_manager(world_servers.uris, 3, PATIENT_MS);
        redlock_acquire_options options = world_acquire_options(60000, 1500);
        options.retry_delay_min_ms = 1;
        options.retry_delay_max_ms = 30;
        racers[i] = world_outcome();
        assert_is(redlock_acquire(manager, "race", &options, NULL, outcome_collect, racers[i]), REDLOCK_OK);
    }
    assert_true(drive_until(world_loop, all_ran, racers, DRIVE_TIMEOUT_MS));
    int winners = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_true(racers[i]->code == REDLOCK_OK || racers[i]->code == REDLOCK_ERR_CONTENDED);
        winners += racers[i]->code == REDLOCK_OK;
    }
    assert_int_equal(winners, 1);
}

WORLD_TEST(redlock_net_two_seconds_held_for_four) {
    redlock_manager *manager = world_manager(world_servers.uris, 3, PATIENT_MS);
    struct outcome *outcome = world_outcome();
    struct loss *loss = world_loss();
    redlock_acquire_options options = world_acquire_options(2000, 0);
    options.auto_extend = true;
    options.on_lost = loss_collect;
    options.lost_data = loss;
    assert_is(drive_acquire(world_loop, manager, "kept", &options, outcome), REDLOCK_OK);
    redlock_lease *lease = outcome->lease;
    drive_for(world_loop, 4000);
    assert_int_equal(loss->runs, 0);
    assert_true(redlock_lease_validity_ms(lease) > 0);
    assert_true(world_statistics(manager).extends > 2);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    uint64_t extends = world_statistics(manager).extends;
    drive_for(world_loop, 1500);
    assert_int_equal(world_statistics(manager).extends, extends); /* none follows a release */
}

/* The best of several rounds shows what the library can do. A loaded machine may delay any one of
 * them. */
WORLD_TEST(redlock_net_a_rival_wins_soon_after_one_second_without_renewal) {
    redlock_manager *holder = world_manager(world_servers.uris, 3, PATIENT_MS);
    redlock_manager *rival = world_manager(world_servers.uris, 3, PATIENT_MS);
    struct outcome *outcome = world_outcome(), *released = world_outcome();
    int64_t best_ms = INT64_MAX;
    for (int round = 0; round < 20 && best_ms > 1200; round++) {
        redlock_acquire_options options = world_acquire_options(1000, DRIVE_TIMEOUT_MS);
        options.retry_delay_min_ms = 5;
        options.retry_delay_max_ms = 20;
        int64_t before_ms = support_now_ms();
        redlock_lease *lease = world_acquire(holder, "expiring", 1000);
        assert_is(drive_acquire(world_loop, rival, "expiring", &options, outcome), REDLOCK_OK);
        assert_int_equal(redlock_lease_validity_ms(lease), 0);
        /* Not before the end of the lease at ttl - drift, when the loser deletes its keys. */
        assert_true(outcome->at_ms - before_ms >= 1000 - 12 - 1);
        if (outcome->at_ms - before_ms < best_ms) {
            best_ms = outcome->at_ms - before_ms;
        }
        redlock_lease *won = outcome->lease;
        assert_is(drive_release(world_loop, won, released), REDLOCK_OK);
        assert_is(drive_release(world_loop, lease, released), REDLOCK_ERR_LOST);
    }
    assert_in_range(best_ms, 987, 1200);
}

WORLD_TEST(pottery_of_simultaneous_single_tries_at_most_one_wins) {
    redlock_manager *managers[10];
    struct outcome *tries[11] = {NULL};
    for (size_t i = 0; i < 10; i++) {
        managers[i] = world_manager(world_servers.uris, 5, PATIENT_MS);
        tries[i] = world_outcome();
    }
    for (size_t count = 1; count <= 10; count++) {
        redlock_acquire_options options = world_acquire_options(60000, 0);
        char resource[32];
        snprintf(resource, sizeof resource, "tries-%zu", count);
        for (size_t i = 0; i < count; i++) {
            outcome_clear(tries[i]);
            assert_is(redlock_acquire(managers[i], resource, &options, NULL, outcome_collect, tries[i]), REDLOCK_OK);
        }
        for (size_t i = 0; i < count; i++) {
            assert_true(outcome_wait(world_loop, tries[i]));
        }
        int winners = 0;
        for (size_t i = 0; i < count; i++) {
            assert_true(tries[i]->code == REDLOCK_OK || tries[i]->code == REDLOCK_ERR_CONTENDED);
            winners += tries[i]->code == REDLOCK_OK;
        }
        assert_true(winners <= 1);
        if (count == 1) {
            assert_int_equal(winners, 1);
        }
        for (size_t i = 0; i < count; i++) {
            if (tries[i]->code == REDLOCK_OK) {
                assert_is(redlock_release(tries[i]->lease, NULL, NULL), REDLOCK_OK);
            }
        }
        assert_true(world_wait_without_key(resource, DRIVE_TIMEOUT_MS));
    }
}

static const char *first_refusal(const struct outcome *outcome) {
    for (size_t i = 0; i < redlock_result_vote_count(outcome->copy); i++) {
        if (outcome_vote(outcome, i) == REDLOCK_VOTE_DENIED) {
            return outcome_vote_error(outcome, i);
        }
    }
    return "(none denied)";
}

WORLD_TEST(redsync_and_rslock_distinguish_missing_from_foreign) {
    redlock_manager *manager = world_manager(world_servers.uris, 3, PATIENT_MS);
    struct outcome *outcome = world_outcome();
    /* The keys are changed at the nodes, so that the nodes and not our clock must show it: first by
     * release, then by extend. */
    for (int extend = 0; extend < 2; extend++) {
        for (int foreign = 0; foreign < 2; foreign++) {
            redlock_lease *lease = world_acquire(manager, "gone", 60000);
            assert_true(world_wait_with_key("gone", 3, DRIVE_TIMEOUT_MS));
            for (size_t i = 0; i < 3; i++) {
                if (foreign) {
                    set_foreign(&world_servers.at[i], "gone");
                } else {
                    assert_string_equal(server_ask(&world_servers.at[i], "DEL", "gone"), "1");
                }
            }
            assert_is(extend ? drive_extend(world_loop, lease, 60000, outcome)
                             : drive_release(world_loop, lease, outcome),
                      REDLOCK_ERR_LOST);
            assert_true(outcome_votes(outcome, REDLOCK_VOTE_DENIED) >= 2);
            assert_contains(first_refusal(outcome), foreign ? "another token" : "missing");
            assert_contains(outcome->message, foreign ? "another token" : "missing");
            if (extend) {
                assert_int_equal(redlock_lease_validity_ms(lease), 0);
                drive_release(world_loop, lease, outcome);
            }
            for (size_t i = 0; foreign && i < 3; i++) {
                assert_string_equal(server_ask(&world_servers.at[i], "GET", "gone"), "foreign");
                server_ask(&world_servers.at[i], "DEL", "gone");
            }
        }
    }
}

static bool has_expired(void *data) {
    return redlock_lease_validity_ms(data) == 0;
}

WORLD_TEST(redsync_and_rslock_release_and_extend_after_expiry) {
    redlock_manager *manager = world_manager(world_servers.uris, 3, PATIENT_MS);
    struct outcome *outcome = world_outcome();
    redlock_lease *lease = world_acquire(manager, "short", 300);
    assert_true(drive_until(world_loop, has_expired, lease, DRIVE_TIMEOUT_MS));
    drive_for(world_loop, 5); /* the validity is rounded down */
    assert_is(drive_extend(world_loop, lease, 10000, outcome), REDLOCK_ERR_LOST);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_LOST);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

WORLD_TEST(redsync_and_rslock_a_ttl_of_one_ms_is_too_slow) {
    redlock_manager *manager = world_manager(world_servers.uris, 3, PATIENT_MS);
    struct outcome *outcome = world_outcome();
    redlock_acquire_options options = world_acquire_options(1, 0);
    assert_is(drive_acquire(world_loop, manager, "blink", &options, outcome), REDLOCK_ERR_TOO_SLOW);
    assert_null(outcome->lease);
    assert_int_equal(world_statistics(manager).too_slow, 1);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}
