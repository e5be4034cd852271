/* How requests and leases end: cancel, close, forget, calls from inside callbacks, a fork, no
 * random bytes, no nodes. */
#include "group_kit.h"

static redlock_lease *take_watched(struct seen *seen) {
    const redlock_acquire_options options = watched_options(seen);
    return take(&options, seen);
}

/*
 * R12: the old deadline stood on nodes 0 and 1. The extension asks for less, and nodes 0 and 2
 * match it. Once node 1 says that its key is gone, the lease ends with what was asked, and its
 * validity says so at once.
 */
GROUP_TEST(a_late_vote_that_moves_the_deadline_moves_the_validity, three_nodes) {
    struct seen extended = {0};
    redlock_acquire_options options = default_options();
    options.ttl_ms = 10000;
    acquire(&options, &seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "GGF");
    assert_is(redlock_extend(seen.lease, 2000, see, &extended), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_EXTEND, "G.G");
    assert_is(extended.code, REDLOCK_OK);
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 10000 - redlock_drift_ms(10000));
    fake_env_answer(&fake, 1, REDLOCK_OP_EXTEND, REDLOCK_VOTE_DENIED);
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 2000 - redlock_drift_ms(2000));
    assert_int_equal(statistics().lost, 0);
    fake_env_pass_ms(&fake, 2000 - redlock_drift_ms(2000));
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 0);
    assert_int_equal(statistics().lost, 1);
    give_back(seen.lease);
}

/* The result shows a node that refused and a node that has not answered yet as different votes. */
GROUP_TEST(only_nodes_that_refuse_have_failed, three_nodes) {
    for (unsigned refusing = 0; refusing < 3; refusing++) {
        seen = (struct seen){0};
        fake.refusing = REDLOCK_NODE(refusing) | REDLOCK_NODE((refusing + 1) % 3);
        acquire(NULL, &seen);
        fake_env_turn(&fake);
        assert_is(seen.code, REDLOCK_ERR_NO_QUORUM);
        assert_is(seen.votes[refusing], REDLOCK_VOTE_FAILED);
        assert_is(seen.votes[(refusing + 1) % 3], REDLOCK_VOTE_FAILED);
        assert_is(seen.votes[(refusing + 2) % 3], REDLOCK_VOTE_PENDING);
        fake.refusing = 0;
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
        fake_env_pass_ms(&fake, 3000);
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    }
}

GROUP_TEST(cancel_releases_what_may_be_held, three_nodes) {
    redlock_request *request;
    assert_is(redlock_group_acquire(fake.group, "r", NULL, &request, see, &seen), REDLOCK_OK);
    fake_env_answer(&fake, 0, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
    redlock_request_cancel(request);
    redlock_request_cancel(request);
    assert_int_equal(seen.count, 0);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 3);
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_CANCELLED);
    /* Late votes of the cancelled attempt change nothing more. */
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_int_equal(seen.count, 1);
    assert_int_equal(statistics().requests_pending, 0);
    assert_int_equal(statistics().releases_owed, 0);
}

