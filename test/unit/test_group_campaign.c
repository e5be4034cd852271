/* What the acquire of an election asks of nodes, over a fake env. */
#include "group_kit.h"

#define ALICE "00000000000000aa0123456789abcdef0123456789abcdef"

static const struct fake_sent *first_sent(enum redlock_operation operation) {
    for (unsigned i = 0; i < fake.sent_count; i++) {
        if (fake.sent[i].operation == operation) {
            return &fake.sent[i];
        }
    }
    return NULL;
}

/* A first try is not announced, so there is none. */
GROUP_TEST(a_campaign_begins_in_line_and_is_announced, three_nodes) {
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    assert_is(redlock_group_campaign(fake.group, "r", &options, NULL, see, &seen), REDLOCK_OK);
    assert_null(first_sent(REDLOCK_OP_ACQUIRE));
    for (unsigned i = 0; i < 3; i++) {
        assert_true(fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)->announced);
        fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    }
    assert_is(seen.code, REDLOCK_OK);
    assert_is(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
    assert_true(first_sent(REDLOCK_OP_RELEASE)->announced);
    /* So is what the library goes on releasing. */
    fake_env_votes(&fake, REDLOCK_OP_RELEASE, "GGU");
    fake_env_pass_ms(&fake, 10);
    const struct fake_sent *owed = fake_env_waiting(&fake, 2, REDLOCK_OP_RELEASE);
    assert_non_null(owed);
    assert_true(owed->no_timeout && owed->announced);
}

/* The restart guard does not know the nodes yet, so the campaign is put off. */
GROUP_TEST(a_campaign_that_was_put_off_begins_in_line, three_observed) {
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    assert_is(redlock_group_campaign(fake.group, "r", &options, NULL, see, &seen), REDLOCK_OK);
    assert_int_equal(fake.sent_count, 0);
    fake_env_pass_ms(&fake, 1000);
    assert_null(first_sent(REDLOCK_OP_ACQUIRE));
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 3);
}

GROUP_TEST(a_campaign_without_its_fencing_token_tries_again_in_line, three_nodes) {
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    options.fencing = true;
    assert_is(redlock_group_campaign(fake.group, "r", &options, NULL, see, &seen), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_WAIT, "GGG");
    fake_env_answer_all(&fake, REDLOCK_VOTE_FAILED);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
    fake_env_pass_ms(&fake, 200);
    assert_non_null(first_sent(REDLOCK_OP_FENCE));
    assert_null(first_sent(REDLOCK_OP_ACQUIRE));
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 3);
}

GROUP_TEST(any_other_acquire_is_not, three_nodes) {
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    acquire(&options, &seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    assert_non_null(first_sent(REDLOCK_OP_WAIT));
    for (unsigned i = 0; i < fake.sent_count; i++) {
        assert_false(fake.sent[i].announced);
    }
}

/* The nodes hand the lock to a place that was given up: observers are told of the return. */
GROUP_TEST(what_is_given_back_is_announced, three_nodes) {
    redlock_request *request;
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    assert_is(redlock_group_campaign(fake.group, "r", &options, &request, see, &seen), REDLOCK_OK);
    const struct fake_sent wait = *first_sent(REDLOCK_OP_WAIT);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_queue(&fake, i, ALICE, 0);
    }
    redlock_request_cancel(request);
    for (unsigned i = 0; i < fake.sent_count; i++) {
        assert_true(fake.sent[i].announced);
    }
    fake_env_push(&fake, &wait);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(seen.code, REDLOCK_ERR_CANCELLED);
}
