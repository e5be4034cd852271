/* Which pushes of a queue count, which are given back, and who can be told. */
#include "queue_kit.h"

/* --- Pushes --- */

GROUP_TEST(a_quorum_of_pushes_makes_a_lease, five_nodes) {
    struct seen released = {0};
    all_listen();
    queue_up(&seen);
    fake_env_pass_ms(&fake, 1000);
    push(0, 1);
    assert_int_equal(seen.count, 0);
    push(4, 4);
    assert_is(seen.code, REDLOCK_OK);
    assert_int_equal(seen.attempts, 2);
    assert_string_equal(redlock_lease_token(seen.lease), last_wait(0)->token);
    /* R1: it counts from the WAIT that was granted, not from the push. */
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 9000 - 102);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(seen.votes[i], i < 2 || i == 4 ? REDLOCK_VOTE_GRANTED : REDLOCK_VOTE_DENIED);
    }
    assert_contains(seen.message, "3 of 5 nodes granted it");
    assert_int_equal(statistics().queued, 1);
    assert_int_equal(statistics().handed_over, 1);
    push(2, 2); /* late, and it counts */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    assert_is(redlock_release(seen.lease, see, &released), REDLOCK_OK);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5); /* out of queues, too */
    assert_is(fake_env_waiting(&fake, 3, REDLOCK_OP_RELEASE)->handing, REDLOCK_HAND_OVER);
    push(3, 3); /* the release is behind it on the node */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(released.code, REDLOCK_OK);
    assert_owed(0, 0);
}

GROUP_TEST(a_push_that_is_older_than_an_answer_does_not_count, five_nodes) {
    queue_up(&seen);
    const struct fake_sent old = *last_wait(0);
    refresh();
    fake_env_push(&fake, &old); /* the node said "queued" since */
    push(1, 2);
    assert_int_equal(seen.count, 0);
    push(0, 0);
    assert_is(seen.code, REDLOCK_OK);
}

GROUP_TEST(what_nobody_waits_for_is_given_back, five_nodes) {
    redlock_request *request = queue_up(&seen);
    answer_late_tries();
    const struct fake_sent old = *last_wait(3);
    redlock_request_cancel(request);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_is(seen.code, REDLOCK_ERR_CANCELLED);
    fake_env_push(&fake, &old);
    assert_given_back(&old);
    /* A node says it once. */
    for (unsigned i = 0; i < 3; i++) {
        fake_env_push(&fake, &old);
    }
    assert_owed(0, 0);
}

/* It is too old to be known, and somebody else may have adopted such a lease. */
GROUP_TEST(what_is_old_is_not_given_back, five_nodes) {
    static const int64_t waits_ms[] = {14000, 15000, 31000};
    for (size_t i = 0; i < sizeof waits_ms / sizeof *waits_ms; i++) {
        redlock_request *request = queue_up(&seen);
        answer_late_tries();
        const struct fake_sent old = *last_wait(3);
        redlock_request_cancel(request);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        fake_env_pass_ms(&fake, waits_ms[i]);
        fake_env_push(&fake, &old);
        if (i < 2) {
            assert_given_back(&old);
        } else {
            assert_owed(0, 0);
        }
    }
}

/* Who may publish has heard what node 3 pushed. */
GROUP_TEST(a_false_push_changes_nothing, five_nodes) {
    queue_up(&seen);
    const struct fake_sent ours = *last_wait(3);
    struct fake_sent others[9];
    for (unsigned i = 0; i < 9; i++) {
        others[i] = ours;
    }
    others[0].node = 4;
    others[1].node = 0;
    others[2].place.id = UINT32_MAX; /* no lease */
    others[3].place.id = 1;          /* a free one */
    others[4].token[47] = (char)(ours.token[47] == 'a' ? 'b' : 'a');
    others[5].token[47] = '\0';
    others[6].round++;
    others[7].seal ^= 1;
    memset(others[8].key, 'k', sizeof others[8].key - 1);
    const unsigned sent = fake.sent_count;
    const unsigned logged = fake.logged[REDLOCK_LOG_DEBUG];
    for (unsigned i = 0; i < 9; i++) {
        fake_env_push(&fake, &others[i]);
    }
    assert_int_equal(fake.sent_count, sent);
    assert_owed(0, 0);
    assert_int_equal(fake.logged[REDLOCK_LOG_DEBUG], logged + 1);
    assert_int_equal(statistics().pushes_refused, 9);
    assert_contains(fake.log, "node node4:6379: a push that is not about a recent request of ours");
    push(0, 1);
    assert_int_equal(seen.count, 0); /* none of these was a vote */
    push(3, 3);
    assert_is(seen.code, REDLOCK_OK);
    assert_int_equal(statistics().pushes_refused, 9); /* these were its own */
    /* Nor do they end the lease. */
    fake_env_push(&fake, &ours);
    fake_env_push(&fake, &others[0]);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
}

