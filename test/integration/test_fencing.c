/* Fencing tokens: they rise from lease to lease, for any holder, also if a minority of nodes
 * forgets or lies; and the errors when there is no token. */
#include <inttypes.h>
#include <time.h>

#include "world.h"

#define TTL_MS    60000
#define HOUR_MS   INT64_C(3600000)
#define EXPIRY_MS (3 * HOUR_MS)
#define DIGITS    20

static redlock_acquire_options fencing_options(void) {
    redlock_acquire_options options = world_acquire_options(TTL_MS, 0);
    options.fencing = true;
    return options;
}

static redlock_lease *acquire_fenced(redlock_manager *manager, const char *resource) {
    redlock_acquire_options options = fencing_options();
    options.wait_timeout_ms = PATIENT_MS;
    return world_acquire_with(manager, resource, &options);
}

/* The token of one more lease. */
static uint64_t next_token(redlock_manager *manager, const char *resource) {
    struct outcome *outcome = world_outcome();
    redlock_lease *lease = acquire_fenced(manager, resource);
    uint64_t token = redlock_lease_fence(lease);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    return token;
}

/* The tokens of so many leases rise, above this. Returns the last. */
static uint64_t assert_rise(redlock_manager *manager, const char *resource, int leases, uint64_t last) {
    for (int i = 0; i < leases; i++) {
        const uint64_t token = next_token(manager, resource);
        assert_true(token > last);
        last = token;
    }
    return last;
}

static uint64_t wall_token(int64_t ahead_ms) {
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    return ((uint64_t)now.tv_sec * 1000000 + (uint64_t)(now.tv_nsec / 1000) + (uint64_t)ahead_ms * 1000) * 1000;
}

/* 0 for none. */
static uint64_t counter_at(struct server *server, const char *key) {
    const char *text = server_ask(server, "GET", key);
    if (strcmp(text, "(nil)") == 0) {
        return 0;
    }
    assert_int_equal(strlen(text), DIGITS);
    assert_int_equal(strspn(text, "0123456789"), DIGITS);
    return strtoull(text, NULL, 10);
}

static void set_counter(struct server *server, const char *key, uint64_t number) {
    char text[DIGITS + 1];
    snprintf(text, sizeof text, "%0*" PRIu64, DIGITS, number);
    assert_string_equal(server_ask(server, "SET", key, text), "OK");
}

struct counter_wanted {
    const char *key;
    uint64_t number;
    size_t count;
};

static bool has_counters(void *data) {
    const struct counter_wanted *wanted = data;
    size_t count = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        count += counter_at(&world_servers.at[i], wanted->key) == wanted->number;
    }
    return count >= wanted->count;
}

static void wait_for_counters(const char *key, uint64_t number, size_t count) {
    struct counter_wanted wanted = {.key = key, .number = number, .count = count};
    assert_true(drive_until(world_loop, has_counters, &wanted, DRIVE_TIMEOUT_MS));
}

TESTS_WITH(world_five, world_end);

MANAGER_TEST(tokens_rise_from_lease_to_lease) {
    const uint64_t last = assert_rise(manager, "rising", 50, wall_token(-60000));
    assert_true(last < wall_token(60000)); /* of the wall clock, as docs/fencing.md says */
    assert_true(last <= INT64_MAX);
    wait_for_counters("rising:fence", last, 5);
    redlock_statistics statistics = world_statistics(manager);
    assert_int_equal(statistics.fenced_fast, 50); /* there is no other client */
    assert_int_equal(statistics.fenced_slow, 0);
}

MANAGER_TEST(the_counter_outlives_the_lock) {
    uint64_t token = next_token(manager, "left");
    wait_for_counters("left:fence", token, 5);
    assert_true(world_wait_without_key("left", DRIVE_TIMEOUT_MS));
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(server_pttl_ms(&world_servers.at[i], "left:fence"), -1);
    }
    assert_true(next_token(manager, "other") > 0);
    wait_for_counters("left:fence", token, 5); /* each resource has a counter of its own */
}

static bool has_tried_twice(void *data) {
    return world_statistics(data).attempts >= 2;
}

