/* A quorum of grants makes a lease: from when it counts, its fencing token, and what comes late. */
#include "life.h"

static const struct redlock_grants_view later = {.holder = REDLOCK_HOLDER_LATER, .holder_id = 9, .pttl_ms = 60000};

/* QUEUED on n nodes; `waits` WAITs, sent at 0, 1000, 2000, … ms, and no answers. */
static void queued(struct life *life, unsigned n, unsigned waits, bool heals, bool auto_extend) {
    life_init(life, n);
    life_may_queue(life);
    life->plan.heal = heals;
    life->plan.auto_extend = auto_extend;
    life->in_line = true;
    life_begin(life);
    for (unsigned i = 1; i < waits; i++) {
        life->at_ms = i * 1000;
        life->core.next_try_ns = life_queue(life)->refresh_ns = T0 + life->at_ms * MS;
        life_expect(life_timer(life), QUEUED, WAITS(redlock_nodes_all(n), i + 1, REFRESHED));
    }
}

/* The lease of queued(5, 3), granted by push: nodes 0 to 2 for the WAIT of 1000 ms. */
static void held(struct life *life) {
    queued(life, 5, 3, false, false);
    life_push(life, 0, 2);
    life_expect(life_push(life, 1, 2), QUEUED, NOTHING);
    life_expect(life_push(life, 2, 2), HELD, ACQUIRED(OK));
    assert_int_equal(life_held_until_ms(life), 1000 + END_MS);
    assert_int_equal(redlock_lease_backing_nodes(&life->core), 7);
}

/* R1: not from the arrival of the pushes. */
LIFE_TEST(a_lease_counts_from_the_wait_that_was_granted, held(&life)) {
    assert_int_equal(life.core.keys.to_release, 31);
    queued(&life, 5, 4, false, false);
    life_push(&life, 0, 1);
    life_push(&life, 1, 3);
    life_expect(life_vote(&life, 2, G), HELD, ACQUIRED(OK)); /* by the answer to the fourth */
    assert_int_equal(life_held_until_ms(&life), END_MS);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
}

LIFE_TEST(an_answer_queued_takes_an_older_grant_away, queued(&life, 3, 2, false, false)) {
    life_push(&life, 0, 1);
    life_queued(&life, 0, later);
    life_push(&life, 0, 1); /* stale */
    life_expect(life_push(&life, 1, 1), QUEUED, NOTHING);
    assert_int_equal(life_queue(&life)->granted, 2);
    life_expect(life_push(&life, 0, 2), HELD, ACQUIRED(OK));
    assert_int_equal(life_held_until_ms(&life), END_MS);
}

LIFE_TEST(a_quorum_that_comes_too_late_is_given_up, queued(&life, 3, 2, false, false)) {
    life_push(&life, 0, 1);
    life_push(&life, 2, 0); /* no WAIT */
    life_expect(life_push(life_at(&life, END_MS), 1, 2), QUEUED, .cleanup = 7, WAITS(7, 3, ENTERED));
    assert_true(life_queue(&life)->takes);
    assert_int_equal(life_queue(&life)->granted, 0);
    life_push(&life, 0, 2); /* of the old token */
    life_expect(life_push(&life, 1, 2), QUEUED, NOTHING);
    life_expect(life_votes(&life, "GG"), HELD, ACQUIRED(OK));
    assert_int_equal(life_held_until_ms(&life), END_MS + END_MS);
}

LIFE_TEST(a_void_grant_counts_no_more, queued(&life, 3, 2, false, false)) {
    life_push(&life, 0, 1);
    life_void(&life, 1);
    life_vote(&life, 0, G); /* to a WAIT that was sent before the jump */
    life_expect(life_push(&life, 1, 1), QUEUED, NOTHING);
    assert_int_equal(life_queue(&life)->fresh, 0);
    life_expect(life_vote(&life, 2, G), HELD, ACQUIRED(OK));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 6);
}

TEST(a_lease_with_little_left_is_extended_at_once) {
    static const int64_t short_ms = END_MS - END_MS / 4 * 3; /* since the WAIT */
    for (int auto_extend = 0; auto_extend <= 1; auto_extend++) {
        for (int64_t over_ms = 0; over_ms <= 20; over_ms += 20) {
            struct life life;
            queued(&life, 3, 1, false, auto_extend);
            life_push(life_at(&life, short_ms - 10 + over_ms), 0, 1);
            life_expect(life_push(&life, 1, 1), HELD, ACQUIRED(OK));
            if (over_ms == 0) {
                assert_true(life_next_ms(&life) > life.at_ms);
                continue;
            }
            assert_int_equal(life_next_ms(&life), life.at_ms);
            life_expect(life_timer(&life), EXTENDING, SENDS(EXTEND, 7, 2));
            life_expect(life_votes(&life, "GG"), HELD, NOTHING);
            assert_int_equal(life_held_until_ms(&life), life.at_ms + END_MS);
            assert_true(life_next_ms(&life) > life.at_ms); /* once */
        }
    }
}

