/* How a lease comes to be QUEUED, and how that ends without the lock. */
#include "life.h"

#define WAIT_MS 60000

static const struct redlock_grants_view later = {.holder = REDLOCK_HOLDER_LATER, .holder_id = 9, .pttl_ms = 9000};

TEST(a_begin_in_line_takes_places_and_the_lock_if_it_is_free) {
    for (unsigned n = 1; n <= REDLOCK_NODES_MAX; n++) {
        struct life life;
        life_begin_in_line(&life, n);
        assert_true(life_queue(&life)->takes);
        assert_int_equal(life.core.attempts, 1);
        for (unsigned i = 0; i < n / 2; i++) {
            life_expect(life_vote(&life, i, G), QUEUED, NOTHING);
        }
        life_expect(life_vote(&life, n / 2, G), HELD, ACQUIRED(OK));
        assert_int_equal(life_held_until_ms(&life), END_MS);
    }
}

LIFE_TEST(a_first_try_comes_before_a_place_if_nobody_here_waits, life_init(&life, 3)) {
    life_may_queue(&life);
    life_expect(life_begin(&life), ACQUIRING, SENDS(ACQUIRE, 7, 1));
    life_expect(life_votes(&life, "GG"), HELD, ACQUIRED(OK));
}

LIFE_TEST(a_ttl_without_validity_sends_nothing, life_init(&life, 3)) {
    life_may_queue(&life);
    life.plan.ttl_ms = 3;
    life.in_line = true;
    life_expect(life_begin(&life), ENDED, ACQUIRED(ERR_TOO_SLOW));
}

LIFE_TEST(a_try_that_others_denied_hands_its_nodes_over_and_waits, life_init(&life, 5)) {
    life_may_queue(&life);
    life_begin(&life);
    life_expect(life_votes(life_at(&life, 1), "GGDDD"), QUEUED, .cleanup = 31, WAITS(31, 2, ENTERED));
    assert_true(life_queue(&life)->takes);
    assert_int_equal(life.core.attempts, 2);
    assert_int_equal(life.core.keys.to_release, 31);
}

TEST(a_try_that_was_lost_otherwise_hands_its_nodes_over_and_takes) {
    for (int way = 0; way < 4; way++) {
        struct life life;
        life_init(&life, 3);
        life_may_queue(&life);
        life_begin(&life);
        switch (way) {
        case 0:
            life_expect(life_votes(&life, "FU"), QUEUED, .cleanup = 6, WAITS(7, 2, ENTERED));
            break;
        case 1: /* won too late */
            life_vote(&life, 0, G);
            life_expect(life_vote(life_at(&life, END_MS), 1, G), QUEUED, .cleanup = 7, WAITS(7, 2, ENTERED));
            break;
        case 2:
            life_expect(life_timer(life_at(&life, END_MS)), QUEUED, .cleanup = 7, WAITS(7, 2, ENTERED));
            break;
        default:
            life_votes(&life, "GU");
            life_expect(life_void(&life, 1), QUEUED, .cleanup = 7, WAITS(7, 2, ENTERED));
        }
        assert_true(life_queue(&life)->takes);
    }
}

LIFE_TEST(a_node_that_a_guard_bars_gets_no_wait, life_init(&life, 5)) {
    life_may_queue(&life);
    life_begin(&life);
    life.may_not_vote = 3;
    life_expect(life_votes(&life, "DDD"), QUEUED, .cleanup = 31, WAITS(28, 2, ENTERED));
    assert_int_equal(life.core.keys.to_release, 28);
}