/* A client that is refused learns the number of the holder, and then gets a larger one. */
WORLD_TEST(a_client_that_waited_gets_a_larger_token) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *waiter = world_manager_all(PATIENT_MS);
    struct outcome *waited = world_outcome(), *released = world_outcome();
    redlock_acquire_options options = fencing_options();
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    for (size_t i = 0; i < 5; i++) {
        /* So that clocks alone do not do it. */
        set_counter(&world_servers.at[i], "queue:fence", wall_token(HOUR_MS));
    }
    redlock_lease *lease = acquire_fenced(holder, "queue");
    uint64_t token = redlock_lease_fence(lease);
    assert_true(token > wall_token(HOUR_MS / 2));
    assert_is(redlock_acquire(waiter, "queue", &options, NULL, outcome_collect, waited), REDLOCK_OK);
    /* And so it was refused once. */
    assert_true(drive_until(world_loop, has_tried_twice, waiter, DRIVE_TIMEOUT_MS));
    assert_is(drive_release(world_loop, lease, released), REDLOCK_OK);
    assert_true(outcome_wait(world_loop, waited));
    assert_is(waited->code, REDLOCK_OK);
    assert_true(redlock_lease_fence(waited->lease) > token);
    assert_is(drive_release(world_loop, waited->lease, released), REDLOCK_OK);
}

MANAGER_TEST(tokens_rise_after_a_minority_forgot) {
    /* Above all clocks: only the remaining counters make it rise. */
    uint64_t far = wall_token(HOUR_MS);
    for (size_t i = 0; i < 5; i++) {
        set_counter(&world_servers.at[i], "flushed:fence", far);
    }
    uint64_t last = next_token(manager, "flushed");
    assert_true(last > far);
    for (size_t round = 0; round < 5; round++) {
        wait_for_counters("flushed:fence", last, 5);
        for (size_t i = 0; i < 2; i++) {
            assert_string_equal(server_ask(&world_servers.at[(round + i) % 5], "FLUSHALL"), "OK");
        }
        uint64_t token = next_token(manager, "flushed");
        assert_true(token > last);
        last = token;
    }
}

WORLD_TEST(a_quorum_is_enough_for_a_token) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    server_pause(&world_servers.at[0]);
    server_kill(&world_servers.at[1]);
    uint64_t first = next_token(manager, "minority");
    for (size_t i = 2; i < 5; i++) {
        set_counter(&world_servers.at[i], "minority:fence", wall_token(HOUR_MS));
    }
    uint64_t second = next_token(manager, "minority"); /* also on the slow path */
    assert_true(second > first);
    assert_true(second > wall_token(HOUR_MS / 2));
}

WORLD_TEST(the_suffix_and_the_expiry_of_counters) {
    redlock_manager_options options = world_options();
    options.key_prefix = "app:";
    options.fence_suffix = "/count";
    options.fence_expiry_ms = EXPIRY_MS;
    redlock_manager *manager = world_manager_with(&options);
    uint64_t token = next_token(manager, "door");
    wait_for_counters("app:door/count", token, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_in_range(server_pttl_ms(&world_servers.at[i], "app:door/count"), EXPIRY_MS - DRIVE_TIMEOUT_MS,
                        EXPIRY_MS);
        assert_int_equal(server_key_count(&world_servers.at[i]), 1);
    }
    assert_true(next_token(manager, "door") > token);
}

/* If counters expire, a number far ahead of a node's clock would be valid for longer than the
 * counter that it is compared with. */
