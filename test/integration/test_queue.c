/* Waiting in a queue on real nodes: order, lost pushes, nodes that forget or go away, strangers. */
#include "world.h"

#define LONG_MS 60000
#define CROWD   100

/* Who was served, in which order. A waiter releases as soon as it holds. */
struct line {
    int served, order[1024], holders, most_holders;
    char tickets[1024][16 + 1];
    struct waiter {
        struct line *line;
        int number;
    } waiters[1024];
};

static struct line line;

static void on_turn(const redlock_result *result, void *data) {
    const struct waiter *waiter = data;
    char message[512];
    if (redlock_result_code(result) != REDLOCK_OK) {
        redlock_result_message(result, message, sizeof message);
        fail_msg("waiter %d: %s", waiter->number, message);
    }
    memcpy(line.tickets[line.served], redlock_lease_token(redlock_result_lease(result)), 16);
    line.order[line.served++] = waiter->number;
    line.holders++;
    line.most_holders = line.holders > line.most_holders ? line.holders : line.most_holders;
    line.holders--;
    assert_is(redlock_release(redlock_result_lease(result), NULL, NULL), REDLOCK_OK);
}

static void queue_up(redlock_manager *manager, const char *resource, int number, int64_t ttl_ms) {
    redlock_acquire_options options = world_acquire_options(ttl_ms, REDLOCK_WAIT_FOREVER);
    line.waiters[number] = (struct waiter){&line, number};
    assert_is(redlock_acquire(manager, resource, &options, NULL, on_turn, &line.waiters[number]), REDLOCK_OK);
}

struct length {
    const char *key;
    long long waiters;
    size_t nodes; /* that must say so */
};

static bool is_long(void *data) {
    const struct length *length = data;
    size_t like = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        struct server *server = &world_servers.at[i];
        if (server->pid == 0 || server->paused) {
            continue;
        }
        like += atoll(server_ask(server, "ZCARD", length->key)) == length->waiters;
    }
    return like >= length->nodes;
}

/* Until so many wait for "line" at all nodes that run. */
static void wait_for_length(long long waiters, size_t nodes) {
    struct length length = {"line:wait", waiters, nodes};
    if (!drive_until(world_loop, is_long, &length, DRIVE_TIMEOUT_MS)) {
        fail_msg("not %lld waiters on %zu nodes", waiters, nodes);
    }
}

static bool has_served(void *data) {
    return line.served >= *(const int *)data;
}

static void assert_served(int count) {
    if (!drive_until(world_loop, has_served, &count, 2 * DRIVE_TIMEOUT_MS)) {
        fail_msg("%d of %d were served", line.served, count);
    }
    assert_int_equal(line.most_holders, 1);
}

/* The tickets of different managers are as exact as their readings of the nodes' clocks, and on a
 * loaded machine these may be wrong by more than the time between two waiters. */
static void assert_in_order(int count) {
    assert_served(count);
    for (int i = 1; i < count; i++) {
        assert_true(strcmp(line.tickets[i - 1], line.tickets[i]) < 0);
    }
}

static int setup(void **state) {
    memset(&line, 0, sizeof line);
    return world_setup(state);
}

static bool are_subscribed(void *data) {
    const struct length *length = data;
    size_t like = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        struct server *server = &world_servers.at[i];
        if (server->pid != 0 && !server->paused) {
            const char *channels = strstr(server_ask(server, "INFO", "stats"), "pubsub_channels:");
            like += atoll(channels + strlen("pubsub_channels:")) == length->waiters;
        }
    }
    return like >= length->nodes;
}

/* Who cannot be told yet is passed over. */
static void wait_for_subscriptions(long long managers, size_t nodes) {
    struct length length = {NULL, managers, nodes};
    if (!drive_until(world_loop, are_subscribed, &length, DRIVE_TIMEOUT_MS)) {
        fail_msg("not %lld managers with a subscription on %zu nodes", managers, nodes);
    }
}

/* Each waiter queues up when those before it are in the queue of every node, and can be told. */
static void queue_up_in_order(redlock_manager **managers, int count, int64_t ttl_ms, size_t nodes) {
    for (int i = 0; i < count; i++) {
        queue_up(managers[i], "line", i, ttl_ms);
        wait_for_length(i + 1, nodes);
        wait_for_subscriptions(i + 1, nodes);
        wait_for_length(i + 1, nodes);
    }
}

