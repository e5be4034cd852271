/* SETs that run after their release (R8, R9) and leave an orphan: each case with the cure and
 * without it. */
/* The library is compiled into this program with its planted bugs. A control run with one of them
 * must see orphans: keys that nobody wants and that only their ttl ends. If it sees none, the test
 * is blind and fails. */
#include "core/planted.h"
#include "world.h"

#define LONG_TTL_MS 600000 /* where an orphan is to stay */
#define LEASES      50

enum redlock_planted_bug redlock_planted_bug = REDLOCK_BUG_NONE;

static struct server *late_server(void) {
    return &world_servers.at[0];
}

/* Begins a run with this bug planted. */
static void plant(enum redlock_planted_bug bug) {
    redlock_planted_bug = bug;
    servers_reset(&world_servers);
    servers_say(&world_servers, 0, world_servers.count, "OK", "CONFIG", "RESETSTAT");
}

static int heal_and_tear_down(void **state) {
    redlock_planted_bug = REDLOCK_BUG_NONE;
    return world_teardown(state);
}

/* --- Conditions to wait for --- */

static redlock_node_state late_node_state(redlock_manager *manager) {
    return world_node_info(manager, 0).state;
}

static bool is_stalled(void *manager) {
    return late_node_state(manager) == REDLOCK_NODE_STALLED;
}

static bool is_connecting(void *manager) {
    return late_node_state(manager) == REDLOCK_NODE_CONNECTING;
}

static bool owes_nothing(void *manager) {
    return world_statistics(manager).releases_owed == 0;
}

static bool owes_one(void *manager) {
    return world_statistics(manager).releases_owed == 1;
}

static bool owes_all(void *manager) {
    return world_statistics(manager).releases_owed == LEASES;
}

static bool has_dropped_all(void *manager) {
    return world_statistics(manager).releases_dropped == LEASES;
}

static bool has_begun(void *proxy) {
    return proxy_bytes(proxy, PROXY_REQUESTS) > 0;
}

struct passing {
    struct proxy *proxy;
    long long bytes;
};

static bool has_passed(void *data) {
    const struct passing *passing = data;
    return proxy_bytes(passing->proxy, PROXY_REQUESTS) == passing->bytes;
}

/* Only the connection of the test and the last one of the manager are left: the server has read or
 * dropped all of the old one. */
static bool has_only_new_clients(void *data) {
    const char *list = server_ask(data, "CLIENT", "LIST", "TYPE", "normal");
    size_t clients = 0;
    while ((list = strchr(list, '\n')) != NULL) {
        clients++;
        list++;
    }
    return clients == 2;
}

/* Keys that exist, and keys that have expired: those that were not deleted. Nothing else expires
 * here. */
static long long orphans_until_now(void) {
    const char *found = strstr(server_ask(late_server(), "INFO", "stats"), "\nexpired_keys:");
    assert_non_null(found);
    return atoll(found + strlen("\nexpired_keys:")) + server_key_count(late_server());
}

/* --- The leases --- */

struct crowd {
    int held;
    redlock_lease *leases[LEASES];
};

static bool is_all_released(void *data) {
    return ((const struct crowd *)data)->held == 0;
}

static void let_go(const redlock_result *result, void *data) {
    (void)result;
    ((struct crowd *)data)->held--;
}

static void release_all(struct crowd *crowd) {
    for (int i = crowd->held; i-- > 0;) {
        assert_is(redlock_release(crowd->leases[i], let_go, crowd), REDLOCK_OK);
    }
    assert_true(drive_until(world_loop, is_all_released, crowd, DRIVE_TIMEOUT_MS));
}

/* Acquires this many more, one after the other. */
static void take(redlock_manager *manager, struct crowd *crowd, int count, int64_t ttl_ms) {
    char name[32];
    for (int i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "late-%03d", crowd->held);
        crowd->leases[crowd->held++] = world_acquire(manager, name, ttl_ms);
    }
}

/* --- The cases --- */

