/* A lease on nodes that may not vote, whose clocks jump, or that lack its key: abstentions, void
 * votes, healing, lock delay. */
#include "life.h"

TEST(nodes_that_may_not_vote_are_not_asked) {
    struct life life;
    life_init(&life, 5);
    life.may_not_vote = 9;
    life_begin(&life);
    life_expect(&life, ACQUIRING, SENDS(ACQUIRE, 22, 1));
    assert_int_equal(life.core.votes.asked, 22);
    life_vote(&life, 1, G);
    life_vote(&life, 2, G);
    life_vote(&life, 4, F);
    life_expect(&life, ENDED, .cleanup = 6, ACQUIRED(ERR_NO_QUORUM));
}

TEST(without_a_quorum_of_voters_nothing_is_sent) {
    struct life life;
    life_init(&life, 5);
    life.may_not_vote = 7;
    life_begin(&life);
    life_expect(&life, ENDED, SENDS(ACQUIRE, 0, 1), ACQUIRED(ERR_NO_QUORUM));

    life_init(&life, 5);
    life.may_not_vote = 7;
    life.plan.wait_timeout_ms = 5000;
    life_begin(&life);
    life_expect(&life, WAITING, SENDS(ACQUIRE, 0, 1));
    life.at_ms = 1000;
    life.may_not_vote = 3; /* one of them may vote by now */
    life_timer(&life);
    life_expect(&life, ACQUIRING, SENDS(ACQUIRE, 28, 2));
    life_vote(&life, 2, G);
    life_vote(&life, 3, G);
    life_vote(&life, 4, G);
    life_expect(&life, HELD, ACQUIRED(OK));
    life_extend(&life, TTL_MS); /* every node may confirm that */
    life_expect(&life, EXTENDING, SENDS(EXTEND, 31, 3));
}

TEST(a_parked_acquire_can_be_cancelled) {
    struct life life;
    life_init(&life, 5);
    life_park(&life, 50);
    life_cancel(&life, REDLOCK_ERR_CANCELLED);
    life_expect(&life, ENDED, ACQUIRED(ERR_CANCELLED));
}

TEST(a_jump_voids_a_vote_of_the_attempt) {
    struct life life;
    life_start(&life, 5);
    life_votes(&life, "GG");
    life_void(&life, 2); /* of node 1 */
    life_expect(&life, ACQUIRING, NOTHING);
    life_vote(&life, 2, G);
    life_expect(&life, ACQUIRING, NOTHING);
    life_vote(&life, 3, G);
    life_expect(&life, HELD, ACQUIRED(OK));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 13);
}

TEST(too_many_void_votes_lose_the_attempt) {
    struct life life;
    life_start(&life, 3);
    life_votes(&life, "G.D");
    life_void(&life, 1);
    life_expect(&life, ACQUIRING, NOTHING); /* lost, but the code depends on the third node (R13) */
    life_vote(&life, 1, U);
    life_expect(&life, ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));
}

/* R5: a round that can no longer be won is lost at once. */
TEST(void_votes_decide_at_once) {
    struct life life;
    life_start(&life, 3);
    life_votes(&life, "GU");
    life_void(&life, 1);
    life_expect(&life, ENDED, .cleanup = 7, ACQUIRED(ERR_NO_QUORUM));

    life_held(&life, false);
    life_extend(&life, TTL_MS);
    life_votes(&life, "GGFF");
    life_void(&life, 1);
    life_expect(&life, HELD, EXTENDED(ERR_NO_QUORUM));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 30);
}

/* A lease with fewer backing nodes than a quorum is LOST at once: docs/protocols.md, "Clock
 * guard". */
TEST(a_lease_on_a_bare_quorum_is_lost_with_one_clock) {
    struct life life;
    life_start(&life, 5);
    life_votes(&life, "GGG");
    life_vote(&life, 3, U);
    life.at_ms = 100;
    life_void(&life, 8); /* its vote never counted */
    life_expect(&life, HELD, NOTHING);
    life_void(&life, 4);
    life_expect(&life, LOST, .cleanup = 31, LOST_BY_CLOCK);
    life_void(&life, 2);
    life_expect(&life, LOST, NOTHING);
    assert_int_equal(life_held_until_ms(&life), -1);
}

