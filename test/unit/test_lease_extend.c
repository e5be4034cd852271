/* Extend by the caller: won, lost, in place of a renewal, never shortening (R12), of an adopted
 * lease; and loss (R3). */
#include "life.h"

LIFE_TEST(a_quorum_extends_from_the_rounds_own_start, life_held(&life, false)) {
    life.at_ms = 4000;
    assert_is(redlock_lease_extend_check(&life.core, T0 + 4000 * MS), REDLOCK_OK);
    life_expect(life_extend(&life, 20000), EXTENDING, SENDS(EXTEND, 31, 2));
    assert_is(redlock_lease_extend_check(&life.core, T0 + 4000 * MS), REDLOCK_ERR_BUSY);
    assert_int_equal(life_held_until_ms(&life), END_MS); /* no longer validity before the votes */
    assert_int_equal(life_next_ms(&life), END_MS);
    life_expect(life_votes(life_at(&life, 4030), "DGGUG"), HELD, EXTENDED(OK));
    assert_int_equal(life_held_until_ms(&life), 4000 + 19798);
    assert_int_equal(life_next_ms(&life), 4000 + 19798);
    /* the old deadline and its nodes no longer count */
    life_expect(life_timer(life_at(&life, 9000)), HELD, NOTHING);
}

LIFE_TEST(late_votes_of_an_extend_keep_the_touched_nodes, life_held(&life, false)) {
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK));
    life_vote(&life, 3, F); /* the extend failed there, but the key of the acquire is still there */
    life_expect(&life, HELD, NOTHING);
    life_expect(life_stale(&life, 4, F, 1), HELD, NOTHING);
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 31, 3));
}

/* Another lease of the same token healed the key there. */
LIFE_TEST(what_an_extend_finds_is_released, life_start(&life, 3)) {
    life_votes(&life, "FGG");
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 6, 2));
    for (int late = 0; late < 2; late++) {
        life_start(&life, 3);
        life_votes(&life, "FGG");
        life_extend(&life, TTL_MS);
        life_votes(&life, late ? ".GG" : "GG");
        if (late) {
            life_vote(&life, 0, G);
        }
        life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 7, 3));
        life_start(&life, 3);
        life_votes(&life, "FGG");
        life_extend(&life, TTL_MS);
        life_votes(&life, "G");
        life_timer(life_at(&life, TTL_MS));
        life_expect(&life, LOST, .cleanup = 7, .uncertain = 6, .lost = true, EXTENDED(ERR_LOST));
    }
}

LIFE_TEST(a_lost_extend_keeps_the_lease, life_held(&life, false)) {
    life_extend(life_at(&life, 1000), TTL_MS);
    life_expect(life_votes(&life, "GDFU"), HELD, EXTENDED(ERR_NO_QUORUM));
    assert_int_equal(life_held_until_ms(&life), END_MS);
    assert_int_equal(life_next_ms(&life), END_MS); /* no renewal by itself */
    life_expect(life_extend(life_at(&life, 2000), TTL_MS), EXTENDING, SENDS(EXTEND, 31, 3));
    life_stale(&life, 4, G, 2);
    life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK));
    assert_int_equal(life_held_until_ms(&life), 2000 + END_MS);
}

static void expect_round_over(const struct life *life, int code) {
    assert_true(life->did.round_over);
    assert_int_equal(life->did.round_code, code);
}

static void renew(struct life *life) {
    life_timer(life_at(life, (life->core.next_try_ns - T0) / MS + 1));
    assert_is(life->core.state, REDLOCK_LEASE_EXTENDING);
    assert_false(life->did.round_over);
}

