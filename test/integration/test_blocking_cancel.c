/* Acquires that another thread, a callback or a signal ends; and that nothing is held then (R8). */
#include "blocking_kit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define WAITERS 8

struct waiter {
    pthread_t thread;
    redlock_client *client;
    const char *resource;
    redlock_client_acquire_options options;
    redlock_lease *lease;
    redlock_result *result;
    int code;
    int worked;
    atomic_bool done;
};

static redlock_cancel *cancel_of(redlock_client *client) {
    redlock_cancel *cancel = NULL;
    kit_must(redlock_cancel_new(client, &cancel) == REDLOCK_OK);
    kit_must(!redlock_cancel_is_set(cancel));
    return cancel;
}

static struct waiter waiter_of(redlock_client *client, const char *resource, redlock_cancel *cancel) {
    struct waiter waiter = {
        .client = client, .resource = resource, .options = kit_options(60000, REDLOCK_WAIT_FOREVER), .code = 1};
    waiter.options.lock.cancel = cancel;
    return waiter;
}

static void *wait_for_it(void *data) {
    struct waiter *waiter = data;
    waiter->code =
        redlock_client_acquire(waiter->client, waiter->resource, &waiter->options, &waiter->lease, &waiter->result);
    atomic_store(&waiter->done, true);
    return NULL;
}

static void start(struct waiter *waiter) {
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_it, waiter), 0);
}

static redlock_statistics statistics_of(redlock_client *client) {
    redlock_statistics statistics = {.size = sizeof statistics};
    kit_must(redlock_client_statistics(client, &statistics) == REDLOCK_OK);
    return statistics;
}

static void join_cancelled(struct waiter *waiter) {
    char message[512];
    pthread_join(waiter->thread, NULL);
    assert_is(waiter->code, REDLOCK_ERR_CANCELLED);
    assert_null(waiter->lease);
    assert_is(redlock_result_code(waiter->result), REDLOCK_ERR_CANCELLED);
    (void)redlock_result_message(waiter->result, message, sizeof message);
    assert_contains(message, ": cancelled.");
    redlock_result_free(waiter->result);
    waiter->result = NULL;
}

/* Nobody holds anything, and the next one gets the lock. (A release that met a place in the queue
 * may have handed the lock to a call that was cancelled, which gives it back.) */
static void expect_free(redlock_client *client, const char *resource) {
    kit_until(servers_with_key(&kit_servers, resource) == 0);
    assert_int_equal(statistics_of(client).leases_held, 0);
    assert_int_equal(statistics_of(client).requests_pending, 0);
    kit_release(client, kit_acquire(client, resource, PATIENT_MS));
    kit_expect_no_keys();
}

TESTS_WITH(kit_start, kit_stop);

/* With a client, an object that cancels, and a waiter that names it. */
#define CANCEL_TEST(name)                                                                                              \
    static void name##_of(redlock_client *client, redlock_cancel *cancel, struct waiter waiter);                       \
    CLIENT_TEST(name) {                                                                                                \
        redlock_cancel *cancel = cancel_of(client);                                                                    \
        name##_of(client, cancel, waiter_of(client, "r", cancel));                                                     \
        redlock_cancel_free(cancel);                                                                                   \
    }                                                                                                                  \
    static void name##_of(UNUSED redlock_client *client, UNUSED redlock_cancel *cancel, UNUSED struct waiter waiter)

CANCEL_TEST(a_waiter_in_line_is_cancelled) {
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS);
    redlock_lease *lease = kit_acquire(rival, "r", 0);
    for (int order = REDLOCK_ORDER_FAIR; order <= REDLOCK_ORDER_NONE; order++) {
        waiter = waiter_of(client, "r", cancel);
        const uint64_t attempts = statistics_of(client).attempts;
        waiter.options.lock.order = (redlock_order)order;
        start(&waiter);
        if (order == REDLOCK_ORDER_FAIR) {
            kit_until(statistics_of(client).queued == 1);
        } else {
            kit_until(statistics_of(client).attempts > attempts + 2);
        }
        assert_false(atomic_load(&waiter.done));
        redlock_cancel_set(cancel);
        assert_true(redlock_cancel_is_set(cancel));
        join_cancelled(&waiter);
        redlock_cancel_clear(cancel);
        kit_until(servers_with_key(&kit_servers, "r") == 5); /* the rival's */
    }
    kit_release(rival, lease);
    expect_free(client, "r");
    assert_int_equal(statistics_of(client).cancelled, 2);
}

