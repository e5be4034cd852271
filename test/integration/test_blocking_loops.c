/* A client of several loops: each resource belongs to one, and what is said of all is the sum. */
#include "blocking_kit.h"

#include "proxy.h"

#include <pthread.h>
#include <stdatomic.h>

#define LOOPS     3
#define RESOURCES 24

static atomic_uint threads_of[RESOURCES];

/* Opens a client of `loops`; each thread that tells something gets a number. */
static redlock_client *client_of(size_t loops, redlock_event_callback on_event, const char *const *nodes) {
    redlock_manager_options options;
    redlock_client *client = NULL;
    redlock_manager_options_default(&options);
    options.nodes = nodes;
    options.node_count = kit_servers.count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.connect_timeout_ms = NODE_TIMEOUT_MS;
    options.on_event = on_event;
    options.loops = loops;
    assert_is(redlock_client_open(&options, &client, NULL, 0), REDLOCK_OK);
    return client;
}

static void acquire_all(redlock_client *client, redlock_lease *leases[RESOURCES]) {
    for (unsigned i = 0; i < RESOURCES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "r%u", i);
        leases[i] = kit_acquire(client, name, 0);
    }
}

static void release_all(redlock_client *client, redlock_lease *leases[RESOURCES]) {
    for (unsigned i = 0; i < RESOURCES; i++) {
        kit_release(client, leases[i]);
    }
}

/* One thread of a client writes an element at a time: that of the resource. */
static void note_thread(const redlock_telemetry_event *event, void *data) {
    static atomic_uint threads;
    static _Thread_local unsigned own;
    unsigned before = 0, resource;
    (void)data;
    own = own > 0 ? own : atomic_fetch_add(&threads, 1) + 1;
    if (event->kind <= REDLOCK_TELEMETRY_RELEASED && sscanf(event->resource, "r%u", &resource) == 1) {
        kit_must(resource < RESOURCES);
        kit_must(atomic_compare_exchange_strong(&threads_of[resource], &before, own) || before == own);
    }
}

TESTS_WITH(kit_start, kit_stop);

KIT_TEST(each_resource_belongs_to_one_of_the_loops) {
    redlock_lease *leases[RESOURCES];
    bool seen[64] = {false};
    unsigned count = 0;
    redlock_client *client = client_of(LOOPS, note_thread, kit_servers.uris);
    for (int round = 0; round < 2; round++) {
        acquire_all(client, leases);
        release_all(client, leases);
    }
    for (unsigned i = 0; i < RESOURCES; i++) {
        const unsigned thread = atomic_load(&threads_of[i]);
        assert_true(thread > 0 && thread < 64);
        count += !seen[thread];
        seen[thread] = true;
    }
    assert_int_equal(count, LOOPS);
    assert_is(redlock_client_close(client), REDLOCK_OK);
    kit_expect_no_keys();
}

KIT_TEST(numbers_are_the_sum_of_all_loops) {
    redlock_lease *leases[RESOURCES], *adopted = NULL;
    redlock_statistics statistics = {.size = sizeof statistics};
    redlock_telemetry telemetry = {.size = sizeof telemetry};
    struct {
        size_t size;
        uint64_t acquires, attempts, guard;
    } old = {.size = offsetof(redlock_statistics, acquired), .guard = 7};
    redlock_client *client = client_of(LOOPS, NULL, kit_servers.uris);
    acquire_all(client, leases);
    assert_is(redlock_client_statistics(client, &statistics), REDLOCK_OK);
    assert_int_equal(statistics.acquired, RESOURCES);
    assert_int_equal(statistics.leases_held, RESOURCES);
    assert_is(redlock_client_statistics(client, (redlock_statistics *)(void *)&old), REDLOCK_OK);
    assert_int_equal(old.acquires, RESOURCES);
    assert_int_equal(old.guard, 7);
    assert_is(redlock_client_adopt(client, "r0", redlock_lease_token(leases[0]), NULL, &adopted), REDLOCK_OK);
    assert_is(redlock_client_extend(client, adopted, 60000, NULL), REDLOCK_OK);
    assert_is(redlock_client_inspect(client, "r0", NULL), REDLOCK_OK);
    assert_is(redlock_client_forget(client, adopted), REDLOCK_OK);
    release_all(client, leases);
    assert_is(redlock_client_telemetry(client, &telemetry), REDLOCK_OK);
    assert_int_equal(telemetry.acquire.count, RESOURCES);
    assert_int_equal(telemetry.held.count, RESOURCES + 1);
    assert_int_equal(telemetry.node_ups[0], LOOPS);
    assert_is(redlock_client_close(client), REDLOCK_OK);
    kit_expect_no_keys();
}

