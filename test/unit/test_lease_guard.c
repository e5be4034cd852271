/* A lease on nodes that may not vote, whose clocks jump, or that lack its key: abstentions, void
 * votes, healing, lock delay. */
#include "life.h"

LIFE_TEST(nodes_that_may_not_vote_are_not_asked, life_init(&life, 5)) {
    life.may_not_vote = 9;
    life_expect(life_begin(&life), ACQUIRING, SENDS(ACQUIRE, 22, 1));
    assert_int_equal(life.core.votes.asked, 22);
    life_expect(life_votes(&life, ".GG.F"), ENDED, .cleanup = 6, ACQUIRED(ERR_NO_QUORUM));
}

LIFE_TEST(without_a_quorum_of_voters_nothing_is_sent, life_init(&life, 5)) {
    life.may_not_vote = 7;
    life_expect(life_begin(&life), ENDED, SENDS(ACQUIRE, 0, 1), ACQUIRED(ERR_NO_QUORUM));

    life_init(&life, 5);
    life.may_not_vote = 7;
    life.plan.wait_timeout_ms = 5000;
    life_expect(life_begin(&life), RETRYING, SENDS(ACQUIRE, 0, 1));
    life.at_ms = 1000;
    life.may_not_vote = 3; /* one of them may vote by now */
    life_expect(life_timer(&life), ACQUIRING, SENDS(ACQUIRE, 28, 2));
    life_expect(life_votes(&life, "..GGG"), HELD, ACQUIRED(OK));
    /* every node may confirm that */
    life_expect(life_extend(&life, TTL_MS), EXTENDING, SENDS(EXTEND, 31, 3));
}

LIFE_TEST(a_parked_acquire_can_be_cancelled, life_init(&life, 5)) {
    life_park(&life, 50);
    life_expect(life_cancel(&life, REDLOCK_ERR_CANCELLED), ENDED, ACQUIRED(ERR_CANCELLED));
}

LIFE_TEST(a_jump_voids_a_vote_of_the_attempt, life_start(&life, 5)) {
    life_votes(&life, "GG");
    life_expect(life_void(&life, 2), ACQUIRING, NOTHING); /* of node 1 */
    life_expect(life_vote(&life, 2, G), ACQUIRING, NOTHING);
    life_expect(life_vote(&life, 3, G), HELD, ACQUIRED(OK));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 13);
}

LIFE_TEST(too_many_void_votes_lose_the_attempt, life_start(&life, 3)) {
    life_votes(&life, "G.D");
    /* lost, but the code depends on the third node (R13) */
    life_expect(life_void(&life, 1), ACQUIRING, NOTHING);
    life_expect(life_vote(&life, 1, U), ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));
}

/* R5: a round that can no longer be won is lost at once. */
LIFE_TEST(void_votes_decide_at_once, life_start(&life, 3)) {
    life_votes(&life, "GU");
    life_expect(life_void(&life, 1), ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));

    life_held(&life, false);
    life_extend(&life, TTL_MS);
    life_votes(&life, "GGFF");
    life_expect(life_void(&life, 1), HELD, EXTENDED(ERR_NO_QUORUM));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 30);
}

/* A lease with fewer backing nodes than a quorum is LOST at once: docs/protocols.md, "Clock
 * guard". */
LIFE_TEST(a_lease_on_a_bare_quorum_is_lost_with_one_clock, life_start(&life, 5)) {
    life_votes(&life, "GGG");
    life_vote(&life, 3, U);
    life_expect(life_void(life_at(&life, 100), 8), HELD, NOTHING); /* its vote never counted */
    life_expect(life_void(&life, 4), LOST, .cleanup = 31, LOST_BY_CLOCK);
    life_expect(life_void(&life, 2), LOST, NOTHING);
    assert_int_equal(life_held_until_ms(&life), -1);
}

/* The vote of a node that has lost the key since counted for the deadline, too. */
LIFE_TEST(a_jump_of_a_node_that_lost_the_key_loses_the_lease, life_start(&life, 5)) {
    life_votes(&life, "GGG");
    life_votes(&life, "...UU");
    life_extend(life_at(&life, 100), TTL_MS);
    life_expect(life_votes(&life, "GFDF"), HELD, EXTENDED(ERR_NO_QUORUM)); /* may be late */
    life_extend(&life, TTL_MS);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 3);
    life_expect(life_void(&life, 4), LOST, .cleanup = 31, LOST_BY_CLOCK, EXTENDED(ERR_LOST));
}

