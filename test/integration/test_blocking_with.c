/* Work under a lock: the lock is released however the work ends, and the work learns of its
 * loss. */
#include "blocking_kit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

struct job {
    redlock_client *client;
    redlock_client_acquire_options options;
    int (*inner)(redlock_lease *lease, void *data);
    atomic_bool begun, go_on;
    atomic_int lost;
    bool lost_seen;
    int runs;
    int code;
    int work_result;
};

static int count(redlock_lease *lease, void *data) {
    struct job *job = data;
    job->runs++;
    kit_must(redlock_lease_validity_ms(lease) > 0);
    return 42;
}

TESTS_WITH(kit_start, kit_stop);

KIT_TEST(the_result_of_the_work_is_returned) {
    struct job job = {.client = kit_client(NODE_TIMEOUT_MS)};
    redlock_result *result = NULL;
    int returned = 0;
    assert_is(redlock_client_with(job.client, "r", NULL, count, &job, &returned, &result), REDLOCK_OK);
    assert_int_equal(returned, 42);
    assert_int_equal(job.runs, 1);
    assert_is(redlock_result_code(result), REDLOCK_OK);
    assert_null(redlock_result_lease(result));
    redlock_result_free(result);
    kit_expect_no_keys();
    assert_is(redlock_client_with(job.client, "r", NULL, count, &job, NULL, NULL), REDLOCK_OK);
    assert_is(redlock_client_with(job.client, "r", NULL, NULL, &job, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_client_with(NULL, "r", NULL, count, &job, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_int_equal(job.runs, 2);
}

KIT_TEST(without_the_lock_no_work) {
    struct job job = {.client = kit_client(NODE_TIMEOUT_MS)};
    redlock_client_acquire_options options = kit_options(20000, 0);
    redlock_result *result = NULL;
    int returned = -5;
    redlock_lease *lease = kit_acquire(job.client, "r", 0);
    assert_is(redlock_client_with(job.client, "r", &options, count, &job, &returned, &result), REDLOCK_ERR_CONTENDED);
    assert_is(redlock_result_code(result), REDLOCK_ERR_CONTENDED);
    redlock_result_free(result);
    assert_int_equal(job.runs, 0);
    assert_int_equal(returned, -5);
    kit_release(job.client, lease);
}

static int nest(redlock_lease *lease, void *data) {
    struct job *job = data;
    int returned = 0;
    kit_must(redlock_client_with(job->client, "r", &job->options, count, job, &returned, NULL) == REDLOCK_OK);
    kit_must(returned == 42);
    kit_until(servers_with_key(&kit_servers, "r") == 5);
    kit_must(redlock_lease_validity_ms(lease) > 0);
    return 43;
}

KIT_TEST(reentrant_work_nests) {
    struct job job = {.client = kit_client(NODE_TIMEOUT_MS), .options = kit_options(60000, 0)};
    int returned = 0;
    job.options.reentrant = true;
    assert_is(redlock_client_with(job.client, "r", &job.options, nest, &job, &returned, NULL), REDLOCK_OK);
    assert_int_equal(returned, 43);
    kit_expect_no_keys();
    job.options.owner = 12;
    assert_is(redlock_client_with(job.client, "r", &job.options, nest, &job, &returned, NULL), REDLOCK_OK);
    assert_int_equal(job.runs, 2);
    kit_expect_no_keys();
}

static int exit_thread(redlock_lease *lease, void *data) {
    (void)lease;
    (void)data;
    pthread_exit(NULL);
}

static int wait_for_cancellation(redlock_lease *lease, void *data) {
    struct job *job = data;
    (void)lease;
    atomic_store(&job->begun, true);
    /* Not pause(): a thread that is cancelled inside a function of TSan looks unsynchronised to
     * TSan from then on. */
    while (atomic_load(&job->begun)) {
        pthread_testcancel();
        (void)sched_yield();
    }
    return 0;
}

static void *run_job(void *data) {
    struct job *job = data;
    job->code = redlock_client_with(job->client, "r", &job->options, job->inner, job, &job->work_result, NULL);
    return job;
}

KIT_TEST(pthread_exit_in_the_work_releases) {
    struct job job = {
        .client = kit_client(NODE_TIMEOUT_MS), .options = kit_options(600000, 0), .inner = exit_thread, .code = 1};
    pthread_t thread;
    void *returned = &job;
    assert_int_equal(pthread_create(&thread, NULL, run_job, &job), 0);
    pthread_join(thread, &returned);
    assert_null(returned);
    assert_int_equal(job.code, 1);
    kit_expect_no_keys();
    kit_release(job.client, kit_acquire(job.client, "r", 0));
}

KIT_TEST(cancellation_in_the_work_releases) {
    struct job job = {
        .client = kit_client(NODE_TIMEOUT_MS), .options = kit_options(600000, 0), .inner = wait_for_cancellation};
    pthread_t thread;
    void *returned = NULL;
    for (int named = 0; named < 2; named++) {
        atomic_store(&job.begun, false);
        job.options.reentrant = named;
        job.options.owner = named ? 5 : 0;
        assert_int_equal(pthread_create(&thread, NULL, run_job, &job), 0);
        kit_until(atomic_load(&job.begun));
        assert_int_equal(pthread_cancel(thread), 0);
        pthread_join(thread, &returned);
        assert_ptr_equal(returned, PTHREAD_CANCELED);
        kit_expect_no_keys();
    }
}

static void *acquire_then_work(void *data) {
    struct job *job = data;
    redlock_lease *lease = NULL;
    job->code = redlock_client_acquire(job->client, "r", &job->options, &lease, NULL);
    atomic_store(&job->begun, true);
    if (lease) {
        job->code = redlock_client_release(job->client, lease, NULL);
    }
    pthread_testcancel();
    return job;
}

/* The loop thread uses the stack of a blocked thread, so a cancellation takes effect after the call
 * and not in it. */
KIT_TEST(cancellation_of_a_blocked_call_waits_for_its_end) {
    struct job job = {.client = kit_client(NODE_TIMEOUT_MS), .options = kit_options(60000, REDLOCK_WAIT_FOREVER)};
    redlock_statistics statistics = {.size = sizeof statistics};
    pthread_t thread;
    void *returned = NULL;
    job.options.lock.order = REDLOCK_ORDER_NONE; /* whose attempts show that the loop goes on */
    redlock_lease *lease = kit_acquire(job.client, "r", 0);
    assert_int_equal(pthread_create(&thread, NULL, acquire_then_work, &job), 0);
    kit_until(redlock_client_statistics(job.client, &statistics) == REDLOCK_OK && statistics.acquires == 2);
    assert_int_equal(pthread_cancel(thread), 0);
    kit_until(redlock_client_statistics(job.client, &statistics) == REDLOCK_OK && statistics.attempts >= 5);
    assert_false(atomic_load(&job.begun));
    kit_release(job.client, lease);
    pthread_join(thread, &returned);
    assert_ptr_equal(returned, PTHREAD_CANCELED);
    assert_true(atomic_load(&job.begun));
    assert_is(job.code, REDLOCK_OK);
    kit_expect_no_keys();
}

static void count_loss(redlock_lease *lease, const char *reason, void *data) {
    struct job *job = data;
    kit_must(redlock_lease_validity_ms(lease) == 0);
    kit_must(reason[0] != '\0');
    atomic_fetch_add(&job->lost, 1);
}

static int work_until_lost(redlock_lease *lease, void *data) {
    struct job *job = data;
    kit_must(redlock_lease_validity_ms(lease) > 0);
    servers_each(&kit_servers, 0, kit_servers.count, server_pause);
    kit_until(redlock_lease_validity_ms(lease) == 0);
    job->lost_seen = true;
    kit_until(atomic_load(&job->lost) > 0);
    return 1;
}

KIT_TEST(work_learns_of_loss_when_all_nodes_hang) {
    struct job job = {.client = kit_client(300), .options = kit_options(3000, 0)};
    int returned = 0;
    job.options.lock.auto_extend = true;
    job.options.lock.on_lost = count_loss;
    job.options.lock.lost_data = &job;
    assert_is(redlock_client_with(job.client, "r", &job.options, work_until_lost, &job, &returned, NULL),
              REDLOCK_ERR_LOST);
    servers_each(&kit_servers, 0, kit_servers.count, server_resume);
    assert_int_equal(returned, 1);
    assert_true(job.lost_seen);
    assert_int_equal(atomic_load(&job.lost), 1);
}

/* A ttl, and a cap within which the first renewal surely comes, also on a busy machine. */
#define SHORT_MS 2000
#define CAP_MS   (SHORT_MS - 50)

static int work_longer_than_the_ttl(redlock_lease *lease, void *data) {
    struct job *job = data;
    const int64_t end_ms = support_now_ms() + SHORT_MS + CAP_MS + SHORT_MS / 2;
    /* While it is not lost: otherwise the result will tell. */
    kit_until(support_now_ms() >= end_ms || redlock_lease_validity_ms(lease) == 0);
    job->lost_seen = redlock_lease_validity_ms(lease) == 0;
    kit_until(!job->lost_seen || atomic_load(&job->lost) > 0);
    return 8;
}

KIT_TEST(the_lease_is_renewed_while_the_work_runs) {
    struct job job = {.client = kit_client(NODE_TIMEOUT_MS), .options = kit_options(SHORT_MS, 0)};
    redlock_statistics statistics = {.size = sizeof statistics};
    int returned = 0;
    assert_is(redlock_client_with(job.client, "r", &job.options, work_longer_than_the_ttl, &job, &returned, NULL),
              REDLOCK_OK);
    assert_int_equal(returned, 8);
    assert_false(job.lost_seen);
    assert_is(redlock_client_statistics(job.client, &statistics), REDLOCK_OK);
    assert_true(statistics.extends > 0);
    kit_expect_no_keys();
}

/* Nodes answer in time, so only the ttl can end it. */
KIT_TEST(without_renewal_or_after_its_cap_the_ttl_ends_it) {
    struct job job = {.client = kit_client(NODE_TIMEOUT_MS), .options = kit_options(SHORT_MS, 0)};
    redlock_statistics statistics = {.size = sizeof statistics};
    job.options.lock.on_lost = count_loss;
    job.options.lock.lost_data = &job;
    for (int capped = 0; capped < 2; capped++) {
        atomic_store(&job.lost, 0);
        job.options.no_auto_extend = !capped;
        job.options.lock.auto_extend_max_ms = capped ? CAP_MS : 0;
        assert_is(redlock_client_with(job.client, "r", &job.options, work_longer_than_the_ttl, &job, NULL, NULL),
                  REDLOCK_ERR_LOST);
        assert_true(job.lost_seen);
        assert_is(redlock_client_statistics(job.client, &statistics), REDLOCK_OK);
        assert_int_equal(statistics.extends > 0, capped);
    }
    /* An acquire is not renewed, as before. */
    assert_false(kit_options(SHORT_MS, 0).lock.auto_extend);
}

static int delete_keys(redlock_lease *lease, void *data) {
    (void)data;
    kit_until(servers_with_key(&kit_servers, redlock_lease_resource(lease)) == 5);
    servers_ask(&kit_servers, 0, kit_servers.count, "DEL", redlock_lease_resource(lease));
    return 7;
}

CLIENT_TEST(a_lock_that_was_taken_away_is_reported_at_the_end) {
    int returned = 0;
    assert_is(redlock_client_with(client, "r", NULL, delete_keys, NULL, &returned, NULL), REDLOCK_ERR_LOST);
    assert_int_equal(returned, 7);
}