/* Also of a renewal, for which nobody waits. */
LIFE_TEST(the_end_of_each_round_is_told, life_held(&life, true)) {
    renew(&life);
    life_votes(&life, "GG");
    assert_false(life.did.round_over);
    life_extend(&life, TTL_MS); /* in place of the renewal, which ends without a word */
    assert_false(life.did.round_over);
    life_votes(&life, "GGG");
    expect_round_over(&life, REDLOCK_OK);
    life_vote(&life, 3, G);
    assert_false(life.did.round_over);
    renew(&life);
    life_votes(&life, "FFF");
    expect_round_over(&life, REDLOCK_ERR_NO_QUORUM);
    renew(&life);
    life_votes(&life, "DDD");
    expect_round_over(&life, REDLOCK_ERR_LOST);
    life_release(&life);
    assert_false(life.did.round_over);
}

LIFE_TEST(all_nodes_refusing_an_extend_is_no_quorum, life_held(&life, false)) {
    life_extend(&life, TTL_MS);
    life_expect(life_refuse(&life, 31), HELD, EXTENDED(ERR_NO_QUORUM));
}

/* R12: nodes never shorten a key, so the later deadline stands whatever the round brings. */
TEST(a_shorter_ttl_leaves_the_deadline) {
    static const char *const votes[] = {"GGG", "FFF", "GUU"};
    for (size_t i = 0; i < sizeof votes / sizeof votes[0]; i++) {
        struct life life;
        life_held(&life, false);
        life_extend(life_at(&life, 1000), 1000);
        assert_int_equal(life_held_until_ms(&life), END_MS);
        assert_int_equal(life_next_ms(&life), END_MS);
        life_votes(&life, votes[i]);
        if (i == 0) {
            life_expect(&life, HELD, EXTENDED(OK));
        } else {
            life_vote(&life, 4, F), life_vote(&life, 3, F);
        }
        assert_int_equal(life_held_until_ms(&life), END_MS);
        life_expect(life_timer(life_at(&life, END_MS)), LOST, .cleanup = 31, .lost = true);
    }
}

/* The later deadline does not stand if too many of its keys are gone: the other keys that matched
 * surely live only as long as this round asked. */
LIFE_TEST(a_shorter_ttl_on_other_nodes_is_what_is_left, life_start(&life, 5)) {
    life_votes(&life, "GGG");
    life_votes(&life, "...GG");
    life_extend(&life, 60000);
    life_votes(&life, "GGG");
    life_votes(&life, "...FF");
    assert_int_equal(life_held_until_ms(&life), 60000 - 602);
    life_extend(life_at(&life, 1000), 2000);
    /* Two keys are gone; those of the last two nodes end with the first deadline or this one. */
    life_expect(life_votes(&life, "DDGGG"), HELD, EXTENDED(OK));
    assert_int_equal(life_held_until_ms(&life), 3000 - 22);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 28);
}

/* The same if we learn that late. Nothing is known of nodes that are silent. */
LIFE_TEST(keys_found_missing_late_move_the_deadline, life_start(&life, 5)) {
    life_votes(&life, "GGG");
    life_extend(&life, 60000);
    life_votes(&life, "GGG");
    life_extend(life_at(&life, 1000), 2000);
    life_expect(life_votes(&life, "..GGG"), HELD, EXTENDED(OK));
    assert_int_equal(life_held_until_ms(&life), 60000 - 602);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 7);
    life_expect(life_vote(&life, 0, U), HELD, NOTHING);
    assert_int_equal(life_held_until_ms(&life), 60000 - 602);
    life_vote(life_at(&life, 1040), 1, D);
    assert_true(life.did.deadline_moved);
    life_expect(&life, HELD, NOTHING);
    assert_int_equal(life_held_until_ms(&life), 3000 - 22);
    assert_int_equal(life_next_ms(&life), 3000 - 22);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 28);

    life_start(&life, 5);
    life_votes(&life, "GGG");
    life_extend(&life, 60000);
    life_votes(&life, "GGG");
    life_extend(life_at(&life, 1000), 10);
    life_votes(&life, "..GGG");
    life_vote(life_at(&life, 1007), 1, D); /* of 10 ms less 3 ms of drift nothing is left */
    life_expect(&life, LOST, .cleanup = 31, .lost = true);
}