/* A copy of what the node itself has said is a push that comes late. */
GROUP_TEST(a_copy_is_a_push_that_comes_late, five_nodes) {
    queue_up(&seen);
    const struct fake_sent old = *last_wait(0);
    fake_env_push(&fake, &old);
    fake_env_push(&fake, &old);
    push(1, 1);
    assert_int_equal(seen.count, 0); /* one vote */
    refresh();
    for (unsigned i = 0; i < 3; i++) {
        fake_env_push(&fake, &old); /* the node has said "queued" since */
    }
    push(1, 2);
    assert_int_equal(seen.count, 0);
    push(0, 0);
    assert_is(seen.code, REDLOCK_OK);
}

GROUP_TEST(a_push_from_the_future_is_no_vote, five_nodes) {
    queue_up(&seen);
    struct fake_sent other = *last_wait(0);
    other.round++;
    fake_env_push(&fake, &other);
    other.round = 0;
    fake_env_push(&fake, &other);
    push(1, 2);
    assert_int_equal(seen.count, 0);
}

/* A release that is delayed could take away a key that counts, once the node may vote again. */
GROUP_TEST(a_node_that_may_not_vote_hands_nothing_over, five_observed) {
    greet_all();
    queue_up(&seen);
    greet(1, "another", 0, reading(0)); /* it restarted */
    push(0, 2);
    assert_int_equal(seen.count, 0);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    push(3, 3);
    assert_is(seen.code, REDLOCK_OK);
    assert_is(seen.votes[1], REDLOCK_VOTE_DENIED);
    push(1, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    assert_is(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
    assert_non_null(fake_env_waiting(&fake, 1, REDLOCK_OP_RELEASE));
}

GROUP_TEST(a_node_that_may_not_vote_is_not_asked, five_observed) {
    greet_all();
    queue_up(&seen);
    greet(1, "another", 0, reading(0));
    const uint32_t round = last_wait(0)->round;
    refresh();
    assert_int_equal(last_wait(0)->round, round + 1);
    assert_int_equal(last_wait(1)->round, round);
}

GROUP_TEST(a_first_try_that_is_lost_asks_no_node_that_may_not_vote, five_observed) {
    greet_all();
    (void)wait_for_it(&seen);
    greet(1, "another", 0, reading(0));
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "..DDD");
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 4);
    assert_null(fake_env_waiting(&fake, 1, REDLOCK_OP_WAIT));
}

/* Nodes 0 and 1 have not answered the last WAIT but one. */
static void queue_up_slowly(struct seen *seen) {
    queue_up(seen);
    for (int i = 0; i < 2; i++) {
        while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) < 5) {
            fake_env_pass_ms(&fake, 1);
        }
        for (unsigned node = 2; node < 5 && i == 0; node++) {
            fake_env_queue(&fake, node, EARLIER, 1);
        }
    }
}

/* A node may always be slower than we ask again. */
GROUP_TEST(an_answer_to_an_older_wait_may_grant, five_observed) {
    for (int restarted = 0; restarted <= 1; restarted++) {
        greet_all();
        queue_up_slowly(&seen);
        if (restarted) {
            greet(1, "another", 0, reading(0));
        }
        const uint32_t round = last_wait(0)->round;
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)->round, round - 1);
            fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
        }
        assert_int_equal(seen.count, 0);
        push(2, 2);
        assert_int_equal(seen.count, !restarted);
        push(3, 3);
        assert_is(seen.code, REDLOCK_OK);
        release_quietly(seen.lease, false);
    }
}

/* Forgets a lease. Returns the WAIT whose push has not come. */
static struct fake_sent forget_before_a_push(void) {
    struct seen seen;
    queue_up(&seen);
    push(0, 2);
    const struct fake_sent late = *last_wait(3);
    redlock_lease_forget(seen.lease);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    return late;
}

/* Somebody else may have adopted it. */
GROUP_TEST(the_keys_of_a_forgotten_lease_stay, five_nodes) {
    const struct fake_sent late = forget_before_a_push();
    fake_env_push(&fake, &late);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
}

/* Whoever heard a push may say it again as often as he likes. The lease was forgotten in the same
 * moment in which its WAIT was sent. */
GROUP_TEST(the_keys_of_a_forgotten_lease_stay_for_ever, five_nodes) {
    const struct fake_sent late = forget_before_a_push();
    for (unsigned second = 0; second < 120; second++) {
        fake_env_push(&fake, &late);
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
        fake_env_pass_ms(&fake, 1000);
    }
    assert_int_equal(statistics().leases_held, 0);
}

/* A close waits for other answers meanwhile, but not for such a push. */
GROUP_TEST(the_keys_of_a_forgotten_lease_stay_during_a_close, five_nodes) {
    struct seen other;
    unsigned drained = 0;
    queue_up(&seen);
    push(0, 2);
    const struct fake_sent late = *last_wait(3);
    redlock_lease_forget(seen.lease);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    acquire(NULL, &other);
    redlock_group_drain(fake.group, count_drained, &drained);
    fake_env_push(&fake, &late);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
    assert_int_equal(drained, 1);
    assert_is(other.code, REDLOCK_ERR_CLOSED);
}

