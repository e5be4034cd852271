/* Shared locks through the public API on real nodes: who reads with whom, who waits for whom, the
 * way from one mode to the other, adoption, fencing tokens, nodes that forget and nodes that die.
 * */
#include "world.h"

#define LONG_MS 60000

static redlock_acquire_options reading(int64_t ttl_ms, int64_t wait_timeout_ms) {
    redlock_acquire_options options = world_acquire_options(ttl_ms, wait_timeout_ms);
    options.mode = REDLOCK_SHARED;
    return options;
}

static redlock_lease *read_it(redlock_manager *manager, const char *resource, int64_t wait_timeout_ms) {
    const redlock_acquire_options options = reading(LONG_MS, wait_timeout_ms);
    return world_acquire_with(manager, resource, &options);
}

static void acquire(redlock_manager *manager, redlock_acquire_options options, struct outcome *outcome) {
    assert_is(redlock_acquire(manager, "door", &options, NULL, outcome_collect, outcome), REDLOCK_OK);
}

static void assert_ends(struct outcome *outcome, int code) {
    if (!outcome_wait(world_loop, outcome) || outcome->code != code) {
        fail_msg("%d results, the code is %s, not %s", outcome->runs, redlock_error_name(outcome->code),
                 redlock_error_name(code));
    }
}

static void assert_refused(redlock_manager *manager, redlock_acquire_options options) {
    struct outcome *outcome = world_outcome();
    acquire(manager, options, outcome);
    assert_ends(outcome, REDLOCK_ERR_CONTENDED);
}

static void release(redlock_lease *lease) {
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
}

static void extend(redlock_lease *lease, int64_t ttl_ms) {
    assert_is(drive_extend(world_loop, lease, ttl_ms, world_outcome()), REDLOCK_OK);
}

struct queue {
    long long waiters;
};

static bool is_long(void *data) {
    const struct queue *queue = data;
    size_t like = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        like += world_servers.at[i].pid != 0 &&
                atoll(server_ask(&world_servers.at[i], "ZCARD", "door:wait")) == queue->waiters;
    }
    return like > world_servers.count / 2;
}

static void wait_for_length(long long waiters) {
    struct queue queue = {waiters};
    if (!drive_until(world_loop, is_long, &queue, DRIVE_TIMEOUT_MS)) {
        fail_msg("not %lld wait", waiters);
    }
}

static bool has_ended(const struct outcome *outcome) {
    return outcome->runs > 0;
}

static void count_readers(const redlock_result *result, void *data) {
    *(int64_t *)data = redlock_result_readers(result);
}

static bool has_counted(void *data) {
    return *(int64_t *)data != INT64_MIN;
}

/* A node may be late. */
static void assert_read_by(redlock_manager *manager, int64_t expected) {
    int64_t readers = -1;
    for (int asked = 0; readers != expected && asked < 1000; asked++) {
        readers = INT64_MIN;
        assert_is(redlock_inspect(manager, "door", count_readers, &readers), REDLOCK_OK);
        assert_true(drive_until(world_loop, has_counted, &readers, DRIVE_TIMEOUT_MS));
    }
    assert_int_equal(readers, expected);
}

TESTS_WITH(world_three, world_end);

MANAGER_TEST(many_read_and_nobody_writes_meanwhile) {
    redlock_manager *other = world_manager_all(PATIENT_MS);
    redlock_lease *first = read_it(manager, "door", 0), *second = read_it(other, "door", 0);
    redlock_lease *third = read_it(other, "door", 0);
    assert_refused(other, world_acquire_options(LONG_MS, 0));
    assert_read_by(other, 3);
    release(first);
    release(second);
    assert_refused(manager, world_acquire_options(LONG_MS, 0));
    assert_read_by(manager, 1);
    release(third);
    assert_read_by(manager, 0);
    redlock_lease *writer = world_acquire(manager, "door", LONG_MS);
    assert_read_by(other, 0);
    assert_refused(other, reading(LONG_MS, 0));
    world_release_all(writer, NULL);
}

WORLD_TEST(who_came_first_is_first_whichever_it_wants) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    struct outcome *writer = world_outcome(), *second = world_outcome(), *third = world_outcome();
    redlock_lease *reader = read_it(manager, "door", 0);
    /* All of one manager: two read the clocks of nodes with different errors. */
    acquire(other, world_acquire_options(LONG_MS, LONG_MS), writer);
    wait_for_length(1);
    acquire(other, reading(LONG_MS, LONG_MS), second);
    wait_for_length(2);
    acquire(other, reading(LONG_MS, LONG_MS), third);
    wait_for_length(3);
    assert_refused(manager, reading(LONG_MS, 0)); /* a try passes nobody */
    release(reader);
    assert_ends(writer, REDLOCK_OK);
    assert_false(has_ended(second) || has_ended(third));
    release(writer->lease);
    assert_ends(second, REDLOCK_OK);
    assert_ends(third, REDLOCK_OK);
    release(second->lease);
    world_release_all(third->lease, NULL);
}

WORLD_TEST(a_writer_who_gives_up_lets_readers_in) {
    redlock_manager *manager = world_listening();
    struct outcome *writer = world_outcome(), *second = world_outcome();
    redlock_request *request;
    redlock_lease *reader = read_it(manager, "door", 0);
    const redlock_acquire_options patient = world_acquire_options(LONG_MS, LONG_MS);
    assert_is(redlock_acquire(manager, "door", &patient, &request, outcome_collect, writer), REDLOCK_OK);
    wait_for_length(1);
    acquire(manager, reading(LONG_MS, LONG_MS), second);
    wait_for_length(2);
    redlock_request_cancel(request);
    assert_ends(writer, REDLOCK_ERR_CANCELLED);
    assert_ends(second, REDLOCK_OK);
    release(reader);
    world_release_all(second->lease, NULL);
}

