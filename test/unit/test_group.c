/* Acquire, extend and release through the public API over a fake env: which callbacks run, once
 * each, and what is sent. */
#include "group_kit.h"

/* A lease of 3 s that renews itself and reports its loss to `seen`. */
static redlock_acquire_options renewed(struct seen *seen) {
    redlock_acquire_options options = watched_options(seen);
    options.ttl_ms = 3000;
    options.auto_extend = true;
    return options;
}

GROUP_TEST(won_at_the_third_vote, five_nodes) {
    acquire(NULL, &seen);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    assert_string_equal(fake.sent[0].key, "locks:r");
    assert_int_equal(strlen(fake.sent[0].token), 32);
    assert_string_equal(fake.sent[0].token, fake.sent[4].token);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "GG");
    assert_int_equal(seen.count, 0);
    fake_env_answer(&fake, 4, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
    assert_seen(seen, 1, REDLOCK_OK);
    assert_is(seen.votes[2], REDLOCK_VOTE_PENDING);
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 10000 - 102);
    assert_string_equal(redlock_lease_resource(seen.lease), "r");
    assert_string_equal(redlock_lease_token(seen.lease), fake.sent[0].token);
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 9000 - 102);

    struct seen released = {0};
    assert_is(redlock_release(seen.lease, see, &released), REDLOCK_OK);
    assert_is(redlock_release(seen.lease, see, &released), REDLOCK_ERR_INVALID);
    assert_int_equal(released.count, 0);
    /* Also at the pending nodes (R8). */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_seen(released, 1, REDLOCK_OK);
}

GROUP_TEST(lost_attempt_is_released_everywhere_but_where_it_failed, five_nodes) {
    acquire(NULL, &seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "FDUG");
    assert_int_equal(seen.count, 0); /* lost, but the code depends on the last node (R13) */
    fake_env_answer(&fake, 4, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
    assert_int_equal(seen.count, 1);
    /* Three nodes answered, one of them denied. */
    assert_is(seen.code, REDLOCK_ERR_CONTENDED);
    assert_null(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE));
    for (unsigned i = 1; i < 5; i++) {
        assert_non_null(fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE));
    }
    /* A node that does not confirm is asked again, until the ttl has passed. */
    fake_env_votes(&fake, REDLOCK_OP_RELEASE, ".D.GG");
    fake_env_answer(&fake, 2, REDLOCK_OP_RELEASE, REDLOCK_VOTE_UNKNOWN);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    fake.refusing = REDLOCK_NODE(2);
    fake_env_pass_ms(&fake, 5000);
    assert_int_equal(statistics().releases_owed, 1);
    fake.refusing = 0;
    redlock_group_ready_changed(fake.group, 2, true);
    assert_non_null(fake_env_waiting(&fake, 2, REDLOCK_OP_RELEASE));
    assert_string_equal(fake_env_waiting(&fake, 2, REDLOCK_OP_RELEASE)->token, fake.sent[0].token);
    fake_env_answer(&fake, 2, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    assert_owed(0, 0);
}

/* An acquire is lost by this vote of three nodes. Nobody answers its releases. */
static void owe(struct seen *seen, redlock_vote_kind vote) {
    acquire(NULL, seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "GG");
    for (unsigned i = 2; i < 5; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, vote);
    }
    assert_is(seen->code, REDLOCK_ERR_NO_QUORUM);
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
    fake.refusing = redlock_nodes_all(5);
}

/* Every node has answered the SET, so our keys are gone when the ttl is over. */
GROUP_TEST(an_owed_release_ends_with_the_ttl, five_nodes) {
    owe(&seen, REDLOCK_VOTE_FAILED);
    fake_env_pass_ms(&fake, 9000);
    assert_owed(1, 0);
    fake_env_pass_ms(&fake, 1100);
    assert_owed(0, 1);
}

/* A SET that was never answered may run at any time. Only an answer of that node to a release ends
 * the debt. */
GROUP_TEST(an_owed_release_behind_an_unanswered_set_outlives_the_ttl, five_nodes) {
    owe(&seen, REDLOCK_VOTE_UNKNOWN);
    fake_env_pass_ms(&fake, 1000 * 1000);
    assert_owed(1, 0);
    fake.refusing = 0;
    for (unsigned i = 0; i < 5; i++) {
        redlock_group_ready_changed(fake.group, i, true);
        assert_int_equal(fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE) != NULL, i >= 2);
    }
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 3);
    fake_env_votes(&fake, REDLOCK_OP_RELEASE, "..GUD");
    fake_env_pass_ms(&fake, 2000);
    assert_owed(1, 0);
    fake_env_answer(&fake, 3, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
    assert_owed(0, 1); /* nodes 0 and 1 never confirmed: the ttl ended their keys */
}

