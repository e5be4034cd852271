/* A lock that was handed over is left free for a moment, and then goes on to the next in line. */
#include "group/owed.h"
#include "queue_kit.h"

#define LEFT_MS REDLOCK_HAND_LATER

static bool no_memory;

void *__real_malloc(size_t size);
/* The linker puts it in place of malloc(). */
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
    return no_memory ? NULL : __real_malloc(size);
}

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

/* All nodes are asked for it. */
static void assert_goes_on(void) {
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    for (unsigned i = 0; i < 5; i++) {
        const struct fake_sent *release = fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE);
        assert_is(release->handing, REDLOCK_HAND_FREE);
        assert_string_equal(release->token, last_wait(i)->token);
        assert_string_equal(release->key, last_wait(i)->key);
    }
}

GROUP_TEST(the_next_in_line_gets_it_after_a_moment, five_nodes) {
    leave(&seen);
    answer_releases(REDLOCK_VOTE_GRANTED, true);
    assert_int_equal(statistics().left_free, 1);
    assert_int_equal(statistics().released, 1); /* the caller did not wait */
    assert_owed(0, 0);
    fake_env_pass_ms(&fake, LEFT_MS - 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    fake_env_pass_ms(&fake, 1);
    assert_goes_on();
    answer_releases(REDLOCK_VOTE_GRANTED, true);
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

/* The others who wait find the lock by then. No key is left, so nothing is dropped. */
GROUP_TEST(nodes_that_fail_are_not_asked_for_long, five_nodes) {
    leave(&seen);
    answer_releases(REDLOCK_VOTE_GRANTED, true);
    fake_env_pass_ms(&fake, LEFT_MS);
    answer_releases(REDLOCK_VOTE_UNKNOWN, false);
    assert_owed(1, 0);
    for (unsigned ms = 0; ms < 10000; ms += 100) {
        fake_env_pass_ms(&fake, 100);
        fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
    }
    assert_owed(0, 0);
}

/* The lock may only seem free there: a run that forgot it may still have the queue, and whoever it
 * serves would count that key in an extension. Nor is a node asked that may come back as such. */
GROUP_TEST(a_node_that_restarted_is_not_asked, five_observed) {
    greet_all();
    leave(&seen);
    answer_releases(REDLOCK_VOTE_GRANTED, true);
    greet(0, "another", 0, reading(0));
    greet(1, "b", 100000, reading(0));
    redlock_group_ready_changed(fake.group, 2, false);
    assert_null(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE));
    assert_is(fake_env_waiting(&fake, 1, REDLOCK_OP_RELEASE)->handing, REDLOCK_HAND_FREE);
    fake_env_pass_ms(&fake, LEFT_MS);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 3);
    assert_null(fake_env_waiting(&fake, 2, REDLOCK_OP_RELEASE));
    for (unsigned ms = 0; ms < 10000; ms += 100) {
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
        fake_env_pass_ms(&fake, 100);
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    }
    assert_owed(0, 0);
}

/* Nor does such a node hand on a lock that is released: its key may come from an old copy of the
 * data. That also holds for what is asked again, by its source or later. */
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

GROUP_TEST(close_waits_for_it, five_nodes) {
    unsigned drained = 0;
    leave(&seen);
    redlock_group_drain(fake.group, count_drained, &drained);
    answer_releases(REDLOCK_VOTE_GRANTED, true);
    fake_env_pass_ms(&fake, LEFT_MS);
    assert_int_equal(drained, 0);
    assert_goes_on();
    answer_releases(REDLOCK_VOTE_DENIED, false);
    assert_int_equal(drained, 1);
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

GROUP_TEST(without_memory_it_is_handed_over_at_once, five_nodes) {
    hold_for_long(&seen, true);
    no_memory = true;
    release_with(seen.lease, REDLOCK_HAND_OVER);
    no_memory = false;
    answer_releases(REDLOCK_VOTE_GRANTED, true);
    assert_int_equal(statistics().left_free, 0);
    assert_owed(0, 0);
    fake_env_pass_ms(&fake, LEFT_MS);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
}

/* No release that is owed is dropped for it. */
GROUP_TEST(where_too_much_is_owed_it_is_handed_over_at_once, five_nodes) {
    uint16_t room[16];
    hold_for_long(&seen, true);
    for (unsigned i = 0; i < REDLOCK_OWED_MAX; i++) {
        assert_true(redlock_owed_add(
            fake.group, &(struct redlock_owed_release){.target = redlock_target_make(room, "", 0, "key", 3),
                                                       .token = "token",
                                                       .token_size = 5,
                                                       .nodes = REDLOCK_NODE(0),
                                                       .ttl_ms = 600000,
                                                       .delay_ms = 600000}));
    }
    release_with(seen.lease, REDLOCK_HAND_OVER);
    answer_releases(REDLOCK_VOTE_GRANTED, true);
    assert_int_equal(statistics().left_free, 0);
    assert_int_equal(fake.group->requesters[REDLOCK_REQUESTER_OWED].count, REDLOCK_OWED_MAX);
    assert_owed(0, 0); /* they wait, and none is dropped */
}
