/* The restart guard: nodes that may have forgotten locks do not vote on an acquire, and results say
 * so and for how long. All else works. */
#include <ftw.h>

#include "world.h"

#define TTL_MS       30000
#define TTL_MAX_MS   60000 /* a quarantine longer than any test */
#define SHORT_MAX_MS 1500  /* a quarantine that a test waits for */

static redlock_manager *guarded(redlock_restart_guard guard, int64_t ttl_max_ms) {
    redlock_manager_options options = world_options();
    options.restart_guard = guard;
    options.ttl_max_ms = ttl_max_ms;
    return world_manager_with(&options);
}

/* Kills the server, which forgets its keys unless it has an AOF, and waits until the manager has
 * connected again. */
static void restart(redlock_manager *manager, size_t index) {
    uint64_t connects = world_node_info(manager, index).connects;
    server_kill(&world_servers.at[index]);
    server_restart(&world_servers.at[index]);
    assert_true(drive_reconnected(world_loop, manager, index, connects + 1));
}

static void assert_quarantined(redlock_manager *manager, size_t index, const char *why) {
    redlock_node_info info = world_node_info(manager, index);
    assert_is(info.state, REDLOCK_NODE_READY);
    assert_true(info.quarantine_ms > 0);
    assert_contains(info.quarantine, why);
}

static void assert_free(redlock_manager *manager, size_t index) {
    redlock_node_info info = world_node_info(manager, index);
    assert_int_equal(info.quarantine_ms, 0);
    assert_string_equal(info.quarantine, "");
}

/* "no vote for 57 s": a number of seconds, no longer than the quarantine. */
static void assert_tells_seconds(const char *text, int64_t ttl_max_ms) {
    static const char words[] = "no vote for ";
    const char *found = strstr(text, words);
    char *end = NULL;
    if (!found) {
        fail_msg("no seconds in: %s", text);
    }
    double seconds = strtod(found + strlen(words), &end);
    assert_true(seconds > 0 && seconds <= (double)ttl_max_ms * 1.01 / 1000 + 2);
    assert_int_equal(strncmp(end, " s: ", 4), 0);
}

