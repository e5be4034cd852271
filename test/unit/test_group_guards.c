/* Guards through the public API over a fake env: which callbacks run, what is sent. */
#include "group_kit.h"

/* --- Restart guard --- */

GROUP_TEST(an_acquire_waits_for_the_first_try_of_each_node, five_observed) {
    acquire(NULL, &seen);
    assert_int_equal(fake.sent_count, 0);
    greet_all();
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    grant(0, 2);
    assert_is(seen.code, REDLOCK_OK);
    give_back(seen.lease);
}

/* The others have a node timeout more (R7). */
GROUP_TEST(once_a_quorum_is_there_it_waits_a_node_timeout, five_observed) {
    struct seen late;
    acquire(NULL, &seen);
    greet(0, "a", 100000, reading(0));
    greet(1, "b", 100000, reading(1));
    fake_env_pass_ms(&fake, 700);
    assert_int_equal(fake.sent_count, 0);
    greet(2, "c", 100000, reading(2));
    fake_env_pass_ms(&fake, 20);
    acquire(NULL, &late); /* a quorum is there already */
    fake_env_pass_ms(&fake, 29);
    assert_int_equal(fake.sent_count, 0);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    fake_env_pass_ms(&fake, 20);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 10);
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
    assert_is(seen.code, REDLOCK_ERR_NO_QUORUM);
    assert_is(late.code, REDLOCK_ERR_NO_QUORUM);
}

GROUP_TEST(without_a_quorum_it_waits_for_the_connect_timeout, five_observed) {
    struct seen waits;
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = 300;
    acquire(NULL, &seen);
    acquire(&options, &waits); /* no longer than it may wait */
    greet(0, "a", 100000, reading(0));
    fake_env_pass_ms(&fake, 299);
    assert_int_equal(fake.sent_count, 0);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
    fake_env_pass_ms(&fake, 699);
    assert_int_equal(seen.count, 0);
    fake_env_pass_ms(&fake, 1);
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
    assert_is(seen.code, REDLOCK_ERR_NO_QUORUM);
    assert_is(waits.code, REDLOCK_ERR_NO_QUORUM);
}

GROUP_TEST(an_acquire_that_waits_can_be_cancelled, five_observed) {
    struct seen other = {0};
    redlock_request *request;
    assert_is(redlock_group_acquire(fake.group, "r", NULL, &request, see, &seen), REDLOCK_OK);
    acquire(NULL, &other);
    redlock_request_cancel(request);
    assert_int_equal(seen.count, 0); /* R14 */
    fake_env_turn(&fake);
    assert_is(seen.code, REDLOCK_ERR_CANCELLED);
    greet_all();
    /* Those of the other request. */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
    assert_int_equal(other.count, 1);
}

GROUP_TEST(a_restarted_node_abstains_and_says_for_how_long, five_observed) {
    const char *why;
    greet_all();
    assert_int_equal(redlock_group_node_quarantine_ms(fake.group, 1, &why), 0);
    assert_string_equal(why, "");
    greet(1, "another", 0, reading(0));
    assert_int_equal(redlock_group_node_quarantine_ms(fake.group, 1, &why), 20000 + redlock_drift_ms(20000));
    assert_contains(why, "restarted");
    fake_env_pass_ms(&fake, 5000);
    acquire(NULL, &seen);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 4);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "D.DD");
    assert_is(seen.code, REDLOCK_ERR_CONTENDED);
    assert_is(seen.votes[1], REDLOCK_VOTE_ABSTAINED);
    assert_contains(seen.message, "node1:6379: no vote for 16 s: it restarted, and may have forgotten locks");
    assert_contains(fake.log, "node node1:6379: no vote for 21 s: it restarted");
    assert_int_equal(statistics().quarantines, 1);
}

/* The answer that shows it is a grant only because our own token is at the key
 * (wire/holder_query.h). So that is found out before the guard looks at the answer. */
