/* Guards through the public API, over a fake env: who is told what, what is sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/validity.h"
#include "fake_env.h"

#define NODES 5

static struct fake_env fake;

struct seen {
    unsigned count, lost;
    int code;
    redlock_lease *lease;
    redlock_vote_kind votes[NODES];
    char message[1024], reason[1024];
};

static void see(const redlock_result *result, void *data) {
    struct seen *seen = data;
    seen->count++;
    seen->code = redlock_result_code(result);
    seen->lease = redlock_result_lease(result);
    redlock_result_message(result, seen->message, sizeof seen->message);
    for (size_t i = 0; i < NODES; i++) {
        redlock_vote vote = {.size = sizeof vote};
        assert_int_equal(redlock_result_vote(result, i, &vote), REDLOCK_OK);
        seen->votes[i] = vote.kind;
    }
}

static void see_lost(redlock_lease *lease, const char *reason, void *data) {
    struct seen *seen = data;
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    assert_true(strlen(reason) < sizeof seen->reason);
    strcpy(seen->reason, reason);
    seen->lost++;
}

static redlock_statistics statistics(void) {
    redlock_statistics now = {.size = sizeof now};
    assert_int_equal(redlock_group_statistics(fake.group, &now), REDLOCK_OK);
    return now;
}

static int close_all(void **state) {
    (void)state;
    fake_env_close(&fake);
    return 0;
}

/* The server's clock is ahead of ours by this much, and read without delay. */
static struct redlock_clock_sample reading(int64_t ahead_ms) {
    return (struct redlock_clock_sample){.sent_ns = fake.now_ns - REDLOCK_NS_PER_MS,
                                         .read_ns = fake.now_ns,
                                         .server_us = 1795167037000000 + fake.now_ns / 1000 + ahead_ms * 1000};
}

static void greet(unsigned node, const char *run_id, int64_t uptime_s) {
    const struct redlock_greeting greeting = {.run_id = run_id, .uptime_s = uptime_s, .clock = reading(0)};
    redlock_group_node_greeted(fake.group, node, &greeting);
    redlock_group_ready_changed(fake.group, node, true);
}

static void greet_all(void) {
    static const char *const ids[NODES] = {"a", "b", "c", "d", "e"};
    for (unsigned i = 0; i < NODES; i++) {
        greet(i, ids[i], 100000);
    }
}

static int open_observed(void **state) {
    (void)state;
    fake_env_open_as(
        &fake, NODES,
        (struct redlock_group_config){.restart_guard = REDLOCK_RESTART_GUARD_OBSERVED, .ttl_max_ms = 20000});
    return 0;
}

static int open_strict(void **state) {
    (void)state;
    fake_env_open_as(&fake, NODES,
                     (struct redlock_group_config){.restart_guard = REDLOCK_RESTART_GUARD_STRICT, .ttl_max_ms = 20000});
    return 0;
}

static int open_clock(void **state) {
    (void)state;
    fake_env_open_as(&fake, NODES, (struct redlock_group_config){.clock_guard = true, .ttl_max_ms = 20000});
    return 0;
}

static void acquire(const redlock_acquire_options *options, struct seen *seen) {
    *seen = (struct seen){0};
    assert_int_equal(redlock_group_acquire(fake.group, "r", options, NULL, see, seen), REDLOCK_OK);
}

static void grant(unsigned first, unsigned last) {
    for (unsigned i = first; i <= last; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_ACQUIRE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .clock = reading(0)});
    }
}

/* --- Restart guard --- */

static void an_acquire_waits_for_nodes_that_have_not_settled(void **state) {
    (void)state;
    struct seen seen;
    acquire(NULL, &seen);
    assert_int_equal(fake.sent_count, 0);
    greet_all();
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    grant(0, 2);
    assert_int_equal(seen.code, REDLOCK_OK);
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static void it_waits_a_node_timeout_at_most(void **state) {
    (void)state;
    struct seen seen;
    acquire(NULL, &seen);
    greet(0, "a", 100000);
    fake_env_pass_ms(&fake, 49);
    assert_int_equal(fake.sent_count, 0);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
    assert_int_equal(seen.code, REDLOCK_ERR_NO_QUORUM);
}

static void what_waits_can_be_cancelled_or_closed(void **state) {
    (void)state;
    struct seen seen = {0}, other = {0};
    redlock_request *request;
    assert_int_equal(redlock_group_acquire(fake.group, "r", NULL, &request, see, &seen), REDLOCK_OK);
    acquire(NULL, &other);
    redlock_request_cancel(request);
    assert_int_equal(seen.count, 0); /* R14 */
    fake_env_turn(&fake);
    assert_int_equal(seen.code, REDLOCK_ERR_CANCELLED);
    greet_all();
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5); /* the other one's */
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
    assert_int_equal(other.count, 1);
}