CANCEL_TEST(before_the_call_it_begins_nothing) {
    redlock_cancel_set(cancel);
    redlock_cancel_set(cancel);
    for (int reentrant = 0; reentrant < 2; reentrant++) {
        waiter.options.reentrant = reentrant;
        start(&waiter);
        join_cancelled(&waiter);
    }
    assert_int_equal(statistics_of(client).acquires, 0);
    waiter.options.reentrant = false;
    redlock_cancel_clear(cancel); /* it is as new */
    redlock_cancel_clear(cancel);
    assert_false(redlock_cancel_is_set(cancel));
    start(&waiter);
    pthread_join(waiter.thread, NULL);
    assert_is(waiter.code, REDLOCK_OK);
    redlock_result_free(waiter.result);
    redlock_cancel_set(cancel); /* after the call, it does nothing to the lease */
    assert_true(redlock_lease_validity_ms(waiter.lease) > 0);
    assert_int_equal(servers_with_key(&kit_servers, "r") >= 3, 1);
    kit_release(client, waiter.lease);
    kit_expect_no_keys();
    redlock_cancel_free(NULL);
}

/* The nodes have set the key, or will, but nobody has heard of it: it is released all the same. */
CANCEL_TEST(what_a_cancelled_acquire_got_is_released) {
    servers_each(&kit_servers, 2, 5, server_pause);
    start(&waiter);
    kit_until(server_has_key(&kit_servers.at[0], "r") && server_has_key(&kit_servers.at[1], "r"));
    redlock_cancel_set(cancel);
    join_cancelled(&waiter);
    servers_each(&kit_servers, 2, 5, server_resume);
    expect_free(client, "r");
}

CANCEL_TEST(without_a_quorum_the_wait_ends) {
    servers_each(&kit_servers, 0, 3, server_kill);
    start(&waiter);
    kit_until(statistics_of(client).attempts > 2);
    redlock_cancel_set(cancel);
    join_cancelled(&waiter);
}

/* One object ends all that name it, and nobody else; clearing it at once does not save them. */
CANCEL_TEST(one_object_ends_many) {
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS);
    redlock_cancel *other = cancel_of(client);
    struct waiter waiters[WAITERS], last = waiter_of(client, "r", other);
    redlock_lease *lease = kit_acquire(rival, "r", 0);
    for (size_t i = 0; i < WAITERS; i++) {
        waiters[i] = waiter_of(client, "r", cancel);
        start(&waiters[i]);
    }
    start(&last);
    kit_until(statistics_of(client).acquires == WAITERS + 1);
    redlock_cancel_set(cancel);
    redlock_cancel_clear(cancel);
    for (size_t i = 0; i < WAITERS; i++) {
        join_cancelled(&waiters[i]);
    }
    assert_false(atomic_load(&last.done));
    kit_release(rival, lease);
    pthread_join(last.thread, NULL);
    assert_is(last.code, REDLOCK_OK);
    redlock_result_free(last.result);
    kit_release(client, last.lease);
    expect_free(client, "r");
    redlock_cancel_free(other);
}

/* Its thread waits for another thread of the same owner, and asks no node. */
CANCEL_TEST(a_wait_for_another_thread_of_the_owner_ends) {
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS);
    redlock_cancel *other = cancel_of(client);
    struct waiter first = waiter_of(client, "r", other), second = waiter_of(client, "r", cancel);
    redlock_lease *lease = kit_acquire(rival, "r", 0);
    first.options.reentrant = second.options.reentrant = true;
    first.options.owner = second.options.owner = 7;
    start(&first);
    kit_until(statistics_of(client).acquires == 1);
    start(&second);
    redlock_cancel_set(cancel);
    join_cancelled(&second);
    assert_int_equal(statistics_of(client).acquires, 1);
    assert_false(atomic_load(&first.done));
    redlock_cancel_set(other);
    join_cancelled(&first);
    kit_release(rival, lease);
    expect_free(client, "r");
    redlock_cancel_free(other);
}

static redlock_cancel *signalled;

static void on_signal(int number) {
    (void)number;
    redlock_cancel_set(signalled);
}

CANCEL_TEST(a_signal_handler_may_set_it) {
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS);
    struct sigaction action = {.sa_handler = on_signal}, before;
    redlock_lease *lease = kit_acquire(rival, "r", 0);
    signalled = cancel;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    start(&waiter);
    kit_until(statistics_of(client).acquires == 1);
    assert_int_equal(pthread_kill(waiter.thread, SIGUSR1), 0); /* to the thread that is blocked */
    join_cancelled(&waiter);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    kit_release(rival, lease);
    expect_free(client, "r");
}

