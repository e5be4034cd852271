/* What guards notice while requests are under way, through the public API over a fake env: jumps,
 * nodes found ahead, signs of life. */
#include "group_kit.h"

static void see_lost_and_release(redlock_lease *lease, const char *reason, void *data) {
    see_lost(lease, reason, data);
    redlock_release(lease, NULL, NULL); /* while the guard handles the jump */
}

/* Node 0 says its time, which is ahead. The others do not say theirs. */
static void greet_silent(void) {
    const struct redlock_clock_sample silent = {0};
    greet(0, "a", 1000, reading(7000));
    greet(1, "b", 1000, silent);
    greet(2, "c", 1000, silent);
}

static void acquire_watched(struct seen *seen) {
    redlock_acquire_options options = watched_options(seen);
    options.on_lost = see_lost_and_release;
    acquire(&options, seen);
}

static void finish(struct seen *seen) {
    assert_is(seen->code, REDLOCK_OK);
    give_back(seen->lease);
}

/* Too few clocks are known to say which is right, so no node may vote yet. */
GROUP_TEST(nodes_whose_clocks_are_not_confirmed_abstain, three_clocks) {
    const char *why;
    greet_silent();
    acquire_watched(&seen);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
    fake_env_turn(&fake);
    assert_is(seen.code, REDLOCK_ERR_NO_QUORUM);
    assert_true(redlock_group_node_quarantine_ms(fake.group, 1, &why) > 20000);
    assert_string_equal(why, "its clock is not confirmed by a quorum of nodes yet");
    assert_int_equal(statistics().quarantines, 0); /* a first meeting is no event */
    fake_env_pass_ms(&fake, 1000);
    grant_with_clock(1, REDLOCK_OP_TIME, reading(0));
    assert_int_equal(statistics().quarantines, 1); /* node 0 is 7 s ahead of it */
    assert_int_equal(redlock_group_node_quarantine_ms(fake.group, 1, &why), 0);
    grant_with_clock(2, REDLOCK_OP_TIME, reading(0));
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
    acquire_watched(&seen);
    assert_null(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE));
    grant(1, 2);
    finish(&seen);
}

/* An extension of an adopted lease asks all nodes. A vote on it may show which node is ahead. */
GROUP_TEST(a_node_found_ahead_loses_its_vote, three_clocks) {
    redlock_lease *lease;
    greet_silent();
    assert_is(redlock_group_adopt(fake.group, "r", "token", NULL, &lease), REDLOCK_OK);
    assert_is(redlock_extend(lease, 10000, see, &seen), REDLOCK_OK);
    grant_with_clock(0, REDLOCK_OP_EXTEND, reading(7000));
    grant_with_clock(1, REDLOCK_OP_EXTEND, reading(0));
    assert_int_equal(seen.count, 0); /* one vote */
    assert_non_null(
        strstr(fake.log, "node node0:6379: no vote for 21 s: its clock is ahead of the other nodes' by 7.0"));
    grant_with_clock(2, REDLOCK_OP_EXTEND, reading(0));
    assert_is(seen.code, REDLOCK_OK);
    assert_int_equal(statistics().quarantines, 1);
    assert_int_equal(statistics().clock_jumps, 0);
    give_back(lease);
}

GROUP_TEST(a_jump_seen_at_a_greeting_voids_votes, three_clocks) {
    greet_all();
    acquire_watched(&seen);
    grant(0, 1);
    assert_is(seen.code, REDLOCK_OK);
    fake_env_pass_ms(&fake, 500);
    greet(1, "b", 100000, reading(120000));
    assert_int_equal(seen.lost, 1);
    assert_int_equal(statistics().clock_jumps, 1);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_int_equal(statistics().leases_held, 0);
}