/* The same whether the DENIED votes came before the last GRANTED one or after it. */
LIFE_TEST(a_shorter_ttl_that_is_over_is_lost, life_start(&life, 5)) {
    life_votes(&life, "GGG");
    life_extend(&life, 60000);
    life_votes(&life, "GGG");
    life_extend(life_at(&life, 1000), 2000);
    life_votes(&life, "DDGG");
    life_expect(life_vote(life_at(&life, 3000 - 22), 4, G), LOST, .cleanup = 31, .lost = true, EXTENDED(ERR_LOST));
}

/* The deadline stands, and the nodes that back it stay, except those whose key is known to be
 * gone. */
LIFE_TEST(a_shorter_ttl_leaves_the_backing_nodes, life_held(&life, false)) {
    life_extend(life_at(&life, 1000), 1000);
    life_expect(life_votes(&life, "DGGG"), HELD, EXTENDED(OK));
    assert_int_equal(life_held_until_ms(&life), END_MS);
    assert_int_equal(redlock_lease_backing_nodes(&life.core), 30);
}

LIFE_TEST(a_ttl_within_the_drift_is_not_sent, life_held(&life, true)) {
    life_expect(life_extend(&life, 3), HELD, EXTENDED(ERR_TOO_SLOW));
    assert_int_equal(life_held_until_ms(&life), END_MS);
    life_expect(life_timer(life_at(&life, 4000)), EXTENDING, SENDS(EXTEND, 31, 2));
    assert_int_equal(life.core.round_ttl_ms, TTL_MS);
    /* and it does not disturb a renewal */
    life_expect(life_extend(&life, 1), EXTENDING, EXTENDED(ERR_TOO_SLOW));
    life_expect(life_votes(&life, "GGG"), HELD, NOTHING);
    assert_int_equal(life_held_until_ms(&life), 4000 + END_MS);
}

/* Three of five say that the key is not ours, so we cannot have a quorum. */
LIFE_TEST(denied_by_most_is_lost_at_once, life_held(&life, false)) {
    life_extend(life_at(&life, 1000), TTL_MS);
    life_votes(&life, "DGDD");
    life_expect(&life, LOST, .cleanup = 31, .lost = true, .lost_by_votes = true, EXTENDED(ERR_LOST));
    assert_int_equal(life_held_until_ms(&life), -1);
    assert_int_equal(life_next_ms(&life), -1);
    assert_is(redlock_lease_extend_check(&life.core, T0 + 1000 * MS), REDLOCK_ERR_LOST);
    life_expect(life_vote(&life, 4, G), LOST, NOTHING);
    life_expect(life_timer(life_at(&life, END_MS)), LOST, NOTHING); /* on_lost runs once */
    life_expect(life_extend(&life, TTL_MS), LOST, EXTENDED(ERR_LOST));
    life_expect(life_release(&life), ENDED, RELEASED(ERR_LOST));
}

LIFE_TEST(denied_by_most_counts_late_votes, life_held(&life, false)) {
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "DFD"), HELD, EXTENDED(ERR_NO_QUORUM));
    life_expect(life_vote(&life, 3, U), HELD, NOTHING);
    life_expect(life_vote(&life, 4, D), LOST, .cleanup = 31, .lost = true, .lost_by_votes = true);
}

/* The late votes of the acquire say that others hold the key at those nodes. That is nothing
 * new. */
LIFE_TEST(late_denials_of_the_acquire_are_no_loss, life_start(&life, 5)) {
    life_votes(&life, "GGG");
    life_expect(life_votes(&life, "...DD"), HELD, NOTHING);
}

LIFE_TEST(with_an_even_number_half_the_denials_are_enough, life_start(&life, 4)) {
    life_votes(&life, "GGG");
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "DD"), LOST, .cleanup = 15, .lost = true, .lost_by_votes = true, EXTENDED(ERR_LOST));
    life_start(&life, 4);
    life_votes(&life, "GGG");
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "DF"), HELD, EXTENDED(ERR_NO_QUORUM));
}