LIFE_TEST(too_few_nodes_that_may_vote_are_not_asked_until_later, life_init(&life, 3)) {
    life_may_queue(&life);
    life.in_line = true;
    life.may_not_vote = 3;
    life_expect(life_begin(&life), QUEUED, WAITS(0, 1, ENTERED));
    assert_int_equal(life.core.keys.to_release, 0);
    assert_in_range(life_next_ms(&life), 50, 200);
    life.at_ms = life_next_ms(&life) + 1;
    life.may_not_vote = 1;
    life_expect(life_timer(&life), QUEUED, WAITS(6, 2, POLLED));
    assert_int_equal(life.core.keys.to_release, 6);
    life_vote(&life, 1, G);
    life.may_not_vote = 3;
    life_timer(life_at(&life, life_next_ms(&life) + 51)); /* the other node did not answer */
    life_expect(&life, QUEUED, WAITS(0, 3, LOOKED));
    assert_int_equal(life_queue(&life)->granted, 0);
    life_expect(life_timer(life_at(&life, WAIT_MS)), ENDED, .cleanup = 6, ACQUIRED(ERR_NO_QUORUM));
}

TEST(the_reason_at_the_end_of_the_wait_is_what_nodes_said_last) {
    static const char *const votes[] = {"DD", "DU", "UU"};
    static const int codes[] = {REDLOCK_ERR_CONTENDED, REDLOCK_ERR_NO_QUORUM, REDLOCK_ERR_NO_QUORUM};
    for (unsigned i = 0; i < 3; i++) {
        struct life life;
        life_begin_in_line(&life, 3);
        life.view = later;
        life.view.rank = 1;
        life_votes(&life, votes[i]);
        life_timer(life_at(&life, WAIT_MS));
        life_check(&life, REDLOCK_LEASE_ENDED,
                   (struct redlock_actions){.cleanup = 7, .acquired = true, .acquired_code = codes[i]}, __FILE__,
                   __LINE__);
    }
}

static void queue_at_two_of_three(struct life *life) {
    life_begin_in_line(life, 3);
    life_queued(life, 0, later);
    life_queued(life, 1, later);
}

static void ask_just_before_the_end(struct life *life) {
    queue_at_two_of_three(life);
    life_expect(life_timer(life_at(life, WAIT_MS - 1)), QUEUED, WAITS(7, 2, POLLED));
}

LIFE_TEST(a_wait_that_was_just_sent_does_not_change_the_reason, ask_just_before_the_end(&life)) {
    life_expect(life_timer(life_at(&life, WAIT_MS)), ENDED, .cleanup = 7, ACQUIRED(ERR_CONTENDED));
    life_begin_in_line(&life, 3); /* nothing was ever known */
    life_expect(life_timer(life_at(&life, WAIT_MS)), ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));
}

LIFE_TEST(a_wait_that_too_few_nodes_can_still_answer_changes_the_reason, ask_just_before_the_end(&life)) {
    life_votes(&life, "UU");
    life_expect(life_timer(life_at(&life, WAIT_MS)), ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));
}

LIFE_TEST(a_wait_that_too_few_nodes_answered_is_the_reason_when_the_next_is_sent, queue_at_two_of_three(&life)) {
    life_timer(life_at(&life, life_next_ms(&life) + 1));
    assert_int_equal(life.core.round, 2);
    life_votes(&life, "UU");
    life_timer(life_at(&life, life_next_ms(&life) + 1)); /* the third node has not answered */
    assert_int_equal(life.core.round, 3);
    life_expect(life_timer(life_at(&life, WAIT_MS)), ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));
}

LIFE_TEST(a_grant_at_the_end_of_the_wait_still_counts, life_begin_in_line(&life, 1)) {
    life.core.wait_until_ns = T0;
    life_expect(life_push(&life, 0, 1), HELD, ACQUIRED(OK));
    life_begin_in_line(&life, 1);
    life.core.wait_until_ns = T0 + 20000 * MS; /* too late, and no time for more */
    life_expect(life_push(life_at(&life, 20000), 0, 1), ENDED, .cleanup = 1, ACQUIRED(ERR_TOO_SLOW));
}

LIFE_TEST(who_waits_forever_has_no_end, life_init(&life, 1)) {
    life_may_queue(&life);
    life.plan.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    life.in_line = true;
    life_begin(&life);
    for (unsigned i = 1; i < 100; i++) {
        life_expect(life_queued(&life, 0, later), QUEUED, NOTHING);
        life.at_ms += 1000000;
        life_expect(life_timer(&life), QUEUED, WAITS(1, i + 1, POLLED));
    }
}