static void a_restarted_node_abstains_and_says_for_how_long(void **state) {
    (void)state;
    struct seen seen;
    const char *why;
    greet_all();
    assert_int_equal(redlock_group_node_quarantine_ms(fake.group, 1, &why), 0);
    assert_string_equal(why, "");
    greet(1, "another", 0);
    assert_int_equal(redlock_group_node_quarantine_ms(fake.group, 1, &why), 20000 + redlock_drift_ms(20000));
    assert_non_null(strstr(why, "restarted"));
    fake_env_pass_ms(&fake, 5000);
    acquire(NULL, &seen);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 4);
    fake_env_answer(&fake, 0, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    fake_env_answer(&fake, 2, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    fake_env_answer(&fake, 3, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    assert_int_equal(seen.code, REDLOCK_ERR_CONTENDED);
    assert_int_equal(seen.votes[1], REDLOCK_VOTE_ABSTAINED);
    assert_non_null(strstr(seen.message, "node1:6379: no vote for 16 s: it restarted, and may have forgotten locks"));
    assert_non_null(strstr(fake.log, "node node1:6379: no vote for 21 s: it restarted"));
    assert_int_equal(statistics().quarantines, 1);
}

/* Seconds, and tenths below ten of them: a node that may not vote yet is never said to have 0 s
 * left. */
static void what_is_left_is_rounded_up(void **state) {
    static const struct {
        int64_t left_ms;
        const char *words;
    } cases[] = {{10001, "for 11 s:"}, {10000, "for 10 s:"}, {9901, "for 10 s:"}, {9900, "for 9.9 s:"},
                 {101, "for 0.2 s:"},  {100, "for 0.1 s:"},  {1, "for 0.1 s:"}};
    struct seen seen;
    const char *why;
    (void)state;
    greet_all();
    greet(1, "another", 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_env_pass_ms(&fake, redlock_group_node_quarantine_ms(fake.group, 1, &why) - (int64_t)cases[i].left_ms);
        acquire(NULL, &seen);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        assert_int_equal(seen.votes[1], REDLOCK_VOTE_ABSTAINED);
        assert_non_null(strstr(seen.message, cases[i].words));
    }
    fake_env_pass_ms(&fake, 1);
    acquire(NULL, &seen);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_int_equal(seen.votes[1], REDLOCK_VOTE_DENIED);
}

/* Each start of a program has first meetings: they warn of nothing, and the log says when they are over. */
static void a_first_meeting_warns_of_nothing(void **state) {
    (void)state;
    greet(0, "a", 100000);
    greet(1, "b", 1);
    assert_non_null(strstr(fake.log, "node node0:6379: no vote for 21 s: met for the first time"));
    assert_null(strstr(fake.log, "it may vote"));
    greet(2, "c", 100000);
    assert_non_null(strstr(fake.log, "node node0:6379: it may vote"));
    assert_null(strstr(fake.log, "node node1:6379: it may vote"));
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 0);
    greet(2, "another", 1);
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
}

/* The third clock confirms those of the two before it. */
static void each_node_that_may_vote_now_is_named(void **state) {
    (void)state;
    greet(1, "b", 100000);
    greet(3, "d", 100000);
    assert_null(strstr(fake.log, "it may vote"));
    greet(4, "e", 100000);
    assert_non_null(strstr(fake.log, "node node1:6379: it may vote"));
    assert_non_null(strstr(fake.log, "node node3:6379: it may vote"));
    assert_null(strstr(fake.log, "node node0:6379: it may vote"));
}

static void too_few_voters_are_no_quorum_at_once(void **state) {
    (void)state;
    struct seen seen;
    greet_all();
    greet(0, "x", 0);
    greet(1, "y", 0);
    greet(2, "z", 0);
    acquire(NULL, &seen);
    assert_int_equal(seen.count, 0);
    fake_env_turn(&fake);
    assert_int_equal(seen.code, REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(fake.sent_count, 0);
    assert_non_null(
        strstr(seen.message, "0 of 5 nodes granted it, 3 are needed (node0:6379, node1:6379, node2:6379: no vote"));
    assert_non_null(strstr(seen.message, "redlock status"));
}

static void a_longer_ttl_than_the_guards_is_refused(void **state) {
    (void)state;
    struct seen seen;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    greet_all();
    options.ttl_ms = 15000;
    options.lock_delay_ms = 5001;
    assert_int_equal(redlock_group_acquire(fake.group, "r", &options, NULL, see, &seen), REDLOCK_ERR_INVALID);
    assert_non_null(strstr(fake.log, "ttl_max_ms, 20000"));
    options.lock_delay_ms = 5000;
    acquire(&options, &seen);
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->ttl_ms, 20000);
    grant(0, 2);
    assert_int_equal(redlock_extend(seen.lease, 15001, NULL, NULL), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_extend(seen.lease, 15000, NULL, NULL), REDLOCK_OK);
    redlock_lease *adopted;
    options.lock_delay_ms = 5001;
    assert_int_equal(redlock_group_adopt(fake.group, "r", "t", &options, &adopted), REDLOCK_ERR_INVALID);
}

/* --- Clock guard --- */

static void clocks_are_read_every_second_until_the_end(void **state) {
    (void)state;
    greet_all();
    fake_env_pass_ms(&fake, 999);
    assert_int_equal(fake.sent_count, 0);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_TIME), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN); /* silence tells nothing */
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_TIME), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
    assert_int_equal(statistics().clock_jumps, 0);
}