LIFE_TEST(the_deadline_is_the_end, life_held(&life, false)) {
    life_expect(life_timer(life_at(&life, END_MS - 1)), HELD, NOTHING);
    assert_is(redlock_lease_extend_check(&life.core, T0 + END_MS * MS - 1), REDLOCK_OK);
    assert_is(redlock_lease_extend_check(&life.core, T0 + END_MS * MS), REDLOCK_ERR_LOST);
    life_expect(life_timer(life_at(&life, END_MS)), LOST, .cleanup = 31, .lost = true);
    assert_int_equal(life_held_until_ms(&life), -1);
    assert_int_equal(life_next_ms(&life), -1);
}

/* R12: never extend after the deadline, even if the timer has not fired yet. */
LIFE_TEST(an_extend_at_the_deadline_finds_it_lost, life_held(&life, false)) {
    life_expect(life_extend(life_at(&life, END_MS), TTL_MS), LOST, .cleanup = 31, .lost = true, EXTENDED(ERR_LOST));
    life_held(&life, true);
    life_expect(life_timer(life_at(&life, 9000)), EXTENDING, SENDS(EXTEND, 31, 2));
    life_expect(life_extend(life_at(&life, END_MS), TTL_MS), LOST, .cleanup = 31, .lost = true, EXTENDED(ERR_LOST));
}

LIFE_TEST(the_deadline_passes_during_an_extend, life_held(&life, false)) {
    life_extend(life_at(&life, 9000), TTL_MS);
    life_votes(&life, "GG");
    life_expect(life_timer(life_at(&life, END_MS - 1)), EXTENDING, NOTHING);
    life_expect(life_timer(life_at(&life, END_MS)), LOST, .cleanup = 31, .lost = true, EXTENDED(ERR_LOST));
    life_expect(life_vote(&life, 2, G), LOST, NOTHING); /* too late, though it is the third */
    /* the same where the vote comes before the timer */
    life_held(&life, false);
    life_extend(life_at(&life, 9000), TTL_MS);
    life_votes(&life, "GG");
    life_expect(life_vote(life_at(&life, END_MS), 2, G), LOST, .cleanup = 31, .lost = true, EXTENDED(ERR_LOST));
}

LIFE_TEST(a_late_vote_can_show_the_loss, life_start(&life, 3)) {
    life_votes(&life, "GG");
    life_expect(life_vote(life_at(&life, END_MS), 2, F), LOST, .cleanup = 3, .lost = true);
}

LIFE_TEST(an_adopted_lease_is_held_once_it_is_extended, life_init(&life, 5)) {
    life_expect(life_adopt(&life), ADOPTED, NOTHING);
    assert_int_equal(life_held_until_ms(&life), -1);
    assert_int_equal(life_next_ms(&life), -1);
    /* there is no deadline to miss */
    life_expect(life_timer(life_at(&life, 50000)), ADOPTED, NOTHING);
    life_expect(life_extend(&life, TTL_MS), EXTENDING, SENDS(EXTEND, 31, 1));
    assert_int_equal(life_held_until_ms(&life), -1);
    assert_int_equal(life_next_ms(&life), 50000 + END_MS);
    assert_is(redlock_lease_extend_check(&life.core, T0 + 50000 * MS), REDLOCK_ERR_BUSY);
    life_expect(life_votes(&life, "GGDG"), HELD, EXTENDED(OK));
    assert_int_equal(life_held_until_ms(&life), 50000 + END_MS);
    life_expect(life_timer(life_at(&life, 50000 + END_MS)), LOST, .cleanup = 31, .lost = true);
}

