/* The blocking client call by call, and sixteen threads at once. */
#include "blocking_kit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

TESTS_WITH(kit_start, kit_stop);

CLIENT_TEST(a_lock_is_taken_extended_and_given_back) {
    redlock_client_acquire_options options = kit_options(20000, 0);
    redlock_lease *lease = NULL;
    redlock_result *result = NULL;
    assert_is(redlock_client_acquire(client, "r", &options, &lease, &result), REDLOCK_OK);
    assert_is(redlock_result_code(result), REDLOCK_OK);
    assert_ptr_equal(redlock_result_lease(result), lease);
    assert_int_equal(redlock_result_vote_count(result), 5);
    redlock_result_free(result);
    assert_string_equal(redlock_lease_resource(lease), "r");
    assert_int_equal(strlen(redlock_lease_token(lease)), 32);
    int64_t validity_ms = redlock_lease_validity_ms(lease);
    assert_true(validity_ms > 0 && validity_ms < 20000 - 200);
    kit_until(servers_with_key(&kit_servers, "r") == 5);
    assert_string_equal(server_ask(&kit_servers.at[0], "GET", "r"), redlock_lease_token(lease));

    assert_is(redlock_client_extend(client, lease, 60000, &result), REDLOCK_OK);
    assert_is(redlock_result_code(result), REDLOCK_OK);
    redlock_result_free(result);
    assert_true(redlock_lease_validity_ms(lease) > 20000);
    assert_is(redlock_client_extend(client, lease, 0, &result), REDLOCK_ERR_INVALID);
    assert_is(redlock_result_code(result), REDLOCK_ERR_INVALID);
    redlock_result_free(result);

    assert_is(redlock_client_release(client, lease, &result), REDLOCK_OK);
    assert_is(redlock_result_code(result), REDLOCK_OK);
    redlock_result_free(result);
    kit_expect_no_keys();
}

KIT_TEST(a_writer_becomes_a_reader) {
    redlock_client *writer = kit_client(NODE_TIMEOUT_MS), *reader = kit_client(NODE_TIMEOUT_MS);
    redlock_client_acquire_options options = kit_options(20000, 0);
    redlock_lease *lease = kit_acquire(writer, "r", 0), *beside = NULL;
    redlock_result *result = NULL;
    options.lock.mode = REDLOCK_SHARED;
    assert_is(redlock_client_acquire(reader, "r", &options, &beside, NULL), REDLOCK_ERR_CONTENDED);
    assert_is(redlock_client_downgrade(writer, lease, &result), REDLOCK_OK);
    assert_is(redlock_result_code(result), REDLOCK_OK);
    assert_int_equal(redlock_result_vote_count(result), 5);
    redlock_result_free(result);
    assert_is(redlock_client_acquire(reader, "r", &options, &beside, NULL), REDLOCK_OK);
    assert_is(redlock_client_downgrade(reader, beside, NULL), REDLOCK_OK); /* an extension */
    assert_is(redlock_client_downgrade(reader, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_client_downgrade(NULL, lease, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_client_release(writer, lease, NULL), REDLOCK_OK);
    assert_is(redlock_client_release(reader, beside, NULL), REDLOCK_OK);
    kit_expect_no_keys();
}

KIT_TEST(so_many_have_permits) {
    redlock_client *first = kit_client(NODE_TIMEOUT_MS), *second = kit_client(NODE_TIMEOUT_MS);
    redlock_client_acquire_options options = kit_options(20000, 0);
    redlock_lease *leases[3] = {NULL};
    uint32_t slots[2];
    options.lock.permits = 2;
    options.lock.limit = 3;
    assert_is(redlock_client_acquire(first, "r", &options, &leases[0], NULL), REDLOCK_OK);
    assert_int_equal(redlock_lease_slots(leases[0], slots, 2), 2);
    assert_is(redlock_client_acquire(second, "r", &options, &leases[1], NULL), REDLOCK_ERR_CONTENDED);
    options.lock.permits = 1;
    assert_is(redlock_client_acquire(second, "r", &options, &leases[1], NULL), REDLOCK_OK);
    assert_is(redlock_client_extend(first, leases[0], 20000, NULL), REDLOCK_OK);
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    (void)snprintf(token, sizeof token, "%s", redlock_lease_token(leases[0]));
    assert_is(redlock_client_forget(first, leases[0]), REDLOCK_OK);
    options.lock.permits = 2;
    options.lock.slots = slots;
    assert_is(redlock_client_adopt(second, "r", token, &options.lock, &leases[2]), REDLOCK_OK);
    assert_is(redlock_client_release(second, leases[2], NULL), REDLOCK_OK);
    assert_is(redlock_client_release(second, leases[1], NULL), REDLOCK_OK);
    kit_expect_no_keys();
}

KIT_TEST(a_rival_is_refused_with_the_votes) {
    redlock_client *holder = kit_client(NODE_TIMEOUT_MS), *rival = kit_client(NODE_TIMEOUT_MS);
    redlock_client_acquire_options options = kit_options(20000, 0);
    redlock_lease *lease = kit_acquire(holder, "r", 0), *none = lease;
    redlock_result *result = NULL;
    assert_is(redlock_client_acquire(rival, "r", &options, &none, &result), REDLOCK_ERR_CONTENDED);
    assert_null(none);
    size_t denied = 0;
    for (size_t i = 0; i < redlock_result_vote_count(result); i++) {
        redlock_vote vote = {.size = sizeof vote};
        assert_is(redlock_result_vote(result, i, &vote), REDLOCK_OK);
        denied += vote.kind == REDLOCK_VOTE_DENIED;
    }
    assert_true(denied >= 3);
    redlock_result_free(result);
    options.lock.wait_timeout_ms = 50;
    int64_t begun_ms = support_now_ms();
    assert_is(redlock_client_acquire(rival, "r", &options, &none, NULL), REDLOCK_ERR_CONTENDED);
    assert_true(support_now_ms() >= begun_ms + 49);
    kit_refused(holder, "r", REDLOCK_ERR_CONTENDED); /* not reentrant unless asked */
    kit_release(holder, lease);
    kit_release(rival, kit_acquire(rival, "r", PATIENT_MS));
}

struct waiter {
    redlock_client *client;
    atomic_bool got;
};

static void *wait_and_release(void *data) {
    struct waiter *waiter = data;
    redlock_lease *lease = kit_acquire(waiter->client, "r", REDLOCK_WAIT_FOREVER);
    atomic_store(&waiter->got, true);
    kit_release(waiter->client, lease);
    return NULL;
}

KIT_TEST(a_waiter_gets_the_lock_after_its_release) {
    struct waiter waiter = {.client = kit_client(NODE_TIMEOUT_MS)};
    pthread_t thread;
    redlock_lease *lease = kit_acquire(waiter.client, "r", 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_and_release, &waiter), 0);
    redlock_statistics statistics = {.size = sizeof statistics};
    kit_until(redlock_client_statistics(waiter.client, &statistics) == REDLOCK_OK && statistics.queued == 1);
    assert_false(atomic_load(&waiter.got));
    kit_release(waiter.client, lease);
    pthread_join(thread, NULL);
    assert_is(redlock_client_statistics(waiter.client, &statistics), REDLOCK_OK);
    assert_int_equal(statistics.handed_over, 1);
    kit_expect_no_keys();
}

#define THREADS 16

struct crowd {
    redlock_client *clients[4];
    unsigned cycles;
    atomic_int inside;
    atomic_uint counter; /* not incremented in one step: two holders at once would lose counts */
    atomic_uint next_name;
};

static void *exclude(void *data) {
    struct crowd *crowd = data;
    unsigned name = atomic_fetch_add(&crowd->next_name, 1);
    redlock_client *client = crowd->clients[name % 4];
    for (unsigned i = 0; i < crowd->cycles; i++) {
        redlock_lease *lease = kit_acquire(client, "r", REDLOCK_WAIT_FOREVER);
        kit_must(atomic_fetch_add(&crowd->inside, 1) == 0);
        unsigned seen = atomic_load_explicit(&crowd->counter, memory_order_relaxed);
        sched_yield();
        atomic_store_explicit(&crowd->counter, seen + 1, memory_order_relaxed);
        kit_must(redlock_lease_validity_ms(lease) > 0);
        kit_must(atomic_fetch_sub(&crowd->inside, 1) == 1);
        kit_release(client, lease);
    }
    return NULL;
}

static void run_crowd(void *(*body)(void *), struct crowd *crowd) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, body, crowd), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