TEST(a_cancel_takes_all_places_back) {
    for (int lock_delay = 0; lock_delay <= 1; lock_delay++) {
        struct life life;
        life_init(&life, 5);
        life_may_queue(&life);
        life.plan.lock_delay_ms = lock_delay;
        life.in_line = true;
        life_begin(&life);
        life_vote(&life, 4, G);
        life_vote(&life, 3, F);
        life_expect(life_cancel(&life, REDLOCK_ERR_CANCELLED), ENDED, .cleanup = 23, ACQUIRED(ERR_CANCELLED));
    }
}

/* R8, over several WAITs of one token: a node that failed one may have taken another. */
LIFE_TEST(a_node_that_failed_each_wait_owes_no_release, life_begin_in_line(&life, 3)) {
    life_refuse(&life, 1);
    assert_int_equal(life.core.keys.to_release, 6);
    life.view = later;
    life_votes(&life, ".DD");
    life_timer(life_at(&life, 9000)); /* the first asks when the holder's keys have ended */
    life_timer(life_at(&life, 9002));
    assert_int_equal(life.core.keys.to_release, 7);
    life_refuse(&life, 3);
    assert_int_equal(life.core.keys.to_release, 6);
    life_expect(life_cancel(&life, REDLOCK_ERR_CLOSED), ENDED, .cleanup = 6, ACQUIRED(ERR_CLOSED));
}

LIFE_TEST(a_node_that_says_that_it_granted_gets_a_release_whatever_it_said, life_begin_in_line(&life, 3)) {
    life_refuse(&life, 1);
    life_expect(life_push(&life, 0, 1), QUEUED, NOTHING);
    life_expect(life_vote(&life, 1, G), HELD, ACQUIRED(OK));
    life_push(&life, 2, 1);
    life_vote(&life, 2, F);
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 7, 2));
}

LIFE_TEST(a_late_request_is_uncertain_until_a_later_wait_is_answered, life_begin_in_line(&life, 3)) {
    redlock_keys_sent(&life.core.keys, REDLOCK_OP_WAIT, 7);
    life_queued(&life, 0, later);
    life_queued(&life, 1, later);
    life_vote(&life, 2, U);
    life_expect(life_timer(life_at(&life, 9003)), QUEUED, WAITS(7, 2, POLLED));
    redlock_keys_sent(&life.core.keys, REDLOCK_OP_WAIT, 7);
    life_queued(&life, 2, later);
    life_cancel(&life, REDLOCK_ERR_CANCELLED);
    assert_int_equal(life.did.uncertain, 3);
}

LIFE_TEST(nodes_without_queues_make_it_try_again_after_delays, life_begin_in_line(&life, 3)) {
    life_queued(&life, 0, later);
    life_expect(life_poll(&life), RETRYING, .cleanup = 7);
    assert_in_range(life_next_ms(&life), 50, 200);
    life_expect(life_poll(&life), RETRYING, NOTHING);
    life_push(&life, 0, 1);
    life_vote(&life, 1, G);
    life_expect(life_listen(&life), RETRYING, NOTHING);
    life_expect(life_timer(life_at(&life, 201)), ACQUIRING, SENDS(ACQUIRE, 7, 2));
    life_void(&life, 1);
    life_expect(life_votes(&life, "DD"), RETRYING, .cleanup = 7);
    life_timer(life_at(&life, 401));
    life_expect(life_votes(&life, "GG"), HELD, ACQUIRED(OK));
    life_expect(life_push(&life, 2, 1), HELD, NOTHING);
    life_begin_in_line(&life, 3);
    life_expect(life_poll(life_at(&life, WAIT_MS)), ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));
}

