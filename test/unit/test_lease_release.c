/* Release: to which nodes it goes and what its votes mean (R15), from each state in which a lease
 * can be released. */
#include "life.h"

TEST(what_the_votes_say) {
    static const struct {
        const char *votes;
        int code;
    } table[] = {
        {"GGG", REDLOCK_OK},
        {"DUGGG", REDLOCK_OK},
        {"DDD", REDLOCK_ERR_LOST},
        {"GDFDD", REDLOCK_ERR_LOST},
        {"UUDDD", REDLOCK_ERR_LOST},
        {"GDFDU", REDLOCK_ERR_NO_QUORUM}, /* with the two silent nodes it may have been three */
        {"GGDFD", REDLOCK_ERR_NO_QUORUM},
        {"GGUFD", REDLOCK_ERR_NO_QUORUM},
        {"GGUFU", REDLOCK_ERR_NO_QUORUM},
        {"FUGDU", REDLOCK_ERR_NO_QUORUM},
        {"UUUUU", REDLOCK_ERR_NO_QUORUM},
        {"FFFFF", REDLOCK_ERR_NO_QUORUM},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct life life;
        life_held(&life, false);
        life_expect(life_release(life_at(&life, 500)), RELEASING, SENDS(RELEASE, 31, 2));
        /* At once: the caller has given up the lease. */
        assert_int_equal(life_held_until_ms(&life), -1);
        assert_int_equal(life_next_ms(&life), -1);
        life_expect(life_votes(&life, table[i].votes), ENDED, .released = true, .released_code = table[i].code);
        assert_is(redlock_lease_extend_check(&life.core, T0), REDLOCK_ERR_LOST);
        assert_int_equal(life_next_ms(&life), -1);
        life_expect(life_refuse(&life, 31), ENDED, NOTHING); /* late votes, if any */
        life_expect(life_release(&life), ENDED, NOTHING);
    }
}

LIFE_TEST(nodes_without_the_key_are_not_asked_and_have_not_answered, life_start(&life, 5)) {
    life_refuse(&life, 3);
    life_votes(&life, "..GGG");
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 28, 2));
    /* three were asked, and one has lost the key */
    life_expect(life_vote(&life, 2, D), ENDED, RELEASED(ERR_LOST));
    life_start(&life, 5);
    life_refuse(&life, 3);
    life_votes(&life, "..GGG");
    life_release(&life);
    life_expect(life_vote(&life, 4, U), RELEASING, NOTHING); /* it may still turn out to be lost */
    life_expect(life_votes(&life, "..GG."), ENDED, RELEASED(ERR_NO_QUORUM));
}

LIFE_TEST(all_nodes_refusing_is_no_quorum, life_held(&life, false)) {
    life_release(&life);
    life_expect(life_refuse(&life, 31), ENDED, RELEASED(ERR_NO_QUORUM));
}

LIFE_TEST(an_adopted_lease_is_released_everywhere, life_init(&life, 3)) {
    life_adopt(&life);
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 7, 1));
    life_expect(life_votes(&life, "DGG"), ENDED, RELEASED(OK));
}

LIFE_TEST(a_release_replaces_an_extend, life_held(&life, false)) {
    life_extend(&life, TTL_MS);
    life_votes(&life, "GG");
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 31, 3), EXTENDED(ERR_CANCELLED));
    life_expect(life_stale(&life, 2, G, 2), RELEASING, NOTHING);
    life_expect(life_votes(&life, "GGG"), ENDED, RELEASED(OK));
    life_init(&life, 3); /* also for an adopted lease */
    life_adopt(&life);
    life_extend(&life, TTL_MS);
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 7, 2), EXTENDED(ERR_CANCELLED));
}

LIFE_TEST(a_release_replaces_a_renewal_without_a_callback, life_held(&life, true)) {
    life_expect(life_timer(life_at(&life, 3334)), EXTENDING, SENDS(EXTEND, 31, 2));
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 31, 3));
}

LIFE_TEST(the_deadline_does_not_end_a_release, life_held(&life, false)) {
    life_release(&life);
    life_expect(life_timer(life_at(&life, END_MS)), RELEASING, NOTHING);
    life_expect(life_votes(&life, "GGG"), ENDED, RELEASED(OK));
    life_held(&life, false); /* asked for late, before the timer: the votes decide */
    life_expect(life_release(life_at(&life, END_MS + 5)), RELEASING, SENDS(RELEASE, 31, 2));
    life_expect(life_votes(&life, "DDD"), ENDED, RELEASED(ERR_LOST));
}

LIFE_TEST(a_lost_lease_is_released_as_lost, life_held(&life, false)) {
    life_timer(life_at(&life, END_MS));
    life_expect(life_release(&life), ENDED, RELEASED(ERR_LOST)); /* its cleanup is already done */
}

LIFE_TEST(a_released_lease_is_not_extended, life_held(&life, false)) {
    life_release(&life);
    assert_is(redlock_lease_extend_check(&life.core, T0), REDLOCK_ERR_LOST);
    life_expect(life_extend(&life, TTL_MS), RELEASING, EXTENDED(ERR_LOST));
    life_expect(life_cancel(&life, REDLOCK_ERR_CANCELLED), RELEASING, NOTHING);
}
