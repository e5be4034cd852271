/* Reentrant leases: counts, owners, several threads of one owner, loss and failed releases. */
#include "blocking_kit.h"

#include <pthread.h>
#include <stdatomic.h>

static redlock_client_acquire_options reentrant(uint64_t owner, int64_t wait_timeout_ms) {
    redlock_client_acquire_options options = kit_options(60000, wait_timeout_ms);
    options.reentrant = true;
    options.owner = owner;
    return options;
}

static int acquire(redlock_client *client, const char *resource, uint64_t owner, int64_t wait_timeout_ms,
                   redlock_lease **lease) {
    redlock_client_acquire_options options = reentrant(owner, wait_timeout_ms);
    return redlock_client_acquire(client, resource, &options, lease, NULL);
}

TESTS_WITH(kit_start, kit_stop);

CLIENT_TEST(only_the_last_release_releases) {
    redlock_lease *first = NULL, *again = NULL, *third = NULL;
    redlock_result *result = NULL;
    redlock_client_acquire_options options = reentrant(0, 0);
    redlock_statistics statistics = {.size = sizeof statistics};
    assert_is(redlock_client_acquire(client, "r", &options, &first, &result), REDLOCK_OK);
    assert_ptr_equal(redlock_result_lease(result), first);
    redlock_result_free(result);
    assert_is(redlock_client_acquire(client, "r", &options, &again, &result), REDLOCK_OK);
    assert_null(result);
    assert_is(acquire(client, "r", 0, 0, &third), REDLOCK_OK);
    assert_ptr_equal(again, first);
    assert_ptr_equal(third, first);
    assert_is(redlock_client_statistics(client, &statistics), REDLOCK_OK);
    assert_int_equal(statistics.attempts, 1);
    kit_until(servers_with_key(&kit_servers, "r") == 5);
    assert_is(redlock_client_release(client, third, &result), REDLOCK_OK);
    assert_null(result);
    assert_is(redlock_client_release(client, again, NULL), REDLOCK_OK);
    assert_int_equal(servers_with_key(&kit_servers, "r"), 5);
    assert_true(redlock_lease_validity_ms(first) > 0);
    assert_is(redlock_client_release(client, first, &result), REDLOCK_OK);
    assert_is(redlock_result_code(result), REDLOCK_OK);
    redlock_result_free(result);
    kit_expect_no_keys();
}

CLIENT_TEST(a_reentrant_lease_has_no_permits) {
    redlock_client_acquire_options options = reentrant(0, 0);
    redlock_lease *lease = NULL;
    options.lock.permits = 1;
    options.lock.limit = 2;
    assert_is(redlock_client_acquire(client, "r", &options, &lease, NULL), REDLOCK_ERR_INVALID);
}

static int acquire_to(redlock_client *client, redlock_mode mode, redlock_lease **lease) {
    redlock_client_acquire_options options = reentrant(0, REDLOCK_WAIT_FOREVER);
    options.lock.mode = mode;
    return redlock_client_acquire(client, "r", &options, lease, NULL);
}

/* In the exclusive mode it would wait for itself. */
CLIENT_TEST(who_reads_reads_again_and_never_waits_for_itself) {
    redlock_client *other = kit_client(NODE_TIMEOUT_MS);
    redlock_lease *first = NULL, *again = NULL, *beside = NULL, *none = NULL;
    redlock_client_acquire_options options = kit_options(60000, 0);
    assert_is(acquire_to(client, REDLOCK_SHARED, &first), REDLOCK_OK);
    options.lock.mode = REDLOCK_SHARED;
    assert_is(redlock_client_acquire(other, "r", &options, &beside, NULL), REDLOCK_OK);
    assert_is(acquire_to(client, REDLOCK_SHARED, &again), REDLOCK_OK);
    assert_ptr_equal(again, first);
    assert_is(acquire_to(client, REDLOCK_EXCLUSIVE, &none), REDLOCK_ERR_UPGRADE);
    assert_null(none);
    assert_is(redlock_client_release(client, again, NULL), REDLOCK_OK);
    assert_is(acquire_to(client, REDLOCK_EXCLUSIVE, &none), REDLOCK_ERR_UPGRADE);
    assert_is(redlock_client_release(other, beside, NULL), REDLOCK_OK);
    kit_release(client, first);
    assert_is(acquire_to(client, REDLOCK_EXCLUSIVE, &first), REDLOCK_OK);
    kit_release(client, first);
}