static void acquire_and_release(redlock_manager *manager, const char *resource) {
    struct outcome *outcome = world_outcome();
    redlock_lease *lease = world_acquire(manager, resource, 1000);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

TESTS_WITH(world_three, world_end);

WORLD_TEST(observed_a_restarted_node_abstains_and_says_for_how_long) {
    redlock_manager *manager = guarded(REDLOCK_RESTART_GUARD_OBSERVED, TTL_MAX_MS);
    redlock_acquire_options options = world_acquire_options(TTL_MS, 0);
    acquire_and_release(manager, "door");
    restart(manager, 0);
    assert_quarantined(manager, 0, "it restarted");
    assert_in_range(world_node_info(manager, 0).quarantine_ms, 1, TTL_MAX_MS + TTL_MAX_MS / 100 + 2);
    assert_contains(world_log.text, "it restarted");
    assert_int_equal(world_statistics(manager).quarantines, 1);

    /* The others are a quorum. */
    assert_is(drive_acquire(world_loop, manager, "door", &options, outcome), REDLOCK_OK);
    assert_is(outcome_vote(outcome, 0), REDLOCK_VOTE_ABSTAINED);
    assert_tells_seconds(outcome_vote_error(outcome, 0), TTL_MAX_MS);
    redlock_lease *lease = outcome->lease;
    world_release_all(lease, "door");

    /* Without one of them there is no quorum, and the message says why. */
    server_kill(&world_servers.at[1]);
    assert_is(drive_acquire(world_loop, manager, "door", &options, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_is(outcome_vote(outcome, 0), REDLOCK_VOTE_ABSTAINED);
    assert_tells_seconds(outcome->message, TTL_MAX_MS);
    assert_contains(outcome->message, "it restarted, and may have forgotten locks");
    assert_contains(outcome->message, world_servers.at[0].name);
    assert_false(server_has_key(&world_servers.at[0], "door"));
}

WORLD_TEST(a_new_connection_to_the_same_run_changes_nothing) {
    redlock_manager *manager = guarded(REDLOCK_RESTART_GUARD_OBSERVED, TTL_MAX_MS);
    uint64_t connects = world_node_info(manager, 0).connects;
    server_ask(&world_servers.at[0], "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    assert_true(drive_reconnected(world_loop, manager, 0, connects + 1));
    assert_free(manager, 0);
    server_kill(&world_servers.at[1]);
    acquire_and_release(manager, "door");
}

WORLD_TEST(a_quarantine_lasts_for_ttl_max_and_ends) {
    redlock_manager *manager = guarded(REDLOCK_RESTART_GUARD_OBSERVED, SHORT_MAX_MS);
    struct outcome *waited = world_outcome();
    int64_t before_ms = support_now_ms();
    restart(manager, 0);
    server_kill(&world_servers.at[1]);
    assert_is(drive_acquire(world_loop, manager, "door", TIMES(SHORT_MAX_MS, REDLOCK_WAIT_FOREVER), waited),
              REDLOCK_OK);
    assert_true(waited->at_ms - before_ms >= SHORT_MAX_MS); /* the quarantine began after that */
    assert_true(server_has_key(&world_servers.at[0], "door"));
    redlock_lease *lease = waited->lease;
    assert_free(manager, 0);
    int code = drive_release(world_loop, lease, waited);
    /* A short ttl, on a slow machine. */
    assert_true(code == REDLOCK_OK || code == REDLOCK_ERR_LOST);
}

static bool is_up_for_long(void *data) {
    const char *info = server_ask(data, "INFO", "server"), *found = strstr(info, "uptime_in_seconds:");
    return found && atoll(found + strlen("uptime_in_seconds:")) >= 6;
}

/* A node that has been up for longer than any lock lives has forgotten none. Its clock agrees with
 * the other clocks. */
WORLD_TEST(strict_nodes_that_have_been_up_for_longer_are_trusted) {
    for (size_t i = 0; i < 3; i++) {
        assert_true(drive_until(world_loop, is_up_for_long, &world_servers.at[i], DRIVE_TIMEOUT_MS));
    }
    redlock_manager *manager = guarded(REDLOCK_RESTART_GUARD_STRICT, 1000);
    for (size_t i = 0; i < 3; i++) {
        assert_free(manager, i);
    }
    acquire_and_release(manager, "door");
}

static int two_and_one_that_saves(UNUSED void **state) {
    servers_start(&world_servers, 2, NULL);
    servers_add(&world_servers, &(struct server_options){.append_only = true});
    return 0;
}

TESTS_WITH(two_and_one_that_saves, world_end);

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *position) {
    (void)status;
    (void)type;
    (void)position;
    return remove(path);
}

/* The server says appendonly yes and appendfsync always, before and after. With its disk it has
 * forgotten nothing, without it everything, and nothing that it says shows the difference. */
WORLD_TEST(a_node_that_syncs_always_may_have_lost_its_disk) {
    redlock_manager *manager = guarded(REDLOCK_RESTART_GUARD_OBSERVED, TTL_MAX_MS);
    for (int lost = 0; lost <= 1; lost++) {
        struct server *server = &world_servers.at[2];
        uint64_t connects = world_node_info(manager, 2).connects;
        assert_string_equal(server_ask(server, "SET", "kept", "x"), "OK");
        server_kill(server);
        if (lost) {
            char path[sizeof server->directory + 16];
            snprintf(path, sizeof path, "%s/appendonlydir", server->directory);
            assert_int_equal(nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
        }
        server_restart(server);
        assert_int_equal(server_has_key(server, "kept"), !lost);
        assert_true(drive_reconnected(world_loop, manager, 2, connects + 1));
        assert_quarantined(manager, 2, "it restarted");
        redlock_manager *strict = guarded(REDLOCK_RESTART_GUARD_STRICT, TTL_MAX_MS);
        assert_quarantined(strict, 2, "met for the first time");
        world_close(strict);
    }
    assert_int_equal(world_statistics(manager).quarantines, 2);
}
