/* Events of a group over a fake env: each once, in order, with its context, however requests and
 * leases end. */
#include "told_kit.h"

static int span; /* a context */

static redlock_acquire_options traced_options(void) {
    redlock_acquire_options options = default_options();
    options.trace = &span;
    return options;
}

/* Two of three nodes do this. */
static void two(enum redlock_operation operation, redlock_vote_kind vote) {
    fake_env_answer(&fake, 0, operation, vote);
    fake_env_answer(&fake, 1, operation, vote);
}

static redlock_lease *take_traced(struct seen *seen) {
    const redlock_acquire_options options = traced_options();
    redlock_lease *lease = take(&options, seen);
    assert_told(STARTED, ACQUIRED);
    return lease;
}

/* --- The life of a lock --- */

static void see_after_acquired(const redlock_result *result, void *data) {
    assert_told(ACQUIRED); /* before the callback */
    see(result, data);
}

static void see_after_released(const redlock_result *result, void *data) {
    assert_told(RELEASED);
    see(result, data);
}

TOLD_TEST(a_lock_and_its_release_are_told, three_told) {
    struct seen released = {0};
    const redlock_acquire_options options = traced_options();
    assert_is(redlock_group_acquire(fake.group, "r", &options, NULL, see_after_acquired, &seen), REDLOCK_OK);
    assert_told(STARTED); /* inside the call */
    fake_env_pass_ms(&fake, 3);
    two(REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
    assert_int_equal(seen.count, 1);
    assert_int_equal(last()->event.elapsed_us, 3000);
    assert_int_equal(last()->event.attempts, 1);
    assert_int_equal(last()->event.validity_ms, redlock_lease_validity_ms(seen.lease));
    fake_env_pass_ms(&fake, 20);
    assert_is(redlock_release(seen.lease, see_after_released, &released), REDLOCK_OK);
    assert_nothing_told();
    fake_env_pass_ms(&fake, 4);
    two(REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    assert_int_equal(released.count, 1);
    assert_is(last()->event.code, REDLOCK_OK);
    assert_int_equal(last()->event.elapsed_us, 20000); /* until it was asked for */
    for (unsigned i = 0; i < told_count; i++) {
        assert_ptr_equal(told[i].event.trace, &span);
        assert_true(told[i].event.id != 0 && told[i].event.id == told[0].event.id);
        assert_string_equal(told[i].resource, "r");
        assert_string_equal(told[i].node, "");
        assert_string_equal(told[i].reason, "");
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_nothing_told();
}

/* Of a lease that has the lock alone, until it is downgraded. */
TOLD_TEST(the_mode_is_told, three_told) {
    redlock_acquire_options options = traced_options();
    redlock_lease *lease = take(&options, &seen);
    assert_told(STARTED, ACQUIRED);
    assert_is(told[0].event.mode, REDLOCK_EXCLUSIVE);
    assert_is(last()->event.mode, REDLOCK_EXCLUSIVE);
    assert_is(redlock_downgrade(lease, NULL, NULL), REDLOCK_OK);
    two(REDLOCK_OP_EXTEND, REDLOCK_VOTE_GRANTED);
    assert_told(EXTENDED);
    assert_is(last()->event.mode, REDLOCK_SHARED);
    redlock_lease_forget(lease);
    assert_told(FORGOTTEN);
    assert_is(last()->event.mode, REDLOCK_SHARED);
    options.mode = REDLOCK_SHARED;
    const unsigned before = told_count;
    lease = take(&options, &seen);
    assert_told(STARTED, ACQUIRED);
    assert_is(told[before].event.mode, REDLOCK_SHARED);
    assert_is(last()->event.mode, REDLOCK_SHARED);
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    strcpy(token, redlock_lease_token(lease));
    redlock_lease_forget(lease);
    assert_told(FORGOTTEN);
    assert_is(redlock_group_adopt(fake.group, "r", token, NULL, &lease), REDLOCK_OK);
    assert_told(ADOPTED);
    assert_is(last()->event.mode, REDLOCK_SHARED);
    redlock_lease_forget(lease);
    assert_told(FORGOTTEN);
}

/* The key prefix is no part of the resource. A fencing token is told. */
TOLD_TEST(a_fencing_token_is_told, three_told) {
    const uint64_t proposed = acquire_fenced(&seen);
    for (unsigned i = 0; i < 2; i++) {
        accept_fence(i, REDLOCK_OP_ACQUIRE);
    }
    assert_told(STARTED, ACQUIRED);
    assert_int_equal(last()->event.fence, proposed);
    assert_null(last()->event.trace);
    give_back(seen.lease);
    assert_told(RELEASED);
}

TOLD_TEST(each_lost_try_is_told_and_then_the_failure, three_told) {
    redlock_acquire_options options = traced_options();
    options.wait_timeout_ms = 300;
    options.order = REDLOCK_ORDER_NONE;
    options.retry_delay_min_ms = options.retry_delay_max_ms = 100;
    acquire(&options, &seen);
    assert_told(STARTED);
    fake_env_pass_ms(&fake, 2);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_told(DENIED);
    assert_is(last()->event.code, REDLOCK_ERR_CONTENDED);
    assert_int_equal(last()->event.attempts, 1);
    assert_int_equal(last()->event.elapsed_us, 2000);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED); /* the release of what may be there */
    fake_env_pass_ms(&fake, 100);
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
    assert_told(DENIED);
    assert_is(last()->event.code, REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(last()->event.attempts, 2);
    fake.refusing = redlock_nodes_all(3);
    fake_env_pass_ms(&fake, 198);
    assert_told(DENIED, FAILED);
    assert_is(last()->event.code, REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(last()->event.elapsed_us, 300000);
    assert_int_equal(last()->event.attempts, 3);
    assert_ptr_equal(last()->event.trace, &span);
    assert_int_equal(snapshot().wait.count, 1);
    assert_int_equal(snapshot().acquire.count, 0);
    assert_int_equal(snapshot().held.count, 0);
}

TOLD_TEST(a_try_that_asks_no_node_is_told, three_told) {
    redlock_acquire_options options = traced_options();
    options.ttl_ms = 1; /* nothing would be left of it */
    acquire(&options, &seen);
    assert_told(STARTED);
    fake_env_turn(&fake);
    assert_told(FAILED);
    assert_is(last()->event.code, REDLOCK_ERR_TOO_SLOW);
    assert_int_equal(seen.count, 1);
    assert_int_equal(snapshot().wait.count, 0);
}

/* Once, however often it takes a place. */
TOLD_TEST(a_waiter_is_queued_once, five_told) {
    queue_up(&seen);
    assert_told(STARTED, DENIED, QUEUED);
    push(0, 1);
    fake_env_pass_ms(&fake, 2);
    fake_env_votes(&fake, REDLOCK_OP_WAIT, "GG");
    refresh(); /* it yields, and waits on */
    assert_int_equal(statistics().yields, 1);
    assert_nothing_told();
    fake_env_pass_ms(&fake, 100);
    const uint64_t granted = snapshot().votes[REDLOCK_VOTED_GRANTED][2];
    push(0, 2);
    assert_told(ACQUIRED);
    assert_int_equal(snapshot().votes[REDLOCK_VOTED_GRANTED][2], granted + 1);
    assert_is(seen.code, REDLOCK_OK);
    const redlock_telemetry now = snapshot();
    assert_int_equal(now.wait.count, 1);
    assert_int_equal(now.wait.sum_us, now.acquire.sum_us);
    assert_int_equal(last()->event.elapsed_us, now.acquire.sum_us);
    give_back(seen.lease);
    assert_told(RELEASED);
}

/* --- How an acquire ends --- */

TOLD_TEST(a_cancelled_acquire_has_failed, three_told) {
    redlock_request *request;
    const redlock_acquire_options options = traced_options();
    assert_is(redlock_group_acquire(fake.group, "r", &options, &request, see, &seen), REDLOCK_OK);
    redlock_request_cancel(request);
    redlock_request_cancel(request);
    assert_told(STARTED);
    fake_env_turn(&fake);
    assert_told(FAILED);
    assert_is(last()->event.code, REDLOCK_ERR_CANCELLED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_nothing_told();
}

static redlock_request *other;

static void see_and_cancel_other(const redlock_result *result, void *data) {
    see(result, data);
    redlock_request_cancel(other);
}

/* It was won, but its callback had not run. Nobody was told of the lease, so nobody is told of its
 * end. */
TOLD_TEST(a_lease_that_was_cancelled_in_time_never_was, three_told) {
    struct seen first = {0}, second = {0};
    assert_is(redlock_group_acquire(fake.group, "a", NULL, NULL, see_and_cancel_other, &first), REDLOCK_OK);
    assert_is(redlock_group_acquire(fake.group, "b", NULL, &other, see, &second), REDLOCK_OK);
    assert_told(STARTED, STARTED);
    assert_true(told[0].event.id != told[1].event.id);
    redlock_lease *won = (redlock_lease *)other;
    fake.group->in_callbacks = true; /* as if a callback made both calls */
    for (unsigned i = 0; i < 2; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
    }
    assert_true(redlock_lease_validity_ms(won) > 0);
    assert_nothing_told();
    fake.group->in_callbacks = false;
    redlock_group_wake(fake.group);
    assert_told(ACQUIRED, FAILED);
    assert_is(last()->event.code, REDLOCK_ERR_CANCELLED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
    assert_nothing_told();
    give_back(first.lease);
    assert_told(RELEASED);
}

TOLD_TEST(without_random_bytes_it_fails, three_told) {
    redlock_acquire_options options = traced_options();
    options.wait_timeout_ms = 10000;
    options.order = REDLOCK_ORDER_NONE;
    acquire(&options, &seen);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake.random_code = REDLOCK_ERR_RANDOM;
    fake_env_pass_ms(&fake, 1000);
    assert_told(STARTED, DENIED, FAILED);
    assert_is(last()->event.code, REDLOCK_ERR_RANDOM);
    struct seen refused = {0};
    assert_is(redlock_group_acquire(fake.group, "r", &options, NULL, see, &refused), REDLOCK_ERR_RANDOM);
    options.ttl_ms = 0;
    assert_is(redlock_group_acquire(fake.group, "r", &options, NULL, see, &refused), REDLOCK_ERR_INVALID);
    assert_nothing_told(); /* not accepted, so not started */
}

/* --- The life of a lease --- */

TOLD_TEST(a_loss_is_told_with_its_reason, three_told) {
    redlock_acquire_options options = watched_options(&seen);
    options.trace = &span;
    redlock_lease *lease = take(&options, &seen);
    const int64_t validity_ms = redlock_lease_validity_ms(lease);
    assert_told(STARTED, ACQUIRED);
    fake.now_ns += 60000 * REDLOCK_NS_PER_MS; /* the process stood still */
    fake_env_turn(&fake);
    assert_told(LOST);
    assert_int_equal(seen.lost, 1);
    assert_is(last()->event.code, REDLOCK_ERR_LOST);
    assert_ptr_equal(last()->event.trace, &span);
    assert_string_equal(last()->reason, seen.reason);
    /* Until its deadline, not until now. */
    assert_int_equal(last()->event.elapsed_us, validity_ms * 1000);
    assert_int_equal(snapshot().held.sum_us, validity_ms * 1000);
    give_back(lease);
    assert_told(RELEASED);
    assert_is(last()->event.code, REDLOCK_ERR_LOST);
    assert_int_equal(snapshot().held.count, 1);
}

TOLD_TEST(renewals_are_told_and_their_lateness_counted, three_told) {
    struct seen extended = {0};
    redlock_acquire_options options = traced_options();
    options.auto_extend = true;
    options.heal = false;
    redlock_lease *lease = take(&options, &seen);
    assert_told(STARTED, ACQUIRED);
    const int64_t planned_ns = fake.wake_ns;
    fake.now_ns = planned_ns + 7 * REDLOCK_NS_PER_MS;
    fake_env_turn(&fake);
    assert_nothing_told();
    redlock_telemetry now = snapshot();
    assert_int_equal(now.renewal_late.count, 1);
    assert_int_equal(now.renewal_late.sum_us, 7000);
    fake.now_ns += 2 * REDLOCK_NS_PER_MS;
    two(REDLOCK_OP_EXTEND, REDLOCK_VOTE_GRANTED);
    assert_told(EXTENDED);
    assert_is(last()->event.code, REDLOCK_OK);
    assert_true(last()->event.automatic);
    assert_int_equal(last()->event.elapsed_us, 2000);
    assert_string_equal(last()->reason, "");
    assert_int_equal(last()->event.validity_ms, redlock_lease_validity_ms(lease));
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);

    fake.refusing = redlock_nodes_all(3);
    fake.now_ns = fake.wake_ns;
    fake_env_turn(&fake);
    assert_told(EXTENDED);
    assert_is(last()->event.code, REDLOCK_ERR_NO_QUORUM);
    assert_true(last()->event.automatic);
    assert_string_equal(last()->reason,
                        "0 of 3 nodes confirmed it, 2 are needed (node0:6379, node1:6379, node2:6379: no "
                        "answer)");
    assert_int_equal(snapshot().renewal_late.count, 2);
    assert_int_equal(statistics().extends_failed, 1);
    fake.refusing = 0;

    assert_is(redlock_extend(lease, 20000, see, &extended), REDLOCK_OK);
    two(REDLOCK_OP_EXTEND, REDLOCK_VOTE_GRANTED);
    assert_told(EXTENDED);
    assert_false(last()->event.automatic);
    assert_is(last()->event.code, REDLOCK_OK);
    assert_int_equal(snapshot().renewal_late.count, 2); /* nobody planned this one */

    assert_is(redlock_extend(lease, 20000, see, &extended), REDLOCK_OK);
    two(REDLOCK_OP_EXTEND, REDLOCK_VOTE_DENIED);
    assert_told(EXTENDED, LOST);
    assert_is(told[told_count - 2].event.code, REDLOCK_ERR_LOST);
    give_back(lease);
    assert_told(RELEASED);
}

/* A caller's extension that replaces a renewal, and a release during a renewal, end no round. */
TOLD_TEST(a_renewal_that_is_given_up_is_not_told, three_told) {
    struct seen extended = {0};
    redlock_acquire_options options = traced_options();
    options.auto_extend = true;
    redlock_lease *lease = take(&options, &seen);
    assert_told(STARTED, ACQUIRED);
    fake_env_pass_ms(&fake, 3400);
    assert_is(redlock_extend(lease, 20000, see, &extended), REDLOCK_OK);
    assert_nothing_told();
    give_back(lease);
    assert_told(RELEASED);
    assert_is(extended.code, REDLOCK_ERR_CANCELLED);
}

TOLD_TEST(an_adopted_lease_is_told, three_told) {
    struct seen extended = {0};
    redlock_lease *lease;
    const redlock_acquire_options options = traced_options();
    assert_is(redlock_group_adopt(fake.group, "r", "token", &options, &lease), REDLOCK_OK);
    assert_told(ADOPTED);
    assert_ptr_equal(last()->event.trace, &span);
    assert_is(redlock_extend(lease, 5000, see, &extended), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
    assert_told(EXTENDED);
    assert_is(last()->event.code, REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(last()->event.validity_ms, 0);
    assert_is(redlock_extend(lease, 5000, see, &extended), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_told(EXTENDED);
    assert_is(last()->event.code, REDLOCK_OK);
    fake_env_pass_ms(&fake, 50);
    redlock_lease_forget(lease);
    assert_told(FORGOTTEN); /* inside the call */
    assert_int_equal(last()->event.elapsed_us, 50000);
    assert_int_equal(snapshot().held.count, 1);
    fake_env_pass_ms(&fake, 20000);
    assert_nothing_told();
    assert_int_equal(snapshot().acquire.count, 0);
}

/* --- The end of the manager --- */

TOLD_TEST(a_close_tells_the_end_of_everything_once, three_told) {
    struct seen held = {0}, pending = {0}, lost = {0};
    redlock_lease *adopted;
    unsigned drained = 0;
    redlock_acquire_options options = watched_options(&lost);
    (void)take(&options, &lost);
    fake_env_pass_ms(&fake, 10000);
    assert_told(STARTED, ACQUIRED, LOST);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    (void)take_traced(&held);
    assert_is(redlock_group_adopt(fake.group, "t", "token", NULL, &adopted), REDLOCK_OK);
    assert_is(redlock_group_acquire(fake.group, "p", NULL, NULL, see, &pending), REDLOCK_OK);
    assert_told(ADOPTED, STARTED);
    redlock_group_drain(fake.group, count_drained, &drained);
    assert_nothing_told();
    fake_env_turn(&fake);
    assert_told(RELEASED, FAILED); /* the lost lease; the acquire */
    assert_is(told[told_count - 2].event.code, REDLOCK_ERR_LOST);
    assert_is(last()->event.code, REDLOCK_ERR_CLOSED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
    assert_told(RELEASED, RELEASED);
    assert_is(last()->event.code, REDLOCK_OK);
    assert_int_equal(drained, 1);
}

static void see_drained(void *data) {
    assert_told(RELEASED, RELEASED); /* before it */
    count_drained(data);
}

/* Nobody answers the releases: one that the caller asked for, and one of the close. */
TOLD_TEST(a_close_without_answers_tells_the_end_too, three_told) {
    struct seen first, second, released = {0};
    unsigned drained = 0;
    redlock_lease *lease = take_traced(&first);
    (void)take_traced(&second);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    redlock_group_drain(fake.group, see_drained, &drained);
    fake_env_pass_ms(&fake, 100);
    assert_nothing_told();
    fake_env_pass_ms(&fake, 2);
    assert_int_equal(drained, 1);
    for (unsigned i = 1; i <= 2; i++) {
        assert_is(told[told_count - i].event.code, REDLOCK_ERR_CLOSED);
        assert_ptr_equal(told[told_count - i].event.trace, &span);
    }
}

/* And after the end, the memory is freed without a word: see close_group(). */
TOLD_TEST(in_a_forked_child_nothing_is_told, three_told) {
    redlock_lease *lease = take_traced(&seen), *adopted;
    fake.random_code = REDLOCK_ERR_FORKED;
    assert_is(redlock_group_acquire(fake.group, "r", NULL, NULL, see, &seen), REDLOCK_ERR_FORKED);
    assert_is(redlock_group_adopt(fake.group, "r", "token", NULL, &adopted), REDLOCK_ERR_FORKED);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_ERR_FORKED);
    redlock_lease_forget(lease);
    redlock_group_delete(fake.group); /* as redlock_manager_abandon() */
    assert_nothing_told();
    fake_env_open(&fake, 3, three_told.config);
}