/* The nodes fail it once more. Returns for how long it takes no place then. */
static int64_t polls_for_ms(struct life *life) {
    const int64_t from_ms = life->at_ms;
    const unsigned rounds = life->core.round;
    life_expect(life_poll(life), RETRYING, .cleanup = 7);
    life->in_line = true;
    while (life->core.state != REDLOCK_LEASE_QUEUED) {
        life_timer(life_at(life, life_next_ms(life) + 1));
        if (life->core.state == REDLOCK_LEASE_ACQUIRING) {
            life_votes(life, "DD");
        }
    }
    assert_int_not_equal(life->core.round, rounds);
    return life->at_ms - from_ms;
}

/* The nodes may be well by then. Each retry delay is 200 ms at most. */
LIFE_TEST(who_polls_takes_a_place_again_soon_and_later_within_ten_seconds, life_begin_in_line(&life, 3)) {
    static const int64_t most_ms[] = {500, 1000, 2000, 4000, 8000, 10000, 10000};
    life.plan.wait_timeout_ms = life.core.plan.wait_timeout_ms = 3600000;
    life.core.wait_until_ns = T0 + 3600000 * MS;
    for (unsigned i = 0; i < sizeof most_ms / sizeof *most_ms; i++) {
        assert_in_range(polls_for_ms(&life), most_ms[i] / 2, most_ms[i] + 210);
    }
    life_answer_queued(&life, 3, later); /* a quorum keeps it */
    assert_in_range(polls_for_ms(&life), 250, 710);
}

/* Nobody could tell it of a grant. */
LIFE_TEST(who_is_barred_takes_no_place_until_that_ends, life_init(&life, 3)) {
    life_may_queue(&life);
    life.in_line = life_queue(&life)->barred = true;
    life_expect(life_begin(&life), ACQUIRING, SENDS(ACQUIRE, 7, 1));
    life_expect(life_votes(&life, "DD"), RETRYING, .cleanup = 7);
    life_expect(life_timer(life_at(&life, 30000)), ACQUIRING, SENDS(ACQUIRE, 7, 2));
    life_votes(&life, "DD");
    life_queue(&life)->barred = false;
    life_expect(life_timer(life_at(&life, 30201)), QUEUED, WAITS(7, 3, ENTERED));
    life_queue(&life)->barred = true;
    life_expect(life_poll(&life), RETRYING, .cleanup = 7); /* barred while it queues */
    life_queue(&life)->barred = false;
    life_timer(life_at(&life, 30500));
    life_expect(&life, QUEUED, WAITS(7, 4, ENTERED)); /* at once: it had no time to wait for */
}

LIFE_TEST(a_wrong_ticket_costs_a_fresh_token_and_no_grant, life_begin_in_line(&life, 3)) {
    life.misplaced = true;
    life_expect(life_answer_queued(&life, 7, LIFE_VIEW(EARLIER, 5, 60000, 3)), QUEUED, NOTHING);
    life_expect(life_timer(life_at(&life, life_next_ms(&life) + 1)), QUEUED, .cleanup = 7, WAITS(7, 2, REFRESHED));
    life.misplaced = false;
    life_answer_queued(&life, 3, LIFE_VIEW(EARLIER, 5, 60000, 3));
    life_push(&life, 2, 1); /* of the old token */
    assert_int_equal(life_queue(&life)->granted, 0);
    life_push(&life, 2, 2);
    life.misplaced = true;
    life.at_ms += 60;
    /* a grant is worth more than the right place */
    life_expect(life_timer(&life), QUEUED, WAITS(7, 3, LOOKED));
}

LIFE_TEST(what_only_a_waiter_hears_changes_no_other_lease, life_held(&life, false)) {
    /* it never queued */
    life_push(&life, 0, 1);
    life_listen(&life);
    life_expect(life_poll(&life), HELD, NOTHING);
    life_init(&life, 3);
    life_may_queue(&life);
    life_begin(&life);
    life_push(&life, 0, 1); /* a first try has no place that could be granted */
    life_expect(life_push(&life, 1, 1), ACQUIRING, NOTHING);
}
