/* Fencing tokens of a lease: in one round trip, written back, beaten, too late, given up. */
#include "life.h"

#define WALL_US INT64_C(1795167037123456)
#define CLIENT  7
#define NUMBER  (WALL_US * 1000 + CLIENT) /* the proposal */

static void fenced_within(struct life *life, unsigned n, int64_t wait_timeout_ms) {
    life_init(life, n);
    life->plan.fencing = true;
    life->core.fence.client = CLIENT;
    life->plan.wait_timeout_ms = wait_timeout_ms;
    life->wall_us = WALL_US;
    life_expect(life_begin(life), ACQUIRING, SENDS(ACQUIRE, redlock_nodes_all(n), 1));
    assert_int_equal(life->core.fence.token, NUMBER);
}

static void fenced(struct life *life, unsigned n) {
    fenced_within(life, n, 0);
}

/* Nodes 0 and 1 of three grant it, with counters that are too high. */
static void beaten(struct life *life) {
    life_fenced(life, 0, G, NUMBER + 10);
    life_fenced(life, 1, G, NUMBER + 10);
}

/* Nodes 0 and 1 accept. */
static void accepted(struct life *life) {
    life_fenced(life, 0, G, 0);
    life_fenced(life, 1, G, 0);
}

LIFE_TEST(a_quorum_that_accepts_takes_one_round_trip, fenced(&life, 5)) {
    life_fenced(&life, 0, G, 0);
    life_expect(life_fenced(&life, 4, G, 0), ACQUIRING, NOTHING);
    life_expect(life_fenced(&life, 2, G, 0), HELD, ACQUIRED(OK));
    assert_int_equal(life.core.fence.token, NUMBER);
    assert_false(life.core.fence_written);
    life_expect(life_fenced(&life, 1, G, NUMBER + 5), HELD, NOTHING); /* late: it changes nothing */
    assert_int_equal(life.core.fence.token, NUMBER);
    assert_int_equal(life_held_until_ms(&life), END_MS);
}

LIFE_TEST(a_higher_counter_is_written_back, fenced(&life, 5)) {
    life_fenced(&life, 0, G, 0);
    life_fenced(&life, 1, G, NUMBER + 400000);
    /* The lock is another's there, but its counter counts. */
    life_fenced(&life, 2, D, NUMBER + 9000000);
    life_fenced(life_at(&life, 3), 3, G, 0);
    /* At once, without waiting for a fifth node that might accept (R7); not to the node that
     * denied. */
    life_expect(&life, FENCING, SENDS(FENCE, 27, 2));
    const uint64_t written = life.core.fence.token;
    assert_true(written > NUMBER + 9000000);
    assert_int_equal(written % 1000, CLIENT);
    assert_int_equal(life_held_until_ms(&life), -1);
    assert_int_equal(life_next_ms(&life), END_MS);
    life_expect(life_stale(&life, 4, G, 1), FENCING, NOTHING);
    life.at_ms = 5;
    accepted(&life);
    life_expect(&life, FENCING, NOTHING);
    life_expect(life_fenced(&life, 3, G, 0), HELD, ACQUIRED(OK));
    assert_int_equal(life.core.fence.token, written);
    assert_true(life.core.fence_written);
    /* The ttl counts from the first round (R1). */
    assert_int_equal(life_held_until_ms(&life), END_MS);
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 31, 3));
}

LIFE_TEST(a_beaten_client_writes_a_larger_number, fenced(&life, 3)) {
    beaten(&life);
    life_expect(&life, FENCING, SENDS(FENCE, 7, 2));
    const uint64_t first = life.core.fence.token;
    life_expect(life_fenced(&life, 0, D, first + 77), FENCING, NOTHING);
    life_expect(life_fenced(&life, 1, D, first + 5), FENCING, SENDS(FENCE, 7, 3));
    assert_true(life.core.fence.token > first + 77);
    /* A higher counter says nothing of the key. */
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 3);
    life_fenced(&life, 0, G, 0);
    life_expect(life_fenced(&life, 2, G, 0), HELD, ACQUIRED(OK));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 3);
    life_expect(life_void(&life, 4), HELD, NOTHING);
}

/* A backing node says that it has lost the key. The others may still confirm a number, until any
 * clock jumps: fewer than a quorum back the lock then (docs/protocols.md, "Clock guard"). */
