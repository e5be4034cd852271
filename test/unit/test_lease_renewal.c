/* auto_extend: renewed at a third of the ttl or a little sooner, retried until the deadline,
 * capped, and with no callback but on_lost. */
#include "life.h"

/* Up to a tenth of that sooner, so that leases that were taken together are not renewed
 * together. */
LIFE_TEST(a_third_of_the_ttl_after_the_start, life_held(&life, true)) {
    int64_t least_ms = TTL_MS, most_ms = 0;
    assert_in_range(life_next_ms(&life), 3000, 3333);
    for (uint32_t round = 2; round < 100; round++) {
        life_timer(life_at(&life, life_next_ms(&life)));
        life_expect(&life, HELD, NOTHING); /* a fraction of a millisecond too early */
        life.at_ms++;
        const int64_t start_ms = life.at_ms;
        life_expect(life_timer(&life), EXTENDING, SENDS(EXTEND, 31, round));
        life.at_ms += 20;
        life_expect(life_votes(&life, "UGGG"), HELD, NOTHING);
        assert_int_equal(life_held_until_ms(&life), start_ms + END_MS);
        const int64_t delay_ms = life_next_ms(&life) - start_ms;
        assert_in_range(delay_ms, 2999, 3333);
        least_ms = delay_ms < least_ms ? delay_ms : least_ms;
        most_ms = delay_ms > most_ms ? delay_ms : most_ms;
    }
    assert_true(least_ms < 3020 && most_ms > 3313);
}

LIFE_TEST(a_failed_renewal_is_tried_again_until_the_deadline, life_held(&life, true)) {
    int64_t before_ms = 0;
    uint32_t round = 2;
    for (;; round++) {
        const int64_t due_ms = life_next_ms(&life) + 1;
        if (due_ms > END_MS) {
            break;
        }
        assert_true(due_ms > before_ms);
        life.at_ms = before_ms = due_ms;
        life_timer(&life);
        if (life.core.state == REDLOCK_LEASE_LOST) {
            break;
        }
        life_expect(&life, EXTENDING, SENDS(EXTEND, 31, round));
        assert_int_equal(life_next_ms(&life), END_MS);
        life_expect(life_votes(&life, "FUU"), HELD, NOTHING);
        assert_int_equal(life_held_until_ms(&life), END_MS);
        if (life_next_ms(&life) < END_MS) {
            const int64_t left_ms = END_MS - due_ms, quarter_ms = left_ms / 4 > 10 ? left_ms / 4 : 10;
            assert_in_range(life_next_ms(&life) - due_ms, quarter_ms, quarter_ms + quarter_ms / 4);
        }
    }
    assert_in_range(round, 15, 60);
    life_expect(life_timer(life_at(&life, END_MS)), LOST, .cleanup = 31, .lost = true);
}

LIFE_TEST(a_renewal_that_recovers_is_a_third_away_again, life_held(&life, true)) {
    life_timer(life_at(&life, 3334));
    life_expect(life_refuse(&life, 31), HELD, NOTHING);
    life_expect(life_timer(life_at(&life, 6000)), EXTENDING, SENDS(EXTEND, 31, 3));
    life_expect(life_votes(&life, "GGG"), HELD, NOTHING);
    assert_in_range(life_next_ms(&life), 6000 + 3000, 6000 + 3333);
}

/* It waits for a quarter of the time left only while nobody who was silent can be asked. */
LIFE_TEST(a_failed_renewal_is_due_when_a_silent_node_is_ready, life_held(&life, true)) {
    life_expect(life_ready(&life, 4), HELD, NOTHING); /* nothing has failed yet */
    assert_in_range(life_next_ms(&life), 3000, 3333);
    life_timer(life_at(&life, 3334));
    life_expect(life_votes(&life, "GGUUF"), HELD, NOTHING);
    assert_true(life_next_ms(&life) > 3334 + 1600);
    life_ready(life_at(&life, 3400), 1); /* it has answered */
    assert_true(life_next_ms(&life) > 3334 + 1600);
    for (uint32_t round = 3, node = 2; node < 5; round++, node++) {
        life.at_ms += 100;
        life_expect(life_ready(&life, node), HELD, NOTHING);
        assert_int_equal(life_next_ms(&life), life.at_ms);
        life_expect(life_timer(&life), EXTENDING, SENDS(EXTEND, 31, round));
        life_expect(life_votes(&life, node < 4 ? "GGUUF" : "GGG"), HELD, NOTHING);
        /* One round for each node that is back. */
        assert_true(life_next_ms(&life) > life.at_ms + 1500);
    }
    life_ready(&life, 4); /* nothing has failed any more */
    assert_true(life_next_ms(&life) > life.at_ms + 2900);
}