WORLD_TEST(with_an_expiry_a_number_far_ahead_is_refused) {
    redlock_manager_options options = world_options();
    options.fence_expiry_ms = EXPIRY_MS;
    redlock_manager *manager = world_manager_with(&options);
    redlock_acquire_options acquire = fencing_options();
    for (size_t i = 0; i < 5; i++) {
        set_counter(&world_servers.at[i], "future:fence", wall_token(2 * HOUR_MS));
    }
    assert_is(drive_acquire(world_loop, manager, "future", &acquire, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_contains(outcome->message, "over an hour ahead of the clock");
    assert_true(world_wait_without_key("future", DRIVE_TIMEOUT_MS)); /* the attempt leaves no key */
    for (size_t i = 0; i < 5; i++) {
        set_counter(&world_servers.at[i], "future:fence", wall_token(HOUR_MS / 2));
    }
    assert_true(next_token(manager, "future") > wall_token(HOUR_MS / 4));
}

/* The counter is a key of its own. A user who may not touch it gets an error that says so, and no
 * lock. */
WORLD_TEST(a_user_who_may_not_touch_the_counter) {
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(
            server_ask(&world_servers.at[i], "ACL", "SETUSER", "locker", "reset", "on", ">pw", "~door", "+@all"), "OK");
    }
    redlock_manager *manager = world_manager_as("locker:pw@");
    redlock_acquire_options options = fencing_options();
    assert_is(drive_acquire(world_loop, manager, "door", &options, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_contains(outcome->message, "NOPERM");
    assert_true(outcome_votes(outcome, REDLOCK_VOTE_FAILED) >= 3);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    redlock_lease *lease = world_acquire(manager, "door", TTL_MS); /* without a token it may */
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    world_close(manager);
    servers_say(&world_servers, 0, 5, "1", "ACL", "DELUSER", "locker");
}

MANAGER_TEST(a_key_that_holds_something_else_is_not_overwritten) {
    redlock_acquire_options options = fencing_options();
    servers_ask(&world_servers, 0, 3, "SET", "taken:fence", "somebody's");
    assert_is(drive_acquire(world_loop, manager, "taken", &options, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_contains(outcome->message, "fencing counter holds something else");
    assert_true(world_wait_without_key("taken", DRIVE_TIMEOUT_MS));
    assert_string_equal(server_ask(&world_servers.at[0], "GET", "taken:fence"), "somebody's");
    /* The counter key is itself a lock: resource "taken:fence" is held while "taken" is asked
     * for. */
    servers_ask(&world_servers, 0, 3, "DEL", "taken:fence");
    redlock_lease *lease = world_acquire(manager, "taken:fence", TTL_MS);
    assert_int_not_equal(drive_acquire(world_loop, manager, "taken", &options, outcome), REDLOCK_OK);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

/* --- Counters that no client made --- */

WORLD_TEST(an_absurd_counter_of_a_node_does_not_spread) {
    redlock_manager *managers[2] = {world_manager_all(PATIENT_MS), world_manager_all(PATIENT_MS)};
    const uint64_t lies[] = {INT64_MAX, INT64_MAX - 1, UINT64_C(7258118400000000999), UINT64_C(7226582400000000000),
                             wall_token(48 * HOUR_MS)};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        char resource[32], key[40];
        snprintf(resource, sizeof resource, "lie-%zu", i);
        snprintf(key, sizeof key, "%s:fence", resource);
        set_counter(&world_servers.at[i], key, lies[i]);
        for (size_t m = 0; m < 2; m++) {
            assert_true(assert_rise(managers[m], resource, 20, wall_token(-HOUR_MS)) < wall_token(HOUR_MS));
        }
        for (size_t node = 0; node < 5; node++) {
            const uint64_t counter = counter_at(&world_servers.at[node], key);
            assert_true(node == i ? counter >= lies[i] : counter < wall_token(HOUR_MS));
        }
    }
}

/* An older client had a clock in the year 2150. The counters that it left on most or all nodes do
 * not keep others out. */
MANAGER_TEST(counters_of_a_wrong_clock_are_continued) {
    const uint64_t far = UINT64_C(5680281600000000123);
    for (size_t nodes = 3; nodes <= 5; nodes++) {
        char resource[32], key[40];
        snprintf(resource, sizeof resource, "wrong-%zu", nodes);
        snprintf(key, sizeof key, "%s:fence", resource);
        for (size_t i = 0; i < nodes; i++) {
            set_counter(&world_servers.at[i], key, far + i * 1000000);
        }
        assert_true(assert_rise(manager, resource, 20, far) < far + UINT64_C(1000000000));
    }
}
