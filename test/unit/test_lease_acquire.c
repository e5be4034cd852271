/* Acquire: how an attempt is won, lost, retried or given up, and what is cleaned up after it. */
#include "life.h"

LIFE_TEST(a_quorum_wins_at_once, life_init(&life, 5)) {
    assert_int_equal(life_next_ms(&life), -1);
    life_expect(life_begin(&life), ACQUIRING, SENDS(ACQUIRE, 31, 1));
    assert_int_equal(life_next_ms(&life), END_MS);
    assert_int_equal(life_held_until_ms(&life), -1);
    life_expect(life_votes(life_at(&life, 3), "G.GG"), HELD, ACQUIRED(OK));
    /* Counted from the start, not from the votes. */
    assert_int_equal(life_held_until_ms(&life), END_MS);
    assert_int_equal(life_next_ms(&life), END_MS);
    assert_int_equal(life.core.attempts, 1);
}

LIFE_TEST(late_votes_are_accounted_for, life_start(&life, 5)) {
    life_votes(&life, "GGG");
    life_expect(life_vote(&life, 3, F), HELD, NOTHING);
    life_expect(life_vote(&life, 4, U), HELD, NOTHING);
    assert_int_equal(life.core.votes.failed, 8);
    assert_int_equal(life.core.votes.unknown, 16);
    life_release(&life); /* node 3 surely has no key, node 4 may have one */
    life_expect(&life, RELEASING, SENDS(RELEASE, 23, 2));
}

LIFE_TEST(denied_by_most_is_contended, life_start(&life, 5)) {
    life_expect(life_votes(&life, "DGDF"), ENDED, .cleanup = 31 & ~8, ACQUIRED(ERR_CONTENDED));
    assert_int_equal(life_next_ms(&life), -1);
    life_start(&life, 5);
    life_votes(&life, "DDD");
    /* Also at the pending nodes (R8). */
    life_expect(&life, ENDED, .cleanup = 31, ACQUIRED(ERR_CONTENDED));
}

LIFE_TEST(a_tie_is_contended_at_once, life_start(&life, 4)) {
    life_expect(life_votes(&life, "GGDD"), ENDED, .cleanup = 15, ACQUIRED(ERR_CONTENDED));
    life_start(&life, 2);
    life_expect(life_votes(&life, "GD"), ENDED, .cleanup = 3, ACQUIRED(ERR_CONTENDED));
}

/* R13: already lost, but whether most nodes answer is not known yet. */
LIFE_TEST(the_code_waits_for_the_nodes_that_decide_it, life_start(&life, 5)) {
    static const struct {
        const char *rest;
        int code;
    } table[] = {{"...D", REDLOCK_ERR_CONTENDED}, {"...G", REDLOCK_ERR_CONTENDED}, {"...U", REDLOCK_ERR_NO_QUORUM}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        life_start(&life, 5);
        life_expect(life_votes(&life, "DFU"), ACQUIRING, NOTHING);
        life_vote(&life, 4, table[i].code == REDLOCK_ERR_NO_QUORUM ? U : D);
        if (table[i].code != REDLOCK_ERR_NO_QUORUM) {
            life_votes(&life, table[i].rest);
        }
        life_expect(&life, ENDED, .cleanup = 29, .acquired = true, .acquired_code = table[i].code);
    }
    life_start(&life, 5);
    life_votes(&life, "DFU");
    life_timer(life_at(&life, END_MS)); /* no more votes: the deadline of the round */
    life_expect(&life, ENDED, .cleanup = 29, ACQUIRED(ERR_NO_QUORUM));
}

LIFE_TEST(too_few_answers_are_no_quorum, life_start(&life, 5)) {
    life_expect(life_votes(&life, "UGFU"), ENDED, .cleanup = 31 & ~4, ACQUIRED(ERR_NO_QUORUM));
    life_start(&life, 1);
    life_expect(life_vote(&life, 0, F), ENDED, ACQUIRED(ERR_NO_QUORUM));
}

LIFE_TEST(nodes_that_refuse_have_failed, life_start(&life, 5)) {
    life_expect(life_refuse(&life, 3), ACQUIRING, NOTHING);
    life_expect(life_votes(&life, "..GGG"), HELD, ACQUIRED(OK));
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 28, 2));
    life_start(&life, 5);
    life_expect(life_refuse(&life, 31), ENDED, ACQUIRED(ERR_NO_QUORUM));
}

LIFE_TEST(a_quorum_that_comes_too_late_is_too_slow, life_start(&life, 3)) {
    life_vote(&life, 0, G);
    life_expect(life_vote(life_at(&life, END_MS), 1, G), ENDED, .cleanup = 7, ACQUIRED(ERR_TOO_SLOW));
    life_start(&life, 3);
    life_expect(life_votes(life_at(&life, END_MS - 1), "GG"), HELD, ACQUIRED(OK));
}

