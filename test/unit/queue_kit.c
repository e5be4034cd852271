/* What the tests of waiting in queues begin with. */
#include "queue_kit.h"

redlock_acquire_options patient_options(void) {
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = 60000;
    return options;
}

redlock_request *wait_for_it(struct seen *seen) {
    redlock_request *request;
    const redlock_acquire_options options = patient_options();
    *seen = (struct seen){0};
    assert_is(redlock_group_acquire(fake.group, "r", &options, &request, see, seen), REDLOCK_OK);
    return request;
}

redlock_request *queue_up(struct seen *seen) {
    redlock_request *request = wait_for_it(seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    for (unsigned i = 0; i < fake.node_count; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
        fake_env_queue(&fake, i, EARLIER, 1);
    }
    assert_int_equal(seen->count, 0);
    return request;
}

const struct fake_sent *last_wait(unsigned node) {
    for (unsigned i = fake.sent_count; i > 0; i--) {
        if (fake.sent[i - 1].node == node && fake.sent[i - 1].operation == REDLOCK_OP_WAIT) {
            return &fake.sent[i - 1];
        }
    }
    fail();
    return NULL;
}

void push(unsigned first, unsigned last) {
    for (unsigned i = first; i <= last; i++) {
        fake_env_push(&fake, last_wait(i));
    }
}

void refresh(void) {
    while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0) {
        fake_env_pass_ms(&fake, 1);
    }
    for (unsigned i = 0; i < fake.node_count; i++) {
        if (fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)) {
            fake_env_queue(&fake, i, EARLIER, 1);
        }
    }
}

void listens(unsigned node, enum redlock_listening listening) {
    struct redlock_text *why = redlock_text_new(REDLOCK_CAUSE_NOPERM, "NOPERM no channels");
    redlock_group_listens(fake.group, node, listening, listening == REDLOCK_LISTENING_REFUSED ? why : NULL);
    redlock_text_drop(why);
}

void all_listen(void) {
    for (unsigned i = 0; i < fake.node_count; i++) {
        listens(i, REDLOCK_LISTENING);
    }
}

void release_quietly(redlock_lease *lease, bool handed_over) {
    assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    for (unsigned i = 0; i < fake.node_count; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_RELEASE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .handed_over = handed_over});
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
}

void answer_late_tries(void) {
    while (fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE)) {
        for (unsigned i = 0; i < 5; i++) {
            if (fake_env_waiting(&fake, i, REDLOCK_OP_ACQUIRE)) {
                fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
            }
        }
    }
}

void assert_given_back(const struct fake_sent *wait) {
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 1);
    const struct fake_sent *release = fake_env_waiting(&fake, 3, REDLOCK_OP_RELEASE);
    assert_string_equal(release->token, wait->token);
    assert_string_equal(release->key, wait->key);
    assert_is(release->handing, REDLOCK_HAND_OVER);
    assert_owed(1, 0);
    fake_env_answer(&fake, 3, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    assert_owed(0, 0);
}