WORLD_TEST(a_downgrade_lets_readers_in_and_no_writer) {
    redlock_manager *manager = world_listening();
    struct outcome *reader = world_outcome(), *writer = world_outcome(), *done = world_outcome();
    redlock_lease *lease = world_acquire(manager, "door", LONG_MS);
    acquire(manager, reading(LONG_MS, LONG_MS), reader);
    wait_for_length(1);
    acquire(manager, world_acquire_options(LONG_MS, LONG_MS), writer);
    wait_for_length(2);
    assert_is(redlock_downgrade(lease, outcome_collect, done), REDLOCK_OK);
    assert_ends(done, REDLOCK_OK);
    assert_ends(reader, REDLOCK_OK);
    assert_true(redlock_lease_validity_ms(lease) > 0 && redlock_lease_validity_ms(reader->lease) > 0);
    extend(lease, LONG_MS);
    release(lease);
    assert_false(has_ended(writer));
    release(reader->lease);
    assert_ends(writer, REDLOCK_OK);
    world_release_all(writer->lease, NULL);
}

MANAGER_TEST(a_token_that_reads_is_adopted_as_one) {
    redlock_lease *lease = read_it(manager, "door", 0), *beside = read_it(manager, "door", 0), *adopted;
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    strcpy(token, redlock_lease_token(lease));
    redlock_lease_forget(lease);
    assert_is(redlock_adopt(manager, "door", token, TIMES(LONG_MS, 0), &adopted), REDLOCK_OK);
    extend(adopted, LONG_MS);
    release(adopted);
    assert_true(redlock_lease_validity_ms(beside) > 0);
    world_release_all(beside, NULL);
}

static uint64_t fence_of(redlock_manager *manager, redlock_mode mode, redlock_lease **lease) {
    redlock_acquire_options options = world_acquire_options(LONG_MS, LONG_MS);
    options.mode = mode;
    options.fencing = true;
    *lease = world_acquire_with(manager, "door", &options);
    return redlock_lease_fence(*lease);
}

MANAGER_TEST(a_readers_fencing_token_is_between_those_of_writers) {
    redlock_lease *lease, *beside;
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        const uint64_t written = fence_of(manager, REDLOCK_EXCLUSIVE, &lease);
        assert_true(written > last && written % 1000 != 999);
        release(lease);
        const uint64_t read = fence_of(manager, REDLOCK_SHARED, &lease);
        last = fence_of(manager, REDLOCK_SHARED, &beside);
        assert_true(read > written && read % 1000 == 999 && last >= read && last % 1000 == 999);
        release(lease);
        release(beside);
    }
}

static bool has_two_readers(UNUSED void *data) {
    size_t count = 0;
    for (size_t i = 0; i < world_servers.count; i++) {
        count += strcmp(server_ask(&world_servers.at[i], "ZCARD", "door"), "2") == 0;
    }
    return count == world_servers.count;
}

/* SCRIPT FLUSH and keys that are gone: the reader joins again where it may, beside the other one.
 * */
MANAGER_TEST(a_node_that_forgot_is_healed_and_knows_the_script_again) {
    redlock_lease *lease = read_it(manager, "door", 0), *beside = read_it(manager, "door", 0);
    assert_true(drive_until(world_loop, has_two_readers, NULL, DRIVE_TIMEOUT_MS));
    assert_string_equal(server_ask(&world_servers.at[0], "DEL", "door"), "1");
    assert_string_equal(server_ask(&world_servers.at[0], "SCRIPT", "FLUSH"), "OK");
    extend(lease, LONG_MS);
    assert_true(world_wait_with_key("door", 3, DRIVE_TIMEOUT_MS));
    assert_string_not_equal(server_ask(&world_servers.at[0], "ZSCORE", "door", redlock_lease_token(lease)), "(nil)");
    assert_string_equal(server_ask(&world_servers.at[0], "ZSCORE", "door", redlock_lease_token(beside)), "(nil)");
    release(lease);
    assert_true(redlock_lease_validity_ms(beside) > 0);
    world_release_all(beside, NULL);
}

/* A reader that died keeps a writer out for its own ttl, and no reader. */
WORLD_TEST(a_dead_reader_ends_by_itself) {
    redlock_manager *manager = world_listening(), *other = world_listening();
    redlock_acquire_options brief = reading(1000, 0);
    struct outcome *writer = world_outcome();
    redlock_lease *dead = world_acquire_with(other, "door", &brief);
    redlock_lease *reader = read_it(manager, "door", 0);
    redlock_lease_forget(dead);
    acquire(manager, world_acquire_options(LONG_MS, LONG_MS), writer);
    wait_for_length(1);
    release(reader);
    assert_ends(writer, REDLOCK_OK);
    world_release_all(writer->lease, NULL);
}

/* The other nodes make the quorum; a reader that asks it comes in. */
WORLD_TEST(a_node_that_is_down_keeps_nobody_out) {
    redlock_manager *manager = world_listening();
    server_kill(&world_servers.at[2]);
    redlock_lease *first = read_it(manager, "door", LONG_MS), *second = read_it(manager, "door", LONG_MS);
    struct outcome *writer = world_outcome();
    acquire(manager, world_acquire_options(LONG_MS, LONG_MS), writer);
    wait_for_length(1);
    release(first);
    release(second);
    assert_ends(writer, REDLOCK_OK);
    release(writer->lease);
    server_restart(&world_servers.at[2]);
}