LIFE_TEST(a_jump_ends_an_attempt_that_too_few_nodes_back, fenced(&life, 5)) {
    beaten(&life);
    life_expect(life_fenced(&life, 2, G, NUMBER + 10), FENCING, SENDS(FENCE, 31, 2));
    const uint64_t first = life.core.fence.token;
    life_fenced(&life, 0, D, 0);
    life_fenced(&life, 1, G, 0);
    life_fenced(&life, 2, D, first + 5);
    life_fenced(&life, 3, G, 0);
    life_expect(life_fenced(&life, 4, D, first + 5), FENCING, SENDS(FENCE, 31, 3));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 6);
    life_expect(life_void(&life, 16), ENDED, .cleanup = 31, ACQUIRED(ERR_NO_QUORUM));
}

/* An equal number may be the token of another client. */
LIFE_TEST(an_equal_counter_beats_too, fenced(&life, 5)) {
    beaten(&life);
    life_fenced(&life, 3, D, NUMBER + 10);
    life_expect(life_fenced(&life, 2, G, NUMBER + 10), FENCING, SENDS(FENCE, 23, 2));
    const uint64_t first = life.core.fence.token;
    life_fenced(&life, 0, D, first);
    life_fenced(&life, 1, D, first);
    life_expect(&life, FENCING, SENDS(FENCE, 23, 3)); /* still not where the lock was denied */
    assert_true(life.core.fence.token > first);
}

TEST(a_beaten_client_gives_up_in_time) {
    for (int by_wait = 0; by_wait <= 1; by_wait++) {
        struct life life;
        fenced_within(&life, 3, by_wait ? 1000 : 0);
        beaten(&life);
        const uint64_t first = life.core.fence.token;
        life_fenced(&life, 0, D, first + 77);
        life_fenced(life_at(&life, by_wait ? 1000 : END_MS), 1, D, first + 77);
        life_expect(&life, ENDED, .cleanup = 7, ACQUIRED(ERR_CONTENDED));
    }
}

/* When a clock jumps, only the nodes that granted the lock count, not those that confirmed the
 * token. */
LIFE_TEST(the_nodes_that_granted_the_lock_back_it, fenced(&life, 5)) {
    life_fenced(&life, 0, G, NUMBER + 10);
    life_fenced(&life, 1, G, 0);
    life_fenced(&life, 2, G, 0);
    life_fenced(&life, 4, G, 0);
    life_fenced(&life, 3, G, 0);
    life_expect(life_fenced(&life, 1, G, 0), HELD, ACQUIRED(OK));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
    life_fenced(&life, 0, G, 0);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
}

LIFE_TEST(a_write_back_to_nodes_that_lost_the_lock_is_a_lost_attempt, fenced(&life, 3)) {
    beaten(&life);
    life_fenced(&life, 0, D, 0);
    life_expect(life_vote(&life, 1, D), ENDED, .cleanup = 7, ACQUIRED(ERR_CONTENDED));
}

LIFE_TEST(silent_nodes_leave_no_token, fenced(&life, 3)) {
    beaten(&life);
    life_expect(life_votes(&life, "UU"), ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));
}

LIFE_TEST(no_token_after_the_deadline, fenced(&life, 3)) {
    beaten(&life);
    life_fenced(&life, 0, G, 0);
    life_expect(life_fenced(life_at(&life, END_MS), 1, G, 0), ENDED, .cleanup = 7, ACQUIRED(ERR_TOO_SLOW));

    fenced(&life, 3);
    beaten(&life);
    life_expect(life_timer(life_at(&life, END_MS)), ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));
}

LIFE_TEST(a_cancel_gives_the_attempt_up, fenced(&life, 3)) {
    beaten(&life);
    life_expect(life_cancel(&life, REDLOCK_ERR_CANCELLED), ENDED, .cleanup = 7, ACQUIRED(ERR_CANCELLED));
}

LIFE_TEST(the_next_attempt_proposes_above_what_was_seen, fenced_within(&life, 3, 60000)) {
    life_fenced(&life, 0, D, NUMBER + 5000000);
    life_fenced(&life, 1, D, NUMBER + 4000000);
    assert_is(life.core.state, REDLOCK_LEASE_RETRYING);
    life_expect(life_timer(life_at(&life, 1000)), ACQUIRING, SENDS(ACQUIRE, 7, 2));
    assert_true(life.core.fence.token > NUMBER + 5000000);
    accepted(&life);
    life_expect(&life, HELD, ACQUIRED(OK));
}

