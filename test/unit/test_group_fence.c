/* Fencing tokens, healing and lock delay through the public API over a fake env: which callbacks
 * run, what is sent. */
#include "core/fence.h"
#include "group_kit.h"

GROUP_TEST(a_lease_has_its_fencing_token, five_nodes) {
    const uint64_t proposed = acquire_fenced(&seen);
    assert_int_equal(proposed / 1000, fake.wall_us);
    assert_false(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->timed);
    for (unsigned i = 0; i < 3; i++) {
        accept_fence(i, REDLOCK_OP_ACQUIRE);
    }
    assert_is(seen.code, REDLOCK_OK);
    assert_int_equal(redlock_lease_fence(seen.lease), proposed);
    assert_int_equal(statistics().fenced_fast, 1);
    give_back(seen.lease);
}

GROUP_TEST(a_beaten_token_is_written_back_again_and_again, five_nodes) {
    uint64_t number = acquire_fenced(&seen);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer_as(
            &fake, i, REDLOCK_OP_ACQUIRE,
            (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .fenced = true, .counter = number + 1000000});
    }
    assert_int_equal(seen.count, 0);
    for (unsigned turn = 0; turn < 3; turn++) {
        assert_true(fake_env_waiting(&fake, 0, REDLOCK_OP_FENCE)->fence > number);
        number = fake_env_waiting(&fake, 0, REDLOCK_OP_FENCE)->fence;
        for (unsigned i = 0; i < 5; i++) {
            fake_env_answer_as(
                &fake, i, REDLOCK_OP_FENCE,
                (struct redlock_answer){.vote = REDLOCK_VOTE_DENIED, .fenced = true, .counter = number + 7});
            if (fake_env_waiting(&fake, 0, REDLOCK_OP_FENCE)) {
                break; /* the third answer lost the round, and the next has begun */
            }
        }
    }
    number = fake_env_waiting(&fake, 0, REDLOCK_OP_FENCE)->fence;
    for (unsigned i = 0; i < 3; i++) {
        struct fake_sent *sent;
        while ((sent = fake_env_waiting(&fake, i, REDLOCK_OP_FENCE)) && sent->fence != number) {
            fake_env_answer(&fake, i, REDLOCK_OP_FENCE, REDLOCK_VOTE_DENIED);
        }
        accept_fence(i, REDLOCK_OP_FENCE);
    }
    assert_is(seen.code, REDLOCK_OK);
    assert_int_equal(redlock_lease_fence(seen.lease), number);
    assert_int_equal(statistics().fenced_slow, 1);
    assert_int_equal(statistics().attempts, 1);
    give_back(seen.lease);
}

/* A counter that no clock explains costs that node its vote, and the result says why. */
GROUP_TEST(the_result_names_a_counter_that_is_a_lie, five_nodes) {
    const uint64_t proposed = acquire_fenced(&seen);
    const struct redlock_answer accepts = {.vote = REDLOCK_VOTE_GRANTED, .fenced = true, .accepted = true};
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_ACQUIRE,
                           i != 1 ? accepts
                                  : (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED,
                                                            .fenced = true,
                                                            .counter = REDLOCK_FENCE_MAX - 1});
    }
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_FENCE)->fence, proposed + 1000);
    for (unsigned i = 0; i < 4; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_FENCE,
                           i != 1 ? accepts
                                  : (struct redlock_answer){
                                        .vote = REDLOCK_VOTE_DENIED, .fenced = true, .counter = REDLOCK_FENCE_MAX - 1});
    }
    assert_is(seen.code, REDLOCK_OK);
    assert_is(seen.votes[1], REDLOCK_VOTE_DENIED);
    assert_contains(seen.errors[1], "its fencing counter is over 30 minutes ahead");
    assert_string_equal(seen.errors[0], "");
    assert_int_equal(redlock_lease_fence(seen.lease), proposed + 1000);
    give_back(seen.lease);
}

GROUP_TEST(the_acquire_script_goes_by_source_where_it_is_unknown, five_nodes) {
    acquire_fenced(&seen);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer_no_script(&fake, i, REDLOCK_OP_ACQUIRE);
        assert_true(fake_env_waiting(&fake, i, REDLOCK_OP_ACQUIRE)->by_source);
        accept_fence(i, REDLOCK_OP_ACQUIRE);
    }
    assert_is(seen.code, REDLOCK_OK);
    give_back(seen.lease);
}

GROUP_TEST(a_lease_without_fencing_has_no_token, five_nodes) {
    redlock_lease *adopted;
    acquire(NULL, &seen);
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->fence, 0);
    grant(0, 2);
    assert_int_equal(redlock_lease_fence(seen.lease), 0);
    assert_is(redlock_group_adopt(fake.group, "r", "t", NULL, &adopted), REDLOCK_OK);
    assert_int_equal(redlock_lease_fence(adopted), 0);
    assert_int_equal(statistics().fenced_fast + statistics().fenced_slow, 0);
    give_back(seen.lease);
}

GROUP_TEST(healed_keys_are_counted_and_released, five_nodes) {
    struct seen released = {0};
    acquire(NULL, &seen);
    grant(0, 2);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "...FD");
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_HEAL), 2);
    const struct fake_sent *sent = fake_env_waiting(&fake, 3, REDLOCK_OP_HEAL);
    assert_int_equal(sent->ttl_ms, 10000);
    assert_string_equal(sent->token, redlock_lease_token(seen.lease));
    const uint64_t late = statistics().votes_late;
    fake_env_votes(&fake, REDLOCK_OP_HEAL, "...GD");
    assert_int_equal(statistics().healed, 1);
    assert_int_equal(statistics().votes_late, late);
    redlock_release(seen.lease, see, &released);
    assert_non_null(fake_env_waiting(&fake, 3, REDLOCK_OP_RELEASE));
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(released.code, REDLOCK_OK);
}

GROUP_TEST(a_lease_can_do_without_healing, five_nodes) {
    redlock_acquire_options options = default_options();
    options.heal = false;
    acquire(&options, &seen);
    grant(0, 2);
    fake_env_pass_ms(&fake, 5000);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_HEAL), 0);
    give_back(seen.lease);
}

GROUP_TEST(a_lock_delay_keeps_the_keys_of_a_lost_lease, five_nodes) {
    struct seen released = {0};
    redlock_acquire_options options = default_options();
    options.lock_delay_ms = REDLOCK_TTL_MS_MAX;
    assert_is(redlock_group_acquire(fake.group, "r", &options, NULL, see, &seen), REDLOCK_ERR_INVALID);
    options.lock_delay_ms = -1;
    assert_is(redlock_group_acquire(fake.group, "r", &options, NULL, see, &seen), REDLOCK_ERR_INVALID);
    options.lock_delay_ms = 15000;
    options.on_lost = see_lost;
    options.lost_data = &seen;
    acquire(&options, &seen);
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->ttl_ms, 25000);
    grant(0, 4);
    assert_in_range(redlock_lease_validity_ms(seen.lease), 9890, 9898);
    assert_is(redlock_extend(seen.lease, REDLOCK_TTL_MS_MAX, NULL, NULL), REDLOCK_ERR_INVALID);
    fake_env_pass_ms(&fake, 10000);
    assert_int_equal(seen.lost, 1);
    redlock_release(seen.lease, see, &released);
    fake_env_turn(&fake);
    assert_is(released.code, REDLOCK_ERR_LOST);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    assert_int_equal(statistics().releases_owed, 0);
}