GROUP_TEST(our_own_token_at_the_key_shows_that_the_run_is_up, five_observed) {
    for (int is_own = 0; is_own <= 1; is_own++) {
        const char *value = "0123456789abcdef0123456789abcdef", *why;
        greet_all();
        fake_env_pass_ms(&fake, 30000);
        acquire(NULL, &seen);
        value = is_own ? fake_env_waiting(&fake, 1, REDLOCK_OP_ACQUIRE)->token : value;
        fake_env_answer_as(&fake, 1, REDLOCK_OP_ACQUIRE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_UNKNOWN,
                                                   .named = REDLOCK_NAMED_AFTER_NIL,
                                                   .holder = value,
                                                   .holder_size = strlen(value)});
        for (unsigned i = 2; i < 5; i++) {
            greet(i, (const char *[]){"c", "d", "e"}[i - 2], 100000, reading(0));
        }
        /* Another run since then. It has been up for no longer than the other was not seen. */
        greet(1, is_own ? "third" : "second", 100000, reading(0));
        const int64_t quarantine_ms = redlock_group_node_quarantine_ms(fake.group, 1, &why);
        assert_int_equal(quarantine_ms, is_own ? 20000 + redlock_drift_ms(20000) : 0);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    }
}

/* Whole seconds, or tenths below 10 s. A node that may not vote yet never has "0 s" left. */
GROUP_TEST(what_is_left_is_rounded_up, five_observed) {
    static const struct {
        int64_t left_ms;
        const char *words;
    } cases[] = {{10001, "for 11 s:"}, {10000, "for 10 s:"}, {9901, "for 10 s:"}, {9900, "for 9.9 s:"},
                 {101, "for 0.2 s:"},  {100, "for 0.1 s:"},  {1, "for 0.1 s:"}};
    const char *why;
    greet_all();
    greet(1, "another", 0, reading(0));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_env_pass_ms(&fake, redlock_group_node_quarantine_ms(fake.group, 1, &why) - (int64_t)cases[i].left_ms);
        acquire(NULL, &seen);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        assert_is(seen.votes[1], REDLOCK_VOTE_ABSTAINED);
        assert_contains(seen.message, cases[i].words);
    }
    fake_env_pass_ms(&fake, 1);
    acquire(NULL, &seen);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_is(seen.votes[1], REDLOCK_VOTE_DENIED);
}

/* Every program meets its nodes for a first time when it starts. That is no warning, and the log
 * says when the nodes may vote. */
GROUP_TEST(a_first_meeting_warns_of_nothing, five_strict) {
    greet(0, "a", 100000, reading(0));
    greet(1, "b", 1, reading(0));
    assert_contains(fake.log, "node node0:6379: no vote for 21 s: met for the first time");
    assert_lacks(fake.log, "it may vote");
    greet(2, "c", 100000, reading(0));
    assert_contains(fake.log, "node node0:6379: it may vote");
    assert_lacks(fake.log, "node node1:6379: it may vote");
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 0);
    greet(2, "another", 1, reading(0));
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
}

/* The third clock confirms those of the two before it. */
GROUP_TEST(each_node_that_may_vote_now_is_named, five_strict) {
    greet(1, "b", 100000, reading(0));
    greet(3, "d", 100000, reading(0));
    assert_lacks(fake.log, "it may vote");
    greet(4, "e", 100000, reading(0));
    assert_contains(fake.log, "node node1:6379: it may vote");
    assert_contains(fake.log, "node node3:6379: it may vote");
    assert_lacks(fake.log, "node node0:6379: it may vote");
}

GROUP_TEST(too_few_voters_are_no_quorum_at_once, five_observed) {
    greet_all();
    greet(0, "x", 0, reading(0));
    greet(1, "y", 0, reading(0));
    greet(2, "z", 0, reading(0));
    acquire(NULL, &seen);
    assert_int_equal(seen.count, 0);
    fake_env_turn(&fake);
    assert_is(seen.code, REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(fake.sent_count, 0);
    assert_non_null(
        strstr(seen.message, "0 of 5 nodes granted it, 3 are needed (node0:6379, node1:6379, node2:6379: no vote"));
    assert_contains(seen.message, "redlock status");
}

GROUP_TEST(a_longer_ttl_than_the_guards_is_refused, five_observed) {
    redlock_acquire_options options = default_options();
    greet_all();
    options.ttl_ms = 15000;
    options.lock_delay_ms = 5001;
    assert_is(redlock_group_acquire(fake.group, "r", &options, NULL, see, &seen), REDLOCK_ERR_INVALID);
    assert_contains(fake.log, "20000 (ttl_max_ms of the guards)");
    options.lock_delay_ms = 5000;
    acquire(&options, &seen);
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->ttl_ms, 20000);
    grant(0, 2);
    assert_is(redlock_extend(seen.lease, 15001, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_extend(seen.lease, 15000, NULL, NULL), REDLOCK_OK);
    redlock_lease *adopted;
    options.lock_delay_ms = 5001;
    assert_is(redlock_group_adopt(fake.group, "r", "t", &options, &adopted), REDLOCK_ERR_INVALID);
}

/* --- Clock guard --- */

GROUP_TEST(clocks_are_read_every_second_until_the_end, five_clocks) {
    greet_all();
    fake_env_pass_ms(&fake, 999);
    assert_int_equal(fake.sent_count, 0);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_TIME), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN); /* no answer says nothing about a clock */
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_TIME), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
    assert_int_equal(statistics().clock_jumps, 0);
}

