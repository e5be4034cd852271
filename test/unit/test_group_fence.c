/* Fencing tokens, healing and lock delay through the public API, over a fake env: who is told what, what is sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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
    char message[1024], reason[1024], errors[NODES][256];
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
        (void)snprintf(seen->errors[i], sizeof seen->errors[i], "%s", vote.error);
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

static int open_plain(void **state) {
    (void)state;
    fake_env_open(&fake, NODES, "locks:");
    return 0;
}

static void acquire(const redlock_acquire_options *options, struct seen *seen) {
    *seen = (struct seen){0};
    assert_int_equal(redlock_group_acquire(fake.group, "r", options, NULL, see, seen), REDLOCK_OK);
}

static void grant(unsigned first, unsigned last) {
    for (unsigned i = first; i <= last; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
    }
}

static void a_fencing_token_is_told(void **state) {
    (void)state;
    struct seen seen;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.fencing = true;
    acquire(&options, &seen);
    const uint64_t proposed = fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->fence;
    assert_int_equal(proposed / 1000, fake.wall_us);
    assert_false(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->timed);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_ACQUIRE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .fenced = true, .accepted = true});
    }
    assert_int_equal(seen.code, REDLOCK_OK);
    assert_int_equal(redlock_lease_fence(seen.lease), proposed);
    assert_int_equal(statistics().fenced_fast, 1);
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static void a_beaten_token_is_written_back_again_and_again(void **state) {
    (void)state;
    struct seen seen;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.fencing = true;
    acquire(&options, &seen);
    uint64_t number = fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->fence;
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
                break; /* the third answer lost the round: the next is under way */
            }
        }
    }
    number = fake_env_waiting(&fake, 0, REDLOCK_OP_FENCE)->fence;
    for (unsigned i = 0; i < 3; i++) {
        struct fake_sent *sent;
        while ((sent = fake_env_waiting(&fake, i, REDLOCK_OP_FENCE)) && sent->fence != number) {
            fake_env_answer(&fake, i, REDLOCK_OP_FENCE, REDLOCK_VOTE_DENIED);
        }
        fake_env_answer_as(&fake, i, REDLOCK_OP_FENCE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .fenced = true, .accepted = true});
    }
    assert_int_equal(seen.code, REDLOCK_OK);
    assert_int_equal(redlock_lease_fence(seen.lease), number);
    assert_int_equal(statistics().fenced_slow, 1);
    assert_int_equal(statistics().attempts, 1);
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

/* A node whose counter no clock explains costs a vote, and the result says why. */
static void a_lie_about_the_counter_is_told(void **state) {
    (void)state;
    struct seen seen;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.fencing = true;
    acquire(&options, &seen);
    const uint64_t proposed = fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->fence;
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
    assert_int_equal(seen.code, REDLOCK_OK);
    assert_int_equal(seen.votes[1], REDLOCK_VOTE_DENIED);
    assert_non_null(strstr(seen.errors[1], "its fencing counter is over 30 minutes ahead"));
    assert_string_equal(seen.errors[0], "");
    assert_int_equal(redlock_lease_fence(seen.lease), proposed + 1000);
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static void the_acquire_script_goes_by_source_where_it_is_unknown(void **state) {
    (void)state;
    struct seen seen;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.fencing = true;
    acquire(&options, &seen);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer_no_script(&fake, i, REDLOCK_OP_ACQUIRE);
        assert_true(fake_env_waiting(&fake, i, REDLOCK_OP_ACQUIRE)->by_source);
        fake_env_answer_as(&fake, i, REDLOCK_OP_ACQUIRE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .fenced = true, .accepted = true});
    }
    assert_int_equal(seen.code, REDLOCK_OK);
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static void a_lease_without_fencing_has_no_token(void **state) {
    (void)state;
    struct seen seen;
    redlock_lease *adopted;
    acquire(NULL, &seen);
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->fence, 0);
    grant(0, 2);
    assert_int_equal(redlock_lease_fence(seen.lease), 0);
    assert_int_equal(redlock_group_adopt(fake.group, "r", "t", NULL, &adopted), REDLOCK_OK);
    assert_int_equal(redlock_lease_fence(adopted), 0);
    assert_int_equal(statistics().fenced_fast + statistics().fenced_slow, 0);
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static void healed_keys_are_counted_and_released(void **state) {
    (void)state;
    struct seen seen, released = {0};
    acquire(NULL, &seen);
    grant(0, 2);
    fake_env_answer(&fake, 3, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_FAILED);
    fake_env_answer(&fake, 4, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_HEAL), 2);
    const struct fake_sent *sent = fake_env_waiting(&fake, 3, REDLOCK_OP_HEAL);
    assert_int_equal(sent->ttl_ms, 10000);
    assert_string_equal(sent->token, redlock_lease_token(seen.lease));
    const uint64_t late = statistics().votes_late;
    fake_env_answer(&fake, 3, REDLOCK_OP_HEAL, REDLOCK_VOTE_GRANTED);
    fake_env_answer(&fake, 4, REDLOCK_OP_HEAL, REDLOCK_VOTE_DENIED);
    assert_int_equal(statistics().healed, 1);
    assert_int_equal(statistics().votes_late, late);
    redlock_release(seen.lease, see, &released);
    assert_non_null(fake_env_waiting(&fake, 3, REDLOCK_OP_RELEASE));
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_int_equal(released.code, REDLOCK_OK);
}