GROUP_TEST(the_callback_of_a_refusal_by_all_runs_in_a_later_turn, five_nodes) {
    fake.refusing = redlock_nodes_all(5);
    acquire(NULL, &seen);
    assert_int_equal(seen.count, 0); /* never inside the call (R14) */
    assert_true(fake.wake_ns <= fake.now_ns);
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(fake.sent_count, 0);
}

GROUP_TEST(retries_have_fresh_tokens_and_end_at_the_wait, five_nodes) {
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = 1000;
    options.order = REDLOCK_ORDER_NONE;
    acquire(&options, &seen);
    unsigned attempts = 0;
    char last_token[REDLOCK_TOKEN_SIZE_MAX + 1] = "";
    for (unsigned turn = 0; turn < 110 && !seen.count; turn++) {
        if (fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE)) {
            attempts++;
            const struct fake_sent *sent = fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE);
            assert_string_not_equal(sent->token, last_token);
            strcpy(last_token, sent->token);
            fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
            /* The release carries the token of the attempt that it ends. */
            assert_string_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)->token, last_token);
            fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        }
        fake_env_pass_ms(&fake, 10);
    }
    assert_seen(seen, 1, REDLOCK_ERR_CONTENDED);
    assert_int_equal(seen.attempts, attempts);
    assert_in_range(attempts, 5, 20);
    assert_in_range(fake.now_ns / REDLOCK_NS_PER_MS, 2000, 2010);
}