/* A thread waits for each resource. */
static void wait_for_all(redlock_client *client, redlock_cancel *cancel, struct kit_waiter waiters[RESOURCES]) {
    redlock_statistics statistics = {.size = sizeof statistics};
    for (unsigned i = 0; i < RESOURCES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "r%u", i);
        kit_wait(&waiters[i], client, name, cancel);
    }
    do {
        support_pause_ms(1);
        assert_is(redlock_client_statistics(client, &statistics), REDLOCK_OK);
    } while (statistics.requests_pending < RESOURCES);
}

static void join_all(struct kit_waiter waiters[RESOURCES], int code) {
    for (unsigned i = 0; i < RESOURCES; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_is(waiters[i].code, code);
    }
}

KIT_TEST(a_cancel_and_a_close_reach_all_loops) {
    redlock_lease *leases[RESOURCES];
    struct kit_waiter waiters[RESOURCES];
    redlock_cancel *cancel = NULL;
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS), *client = client_of(LOOPS, NULL, kit_servers.uris);
    assert_is(redlock_cancel_new(client, &cancel), REDLOCK_OK);
    acquire_all(rival, leases);
    wait_for_all(client, cancel, waiters);
    redlock_cancel_set(cancel);
    join_all(waiters, REDLOCK_ERR_CANCELLED);
    wait_for_all(client, NULL, waiters);
    assert_is(redlock_client_close(client), REDLOCK_OK);
    join_all(waiters, REDLOCK_ERR_CLOSED);
    redlock_cancel_free(cancel);
    release_all(rival, leases);
    kit_expect_no_keys();
}

KIT_TEST(a_number_of_loops_that_cannot_be_is_refused) {
    const size_t bad[] = {0, REDLOCK_LOOPS_MAX + 1};
    for (size_t i = 0; i < 2; i++) {
        redlock_manager_options options;
        redlock_client *client = NULL;
        char error[256];
        redlock_manager_options_default(&options);
        options.nodes = kit_servers.uris;
        options.node_count = kit_servers.count;
        options.loops = bad[i];
        assert_is(redlock_client_open(&options, &client, error, sizeof error), REDLOCK_ERR_INVALID);
        assert_contains(error, "it must be 1 to 16");
    }
}

/* A node that is hung is waited for once, not once for each loop; one that is far away is there in
 * all loops then. */
KIT_TEST(the_loops_wait_for_the_nodes_together) {
    redlock_manager_options options;
    redlock_client *client = NULL;
    struct proxy *far = proxy_start(kit_servers.at[1].port);
    const char *nodes[] = {kit_servers.uris[0], proxy_uri(far), kit_servers.uris[2]};
    proxy_delay(far, PROXY_REPLIES, 50);
    redlock_manager_options_default(&options);
    options.nodes = nodes;
    options.node_count = 3;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.connect_timeout_ms = 1000;
    options.loops = 8;
    servers_each(&kit_servers, 0, 1, server_pause);
    const int64_t begun_ms = support_now_ms();
    assert_is(redlock_client_open(&options, &client, NULL, 0), REDLOCK_OK);
    const int64_t took_ms = support_now_ms() - begun_ms;
    for (size_t i = 1; i < 3; i++) {
        redlock_node_info info = {.size = sizeof info};
        assert_is(redlock_client_node(client, i, &info), REDLOCK_OK);
        assert_int_equal(info.state, REDLOCK_NODE_READY); /* in all loops */
        redlock_node_info_free(&info);
    }
    servers_each(&kit_servers, 0, 1, server_resume);
    assert_in_range(took_ms, 900, 3000);
    kit_release(client, kit_acquire(client, "r", 0));
    assert_is(redlock_client_close(client), REDLOCK_OK);
    proxy_stop(far);
}