static void managers_of(redlock_manager **managers, int count) {
    for (int i = 0; i < count; i++) {
        managers[i] = world_manager_all(PATIENT_MS);
    }
}

TESTS_WITH(world_five, world_end);
#define FRESH_TEST(name) TEST_HAS(name, setup, world_teardown, NULL, (world_outcome()), UNUSED struct outcome *outcome)

FRESH_TEST(who_came_first_is_served_first) {
    redlock_manager *managers[5], *holder = world_manager_all(PATIENT_MS);
    managers_of(managers, 5);
    redlock_lease *lease = world_acquire(holder, "line", LONG_MS);
    queue_up_in_order(managers, 5, LONG_MS, 5);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_in_order(5);
    assert_true(world_wait_without_key("line", DRIVE_TIMEOUT_MS));
    assert_int_equal(world_statistics(managers[0]).handed_over, 1);
    assert_int_equal(world_statistics(managers[4]).queued, 1);
}

static redlock_manager *manager_named(const char *holder) {
    redlock_manager_options options = world_options();
    options.holder = holder;
    return world_manager_with(&options);
}

/* Tokens sort by their tickets, whatever text follows. Nobody takes such a holder for another
 * library, which would be polled. */
FRESH_TEST(texts_of_holders_change_no_order) {
    static const char *const holders[] = {"~", NULL, "web-3:4711",
                                          "0123456789012345678901234567890123456789012345678901234567890123", "!"};
    redlock_manager *managers[5], *holder = manager_named("db-1:7");
    for (int i = 0; i < 5; i++) {
        managers[i] = manager_named(holders[i]);
    }
    assert_is(drive_acquire(world_loop, holder, "line", TIMES(LONG_MS, REDLOCK_WAIT_FOREVER), outcome), REDLOCK_OK);
    queue_up_in_order(managers, 5, LONG_MS, 5);
    assert_is(redlock_release(outcome->lease, NULL, NULL), REDLOCK_OK);
    assert_in_order(5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(world_statistics(managers[i]).polls, 0);
    }
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

/* Else the one who releases would take the lock again and again. */
FRESH_TEST(the_one_who_releases_goes_to_the_end) {
    redlock_manager *managers[2];
    managers_of(managers, 2);
    queue_up(managers[0], "line", 0, LONG_MS);
    assert_served(1);
    redlock_lease *lease = world_acquire(managers[0], "line", LONG_MS);
    queue_up_in_order(managers + 1, 1, LONG_MS, 5);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    queue_up(managers[0], "line", 2, LONG_MS);
    assert_served(3);
    assert_int_equal(line.order[1], 0);
    assert_int_equal(line.order[2], 2);
}

FRESH_TEST(a_crowd_in_one_process_is_served_in_order) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *manager = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire(holder, "line", LONG_MS);
    for (int i = 0; i < CROWD; i++) {
        queue_up(manager, "line", i, LONG_MS);
    }
    wait_for_subscriptions(1, 5);
    wait_for_length(CROWD, 5);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_in_order(CROWD);
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(line.order[i], i);
    }
    assert_int_equal(world_statistics(manager).passed_over, 0);
}

FRESH_TEST(lost_subscriptions_delay_but_lose_nobody) {
    redlock_manager *managers[3], *holder = world_manager_all(PATIENT_MS);
    managers_of(managers, 3);
    redlock_lease *lease = world_acquire(holder, "line", LONG_MS);
    queue_up_in_order(managers, 3, LONG_MS, 5);
    servers_ask(&world_servers, 0, world_servers.count, "CLIENT", "KILL", "TYPE", "pubsub");
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_served(3);
}

FRESH_TEST(nodes_that_forget_the_queue_learn_it_again) {
    redlock_manager *managers[3], *holder = world_manager_all(PATIENT_MS);
    managers_of(managers, 3);
    redlock_lease *lease = world_acquire(holder, "line", LONG_MS);
    queue_up_in_order(managers, 3, LONG_MS, 5);
    servers_ask(&world_servers, 0, 5, "DEL", "line:wait", "line:waiter");
    wait_for_length(3, 5);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_in_order(3);
}