GROUP_TEST(extends_and_loses, five_nodes) {
    struct seen extended = {0};
    redlock_acquire_options options = watched_options(&seen);
    redlock_lease *lease = take(&options, &seen);
    fake_env_pass_ms(&fake, 5000);
    assert_is(redlock_extend(lease, 20000, see, &extended), REDLOCK_OK);
    assert_is(redlock_extend(lease, 20000, see, &extended), REDLOCK_ERR_BUSY);
    /* Not before a quorum has confirmed. */
    assert_int_equal(redlock_lease_validity_ms(lease), 5000 - 102);
    fake_env_votes(&fake, REDLOCK_OP_EXTEND, "GGG");
    assert_seen(extended, 1, REDLOCK_OK);
    assert_int_equal(redlock_lease_validity_ms(lease), 20000 - 202);
    /* A shorter ttl shortens nothing, and a failed extension keeps the deadline (R12). */
    assert_is(redlock_extend(lease, 1000, see, &extended), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
    assert_seen(extended, 2, REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(redlock_lease_validity_ms(lease), 20000 - 202);
    assert_int_equal(statistics().extends, 2);
    assert_int_equal(statistics().extends_failed, 1);
    fake_env_pass_ms(&fake, 20000 - 202 - 1);
    assert_int_equal(seen.lost, 0);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(seen.lost, 1); /* without any answer (R3) */
    assert_is(redlock_extend(lease, 1000, see, &extended), REDLOCK_ERR_LOST);
    struct seen released = {0};
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    fake_env_turn(&fake);
    assert_is(released.code, REDLOCK_ERR_LOST);
    assert_int_equal(seen.lost, 1);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

GROUP_TEST(a_ttl_too_short_is_named_as_it_was_asked_for, five_nodes) {
    struct seen extended = {0};
    redlock_lease *lease = take(NULL, &seen);
    const int64_t validity_ms = redlock_lease_validity_ms(lease);
    assert_is(redlock_extend(lease, 2, see, &extended), REDLOCK_OK);
    fake_env_turn(&fake);
    assert_seen(extended, 1, REDLOCK_ERR_TOO_SLOW);
    assert_contains(extended.message, "of the ttl of 2 ms after");
    assert_int_equal(redlock_lease_validity_ms(lease), validity_ms);
    give_back(lease);
}

GROUP_TEST(the_log_describes_a_lease_without_its_token, five_nodes) {
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = 1000;
    options.order = REDLOCK_ORDER_NONE;
    assert_is(redlock_group_acquire(fake.group, "night\nly", &options, NULL, see, &seen), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_pass_ms(&fake, 200);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(seen.code, REDLOCK_OK);
    assert_int_equal(fake.logged[REDLOCK_LOG_ERROR], 0);
    fake_env_pass_ms(&fake, 10000);
    assert_int_equal(fake.logged[REDLOCK_LOG_ERROR], 1);
    assert_contains(fake.log, "acquire 'night\\x0aly': node node1:6379: DENIED after 0 us: answer of node 1");
    assert_contains(fake.log, "attempt 1 is lost: 0 granted, 3 denied, 0 failed, 0 unknown; next in ");
    assert_contains(fake.log, "acquire 'night\\x0aly': OK at attempt 2, valid for ");
    assert_contains(fake.log, "the lease of 'night\\x0aly' is lost: its deadline passed");
    assert_lacks(fake.log, redlock_lease_token(seen.lease));
    give_back(seen.lease);
}

static void answer_named(unsigned node, enum redlock_named named, redlock_vote_kind vote, const char *first,
                         const char *holder) {
    fake_env_answer_as(&fake, node, REDLOCK_OP_ACQUIRE,
                       (struct redlock_answer){.vote = vote,
                                               .named = (uint8_t)named,
                                               .first = first,
                                               .first_size = strlen(first),
                                               .holder = holder,
                                               .holder_size = strlen(holder)});
}

/* Only the owner of a request knows whether the value at the key is its token
 * (wire/holder_query.h). */
GROUP_TEST(a_value_at_the_key_may_be_our_own_token, five_nodes) {
    static const char other[] = "0123456789abcdef0123456789abcdef";
    acquire(NULL, &seen);
    const char *own = fake.sent[0].token;
    answer_named(4, REDLOCK_NAMED_AFTER_NIL, REDLOCK_VOTE_UNKNOWN, "", own);
    assert_int_equal(fake.proven, 16);
    answer_named(0, REDLOCK_NAMED_ONCE, REDLOCK_VOTE_DENIED, "", own);
    answer_named(1, REDLOCK_NAMED_TWICE, REDLOCK_VOTE_DENIED, own, own);
    answer_named(2, REDLOCK_NAMED_TWICE, REDLOCK_VOTE_DENIED, own, other);
    assert_int_equal(fake.proven, 16);
    fake_env_answer(&fake, 3, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    assert_int_equal(seen.count, 1);
    assert_contains(seen.errors[0], "it is the same server as another node");
    assert_contains(seen.errors[1], "it is the same server as another node");
    assert_contains(seen.errors[2], "did not make clear");
    for (unsigned i = 0; i < 3; i++) {
        assert_is(seen.votes[i], REDLOCK_VOTE_UNKNOWN);
    }
    assert_is(seen.votes[4], REDLOCK_VOTE_GRANTED);
}

GROUP_TEST(another_value_at_the_key_stays_what_it_was, five_nodes) {
    static const char other[] = "0123456789abcdef0123456789abcdef";
    acquire(NULL, &seen);
    answer_named(0, REDLOCK_NAMED_AFTER_NIL, REDLOCK_VOTE_UNKNOWN, "", other);
    for (unsigned i = 1; i < 5; i++) {
        answer_named(i, i == 1 ? REDLOCK_NAMED_ONCE : REDLOCK_NAMED_TWICE, REDLOCK_VOTE_DENIED, other, other);
    }
    assert_int_equal(fake.proven, 0);
    assert_is(seen.code, REDLOCK_ERR_CONTENDED);
    assert_is(seen.votes[0], REDLOCK_VOTE_UNKNOWN);
    assert_is(seen.votes[1], REDLOCK_VOTE_DENIED);
    assert_is(seen.votes[2], REDLOCK_VOTE_DENIED);
}

GROUP_TEST(no_script_is_sent_again_by_source, five_nodes) {
    struct seen released = {0};
    redlock_lease *lease = take(NULL, &seen);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    for (unsigned i = 0; i < 5; i++) {
        fake_env_answer_no_script(&fake, i, REDLOCK_OP_RELEASE);
        assert_true(fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE)->by_source);
    }
    assert_int_equal(released.count, 0);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_seen(released, 1, REDLOCK_OK);
}

/* A node that never knows a script gets its source once, not again and again. */
GROUP_TEST(no_script_twice_is_a_failed_vote, five_nodes) {
    /* The timer does not ask nodes that are not ready. */
    redlock_group_ready_changed(fake.group, 0, true);
    struct seen released = {0}, inspected = {0};
    redlock_lease *lease = take(NULL, &seen);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    assert_is(redlock_group_inspect(fake.group, "r", see, &inspected), REDLOCK_OK);
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned times = 0; times < 2; times++) {
            fake_env_answer_no_script(&fake, i, REDLOCK_OP_RELEASE);
            fake_env_answer_no_script(&fake, i, REDLOCK_OP_INSPECT);
        }
    }
    assert_is(released.code, REDLOCK_ERR_NO_QUORUM);
    assert_is(inspected.code, REDLOCK_ERR_NO_QUORUM);
    /* The library's own release takes over. It gives up in the same way, and tries again later. */
    fake_env_answer_no_script(&fake, 0, REDLOCK_OP_RELEASE);
    fake_env_answer_no_script(&fake, 0, REDLOCK_OP_RELEASE);
    assert_null(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE));
    fake_env_pass_ms(&fake, 200);
    assert_false(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)->by_source);
}