LIFE_TEST(a_renewal_that_fails_after_a_node_was_ready_is_due_again, life_held(&life, true)) {
    life_timer(life_at(&life, 3334));
    life_votes(&life, "GGU");
    life_ready(&life, 0); /* it has answered */
    life_expect(life_ready(&life, 2), EXTENDING, NOTHING);
    life_expect(life_vote(life_at(&life, 3384), 3, U), EXTENDING, NOTHING);
    life_expect(life_vote(&life, 4, F), HELD, .round_over = true, .round_code = REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(life_next_ms(&life), 3384);
    life_expect(life_timer(&life), EXTENDING, SENDS(EXTEND, 31, 3));
    life_votes(&life, "GGUUU");
    assert_true(life_next_ms(&life) > 3384 + 1500);
}

/* Nobody renews it, or nobody may any more. */
LIFE_TEST(a_silent_node_that_is_ready_makes_no_renewal_of_its_own, life_held(&life, false)) {
    life_extend(&life, TTL_MS);
    life_votes(&life, "UUU");
    life_expect(&life, HELD, .round_over = true, .round_code = REDLOCK_ERR_NO_QUORUM, EXTENDED(ERR_NO_QUORUM));
    life_ready(&life, 0);
    assert_int_equal(life_next_ms(&life), END_MS);
    life_held(&life, true);
    life_timer(life_at(&life, 3334));
    life_votes(&life, "UUU");
    life_ready(life_at(&life, END_MS), 0);
    life_expect(life_timer(&life), LOST, .cleanup = 31, .lost = true);
}

LIFE_TEST(a_renewal_that_most_deny_is_a_loss, life_held(&life, true)) {
    life_timer(life_at(&life, 3334));
    life_expect(life_votes(&life, "DDD"), LOST, .cleanup = 31, .lost = true, .lost_by_votes = true);
}

/* A paused process: when it runs again, both the renewal and the deadline have passed. */
LIFE_TEST(the_deadline_comes_before_a_renewal, life_held(&life, true)) {
    life_expect(life_timer(life_at(&life, END_MS)), LOST, .cleanup = 31, .lost = true);
    life_held(&life, true);
    life_expect(life_timer(life_at(&life, END_MS - 1)), EXTENDING, SENDS(EXTEND, 31, 2));
    life_expect(life_timer(life_at(&life, END_MS)), LOST, .cleanup = 31, .lost = true);
}

LIFE_TEST(the_cap_ends_renewals, life_init(&life, 1)) {
    life.plan.auto_extend = true;
    life.plan.auto_extend_max_ms = 8000;
    life_begin(&life);
    life_vote(life_at(&life, 100), 0, G); /* held since then: no renewal at 8100 or later */
    for (uint32_t round = 2; round < 4; round++) {
        assert_false(redlock_lease_is_capped(&life.core));
        life_expect(life_timer(life_at(&life, life_next_ms(&life) + 1)), EXTENDING, SENDS(EXTEND, 1, round));
        life_vote(&life, 0, G);
    }
    assert_in_range(life.at_ms, 6000, 6668);
    assert_int_equal(life_next_ms(&life), life.at_ms + END_MS); /* the last renewal ends */
    assert_true(redlock_lease_is_capped(&life.core));
    life_extend(life_at(&life, 8000), TTL_MS); /* the caller may still extend */
    life_expect(life_vote(&life, 0, G), HELD, EXTENDED(OK));
    assert_int_equal(life_next_ms(&life), 8000 + END_MS);
    life_expect(life_timer(life_at(&life, 8000 + END_MS)), LOST, .cleanup = 1, .lost = true);
    assert_true(redlock_lease_is_capped(&life.core)); /* why it was not renewed */
    life_held(&life, false);
    assert_false(redlock_lease_is_capped(&life.core)); /* no renewals were asked for */
}

LIFE_TEST(a_timer_that_is_late_for_the_cap_does_not_renew, life_init(&life, 1)) {
    life.plan.auto_extend = true;
    life.plan.auto_extend_max_ms = 3334;
    life_begin(&life);
    life_vote(&life, 0, G);
    assert_in_range(life_next_ms(&life), 3000, 3333);
    life_expect(life_timer(life_at(&life, 3334)), HELD, NOTHING);
    assert_int_equal(life_next_ms(&life), END_MS);
}

LIFE_TEST(a_cap_within_the_first_third_means_no_renewal, life_init(&life, 1)) {
    life.plan.ttl_ms = 9999; /* a third is 3333 ms, and a renewal comes at most 333.3 ms sooner */
    life.plan.auto_extend = true;
    life.plan.auto_extend_max_ms = 2999;
    life_begin(&life);
    life_vote(&life, 0, G);
    assert_int_equal(life_next_ms(&life), 9999 - 102);
}

LIFE_TEST(a_failed_extend_by_the_caller_is_renewed_too, life_held(&life, true)) {
    life_extend(life_at(&life, 1000), 20000);
    life_expect(life_votes(&life, "FFF"), HELD, EXTENDED(ERR_NO_QUORUM));
    assert_in_range(life_next_ms(&life), 1000 + 2224, 1000 + 2224 + 556);
    life_expect(life_timer(life_at(&life, 4000)), EXTENDING, SENDS(EXTEND, 31, 3));
    /* With the ttl that the caller asked for last. */
    assert_int_equal(life.core.round_ttl_ms, 20000);
}

LIFE_TEST(an_adopted_lease_renews_once_it_is_held, life_init(&life, 1)) {
    life.plan.auto_extend = true;
    life.plan.auto_extend_max_ms = 5000;
    life_adopt(&life);
    life_extend(life_at(&life, 70000), TTL_MS);
    life_expect(life_vote(&life, 0, G), HELD, EXTENDED(OK));
    assert_in_range(life_next_ms(&life), 73000, 73333); /* the cap counts from here */
    life_timer(life_at(&life, 73334));
    life_vote(&life, 0, G);
    assert_int_equal(life_next_ms(&life), 73334 + END_MS);
}

/* A ttl so short that a third of it is after its deadline. */
LIFE_TEST(a_tiny_ttl_runs_out_first, life_init(&life, 1)) {
    life.plan.ttl_ms = 4;
    life.plan.auto_extend = true;
    life_begin(&life);
    life_vote(&life, 0, G);
    assert_int_equal(life_next_ms(&life), 1);
    life_expect(life_timer(life_at(&life, 1)), LOST, .cleanup = 1, .lost = true);
}

LIFE_TEST(no_renewal_follows_a_release, life_held(&life, true)) {
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 31, 2));
    assert_int_equal(life_next_ms(&life), -1);
    life_expect(life_timer(life_at(&life, 3334)), RELEASING, NOTHING);
}