/* Whether the token of one attempt was written back does not matter to the next attempt. */
LIFE_TEST(each_attempt_takes_its_own_path, fenced_within(&life, 3, 60000)) {
    beaten(&life);
    life_expect(life_votes(&life, "UU"), RETRYING, .cleanup = 7);
    assert_true(life.core.fence_written);
    life_timer(life_at(&life, 1000));
    accepted(&life);
    life_expect(&life, HELD, ACQUIRED(OK));
    assert_false(life.core.fence_written);
}

/* A lie or an accident: above any clock. */
#define LIE REDLOCK_FENCE_MAX

TEST(a_lie_is_ignored) {
    static const uint64_t lies[] = {LIE, LIE - 1, NUMBER + UINT64_C(1900000000000), UINT64_C(7226582400000000000)};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct life life;
        fenced(&life, 3);
        life_fenced(&life, 1, G, lies[i]);
        life_expect(life_fenced(&life, 0, G, 0), FENCING, SENDS(FENCE, 7, 2));
        assert_int_equal(life.core.fence.token, NUMBER + 1000);
        life_expect(life_fenced(&life, 1, D, lies[i]), FENCING, NOTHING);
        life_fenced(&life, 0, G, 0);
        life_expect(life_fenced(&life, 2, G, 0), HELD, ACQUIRED(OK));
        assert_int_equal(life.core.fence.token, NUMBER + 1000);
    }
}

LIFE_TEST(a_lie_with_a_denial_does_not_raise_the_next_attempt, fenced_within(&life, 3, 60000)) {
    life_fenced(&life, 0, D, LIE);
    life_fenced(&life, 1, D, NUMBER + 5000000);
    assert_is(life.core.state, REDLOCK_LEASE_RETRYING);
    life_expect(life_timer(life_at(&life, 1000)), ACQUIRING, SENDS(ACQUIRE, 7, 2));
    assert_int_equal(life.core.fence.token, NUMBER + 5001000);
}

/* The clock of the client is years behind, or a wrong clock once raised the counters. Without these
 * nodes there is no quorum. */
LIFE_TEST(the_counters_of_most_nodes_are_followed, fenced(&life, 5)) {
    const uint64_t far = NUMBER + UINT64_C(1900000000000000);
    life_fenced(&life, 0, G, LIE);
    life_fenced(&life, 1, G, far);
    /* 2, 3 and 4 may suffice */
    life_expect(life_fenced(&life, 2, G, 0), FENCING, SENDS(FENCE, 31, 2));
    assert_int_equal(life.core.fence.token, NUMBER + 1000);
    life_fenced(&life, 2, G, 0);
    life_fenced(&life, 0, D, LIE);
    life_expect(life_fenced(&life, 1, D, far), FENCING, NOTHING);
    life_fenced(&life, 3, D, far + 2000);
    /* They do not: the lowest of the other counters, not the lie. */
    life_expect(&life, FENCING, SENDS(FENCE, 31, 3));
    assert_int_equal(life.core.fence.token, far + 1000);
    life_fenced(&life, 1, G, 0);
    life_fenced(&life, 2, G, 0);
    life_fenced(&life, 0, D, LIE);
    life_expect(life_fenced(&life, 3, D, far + 2000), FENCING, NOTHING);
    life_expect(life_fenced(&life, 4, D, far + 2000), FENCING, SENDS(FENCE, 31, 4));
    assert_int_equal(life.core.fence.token, far + 3000);
    life_fenced(&life, 4, G, 0);
    life_fenced(&life, 3, G, 0);
    life_expect(life_fenced(&life, 1, G, 0), HELD, ACQUIRED(OK));
}

/* If the other nodes fail at the number that follows the lie, the lie only ends the attempt. */
LIFE_TEST(a_lie_that_nobody_follows_ends_the_attempt, fenced(&life, 3)) {
    life_fenced(&life, 0, G, LIE - 5000);
    life_vote(&life, 2, F);
    life_expect(life_fenced(&life, 1, G, 0), FENCING, SENDS(FENCE, 3, 2));
    assert_true(life.core.fence.token > LIE - 5000);
    life_expect(life_vote(&life, 1, F), ENDED, .cleanup = 3, ACQUIRED(ERR_NO_QUORUM));
}