/* Takes "r" in this order, asks for its release, and returns what node 0 was sent. */
static const struct fake_sent *sent_to_release(redlock_order order, struct seen *released) {
    struct seen seen = {0};
    redlock_acquire_options options = default_options();
    options.order = order;
    redlock_lease *lease = take(&options, &seen);
    assert_is(redlock_release(lease, see, released), REDLOCK_OK);
    return fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE);
}

/* Adopts this token, asks for the release, and returns what node 0 was sent. */
static const struct fake_sent *sent_to_release_adopted(const char *token, struct seen *released) {
    redlock_lease *adopted;
    assert_is(redlock_group_adopt(fake.group, "r", token, NULL, &adopted), REDLOCK_OK);
    assert_is(redlock_release(adopted, see, released), REDLOCK_OK);
    return fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE);
}

GROUP_TEST(only_the_release_of_a_try_may_look_for_nobody, five_nodes) {
    static const char ticket[] = "00063f1f5ab5c9d00123456789abcdef0123456789abcdef";
    static const char try[] = "v123456789abcdef0123456789abcdef", marked[] = "V123456789abcdef0123456789abcdef";
    struct seen released = {0};
    assert_true(sent_to_release(REDLOCK_ORDER_NONE, &released)->by_try);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_true(sent_to_release(REDLOCK_ORDER_FAIR, &released)->by_try);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(released.code, REDLOCK_OK);
    /* An adopted one is what its token says. */
    assert_false(sent_to_release_adopted("very-short", &released)->by_try);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_false(sent_to_release_adopted(ticket, &released)->by_try);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_true(sent_to_release_adopted(try, &released)->by_try);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    const struct fake_sent *unmarked = sent_to_release_adopted(marked, &released);
    assert_true(unmarked->by_try);
    assert_string_equal(unmarked->token, try);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    /* That of an election tells observers. */
    const redlock_acquire_options options = default_options();
    struct seen elected = {0};
    assert_is(redlock_group_campaign(fake.group, "e", &options, NULL, see, &elected), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(elected.code, REDLOCK_OK);
    assert_is(redlock_release(elected.lease, see, &released), REDLOCK_OK);
    assert_false(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)->by_try);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

GROUP_TEST(where_the_command_is_refused_the_script_follows, five_nodes) {
    struct seen released = {0};
    (void)sent_to_release(REDLOCK_ORDER_NONE, &released);
    for (unsigned i = 0; i < 4; i++) {
        fake_env_answer_no_script(&fake, i, REDLOCK_OP_RELEASE);
        const struct fake_sent *sent = fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE);
        assert_true(sent->by_source && !sent->by_try);
    }
    assert_int_equal(released.count, 0);
    fake_env_votes(&fake, REDLOCK_OP_RELEASE, "GGG");
    assert_is(released.code, REDLOCK_OK);
    /* What a node does not confirm is owed, and asked for by the script. */
    fake_env_votes(&fake, REDLOCK_OP_RELEASE, "...UU");
    assert_int_equal(statistics().releases_owed, 1);
    for (unsigned i = 3; i < 5; i++) {
        const struct fake_sent *sent = fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE);
        assert_true(sent->no_timeout && !sent->by_try);
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_int_equal(statistics().releases_owed, 0);
}

/* By its SHA1, and by its source where it is not known. A node that is slower than the others may
 * have a mark, too. */