TEST(a_ttl_within_the_drift_is_not_tried) {
    for (int32_t ttl_ms = 1; ttl_ms <= 4; ttl_ms++) {
        struct life life;
        life_init(&life, 3);
        life.plan.ttl_ms = ttl_ms;
        life.plan.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
        life_begin(&life);
        if (ttl_ms <= 3) {
            life_expect(&life, ENDED, ACQUIRED(ERR_TOO_SLOW));
            assert_int_equal(life.core.attempts, 0);
            assert_int_equal(redlock_round_pending(&life.core.votes), 0);
        } else {
            life_expect(&life, ACQUIRING, SENDS(ACQUIRE, 7, 1));
        }
    }
}

TEST(the_rounds_deadline_ends_it) {
    static const struct {
        const char *votes;
        int code;
    } table[] = {{"GGD..", REDLOCK_ERR_CONTENDED}, {"GG...", REDLOCK_ERR_NO_QUORUM}, {"FG.G.", REDLOCK_ERR_NO_QUORUM}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct life life;
        life_start(&life, 5);
        life_votes(&life, table[i].votes);
        life_expect(life_timer(life_at(&life, END_MS - 1)), ACQUIRING, NOTHING);
        life_timer(life_at(&life, END_MS));
        life_expect(&life, ENDED, .cleanup = 31 & ~life.core.votes.failed, .acquired = true,
                    .acquired_code = table[i].code);
    }
}

LIFE_TEST(with_time_left_it_is_tried_again, life_init(&life, 3)) {
    life.plan.wait_timeout_ms = 1000;
    life_begin(&life);
    for (uint32_t round = 1; round <= 4; round++) {
        assert_int_equal(life_next_ms(&life), 1000);
        life_expect(life_votes(&life, "DGU"), RETRYING, .cleanup = 7);
        const int64_t retry_ms = life_next_ms(&life);
        assert_in_range(retry_ms, life.at_ms + 50, life.at_ms + 200);
        /* a fraction of a millisecond too early */
        life_expect(life_timer(life_at(&life, retry_ms)), RETRYING, NOTHING);
        life_expect(life_stale(life_at(&life, retry_ms + 1), 1, D, round), RETRYING, NOTHING);
        life_expect(life_timer(&life), ACQUIRING, SENDS(ACQUIRE, 7, round + 1));
        assert_int_equal(life.core.attempts, round + 1);
    }
    const int64_t start_ms = life.at_ms;
    life_stale(&life, 0, G, 1); /* from an attempt that ended long ago */
    life_expect(life_stale(&life, 1, G, 4), ACQUIRING, NOTHING);
    assert_int_equal(life.core.votes.granted, 0);
    life_expect(life_votes(&life, "FGG"), HELD, ACQUIRED(OK));
    assert_int_equal(life_held_until_ms(&life), start_ms + END_MS);
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 6, 6));
}

LIFE_TEST(too_slow_is_tried_again_too, life_init(&life, 1)) {
    life.plan.ttl_ms = 100;
    life.plan.wait_timeout_ms = 5000;
    life_begin(&life);
    life_expect(life_vote(life_at(&life, 97), 0, G), RETRYING, .cleanup = 1);
    life_expect(life_timer(life_at(&life, 5000)), ENDED, ACQUIRED(ERR_TOO_SLOW));
}

LIFE_TEST(no_attempt_begins_when_the_wait_is_over, life_init(&life, 1)) {
    life.plan.wait_timeout_ms = 100;
    life.plan.retry_delay_min_ms = life.plan.retry_delay_max_ms = 60;
    life_begin(&life);
    life_expect(life_vote(life_at(&life, 40), 0, D), RETRYING, .cleanup = 1);
    assert_int_equal(life_next_ms(&life), 100);
    life_expect(life_timer(life_at(&life, 99)), RETRYING, NOTHING);
    /* both the retry and the end of the wait are due: the end wins */
    life_timer(life_at(&life, 100));
    life_expect(&life, ENDED, ACQUIRED(ERR_CONTENDED));
    assert_int_equal(life_next_ms(&life), -1);
}

/* An acquire of permits that was lost waits until it stands at the gate. */
LIFE_TEST(who_is_not_at_the_gate_does_not_try_again, life_init(&life, 1)) {
    life.plan.wait_timeout_ms = 1000;
    life.plan.at_no_gate = true;
    life_begin(&life);
    life_expect(life_vote(life_at(&life, 10), 0, D), RETRYING, .cleanup = 1);
    assert_int_equal(life_next_ms(&life), 1000);
    life_expect(life_admit(life_at(&life, 500)), ACQUIRING, SENDS(ACQUIRE, 1, 2));
    /* what is under way goes on */
    life_expect(life_exclude(life_at(&life, 510)), ACQUIRING, NOTHING);
    life_expect(life_vote(&life, 0, D), RETRYING, .cleanup = 1);
    assert_int_equal(life_next_ms(&life), 1000);
    life_expect(life_exclude(life_at(&life, 600)), RETRYING, NOTHING);
    /* the wait is over, though it is admitted */
    life_expect(life_admit(life_at(&life, 1000)), ENDED, ACQUIRED(ERR_CONTENDED));
}

