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
    life_votes(life, "GGG");
    life_expect(life, HELD, ACQUIRED(OK));
}

/* Nothing at 1 ms before, `expiring` at the time itself, and nothing after it. */
static void expect_told_at(struct life *life, int64_t at_ms) {
    life->at_ms = at_ms - 1;
    life_timer(life);
    life_expect(life, HELD, NOTHING);
    assert_int_equal(life_next_ms(life), at_ms);
    life->at_ms = at_ms;
    life_timer(life);
    life_expect(life, HELD, .expiring = true);
    life_timer(life);
    life_expect(life, HELD, NOTHING);
}

static void expect_lost_at(struct life *life, int64_t at_ms) {
    assert_int_equal(life_next_ms(life), at_ms);
    life->at_ms = at_ms;
    life_timer(life);
    life_expect(life, LOST, .cleanup = 31, .lost = true);
    assert_int_equal(life_next_ms(life), -1);
}

TEST(it_is_told_once_before_the_deadline) {
    struct life life;
    held(&life, false);
    expect_told_at(&life, TOLD_MS);
    expect_lost_at(&life, END_MS);
}

TEST(without_the_option_nothing_is_told) {
    struct life life;
    life_held(&life, false);
    for (life.at_ms = 0; life.at_ms < END_MS; life.at_ms += 50) {
        life_timer(&life);
        life_expect(&life, HELD, NOTHING);
        assert_int_equal(life_next_ms(&life), END_MS);
    }
}

TEST(each_deadline_is_told_of) {
    struct life life;
    held(&life, false);
    expect_told_at(&life, TOLD_MS);
    for (uint32_t round = 2; round < 5; round++) {
        const int64_t start_ms = life.at_ms;
        life_extend(&life, TTL_MS);
        life_votes(&life, "GGG");
        life_expect(&life, HELD, EXTENDED(OK));
        expect_told_at(&life, start_ms + TOLD_MS);
    }
    expect_lost_at(&life, life.at_ms + EXPIRING_MS);
}

TEST(an_extension_in_time_leaves_nothing_to_tell) {
    struct life life;
    held(&life, true);
    for (uint32_t round = 2; round < 9; round++) {
        life.at_ms = life_next_ms(&life) + 1;
        life_timer(&life);
        life_expect(&life, EXTENDING, SENDS(EXTEND, 31, round));
        life_votes(&life, "GGG");
        life_expect(&life, HELD, NOTHING);
    }
}

/* A quorum of it comes too late, or not at all: nothing is known of a new deadline until then. */
TEST(it_is_told_while_an_extension_is_under_way) {
    struct life life;
    held(&life, false);
    life.at_ms = TOLD_MS - 10;
    life_extend(&life, TTL_MS);
    life_expect(&life, EXTENDING, SENDS(EXTEND, 31, 2));
    assert_int_equal(life_next_ms(&life), TOLD_MS);
    life.at_ms = TOLD_MS;
    life_timer(&life);
    life_expect(&life, EXTENDING, .expiring = true);
    assert_int_equal(life_next_ms(&life), END_MS);
    life_timer(&life);
    life_expect(&life, EXTENDING, NOTHING);
    life_votes(&life, "GGG"); /* and yet it succeeds */
    life_expect(&life, HELD, EXTENDED(OK));
    expect_told_at(&life, TOLD_MS - 10 + TOLD_MS);
}

TEST(a_round_that_fails_tells_nothing_new) {
    struct life life;
    held(&life, false);
    expect_told_at(&life, TOLD_MS);
    life_extend(&life, TTL_MS);
    life_votes(&life, "FFF");
    life_expect(&life, HELD, EXTENDED(ERR_NO_QUORUM));
    life_timer(&life);
    life_expect(&life, HELD, NOTHING);
    expect_lost_at(&life, END_MS);
}