GROUP_TEST(keys_that_outlive_a_lost_lease_stay, five_nodes) {
    redlock_acquire_options options = watched_options(&seen);
    options.wait_timeout_ms = 60000;
    options.lock_delay_ms = 5000;
    acquire(&options, &seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    push(0, 2);
    assert_is(seen.code, REDLOCK_OK);
    const struct fake_sent late = *last_wait(3);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_pass_ms(&fake, 10000);
    assert_int_equal(seen.lost, 1);
    fake_env_push(&fake, &late);
    assert_is(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
    fake_env_turn(&fake);
    fake_env_push(&fake, &late);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
}

/* --- Subscriptions, and nodes that cannot keep a queue --- */

GROUP_TEST(who_can_be_told_from_now_on_asks_again, five_nodes) {
    struct seen first, second;
    queue_up(&first);
    redlock_request *other = wait_for_it(&second);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    const unsigned sent = fake.sent_count;
    for (unsigned i = 0; i < 5; i++) {
        listens(i, REDLOCK_LISTENING);
    }
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake.sent_count, sent);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake.sent_count, sent + 10); /* once, for all subscriptions */
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    redlock_request_cancel(other);
    const unsigned then = fake.sent_count;
    listens(0, REDLOCK_LISTENING_NOT);
    fake_env_turn(&fake);
    assert_int_equal(fake.sent_count, then);
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 0);
}

/* Nodes skip whom they cannot tell, so nobody else might take the free lock for so long. */
GROUP_TEST(who_can_be_told_by_too_few_nodes_asks_often, five_nodes) {
    all_listen();
    queue_up(&seen);
    answer_late_tries();
    listens(0, REDLOCK_LISTENING_NOT);
    listens(1, REDLOCK_LISTENING_NOT);
    fake_env_pass_ms(&fake, 10);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
    listens(2, REDLOCK_LISTENING_NOT);
    fake_env_pass_ms(&fake, 2);
    for (unsigned times = 0; times < 3; times++) {
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 5);
        refresh();
        const int64_t since_ns = fake.now_ns;
        while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0) {
            fake_env_pass_ms(&fake, 1);
        }
        assert_in_range((fake.now_ns - since_ns) / REDLOCK_NS_PER_MS, 50, 201);
    }
    refresh();
    listens(2, REDLOCK_LISTENING);
    fake_env_pass_ms(&fake, 2);
    refresh();
    fake_env_pass_ms(&fake, 900);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
}

static void tell_time(unsigned node, int64_t ahead_ms) {
    fake_env_answer_as(&fake, node, REDLOCK_OP_TIME,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .clock = reading(ahead_ms)});
}

/* The key of another holder may have ended early where a clock has jumped. Anybody can say a push
 * again with another time, so a grant counts when the node has told its time since. */
GROUP_TEST(a_push_counts_when_the_clock_was_read, five_clocks) {
    const char *why;
    greet_all();
    (void)queue_up(&seen);
    push(0, 3);
    push(0, 3); /* copies */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_TIME), 4);
    tell_time(0, 0);
    tell_time(1, 0);
    assert_int_equal(seen.count, 0);
    tell_time(2, 600);
    assert_int_equal(statistics().clock_jumps, 1);
    assert_true(redlock_group_node_quarantine_ms(fake.group, 2, &why) > 0);
    fake_env_turn(&fake);
    assert_int_equal(seen.count, 0);
    tell_time(3, 0);
    fake_env_turn(&fake);
    assert_is(seen.code, REDLOCK_OK);
    push(0, 3); /* copies */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_TIME), 0);
    give_back(seen.lease);
}

GROUP_TEST(a_push_of_a_node_that_tells_no_time_does_not_count, five_clocks) {
    greet_all();
    (void)queue_up(&seen);
    push(0, 2);
    tell_time(0, 0);
    tell_time(1, 0);
    fake_env_answer(&fake, 2, REDLOCK_OP_TIME, REDLOCK_VOTE_UNKNOWN);
    assert_int_equal(seen.count, 0);
    push(2, 2); /* asks again */
    tell_time(2, 0);
    assert_is(seen.code, REDLOCK_OK);
    give_back(seen.lease);
}

/* The wait may end meanwhile. */
GROUP_TEST(a_time_that_comes_too_late_counts_nothing, five_clocks) {
    greet_all();
    redlock_request *request = queue_up(&seen);
    answer_late_tries();
    push(0, 2);
    redlock_request_cancel(request);
    fake_env_votes(&fake, REDLOCK_OP_RELEASE, "GGGGG");
    for (unsigned i = 0; i < 3; i++) {
        tell_time(i, 0);
    }
    fake_env_turn(&fake);
    assert_is(seen.code, REDLOCK_ERR_CANCELLED);
    assert_int_equal(seen.count, 1);
    assert_int_equal(statistics().leases_held, 0);
}
