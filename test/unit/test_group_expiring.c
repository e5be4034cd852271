/* on_expiring, over a fake env: when it runs, with what, and that it never runs for a lease that
 * has ended. */
#include "told_kit.h"

#define END_MS 9898 /* the validity of a ttl of 10 s */

/* What on_expiring was told, and what it does. */
static struct warned {
    unsigned count;
    redlock_lease *lease;
    int64_t remaining_ms;
    void (*act)(redlock_lease *lease);
} warned;

static void warn(redlock_lease *lease, int64_t remaining_ms, void *data) {
    struct warned *to = data;
    to->count++;
    to->lease = lease;
    to->remaining_ms = remaining_ms;
    if (to->act) {
        to->act(lease);
    }
}

static redlock_acquire_options warned_options(struct seen *seen, int64_t expiring_ms) {
    redlock_acquire_options options = watched_options(seen);
    warned = (struct warned){0};
    options.expiring_ms = expiring_ms;
    options.on_expiring = warn;
    options.expiring_data = &warned;
    return options;
}

static redlock_lease *take_warned(struct seen *seen) {
    const redlock_acquire_options options = warned_options(seen, 3000);
    return take(&options, seen);
}

TOLD_TEST(it_runs_before_the_end, three_told) {
    redlock_lease *lease = take_warned(&seen);
    fake_env_pass_ms(&fake, END_MS - 3001);
    assert_int_equal(warned.count, 0);
    assert_told(STARTED, ACQUIRED);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(warned.count, 1);
    assert_ptr_equal(warned.lease, lease);
    assert_int_equal(warned.remaining_ms, 3000);
    assert_told(EXPIRING);
    assert_int_equal(last()->event.validity_ms, 3000);
    assert_int_equal(last()->event.elapsed_us, (END_MS - 3000) * 1000);
    assert_int_equal(statistics().expiring, 1);
    fake_env_pass_ms(&fake, 3000);
    assert_int_equal(warned.count, 1);
    assert_int_equal(seen.lost, 1);
    assert_told(LOST);
    give_back(lease);
}

/* Whoever only traces needs no callback. */
TOLD_TEST(events_need_no_callback, three_told) {
    redlock_acquire_options options = warned_options(&seen, 3000);
    options.on_expiring = NULL;
    redlock_lease *lease = take(&options, &seen);
    fake_env_pass_ms(&fake, END_MS - 3000);
    assert_told(STARTED, ACQUIRED, EXPIRING);
    assert_int_equal(warned.count, 0);
    give_back(lease);
}

static void extend(redlock_lease *lease) {
    assert_is(redlock_extend(lease, 10000, NULL, NULL), REDLOCK_OK);
}

TOLD_TEST(an_extension_in_the_callback_is_told_of_again, three_told) {
    redlock_lease *lease = take_warned(&seen);
    warned.act = extend;
    for (unsigned count = 1; count < 4; count++) {
        fake_env_pass_ms(&fake, END_MS - 3000);
        assert_int_equal(warned.count, count);
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
        assert_int_equal(redlock_lease_validity_ms(lease), END_MS);
    }
    assert_int_equal(seen.lost, 0);
    give_back(lease);
}

static void release(redlock_lease *lease) {
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
}

static void ends_in_the_callback(void (*end)(redlock_lease *lease)) {
    struct seen seen;
    (void)take_warned(&seen);
    warned.act = end;
    fake_env_pass_ms(&fake, END_MS - 3000);
    assert_int_equal(warned.count, 1);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 20000);
    assert_int_equal(warned.count, 1);
    assert_int_equal(seen.lost, 0);
}

TOLD_TEST(a_lease_may_end_in_the_callback, three_told) {
    ends_in_the_callback(release);
    ends_in_the_callback(redlock_lease_forget);
}

TOLD_TEST(nothing_is_told_after_the_end, three_told) {
    release(take_warned(&seen));
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 20000);
    redlock_lease_forget(take_warned(&seen));
    fake_env_pass_ms(&fake, 20000);
    redlock_lease *lease = take_warned(&seen);
    extend(lease);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_pass_ms(&fake, 20000);
    assert_int_equal(seen.lost, 1);
    assert_int_equal(warned.count, 0);
    give_back(lease);
    (void)take_warned(&seen);
    unsigned drained = 0;
    redlock_group_drain(fake.group, count_drained, &drained);
    fake_env_pass_ms(&fake, 20000);
    assert_int_equal(warned.count, 0);
    assert_int_equal(drained, 1);
    assert_int_equal(statistics().expiring, 0);
}