/* What a node has confirmed, no clock takes back. */
GROUP_TEST(a_jump_changes_no_vote_for_a_release, five_clocks) {
    struct seen released = {0};
    greet_all();
    acquire(NULL, &seen);
    grant(0, 4);
    assert_is(redlock_release(seen.lease, see, &released), REDLOCK_OK);
    fake_env_answer(&fake, 0, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    greet(0, "a", 100000, reading(120000));
    fake_env_answer(&fake, 1, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    fake_env_answer(&fake, 2, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    assert_seen(released, 1, REDLOCK_OK);
    assert_is(released.votes[0], REDLOCK_VOTE_GRANTED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

/* A lease keeps its vote at a node that restarts; only acquires must not count the node. */
GROUP_TEST(a_restart_voids_no_vote, three_observed) {
    greet_all();
    acquire_watched(&seen);
    grant(0, 1);
    assert_is(seen.code, REDLOCK_OK);
    greet(1, "another", 1, reading(0));
    assert_int_equal(statistics().quarantines, 1);
    assert_int_equal(seen.lost, 0);
    assert_true(redlock_lease_validity_ms(seen.lease) > 0);
    finish(&seen);
}

/* The acquire has no vote yet, and begins as planned. */
GROUP_TEST(a_jump_does_not_delay_an_acquire_that_waits, three_clocks) {
    greet(0, "a", 1000, reading(0));
    acquire_watched(&seen);
    greet(0, "a", 1000, reading(120000));
    assert_int_equal(statistics().clock_jumps, 1);
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 2);
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
    assert_is(seen.code, REDLOCK_ERR_NO_QUORUM);
}

/* A reading is under way that no node answers. */
GROUP_TEST(a_close_ends_the_readings, three_clocks) {
    unsigned drained = 0;
    greet_all();
    fake_env_pass_ms(&fake, 1950); /* the next reading is due while the close waits */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_TIME), 3);
    redlock_group_drain(fake.group, count_drained, &drained);
    fake_env_pass_ms(&fake, 2 * 50);
    assert_int_equal(drained, 0);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(drained, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_TIME), 3);
}

/* An answer shows that a run was up at that time; silence does not. */
GROUP_TEST(an_answer_shows_that_the_run_is_up, three_observed) {
    const char *why;
    greet_all();
    fake_env_pass_ms(&fake, 1000000);
    acquire_watched(&seen);
    /* Only the clock guard asks for the time. */
    assert_false(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->timed);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "UD");
    grant_with_clock(2, REDLOCK_OP_ACQUIRE, (struct redlock_clock_sample){0});
    assert_int_equal(seen.count, 1);
    fake_env_pass_ms(&fake, 10000);
    for (unsigned i = 0; i < 3; i++) {
        greet(i, "another", 3600, reading(0));
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(redlock_group_node_quarantine_ms(fake.group, i, &why), i == 0 ? 0 : 20202);
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

/* An extension that finds its key counts: a quarantine is about keys that a node forgot. */
GROUP_TEST(a_node_in_quarantine_takes_extensions, three_observed) {
    struct seen extended = {0};
    const char *why;
    greet_all();
    acquire_watched(&seen);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(seen.code, REDLOCK_OK);
    greet(1, "another", 1, reading(0));
    assert_int_equal(redlock_group_node_quarantine_ms(fake.group, 1, &why), 20202);
    assert_is(redlock_extend(seen.lease, 10000, see, &extended), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_EXTEND, "UGG");
    assert_seen(extended, 1, REDLOCK_OK);
    finish(&seen);
}

/* No clock jumped, so an extension counts every node, also the one that did not grant the lease. */
GROUP_TEST(a_node_that_was_silent_is_counted_by_an_extension, three_clocks) {
    for (unsigned silent = 0; silent < 3; silent++) {
        struct seen extended = {0};
        const unsigned next = (silent + 1) % 3, last = (silent + 2) % 3;
        greet_all();
        acquire_watched(&seen);
        fake_env_answer(&fake, silent, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_UNKNOWN);
        grant(next, next);
        grant(last, last);
        assert_is(seen.code, REDLOCK_OK);
        assert_is(redlock_extend(seen.lease, 5000, see, &extended), REDLOCK_OK);
        fake_env_answer(&fake, silent, REDLOCK_OP_EXTEND, REDLOCK_VOTE_GRANTED);
        fake_env_answer(&fake, last, REDLOCK_OP_EXTEND, REDLOCK_VOTE_UNKNOWN);
        fake_env_answer(&fake, next, REDLOCK_OP_EXTEND, REDLOCK_VOTE_GRANTED);
        assert_seen(extended, 1, REDLOCK_OK);
        finish(&seen);
    }
}

/* An extension may not count a key whose vote was refused: docs/protocols.md, "Clock guard". */
GROUP_TEST(a_key_set_after_a_jump_is_not_counted_by_an_extension, three_clocks) {
    struct seen extended = {0};
    greet_all();
    acquire_watched(&seen);
    grant_with_clock(0, REDLOCK_OP_ACQUIRE, reading(30000));
    grant(1, 2);
    assert_is(seen.code, REDLOCK_OK);
    assert_is(redlock_extend(seen.lease, 5000, see, &extended), REDLOCK_OK);
    const struct redlock_answer granted = {.vote = REDLOCK_VOTE_GRANTED, .clock = reading(30000)};
    fake_env_answer_as(&fake, 0, REDLOCK_OP_EXTEND, granted);
    fake_env_answer_as(&fake, 2, REDLOCK_OP_EXTEND, (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED});
    assert_int_equal(extended.count, 0);
    fake_env_answer(&fake, 1, REDLOCK_OP_EXTEND, REDLOCK_VOTE_UNKNOWN);
    assert_is(extended.code, REDLOCK_ERR_NO_QUORUM);
    finish(&seen);
}
