/* Pushes that a release has overtaken, and those of the tokens before and after it. */
#include "queue_kit.h"

/* Acquires by pushes of nodes 0 to 2. Returns the WAIT of node 3, whose push has not come. */
static struct fake_sent hold_by_pushes(struct seen *seen) {
    queue_up(seen);
    answer_late_tries();
    push(0, 2);
    assert_is(seen->code, REDLOCK_OK);
    return *last_wait(3);
}

GROUP_TEST(a_push_that_comes_after_its_release_needs_no_other, five_nodes) {
    const struct fake_sent late = hold_by_pushes(&seen);
    const struct fake_sent other = *last_wait(4);
    release_quietly(seen.lease, true);
    fake_env_pass_ms(&fake, 40);
    fake_env_push(&fake, &late);
    fake_env_push(&fake, &other);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    fake_env_push(&fake, &late); /* another grant */
    assert_given_back(&late);
}

GROUP_TEST(a_push_that_comes_before_the_last_answers_needs_no_other, five_nodes) {
    const struct fake_sent late = hold_by_pushes(&seen);
    assert_is(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_RELEASE, "GGG");
    fake_env_turn(&fake);
    fake_env_push(&fake, &late);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 2);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_push(&fake, &late);
    assert_given_back(&late);
}

/* A WAIT on an old connection came after the release, so the node has our key. */
GROUP_TEST(a_push_of_a_node_that_denies_the_release_is_given_back, five_nodes) {
    for (int push_is_first = 0; push_is_first <= 1; push_is_first++) {
        const struct fake_sent late = hold_by_pushes(&seen);
        assert_is(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
        if (push_is_first) {
            fake_env_push(&fake, &late);
        }
        fake_env_answer(&fake, 3, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
        if (!push_is_first) {
            fake_env_push(&fake, &late);
        }
        for (unsigned i = 0; i < 5; i++) {
            if (i != 3) {
                fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
            }
        }
        fake_env_turn(&fake);
        assert_given_back(&late);
    }
}

static void denied_by_3(struct seen *seen) {
    assert_is(redlock_release(seen->lease, NULL, NULL), REDLOCK_OK);
    fake_env_answer(&fake, 3, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static void pushed_before(struct seen *seen) {
    push(3, 3);
    release_quietly(seen->lease, false);
}

static void pushed_during_the_release(struct seen *seen) {
    assert_is(redlock_release(seen->lease, NULL, NULL), REDLOCK_OK);
    push(3, 3);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static void healed(struct seen *seen) {
    while (!fake_env_waiting(&fake, 3, REDLOCK_OP_HEAL)) {
        fake_env_pass_ms(&fake, 100);
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    release_quietly(seen->lease, false);
}

static void the_subscription_was_lost(struct seen *seen) {
    release_quietly(seen->lease, false);
    listens(3, REDLOCK_LISTENING_NOT);
    listens(3, REDLOCK_LISTENING);
}

static void too_late(struct seen *seen) {
    release_quietly(seen->lease, false);
    fake_env_pass_ms(&fake, 50); /* the node timeout */
}

GROUP_TEST(any_other_push_after_the_release_is_given_back, five_nodes) {
    static void (*const cases[])(struct seen *) = {
        denied_by_3, pushed_before, pushed_during_the_release, healed, the_subscription_was_lost, too_late};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct fake_sent late = hold_by_pushes(&seen);
        cases[i](&seen);
        fake_env_turn(&fake);
        fake_env_push(&fake, &late);
        assert_given_back(&late);
    }
}

/* The node pushes nothing to whom it grants the lock by an answer. */
GROUP_TEST(what_an_answer_granted_is_given_back, five_nodes) {
    for (int is_late = 0; is_late <= 1; is_late++) {
        queue_up(&seen);
        answer_late_tries();
        push(0, 0);
        while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0) {
            fake_env_pass_ms(&fake, 1);
        }
        const struct fake_sent late = *last_wait(3);
        if (!is_late) {
            fake_env_answer(&fake, 3, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
        }
        push(1, 2);
        assert_is(seen.code, REDLOCK_OK);
        assert_is(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
        if (is_late) {
            fake_env_answer(&fake, 3, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
        }
        fake_env_votes(&fake, REDLOCK_OP_RELEASE, "GGGGG");
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        fake_env_turn(&fake);
        fake_env_push(&fake, &late);
        assert_given_back(&late);
    }
}

/* What came for the token before it yielded says nothing of the pushes for this one. */
GROUP_TEST(a_fresh_token_has_pushes_of_its_own, five_nodes) {
    queue_up(&seen);
    answer_late_tries();
    push(3, 3);
    const struct fake_sent old = *last_wait(3);
    while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0) {
        fake_env_pass_ms(&fake, 1);
    }
    fake_env_answer(&fake, 3, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    for (unsigned i = 0; i < 5; i++) {
        if (i != 3) {
            fake_env_queue(&fake, i, EARLIER, 1);
        }
    }
    assert_string_not_equal(last_wait(3)->token, old.token);
    for (unsigned i = 0; i < 5; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
        fake_env_queue(&fake, i, EARLIER, 1);
    }
    push(0, 2);
    assert_is(seen.code, REDLOCK_OK);
    const struct fake_sent late = *last_wait(3);
    release_quietly(seen.lease, false);
    fake_env_push(&fake, &late);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
}
