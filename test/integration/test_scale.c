/* Ten thousand locks at once on one loop. */
#include "world.h"

#define LOCKS       10000
#define INSPECTIONS 200000

struct crowd {
    int acquired, failed, released, release_failed;
    redlock_lease *leases[LOCKS];
    int first_error;
};

static void on_acquired(const redlock_result *result, void *data) {
    struct crowd *crowd = data;
    int code = redlock_result_code(result);
    if (code == REDLOCK_OK) {
        crowd->leases[crowd->acquired++] = redlock_result_lease(result);
    } else {
        crowd->failed++;
        crowd->first_error = crowd->first_error ? crowd->first_error : code;
    }
}

static void on_released(const redlock_result *result, void *data) {
    struct crowd *crowd = data;
    if (redlock_result_code(result) == REDLOCK_OK) {
        crowd->released++;
    } else {
        crowd->release_failed++;
    }
}

static bool all_asked(void *data) {
    const struct crowd *crowd = data;
    return crowd->acquired + crowd->failed == LOCKS;
}

static bool all_ended(void *data) {
    const struct crowd *crowd = data;
    return crowd->released + crowd->release_failed == LOCKS;
}

static void ask_for_all(redlock_manager *manager, struct crowd *crowd) {
    for (int i = 0; i < LOCKS; i++) {
        char resource[32];
        snprintf(resource, sizeof resource, "lock-%d", i);
        assert_is(redlock_acquire(manager, resource, TIMES(600000, 0), NULL, on_acquired, crowd), REDLOCK_OK);
    }
}

static int free_crowd(void **state);
TESTS_WITH(world_five, world_end);
#define FRESH_TEST(name) TEST_WITH(name, world_setup, free_crowd)

FRESH_TEST(ten_thousand_at_once) {
    struct crowd *crowd = *state = calloc(1, sizeof *crowd);
    assert_non_null(crowd);
    redlock_manager *manager = world_manager_all(30000);
    ask_for_all(manager, crowd);
    assert_int_equal(world_statistics(manager).requests_pending, LOCKS);
    assert_true(drive_until(world_loop, all_asked, crowd, 60000));
    assert_int_equal(crowd->first_error, 0);
    assert_int_equal(crowd->acquired, LOCKS);
    assert_int_equal(world_statistics(manager).leases_held, LOCKS);
    for (int i = 0; i < LOCKS; i++) {
        assert_is(redlock_release(crowd->leases[i], on_released, crowd), REDLOCK_OK);
    }
    assert_true(drive_until(world_loop, all_ended, crowd, 60000));
    assert_int_equal(crowd->released, LOCKS);
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
    redlock_statistics statistics = world_statistics(manager);
    assert_int_equal(statistics.acquires, LOCKS);
    assert_int_equal(statistics.attempts, LOCKS);
    assert_int_equal(statistics.acquired, LOCKS);
    assert_int_equal(statistics.released, LOCKS);
    assert_int_equal(statistics.leases_held, 0);
    assert_int_equal(statistics.requests_pending, 0);
    assert_int_equal(statistics.lost, 0);
}

FRESH_TEST(ten_thousand_held_are_released_by_close) {
    struct crowd *crowd = *state = calloc(1, sizeof *crowd);
    assert_non_null(crowd);
    redlock_manager *manager = world_manager_all(30000);
    ask_for_all(manager, crowd);
    assert_true(drive_until(world_loop, all_asked, crowd, 60000));
    assert_int_equal(crowd->acquired, LOCKS);
    world_close(manager);
    assert_int_equal(servers_key_count(&world_servers), 0);
}

/* Two of five nodes hang: all locks are still taken and released, and the bounds of R17 hold. */
FRESH_TEST(ten_thousand_with_two_nodes_hung) {
    struct crowd *crowd = *state = calloc(1, sizeof *crowd);
    assert_non_null(crowd);
    redlock_manager *manager = world_manager_all(30000);
    server_pause(&world_servers.at[1]);
    server_pause(&world_servers.at[3]);
    ask_for_all(manager, crowd);
    assert_true(drive_until(world_loop, all_asked, crowd, 60000));
    assert_int_equal(crowd->first_error, 0);
    for (int i = 0; i < LOCKS; i++) {
        assert_is(redlock_release(crowd->leases[i], on_released, crowd), REDLOCK_OK);
    }
    assert_true(drive_until(world_loop, all_ended, crowd, 60000));
    assert_int_equal(crowd->released, LOCKS);
    server_resume(&world_servers.at[1]);
    server_resume(&world_servers.at[3]);
    assert_true(world_wait_without_key(NULL, 60000));
}

static void on_inspected(const redlock_result *result, void *data) {
    int *inspected = data;
    char resource[32];
    snprintf(resource, sizeof resource, "%d", *inspected);
    assert_is(redlock_result_code(result), REDLOCK_ERR_NO_QUORUM);
    assert_string_equal(redlock_result_resource(result), resource);
    ++*inspected;
}

static bool all_inspected(void *data) {
    return *(const int *)data == INSPECTIONS;
}

/* Nodes that are down refuse each at once, so all wait for their callbacks. A list that is walked
 * for each takes longer than the test has. */
WORLD_TEST(two_hundred_thousand_inspections_of_nodes_that_are_down) {
    const char *uris[] = {world_closed_uri(), world_closed_uri(), world_closed_uri()};
    redlock_manager *manager = world_manager(uris, 3, PATIENT_MS);
    int inspected = 0;
    for (int i = 0; i < INSPECTIONS; i++) {
        char resource[32];
        snprintf(resource, sizeof resource, "%d", i);
        assert_is(redlock_inspect(manager, resource, on_inspected, &inspected), REDLOCK_OK);
    }
    assert_true(drive_until(world_loop, all_inspected, &inspected, 60000));
}

static int free_crowd(void **state) {
    int result = world_teardown(state);
    free(*state);
    *state = NULL;
    return result;
}