GROUP_TEST(cancel_between_attempts, three_nodes) {
    redlock_request *request;
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    options.order = REDLOCK_ORDER_NONE;
    assert_is(redlock_group_acquire(fake.group, "r", &options, &request, see, &seen), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_int_equal(seen.count, 0);
    redlock_request_cancel(request);
    fake_env_turn(&fake);
    assert_is(seen.code, REDLOCK_ERR_CANCELLED);
    const unsigned sent = fake.sent_count;
    fake_env_pass_ms(&fake, 10000);
    assert_int_equal(fake.sent_count, sent);
}

static redlock_request *cancel_in_callback;

static void see_and_cancel_other(const redlock_result *result, void *data) {
    see(result, data);
    redlock_request_cancel(cancel_in_callback);
}

GROUP_TEST(cancel_from_the_callback_of_another, three_nodes) {
    struct seen first = {0}, second = {0};
    assert_is(redlock_group_acquire(fake.group, "a", NULL, NULL, see_and_cancel_other, &first), REDLOCK_OK);
    assert_is(redlock_group_acquire(fake.group, "b", NULL, &cancel_in_callback, see, &second), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "GG");
    assert_is(first.code, REDLOCK_OK);
    fake_env_turn(&fake);
    assert_seen(second, 1, REDLOCK_ERR_CANCELLED);
    give_back(first.lease);
}

static void see_and_ask_again(const redlock_result *result, void *data) {
    struct seen *seen = data;
    see(result, data);
    if (seen->count < 100) {
        assert_is(redlock_group_acquire(fake.group, "r", NULL, NULL, see_and_ask_again, data), REDLOCK_OK);
    }
}

GROUP_TEST(asking_again_in_the_callback_takes_a_turn, three_nodes) {
    fake.refusing = redlock_nodes_all(3);
    assert_is(redlock_group_acquire(fake.group, "r", NULL, NULL, see_and_ask_again, &seen), REDLOCK_OK);
    for (unsigned turn = 1; turn <= 100; turn++) {
        fake_env_turn(&fake);
        assert_int_equal(seen.count, turn); /* never two in one turn */
    }
    fake_env_turn(&fake);
    assert_int_equal(seen.count, 100);
}

GROUP_TEST(close_ends_everything_once, three_nodes) {
    struct seen held = {0}, pending = {0}, waiting = {0}, inspect = {0}, connect = {0}, extended = {0};
    unsigned drained = 0;
    redlock_lease *lease = take_watched(&held);
    assert_is(redlock_extend(lease, 5000, see, &extended), REDLOCK_OK);
    assert_is(redlock_group_acquire(fake.group, "p", NULL, NULL, see, &pending), REDLOCK_OK);
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    options.order = REDLOCK_ORDER_NONE;
    fake.refusing = redlock_nodes_all(3);
    assert_is(redlock_group_acquire(fake.group, "w", &options, NULL, see, &waiting), REDLOCK_OK);
    fake.refusing = 0;
    assert_is(redlock_group_inspect(fake.group, "r", see, &inspect), REDLOCK_OK);
    assert_is(redlock_group_connect(fake.group, 1000, see, &connect), REDLOCK_OK);

    redlock_group_drain(fake.group, count_drained, &drained);
    assert_is(redlock_group_acquire(fake.group, "x", NULL, NULL, see, &held), REDLOCK_ERR_CLOSED);
    assert_int_equal(pending.count + waiting.count + inspect.count + connect.count + extended.count, 0);
    fake_env_turn(&fake);
    assert_is(pending.code, REDLOCK_ERR_CLOSED);
    assert_is(waiting.code, REDLOCK_ERR_CLOSED);
    assert_is(inspect.code, REDLOCK_ERR_CLOSED);
    assert_is(connect.code, REDLOCK_ERR_CLOSED);
    assert_is(extended.code, REDLOCK_ERR_CLOSED);
    assert_int_equal(drained, 0); /* the release of the lease is under way */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 6);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
    assert_int_equal(drained, 1);
    assert_int_equal(pending.count + waiting.count + inspect.count + connect.count + extended.count, 5);
    assert_int_equal(held.count, 1);
    assert_int_equal(held.lost, 0);
    assert_int_equal(statistics().leases_held, 0);
    assert_int_equal(statistics().requests_pending, 0);
}

static void see_release_and_read(const redlock_result *result, void *data) {
    char before[512], after[512];
    struct seen *seen = data;
    redlock_result_message(result, before, sizeof before);
    if (seen->lease) {
        assert_is(redlock_release(seen->lease, NULL, NULL), REDLOCK_OK);
    }
    redlock_result_message(result, after, sizeof after);
    assert_string_equal(before, after);
    assert_contains(after, "answer of node");
    seen->count++;
}

/* A call from the callback starts a round with votes of its own. The result that the callback reads
 * does not change. */
