/* A lock that was handed over is left free for a moment; who is told of that asks for it then. */
#include "queue_kit.h"

#define LEFT_MS REDLOCK_HAND_LATER

/* So long that its release leaves the lock free for sure. */
static void hold_for_long(struct seen *seen, bool handed_over) {
    redlock_acquire_options options = patient_options();
    for (unsigned i = 0; i < 5; i++) {
        redlock_group_ready_changed(fake.group, i, true);
    }
    options.ttl_ms = 20000;
    options.heal = false;
    acquire(&options, seen);
    for (unsigned i = 0; i < 5; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, handed_over ? REDLOCK_VOTE_DENIED : REDLOCK_VOTE_GRANTED);
    }
    for (unsigned i = 0; i < 5 && handed_over; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
        fake_env_queue(&fake, i, EARLIER, 1);
    }
    if (handed_over) {
        push(0, 4);
    }
    fake_env_turn(&fake);
    assert_non_null(seen->lease);
    fake_env_pass_ms(&fake, 10000);
}

static void release_with(redlock_lease *lease, enum redlock_handing handing) {
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE)->handing, handing);
    }
}

static void answer_releases(redlock_vote_kind vote, bool handed_over) {
    for (unsigned i = 0; i < 5; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_RELEASE,
                           (struct redlock_answer){.vote = vote, .handed_over = handed_over});
    }
    fake_env_turn(&fake);
}

static void leave(struct seen *seen) {
    hold_for_long(seen, true);
    release_with(seen->lease, REDLOCK_HAND_LATER);
}

/* Whoever is in line asks for it. */
GROUP_TEST(nothing_follows_the_release, five_nodes) {
    leave(&seen);
    answer_releases(REDLOCK_VOTE_GRANTED, true);
    assert_int_equal(statistics().left_free, 1);
    assert_int_equal(statistics().released, 1);
    assert_owed(0, 0);
    const unsigned sent = fake.sent_count;
    fake_env_pass_ms(&fake, 60000);
    assert_int_equal(fake.sent_count, sent);
}

GROUP_TEST(who_left_it_does_not_jump_the_queue, five_nodes) {
    leave(&seen);
    answer_releases(REDLOCK_VOTE_GRANTED, true);
    wait_for_it(&seen);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 5);
}

GROUP_TEST(it_is_sent_by_source_like_any_other, five_nodes) {
    leave(&seen);
    fake_env_answer_no_script(&fake, 0, REDLOCK_OP_RELEASE);
    const struct fake_sent *again = fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE);
    assert_true(again->by_source);
    assert_is(again->handing, REDLOCK_HAND_LATER);
}

/* A node that restarted hands on no lock: its key may come from an old copy of the data. That also
 * holds for what is asked again, by its source or later. */
GROUP_TEST(a_node_that_restarted_frees_the_lock, five_observed) {
    const struct fake_sent *release;
    greet_all();
    hold_for_long(&seen, true);
    greet(0, "another", 0, reading(0));
    redlock_group_ready_changed(fake.group, 2, false);
    assert_is(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
    assert_is(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)->handing, REDLOCK_HAND_NOBODY);
    assert_is(fake_env_waiting(&fake, 1, REDLOCK_OP_RELEASE)->handing, REDLOCK_HAND_LATER);
    assert_is(fake_env_waiting(&fake, 2, REDLOCK_OP_RELEASE)->handing, REDLOCK_HAND_NOBODY);
    fake_env_answer_no_script(&fake, 0, REDLOCK_OP_RELEASE);
    release = fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE);
    assert_true(release->by_source);
    assert_is(release->handing, REDLOCK_HAND_NOBODY);
    fake_env_votes(&fake, REDLOCK_OP_RELEASE, "UGGGG");
    fake_env_turn(&fake);
    release = fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE);
    assert_non_null(release);
    assert_is(release->handing, REDLOCK_HAND_NOBODY);
    fake_env_answer(&fake, 0, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 10000);
}

GROUP_TEST(close_hands_over_at_once, five_nodes) {
    unsigned drained = 0;
    hold_for_long(&seen, true);
    redlock_group_drain(fake.group, count_drained, &drained);
    for (unsigned i = 0; i < 5; i++) {
        assert_is(fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE)->handing, REDLOCK_HAND_OVER);
    }
    answer_releases(REDLOCK_VOTE_GRANTED, true);
    assert_int_equal(drained, 1);
}

GROUP_TEST(who_was_not_handed_it_hands_it_over_at_once, five_nodes) {
    hold_for_long(&seen, false);
    release_with(seen.lease, REDLOCK_HAND_OVER);
    answer_releases(REDLOCK_VOTE_GRANTED, true);
    assert_int_equal(statistics().left_free, 0);
}

static void tell_left(const struct fake_sent *wait) {
    struct fake_sent left = *wait;
    left.round = 0;
    left.seal = 0;
    fake_env_push(&fake, &left);
}

GROUP_TEST(who_is_told_asks_when_the_time_is_over, five_nodes) {
    queue_up(&seen);
    tell_left(last_wait(0));
    tell_left(last_wait(1));
    fake_env_pass_ms(&fake, LEFT_MS + 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 5);
    assert_int_equal(seen.count, 0);
    assert_int_equal(statistics().pushes_refused, 0);
    push(0, 2);
    assert_is(seen.code, REDLOCK_OK);
    tell_left(last_wait(0)); /* it has the lock */
    const unsigned sent = fake.sent_count;
    fake_env_pass_ms(&fake, LEFT_MS + 2);
    assert_int_equal(fake.sent_count, sent);
}

/* It must know the token, at least. Nothing is given back. */
GROUP_TEST(what_is_told_to_another_one_does_nothing, five_nodes) {
    queue_up(&seen);
    struct fake_sent others[3] = {*last_wait(0), *last_wait(0), *last_wait(0)};
    others[0].place.id++;
    others[1].token[47] = (char)(others[1].token[47] == 'a' ? 'b' : 'a');
    memset(others[2].key, 'k', sizeof others[2].key - 1);
    const unsigned sent = fake.sent_count;
    for (unsigned i = 0; i < 3; i++) {
        tell_left(&others[i]);
    }
    fake_env_pass_ms(&fake, LEFT_MS + 2);
    assert_int_equal(fake.sent_count, sent);
    assert_owed(0, 0);
}