LIFE_TEST(the_last_number_is_followed_by_an_error, fenced_within(&life, 3, 60000)) {
    life_fenced(&life, 0, G, LIE);
    life_fenced(&life, 1, G, LIE);
    /* No number is above that, and one more node is no quorum. */
    life_expect(&life, RETRYING, .cleanup = 7);
    life_expect(life_timer(life_at(&life, 60000)), ENDED, ACQUIRED(ERR_LIMIT));
}

LIFE_TEST(a_renewal_is_timed_from_the_first_round, life_init(&life, 3)) {
    life.plan.fencing = life.plan.auto_extend = true;
    life.wall_us = WALL_US;
    life_begin(&life);
    life.at_ms = 8000;
    beaten(&life);
    life.at_ms = 8001;
    accepted(&life);
    life_expect(&life, HELD, ACQUIRED(OK));
    /* Long due, and not only a third of the ttl after 8000. */
    assert_true(life_next_ms(&life) <= 3334);
    life_expect(life_timer(&life), EXTENDING, SENDS(EXTEND, 7, 3));
}

LIFE_TEST(a_jump_may_lose_the_lock_before_the_token, fenced(&life, 5)) {
    life_fenced(&life, 0, G, NUMBER + 10);
    life_fenced(&life, 1, G, 0);
    life_expect(life_fenced(&life, 2, G, 0), FENCING, SENDS(FENCE, 31, 2));
    life_expect(life_void(&life, 8), FENCING, NOTHING);
    life_expect(life_void(&life, 2), ENDED, .cleanup = 31, ACQUIRED(ERR_NO_QUORUM));
}

/* The end of this hundredth of a second. */
#define READ (UINT64_C(1795167037129999) * 1000 + 999)

static void reads(struct life *life, unsigned n) {
    life_init(life, n);
    life->plan.fencing = life->core.shared = true;
    life->core.fence.client = CLIENT;
    life->core.fence.reads = true;
    life->wall_us = WALL_US;
    life_expect(life_begin(life), ACQUIRING, SENDS(ACQUIRE, redlock_nodes_all(n), 1));
}

LIFE_TEST(a_reader_takes_what_a_quorum_told, reads(&life, 5)) {
    life_fenced(&life, 0, G, READ - 5000);
    life_fenced(&life, 1, G, READ - 1000);
    life_fenced(&life, 2, D, READ - 1000); /* not there: it has no entry */
    life_fenced(&life, 4, G, READ - 1000);
    life_expect(&life, FENCING, SENDS(FENCE, 27, 2));
    reads(&life, 5);
    life_fenced(&life, 1, G, READ - 1000);
    life_fenced(&life, 2, G, READ - 1000);
    life_expect(life_fenced(&life, 4, G, READ - 1000), HELD, ACQUIRED(OK));
    assert_int_equal(life.core.fence.token, READ - 1000);
    assert_false(life.core.fence_written);
}

LIFE_TEST(a_reader_writes_the_largest_back_and_takes_what_it_meets, reads(&life, 3)) {
    life_fenced(&life, 0, G, READ - 5000);
    life_fenced(&life, 1, G, READ - 1000);
    life_expect(&life, FENCING, SENDS(FENCE, 7, 2));
    assert_int_equal(life.core.fence.token, READ - 1000);
    life_fenced(&life, 0, D, READ + 7000);
    life_fenced(&life, 1, D, READ + 7000);
    life_expect(&life, FENCING, SENDS(FENCE, 7, 3));
    assert_int_equal(life.core.fence.token, READ + 7000);
    life_fenced(&life, 0, G, 0);
    life_expect(life_fenced(&life, 1, G, 0), HELD, ACQUIRED(OK));
    assert_true(life.core.fence_written);
}

LIFE_TEST(where_nobody_ever_wrote_a_readers_number_is_the_clocks, reads(&life, 3)) {
    life_fenced(&life, 0, G, 0);
    life_fenced(&life, 1, G, 0);
    life_expect(&life, FENCING, SENDS(FENCE, 7, 2));
    assert_int_equal(life.core.fence.token, READ);
}