static void a_jump_voids_votes_of_leases_held(void **state) {
    (void)state;
    struct seen seen, other;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.on_lost = see_lost;
    options.lost_data = &seen;
    greet_all();
    acquire(&options, &seen);
    assert_true(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->timed);
    grant(0, 2);
    assert_int_equal(seen.code, REDLOCK_OK);
    fake_env_pass_ms(&fake, 1000);
    fake_env_answer_as(&fake, 3, REDLOCK_OP_TIME,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .clock = reading(120000)});
    assert_int_equal(seen.lost, 0); /* nobody stands on that one */
    fake_env_answer_as(&fake, 2, REDLOCK_OP_TIME,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .clock = reading(120000)});
    assert_int_equal(seen.lost, 1);
    assert_non_null(strstr(seen.reason, "node2:6379: no vote for 21 s: its clock jumped forward by 120.0"));
    assert_non_null(strstr(seen.reason, "too few votes are left"));
    assert_non_null(strstr(fake.log, "node node2:6379: its clock jumped forward by 120.0"));
    assert_non_null(strstr(fake.log, "of our CLOCK_BOOTTIME"));
    assert_int_equal(statistics().clock_jumps, 2);
    assert_int_equal(statistics().quarantines, 2);
    acquire(NULL, &other);                                                      /* both abstain */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 3 + 2); /* two of the first are pending still */
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
}

/* Who looks into it can compare the two with other logs. */
static void a_jump_is_logged_with_both_clocks(void **state) {
    (void)state;
    greet_all();
    fake_env_pass_ms(&fake, 2845);
    fake.now_ns += 678000;
    fake_env_answer_as(&fake, 2, REDLOCK_OP_TIME,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .clock = reading(120000)});
    assert_non_null(strstr(fake.log, "node node2:6379: its clock jumped forward by 120.000 s: it says "
                                     "1795167160.845678, at 3.845678 of our CLOCK_BOOTTIME; the votes"));
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
}

static void a_jump_told_with_the_vote_does_not_count_it(void **state) {
    (void)state;
    struct seen seen;
    greet_all();
    acquire(NULL, &seen);
    fake_env_answer_as(&fake, 0, REDLOCK_OP_ACQUIRE,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .clock = reading(30000)});
    grant(1, 2);
    assert_int_equal(seen.count, 0);
    grant(3, 3);
    assert_int_equal(seen.code, REDLOCK_OK);
    assert_int_equal(seen.votes[0], REDLOCK_VOTE_UNKNOWN); /* it may have set the key: to be released */
    redlock_release(seen.lease, NULL, NULL);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

/* Three nodes grant it and tell of a higher counter. Then this one's clock jumps, perhaps after it
 * raised its counter. */
static void fence_and_jump(unsigned node, bool confirms, struct seen *seen) {
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.fencing = true;
    greet_all();
    acquire(&options, seen);
    const uint64_t higher = fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->fence + 1000000;
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_ACQUIRE,
                           (struct redlock_answer){
                               .vote = REDLOCK_VOTE_GRANTED, .fenced = true, .counter = higher, .clock = reading(0)});
    }
    if (confirms) {
        fake_env_answer_as(&fake, node, REDLOCK_OP_FENCE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .fenced = true, .accepted = true});
    }
    assert_int_equal(seen->count, 0);
    fake_env_pass_ms(&fake, 1000);
    fake_env_answer_as(&fake, node, REDLOCK_OP_TIME,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .clock = reading(120000)});
}

/* The counter that it raised stays raised: its vote for the fencing token is told as it was
 * counted. */
