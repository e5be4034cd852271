/* After fork(): the calls of the child are refused, the client of the parent is not affected, the
 * child opens a client of its own. */
#include "base/sanitize.h"
#include "blocking_kit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* In a child, which must not run the exit handlers of its parent. */
#define child_must(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static int work(redlock_lease *lease, void *data) {
    (void)lease;
    (void)data;
    return 0;
}

/* The loop thread, which a cancel wakes, is the parent's; so is the memory of the object. */
static void a_cancel_is_its_own(redlock_client *client, redlock_cancel *cancel) {
    redlock_client_acquire_options options = kit_options(20000, 0);
    redlock_lease *none = NULL;
    options.lock.cancel = cancel;
    redlock_cancel_set(cancel);
    child_must(redlock_cancel_is_set(cancel));
    child_must(redlock_client_acquire(client, "x", &options, &none, NULL) == REDLOCK_ERR_CANCELLED);
    redlock_cancel_clear(cancel);
    child_must(redlock_client_acquire(client, "x", &options, &none, NULL) == REDLOCK_ERR_FORKED);
    redlock_cancel_free(cancel);
}

static void every_call_is_refused(redlock_client *client, redlock_lease *lease) {
    redlock_node_info info = {.size = sizeof info};
    redlock_client_acquire_options options = kit_options(20000, 0);
    redlock_statistics statistics = {.size = sizeof statistics};
    redlock_lease *none = NULL;
    for (int reentrant = 0; reentrant < 2; reentrant++) {
        options.reentrant = reentrant;
        child_must(redlock_client_acquire(client, "x", &options, &none, NULL) == REDLOCK_ERR_FORKED);
    }
    child_must(redlock_client_extend(client, lease, 20000, NULL) == REDLOCK_ERR_FORKED);
    child_must(redlock_client_downgrade(client, lease, NULL) == REDLOCK_ERR_FORKED);
    child_must(redlock_client_release(client, lease, NULL) == REDLOCK_ERR_FORKED);
    child_must(redlock_client_release_as(client, lease, 3, NULL) == REDLOCK_ERR_FORKED);
    child_must(redlock_client_adopt(client, "x", "t", NULL, &none) == REDLOCK_ERR_FORKED);
    child_must(redlock_client_forget(client, lease) == REDLOCK_ERR_FORKED);
    child_must(redlock_client_inspect(client, "x", NULL) == REDLOCK_ERR_FORKED);
    child_must(redlock_client_statistics(client, &statistics) == REDLOCK_ERR_FORKED);
    child_must(redlock_client_node(client, 0, &info) == REDLOCK_ERR_FORKED);
    child_must(redlock_client_node_count(client) == 5);
    child_must(redlock_client_set_credentials(client, 0, NULL, "p") == REDLOCK_ERR_FORKED);
    child_must(redlock_client_with(client, "x", NULL, work, NULL, NULL, NULL) == REDLOCK_ERR_FORKED);
    child_must(redlock_client_close(client) == REDLOCK_OK);
}

/* ASan of gcc 12 copies the locks of its allocator: in a child that was forked while a thread had
 * one, the next malloc() waits for ever. */
#define CHILD_MAY_ALLOCATE (!REDLOCK_UNDER_ASAN)

/* TSan does not support threads in a child of a process with threads: it ends with "dup thread with
 * used id". */
#define CHILD_MAY_HAVE_THREADS (!REDLOCK_UNDER_TSAN)

static void open_ones_own(const char *held) {
    redlock_manager_options options;
    redlock_client_acquire_options acquire = kit_options(20000, 0);
    redlock_client *client = NULL;
    redlock_lease *lease = NULL;
    char error[256];
    redlock_manager_options_default(&options);
    options.nodes = kit_servers.uris;
    options.node_count = kit_servers.count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.connect_timeout_ms = 20000;
    if (!CHILD_MAY_HAVE_THREADS) {
        return;
    }
    child_must(redlock_client_open(&options, &client, error, sizeof error) == REDLOCK_OK);
    child_must(redlock_client_acquire(client, held, &acquire, &lease, NULL) == REDLOCK_ERR_CONTENDED);
    child_must(redlock_client_acquire(client, "child's", &acquire, &lease, NULL) == REDLOCK_OK);
    child_must(redlock_client_release(client, lease, NULL) == REDLOCK_OK);
    child_must(redlock_client_close(client) == REDLOCK_OK);
}

static int start(void **state) {
    if (!CHILD_MAY_HAVE_THREADS) {
        print_message("under TSan the child opens no client of its own\n");
    }
    return kit_start(state);
}

TESTS_WITH(start, kit_stop);

CLIENT_TEST(a_child_is_refused_and_opens_its_own) {
    redlock_statistics before = {.size = sizeof before}, after = {.size = sizeof after};
    redlock_lease *lease = kit_acquire(client, "r", 0);
    redlock_cancel *cancel = NULL;
    assert_is(redlock_cancel_new(client, &cancel), REDLOCK_OK);
    assert_is(redlock_client_statistics(client, &before), REDLOCK_OK);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        a_cancel_is_its_own(client, cancel);
        every_call_is_refused(client, lease);
        open_ones_own("r");
        _exit(0);
    }
    assert_exits(child, 0);
    assert_false(redlock_cancel_is_set(cancel));
    redlock_cancel_free(cancel);
    assert_int_equal(servers_with_key(&kit_servers, "r"), 5);
    assert_true(redlock_lease_validity_ms(lease) > 0);
    assert_is(redlock_client_extend(client, lease, 30000, NULL), REDLOCK_OK);
    kit_release(client, lease);
    assert_is(redlock_client_statistics(client, &after), REDLOCK_OK);
    assert_int_equal(after.acquires, before.acquires);
    kit_expect_no_keys();
}

struct busy {
    redlock_client *client;
    atomic_bool stop;
    atomic_uint next;
    atomic_uint cycles;
};

static void *cycle(void *data) {
    struct busy *busy = data;
    unsigned name = atomic_fetch_add(&busy->next, 1);
    redlock_client_acquire_options options = kit_options(60000, REDLOCK_WAIT_FOREVER);
    char resource[32];
    (void)snprintf(resource, sizeof resource, "r%u", name / 2);
    options.reentrant = name % 2;
    while (!atomic_load(&busy->stop)) {
        redlock_lease *lease = NULL;
        kit_must(redlock_client_acquire(busy->client, resource, &options, &lease, NULL) == REDLOCK_OK);
        kit_release(busy->client, lease);
        atomic_fetch_add(&busy->cycles, 1);
    }
    return NULL;
}

/* The fork comes at any moment of the loop thread and of the callers, with any of their mutexes
 * locked. */
KIT_TEST(forks_under_load_harm_neither_side) {
    if (!CHILD_MAY_ALLOCATE) {
        print_message("skipped: under ASan a child of busy threads may wait for a lock of malloc()\n");
        skip();
    }
    struct busy busy = {.client = kit_client(NODE_TIMEOUT_MS)};
    pthread_t threads[4];
    redlock_lease *lease = kit_acquire(busy.client, "r", 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, cycle, &busy), 0);
    }
    for (int i = 0; i < 100; i++) {
        unsigned seen = atomic_load(&busy.cycles);
        kit_until(atomic_load(&busy.cycles) > seen + 20);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            every_call_is_refused(busy.client, lease);
            if (i % 20 == 0) {
                open_ones_own("r");
            }
            _exit(0);
        }
        assert_exits(child, 0);
    }
    atomic_store(&busy.stop, true);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(redlock_lease_validity_ms(lease) > 0);
    kit_release(busy.client, lease);
    kit_expect_no_keys();
}