static void cancel_on_loss(redlock_lease *lease, const char *reason, void *data) {
    (void)lease;
    (void)reason;
    redlock_cancel_set(data);
}

CANCEL_TEST(a_callback_may_set_it) {
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS);
    redlock_client_acquire_options options = kit_options(300, 0);
    redlock_lease *other = NULL, *lease = kit_acquire(rival, "r", 0);
    options.lock.on_lost = cancel_on_loss;
    options.lock.lost_data = cancel;
    start(&waiter);
    assert_is(redlock_client_acquire(client, "short", &options, &other, NULL), REDLOCK_OK);
    join_cancelled(&waiter);
    assert_is(redlock_client_release(client, other, NULL), REDLOCK_ERR_LOST);
    kit_release(rival, lease);
    expect_free(client, "r");
}

/* Where a guard is on, an acquire waits for the first greeting of each node before it asks any. */
KIT_TEST(before_the_nodes_are_known_the_wait_ends) {
    redlock_manager_options options;
    redlock_client *client = NULL;
    redlock_statistics statistics = {.size = sizeof statistics};
    redlock_manager_options_default(&options);
    options.nodes = kit_servers.uris;
    options.node_count = kit_servers.count;
    options.node_timeout_ms = 20000; /* it would wait so long */
    options.connect_timeout_ms = 1;  /* so the open does not wait for the nodes */
    options.clock_guard = true;
    options.ttl_max_ms = 60000;
    servers_each(&kit_servers, 0, 5, server_pause);
    assert_is(redlock_client_open(&options, &client, NULL, 0), REDLOCK_OK);
    redlock_cancel *cancel = cancel_of(client);
    struct waiter waiter = waiter_of(client, "r", cancel);
    start(&waiter);
    kit_until(redlock_client_statistics(client, &statistics) == REDLOCK_OK && statistics.acquires == 1);
    redlock_cancel_set(cancel);
    join_cancelled(&waiter);
    servers_each(&kit_servers, 0, 5, server_resume);
    assert_is(redlock_client_close(client), REDLOCK_OK);
    redlock_cancel_free(cancel);
    kit_expect_no_keys();
}

static void cancel_on_log(redlock_log_level level, const char *line, void *data) {
    redlock_cancel *cancel = atomic_load((_Atomic(redlock_cancel *) *)data);
    (void)level;
    if (cancel && strstr(line, "log me")) {
        redlock_cancel_set(cancel);
    }
}

/* The line comes in the middle of what the loop thread does for the acquire itself. */
KIT_TEST(a_line_of_the_log_may_set_it) {
    redlock_manager_options options;
    redlock_client *client = NULL;
    _Atomic(redlock_cancel *) cancel = NULL;
    redlock_manager_options_default(&options);
    options.nodes = kit_servers.uris;
    options.node_count = kit_servers.count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.on_log = cancel_on_log;
    options.log_data = &cancel;
    options.log_level = REDLOCK_LOG_DEBUG;
    assert_is(redlock_client_open(&options, &client, NULL, 0), REDLOCK_OK);
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS);
    redlock_lease *lease = kit_acquire(rival, "log me", 0);
    redlock_cancel *made = cancel_of(client);
    struct waiter waiter = waiter_of(client, "log me", made);
    atomic_store(&cancel, made);
    start(&waiter);
    join_cancelled(&waiter);
    kit_release(rival, lease);
    assert_is(redlock_client_close(client), REDLOCK_OK);
    redlock_cancel_free(made);
    kit_expect_no_keys();
}

static int work(redlock_lease *lease, void *data) {
    struct waiter *waiter = data;
    waiter->worked++;
    redlock_cancel_set(waiter->options.lock.cancel); /* it does not touch the work */
    kit_must(redlock_lease_validity_ms(lease) > 0);
    return redlock_cancel_is_set(waiter->options.lock.cancel) ? 5 : 6;
}

static void *do_work(void *data) {
    struct waiter *waiter = data;
    waiter->code = redlock_client_with(waiter->client, "r", &waiter->options, work, waiter, NULL, &waiter->result);
    return NULL;
}

CANCEL_TEST(work_that_waits_for_its_lock_does_not_begin) {
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS);
    redlock_lease *lease = kit_acquire(rival, "r", 0);
    assert_int_equal(pthread_create(&waiter.thread, NULL, do_work, &waiter), 0);
    kit_until(statistics_of(client).acquires == 1);
    redlock_cancel_set(cancel);
    join_cancelled(&waiter);
    assert_int_equal(waiter.worked, 0);
    redlock_cancel_clear(cancel);
    kit_release(rival, lease);
    int returned = 0;
    assert_is(redlock_client_with(client, "r", &waiter.options, work, &waiter, &returned, NULL), REDLOCK_OK);
    assert_int_equal(returned, 5);
    assert_int_equal(waiter.worked, 1);
    expect_free(client, "r");
}