KIT_TEST(sixteen_threads_of_four_clients_exclude_each_other) {
    struct crowd crowd = {.cycles = 25};
    for (size_t i = 0; i < 4; i++) {
        crowd.clients[i] = kit_client(NODE_TIMEOUT_MS);
    }
    run_crowd(exclude, &crowd);
    assert_int_equal(atomic_load(&crowd.counter), THREADS * crowd.cycles);
    kit_expect_no_keys();
}

static void *cycle(void *data) {
    struct crowd *crowd = data;
    char resource[32];
    (void)snprintf(resource, sizeof resource, "r%u", atomic_fetch_add(&crowd->next_name, 1));
    for (unsigned i = 0; i < crowd->cycles; i++) {
        kit_release(crowd->clients[0], kit_acquire(crowd->clients[0], resource, 0));
    }
    return NULL;
}

KIT_TEST(sixteen_threads_do_not_hinder_each_other) {
    struct crowd crowd = {.clients = {kit_client(NODE_TIMEOUT_MS)}, .cycles = 500};
    redlock_statistics statistics = {.size = sizeof statistics};
    run_crowd(cycle, &crowd);
    assert_is(redlock_client_statistics(crowd.clients[0], &statistics), REDLOCK_OK);
    assert_int_equal(statistics.acquired, THREADS * crowd.cycles);
    assert_int_equal(statistics.released, THREADS * crowd.cycles);
    assert_int_equal(statistics.contended, 0);
    kit_expect_no_keys();
}

struct watch {
    const redlock_lease *lease;
    atomic_bool stop;
    uint64_t looks;
};

static void *look(void *data) {
    struct watch *watch = data;
    do {
        kit_must(redlock_lease_validity_ms(watch->lease) > 0);
        watch->looks++;
        sched_yield();
    } while (!atomic_load(&watch->stop));
    return NULL;
}

KIT_TEST(validity_is_read_while_the_loop_renews) {
    redlock_client *client = kit_client(1000);
    redlock_client_acquire_options options = kit_options(6000, 0);
    redlock_statistics statistics = {.size = sizeof statistics};
    redlock_lease *lease = NULL;
    struct watch watches[3] = {0};
    pthread_t threads[3];
    options.lock.auto_extend = true;
    assert_is(redlock_client_acquire(client, "r", &options, &lease, NULL), REDLOCK_OK);
    for (size_t i = 0; i < 3; i++) {
        watches[i].lease = lease;
        assert_int_equal(pthread_create(&threads[i], NULL, look, &watches[i]), 0);
    }
    kit_until(redlock_client_statistics(client, &statistics) == REDLOCK_OK && statistics.extends >= 2);
    for (size_t i = 0; i < 3; i++) {
        atomic_store(&watches[i].stop, true);
        pthread_join(threads[i], NULL);
        assert_true(watches[i].looks > 0);
    }
    kit_release(client, lease);
}
