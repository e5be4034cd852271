/* Nodes that die, restart, hang and return: the others decide, and no key is left over. */
#include "world.h"

TESTS_WITH(world_five, world_end);

MANAGER_TEST(three_of_five_killed_says_so) {
    for (size_t dead = 0; dead < 3; dead++) {
        server_kill(&world_servers.at[dead]);
    }
    assert_is(drive_acquire(world_loop, manager, "job", TIMES(20000, 0), outcome), REDLOCK_ERR_NO_QUORUM);
    assert_null(outcome->lease);
    for (size_t dead = 0; dead < 3; dead++) {
        redlock_vote_kind vote = outcome_vote(outcome, dead);
        assert_true(vote == REDLOCK_VOTE_FAILED || vote == REDLOCK_VOTE_UNKNOWN);
        assert_string_not_equal(outcome_vote_error(outcome, dead), "");
        assert_contains(outcome->message, world_servers.at[dead].name);
    }
    assert_contains(outcome->message, "job");
    assert_true(world_wait_without_key("job", DRIVE_TIMEOUT_MS));
    for (size_t dead = 0; dead < 3; dead++) {
        server_restart(&world_servers.at[dead]);
    }
    for (size_t dead = 0; dead < 3; dead++) {
        assert_true(drive_reconnected(world_loop, manager, dead, 2));
    }
    redlock_lease *lease = world_acquire(manager, "job", 20000);
    world_release_all(lease, "job");
}

MANAGER_TEST(a_restarted_empty_node_needs_no_user_action) {
    redlock_lease *lease = world_acquire_all(manager, "survivor", 60000);
    server_kill(&world_servers.at[0]);
    server_restart(&world_servers.at[0]);
    assert_true(drive_reconnected(world_loop, manager, 0, 2));
    assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_OK);
    assert_int_not_equal(outcome_vote(outcome, 0), REDLOCK_VOTE_GRANTED);
    assert_false(server_has_key(&world_servers.at[0], "survivor")); /* without healing */
    world_release_all(lease, "survivor");
    lease = world_acquire(manager, "survivor", 60000);
    assert_true(world_wait_with_key("survivor", 5, DRIVE_TIMEOUT_MS));
    world_release_all(lease, "survivor");
}

MANAGER_TEST(scripts_flushed_on_every_node) {
    for (int extend = 0; extend < 2; extend++) {
        redlock_lease *lease = world_acquire(manager, "flushed", 60000);
        servers_say(&world_servers, 0, 5, "OK", "SCRIPT", "FLUSH");
        if (extend) {
            assert_is(drive_extend(world_loop, lease, 90000, outcome), REDLOCK_OK);
            assert_true(redlock_lease_validity_ms(lease) > 60000);
        }
        world_release_all(lease, "flushed");
    }
    servers_ask(&world_servers, 0, 5, "SCRIPT", "FLUSH");
    assert_is(drive_inspect(world_loop, manager, "flushed", outcome), REDLOCK_OK);
}

WORLD_TEST(three_of_five_paused_leave_no_key_once_they_resume) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    servers_each(&world_servers, 0, 3, server_pause);
    assert_is(drive_acquire(world_loop, manager, "late", TIMES(600000, 0), outcome), REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_UNKNOWN), 3);
    assert_contains(outcome->message, world_servers.at[0].name);
    assert_true(world_wait_without_key("late", DRIVE_TIMEOUT_MS));
    servers_each(&world_servers, 0, 3, server_resume);
    /* The SET that waited in the socket of the paused server runs now, and so does the release
     * behind it (R9). */
    for (size_t i = 0; i < 3; i++) {
        assert_true(world_calls(&world_servers.at[i], "set") >= 1);
    }
    assert_true(world_wait_without_key("late", DRIVE_TIMEOUT_MS));
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 5));
    redlock_lease *lease = world_acquire(manager, "late", 20000);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

static bool is_empty_of_owed(void *data) {
    return world_statistics(data).releases_owed == 0;
}

static bool is_owing(void *data) {
    return world_statistics(data).releases_owed == 1;
}

/* Three nodes behind proxies; on two of them the lock is taken by another client. */
static redlock_manager *behind_proxies(struct proxy **proxies, const char *resource, int64_t node_timeout_ms) {
    const char *uris[3];
    for (size_t i = 0; i < 3; i++) {
        proxies[i] = world_proxy(world_servers.at[i].port);
        uris[i] = proxy_uri(proxies[i]);
        if (i > 0) {
            assert_string_equal(server_ask(&world_servers.at[i], "SET", resource, "foreign"), "OK");
        }
    }
    return world_manager(uris, 3, node_timeout_ms);
}

WORLD_TEST(a_connection_cut_after_the_set_owes_a_release) {
    struct proxy *proxies[3];
    redlock_manager *manager = behind_proxies(proxies, "cut", PATIENT_MS);
    for (size_t i = 0; i < 3; i++) {
        proxy_hold(proxies[i], PROXY_REPLIES, true);
    }
    assert_is(redlock_acquire(manager, "cut", TIMES(600000, 0), NULL, outcome_collect, outcome), REDLOCK_OK);
    assert_true(world_wait_with_key("cut", 3, DRIVE_TIMEOUT_MS));
    proxy_cut_now(proxies[0], PROXY_RST);
    for (size_t i = 0; i < 3; i++) {
        proxy_hold(proxies[i], PROXY_REPLIES, false);
    }
    assert_true(outcome_wait(world_loop, outcome));
    assert_is(outcome->code, REDLOCK_ERR_CONTENDED);
    assert_true(world_wait_with_key("cut", 2, DRIVE_TIMEOUT_MS));
    assert_string_equal(server_ask(&world_servers.at[0], "GET", "cut"), "(nil)");
    assert_true(drive_until(world_loop, is_empty_of_owed, manager, DRIVE_TIMEOUT_MS));
    assert_int_equal(world_statistics(manager).releases_dropped, 0);
}

/* The last test, because it changes the servers. */
WORLD_TEST(a_release_reaches_a_node_that_was_down) {
    servers_stop(&world_servers);
    servers_start(&world_servers, 5, &(struct server_options){.append_only = true});
    redlock_manager *manager = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire_all(manager, "kept", 600000);
    server_kill(&world_servers.at[4]);
    world_release_all(lease, "kept");
    assert_true(drive_until(world_loop, is_owing, manager, DRIVE_TIMEOUT_MS));
    server_restart(&world_servers.at[4]);
    assert_true(world_wait_without_key("kept", DRIVE_TIMEOUT_MS));
    assert_true(drive_until(world_loop, is_empty_of_owed, manager, DRIVE_TIMEOUT_MS));
    assert_int_equal(world_statistics(manager).releases_dropped, 0);
}