GROUP_TEST(where_the_command_finds_no_plain_token_the_script_follows, five_nodes) {
    struct seen released = {0};
    (void)sent_to_release(REDLOCK_ORDER_FAIR, &released);
    for (unsigned i = 0; i < 4; i++) {
        if (i == 3) {
            fake_env_votes(&fake, REDLOCK_OP_RELEASE, "GGG");
            assert_is(released.code, REDLOCK_OK);
        }
        fake_env_answer_no_plain_token(&fake, i);
        const struct fake_sent *sent = fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE);
        assert_false(sent->by_source || sent->by_try);
    }
    assert_int_equal(released.count, 1);
    fake_env_answer_no_script(&fake, 3, REDLOCK_OP_RELEASE);
    assert_true(fake_env_waiting(&fake, 3, REDLOCK_OP_RELEASE)->by_source);
    fake_env_answer(&fake, 3, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    fake_env_answer(&fake, 4, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    assert_int_equal(statistics().releases_owed, 0);
}

GROUP_TEST(release_that_a_node_missed_is_owed, five_nodes) {
    struct seen released = {0};
    redlock_lease *lease = take(NULL, &seen);
    fake.refusing = REDLOCK_NODE(4);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(released.code, REDLOCK_OK);
    assert_is(released.votes[4], REDLOCK_VOTE_FAILED);
    fake.refusing = 0;
    redlock_group_ready_changed(fake.group, 4, true);
    assert_string_equal(fake_env_waiting(&fake, 4, REDLOCK_OP_RELEASE)->token, fake.sent[0].token);
    fake_env_answer(&fake, 4, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
}

GROUP_TEST(auto_extend_renews_until_released, five_nodes) {
    struct seen released = {0};
    redlock_acquire_options options = renewed(&seen);
    redlock_lease *lease = take(&options, &seen);
    for (unsigned i = 0; i < 10; i++) {
        fake_env_pass_ms(&fake, 1001);
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_EXTEND), 5);
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    }
    assert_int_equal(seen.lost, 0);
    fake_env_pass_ms(&fake, 1001); /* a renewal is in flight */
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(released.code, REDLOCK_OK);
    const unsigned sent = fake.sent_count;
    fake_env_pass_ms(&fake, 60000);
    assert_int_equal(fake.sent_count, sent); /* an extend never follows a release */
    assert_int_equal(seen.lost, 0);
}

GROUP_TEST(a_loss_says_what_the_nodes_said, five_nodes) {
    struct seen released = {0};
    redlock_acquire_options options = renewed(&seen);
    redlock_lease *lease = take(&options, &seen);
    for (unsigned i = 0; i < 4000 && !seen.lost; i++) {
        fake_env_pass_ms(&fake, 1);
        fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
    }
    assert_string_equal(seen.reason, "its deadline passed without an extension that a quorum of nodes confirmed "
                                     "(node0:6379: answer of node 0; node1:6379: answer of node 1; node2:6379: answer "
                                     "of node 2; node3:6379: answer of node 3; node4:6379: answer of node 4)");
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    fake_env_turn(&fake);
    assert_contains(released.message, "the lease is lost: its deadline passed");
    /* No count of votes for which no node was asked. */
    assert_lacks(released.message, "are needed");
}

/* They were asked, and the deadline came first. */
GROUP_TEST(a_loss_names_the_nodes_that_say_nothing, five_nodes) {
    struct seen released = {0};
    redlock_acquire_options options = renewed(&seen);
    redlock_lease *lease = take(&options, &seen);
    for (unsigned i = 0; i < 4000 && !seen.lost; i++) {
        fake_env_pass_ms(&fake, 1);
        if (fake_env_waiting(&fake, 0, REDLOCK_OP_EXTEND)) {
            fake_env_votes(&fake, REDLOCK_OP_EXTEND, "GF");
        }
    }
    assert_string_equal(seen.reason, "its deadline passed without an extension that a quorum of nodes confirmed "
                                     "(node1:6379: answer of node 1; node2:6379, node3:6379, node4:6379: no answer)");
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    fake_env_turn(&fake);
}

GROUP_TEST(a_capped_lease_says_so, five_nodes) {
    struct seen released = {0};
    redlock_acquire_options options = renewed(&seen);
    options.auto_extend_max_ms = 1500;
    redlock_lease *lease = take(&options, &seen);
    for (unsigned i = 0; i < 600 && !seen.lost; i++) {
        fake_env_pass_ms(&fake, 10);
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    }
    assert_string_equal(seen.reason, "its deadline passed, and it was not renewed after the cap of 1500 ms");
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    fake_env_turn(&fake);
    assert_contains(released.message, "after the cap of 1500 ms");
}

GROUP_TEST(adopted_is_valid_once_extended, five_nodes) {
    struct seen extended = {0}, released = {0};
    redlock_lease *lease;
    assert_is(redlock_group_adopt(fake.group, "r", "abc", NULL, &lease), REDLOCK_OK);
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    assert_is(redlock_extend(lease, 5000, see, &extended), REDLOCK_OK);
    assert_string_equal(fake.sent[0].token, "abc");
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(extended.code, REDLOCK_OK);
    assert_int_equal(redlock_lease_validity_ms(lease), 5000 - 52);
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_is(released.code, REDLOCK_ERR_LOST);
}

GROUP_TEST(without_a_guard_no_node_is_in_quarantine, five_nodes) {
    for (unsigned i = 0; i < 5; i++) {
        const char *why = NULL;
        assert_int_equal(redlock_group_node_quarantine_ms(fake.group, i, &why), 0);
        assert_string_equal(why, "");
    }
}