LIFE_TEST(an_extension_at_once_that_fails_is_not_repeated, queued(&life, 3, 1, false, false)) {
    life_push(life_at(&life, 5000), 0, 1);
    life_push(&life, 1, 1);
    life_timer(&life);
    life_expect(life_votes(&life, "UU"), HELD, NOTHING);
    assert_int_equal(life_next_ms(&life), END_MS);
}

/* Grants that are under way need no HEAL. */
LIFE_TEST(a_lease_of_old_grants_is_not_healed_at_once, queued(&life, 3, 1, true, false)) {
    assert_true(redlock_lease_next_ns(&life.core) > T0);
    life_push(life_at(&life, 2000), 0, 1);
    life_push(&life, 1, 1);
    assert_int_equal(life_next_ms(&life), 2000 + TTL_MS / 10);
    life_expect(life_timer(life_at(&life, life_next_ms(&life))), HELD, .heal = 4);
}

LIFE_TEST(a_late_grant_backs_the_lease_if_its_key_lives_as_long, held(&life)) {
    life_expect(life_push(&life, 3, 1), HELD, NOTHING);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
    life_push(&life, 3, 3);
    life_expect(life_vote(&life, 4, G), HELD, NOTHING);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 31);
    held(&life);
    life_queued(&life, 3, later); /* to the WAIT of 2000 ms */
    life_push(&life, 3, 2);       /* stale */
    life_expect(life_vote(&life, 4, U), HELD, NOTHING);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
}

/* A place that was given up had another token: nothing that a node grants to it backs this one. */
LIFE_TEST(a_late_grant_of_an_old_token_backs_nothing, queued(&life, 5, 1, false, false)) {
    life.plan.retry_delay_min_ms = life.plan.retry_delay_max_ms = 0; /* so its bound is as late */
    life.core.plan = life.plan;
    life.in_line = false;
    life_expect(life_poll(&life), RETRYING, .cleanup = 31);
    life_expect(life_timer(&life), ACQUIRING, SENDS(ACQUIRE, 31, 2));
    life_expect(life_votes(&life, "GGG"), HELD, ACQUIRED(OK));
    life_expect(life_push(&life, 3, 1), HELD, NOTHING);
    assert_int_equal(life_queue(&life)->granted, 0);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
}

LIFE_TEST(nodes_that_refuse_a_wait_back_nothing, held(&life)) {
    life_expect(life_refuse(&life, 24), HELD, NOTHING);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
    assert_int_equal(life.core.keys.to_release, 31); /* earlier WAITs went there */
}

LIFE_TEST(a_push_from_before_a_jump_backs_nothing, held(&life)) {
    life_expect(life_void(&life, 8), HELD, NOTHING);
    life_push(&life, 3, 3);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
    life_push(&life, 4, 3);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 23);
    life_expect(life_void(&life, 1), HELD, NOTHING);
    life_expect(life_void(&life, 2), LOST, .cleanup = 31, LOST_BY_CLOCK);
}

/* What lives as long as the deadline is a matter of the WAIT's ttl, not of the EXTEND's. */
LIFE_TEST(an_extension_does_not_lengthen_a_late_grant, held(&life)) {
    life_expect(life_extend(&life, 10 * TTL_MS), EXTENDING, SENDS(EXTEND, 31, 4));
    life_push(&life, 3, 1); /* its key may end at 10000 ms, before the deadline that stands */
    life_expect(&life, EXTENDING, NOTHING);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
    life_push(&life, 3, 3);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 15);
    life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK));
    life_expect(life_push(&life, 4, 3), HELD, NOTHING);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
}

LIFE_TEST(a_late_grant_makes_a_node_a_keeper_again, held(&life)) {
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "D..D"), EXTENDING, NOTHING);
    life_push(&life, 3, 3);
    /* nodes 1, 2 and 3 may have it */
    life_expect(life_vote(&life, 4, D), HELD, EXTENDED(ERR_NO_QUORUM));
    life_expect(life_vote(&life, 1, D), LOST, .cleanup = 31, .lost = true, .lost_by_votes = true);
}

