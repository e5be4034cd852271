/* How a client begins and ends: nodes that are down, failures of the system and of memory, close
 * under load, callbacks, signals. */
#include "blocking_kit.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "blocking/client.h"

/* --- Failures on demand --- */

static atomic_bool no_threads;
static atomic_long allocations_left; /* 0: no limit; else this allocation fails */
static atomic_bool allocation_failed;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *data);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *data);
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *data) {
    return atomic_load(&no_threads) ? EAGAIN : __real_pthread_create(thread, attributes, body, data);
}

static bool fails(void) {
    long left = atomic_load(&allocations_left);
    while (left > 0) {
        if (atomic_compare_exchange_weak(&allocations_left, &left, left - 1)) {
            if (left == 1) {
                atomic_store(&allocation_failed, true);
            }
            return left == 1;
        }
    }
    return false;
}

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size) {
    return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text) {
    return fails() ? NULL : __real_strdup(text);
}

static size_t entries(const char *directory) {
    DIR *opened = opendir(directory);
    size_t count = 0;
    kit_must(opened != NULL);
    while (readdir(opened)) {
        count++;
    }
    (void)closedir(opened);
    return count;
}

TESTS_WITH(kit_start, kit_stop);

/* --- Open --- */

KIT_TEST(a_bad_uri_is_refused_with_a_sentence) {
    const char *nodes[] = {"redis://127.0.0.1:1", "gopher://x"};
    redlock_manager_options options;
    redlock_client *client = (redlock_client *)&options;
    char error[256];
    size_t descriptors = entries("/proc/self/fd");
    redlock_manager_options_default(&options);
    options.nodes = nodes;
    options.node_count = 2;
    assert_is(redlock_client_open(&options, &client, error, sizeof error), REDLOCK_ERR_INVALID);
    assert_null(client);
    assert_contains(error, "node 2");
    assert_is(redlock_client_open(&options, &client, NULL, 0), REDLOCK_ERR_INVALID);
    assert_is(redlock_client_open(&options, NULL, error, sizeof error), REDLOCK_ERR_INVALID);
    assert_true(strlen(error) > 0);
    size_t tasks = entries("/proc/self/task");
    assert_is(redlock_client_open(NULL, &client, error, sizeof error), REDLOCK_ERR_INVALID);
    assert_true(strlen(error) > 0);
    assert_int_equal(entries("/proc/self/fd"), descriptors);
    /* A joined thread may stay in the list for a moment. */
    kit_until(entries("/proc/self/task") == tasks);
}

KIT_TEST(open_waits_for_the_nodes) {
    for (int i = 0; i < 10; i++) {
        redlock_client *client = kit_client(NODE_TIMEOUT_MS);
        redlock_client_acquire_options options = kit_options(20000, 0);
        redlock_lease *lease = NULL;
        redlock_result *result = NULL;
        assert_is(redlock_client_acquire(client, "r", &options, &lease, &result), REDLOCK_OK);
        for (size_t k = 0; k < 5; k++) {
            redlock_vote vote = {.size = sizeof vote};
            assert_is(redlock_result_vote(result, k, &vote), REDLOCK_OK);
            assert_true(vote.kind == REDLOCK_VOTE_GRANTED || vote.kind == REDLOCK_VOTE_PENDING);
        }
        redlock_result_free(result);
        kit_release(client, lease);
        kit_close(client);
    }
}

KIT_TEST(nodes_that_are_down_are_no_error) {
    servers_each(&kit_servers, 0, 5, server_kill);
    redlock_client *client = kit_client(500);
    kit_refused(client, "r", REDLOCK_ERR_NO_QUORUM);
    servers_each(&kit_servers, 0, 3, server_restart);
    kit_release(client, kit_acquire(client, "r", PATIENT_MS));
}

KIT_TEST(without_a_thread_the_error_says_so) {
    redlock_manager_options options;
    redlock_client *client = NULL;
    char error[256];
    size_t descriptors = entries("/proc/self/fd");
    redlock_manager_options_default(&options);
    options.nodes = kit_servers.uris;
    options.node_count = kit_servers.count;
    atomic_store(&no_threads, true);
    int code = redlock_client_open(&options, &client, error, sizeof error);
    atomic_store(&no_threads, false);
    assert_is(code, REDLOCK_ERR_SYSTEM);
    assert_null(client);
    assert_contains(error, "thread");
    assert_contains(error, strerror(EAGAIN));
    assert_int_equal(entries("/proc/self/fd"), descriptors);
}

KIT_TEST(nothing_is_left_of_a_closed_client) {
    kit_close(kit_client(NODE_TIMEOUT_MS));
    size_t descriptors = entries("/proc/self/fd"), tasks = entries("/proc/self/task");
    for (int i = 0; i < 10; i++) {
        redlock_client *client = kit_client(NODE_TIMEOUT_MS);
        (void)kit_acquire(client, "r", PATIENT_MS);
        kit_close(client);
    }
    assert_int_equal(entries("/proc/self/fd"), descriptors);
    /* A joined thread may stay in the list for a moment. */
    kit_until(entries("/proc/self/task") == tasks);
    kit_expect_no_keys();
}