/* We renewed it while we waited for others. */
LIFE_TEST(one_that_settles_is_renewed_as_its_owner_wants, life_held(&life, true)) {
    life.plan.auto_extend = false;
    life_expect(life_settle(life_at(&life, 100)), HELD, NOTHING);
    assert_int_equal(life_next_ms(&life), END_MS);
    life.plan.auto_extend = true;
    life_settle(&life);
    assert_int_equal(life_next_ms(&life), END_MS); /* no time of a renewal is known any more */
}

LIFE_TEST(one_that_settles_is_renewed_once_more_if_it_is_short, life_held(&life, true)) {
    life.plan.auto_extend = false;
    life_settle(life_at(&life, END_MS - END_MS / 4 * 3 + 1));
    assert_int_equal(life_next_ms(&life), life.at_ms);
    life_expect(life_timer(&life), EXTENDING, SENDS(EXTEND, 31, 2));
    life_expect(life_votes(&life, "GGG"), HELD, NOTHING);
    assert_int_equal(life_next_ms(&life), END_MS - END_MS / 4 * 3 + 1 + END_MS);
}

LIFE_TEST(the_cap_of_one_that_settles_counts_from_then, life_held(&life, true)) {
    life.plan.auto_extend_max_ms = 3400;
    life_settle(life_at(&life, 100));
    assert_in_range(life_next_ms(&life), 3000, 3333);
    life_expect(life_timer(life_at(&life, 3334)), EXTENDING, SENDS(EXTEND, 31, 2));
    life_votes(&life, "GGGGG");
    assert_int_equal(life_next_ms(&life), 3334 + END_MS); /* 3500 is over before the next third */
}

LIFE_TEST(one_settles_while_it_is_renewed, life_held(&life, true)) {
    life_expect(life_timer(life_at(&life, 3334)), EXTENDING, SENDS(EXTEND, 31, 2));
    life.plan.auto_extend = false;
    life_expect(life_settle(&life), EXTENDING, NOTHING);
    life_expect(life_votes(&life, "GGGGG"), HELD, NOTHING);
    assert_int_equal(life_next_ms(&life), 3334 + END_MS);
}

/* Nobody was told of it, so nobody has to be kept out. */
LIFE_TEST(one_that_is_not_settled_has_no_lock_delay, life_init(&life, 5)) {
    life.plan.lock_delay_ms = 5000;
    life.plan.unsettled = true;
    life_begin(&life);
    life_votes(&life, "GGG");
    struct life settled = life, released = life;
    life_expect(life_timer(life_at(&life, END_MS)), LOST, .cleanup = 31, .lost = true);
    life_expect(life_release(life_at(&released, END_MS)), RELEASING, SENDS(RELEASE, 31, 2));
    settled.plan.unsettled = false;
    life_settle(&settled);
    life_expect(life_timer(life_at(&settled, END_MS)), LOST, .lost = true);
}

LIFE_TEST(one_that_is_lost_does_not_settle, life_held(&life, true)) {
    life_timer(life_at(&life, END_MS));
    life_expect(life_settle(&life), LOST, NOTHING);
    assert_int_equal(life_next_ms(&life), -1);
}