LIFE_TEST(the_wait_ends_in_the_middle_of_an_attempt, life_init(&life, 3)) {
    /* the first attempt: by its answers */
    life.plan.wait_timeout_ms = 30;
    life_begin(&life);
    assert_int_equal(life_next_ms(&life), 30);
    life_vote(&life, 0, D);
    life_expect(life_timer(life_at(&life, 30)), ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));
    life_init(&life, 3);
    life.plan.wait_timeout_ms = 30;
    life_begin(&life);
    life_votes(&life, "DG");
    life_expect(life_timer(life_at(&life, 30)), ENDED, .cleanup = 7, ACQUIRED(ERR_CONTENDED));
    life_init(&life, 3); /* a later attempt: by the reason of the one before */
    life.plan.wait_timeout_ms = 250;
    life_begin(&life);
    life_votes(&life, "DD");
    life_expect(life_timer(life_at(&life, 201)), ACQUIRING, SENDS(ACQUIRE, 7, 2));
    life_vote(&life, 1, F);
    life_timer(life_at(&life, 20000)); /* the timer is late, past the deadline of the round too */
    life_expect(&life, ENDED, .cleanup = 5, ACQUIRED(ERR_CONTENDED));
}

LIFE_TEST(an_attempt_lost_when_the_wait_is_over_is_the_last, life_init(&life, 3)) {
    life.plan.wait_timeout_ms = 30;
    life_begin(&life);
    life_vote(&life, 0, F);
    life_expect(life_vote(life_at(&life, 30), 1, F), ENDED, .cleanup = 4, ACQUIRED(ERR_NO_QUORUM));
    life_init(&life, 3); /* a grant a little after the end of the wait still counts */
    life.plan.wait_timeout_ms = 30;
    life_begin(&life);
    life_vote(&life, 0, G);
    life_expect(life_vote(life_at(&life, 31), 1, G), HELD, ACQUIRED(OK));
}

LIFE_TEST(waiting_for_ever_ends_by_cancel_only, life_init(&life, 1)) {
    life.plan.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    life.plan.retry_delay_min_ms = life.plan.retry_delay_max_ms = 0;
    life_begin(&life);
    for (uint32_t round = 1; round < 1000; round++) {
        assert_int_equal(life_next_ms(&life), life.at_ms + END_MS);
        life_expect(life_vote(&life, 0, D), RETRYING, .cleanup = 1);
        assert_int_equal(life_next_ms(&life), life.at_ms);
        life.at_ms += 3600 * 1000;
        life_expect(life_timer(&life), ACQUIRING, SENDS(ACQUIRE, 1, round + 1));
    }
    life_vote(&life, 0, D);
    life_cancel(&life, REDLOCK_ERR_CANCELLED);
    life_expect(&life, ENDED, ACQUIRED(ERR_CANCELLED)); /* the cleanup of this attempt is done */
}

LIFE_TEST(cancel_cleans_up, life_start(&life, 5)) {
    life_votes(&life, "GFD");
    life_expect(life_cancel(&life, REDLOCK_ERR_CLOSED), ENDED, .cleanup = 31 & ~2, ACQUIRED(ERR_CLOSED));
    life_expect(life_vote(&life, 3, G), ENDED, NOTHING);
    life_expect(life_cancel(&life, REDLOCK_ERR_CANCELLED), ENDED, NOTHING);
    life_held(&life, false);
    life_expect(life_cancel(&life, REDLOCK_ERR_CANCELLED), HELD, NOTHING);
}

LIFE_TEST(an_event_unknown_to_a_state_changes_nothing, life_init(&life, 3)) {
    life_expect(life_timer(&life), IDLE, NOTHING);
    life_expect(life_vote(&life, 0, G), IDLE, NOTHING);
    life_expect(life_release(&life), IDLE, NOTHING);
    life_begin(&life);
    life_expect(life_begin(&life), ACQUIRING, NOTHING);
    life_expect(life_adopt(&life), ACQUIRING, NOTHING);
    life_expect(life_release(&life), ACQUIRING, NOTHING);
    life_vote(&life, 0, G);
    life_expect(life_vote(&life, 0, G), ACQUIRING, NOTHING); /* one node, one vote */
    life_expect(life_vote(&life, 1, REDLOCK_VOTE_PENDING), ACQUIRING, NOTHING);
    life_expect(life_refuse(&life, ~(redlock_nodes)7), ACQUIRING, NOTHING); /* no such nodes */
    assert_is(redlock_lease_extend_check(&life.core, T0), REDLOCK_ERR_LOST);
}