/* The old connection holds the SETs. It is given up and the new one is open, or it goes silent and
 * is replaced. After the leases were released over the new connection, the old one delivers.
 * Returns the number of orphans. */
static long long old_path_delivers(enum redlock_planted_bug bug, bool is_silent) {
    static struct crowd crowd;
    crowd = (struct crowd){0};
    plant(bug);
    struct proxy *proxy = world_proxy(late_server()->port);
    const char *uris[3] = {proxy_uri(proxy), world_servers.uris[1], world_servers.uris[2]};
    redlock_manager *manager = world_manager(uris, 3, is_silent ? BRISK_MS : PATIENT_MS);
    proxy_freeze_now(proxy);
    if (is_silent) {
        take(manager, &crowd, LEASES, LONG_TTL_MS);
    } else {
        proxy_forget_bytes(proxy);
        take(manager, &crowd, 1, LONG_TTL_MS);
        assert_true(drive_until(world_loop, has_begun, proxy, DRIVE_TIMEOUT_MS));
        struct passing all = {.proxy = proxy, .bytes = LEASES * proxy_bytes(proxy, PROXY_REQUESTS)};
        take(manager, &crowd, LEASES - 1, LONG_TTL_MS);
        assert_true(drive_until(world_loop, has_passed, &all, DRIVE_TIMEOUT_MS));
        proxy_dismiss_now(proxy);
    }
    assert_true(drive_reconnected(world_loop, manager, 0, 2));
    release_all(&crowd);
    assert_true(drive_until(world_loop, owes_nothing, manager, DRIVE_TIMEOUT_MS));
    assert_int_equal(server_key_count(late_server()), 0);
    proxy_thaw(proxy);
    assert_true(drive_until(world_loop, has_only_new_clients, late_server(), DRIVE_TIMEOUT_MS));
    const long long orphans = orphans_until_now();
    world_close(manager);
    return orphans;
}

/* The server hangs for longer than the ttl, with SETs in its socket, while the leases are released.
 * It goes on when the connection is stalled, or was given up and a new one waits. Returns the
 * number of orphans, or -1 if the machine was so slow that the keys may have expired before the
 * releases. */
static long long hung_server_outlasts_the_ttl(enum redlock_planted_bug bug, bool (*until)(void *manager)) {
    static struct crowd crowd;
    const int64_t ttl_ms = 2500; /* longer than it takes until the node is stalled */
    crowd = (struct crowd){0};
    plant(bug);
    redlock_manager *manager = world_manager_all(BRISK_MS);
    server_pause(late_server());
    take(manager, &crowd, LEASES, ttl_ms);
    assert_true(drive_until(world_loop, is_stalled, manager, DRIVE_TIMEOUT_MS));
    release_all(&crowd);
    if (bug == REDLOCK_BUG_NONE) {
        assert_true(drive_until(world_loop, owes_all, manager, DRIVE_TIMEOUT_MS));
        drive_for(world_loop, (int)ttl_ms + 200);
        assert_true(owes_all(manager));
    } else {
        assert_true(drive_until(world_loop, has_dropped_all, manager, DRIVE_TIMEOUT_MS));
    }
    assert_true(drive_until(world_loop, until, manager, DRIVE_TIMEOUT_MS));
    const int64_t resumed_ms = support_now_ms();
    server_resume(late_server());
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
    assert_true(drive_until(world_loop, has_only_new_clients, late_server(), DRIVE_TIMEOUT_MS));
    assert_true(world_calls(late_server(), "set") > 0); /* the late SETs did run */
    assert_true(drive_until(world_loop, owes_nothing, manager, DRIVE_TIMEOUT_MS));
    const int64_t took_ms = support_now_ms() - resumed_ms;
    const long long orphans = orphans_until_now();
    world_close(manager);
    return bug == REDLOCK_BUG_NONE && took_ms >= ttl_ms ? -1 : orphans;
}