static void a_lease_can_do_without_healing(void **state) {
    (void)state;
    struct seen seen;
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.heal = false;
    acquire(&options, &seen);
    grant(0, 2);
    fake_env_pass_ms(&fake, 5000);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_HEAL), 0);
    redlock_release(seen.lease, NULL, NULL);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static void a_lock_delay_keeps_the_keys_of_a_lost_lease(void **state) {
    (void)state;
    struct seen seen, released = {0};
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.lock_delay_ms = REDLOCK_TTL_MS_MAX;
    assert_int_equal(redlock_group_acquire(fake.group, "r", &options, NULL, see, &seen), REDLOCK_ERR_INVALID);
    options.lock_delay_ms = -1;
    assert_int_equal(redlock_group_acquire(fake.group, "r", &options, NULL, see, &seen), REDLOCK_ERR_INVALID);
    options.lock_delay_ms = 15000;
    options.on_lost = see_lost;
    options.lost_data = &seen;
    acquire(&options, &seen);
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_ACQUIRE)->ttl_ms, 25000);
    grant(0, 4);
    assert_in_range(redlock_lease_validity_ms(seen.lease), 9890, 9898);
    assert_int_equal(redlock_extend(seen.lease, REDLOCK_TTL_MS_MAX, NULL, NULL), REDLOCK_ERR_INVALID);
    fake_env_pass_ms(&fake, 10000);
    assert_int_equal(seen.lost, 1);
    redlock_release(seen.lease, see, &released);
    fake_env_turn(&fake);
    assert_int_equal(released.code, REDLOCK_ERR_LOST);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    assert_int_equal(statistics().releases_owed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_fencing_token_is_told, open_plain, close_all),
        cmocka_unit_test_setup_teardown(a_beaten_token_is_written_back_again_and_again, open_plain, close_all),
        cmocka_unit_test_setup_teardown(a_lie_about_the_counter_is_told, open_plain, close_all),
        cmocka_unit_test_setup_teardown(the_acquire_script_goes_by_source_where_it_is_unknown, open_plain, close_all),
        cmocka_unit_test_setup_teardown(a_lease_without_fencing_has_no_token, open_plain, close_all),
        cmocka_unit_test_setup_teardown(healed_keys_are_counted_and_released, open_plain, close_all),
        cmocka_unit_test_setup_teardown(a_lease_can_do_without_healing, open_plain, close_all),
        cmocka_unit_test_setup_teardown(a_lock_delay_keeps_the_keys_of_a_lost_lease, open_plain, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
