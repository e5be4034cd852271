/* Which nodes may have the key: with fewer than a quorum of them, the lease is LOST at once. */
#include "life.h"

/* A lease that is held, with these votes on the acquire, of which the first are GRANTED. */
static void hold(struct life *life, unsigned n, const char *votes) {
    life_init(life, n);
    life->plan.heal = true;
    life_begin(life);
    for (unsigned i = 0; i < n; i++) {
        life_vote(life, i, votes[i] == 'G' ? G : votes[i] == 'F' ? F : U);
    }
    assert_is(life->core.state, REDLOCK_LEASE_HELD);
}

/* Two nodes were down during the acquire and never had the key. If one of the other three loses it,
 * the lease is lost. */
TEST(a_lease_that_too_few_nodes_can_keep_is_lost_at_once) {
    for (int late = 0; late <= 1; late++) {
        struct life life;
        hold(&life, 5, late ? "GGGUF" : "GGGFF");
        life_extend(life_at(&life, 1000), TTL_MS);
        life_vote(&life, 0, D);
        if (late) {
            life_expect(&life, EXTENDING, NOTHING); /* the SET that timed out may have run */
            life_vote(&life, 3, D);
        }
        life_expect(&life, LOST, .cleanup = late ? 15 : 7, .lost = true, .lost_by_votes = true, EXTENDED(ERR_LOST));
        assert_int_equal(life_held_until_ms(&life), -1);
    }
}

LIFE_TEST(a_lease_that_a_quorum_may_keep_is_not_lost, hold(&life, 5, "GGGUU")) {
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, "DGFF"), HELD, EXTENDED(ERR_NO_QUORUM));
    life_extend(&life, TTL_MS);
    /* A node whose answer never came had set it. */
    life_votes(&life, "FGG"), life_vote(&life, 4, G);
    life_expect(&life, HELD, EXTENDED(OK));
    life_extend(&life, TTL_MS);
    life_expect(life_vote(&life, 1, D), EXTENDING, NOTHING);
    life_expect(life_vote(&life, 2, D), LOST, .cleanup = 31, .lost = true, .lost_by_votes = true, EXTENDED(ERR_LOST));
}

/* A deadline does not stand on a node that has said that its key is gone, also if it said so in a
 * round before. */
TEST(a_deadline_stands_on_no_node_that_has_lost_the_key) {
    struct life life;
    hold(&life, 5, "GGGUU");
    const int64_t until_ms = life_held_until_ms(&life);
    life.at_ms = 1000;
    life_extend(&life, TTL_MS);
    life_votes(&life, "DFF");
    life_expect(&life, HELD, EXTENDED(ERR_NO_QUORUM));
    assert_int_equal(life_held_until_ms(&life), until_ms);
    life.at_ms = 2000;
    life_extend(&life, 1000);
    life_votes(&life, ".GGG");
    life_expect(&life, HELD, EXTENDED(OK));
    assert_int_equal(life_held_until_ms(&life), 2988);
}

/* A late vote shows the loss after the extension was given up. */
LIFE_TEST(a_loss_shows_after_a_failed_extension, hold(&life, 3, "GGF")) {
    life_extend(&life, TTL_MS);
    life_expect(life_votes(&life, ".FF"), HELD, EXTENDED(ERR_NO_QUORUM));
    life_expect(life_vote(&life, 0, D), LOST, .cleanup = 3, .lost = true, .lost_by_votes = true);
}

TEST(a_healed_node_keeps_it_unless_the_heal_failed) {
    for (int failed = 0; failed <= 1; failed++) {
        struct life life;
        hold(&life, 3, "GGF");
        life_expect(life_timer(life_at(&life, 1000)), HELD, .heal = 4);
        if (failed) {
            redlock_keys_heal_answered(&life.core.keys, 2, REDLOCK_VOTE_FAILED);
        }
        life_extend(&life, TTL_MS);
        life_vote(&life, 0, D);
        if (!failed) {
            life_expect(&life, EXTENDING, NOTHING);
            life_vote(&life, 2, D);
        }
        life_expect(&life, LOST, .cleanup = 7, .lost = true, .lost_by_votes = true, EXTENDED(ERR_LOST));
    }
}

/* A jump may have ended the key there, but nothing shows that it has. */
LIFE_TEST(a_healed_node_whose_clock_jumped_may_keep_it, hold(&life, 3, "GGF")) {
    life_expect(life_timer(life_at(&life, 1000)), HELD, .heal = 4);
    life_void(&life, 4);
    life_extend(&life, TTL_MS);
    life_expect(life_vote(&life, 0, D), EXTENDING, NOTHING);
}

/* The first three of five grant it, with counters that are not below the proposal. The others vote
 * this, unless it is 0. */
static void begin_fencing(struct life *life, int others) {
    life_init(life, 5);
    life->plan.fencing = true;
    life_begin(life);
    const uint64_t above = life->core.fence.token + 1;
    for (unsigned i = 3; i < 5 && others != 0; i++) {
        life_vote(life, i, others);
    }
    for (unsigned i = 0; i < 3; i++) {
        life_fenced(life, i, G, above);
    }
    assert_is(life->core.state, REDLOCK_LEASE_FENCING);
}

static void end_fencing(struct life *life) {
    for (unsigned i = 0; i < 3; i++) {
        life_fenced(life, i, G, 0);
    }
    assert_is(life->core.state, REDLOCK_LEASE_HELD);
}

/* What the acquire showed still counts after a round of its own for the fencing token. */
LIFE_TEST(a_round_for_the_fencing_token_changes_nothing, begin_fencing(&life, F)) {
    end_fencing(&life);
    life_extend(&life, TTL_MS);
    life_expect(life_vote(&life, 0, D), LOST, .cleanup = 7, .lost = true, .lost_by_votes = true, EXTENDED(ERR_LOST));
}

/* In that round two nodes say that the key is another's. */
LIFE_TEST(a_round_for_the_fencing_token_shows_who_has_no_key, begin_fencing(&life, 0)) {
    life_vote(&life, 3, D);
    /* Its key is ours; only its counter was too high. */
    life_fenced(&life, 4, D, life.core.fence.token);
    end_fencing(&life);
    life_extend(&life, TTL_MS);
    life_expect(life_vote(&life, 0, D), EXTENDING, NOTHING);
    life_expect(life_vote(&life, 1, D), LOST, .cleanup = 31, .lost = true, .lost_by_votes = true, EXTENDED(ERR_LOST));
}

/* The first holder may have healed the nodes that had no key a while ago. */
LIFE_TEST(an_adopted_lease_asks_all_nodes_anew, life_init(&life, 5)) {
    life_adopt(&life);
    life_extend(&life, TTL_MS);
    life_votes(&life, "...DD");
    life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK));
    life_extend(&life, TTL_MS);
    life_expect(life_vote(&life, 0, D), EXTENDING, NOTHING);
    life_expect(life_votes(&life, ".GGG"), HELD, EXTENDED(OK));
}
