/* Waiters on real nodes that cannot keep a queue for a while, or cannot tell them of a grant. */
#include <sys/resource.h>
#include <unistd.h>

#include <redlock/election.h>

#include "world.h"

#define LONG_MS 60000
/* A place is asked for again within that time; and what a loaded machine adds. */
#define AGAIN_MS (10000 + 200 + 5000)

static struct rlimit descriptors;

/* --- What nodes say --- */

struct length {
    const char *key;
    long long waiters;
};

static bool is_long(void *data) {
    const struct length *length = data;
    for (size_t i = 0; i < world_servers.count; i++) {
        if (atoll(server_ask(&world_servers.at[i], "ZCARD", length->key)) != length->waiters) {
            return false;
        }
    }
    return true;
}

static void wait_for_length(const char *key, long long waiters) {
    struct length length = {key, waiters};
    if (!drive_until(world_loop, is_long, &length, AGAIN_MS)) {
        fail_msg("not %lld places in %s", waiters, key);
    }
}

static void set_rights(const char *word) {
    servers_say(&world_servers, 0, world_servers.count, "OK", "ACL", "SETUSER", "default", word);
}

static bool is_logged(void *words) {
    return strstr(world_log.text, words) != NULL;
}

static void wait_for_log(const char *words) {
    char copy[128];
    (void)snprintf(copy, sizeof copy, "%s", words);
    if (!drive_until(world_loop, is_logged, copy, DRIVE_TIMEOUT_MS)) {
        fail_msg("the log does not say \"%s\"", words);
    }
}

static bool listens_nowhere(void *data) {
    for (size_t i = 0; i < world_servers.count; i++) {
        const redlock_node_info info = world_node_info(data, i);
        if (!info.queue_refused || info.listens) {
            return false;
        }
    }
    return true;
}

static struct outcome *wait_for_lock(redlock_manager *manager, const char *resource, int64_t ttl_ms) {
    struct outcome *outcome = world_outcome();
    assert_is(redlock_acquire(manager, resource, TIMES(ttl_ms, REDLOCK_WAIT_FOREVER), NULL, outcome_collect, outcome),
              REDLOCK_OK);
    return outcome;
}

static void assert_gets_it(struct outcome *outcome) {
    assert_true(outcome_wait(world_loop, outcome));
    assert_is(outcome->code, REDLOCK_OK);
    assert_is(redlock_release(outcome->lease, NULL, NULL), REDLOCK_OK);
    outcome->lease = NULL;
}

/* --- Rights that come back --- */

/* An acquire that polls takes a place again, and so does one that begins then. */
static void assert_queues_again(const char *forbids, const char *permits, const char *says) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *manager = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire(holder, "line", LONG_MS), *other = world_acquire(holder, "next", LONG_MS);
    struct outcome *polling = wait_for_lock(manager, "line", LONG_MS);
    wait_for_length("line:wait", 1);
    set_rights(forbids);
    wait_for_log(says);
    drive_for(world_loop, 1000); /* it polls on */
    set_rights(permits);
    struct outcome *fresh = wait_for_lock(manager, "next", LONG_MS);
    wait_for_length("line:wait", 1);
    wait_for_length("next:wait", 1);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_is(redlock_release(other, NULL, NULL), REDLOCK_OK);
    assert_gets_it(polling);
    assert_gets_it(fresh);
    assert_true(world_statistics(manager).handed_over >= 2);
}

static int setup(void **state);
static int teardown(void **state);
TESTS_WITH(world_three, world_end);
#define WAITERS_TEST(name) TEST_WITH(name, setup, teardown)

WAITERS_TEST(who_could_not_queue_for_a_while_queues_again) {
    assert_queues_again("-zadd", "+zadd", "too few nodes can keep a queue");
}

WAITERS_TEST(who_could_not_subscribe_for_a_while_queues_again) {
    if (strcmp(server_ask(&world_servers.at[0], "ACL", "SETUSER", "default", "allchannels"), "OK") != 0) {
        skip(); /* before Redis 6.2 */
    }
    assert_queues_again("resetchannels", "allchannels", "too few nodes can keep a queue");
}

static void count_reigns(const redlock_election_event *event, void *data) {
    *(unsigned *)data += event->kind == REDLOCK_ELECTION_LEADING;
}

