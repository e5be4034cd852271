/* The row of `expiring` in core/lease_state.h: the owner is told once for each deadline that it is
 * near, whatever else goes on. */
#include "life.h"

#define EXPIRING_MS 4000
#define TOLD_MS     (END_MS - EXPIRING_MS)

static void begins(struct life *life, bool auto_extend) {
    life_init(life, 5);
    life->plan.auto_extend = auto_extend;
    life->plan.expiring_ms = EXPIRING_MS;
    life_begin(life);
}

static void held(struct life *life, bool auto_extend) {
    begins(life, auto_extend);
    life_expect(life_votes(life, "GGG"), HELD, ACQUIRED(OK));
}

/* Nothing at 1 ms before, `expiring` at the time itself, and nothing after it. */
static void expect_told_at(struct life *life, int64_t at_ms) {
    life_expect(life_timer(life_at(life, at_ms - 1)), HELD, NOTHING);
    assert_int_equal(life_next_ms(life), at_ms);
    life_expect(life_timer(life_at(life, at_ms)), HELD, .expiring = true);
    life_expect(life_timer(life), HELD, NOTHING);
}

static void expect_lost_at(struct life *life, int64_t at_ms) {
    assert_int_equal(life_next_ms(life), at_ms);
    life_expect(life_timer(life_at(life, at_ms)), LOST, .cleanup = 31, .lost = true);
    assert_int_equal(life_next_ms(life), -1);
}

LIFE_TEST(it_is_told_once_before_the_deadline, held(&life, false)) {
    expect_told_at(&life, TOLD_MS);
    expect_lost_at(&life, END_MS);
}

LIFE_TEST(without_the_option_nothing_is_told, life_held(&life, false)) {
    for (life.at_ms = 0; life.at_ms < END_MS; life.at_ms += 50) {
        life_expect(life_timer(&life), HELD, NOTHING);
        assert_int_equal(life_next_ms(&life), END_MS);
    }
}

LIFE_TEST(each_deadline_is_told_of, held(&life, false)) {
    expect_told_at(&life, TOLD_MS);
    for (uint32_t round = 2; round < 5; round++) {
        const int64_t start_ms = life.at_ms;
        life_extend(&life, TTL_MS);
        life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK));
        expect_told_at(&life, start_ms + TOLD_MS);
    }
    expect_lost_at(&life, life.at_ms + EXPIRING_MS);
}

LIFE_TEST(an_extension_in_time_leaves_nothing_to_tell, held(&life, true)) {
    for (uint32_t round = 2; round < 9; round++) {
        life_expect(life_timer(life_at(&life, life_next_ms(&life) + 1)), EXTENDING, SENDS(EXTEND, 31, round));
        life_expect(life_votes(&life, "GGG"), HELD, NOTHING);
    }
}

/* A quorum of it comes too late, or not at all: nothing is known of a new deadline until then. */
LIFE_TEST(it_is_told_while_an_extension_is_under_way, held(&life, false)) {
    life_expect(life_extend(life_at(&life, TOLD_MS - 10), TTL_MS), EXTENDING, SENDS(EXTEND, 31, 2));
    assert_int_equal(life_next_ms(&life), TOLD_MS);
    life_expect(life_timer(life_at(&life, TOLD_MS)), EXTENDING, .expiring = true);
    assert_int_equal(life_next_ms(&life), END_MS);
    life_expect(life_timer(&life), EXTENDING, NOTHING);
    life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK)); /* and yet it succeeds */
    expect_told_at(&life, TOLD_MS - 10 + TOLD_MS);
}

LIFE_TEST(a_round_that_fails_tells_nothing_new, held(&life, false)) {
    expect_told_at(&life, TOLD_MS);
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "FFF"), HELD, EXTENDED(ERR_NO_QUORUM));
    life_expect(life_timer(&life), HELD, NOTHING);
    expect_lost_at(&life, END_MS);
}

