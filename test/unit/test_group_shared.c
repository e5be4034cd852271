/* Shared locks through the public API over a fake env: what is sent, who is seen, and the way from
 * one mode to the other. */
#include "base/holder.h"
#include "queue_kit.h"

#define READS  "0000000000000001aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaas"
#define WRITES "0000000000000001aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static redlock_acquire_options shared_options(void) {
    redlock_acquire_options options = patient_options();
    options.mode = REDLOCK_SHARED;
    return options;
}

static redlock_lease *read_it(struct seen *seen) {
    const redlock_acquire_options options = shared_options();
    return take(&options, seen);
}

/* The first try was refused, and the acquire has a place at all nodes. */
static redlock_request *queue_to_read(struct seen *seen) {
    redlock_request *request;
    const redlock_acquire_options options = shared_options();
    *seen = (struct seen){0};
    assert_is(redlock_group_acquire(fake.group, "r", &options, &request, see, seen), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    for (unsigned i = 0; i < fake.node_count; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
    }
    return request;
}

static bool reads(const char *token) {
    return redlock_holder_reads(token, strlen(token));
}

GROUP_TEST(each_token_of_a_reader_says_so, five_nodes) {
    redlock_request *request = queue_to_read(&seen);
    const struct fake_sent *try = &fake.sent[0], *wait = last_wait(0);
    assert_true(try->shared);
    assert_true(reads(try->token) && redlock_holder_is_try(try->token, strlen(try->token)));
    assert_int_equal(strlen(try->token), 33);
    assert_false(fake.sent[5].by_try); /* nobody marks it, and others may come in */
    assert_true(reads(wait->token) && redlock_holder_has_ticket(wait->token, strlen(wait->token)));
    assert_int_equal(strlen(wait->token), 49);
    redlock_request_cancel(request);
}

GROUP_TEST(a_writer_sends_what_it_always_sent, five_nodes) {
    const redlock_acquire_options options = patient_options();
    redlock_lease *lease = take(&options, &seen);
    assert_false(fake.sent[0].shared);
    assert_int_equal(strlen(redlock_lease_token(lease)), 32);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_true(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)->by_try);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static const struct group_setup named = {.node_count = 3, .config = {.holder = "web-3:4711"}};

GROUP_TEST(the_holders_text_follows_the_letter, named) {
    redlock_lease *lease = read_it(&seen);
    assert_string_equal(redlock_lease_token(lease) + 32, "s@web-3:4711");
    assert_string_equal(redlock_token_holder(redlock_lease_token(lease)), "web-3:4711");
    give_back(lease);
}

/* Of those who read, an extension and a heal say so; a release does not need to. */
GROUP_TEST(each_request_of_a_reader_is_one_of_a_shared_lock, five_nodes) {
    redlock_acquire_options options = shared_options();
    acquire(&options, &seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "GGGFF");
    assert_is(seen.code, REDLOCK_OK);
    fake_env_pass_ms(&fake, 1000);
    const struct fake_sent *heal = fake_env_waiting(&fake, 3, REDLOCK_OP_HEAL);
    assert_non_null(heal);
    assert_true(heal->shared && heal->by_source); /* nobody asks again */
    assert_is(redlock_extend(seen.lease, 20000, NULL, NULL), REDLOCK_OK);
    const struct fake_sent *extend = fake_env_waiting(&fake, 0, REDLOCK_OP_EXTEND);
    assert_true(extend->shared);
    assert_is(extend->handing, REDLOCK_HAND_OVER);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    give_back(seen.lease);
}

/* core/waiter.h says what it does then; here, that it sees it. */
GROUP_TEST(a_reader_sees_who_keeps_it_out, three_nodes) {
    redlock_request *request = queue_to_read(&seen);
    struct redlock_answer ahead = {.vote = REDLOCK_VOTE_DENIED, .holder = WRITES, .holder_size = 48, .ahead = true};
    struct redlock_answer beside = {.vote = REDLOCK_VOTE_DENIED, .holder_ttl_ms = 5000};
    fake_env_answer(&fake, 0, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    fake_env_answer_as(&fake, 1, REDLOCK_OP_WAIT, ahead);
    fake_env_answer_as(&fake, 2, REDLOCK_OP_WAIT, beside);
    const struct fake_sent first = *last_wait(0);
    fake_env_pass_ms(&fake, 2); /* it looks */
    fake_env_answer(&fake, 0, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    fake_env_answer_as(&fake, 1, REDLOCK_OP_WAIT, beside);
    fake_env_answer_as(&fake, 2, REDLOCK_OP_WAIT, beside);
    assert_int_equal(statistics().yields, 0);
    fake_env_pass_ms(&fake, 10);
    assert_string_equal(last_wait(0)->token, first.token);
    fake_env_answer(&fake, 0, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    fake_env_answer_as(&fake, 1, REDLOCK_OP_WAIT, ahead);
    fake_env_answer_as(&fake, 2, REDLOCK_OP_WAIT, beside);
    assert_int_equal(statistics().yields, 1);
    assert_string_not_equal(last_wait(0)->token, first.token);
    assert_true(reads(last_wait(0)->token));
    redlock_request_cancel(request);
}

GROUP_TEST(a_writer_sees_the_first_of_those_who_read, three_nodes) {
    redlock_request *request = wait_for_it(&seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DD");
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
    }
    fake_env_answer(&fake, 0, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    fake_env_queue(&fake, 1, LATER "s", 0);
    fake_env_queue(&fake, 2, "g0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaas", 0); /* a try's: it is soon over */
    fake_env_pass_ms(&fake, 2);
    fake_env_answer(&fake, 0, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    fake_env_queue(&fake, 1, LATER "s", 0);
    fake_env_queue(&fake, 2, LATER "s@web", 0);
    assert_int_equal(statistics().yields, 0);
    fake_env_pass_ms(&fake, 10);
    fake_env_answer(&fake, 0, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    fake_env_queue(&fake, 1, READS, 0);
    fake_env_queue(&fake, 2, LATER "s", 0);
    assert_int_equal(statistics().yields, 1);
    redlock_request_cancel(request);
}

GROUP_TEST(a_downgrade_says_that_the_lock_is_shared, five_nodes) {
    struct seen downgraded = {0};
    const redlock_acquire_options options = patient_options();
    redlock_lease *lease = take(&options, &seen);
    assert_is(redlock_downgrade(lease, see, &downgraded), REDLOCK_OK);
    assert_is(redlock_downgrade(lease, NULL, NULL), REDLOCK_ERR_BUSY);
    const struct fake_sent *extend = fake_env_waiting(&fake, 0, REDLOCK_OP_EXTEND);
    assert_true(extend->shared);
    assert_int_equal(extend->ttl_ms, options.ttl_ms);
    assert_string_equal(extend->token, redlock_lease_token(lease));
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
    assert_seen(downgraded, 1, REDLOCK_OK);
    assert_is(redlock_extend(lease, 20000, NULL, NULL), REDLOCK_OK);
    assert_true(fake_env_waiting(&fake, 0, REDLOCK_OP_EXTEND)->shared);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_false(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)->by_try);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(redlock_downgrade(NULL, NULL, NULL), REDLOCK_ERR_INVALID);
}

static bool adopted_reads(const char *token, redlock_mode mode) {
    redlock_acquire_options options = default_options();
    redlock_lease *lease;
    options.mode = mode;
    assert_is(redlock_group_adopt(fake.group, "r", token, &options, &lease), REDLOCK_OK);
    assert_string_equal(redlock_lease_token(lease), token);
    assert_is(redlock_extend(lease, 10000, NULL, NULL), REDLOCK_OK);
    const bool shared = fake_env_waiting(&fake, 0, REDLOCK_OP_EXTEND)->shared;
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)->by_try,
                     !shared && redlock_holder_is_try(token, strlen(token)));
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
    return shared;
}

GROUP_TEST(a_token_that_reads_is_adopted_as_one, three_nodes) {
    assert_true(adopted_reads(READS, REDLOCK_EXCLUSIVE));
    assert_true(adopted_reads("g0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaas", REDLOCK_EXCLUSIVE));
    assert_true(adopted_reads(WRITES, REDLOCK_SHARED)); /* it was downgraded */
    assert_true(adopted_reads("g0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", REDLOCK_SHARED));
    assert_false(adopted_reads(WRITES, REDLOCK_EXCLUSIVE));
    assert_false(adopted_reads("g0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", REDLOCK_EXCLUSIVE));
}

GROUP_TEST(there_is_no_third_mode, three_nodes) {
    redlock_acquire_options options = default_options();
    options.mode = (redlock_mode)2;
    assert_is(redlock_group_acquire(fake.group, "r", &options, NULL, see, &seen), REDLOCK_ERR_INVALID);
}

GROUP_TEST(a_readers_number_ends_with_999, three_nodes) {
    redlock_acquire_options options = default_options();
    options.mode = REDLOCK_SHARED;
    options.fencing = true;
    const uint64_t number = (uint64_t)fake.wall_us * 1000 + 999;
    acquire(&options, &seen);
    for (unsigned i = 0; i < 2; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_ACQUIRE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .fenced = true, .counter = number});
    }
    fake_env_turn(&fake);
    assert_is(seen.code, REDLOCK_OK);
    assert_true(redlock_lease_fence(seen.lease) == number);
    assert_int_equal(statistics().fenced_fast, 1);
    give_back(seen.lease);
}

/* Such a node may have an old copy of the data: it lets nobody in. */
GROUP_TEST(a_node_in_quarantine_lets_nobody_in, five_observed) {
    const char *why;
    greet_all();
    redlock_lease *lease = read_it(&seen);
    greet(4, "another", 0, reading(0));
    assert_true(redlock_group_node_quarantine_ms(fake.group, 4, &why) > 0);
    assert_is(redlock_extend(lease, 10000, NULL, NULL), REDLOCK_OK);
    assert_is(fake_env_waiting(&fake, 3, REDLOCK_OP_EXTEND)->handing, REDLOCK_HAND_OVER);
    assert_is(fake_env_waiting(&fake, 4, REDLOCK_OP_EXTEND)->handing, REDLOCK_HAND_NOBODY);
    fake_env_answer_no_script(&fake, 4, REDLOCK_OP_EXTEND);
    const struct fake_sent *again = fake_env_waiting(&fake, 4, REDLOCK_OP_EXTEND);
    assert_true(again->by_source && again->shared);
    assert_is(again->handing, REDLOCK_HAND_NOBODY);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}