LIFE_TEST(an_adopted_lease_survives_a_failed_extend, life_init(&life, 3)) {
    life.plan.auto_extend = true;
    life_adopt(&life);
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "DF"), ADOPTED, EXTENDED(ERR_NO_QUORUM));
    assert_int_equal(life_next_ms(&life), -1); /* no lease is held that could be renewed */
    life_expect(life_vote(&life, 2, D), ADOPTED, NOTHING);
    assert_is(redlock_lease_extend_check(&life.core, T0), REDLOCK_OK);
    /* the deadline of the round */
    life_expect(life_extend(&life, TTL_MS), EXTENDING, SENDS(EXTEND, 7, 2));
    life_vote(&life, 0, G);
    life_expect(life_timer(life_at(&life, END_MS)), ADOPTED, EXTENDED(ERR_NO_QUORUM));
    life_extend(&life, TTL_MS); /* a quorum that comes too late */
    life_vote(&life, 0, G);
    life_expect(life_vote(life_at(&life, 2 * END_MS), 1, G), ADOPTED, EXTENDED(ERR_TOO_SLOW));
    life_extend(&life, TTL_MS); /* once held, it is a lease like any other */
    life_expect(life_votes(&life, "GG"), HELD, EXTENDED(OK));
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "FF"), HELD, EXTENDED(ERR_NO_QUORUM));
}

/* on_lost is for a lease that was held. Here the caller asked, and the result says it. */
LIFE_TEST(an_adopted_lease_that_most_deny_is_lost, life_init(&life, 3)) {
    life_adopt(&life);
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "DD"), LOST, .cleanup = 7, EXTENDED(ERR_LOST));
    life_expect(life_release(&life), ENDED, RELEASED(ERR_LOST));
}

LIFE_TEST(an_extend_supersedes_a_renewal_but_no_other, life_held(&life, true)) {
    life_expect(life_timer(life_at(&life, 4000)), EXTENDING, SENDS(EXTEND, 31, 2));
    life_votes(&life, "GG");
    life.at_ms = 4010;
    assert_is(redlock_lease_extend_check(&life.core, T0 + 4010 * MS), REDLOCK_OK);
    life_expect(life_extend(&life, 20000), EXTENDING, SENDS(EXTEND, 31, 3));
    life_expect(life_stale(&life, 2, G, 2), EXTENDING, NOTHING);
    life_expect(life_extend(&life, 7000), EXTENDING, NOTHING); /* BUSY: the call said so before */
    life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK));
    assert_int_equal(life_held_until_ms(&life), 4010 + 19798);
    /* Later renewals: at a third of the new ttl. */
    assert_in_range(life_next_ms(&life), 4010 + 6000, 4010 + 6666);
}

LIFE_TEST(a_downgrade_is_an_extension_of_one_who_reads_from_now_on, life_held(&life, false)) {
    assert_false(life.core.shared);
    life_expect(life_downgrade(life_at(&life, 4000)), EXTENDING, SENDS(EXTEND, 31, 2));
    assert_true(life.core.shared);
    /* Nodes that had let nobody in. */
    life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK));
    assert_int_equal(life_held_until_ms(&life), 4000 + END_MS);
    life_expect(life_downgrade(&life), EXTENDING, SENDS(EXTEND, 31, 3));
    life_expect(life_votes(&life, "UUU"), HELD, EXTENDED(ERR_NO_QUORUM));
    assert_true(life.core.shared);
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 31, 4));
}

LIFE_TEST(a_downgrade_that_fails_leaves_a_reader, life_held(&life, false)) {
    life_downgrade(&life);
    life_expect(life_votes(&life, "FFF"), HELD, EXTENDED(ERR_NO_QUORUM));
    assert_true(life.core.shared);
    assert_int_equal(life_held_until_ms(&life), END_MS);
}

LIFE_TEST(no_downgrade_beside_an_extension_nor_after_the_end, life_held(&life, false)) {
    life_extend(&life, TTL_MS);
    life_expect(life_downgrade(&life), EXTENDING, NOTHING);
    assert_false(life.core.shared);
    life_votes(&life, "GGG");
    life_downgrade(life_at(&life, life_held_until_ms(&life)));
    life_expect(&life, LOST, .cleanup = 31, .lost = true, EXTENDED(ERR_LOST));
    assert_false(life.core.shared);
}