/* --- Memory --- */

/* The whole life of a client. Returns the first code that is not OK, and frees everything on every
 * path. */
static int live(void) {
    redlock_manager_options options;
    redlock_client *client = NULL;
    redlock_lease *lease = NULL, *again = NULL;
    redlock_result *result = NULL;
    char error[256];
    redlock_client_acquire_options acquire = kit_options(20000, 0);
    redlock_manager_options_default(&options);
    options.nodes = kit_servers.uris;
    options.node_count = kit_servers.count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.connect_timeout_ms = 20000;
    int code = redlock_client_open(&options, &client, error, sizeof error);
    if (code != REDLOCK_OK) {
        kit_must(client == NULL && error[0] != '\0');
        return code;
    }
    acquire.reentrant = true;
    code = redlock_client_acquire(client, "r", &acquire, &lease, &result);
    redlock_result_free(result);
    if (code == REDLOCK_OK) {
        code = redlock_client_acquire(client, "r", &acquire, &again, NULL);
        if (code == REDLOCK_OK) {
            code = redlock_client_release(client, again, NULL);
        }
        int extended = redlock_client_extend(client, lease, 30000, &result);
        redlock_result_free(result);
        int released = redlock_client_release(client, lease, &result);
        redlock_result_free(result);
        code = code != REDLOCK_OK ? code : extended != REDLOCK_OK ? extended : released;
    } else {
        kit_must(lease == NULL);
    }
    if (code == REDLOCK_OK) {
        code = redlock_client_inspect(client, "r", &result);
        redlock_result_free(result);
    }
    kit_must(redlock_client_close(client) == REDLOCK_OK);
    return code;
}

/* A failure may cost a node, a result or the call, but nothing else, and never the lock without an
 * error. */
KIT_TEST(every_allocation_may_fail) {
    long failing = 1, errors = 0;
    assert_is(live(), REDLOCK_OK);
    for (;; failing++) {
        atomic_store(&allocation_failed, false);
        atomic_store(&allocations_left, failing);
        int code = live();
        atomic_store(&allocations_left, 0);
        if (!atomic_load(&allocation_failed)) {
            assert_is(code, REDLOCK_OK);
            break;
        }
        assert_true(code == REDLOCK_OK || code == REDLOCK_ERR_NO_MEMORY || code == REDLOCK_ERR_SYSTEM);
        errors += code != REDLOCK_OK;
        kit_expect_no_keys();
    }
    assert_true(failing > 10);
    assert_true(errors >= 5);
    assert_is(live(), REDLOCK_OK);
}

/* --- Close --- */

struct blocked {
    redlock_client *client;
    const char *resource;
    uint64_t owner;
    int64_t retry_delay_ms;
    int code;
};

static void *acquire_for_ever(void *data) {
    struct blocked *blocked = data;
    redlock_client_acquire_options options = kit_options(60000, REDLOCK_WAIT_FOREVER);
    redlock_lease *lease = NULL;
    options.lock.retry_delay_min_ms = options.lock.retry_delay_max_ms = blocked->retry_delay_ms;
    options.reentrant = blocked->owner != 0;
    options.owner = blocked->owner;
    blocked->code = redlock_client_acquire(blocked->client, blocked->resource, &options, &lease, NULL);
    kit_must(blocked->code == REDLOCK_OK || lease == NULL);
    return NULL;
}

/* Only the table knows of threads that wait for another thread of their owner. */
static size_t waiting_for_their_owner(redlock_client *client) {
    struct redlock_reentrant *table = &client->reentrant;
    pthread_mutex_lock(&table->monitor.mutex);
    size_t waiting = table->waiting;
    pthread_mutex_unlock(&table->monitor.mutex);
    return waiting;
}

#define BLOCKED 12

/* A third of them share an owner in pairs: one asks the nodes, the other waits for it. */
static void block(redlock_client *client, struct blocked *blocked, pthread_t *threads, int64_t retry_delay_ms) {
    redlock_statistics statistics = {.size = sizeof statistics};
    for (size_t i = 0; i < BLOCKED; i++) {
        blocked[i] = (struct blocked){.client = client,
                                      .resource = i % 2 ? "odd" : "even",
                                      .owner = i % 3 ? 0 : 9 + i % 2,
                                      .retry_delay_ms = retry_delay_ms};
        assert_int_equal(pthread_create(&threads[i], NULL, acquire_for_ever, &blocked[i]), 0);
    }
    /* A count of attempts is not enough: a few callers that retry make as many. */
    kit_until(redlock_client_statistics(client, &statistics) == REDLOCK_OK && statistics.acquires == BLOCKED - 2 &&
              statistics.attempts >= BLOCKED - 2);
    kit_until(waiting_for_their_owner(client) == 2);
}