/* The keys that two nodes have lost stay free for the holder: nobody in line takes them. */
FRESH_TEST(the_holder_heals_its_keys_beside_a_queue) {
    redlock_manager *managers[3], *holder = world_manager_all(PATIENT_MS);
    managers_of(managers, 3);
    redlock_acquire_options options = world_acquire_options(3000, REDLOCK_WAIT_FOREVER);
    options.auto_extend = true;
    assert_is(drive_acquire(world_loop, holder, "line", &options, outcome), REDLOCK_OK);
    redlock_lease *lease = outcome->lease;
    queue_up_in_order(managers, 3, 2000, 5);
    servers_ask(&world_servers, 0, 2, "DEL", "line");
    assert_true(world_wait_with_key("line", 5, DRIVE_TIMEOUT_MS));
    for (size_t i = 0; i < 5; i++) {
        /* The keys that are healed have no mark yet. */
        assert_string_equal(server_ask(&world_servers.at[i], "GET", "line") + 1, redlock_lease_token(lease) + 1);
    }
    assert_int_equal(line.served, 0);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_in_order(3);
}

static void set_as_stranger(const char *ttl_ms) {
    servers_say(&world_servers, 0, world_servers.count, "OK", "SET", "line", "another library", "PX", ttl_ms);
}

static bool has_polled(void *data) {
    redlock_manager *const *managers = data;
    return world_statistics(managers[0]).polls + world_statistics(managers[1]).polls > 0;
}

FRESH_TEST(behind_a_stranger_the_first_in_line_asks) {
    redlock_manager *managers[3];
    managers_of(managers, 3);
    set_as_stranger("600000");
    queue_up_in_order(managers, 3, LONG_MS, 5);
    assert_true(drive_until(world_loop, has_polled, managers, DRIVE_TIMEOUT_MS));
    servers_ask(&world_servers, 0, world_servers.count, "DEL", "line");
    assert_in_order(3);
}

FRESH_TEST(a_cancelled_waiter_leaves_the_queue) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *manager = world_manager_all(PATIENT_MS);
    redlock_request *request;
    redlock_lease *lease = world_acquire(holder, "line", LONG_MS);
    assert_is(
        redlock_acquire(manager, "line", TIMES(LONG_MS, REDLOCK_WAIT_FOREVER), &request, outcome_collect, outcome),
        REDLOCK_OK);
    wait_for_length(1, 5);
    redlock_request_cancel(request);
    assert_true(outcome_wait(world_loop, outcome));
    assert_is(outcome->code, REDLOCK_ERR_CANCELLED);
    wait_for_length(0, 5);
    assert_true(world_wait_without_key("line:waiter", DRIVE_TIMEOUT_MS));
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

FRESH_TEST(a_wait_that_ends_leaves_the_queue) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *manager = world_manager_all(PATIENT_MS);
    (void)world_acquire(holder, "line", LONG_MS);
    assert_is(drive_acquire(world_loop, manager, "line", TIMES(LONG_MS, 300), outcome), REDLOCK_ERR_CONTENDED);
    wait_for_length(0, 5);
}

/* Whichever ttl the last WAIT asked for: a short one must not end the places of others. */
FRESH_TEST(the_queue_ends_by_itself) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *manager = world_manager_all(PATIENT_MS);
    redlock_lease *lease = world_acquire(holder, "line", LONG_MS);
    queue_up(manager, "line", 0, 1000);
    wait_for_length(1, 5);
    const int64_t pttl_ms = server_pttl_ms(&world_servers.at[0], "line:wait");
    assert_in_range(pttl_ms, 7501, 15000);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_served(1);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

/* A resource whose name is that of another one's queue. Both are served, if not in order. */
FRESH_TEST(names_that_meet_do_no_harm) {
    redlock_manager *holder = world_manager_all(PATIENT_MS), *managers[2];
    managers_of(managers, 2);
    redlock_lease *odd = world_acquire(holder, "line:wait", LONG_MS);
    redlock_lease *lease = world_acquire(holder, "line", LONG_MS);
    queue_up(managers[0], "line", 0, LONG_MS);
    queue_up(managers[1], "line", 1, LONG_MS);
    drive_for(world_loop, 300);
    assert_int_equal(line.served, 0);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_served(2);
    assert_is(redlock_release(odd, NULL, NULL), REDLOCK_OK);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}