static void a_jump_voids_no_vote_for_a_fencing_token(void **state) {
    (void)state;
    struct seen seen;
    fence_and_jump(3, true, &seen);
    for (unsigned i = 0; i < 2; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_FENCE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .fenced = true, .accepted = true});
    }
    assert_int_equal(seen.code, REDLOCK_OK);
    assert_int_equal(seen.votes[0], REDLOCK_VOTE_GRANTED);
    assert_int_equal(seen.votes[1], REDLOCK_VOTE_GRANTED);
    assert_int_equal(seen.votes[3], REDLOCK_VOTE_GRANTED);
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static void a_jump_of_a_node_that_the_lock_needs_ends_the_attempt(void **state) {
    (void)state;
    for (unsigned confirms = 0; confirms < 2; confirms++) {
        struct seen seen;
        fence_and_jump(2, confirms != 0, &seen);
        assert_int_equal(seen.code, REDLOCK_ERR_NO_QUORUM);
        assert_int_equal(seen.votes[2], REDLOCK_VOTE_UNKNOWN);
        assert_non_null(strstr(seen.message, "its clock jumped forward by 120.0"));
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
        fake_env_close(&fake);
        open_clock(state);
    }
}

static void a_step_back_is_only_logged(void **state) {
    (void)state;
    greet_all();
    fake_env_pass_ms(&fake, 1000);
    fake_env_answer_as(&fake, 0, REDLOCK_OP_TIME,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .clock = reading(-5000)});
    const char *why;
    assert_int_equal(redlock_group_node_quarantine_ms(fake.group, 0, &why), 0);
    assert_non_null(strstr(fake.log, "node node0:6379: its clock jumped back by 5.0"));
    assert_int_equal(statistics().clock_jumps, 0);
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
}

static void a_node_ahead_of_the_others_abstains(void **state) {
    (void)state;
    static const char *const ids[NODES] = {"a", "b", "c", "d", "e"};
    const char *why;
    for (unsigned i = 0; i < NODES; i++) {
        const struct redlock_greeting greeting = {.run_id = ids[i], .uptime_s = 5, .clock = reading(i == 0 ? 7000 : 0)};
        redlock_group_node_greeted(fake.group, i, &greeting);
        redlock_group_ready_changed(fake.group, i, true);
    }
    assert_true(redlock_group_node_quarantine_ms(fake.group, 0, &why) > 20000);
    assert_non_null(strstr(why, "its clock is ahead of the other nodes' by 7.0"));
}

/* "Votes lost at time r support leases that end by r + ttl_max": until then a healed key must not be one, either. */
static void a_node_in_quarantine_is_healed_after_it(void **state) {
    (void)state;
    struct seen seen;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.auto_extend = true;
    greet_all();
    greet(4, "another", 0);
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
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_acquire_waits_for_nodes_that_have_not_settled, open_observed, close_all),
        cmocka_unit_test_setup_teardown(it_waits_a_node_timeout_at_most, open_observed, close_all),
        cmocka_unit_test_setup_teardown(what_waits_can_be_cancelled_or_closed, open_observed, close_all),
        cmocka_unit_test_setup_teardown(a_restarted_node_abstains_and_says_for_how_long, open_observed, close_all),
        cmocka_unit_test_setup_teardown(what_is_left_is_rounded_up, open_observed, close_all),
        cmocka_unit_test_setup_teardown(a_first_meeting_warns_of_nothing, open_strict, close_all),
        cmocka_unit_test_setup_teardown(each_node_that_may_vote_now_is_named, open_strict, close_all),
        cmocka_unit_test_setup_teardown(too_few_voters_are_no_quorum_at_once, open_observed, close_all),
        cmocka_unit_test_setup_teardown(a_longer_ttl_than_the_guards_is_refused, open_observed, close_all),
        cmocka_unit_test_setup_teardown(clocks_are_read_every_second_until_the_end, open_clock, close_all),
        cmocka_unit_test_setup_teardown(a_jump_voids_votes_of_leases_held, open_clock, close_all),
        cmocka_unit_test_setup_teardown(a_jump_is_logged_with_both_clocks, open_clock, close_all),
        cmocka_unit_test_setup_teardown(a_jump_told_with_the_vote_does_not_count_it, open_clock, close_all),
        cmocka_unit_test_setup_teardown(a_jump_voids_no_vote_for_a_fencing_token, open_clock, close_all),
        cmocka_unit_test_setup_teardown(a_jump_of_a_node_that_the_lock_needs_ends_the_attempt, open_clock, close_all),
        cmocka_unit_test_setup_teardown(a_step_back_is_only_logged, open_clock, close_all),
        cmocka_unit_test_setup_teardown(a_node_ahead_of_the_others_abstains, open_clock, close_all),
        cmocka_unit_test_setup_teardown(a_node_in_quarantine_is_healed_after_it, open_observed, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
