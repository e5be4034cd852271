/* When a waiter that has some grants looks, and when it yields: the other rows of core/waiter.h. */
#include "life.h"

#define R_MS 2500 /* a quarter of the ttl */

/* A lease that one of five nodes has granted, and that looks. */
static void look(struct life *life) {
    life_begin_in_line(life, 5);
    life_answer_queued(life_at(life, 5), 30, LIFE_VIEW(LATER, 9, 60000, 0));
    life_expect(life_push(life_at(life, 10), 0, 1), QUEUED, NOTHING);
    life_expect_next(life, 10, 10); /* twice the slowest answer */
    life_expect(life_timer(life), QUEUED, WAITS(31, 2, LOOKED));
    assert_true(life_queue(life)->takes);
    assert_int_equal(life->core.keys.to_release, 31);
}

TEST(a_split_is_looked_at_after_the_slowest_answer_twice) {
    static const int64_t took_ms[] = {0, 1, 3, 40}, look_ms[] = {2, 2, 6, 50};
    for (unsigned i = 0; i < 4; i++) {
        struct life life;
        life_begin_in_line(&life, 3);
        life_answer_queued(&life, 1, LIFE_VIEW(LATER, 9, 60000, 0));
        life_answer_queued(life_at(&life, took_ms[i]), 2, LIFE_VIEW(LATER, 9, 60000, 0));
        life_expect(life_vote(&life, 2, G), QUEUED, NOTHING);
        life_expect_next(&life, look_ms[i], look_ms[i]);
        life_expect(life_timer(&life), QUEUED, WAITS(7, 2, LOOKED));
    }
}

LIFE_TEST(a_look_may_find_the_missing_grants, look(&life)) {
    life_expect(life_votes(&life, "GGG"), HELD, ACQUIRED(OK));
    assert_int_equal(life_held_until_ms(&life), 20 + END_MS);
}

LIFE_TEST(a_grant_that_is_gone_is_no_split, look(&life)) {
    life_expect(life_answer_queued(&life, 31, LIFE_VIEW(LATER, 9, 60000, 0)), QUEUED, NOTHING);
    assert_int_equal(life_queue(&life)->granted, 0);
    life_expect_next(&life, R_MS * 9 / 10, R_MS * 11 / 10);
    life_expect(life_timer(&life), QUEUED, WAITS(31, 3, REFRESHED));
    look(&life);
    life_expect(life_void(&life, 1), QUEUED, NOTHING);
}

TEST(behind_another_that_has_a_quorum_it_yields_to_nobody) {
    static const enum redlock_grants_holder holders[] = {REDLOCK_HOLDER_LATER, REDLOCK_HOLDER_EARLIER,
                                                         REDLOCK_HOLDER_DIRECT, REDLOCK_HOLDER_STRANGER};
    for (unsigned i = 0; i < 4; i++) {
        struct life life;
        look(&life);
        life_vote(&life, 0, G);
        life.view = LIFE_VIEW(NONE, 9, 60000, 0);
        life.view.holder = holders[i];
        life_expect(life_votes(&life, ".DDD"), QUEUED, NOTHING);
        life_vote(&life, 4, U);
        life_expect(&life, QUEUED, .cleanup = 31, .handing = REDLOCK_HAND_NOBODY, WAITS(31, 3, YIELDED));
        assert_true(life.did.fresh_token);
        assert_false(life_queue(&life)->takes);
        assert_int_equal(life_queue(&life)->granted, 0);
        assert_int_equal(life.core.attempts, 2);
    }
}

LIFE_TEST(to_an_earlier_waiter_it_yields_its_nodes, look(&life)) {
    life_vote(&life, 0, G);
    life_answer_queued(&life, 6, LIFE_VIEW(LATER, 9, 60000, 0));
    life_queued(&life, 3, LIFE_VIEW(EARLIER, 8, 60000, 1));
    life_expect(life_vote(&life, 4, U), QUEUED, .cleanup = 31, WAITS(31, 3, YIELDED));
    assert_true(life.did.fresh_token);
    assert_false(life_queue(&life)->takes);
    life_push(&life, 0, 2); /* of the old token */
    assert_int_equal(life_queue(&life)->granted, 0);
    life_answer_queued(&life, 3, LIFE_VIEW(EARLIER, 8, 60000, 1));
    life_answer_queued(&life, 28, LIFE_VIEW(NONE, 0, -2, 1));
    life_expect(&life, QUEUED, NOTHING); /* it takes nothing yet: the earlier one may be alive */
    life_expect_next(&life, 21, 82);
    life_expect(life_timer(&life), QUEUED, WAITS(31, 4, REFRESHED));
    assert_true(life_queue(&life)->takes);
}