LIFE_TEST(late_grants_back_the_lease, life_held(&life, false)) {
    life_expect(life_void(&life, 1), HELD, NOTHING);
    life_expect(life_void(&life, 2), HELD, NOTHING);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 28);
    life_expect(life_void(&life, 16), LOST, .cleanup = 31, LOST_BY_CLOCK);
}

LIFE_TEST(an_extension_renews_the_backing_nodes, life_held(&life, false)) {
    life_void(&life, 3);
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "GG.G"), HELD, EXTENDED(OK)); /* their keys survived the jump */
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 11);
    life_vote(&life, 4, G);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 27);
}

LIFE_TEST(a_jump_while_extending_voids_both_rounds, life_start(&life, 5)) {
    life_votes(&life, "GGG");
    life_vote(&life, 3, G);
    life_extend(&life, TTL_MS);
    life_votes(&life, "GG");
    /* three of the old round are left, and one of this round */
    life_expect(life_void(&life, 1), EXTENDING, NOTHING);
    life_expect(life_votes(&life, "..FF"), HELD, EXTENDED(ERR_NO_QUORUM));
    life_expect(life_void(&life, 2), LOST, .cleanup = 31, LOST_BY_CLOCK);
}

LIFE_TEST(a_jump_while_extending_may_lose_the_lease, life_start(&life, 3)) {
    life_votes(&life, "GG");
    life_extend(&life, TTL_MS);
    life_expect(life_void(&life, 1), LOST, .cleanup = 7, LOST_BY_CLOCK, EXTENDED(ERR_LOST));
}

LIFE_TEST(an_adopted_lease_has_no_votes_to_void, life_init(&life, 3)) {
    life_adopt(&life);
    life_expect(life_void(&life, 7), ADOPTED, NOTHING);
    life_extend(&life, TTL_MS);
    life_vote(&life, 0, G);
    life_expect(life_void(&life, 1), EXTENDING, NOTHING);
    life_expect(life_votes(&life, ".GG"), HELD, EXTENDED(OK));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 6);
}

/* --- Healing --- */

static void healing(struct life *life, unsigned n, bool auto_extend) {
    life_init(life, n);
    life->plan.heal = true;
    life->plan.auto_extend = auto_extend;
    life_begin(life);
}

LIFE_TEST(the_rest_is_healed_a_tenth_of_the_ttl_later, healing(&life, 5, false)) {
    life_expect(life_votes(&life, "GGG"), HELD, ACQUIRED(OK));
    assert_int_equal(life_next_ms(&life), 1000);
    life_vote(&life, 3, F);
    life_expect(life_timer(life_at(&life, 999)), HELD, NOTHING);
    life_expect(life_timer(life_at(&life, 1000)), HELD, .heal = 24);
    assert_int_equal(life_next_ms(&life), END_MS); /* once */
    /* To the ACQUIRE, and read late: it says nothing about the heal. */
    life_vote(&life, 4, F);
    /* also where it was healed */
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 31, 2));
}

/* The timer of the attempt already serves healing. It fires once, not in every turn until the votes
 * are in. */
LIFE_TEST(an_attempt_that_takes_long_is_woken_once, healing(&life, 3, false)) {
    assert_int_equal(life_next_ms(&life), 1000);
    life_expect(life_timer(life_at(&life, 1000)), ACQUIRING, NOTHING);
    assert_int_equal(life_next_ms(&life), END_MS);
}

LIFE_TEST(where_all_have_granted_nothing_is_healed, healing(&life, 5, false)) {
    life_votes(&life, "GGG");
    life_votes(&life, "...GG");
    life_expect(life_timer(life_at(&life, 1000)), HELD, NOTHING);
    assert_int_equal(life_next_ms(&life), END_MS);
}