/* R12: a round that is won, and yet leaves the deadline where it was. */
LIFE_TEST(a_deadline_that_stands_is_not_told_of_again, held(&life, false)) {
    life_extend(&life, 60000);
    life_votes(&life, "GGG");
    expect_told_at(&life, 60000 - 602 - EXPIRING_MS);
    life.at_ms -= 1000; /* so the shorter round ends before that deadline */
    life_extend(&life, 2000);
    life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK));
    assert_int_equal(life_next_ms(&life), 60000 - 602);
    life.at_ms += 1000;
    life_expect(life_timer(&life), HELD, NOTHING);
    expect_lost_at(&life, 60000 - 602);
}

/* A deadline that comes nearer is a new one, too. */
LIFE_TEST(a_deadline_that_moves_back_is_told_of, held(&life, false)) {
    life_extend(&life, 60000);
    life_votes(&life, "GGG");
    life_extend(life_at(&life, 1000), TTL_MS);
    life_votes(&life, "..GGG");
    assert_int_equal(life_held_until_ms(&life), 60000 - 602);
    life_vote(&life, 0, D);
    assert_true(life.did.deadline_moved);
    assert_int_equal(life_held_until_ms(&life), 1000 + END_MS);
    expect_told_at(&life, 1000 + TOLD_MS);
}

/* The timer renews and tells in one step. */
LIFE_TEST(a_renewal_begins_in_the_same_step, held(&life, true)) {
    life_expect(life_timer(life_at(&life, TOLD_MS)), EXTENDING, SENDS(EXTEND, 31, 2), .expiring = true);
}

LIFE_TEST(the_deadline_comes_first, held(&life, false)) {
    life_expect(life_timer(life_at(&life, END_MS)), LOST, .cleanup = 31, .lost = true);
    held(&life, false);
    life_extend(&life, TTL_MS);
    life_expect(life_timer(life_at(&life, END_MS)), LOST, .cleanup = 31, .lost = true, EXTENDED(ERR_LOST));
}

/* The quorum came late: less of the lease is left than the time at which it is told of. */
LIFE_TEST(a_lease_that_begins_short_is_told_of_at_once, begins(&life, false)) {
    life_expect(life_votes(life_at(&life, TOLD_MS + 1000), "GGG"), HELD, ACQUIRED(OK));
    assert_true(life_next_ms(&life) <= life.at_ms);
    life_expect(life_timer(&life), HELD, .expiring = true);
    assert_int_equal(life_next_ms(&life), END_MS);
}

LIFE_TEST(nothing_is_told_before_it_is_held_or_after_its_end, begins(&life, false)) {
    life_expect(life_timer(life_at(&life, TOLD_MS)), ACQUIRING, NOTHING);
    held(&life, false);
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 31, 2));
    life_expect(life_timer(life_at(&life, TOLD_MS)), RELEASING, NOTHING);
    held(&life, false);
    life_extend(life_at(&life, 0), TTL_MS);
    life_expect(life_votes(&life, "DDD"), LOST, .cleanup = 31, .lost = true, .lost_by_votes = true, EXTENDED(ERR_LOST));
    life_expect(life_timer(life_at(&life, TOLD_MS)), LOST, NOTHING);
}

/* Its first extension has a deadline of its own, which is none of a lease that is held. */
LIFE_TEST(an_adopted_lease_has_its_first_deadline_to_be_told_of, life_init(&life, 5)) {
    life.plan.expiring_ms = EXPIRING_MS;
    life_adopt(&life);
    assert_int_equal(life_next_ms(&life), -1);
    life_extend(&life, TTL_MS);
    assert_int_equal(life_next_ms(&life), END_MS);
    life_expect(life_timer(life_at(&life, TOLD_MS)), EXTENDING, NOTHING);
    life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK));
    life_expect(life_timer(&life), HELD, .expiring = true);
    expect_lost_at(&life, END_MS);
}