/* The key has ended there: the node had restarted, say. */
LIFE_TEST(queued_after_a_grant_says_that_the_key_is_gone, held(&life)) {
    life_expect(life_queued(&life, 0, later), HELD, NOTHING);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 6);
    life_queued(&life, 1, later);
    life_expect(life_push(&life, 1, 3), HELD, NOTHING);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 6);
    queued(&life, 3, 3, false, false);
    life_push(&life, 0, 1);
    life_push(&life, 1, 1);
    life_expect(life_queued(&life, 0, later), HELD, NOTHING);
    life_expect(life_queued(&life, 1, later), LOST, .cleanup = 7, .lost = true, .lost_by_votes = true);
}

LIFE_TEST(a_late_vote_after_the_deadline_ends_the_lease, held(&life)) {
    life_expect(life_vote(life_at(&life, 1000 + END_MS), 3, G), LOST, .cleanup = 31, .lost = true);
    life_expect(life_push(&life, 4, 3), LOST, NOTHING);
}

LIFE_TEST(with_a_lock_delay_the_keys_stay, life_init(&life, 1)) {
    life_may_queue(&life);
    life.plan.lock_delay_ms = 500;
    life.in_line = true;
    life_begin(&life);
    assert_int_equal(redlock_lease_key_ttl_ms(&life.core), TTL_MS + 500);
    life_expect(life_vote(&life, 0, G), HELD, ACQUIRED(OK));
    assert_int_equal(life_held_until_ms(&life), END_MS);
    life_expect(life_timer(life_at(&life, END_MS)), LOST, .lost = true);
}

LIFE_TEST(a_release_goes_wherever_it_has_a_key_or_a_place, held(&life)) {
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 31, 4));
    life_expect(life_push(&life, 4, 3), RELEASING, NOTHING);
    life_expect(life_votes(&life, "GGG"), ENDED, RELEASED(OK));
}

/* A quorum of grants, and the proposal is being written to these nodes. */
static void fencing(struct life *life) {
    life_init(life, 5);
    life_may_queue(life);
    life->wall_us = 1000000;
    life->plan.fencing = true;
    life->plan.heal = true;
    life->in_line = true;
    life_begin(life);
    life->in_line = false;
    life_vote(life, 0, G);
    life_push(life, 2, 1);
    life_expect(life_push(life_at(life, 3000), 3, 1), FENCING, SENDS(FENCE, 13, 2));
}

LIFE_TEST(a_granted_lease_writes_its_fencing_token, fencing(&life)) {
    life_expect(life_push(&life, 4, 1), FENCING, NOTHING);
    life_fenced(&life, 0, G, 0);
    life_fenced(&life, 2, G, 0);
    life_expect(life_fenced(&life, 3, G, 0), HELD, ACQUIRED(OK));
    assert_true(life.core.fence_written);
    assert_int_equal(life_held_until_ms(&life), END_MS);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 29);
    assert_int_equal(life_next_ms(&life), 3000); /* little is left: it extends */
}

/* Without a number it would only spin in the queue. */
static void expect_later(struct life *life) {
    life_expect(life, RETRYING, .cleanup = 31);
    assert_in_range(life_next_ms(life) - life->at_ms, 50, 200);
    life_push(life, 4, 1);
    life_expect(life_listen(life), RETRYING, NOTHING);
    life->at_ms += 201;
    life_timer(life);
}

LIFE_TEST(a_higher_counter_makes_it_write_again, fencing(&life)) {
    const uint64_t token = life.core.fence.token;
    life_expect(life_fenced(&life, 0, D, token + 5000), FENCING, SENDS(FENCE, 13, 3));
    assert_true(life.core.fence.token > token + 5000);
    life_fenced(&life, 0, U, 0);
    expect_later(&life);
    life_expect(&life, ACQUIRING, SENDS(ACQUIRE, 31, 4));
    life_expect(life_votes(&life, "DDD"), QUEUED, .cleanup = 31, WAITS(31, 5, ENTERED));
    life_push(&life, 0, 1); /* of an older token */
    life_expect(life_votes(&life, "GGG"), FENCING, SENDS(FENCE, 7, 6));
    assert_true(life.core.fence.token > token + 5000);
}

LIFE_TEST(a_jump_or_the_deadline_makes_it_try_again, fencing(&life)) {
    life_void(&life, 1);
    expect_later(&life);
    fencing(&life);
    life_push(&life, 4, 1);
    life_expect(life_void(&life, 1), FENCING, NOTHING);
    assert_int_equal(life_next_ms(&life), END_MS);
    life_timer(life_at(&life, END_MS));
    expect_later(&life);
}
