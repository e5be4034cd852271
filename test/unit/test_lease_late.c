/* Which nodes may have the key, where a SET may still run late, and whose GRANTED counts under
 * guards. */
#include "life.h"

/* All five were asked. These have granted, denied and failed. */
static struct redlock_round votes_of(redlock_nodes granted, redlock_nodes denied, redlock_nodes failed) {
    return (struct redlock_round){.asked = 31, .granted = granted, .denied = denied, .failed = failed, .quorum = 3};
}

TEST(only_an_answer_shows_that_a_request_cannot_run_late) {
    struct redlock_keys keys;
    struct redlock_round votes = votes_of(1, 2, 4);
    redlock_keys_begin(&keys, 31);
    redlock_keys_sent(&keys, REDLOCK_OP_ACQUIRE, 15); /* the fifth node refused */
    assert_int_equal(redlock_keys_late(&keys, &votes), 12);
    /* In the next round, a late request stays late until its node has answered. */
    redlock_keys_next_round(&keys, REDLOCK_OP_ACQUIRE, &votes, 0);
    votes = votes_of(0, 0, 0);
    redlock_keys_sent(&keys, REDLOCK_OP_EXTEND, 3);
    assert_int_equal(redlock_keys_late(&keys, &votes), 15);
    votes = votes_of(4, 1, 2);
    assert_int_equal(redlock_keys_late(&keys, &votes), 10);
    redlock_keys_next_round(&keys, REDLOCK_OP_EXTEND, &votes, 0);
    votes = votes_of(0, 0, 0);
    redlock_keys_sent(&keys, REDLOCK_OP_RELEASE, 31); /* it sets no key */
    assert_int_equal(redlock_keys_late(&keys, &votes), 10);
    redlock_keys_begin(&keys, 31);
    assert_int_equal(redlock_keys_late(&keys, &votes), 0);
}

TEST(a_vote_says_nothing_of_a_heal) {
    static const struct {
        redlock_vote_kind vote;
        redlock_nodes late;
    } answers[] = {
        {REDLOCK_VOTE_GRANTED, 0}, {REDLOCK_VOTE_DENIED, 0}, {REDLOCK_VOTE_FAILED, 8}, {REDLOCK_VOTE_UNKNOWN, 8}};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct redlock_keys keys;
        const struct redlock_round votes = votes_of(7, 8, 0);
        redlock_keys_begin(&keys, 31);
        redlock_keys_sent(&keys, REDLOCK_OP_ACQUIRE, 15);
        redlock_keys_set_outside(&keys, 24);
        redlock_keys_heal_sent(&keys, &votes, 24, 8);
        assert_int_equal(redlock_keys_late(&keys, &votes), 8);
        redlock_keys_heal_answered(&keys, 3, answers[i].vote);
        assert_int_equal(redlock_keys_late(&keys, &votes), answers[i].late);
    }
}

TEST(an_answer_to_a_heal_of_an_earlier_round_ends_nothing) {
    struct redlock_keys keys;
    struct redlock_round votes = votes_of(7, 8, 0);
    redlock_keys_begin(&keys, 31);
    redlock_keys_set_outside(&keys, 8);
    redlock_keys_heal_sent(&keys, &votes, 8, 8);
    redlock_keys_next_round(&keys, REDLOCK_OP_ACQUIRE, &votes, 0);
    votes = votes_of(0, 0, 0);
    redlock_keys_sent(&keys, REDLOCK_OP_EXTEND, 8);
    redlock_keys_heal_answered(&keys, 3, REDLOCK_VOTE_GRANTED);
    assert_int_equal(redlock_keys_late(&keys, &votes), 8);
}

/* R4: a request that surely did nothing does not change what was known. */
TEST(a_heal_that_was_not_sent_changes_nothing) {
    struct redlock_keys keys;
    const struct redlock_round votes = votes_of(7, 24, 0);
    redlock_keys_begin(&keys, 31);
    redlock_keys_set_outside(&keys, 24);
    assert_int_equal(redlock_keys_may_have(&keys, REDLOCK_OP_ACQUIRE, &votes, 0), 31);
    redlock_keys_heal_sent(&keys, &votes, 24, 8);
    assert_int_equal(redlock_keys_may_have(&keys, REDLOCK_OP_ACQUIRE, &votes, 0), 15);
    redlock_keys_heal_answered(&keys, 3, REDLOCK_VOTE_FAILED);
    assert_int_equal(redlock_keys_may_have(&keys, REDLOCK_OP_ACQUIRE, &votes, 0), 7);
}

TEST(a_node_that_did_not_set_the_key_owes_no_release_unless_it_was_healed) {
    struct redlock_keys keys;
    redlock_keys_begin(&keys, 31);
    redlock_keys_set_outside(&keys, 2);
    redlock_keys_not_set(&keys, 3);
    assert_int_equal(keys.to_release, 30);
}

LIFE_TEST(a_release_is_owed_until_the_node_has_answered_it, life_held(&life, false)) {
    assert_int_equal(redlock_lease_owing(&life.core), 0);
    life_release(&life);
    assert_int_equal(redlock_lease_owing(&life.core), 31);
    life_votes(&life, "GDFU");
    assert_int_equal(redlock_lease_owing(&life.core), 28);
}

LIFE_TEST(under_a_guard_a_node_that_was_asked_does_not_count, life_start(&life, 5)) {
    assert_true(redlock_lease_counts_under_guards(&life.core, 1, 29, 29));
    assert_false(redlock_lease_counts_under_guards(&life.core, 1, 2, 0));
    life_votes(&life, "GGG");
    life_extend(&life, TTL_MS);
    assert_true(redlock_lease_counts_under_guards(&life.core, 0, 31, 31)); /* it backs the lease */
    /* But not because of its clock. */
    assert_true(redlock_lease_counts_under_guards(&life.core, 4, 31, 15));
    assert_false(redlock_lease_counts_under_guards(&life.core, 4, 16, 16));
    life_release(&life);
    assert_true(redlock_lease_counts_under_guards(&life.core, 4, 31, 31));
}

LIFE_TEST(a_late_request_is_uncertain_in_a_cleanup, life_start(&life, 3)) {
    redlock_keys_sent(&life.core.keys, REDLOCK_OP_ACQUIRE, 7);
    life_expect(life_votes(&life, "DUD"), ENDED, .cleanup = 7, .uncertain = 2, ACQUIRED(ERR_CONTENDED));
}

TEST(a_parked_acquire_begins_by_its_event_or_its_timer) {
    for (int by_timer = 0; by_timer <= 1; by_timer++) {
        struct life life;
        life_init(&life, 3);
        life.plan.wait_timeout_ms = 1000;
        life_park(&life, 700);
        life_expect(life_park(&life, 50), PARKED, NOTHING);
        assert_int_equal(life_next_ms(&life), 50);
        life_expect(life_timer(life_at(&life, 49)), PARKED, NOTHING);
        life_expect(life_void(&life, 7), PARKED, NOTHING); /* it has no votes */
        life_park(&life, 500);                             /* the sooner one counts */
        assert_int_equal(life_next_ms(&life), 50);
        if (by_timer) {
            life_timer(life_at(&life, 50));
        } else {
            life_begin(&life);
        }
        life_expect(&life, ACQUIRING, SENDS(ACQUIRE, 7, 1));
        life.at_ms += 999; /* the wait counts from now */
        life_expect(life_votes(&life, "DD"), RETRYING, .cleanup = 7);
    }
}