TEST(late_grants_back_the_lease) {
    struct life life;
    life_held(&life, false);
    life_void(&life, 1);
    life_expect(&life, HELD, NOTHING);
    life_void(&life, 2);
    life_expect(&life, HELD, NOTHING);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 28);
    life_void(&life, 16);
    life_expect(&life, LOST, .cleanup = 31, LOST_BY_CLOCK);
}

TEST(an_extension_renews_the_backing_nodes) {
    struct life life;
    life_held(&life, false);
    life_void(&life, 3);
    life_extend(&life, TTL_MS);
    life_votes(&life, "GG.G"); /* their keys survived the jump */
    life_expect(&life, HELD, EXTENDED(OK));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 11);
    life_vote(&life, 4, G);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 27);
}

TEST(a_jump_while_extending_voids_both_rounds) {
    struct life life;
    life_start(&life, 5);
    life_votes(&life, "GGG");
    life_vote(&life, 3, G);
    life_extend(&life, TTL_MS);
    life_votes(&life, "GG");
    life_void(&life, 1); /* three of the old round are left, and one of this round */
    life_expect(&life, EXTENDING, NOTHING);
    life_votes(&life, "..FF");
    life_expect(&life, HELD, EXTENDED(ERR_NO_QUORUM));
    life_void(&life, 2);
    life_expect(&life, LOST, .cleanup = 31, LOST_BY_CLOCK);
}

TEST(a_jump_while_extending_may_lose_the_lease) {
    struct life life;
    life_start(&life, 3);
    life_votes(&life, "GG");
    life_extend(&life, TTL_MS);
    life_void(&life, 1);
    life_expect(&life, LOST, .cleanup = 7, LOST_BY_CLOCK, EXTENDED(ERR_LOST));
}

TEST(an_adopted_lease_has_no_votes_to_void) {
    struct life life;
    life_init(&life, 3);
    life_adopt(&life);
    life_void(&life, 7);
    life_expect(&life, ADOPTED, NOTHING);
    life_extend(&life, TTL_MS);
    life_vote(&life, 0, G);
    life_void(&life, 1);
    life_expect(&life, EXTENDING, NOTHING);
    life_votes(&life, ".GG");
    life_expect(&life, HELD, EXTENDED(OK));
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 6);
}

/* --- Healing --- */

static void healing(struct life *life, unsigned n, bool auto_extend) {
    life_init(life, n);
    life->plan.heal = true;
    life->plan.auto_extend = auto_extend;
    life_begin(life);
}

TEST(the_rest_is_healed_a_tenth_of_the_ttl_later) {
    struct life life;
    healing(&life, 5, false);
    life_votes(&life, "GGG");
    life_expect(&life, HELD, ACQUIRED(OK));
    assert_int_equal(life_next_ms(&life), 1000);
    life_vote(&life, 3, F);
    life.at_ms = 999;
    life_timer(&life);
    life_expect(&life, HELD, NOTHING);
    life.at_ms = 1000;
    life_timer(&life);
    life_expect(&life, HELD, .heal = 24);
    assert_int_equal(life_next_ms(&life), END_MS); /* once */
    /* To the ACQUIRE, and read late: it says nothing about the heal. */
    life_vote(&life, 4, F);
    life_release(&life);
    life_expect(&life, RELEASING, SENDS(RELEASE, 31, 2)); /* also where it was healed */
}

/* The timer of the attempt already serves healing. It fires once, not in every turn until the votes
 * are in. */
TEST(an_attempt_that_takes_long_is_woken_once) {
    struct life life;
    healing(&life, 3, false);
    assert_int_equal(life_next_ms(&life), 1000);
    life.at_ms = 1000;
    life_timer(&life);
    life_expect(&life, ACQUIRING, NOTHING);
    assert_int_equal(life_next_ms(&life), END_MS);
}

TEST(where_all_have_granted_nothing_is_healed) {
    struct life life;
    healing(&life, 5, false);
    life_votes(&life, "GGG");
    life_vote(&life, 3, G);
    life_vote(&life, 4, G);
    life.at_ms = 1000;
    life_timer(&life);
    life_expect(&life, HELD, NOTHING);
    assert_int_equal(life_next_ms(&life), END_MS);
}