/* R12: a round that is won, and yet leaves the deadline where it was. */
TEST(a_deadline_that_stands_is_not_told_of_again) {
    struct life life;
    held(&life, false);
    life_extend(&life, 60000);
    life_votes(&life, "GGG");
    expect_told_at(&life, 60000 - 602 - EXPIRING_MS);
    life.at_ms -= 1000; /* so the shorter round ends before that deadline */
    life_extend(&life, 2000);
    life_votes(&life, "GGG");
    life_expect(&life, HELD, EXTENDED(OK));
    assert_int_equal(life_next_ms(&life), 60000 - 602);
    life.at_ms += 1000;
    life_timer(&life);
    life_expect(&life, HELD, NOTHING);
    expect_lost_at(&life, 60000 - 602);
}

/* A deadline that comes nearer is a new one, too. */
TEST(a_deadline_that_moves_back_is_told_of) {
    struct life life;
    held(&life, false);
    life_extend(&life, 60000);
    life_votes(&life, "GGG");
    life.at_ms = 1000;
    life_extend(&life, TTL_MS);
    life_votes(&life, "..GGG");
    assert_int_equal(life_held_until_ms(&life), 60000 - 602);
    life_vote(&life, 0, D);
    assert_true(life.did.deadline_moved);
    assert_int_equal(life_held_until_ms(&life), 1000 + END_MS);
    expect_told_at(&life, 1000 + TOLD_MS);
}

/* The timer renews and tells in one step. */
TEST(a_renewal_begins_in_the_same_step) {
    struct life life;
    held(&life, true);
    life.at_ms = TOLD_MS;
    life_timer(&life);
    life_expect(&life, EXTENDING, SENDS(EXTEND, 31, 2), .expiring = true);
}

TEST(the_deadline_comes_first) {
    struct life life;
    held(&life, false);
    life.at_ms = END_MS;
    life_timer(&life);
    life_expect(&life, LOST, .cleanup = 31, .lost = true);
    held(&life, false);
    life_extend(&life, TTL_MS);
    life.at_ms = END_MS;
    life_timer(&life);
    life_expect(&life, LOST, .cleanup = 31, .lost = true, EXTENDED(ERR_LOST));
}

/* The quorum came late: less of the lease is left than the time at which it is told of. */
TEST(a_lease_that_begins_short_is_told_of_at_once) {
    struct life life;
    begins(&life, false);
    life.at_ms = TOLD_MS + 1000;
    life_votes(&life, "GGG");
    life_expect(&life, HELD, ACQUIRED(OK));
    assert_true(life_next_ms(&life) <= life.at_ms);
    life_timer(&life);
    life_expect(&life, HELD, .expiring = true);
    assert_int_equal(life_next_ms(&life), END_MS);
}

TEST(nothing_is_told_before_it_is_held_or_after_its_end) {
    struct life life;
    begins(&life, false);
    life.at_ms = TOLD_MS;
    life_timer(&life);
    life_expect(&life, ACQUIRING, NOTHING);
    held(&life, false);
    life_release(&life);
    life_expect(&life, RELEASING, SENDS(RELEASE, 31, 2));
    life.at_ms = TOLD_MS;
    life_timer(&life);
    life_expect(&life, RELEASING, NOTHING);
    held(&life, false);
    life.at_ms = 0;
    life_extend(&life, TTL_MS);
    life_votes(&life, "DDD");
    life_expect(&life, LOST, .cleanup = 31, .lost = true, .lost_by_votes = true, EXTENDED(ERR_LOST));
    life.at_ms = TOLD_MS;
    life_timer(&life);
    life_expect(&life, LOST, NOTHING);
}

/* Its first extension has a deadline of its own, which is none of a lease that is held. */
TEST(an_adopted_lease_has_its_first_deadline_to_be_told_of) {
    struct life life;
    life_init(&life, 5);
    life.plan.expiring_ms = EXPIRING_MS;
    life_adopt(&life);
    assert_int_equal(life_next_ms(&life), -1);
    life_extend(&life, TTL_MS);
    assert_int_equal(life_next_ms(&life), END_MS);
    life.at_ms = TOLD_MS;
    life_timer(&life);
    life_expect(&life, EXTENDING, NOTHING);
    life_votes(&life, "GGG");
    life_expect(&life, HELD, EXTENDED(OK));
    life_timer(&life);
    life_expect(&life, HELD, .expiring = true);
    expect_lost_at(&life, END_MS);
}
