/* Nodes that are farther away than the node timeout, behind proxies that delay. */
#include "world.h"

#define NODES      3
#define TIMEOUT_MS 300
#define AWAY_MS    250 /* each way */

static struct proxy *proxies[NODES];

static void set_delay(int delay_ms) {
    for (size_t i = 0; i < NODES; i++) {
        proxy_delay(proxies[i], PROXY_REQUESTS, delay_ms);
        proxy_delay(proxies[i], PROXY_REPLIES, delay_ms);
    }
}

static redlock_manager *far_manager(void) {
    const char *uris[NODES];
    redlock_manager_options options = world_options();
    for (size_t i = 0; i < NODES; i++) {
        proxies[i] = world_proxy(world_servers.at[i].port);
        uris[i] = proxy_uri(proxies[i]);
    }
    set_delay(AWAY_MS);
    options.nodes = uris;
    options.node_count = NODES;
    options.node_timeout_ms = TIMEOUT_MS;
    redlock_manager *manager = world_manager_with(&options);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, NODES));
    return manager;
}

TESTS_WITH(world_three, world_end);

/* A late grant would count, and the lease could be neither renewed nor released. */
WORLD_TEST(who_waits_gets_no_lock_of_far_nodes) {
    redlock_manager *manager = far_manager();
    assert_is(drive_acquire(world_loop, manager, "x", TIMES(30000, 2000), outcome), REDLOCK_ERR_NO_QUORUM);
    assert_contains(outcome->message, "node_timeout_ms must be longer, such as ");
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(world_calls(&world_servers.at[i], "zadd"), 0); /* nor a place */
        assert_true(world_node_info(manager, i).round_trip_min_us > TIMEOUT_MS * 1000);
        assert_int_equal(world_node_info(manager, i).connects, 1);
    }
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

/* They are measured again, so they need not connect anew. */
WORLD_TEST(who_waits_gets_the_lock_when_the_nodes_are_near) {
    redlock_manager *manager = far_manager();
    assert_is(redlock_acquire(manager, "x", TIMES(30000, PATIENT_MS), NULL, outcome_collect, outcome), REDLOCK_OK);
    drive_for(world_loop, 2 * AWAY_MS + TIMEOUT_MS);
    assert_int_equal(outcome->runs, 0);
    set_delay(0);
    assert_true(outcome_wait(world_loop, outcome));
    assert_is(outcome->code, REDLOCK_OK);
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(world_node_info(manager, i).connects, 1);
    }
    assert_is(drive_release(world_loop, outcome->lease, outcome), REDLOCK_OK);
}