CLIENT_TEST(who_writes_reads_inside_its_own_lock) {
    redlock_client *other = kit_client(NODE_TIMEOUT_MS);
    redlock_lease *lease = NULL, *inner = NULL, *beside = NULL, *none = NULL;
    redlock_client_acquire_options options = kit_options(60000, 0);
    options.lock.mode = REDLOCK_SHARED;
    assert_is(acquire_to(client, REDLOCK_EXCLUSIVE, &lease), REDLOCK_OK);
    assert_is(acquire_to(client, REDLOCK_SHARED, &inner), REDLOCK_OK);
    assert_ptr_equal(inner, lease);
    assert_is(redlock_client_acquire(other, "r", &options, &beside, NULL), REDLOCK_ERR_CONTENDED);
    assert_is(redlock_client_downgrade(client, lease, NULL), REDLOCK_ERR_BUSY);
    assert_is(redlock_client_release(client, inner, NULL), REDLOCK_OK);
    assert_is(acquire_to(client, REDLOCK_EXCLUSIVE, &inner), REDLOCK_OK); /* it is alone */
    assert_is(redlock_client_release(client, inner, NULL), REDLOCK_OK);
    assert_is(redlock_client_downgrade(client, lease, NULL), REDLOCK_OK);
    assert_is(redlock_client_acquire(other, "r", &options, &beside, NULL), REDLOCK_OK);
    assert_is(acquire_to(client, REDLOCK_EXCLUSIVE, &none), REDLOCK_ERR_UPGRADE);
    assert_is(redlock_client_release(other, beside, NULL), REDLOCK_OK);
    kit_release(client, lease);
}

struct stranger {
    redlock_client *client;
    redlock_lease *lease;
    int acquired, released, forgotten;
};

static void *be_strange(void *data) {
    struct stranger *stranger = data;
    redlock_lease *lease = NULL;
    stranger->acquired = acquire(stranger->client, "r", 0, 0, &lease);
    stranger->released = redlock_client_release(stranger->client, stranger->lease, NULL);
    stranger->forgotten = redlock_client_forget(stranger->client, stranger->lease);
    return NULL;
}

KIT_TEST(another_thread_does_not_share_it) {
    struct stranger stranger = {.client = kit_client(NODE_TIMEOUT_MS)};
    pthread_t thread;
    assert_is(acquire(stranger.client, "r", 0, 0, &stranger.lease), REDLOCK_OK);
    assert_int_equal(pthread_create(&thread, NULL, be_strange, &stranger), 0);
    pthread_join(thread, NULL);
    assert_is(stranger.acquired, REDLOCK_ERR_CONTENDED);
    assert_is(stranger.released, REDLOCK_ERR_NOT_OWNER);
    assert_is(stranger.forgotten, REDLOCK_ERR_NOT_OWNER);
    assert_is(redlock_client_release_as(stranger.client, stranger.lease, 9, NULL), REDLOCK_ERR_NOT_OWNER);
    assert_true(redlock_lease_validity_ms(stranger.lease) > 0);
    kit_release(stranger.client, stranger.lease);
}

struct member {
    redlock_client *client;
    pthread_barrier_t *barrier;
    int64_t wait_timeout_ms;
    redlock_lease *lease;
    int code;
    int64_t took_ms;
};

static void *acquire_as_member(void *data) {
    struct member *member = data;
    if (member->barrier) {
        (void)pthread_barrier_wait(member->barrier);
    }
    int64_t begun_ms = support_now_ms();
    member->code = acquire(member->client, "r", 77, member->wait_timeout_ms, &member->lease);
    member->took_ms = support_now_ms() - begun_ms;
    return NULL;
}

#define MEMBERS 6

/* None of them waits and none is refused: they share the lease that one of them gets. */
CLIENT_TEST(single_tries_of_one_owner_at_once_all_succeed) {
    redlock_statistics statistics = {.size = sizeof statistics};
    pthread_barrier_t barrier;
    for (int round = 0; round < 40; round++) {
        struct member members[MEMBERS];
        pthread_t threads[MEMBERS];
        assert_int_equal(pthread_barrier_init(&barrier, NULL, MEMBERS), 0);
        for (size_t i = 0; i < MEMBERS; i++) {
            members[i] = (struct member){.client = client, .barrier = &barrier};
            assert_int_equal(pthread_create(&threads[i], NULL, acquire_as_member, &members[i]), 0);
        }
        for (size_t i = 0; i < MEMBERS; i++) {
            pthread_join(threads[i], NULL);
            assert_is(members[i].code, REDLOCK_OK);
            assert_ptr_equal(members[i].lease, members[0].lease);
        }
        for (size_t i = 0; i < MEMBERS; i++) {
            assert_is(redlock_client_release_as(client, members[i].lease, 77, NULL), REDLOCK_OK);
        }
        (void)pthread_barrier_destroy(&barrier);
    }
    assert_is(redlock_client_statistics(client, &statistics), REDLOCK_OK);
    assert_int_equal(statistics.acquires, 40);
    kit_expect_no_keys();
}