CLIENT_TEST(an_object_of_another_client_is_refused) {
    redlock_client *other = kit_client(NODE_TIMEOUT_MS);
    redlock_cancel *cancel = cancel_of(other);
    struct waiter waiter = waiter_of(client, "r", cancel);
    redlock_lease *lease = NULL;
    char message[256];
    start(&waiter);
    pthread_join(waiter.thread, NULL);
    assert_is(waiter.code, REDLOCK_ERR_INVALID);
    (void)redlock_result_message(waiter.result, message, sizeof message);
    assert_string_equal(message, "cannot acquire 'r': invalid argument: cancel is of another client.");
    redlock_result_free(waiter.result);
    /* An adopt asks no node, so there is nothing to cancel. */
    waiter.options.lock.cancel = cancel;
    assert_is(redlock_client_adopt(other, "r", "t", &waiter.options.lock, &lease), REDLOCK_ERR_INVALID);
    assert_true(redlock_client_invalid(other, message, sizeof message) > 0);
    assert_string_equal(message, "cancel is only for redlock_client_acquire() and redlock_client_with()");
    redlock_cancel_free(cancel);
}

/* The close comes while calls are cancelled: each returns one of the two codes. */
KIT_TEST(a_close_and_a_cancel_at_once) {
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS);
    redlock_lease *lease = kit_acquire(rival, "r", 0);
    for (int round = 0; round < 10; round++) {
        redlock_client *client = kit_client(NODE_TIMEOUT_MS);
        redlock_cancel *cancel = cancel_of(client);
        struct waiter waiters[WAITERS];
        for (size_t i = 0; i < WAITERS; i++) {
            waiters[i] = waiter_of(client, "r", cancel);
            start(&waiters[i]);
        }
        kit_until(statistics_of(client).acquires == WAITERS);
        redlock_cancel_set(cancel);
        kit_close(client);
        for (size_t i = 0; i < WAITERS; i++) {
            pthread_join(waiters[i].thread, NULL);
            assert_true(waiters[i].code == REDLOCK_ERR_CANCELLED || waiters[i].code == REDLOCK_ERR_CLOSED);
            redlock_result_free(waiters[i].result);
        }
        redlock_cancel_free(cancel);
    }
    kit_release(rival, lease);
    kit_expect_no_keys();
}

struct race {
    redlock_client *client;
    redlock_cancel *cancel;
    atomic_bool over;
    atomic_int inside, won, cancelled;
};

static void *acquire_again_and_again(void *data) {
    struct race *race = data;
    redlock_client_acquire_options options = kit_options(60000, REDLOCK_WAIT_FOREVER);
    options.lock.cancel = race->cancel;
    while (!atomic_load(&race->over)) {
        redlock_lease *lease = NULL;
        int code = redlock_client_acquire(race->client, "r", &options, &lease, NULL);
        if (code == REDLOCK_OK) {
            kit_must(atomic_fetch_add(&race->inside, 1) == 0);
            atomic_fetch_add(&race->won, 1);
            atomic_fetch_sub(&race->inside, 1);
            kit_release(race->client, lease);
        } else {
            kit_must(code == REDLOCK_ERR_CANCELLED && !lease);
            atomic_fetch_add(&race->cancelled, 1);
        }
    }
    return NULL;
}

/* The cancel meets acquires at every point of their way. */
KIT_TEST(cancels_race_with_grants) {
    struct race race = {.client = kit_client(NODE_TIMEOUT_MS)};
    pthread_t threads[WAITERS];
    race.cancel = cancel_of(race.client);
    for (size_t i = 0; i < WAITERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, acquire_again_and_again, &race), 0);
    }
    for (int i = 0; i < 300; i++) {
        const int won = atomic_load(&race.won), cancelled = atomic_load(&race.cancelled);
        redlock_cancel_set(race.cancel);
        kit_until(atomic_load(&race.cancelled) > cancelled);
        redlock_cancel_clear(race.cancel);
        if (i % 3 != 0) {
            kit_until(atomic_load(&race.won) > won);
        }
    }
    atomic_store(&race.over, true);
    redlock_cancel_set(race.cancel);
    for (size_t i = 0; i < WAITERS; i++) {
        pthread_join(threads[i], NULL);
    }
    expect_free(race.client, "r");
    redlock_cancel_free(race.cancel);
}