static redlock_lease *other;
static int64_t stands_still_ms;

static void end_the_other(redlock_lease *lease, int64_t remaining_ms, void *data) {
    (void)lease, (void)remaining_ms, (void)data;
    fake.now_ns += stands_still_ms * REDLOCK_NS_PER_MS;
    if (other) {
        release(other);
    }
}

/* Both are due in one turn, and the first callback ends the second lease, or takes its time. */
static void another_callback_came_before(bool ends, int64_t slow_ms, unsigned expected_count, int64_t expected_ms) {
    struct seen first, second;
    redlock_acquire_options options = warned_options(&first, 3000);
    options.on_expiring = end_the_other;
    redlock_lease *lease = take(&options, &first);
    redlock_lease *next = take_warned(&second);
    other = ends ? next : NULL;
    stands_still_ms = slow_ms;
    fake_env_pass_ms(&fake, END_MS - 3000);
    assert_int_equal(warned.count, expected_count);
    assert_int_equal(warned.remaining_ms, expected_ms);
    release(lease);
    if (!ends) {
        release(next);
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 1);
}

TOLD_TEST(what_other_callbacks_did_counts, three_told) {
    another_callback_came_before(false, 0, 1, 3000);
    another_callback_came_before(false, 2000, 1, 1000);
    another_callback_came_before(false, 3000, 0, 0);
    another_callback_came_before(true, 0, 0, 0);
}

TOLD_TEST(a_loop_that_stood_still_tells_only_the_loss, three_told) {
    redlock_lease *lease = take_warned(&seen);
    fake.now_ns += END_MS * REDLOCK_NS_PER_MS;
    fake_env_pass_ms(&fake, 0);
    assert_int_equal(warned.count, 0);
    assert_int_equal(seen.lost, 1);
    give_back(lease);
}

TOLD_TEST(an_adopted_lease_is_told_of_once_it_is_extended, three_told) {
    const redlock_acquire_options options = warned_options(&seen, 3000);
    redlock_lease *lease;
    assert_is(redlock_group_adopt(fake.group, "r", "0123", &options, &lease), REDLOCK_OK);
    fake_env_pass_ms(&fake, 20000);
    assert_int_equal(warned.count, 0);
    extend(lease);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, END_MS - 3000);
    assert_int_equal(warned.count, 1);
    give_back(lease);
}

/* Beside the memory of a trace and of a waiter. */
TOLD_TEST(it_has_its_own_memory, three_told) {
    int span = 0;
    redlock_acquire_options options = warned_options(&seen, 5000);
    options.trace = &span;
    options.wait_timeout_ms = 1000;
    redlock_lease *lease = take(&options, &seen);
    assert_ptr_equal(last()->event.trace, &span);
    fake_env_pass_ms(&fake, END_MS - 5000);
    assert_int_equal(warned.count, 1);
    assert_int_equal(warned.remaining_ms, 5000);
    assert_ptr_equal(last()->event.trace, &span);
    assert_string_equal(redlock_lease_resource(lease), "r");
    give_back(lease);
}

static void assert_refused(const redlock_acquire_options *options, const char *why) {
    assert_is(redlock_group_acquire(fake.group, "r", options, NULL, see, NULL), REDLOCK_ERR_INVALID);
    assert_string_equal(fake.group->invalid, why);
}

TOLD_TEST(a_time_that_leaves_a_renewal_none_is_refused, three_told) {
    redlock_acquire_options options = warned_options(&seen, 5001);
    assert_refused(&options, "expiring_ms is 5001; it must be 0 to 5000 (half of ttl_ms; 0: never)");
    options.expiring_ms = -1;
    assert_refused(&options, "expiring_ms is -1; it must be 0 to 5000 (half of ttl_ms; 0: never)");
    options.expiring_ms = 1;
    assert_refused(&options, "expiring_ms is 1, when no whole millisecond is left to tell of; it must be 2 or more, or "
                             "0 (never)");
    options.expiring_ms = 0;
    assert_refused(&options, "on_expiring needs expiring_ms: how long before the deadline");
    redlock_lease *lease = take_warned(&seen);
    assert_is(redlock_extend(lease, 5999, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_string_equal(fake.group->invalid, "ttl_ms is 5999; it must be 6000 to 2147483647 (no less than "
                                             "twice the lease's expiring_ms)");
    assert_is(redlock_extend(lease, 6000, NULL, NULL), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    give_back(lease);
}