static bool is_above_zero(void *data) {
    return *(unsigned *)data > 0;
}

WAITERS_TEST(candidates_who_could_not_queue_for_a_while_lead_again) {
    redlock_election *elections[3];
    static unsigned first, next; /* the teardown ends the elections */
    redlock_election_options options;
    redlock_election_options_default(&options);
    first = next = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_is(redlock_elect(world_manager_all(PATIENT_MS), "post", &options, count_reigns, i == 0 ? &first : &next,
                                &elections[i]),
                  REDLOCK_OK);
        assert_true(drive_until(world_loop, is_above_zero, &first, DRIVE_TIMEOUT_MS));
    }
    wait_for_length("post:wait", 2);
    set_rights("-zadd");
    wait_for_log("too few nodes can keep a queue");
    wait_for_length("post:wait", 0);
    set_rights("+zadd");
    wait_for_length("post:wait", 2);
    assert_is(redlock_election_resign(elections[0]), REDLOCK_OK); /* who queues is next */
    assert_true(drive_until(world_loop, is_above_zero, &next, DRIVE_TIMEOUT_MS));
    wait_for_length("post:wait", 1);
    for (size_t i = 0; i < 3; i++) {
        assert_is(redlock_election_end(elections[i]), REDLOCK_OK);
    }
}

/* --- Clients that cannot be told --- */

/* This program may have the descriptors that it has now, and no more. */
static void take_all_descriptors(void) {
    struct rlimit none_free = descriptors;
    const int free_now = dup(STDERR_FILENO);
    assert_int_equal(close(free_now), 0);
    none_free.rlim_cur = (rlim_t)free_now;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_free), 0);
}

WAITERS_TEST(without_a_second_connection_it_polls_and_says_so) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *manager = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire(holder, "line", LONG_MS);
    wait_for_length("line:wait", 0); /* the connections of the test are open now */
    take_all_descriptors();
    struct outcome *first = wait_for_lock(manager, "line", LONG_MS);
    wait_for_log("3 tries in a row gave no second connection");
    assert_true(drive_until(world_loop, listens_nowhere, manager, DRIVE_TIMEOUT_MS));
    assert_true(is_logged((char *)(uintptr_t) "too few nodes can keep a queue"));
    assert_true(is_logged((char *)(uintptr_t) "limits of open files"));
    assert_string_not_equal(world_node_info(manager, 0).queue_error, "");
    wait_for_length("line:wait", 0); /* nobody waits for what cannot be told */
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_gets_it(first);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
    assert_true(drive_until(world_loop, world_listens_everywhere, manager, DRIVE_TIMEOUT_MS));
    assert_string_equal(world_node_info(manager, 0).queue_error, "");
    lease = world_acquire(holder, "line", LONG_MS);
    struct outcome *second = wait_for_lock(manager, "line", LONG_MS);
    wait_for_length("line:wait", 1);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_gets_it(second);
}

/* The main connections live. Who is not subscribed is passed over, until its next refresh. */
WAITERS_TEST(a_subscription_that_dies_alone_costs_no_more_than_a_refresh) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *manager = world_manager_all(PATIENT_MS);
    for (int i = 0; i < 5; i++) {
        redlock_lease *lease = world_acquire(holder, "line", LONG_MS);
        struct outcome *outcome = wait_for_lock(manager, "line", LONG_MS);
        wait_for_length("line:wait", 1);
        assert_true(drive_until(world_loop, world_listens_everywhere, manager, DRIVE_TIMEOUT_MS));
        servers_ask(&world_servers, 0, world_servers.count, "CLIENT", "KILL", "TYPE", "pubsub");
        const int64_t released_ms = support_now_ms();
        assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
        assert_gets_it(outcome);
        /* 2.5 s and a tenth; and what a loaded machine adds */
        assert_in_range(outcome->at_ms - released_ms, 0, 2750 + 5000);
    }
}

static int setup(void **state) {
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
    return world_setup(state);
}

/* Also after a test that failed half-way. */
static int teardown(void **state) {
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
    set_rights("+@all");
    for (size_t i = 0; i < world_servers.count; i++) { /* unknown before Redis 6.2 */
        (void)server_ask(&world_servers.at[i], "ACL", "SETUSER", "default", "allchannels");
    }
    return world_teardown(state);
}