LIFE_TEST(an_extension_heals_what_it_missed, healing(&life, 5, true)) {
    life_votes(&life, "GGG");
    life_votes(&life, "...GG");
    life_timer(life_at(&life, 1000));
    life_expect(life_timer(life_at(&life, 3400)), EXTENDING, SENDS(EXTEND, 31, 2));
    life_expect(life_votes(&life, "DGGG"), HELD, NOTHING);
    assert_int_equal(life_next_ms(&life), 4400);
    life_vote(&life, 4, D);
    life_expect(life_timer(life_at(&life, 4400)), HELD, .heal = 17);
}

/* "only if matched >= q and now is before the *old* deadline" */
LIFE_TEST(nothing_is_healed_at_the_old_deadline, healing(&life, 3, false)) {
    life_votes(&life, "GG");
    life_extend(life_at(&life, END_MS - 100), TTL_MS);
    life_expect(life_votes(&life, "GG"), HELD, EXTENDED(OK));
    assert_int_equal(life_next_ms(&life), END_MS - 50); /* half of what the old deadline had left */
    life.at_ms = END_MS;                                /* the process was paused */
    life_expect(life_timer(&life), HELD, NOTHING);

    healing(&life, 3, false);
    life_votes(&life, "GG");
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "GUU"), HELD, EXTENDED(ERR_NO_QUORUM));
    life_expect(life_timer(life_at(&life, 5000)), HELD, NOTHING); /* too few nodes matched */
}

LIFE_TEST(the_first_extension_of_an_adopted_lease_heals_nothing, life_init(&life, 3)) {
    life.plan.heal = true;
    life_adopt(&life);
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "GG"), HELD, EXTENDED(OK));
    assert_int_equal(life_next_ms(&life), END_MS);
    life_extend(life_at(&life, 100), TTL_MS);
    life_votes(&life, "GG");
    assert_int_equal(life_next_ms(&life), 1100);
}

LIFE_TEST(a_renewal_comes_before_healing, healing(&life, 3, true)) {
    life_votes(&life, "GG");
    /* both are due */
    life_expect(life_timer(life_at(&life, 5000)), EXTENDING, SENDS(EXTEND, 7, 2));
    life_expect(life_timer(life_at(&life, 6000)), EXTENDING, NOTHING);
}

/* --- Lock delay --- */

LIFE_TEST(the_keys_of_a_lost_lease_stay_for_the_delay, life_init(&life, 3)) {
    life.plan.lock_delay_ms = 15000;
    life_begin(&life);
    assert_int_equal(redlock_lease_key_ttl_ms(&life.core), TTL_MS + 15000);
    life_votes(&life, "GG");
    /* The lock delay makes the lease no longer. */
    assert_int_equal(life_held_until_ms(&life), END_MS);
    life_expect(life_timer(life_at(&life, END_MS)), LOST, .lost = true);
    life_expect(life_release(&life), ENDED, RELEASED(ERR_LOST));
}

/* The delay protects against a process that was paused and releases before its timers run. */
TEST(a_release_after_the_deadline_respects_the_delay) {
    for (int extending = 0; extending <= 1; extending++) {
        struct life life;
        life_init(&life, 3);
        life.plan.lock_delay_ms = 15000;
        life_begin(&life);
        life_votes(&life, "GG");
        if (extending) {
            life_extend(&life, TTL_MS);
        }
        life_release(life_at(&life, END_MS));
        life_expect(&life, ENDED, .lost = true, .extended = extending != 0,
                    .extended_code = extending ? REDLOCK_ERR_LOST : 0, RELEASED(ERR_LOST));
    }
    struct life adopted;
    life_init(&adopted, 3);
    adopted.plan.lock_delay_ms = 15000;
    life_adopt(&adopted);
    life_release(&adopted); /* its deadline is not known here */
    life_expect(&adopted, RELEASING, SENDS(RELEASE, 7, 1));
}

LIFE_TEST(a_release_in_time_and_a_lost_attempt_have_no_delay, life_init(&life, 3)) {
    life.plan.lock_delay_ms = 15000;
    life_begin(&life);
    life_votes(&life, "GG");
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 7, 2));

    life_init(&life, 3);
    life.plan.lock_delay_ms = 15000;
    life_begin(&life);
    life_expect(life_votes(&life, "GDD"), ENDED, .cleanup = 7, ACQUIRED(ERR_CONTENDED));
}