TEST(an_extension_heals_what_it_missed) {
    struct life life;
    healing(&life, 5, true);
    life_votes(&life, "GGG");
    life_vote(&life, 3, G);
    life_vote(&life, 4, G);
    life.at_ms = 1000;
    life_timer(&life);
    life.at_ms = 3400;
    life_timer(&life);
    life_expect(&life, EXTENDING, SENDS(EXTEND, 31, 2));
    life_votes(&life, "DGGG");
    life_expect(&life, HELD, NOTHING);
    assert_int_equal(life_next_ms(&life), 4400);
    life_vote(&life, 4, D);
    life.at_ms = 4400;
    life_timer(&life);
    life_expect(&life, HELD, .heal = 17);
}

/* "only if matched >= q and now is before the *old* deadline" */
TEST(nothing_is_healed_at_the_old_deadline) {
    struct life life;
    healing(&life, 3, false);
    life_votes(&life, "GG");
    life.at_ms = END_MS - 100;
    life_extend(&life, TTL_MS);
    life_votes(&life, "GG");
    life_expect(&life, HELD, EXTENDED(OK));
    assert_int_equal(life_next_ms(&life), END_MS - 50); /* half of what the old deadline had left */
    life.at_ms = END_MS;                                /* the process was paused */
    life_timer(&life);
    life_expect(&life, HELD, NOTHING);

    healing(&life, 3, false);
    life_votes(&life, "GG");
    life_extend(&life, TTL_MS);
    life_votes(&life, "GUU");
    life_expect(&life, HELD, EXTENDED(ERR_NO_QUORUM));
    life.at_ms = 5000;
    life_timer(&life);
    life_expect(&life, HELD, NOTHING); /* too few nodes matched */
}

TEST(the_first_extension_of_an_adopted_lease_heals_nothing) {
    struct life life;
    life_init(&life, 3);
    life.plan.heal = true;
    life_adopt(&life);
    life_extend(&life, TTL_MS);
    life_votes(&life, "GG");
    life_expect(&life, HELD, EXTENDED(OK));
    assert_int_equal(life_next_ms(&life), END_MS);
    life.at_ms = 100;
    life_extend(&life, TTL_MS);
    life_votes(&life, "GG");
    assert_int_equal(life_next_ms(&life), 1100);
}

TEST(a_renewal_comes_before_healing) {
    struct life life;
    healing(&life, 3, true);
    life_votes(&life, "GG");
    life.at_ms = 5000; /* both are due */
    life_timer(&life);
    life_expect(&life, EXTENDING, SENDS(EXTEND, 7, 2));
    life.at_ms = 6000;
    life_timer(&life);
    life_expect(&life, EXTENDING, NOTHING);
}

/* --- Lock delay --- */

TEST(the_keys_of_a_lost_lease_stay_for_the_delay) {
    struct life life;
    life_init(&life, 3);
    life.plan.lock_delay_ms = 15000;
    life_begin(&life);
    assert_int_equal(redlock_lease_key_ttl_ms(&life.core), TTL_MS + 15000);
    life_votes(&life, "GG");
    /* The lock delay makes the lease no longer. */
    assert_int_equal(life_held_until_ms(&life), END_MS);
    life.at_ms = END_MS;
    life_timer(&life);
    life_expect(&life, LOST, .lost = true);
    life_release(&life);
    life_expect(&life, ENDED, RELEASED(ERR_LOST));
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
        life.at_ms = END_MS;
        life_release(&life);
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

TEST(a_release_in_time_and_a_lost_attempt_have_no_delay) {
    struct life life;
    life_init(&life, 3);
    life.plan.lock_delay_ms = 15000;
    life_begin(&life);
    life_votes(&life, "GG");
    life_release(&life);
    life_expect(&life, RELEASING, SENDS(RELEASE, 7, 2));

    life_init(&life, 3);
    life.plan.lock_delay_ms = 15000;
    life_begin(&life);
    life_votes(&life, "GDD");
    life_expect(&life, ENDED, .cleanup = 7, ACQUIRED(ERR_CONTENDED));
}