GROUP_TEST(a_jump_voids_votes_of_leases_held, five_clocks) {
    struct seen other;
    redlock_acquire_options options = watched_options(&seen);
    greet_all();
    acquire(&options, &seen);
    assert_true(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->timed);
    grant(0, 2);
    assert_is(seen.code, REDLOCK_OK);
    fake_env_pass_ms(&fake, 1000);
    grant_with_clock(3, REDLOCK_OP_TIME, reading(120000));
    assert_int_equal(seen.lost, 0); /* the lease does not need that node */
    grant_with_clock(2, REDLOCK_OP_TIME, reading(120000));
    assert_int_equal(seen.lost, 1);
    assert_contains(seen.reason, "node2:6379: no vote for 21 s: its clock jumped forward by 120.0");
    assert_contains(seen.reason, "too few votes are left");
    assert_contains(fake.log, "node node2:6379: its clock jumped forward by 120.0");
    assert_contains(fake.log, "of our CLOCK_BOOTTIME");
    assert_int_equal(statistics().clock_jumps, 2);
    assert_int_equal(statistics().quarantines, 2);
    acquire(NULL, &other); /* both abstain */
    /* Two wait for the first request. */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 3 + 2);
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
}

/* So that a person can compare both with other logs. */
GROUP_TEST(a_jump_is_logged_with_both_clocks, five_clocks) {
    greet_all();
    fake_env_pass_ms(&fake, 2845);
    fake.now_ns += 678000;
    grant_with_clock(2, REDLOCK_OP_TIME, reading(120000));
    assert_contains(fake.log, "node node2:6379: its clock jumped forward by 120.000 s: it says "
                              "1795167160.845678, at 3.845678 of our CLOCK_BOOTTIME; the votes");
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
}

GROUP_TEST(a_vote_with_a_jumped_clock_does_not_count, five_clocks) {
    greet_all();
    acquire(NULL, &seen);
    grant_with_clock(0, REDLOCK_OP_ACQUIRE, reading(30000));
    grant(1, 2);
    assert_int_equal(seen.count, 0);
    grant(3, 3);
    assert_is(seen.code, REDLOCK_OK);
    /* It may have set the key, so it gets a release. */
    assert_is(seen.votes[0], REDLOCK_VOTE_UNKNOWN);
    redlock_release(seen.lease, NULL, NULL);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

/* A node says who it is, and is not ready yet. */
static void greet_jumped(unsigned node) {
    const struct redlock_greeting greeting = {.run_id = "a", .uptime_s = 100000, .clock = reading(120000)};
    redlock_group_node_greeted(fake.group, node, &greeting);
}

/* The first jump ends the round. The second one comes before that is told. */
GROUP_TEST(a_result_is_told_with_the_votes_that_decided_it, five_clocks) {
    greet_all();
    acquire(NULL, &seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "GGFF");
    greet_jumped(0);
    greet_jumped(1);
    assert_int_equal(seen.count, 0); /* R14 */
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_NO_QUORUM);
    assert_is(seen.votes[0], REDLOCK_VOTE_UNKNOWN);
    assert_contains(seen.errors[0], "its clock jumped forward by 120.0");
    assert_is(seen.votes[1], REDLOCK_VOTE_GRANTED);
    assert_string_equal(seen.errors[1], "");
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
}

GROUP_TEST(a_node_whose_clock_jumped_is_not_asked_again_by_source, five_clocks) {
    greet_all();
    fake_env_pass_ms(&fake, 1000);
    acquire(NULL, &seen);
    grant_with_clock(0, REDLOCK_OP_TIME, reading(30000));
    fake_env_answer_no_script(&fake, 0, REDLOCK_OP_ACQUIRE);
    fake_env_answer_no_script(&fake, 1, REDLOCK_OP_ACQUIRE);
    assert_null(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE));
    assert_true(fake_env_waiting(&fake, 1, REDLOCK_OP_ACQUIRE)->by_source);
    grant(1, 3);
    assert_is(seen.code, REDLOCK_OK);
    assert_is(seen.votes[0], REDLOCK_VOTE_FAILED);
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

