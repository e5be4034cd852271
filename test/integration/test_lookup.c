/* Names: one that does not exist, one whose lookup never ends, one that moves. The loop runs all
 * the time (R16). */
#include <netdb.h>
#include <pthread.h>

#include "world.h"

/* The lookups of the library come here (--wrap=getaddrinfo). */
int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int hanging;          /* lookups that hang now */
static bool may_hang = true; /* hanging lookups go on when this is false */
static int lookups;          /* of names, not of literals */
static const char *moved_to; /* where moves.test is */

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found) {
    char target[64] = "";
    pthread_mutex_lock(&mutex);
    if (!(hints->ai_flags & AI_NUMERICHOST)) {
        lookups++;
    }
    if (strcmp(host, "hangs.test") == 0 && !(hints->ai_flags & AI_NUMERICHOST)) {
        hanging++;
        pthread_cond_broadcast(&changed);
        while (may_hang) {
            pthread_cond_wait(&changed, &mutex);
        }
        hanging--;
        pthread_cond_broadcast(&changed);
        strcpy(target, "127.0.0.1");
    }
    if (strcmp(host, "moves.test") == 0 && !(hints->ai_flags & AI_NUMERICHOST)) {
        strcpy(target, moved_to);
    }
    pthread_mutex_unlock(&mutex);
    return __real_getaddrinfo(*target ? target : host, port, hints, found);
}

static void let_go(void) {
    pthread_mutex_lock(&mutex);
    may_hang = false;
    pthread_cond_broadcast(&changed);
    while (hanging > 0) {
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

static int resolve_setup(void **state) {
    may_hang = true;
    lookups = 0;
    return world_setup(state);
}

static int resolve_teardown(void **state) {
    int result = world_teardown(state); /* the managers close while the lookups hang */
    let_go();
    return result;
}

static int counted(const int *what) {
    pthread_mutex_lock(&mutex);
    int count = *what;
    pthread_mutex_unlock(&mutex);
    return count;
}

/* `named` of five nodes have this name, with the ports of their servers. */
static redlock_manager *with_name(const char *name, size_t named) {
    static char texts[5][64];
    static const char *uris[5];
    for (size_t i = 0; i < 5; i++) {
        snprintf(texts[i], sizeof texts[i], "redis://%s:%d", i < named ? name : "127.0.0.1", world_servers.at[i].port);
        uris[i] = texts[i];
    }
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = uris;
    options.node_count = 5;
    options.node_timeout_ms = BRISK_MS;
    options.connect_timeout_ms = BRISK_MS;
    return world_manager_at_once(&options);
}

TESTS_WITH(world_five, world_end);
#define FRESH_TEST(name)                                                                                               \
    TEST_HAS(name, resolve_setup, resolve_teardown, NULL, (world_outcome()), UNUSED struct outcome *outcome)

FRESH_TEST(a_name_that_does_not_exist) {
    redlock_manager *manager = with_name("no-such-node.invalid", 2);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
    redlock_lease *lease = world_acquire(manager, "named", 60000);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    world_close(manager);
    manager = with_name("no-such-node.invalid", 3);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 2));
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_WAITING, 1));
    assert_is(drive_acquire(world_loop, manager, "named", NULL, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_FAILED), 3);
    assert_contains(outcome->message, "no-such-node.invalid");
    assert_true(world_wait_without_key("named", DRIVE_TIMEOUT_MS));
}

static void count_tick(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)events;
    ++*(int *)timer->data;
}

static bool fifty(void *data) {
    return *(int *)data >= 50;
}

static bool two_hang(void *data) {
    (void)data;
    return counted(&hanging) >= 2;
}

/* Only the test ends these lookups. A loop that waited for one would never run again. */
FRESH_TEST(a_lookup_that_never_ends_does_not_stop_the_loop) {
    static int ticks;
    ev_timer timer;
    ticks = 0;
    redlock_manager *manager = with_name("hangs.test", 2);
    assert_true(drive_until(world_loop, two_hang, NULL, DRIVE_TIMEOUT_MS));
    ev_timer_init(&timer, count_tick, 0.001, 0.001);
    timer.data = &ticks;
    ev_timer_start(world_loop, &timer);
    assert_true(drive_until(world_loop, fifty, &ticks, DRIVE_TIMEOUT_MS));
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 3));
    redlock_lease *lease = world_acquire(manager, "named", 60000);
    assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_OK);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    ticks = 0;
    assert_true(drive_until(world_loop, fifty, &ticks, DRIVE_TIMEOUT_MS));
    assert_int_equal(counted(&hanging), 2); /* one thread for each node, however long it takes */
    ev_timer_stop(world_loop, &timer);
    let_go();
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 5));
}

FRESH_TEST(three_lookups_that_never_end_are_no_quorum) {
    redlock_manager *manager = with_name("hangs.test", 3);
    assert_is(drive_acquire(world_loop, manager, "named", NULL, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(outcome_votes(outcome, REDLOCK_VOTE_FAILED), 3); /* nothing was sent to them */
    assert_contains(outcome->message, "hangs.test");
    world_close(manager); /* does not wait for the lookups */
    assert_int_equal(counted(&hanging), 3);
    assert_true(world_wait_without_key("named", DRIVE_TIMEOUT_MS));
}

FRESH_TEST(a_name_is_looked_up_again_at_each_reconnect) {
    moved_to = "127.0.0.9"; /* nobody listens there */
    redlock_manager *manager = with_name("moves.test", 1);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 4));
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_WAITING, 1));
    pthread_mutex_lock(&mutex);
    moved_to = "127.0.0.1";
    pthread_mutex_unlock(&mutex);
    assert_true(drive_nodes(world_loop, manager, REDLOCK_NODE_READY, 5));
    assert_int_equal(world_node_info(manager, 0).connects, 1);
    int before = counted(&lookups);
    server_kill(&world_servers.at[0]);
    server_restart(&world_servers.at[0]);
    assert_true(drive_reconnected(world_loop, manager, 0, 2));
    assert_true(counted(&lookups) > before);
}