LIFE_TEST(who_hears_too_few_nodes_gives_its_grants_up, look(&life)) {
    life_expect(life_votes(&life, "GUUU"), QUEUED, NOTHING);
    life_expect(life_queued(&life, 4, LIFE_VIEW(LATER, 9, 60000, 0)), QUEUED, .cleanup = 31, WAITS(0, 3, YIELDED));
    assert_true(life.did.fresh_token);
    /* Two of them would hand the lock to each other all the time. */
    life_expect_next(&life, 50, 200);
    life_expect(life_timer(&life), QUEUED, WAITS(31, 4, POLLED));
    assert_true(life_queue(&life)->takes);
    assert_int_equal(life.core.keys.to_release, 31);
}

/* An earlier waiter that is dead: those behind it hand the lock to each other. */
LIFE_TEST(a_split_lock_is_handed_over_only_twice, life_begin_in_line(&life, 3)) {
    for (int yields = 0; yields < 5; yields++) {
        const int kind = yields < 4 ? REDLOCK_HOLDER_EARLIER : REDLOCK_HOLDER_LATER;
        life_vote(&life, 0, G);
        life_queued(&life, 1, LIFE_VIEW(LATER, 9, 60000, 0));
        life_queued(&life, 2, LIFE_VIEW(DIRECT, 7, 60000, 0));
        life_expect_next(&life, 2, 2);
        life_timer(&life);
        assert_is(life.did.did, REDLOCK_GRANTS_LOOKED);
        life_vote(&life, 0, G);
        life_queued(&life, 1, LIFE_VIEW(LATER, 9, 60000, 0));
        life.view.holder = (enum redlock_grants_holder)kind;
        life.view.holder_id += yields < 4;
        life_vote(&life, 2, D);
        assert_is(life.did.did, REDLOCK_GRANTS_YIELDED);
        assert_int_equal(life.did.handing == REDLOCK_HAND_NOBODY, yields >= 2);
    }
    assert_int_equal(life_queue(&life)->yields, 1); /* another had a quorum: it is alive */
}

/* To a node that it handed to nobody, somebody must come back. */
LIFE_TEST(who_handed_it_to_nobody_asks_again, life_begin_in_line(&life, 3)) {
    for (int yields = 0; yields < 3; yields++) {
        life_vote(&life, 0, G);
        life_queued(&life, 1, LIFE_VIEW(LATER, 9, 60000, 0));
        life_queued(&life, 2, LIFE_VIEW(DIRECT, 7, 60000, 0));
        life_expect_next(&life, 2, 2);
        life_timer(&life);
        assert_is(life.did.did, REDLOCK_GRANTS_LOOKED);
        life_vote(&life, 0, G);
        life_answer_queued(&life, 6, LIFE_VIEW(AHEAD, 8, 60000, 1));
        assert_is(life.did.did, REDLOCK_GRANTS_YIELDED);
    }
    assert_is(life.did.handing, REDLOCK_HAND_NOBODY);
    const int64_t yielded_ms = life.at_ms;
    life_queued(&life, 1, LIFE_VIEW(NONE, 0, -2, 1));
    life_answer_queued(&life, 6, LIFE_VIEW(AHEAD, 8, 60000, 1));
    life_expect(&life, QUEUED, NOTHING); /* the writer may be about to take it */
    life_expect_next(&life, 50, 200);
    life_expect(life_timer(&life), QUEUED, WAITS(7, 8, REFRESHED));
    assert_true(life_queue(&life)->takes);
    life_answer_queued(&life, 7, LIFE_VIEW(AHEAD, 8, 60000, 1));
    assert_in_range(life_next_ms(&life) - yielded_ms, R_MS * 9 / 10, R_MS * 12 / 10);
}

LIFE_TEST(with_none_before_it_it_stays_and_looks_again, look(&life)) {
    life_vote(life_at(&life, 23), 0, G);
    life_answer_queued(&life, 6, LIFE_VIEW(LATER, 9, 60000, 0));
    life_expect(life_queued(&life, 3, LIFE_VIEW(DIRECT, 8, 60000, 1)), QUEUED, NOTHING);
    life_expect(life_vote(&life, 4, U), QUEUED, NOTHING);
    life_expect_next(&life, 12, 12);
    life_expect(life_timer(&life), QUEUED, WAITS(31, 3, LOOKED));
}

/* The answers to a look: two others have two nodes each, for so long, and need no more. */
static void answer_look(struct life *life, redlock_nodes granted, int64_t ttl_ms) {
    for (unsigned node = 0; node < 5; node++) {
        if ((granted >> node & 1) != 0) {
            life_vote(life, node, G);
        }
    }
    life_answer_queued(life, 6 & ~granted, LIFE_VIEW(DIRECT, 8, ttl_ms, 0));
    life_expect(life_answer_queued(life, 24 & ~granted, LIFE_VIEW(DIRECT, 7, ttl_ms, 0)), QUEUED, NOTHING);
}