KIT_TEST(a_wait_for_the_same_owner_ends_at_its_own_timeout) {
    redlock_client *holder = kit_client(NODE_TIMEOUT_MS), *client = kit_client(1000);
    struct member patient = {.client = client, .wait_timeout_ms = REDLOCK_WAIT_FOREVER};
    pthread_t thread;
    redlock_statistics statistics = {.size = sizeof statistics};
    redlock_lease *held = kit_acquire(holder, "r", 0);
    assert_int_equal(pthread_create(&thread, NULL, acquire_as_member, &patient), 0);
    kit_until(redlock_client_statistics(client, &statistics) == REDLOCK_OK && statistics.acquires == 1);
    struct member impatient = {.client = client, .wait_timeout_ms = 150};
    (void)acquire_as_member(&impatient);
    assert_is(impatient.code, REDLOCK_ERR_CONTENDED);
    assert_true(impatient.took_ms >= 149);
    impatient.wait_timeout_ms = 0;
    (void)acquire_as_member(&impatient);
    assert_is(impatient.code, REDLOCK_ERR_CONTENDED);
    assert_true(impatient.took_ms >= 999);
    kit_release(holder, held);
    pthread_join(thread, NULL);
    assert_is(patient.code, REDLOCK_OK);
    assert_is(redlock_client_release_as(client, patient.lease, 77, NULL), REDLOCK_OK);
}

CLIENT_TEST(a_lost_lease_is_released_as_often_as_taken_and_then_taken_anew) {
    redlock_lease *lease = NULL, *again = NULL;
    assert_is(acquire(client, "r", 0, 0, &lease), REDLOCK_OK);
    assert_is(acquire(client, "r", 0, 0, &again), REDLOCK_OK);
    kit_until(servers_with_key(&kit_servers, "r") == 5);
    servers_ask(&kit_servers, 0, 5, "DEL", "r");
    assert_is(redlock_client_extend(client, lease, 30000, NULL), REDLOCK_ERR_LOST);
    redlock_lease *none = lease;
    assert_is(acquire(client, "r", 0, 0, &none), REDLOCK_ERR_LOST);
    assert_null(none);
    assert_is(redlock_client_release(client, again, NULL), REDLOCK_OK);
    assert_is(acquire(client, "r", 0, 0, &none), REDLOCK_ERR_LOST);
    assert_is(redlock_client_release(client, lease, NULL), REDLOCK_ERR_LOST);
    assert_is(acquire(client, "r", 0, 0, &lease), REDLOCK_OK);
    kit_release(client, lease);
}

KIT_TEST(a_failed_last_release_ends_the_hold) {
    redlock_client *client = kit_client(200);
    redlock_lease *lease = NULL;
    kit_until(acquire(client, "r", 0, 0, &lease) == REDLOCK_OK);
    servers_each(&kit_servers, 0, 3, server_pause);
    assert_is(redlock_client_release(client, lease, NULL), REDLOCK_ERR_NO_QUORUM);
    assert_is(acquire(client, "r", 0, 0, &lease), REDLOCK_ERR_NO_QUORUM);
    assert_null(lease);
    servers_each(&kit_servers, 0, 3, server_resume);
    kit_until(acquire(client, "r", 0, 0, &lease) == REDLOCK_OK);
    kit_release(client, lease);
}

#define OWNERS  3
#define THREADS 12

struct family {
    redlock_client *client;
    atomic_uint next;
    atomic_uint holders[OWNERS]; /* threads of each owner inside */
};

static void *nest(void *data) {
    struct family *family = data;
    unsigned own = atomic_fetch_add(&family->next, 1) % OWNERS;
    for (int i = 0; i < 25; i++) {
        redlock_lease *leases[3];
        int depth = 1 + i % 3;
        for (int k = 0; k < depth; k++) {
            kit_must(acquire(family->client, "r", own + 1, REDLOCK_WAIT_FOREVER, &leases[k]) == REDLOCK_OK);
        }
        atomic_fetch_add(&family->holders[own], 1);
        for (unsigned other = 0; other < OWNERS; other++) {
            kit_must(other == own || atomic_load(&family->holders[other]) == 0);
        }
        for (int k = 1; k < depth; k++) {
            kit_must(leases[k] == leases[0]);
        }
        kit_must(redlock_lease_validity_ms(leases[0]) > 0);
        atomic_fetch_sub(&family->holders[own], 1);
        for (int k = 0; k < depth; k++) {
            kit_must(redlock_client_release_as(family->client, leases[k], own + 1, NULL) == REDLOCK_OK);
        }
    }
    return NULL;
}

KIT_TEST(owners_exclude_each_other_and_their_threads_do_not) {
    struct family family = {.client = kit_client(NODE_TIMEOUT_MS)};
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, nest, &family), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    kit_expect_no_keys();
}