/* Whether the old connections are there still. On a busy machine a second one may answer first. */
static bool are_the_first(redlock_manager *manager) {
    uint64_t connects = 0;
    for (size_t i = 0; i < 3; i++) {
        redlock_node_info info = {.size = sizeof info};
        assert_is(redlock_manager_node(manager, i, &info), REDLOCK_OK);
        connects += info.connects;
    }
    return connects == 3;
}

/* A node hangs while its key is released. The holder waits for one node timeout; then the release
 * is owed, and sent once more. The node goes on when it is stalled, which is after the timeout of
 * the owed release. Returns how many releases the node got, or -1 if the machine was so slow that
 * the connection may have been given up. */
static long long releases_asked_of_a_hung_node(void) {
    const int64_t stall_limit_ms = 5000;
    static struct crowd crowd;
    crowd = (struct crowd){0};
    plant(REDLOCK_BUG_NONE);
    redlock_manager *manager = world_manager_all(BRISK_MS);
    take(manager, &crowd, 1, LONG_TTL_MS);
    assert_true(world_wait_with_key("late-000", 3, DRIVE_TIMEOUT_MS));
    const long long before = world_calls(late_server(), "evalsha"); /* the probe of the handshake */
    const int64_t paused_ms = support_now_ms();
    server_pause(late_server());
    release_all(&crowd);
    assert_true(drive_until(world_loop, owes_one, manager, DRIVE_TIMEOUT_MS));
    redlock_lease *other = world_acquire(manager, "other", LONG_TTL_MS);
    assert_true(drive_until(world_loop, is_stalled, manager, DRIVE_TIMEOUT_MS));
    const int64_t took_ms = support_now_ms() - paused_ms;
    server_resume(late_server());
    assert_true(drive_until(world_loop, owes_nothing, manager, DRIVE_TIMEOUT_MS));
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
    assert_false(server_has_key(late_server(), "late-000"));
    const long long asked = world_calls(late_server(), "evalsha") - before;
    assert_is(redlock_release(other, NULL, NULL), REDLOCK_OK);
    const bool counts = took_ms < stall_limit_ms && are_the_first(manager);
    world_close(manager);
    return counts ? asked : -1;
}

/* --- The tests --- */

static void deliver(bool is_silent) {
    const long long cured = old_path_delivers(REDLOCK_BUG_NONE, is_silent);
    const long long plain = old_path_delivers(REDLOCK_BUG_PLAIN_CLOSE, is_silent);
    print_message("orphans of %d: RST and CLIENT KILL %lld, plain close %lld\n", LEASES, cured, plain);
    assert_int_equal(cured, 0);
    assert_true(plain > 0);
}

TESTS_WITH(world_three, world_end);
#define LATE_TEST(name) TEST_WITH(name, world_setup, heal_and_tear_down)

LATE_TEST(a_set_on_an_old_connection_runs_after_its_release) {
    deliver(false);
}

LATE_TEST(a_set_on_a_silent_connection_runs_after_its_release) {
    deliver(true);
}

static void outlast(bool (*until)(void *manager)) {
    long long cured = -1;
    for (int i = 0; i < 3 && cured < 0; i++) {
        cured = hung_server_outlasts_the_ttl(REDLOCK_BUG_NONE, until);
    }
    const long long by_clock = hung_server_outlasts_the_ttl(REDLOCK_BUG_DEBT_ENDS_BY_CLOCK, until);
    print_message("orphans of %d: debts until an answer %lld, debts until the ttl %lld\n", LEASES, cured, by_clock);
    assert_int_equal(cured, 0);
    assert_true(by_clock > 0);
}

LATE_TEST(a_set_runs_long_after_its_ttl) {
    outlast(is_stalled);
}

LATE_TEST(a_set_runs_after_its_connection_was_given_up) {
    outlast(is_connecting);
}

/* R9: an owed release has no timeout. Its late answer pays, so it is not sent again. */
LATE_TEST(a_hung_node_gets_an_owed_release_once) {
    long long asked = -1;
    for (int i = 0; i < 3 && asked < 0; i++) {
        asked = releases_asked_of_a_hung_node();
    }
    assert_int_equal(asked, 2);
}