KIT_TEST(close_ends_what_others_are_blocked_in) {
    redlock_client *holder = kit_client(NODE_TIMEOUT_MS);
    redlock_lease *odd = kit_acquire(holder, "odd", 0), *even = kit_acquire(holder, "even", 0);
    for (int round = 0; round < 20; round++) {
        redlock_client *client = kit_client(NODE_TIMEOUT_MS);
        struct blocked blocked[BLOCKED];
        pthread_t threads[BLOCKED];
        /* Between two attempts nothing is under way, so the client ends as soon as the blocked
         * calls have returned. */
        block(client, blocked, threads, round % 2 ? 5 : 60000);
        kit_close(client);
        for (size_t i = 0; i < BLOCKED; i++) {
            pthread_join(threads[i], NULL);
            assert_is(blocked[i].code, REDLOCK_ERR_CLOSED);
        }
    }
    kit_release(holder, odd);
    kit_release(holder, even);
    kit_expect_no_keys();
}

/* --- Callbacks on the loop thread --- */

struct caller {
    redlock_client *client;
    atomic_bool done;
    int acquired, closed, counted, released;
};

static void call_back(redlock_lease *lease, const char *reason, void *data) {
    struct caller *caller = data;
    redlock_lease *none = NULL;
    redlock_statistics statistics = {.size = sizeof statistics};
    (void)reason;
    caller->acquired = redlock_client_acquire(caller->client, "x", NULL, &none, NULL);
    caller->released = redlock_client_release(caller->client, lease, NULL);
    caller->counted = redlock_client_statistics(caller->client, &statistics);
    caller->closed = redlock_client_close(caller->client);
    atomic_store(&caller->done, true);
}

KIT_TEST(a_blocking_call_in_a_callback_is_refused) {
    struct caller caller = {.client = kit_client(NODE_TIMEOUT_MS)};
    redlock_client_acquire_options options = kit_options(2000, PATIENT_MS);
    redlock_lease *lease = NULL;
    options.lock.on_lost = call_back;
    options.lock.lost_data = &caller;
    assert_is(redlock_client_acquire(caller.client, "r", &options, &lease, NULL), REDLOCK_OK);
    kit_until(atomic_load(&caller.done));
    assert_is(caller.acquired, REDLOCK_ERR_INVALID);
    assert_is(caller.released, REDLOCK_ERR_INVALID);
    assert_is(caller.counted, REDLOCK_ERR_INVALID);
    assert_is(caller.closed, REDLOCK_ERR_INVALID);
    assert_is(redlock_client_release(caller.client, lease, NULL), REDLOCK_ERR_LOST);
}

/* --- Signals --- */

/* No thread blocks the signal when the client starts; later only the loop thread does not block
 * it. */
CLIENT_TEST(the_loop_thread_takes_no_signals) {
    sigset_t signals, before, pending;
    struct timespec patience = {.tv_sec = 60};
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGTERM);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &signals, &before), 0);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    kit_release(client, kit_acquire(client, "r", 0)); /* the loop thread still runs */
    assert_int_equal(sigpending(&pending), 0);
    assert_true(sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGTERM));
    assert_true(sigtimedwait(&signals, NULL, &patience) > 0);
    assert_true(sigtimedwait(&signals, NULL, &patience) > 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

static atomic_uint interrupts;

static void interrupt(int number) {
    (void)number;
    atomic_fetch_add(&interrupts, 1);
}

KIT_TEST(a_signal_to_a_blocked_thread_does_not_end_its_call) {
    redlock_client *holder = kit_client(NODE_TIMEOUT_MS);
    struct blocked blocked = {.client = kit_client(NODE_TIMEOUT_MS), .resource = "r", .retry_delay_ms = 5, .code = 1};
    struct sigaction action = {.sa_handler = interrupt}, before;
    redlock_statistics statistics = {.size = sizeof statistics};
    pthread_t thread;
    assert_int_equal(sigaction(SIGUSR2, &action, &before), 0);
    redlock_lease *lease = kit_acquire(holder, "r", 0);
    assert_int_equal(pthread_create(&thread, NULL, acquire_for_ever, &blocked), 0);
    kit_until(redlock_client_statistics(blocked.client, &statistics) == REDLOCK_OK && statistics.acquires == 1);
    for (unsigned i = 1; i <= 20; i++) {
        assert_int_equal(pthread_kill(thread, SIGUSR2), 0);
        kit_until(atomic_load(&interrupts) == i);
    }
    kit_release(holder, lease);
    pthread_join(thread, NULL);
    assert_is(blocked.code, REDLOCK_OK);
    assert_int_equal(sigaction(SIGUSR2, &before, NULL), 0);
}