GROUP_TEST(a_result_stays_whole_while_its_callback_runs, three_nodes) {
    redlock_lease *lease = take_watched(&seen);
    seen.count = 0;
    assert_is(redlock_extend(lease, 5000, see_release_and_read, &seen), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_EXTEND, "UUU");
    assert_int_equal(seen.count, 1);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static unsigned drained_count;

static void see_and_close_in_a_nested_loop(const redlock_result *result, void *data) {
    see(result, data);
    redlock_group_drain(fake.group, count_drained, &drained_count);
    for (unsigned turn = 0; turn < 10; turn++) {
        redlock_group_wake(fake.group);
        assert_int_equal(drained_count, 0); /* the group must outlive the callback */
    }
}

/* A callback must not run the loop. If one does, no other callback runs, and nothing breaks. */
GROUP_TEST(a_nested_loop_does_not_end_the_group, three_nodes) {
    drained_count = 0;
    assert_is(redlock_group_acquire(fake.group, "r", NULL, NULL, see_and_close_in_a_nested_loop, &seen), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_int_equal(seen.count, 1);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
    assert_int_equal(drained_count, 1);
}

GROUP_TEST(close_does_not_wait_for_dead_nodes, three_nodes) {
    unsigned drained = 0;
    take_watched(&seen);
    redlock_group_drain(fake.group, count_drained, &drained);
    fake_env_pass_ms(&fake, 102); /* no answer at all: twice the node timeout and a little */
    assert_int_equal(drained, 1);
}

GROUP_TEST(close_completes_a_release_that_nobody_answers, three_nodes) {
    struct seen released = {0};
    unsigned drained = 0;
    redlock_lease *lease = take_watched(&seen);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    redlock_group_drain(fake.group, count_drained, &drained);
    fake_env_pass_ms(&fake, 100);
    assert_int_equal(released.count + drained, 0);
    fake_env_pass_ms(&fake, 2);
    assert_int_equal(released.count, 1); /* before the end, once (R14) */
    assert_is(released.code, REDLOCK_ERR_CLOSED);
    assert_int_equal(drained, 1);
}

GROUP_TEST(forgotten_leases_send_nothing_more, three_nodes) {
    struct seen extended = {0};
    redlock_lease *lease = take_watched(&seen);
    assert_is(redlock_extend(lease, 5000, see, &extended), REDLOCK_OK);
    redlock_lease_forget(lease);
    fake_env_turn(&fake);
    assert_is(extended.code, REDLOCK_ERR_CANCELLED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    const unsigned sent = fake.sent_count;
    fake_env_pass_ms(&fake, 20000);
    assert_int_equal(fake.sent_count, sent);
    assert_int_equal(seen.lost, 0);
    assert_int_equal(statistics().leases_held, 0);
}

GROUP_TEST(in_a_forked_child_nothing_is_sent, three_nodes) {
    redlock_lease *lease = take_watched(&seen);
    const unsigned sent = fake.sent_count;
    fake.random_code = REDLOCK_ERR_FORKED;
    assert_is(redlock_group_acquire(fake.group, "r", NULL, NULL, see, &seen), REDLOCK_ERR_FORKED);
    assert_is(redlock_extend(lease, 1000, see, &seen), REDLOCK_ERR_FORKED);
    assert_is(redlock_release(lease, see, &seen), REDLOCK_ERR_FORKED);
    assert_is(redlock_group_inspect(fake.group, "r", see, &seen), REDLOCK_ERR_FORKED);
    assert_int_equal(fake.sent_count, sent);
    fake.random_code = REDLOCK_OK;
    give_back(lease);
}

GROUP_TEST(without_random_bytes_there_is_no_attempt, three_nodes) {
    fake.random_code = REDLOCK_ERR_RANDOM;
    assert_is(redlock_group_acquire(fake.group, "r", NULL, NULL, see, &seen), REDLOCK_ERR_RANDOM);
    fake.random_code = REDLOCK_OK;
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = 10000;
    options.order = REDLOCK_ORDER_NONE;
    acquire(&options, &seen);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    const unsigned sent = fake.sent_count;
    fake.random_code = REDLOCK_ERR_RANDOM;
    fake_env_pass_ms(&fake, 1000);
    assert_seen(seen, 1, REDLOCK_ERR_RANDOM);
    assert_int_equal(fake.sent_count, sent);
}

/* Not after the rest of its delay, which is a quarter of the time left. */
GROUP_TEST(a_failed_renewal_is_tried_again_with_the_quorum_that_is_back, three_nodes) {
    redlock_acquire_options options = default_options();
    options.auto_extend = true;
    options.ttl_ms = 10000;
    redlock_lease *lease = take(&options, &seen);
    fake.refusing = redlock_nodes_all(3);
    fake_env_pass_ms(&fake, 3400);
    fake.refusing = 0;
    redlock_group_ready_changed(fake.group, 0, true);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_EXTEND), 0);
    redlock_group_ready_changed(fake.group, 1, true);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_EXTEND), 3);
    redlock_group_ready_changed(fake.group, 2, true);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 100);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_EXTEND), 0);
    assert_true(redlock_lease_validity_ms(lease) > 9700);
    give_back(lease);
}