LIFE_TEST(looks_that_change_nothing_come_less_and_less_often, look(&life)) {
    static const int64_t delays_ms[] = {4, 4, 4, 4, 8, 16, 32, 64};
    uint32_t asked = 2;
    for (unsigned i = 0; i < sizeof delays_ms / sizeof *delays_ms; i++) {
        answer_look(&life, 1, 60000);
        life_expect_next(&life, delays_ms[i], delays_ms[i]);
        life_expect(life_timer(&life), QUEUED, WAITS(31, ++asked, LOOKED));
    }
    answer_look(&life, 1, 40); /* their keys end before the next look would come */
    life_expect_next(&life, 42, 42);
    life_expect(life_timer(&life), QUEUED, WAITS(31, ++asked, LOOKED));
    answer_look(&life, 3, 60000); /* one grant more */
    life_expect_next(&life, 4, 4);
}

LIFE_TEST(a_look_does_not_wait_for_a_node_that_is_slower_than_all_others, look(&life)) {
    life_vote(life_at(&life, 23), 0, G);
    life_answer_queued(&life, 2, LIFE_VIEW(DIRECT, 8, 60000, 0));
    life_expect(life_answer_queued(&life, 12, LIFE_VIEW(EARLIER, 7, 60000, 0)), QUEUED, NOTHING);
    life_expect_next(&life, 6, 6);
    life_expect(life_timer(&life), QUEUED, .cleanup = 31, WAITS(31, 3, YIELDED));
}

/* The timer is late, and everything is due at once. */
LIFE_TEST(a_late_timer_asks_once, life_begin_in_line(&life, 3)) {
    life_answer_queued(&life, 3, LIFE_VIEW(STRANGER, 9, 500, 0));
    life_expect(life_timer(life_at(&life, 50000)), QUEUED, WAITS(7, 2, POLLED));
    life_expect_next(&life, 50, R_MS * 11 / 10);
    look(&life);
    life_vote(&life, 0, G);
    life_answer_queued(&life, 6, LIFE_VIEW(LATER, 9, 60000, 0));
    life_expect(life_timer(life_at(&life, 50000)), QUEUED, NOTHING);
    life_expect(life_timer(&life), QUEUED, WAITS(31, 3, LOOKED));
    assert_true(life_next_ms(&life) > life.at_ms);
}

/* Others read there, and a writer who came before us is the first in line. */
LIFE_TEST(to_a_writer_ahead_a_reader_yields_its_nodes, look(&life)) {
    life_vote(&life, 0, G);
    life_answer_queued(&life, 6, LIFE_VIEW(NONE, 0, 60000, 0));
    life_queued(&life, 3, LIFE_VIEW(AHEAD, 8, 60000, 1));
    life_expect(life_vote(&life, 4, U), QUEUED, .cleanup = 31, WAITS(31, 3, YIELDED));
    assert_false(life_queue(&life)->takes);
    assert_false(life_queue(&life)->behind);
    /* It takes nothing while that one waits. */
    life_answer_queued(&life, 31, LIFE_VIEW(AHEAD, 8, 60000, 1));
    life_expect(&life, QUEUED, NOTHING);
    assert_false(life_queue(&life)->behind);
}

/* The yield hands over: nobody has the lock whom it could disturb. */
LIFE_TEST(nobody_is_behind_a_writer_who_waits, look(&life)) {
    const uint32_t passed_over = life_queue(&life)->passed_over;
    life_vote(&life, 0, G);
    life_answer_queued(&life, 30, LIFE_VIEW(AHEAD, 8, 60000, 1));
    life_expect(&life, QUEUED, .cleanup = 31, WAITS(31, 3, YIELDED));
    assert_is(life.did.handing, REDLOCK_HAND_OVER);
    assert_int_equal(life_queue(&life)->passed_over, passed_over);
    /* Nor is anybody behind it who has it at a minority. */
    life_queued(&life, 0, LIFE_VIEW(EARLIER, 8, 60000, 1));
    life_answer_queued(&life, 30, LIFE_VIEW(AHEAD, 8, 60000, 1));
    assert_false(life_queue(&life)->behind);
}

LIFE_TEST(readers_keep_no_reader_out, look(&life)) {
    life_vote(&life, 0, G);
    life_expect(life_answer_queued(&life, 30, LIFE_VIEW(NONE, 0, 60000, 0)), QUEUED, NOTHING);
    life_expect_next(&life, 4, 4);
    life_expect(life_timer(&life), QUEUED, WAITS(31, 3, LOOKED));
}