/* Three nodes grant it and answer with a higher counter. Then the clock of this node jumps, perhaps
 * after the node has raised its counter. */
static void fence_and_jump(unsigned node, bool confirms, struct seen *seen) {
    greet_all();
    const uint64_t higher = acquire_fenced(seen) + 1000000;
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_ACQUIRE,
                           (struct redlock_answer){
                               .vote = REDLOCK_VOTE_GRANTED, .fenced = true, .counter = higher, .clock = reading(0)});
    }
    if (confirms) {
        accept_fence(node, REDLOCK_OP_FENCE);
    }
    assert_int_equal(seen->count, 0);
    fake_env_pass_ms(&fake, 1000);
    grant_with_clock(node, REDLOCK_OP_TIME, reading(120000));
}

/* The counter stays raised, so the vote for the fencing token still counts, and the result shows
 * it. */
GROUP_TEST(a_jump_voids_no_vote_for_a_fencing_token, five_clocks) {
    fence_and_jump(3, true, &seen);
    for (unsigned i = 0; i < 2; i++) {
        accept_fence(i, REDLOCK_OP_FENCE);
    }
    assert_is(seen.code, REDLOCK_OK);
    assert_is(seen.votes[0], REDLOCK_VOTE_GRANTED);
    assert_is(seen.votes[1], REDLOCK_VOTE_GRANTED);
    assert_is(seen.votes[3], REDLOCK_VOTE_GRANTED);
    give_back(seen.lease);
}

GROUP_TEST(a_jump_of_a_node_that_the_lock_needs_ends_the_attempt, five_clocks) {
    for (unsigned confirms = 0; confirms < 2; confirms++) {
        fence_and_jump(2, confirms != 0, &seen);
        assert_is(seen.code, REDLOCK_ERR_NO_QUORUM);
        assert_is(seen.votes[2], REDLOCK_VOTE_UNKNOWN);
        assert_contains(seen.message, "its clock jumped forward by 120.0");
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
        fake_env_close(&fake);
        open_group(state);
    }
}

GROUP_TEST(a_step_back_is_only_logged, five_clocks) {
    greet_all();
    fake_env_pass_ms(&fake, 1000);
    grant_with_clock(0, REDLOCK_OP_TIME, reading(-5000));
    const char *why;
    assert_int_equal(redlock_group_node_quarantine_ms(fake.group, 0, &why), 0);
    assert_contains(fake.log, "node node0:6379: its clock jumped back by 5.0");
    assert_int_equal(statistics().clock_jumps, 0);
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
}

GROUP_TEST(a_node_ahead_of_the_others_abstains, five_clocks) {
    static const char *const run_ids[] = {"a", "b", "c", "d", "e"};
    const char *why;
    for (unsigned i = 0; i < 5; i++) {
        greet(i, run_ids[i], 5, reading(i == 0 ? 7000 : 0));
    }
    assert_true(redlock_group_node_quarantine_ms(fake.group, 0, &why) > 20000);
    assert_contains(why, "its clock is ahead of the other nodes' by 7.0");
}

/* A vote that was lost at time r may back a lease until r + ttl_max. Until then a healed key must
 * not back one, either. */
GROUP_TEST(a_node_in_quarantine_is_healed_after_it, five_observed) {
    redlock_acquire_options options = default_options();
    options.auto_extend = true;
    greet_all();
    greet(4, "another", 0, reading(0));
    acquire(&options, &seen);
    grant(0, 3);
    unsigned heals = 0;
    for (unsigned s = 0; s < 30; s++) {
        heals = fake_env_waiting_count(&fake, REDLOCK_OP_HEAL);
        const char *why;
        const bool may_not_vote = redlock_group_node_quarantine_ms(fake.group, 4, &why) > 0;
        assert_true(!may_not_vote || heals == 0);
        for (unsigned i = 0; i < 4; i++) {
            while (fake_env_waiting(&fake, i, REDLOCK_OP_EXTEND)) {
                fake_env_answer(&fake, i, REDLOCK_OP_EXTEND, REDLOCK_VOTE_GRANTED);
            }
        }
        while (fake_env_waiting(&fake, 4, REDLOCK_OP_EXTEND)) {
            fake_env_answer(&fake, 4, REDLOCK_OP_EXTEND, REDLOCK_VOTE_DENIED);
        }
        fake_env_pass_ms(&fake, 1000);
    }
    assert_true(heals > 0);
    assert_true(redlock_lease_validity_ms(seen.lease) > 0);
    give_back(seen.lease);
}