GROUP_TEST(connect_waits_for_every_node_or_the_timeout, three_nodes) {
    struct seen late = {0}, none = {0};
    assert_is(redlock_group_connect(fake.group, 1000, see, &seen), REDLOCK_OK);
    redlock_group_ready_changed(fake.group, 0, true);
    redlock_group_ready_changed(fake.group, 1, false);
    fake_env_turn(&fake);
    assert_int_equal(seen.count, 0);
    assert_is(redlock_group_connect(fake.group, 10, see, &none), REDLOCK_OK);
    fake_env_pass_ms(&fake, 10);
    assert_is(none.code, REDLOCK_ERR_NO_QUORUM);
    redlock_group_ready_changed(fake.group, 2, true);
    assert_is(seen.code, REDLOCK_OK);
    assert_is(redlock_group_connect(fake.group, 0, see, &late), REDLOCK_OK);
    assert_int_equal(late.count, 0);
    fake_env_turn(&fake);
    assert_is(late.code, REDLOCK_OK);
}

/* Such nodes answer, but no lock can be taken with them. */
GROUP_TEST(connect_counts_no_node_that_is_too_far_away, three_nodes) {
    struct seen some = {0}, none = {0};
    for (unsigned i = 0; i < 3; i++) {
        redlock_group_ready_changed(fake.group, i, true);
    }
    fake.far = REDLOCK_NODE(1);
    assert_is(redlock_group_connect(fake.group, 10, see, &some), REDLOCK_OK);
    fake_env_turn(&fake);
    assert_is(some.code, REDLOCK_OK);
    fake.far |= REDLOCK_NODE(2);
    assert_is(redlock_group_connect(fake.group, 10, see, &none), REDLOCK_OK);
    fake_env_turn(&fake);
    assert_is(none.code, REDLOCK_ERR_NO_QUORUM);
}

GROUP_TEST(an_inspection_tells_how_long_each_node_took, three_nodes) {
    fake_env_pass_ms(&fake, 5000);
    fake.refusing = REDLOCK_NODE(2);
    assert_is(redlock_group_inspect(fake.group, "r", see, &seen), REDLOCK_OK);
    fake_env_pass_ms(&fake, 3);
    fake_env_answer(&fake, 0, REDLOCK_OP_INSPECT, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 4);
    fake_env_answer(&fake, 1, REDLOCK_OP_INSPECT, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    assert_is(seen.code, REDLOCK_OK);
    assert_int_equal(seen.latency_us[0], 3000);
    assert_int_equal(seen.latency_us[1], 7000);
    assert_int_equal(seen.latency_us[2], -1); /* it was asked nothing */
}

/* Two copies of a virtual machine draw the same bytes at different times, for the first attempt and
 * for the next ones. */
GROUP_TEST(the_same_random_bytes_at_another_time_make_another_token, three_nodes) {
    char tokens[4][REDLOCK_TOKEN_SIZE_MAX + 1];
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = 60000;
    options.order = REDLOCK_ORDER_NONE;
    for (unsigned copy = 0; copy < 2; copy++) {
        seen = (struct seen){0};
        redlock_request *request;
        fake.random_state = 42;
        fake_env_pass_ms(&fake, 1);
        assert_is(redlock_group_acquire(fake.group, "r", &options, &request, see, &seen), REDLOCK_OK);
        strcpy(tokens[2 * copy], fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->token);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        fake.random_state = 43;
        while (!fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)) {
            fake_env_pass_ms(&fake, 10);
            if (fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE) > 0) {
                fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
            }
        }
        strcpy(tokens[2 * copy + 1], fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->token);
        redlock_request_cancel(request);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        fake_env_turn(&fake);
        assert_is(seen.code, REDLOCK_ERR_CANCELLED);
    }
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned k = 0; k < i; k++) {
            assert_string_not_equal(tokens[i], tokens[k]);
        }
    }
    /* Half of the token is the random bytes as drawn. */
    assert_memory_equal(tokens[0], tokens[2], 8);
    assert_memory_equal(tokens[1], tokens[3], 8);
}
