/* How waiting in queues ends: without the lock, without memory, or because nodes cannot keep a
 * queue. */
#include "queue_kit.h"

static bool no_memory;

void *__real_realloc(void *old, size_t size);
/* The linker puts it in place of realloc(). */
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size) {
    return no_memory ? NULL : __real_realloc(old, size);
}

static void fail_wait(unsigned node, enum redlock_cause cause, const char *error) {
    struct redlock_text *text = redlock_text_new(cause, "%s", error);
    fake_env_answer_as(&fake, node, REDLOCK_OP_WAIT,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_FAILED, .text = text});
    redlock_text_drop(text);
}

/* The acquire waits as if its order were NONE. */
static void assert_polls(struct seen *seen) {
    const unsigned waits = fake_env_waiting_count(&fake, REDLOCK_OP_WAIT);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), waits);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), waits);
    assert_int_equal(seen->count, 0);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
}

/* An acquire that begins now loses its first try. Then so many nodes are asked for a place. */
static void lose_a_try(unsigned waits) {
    struct seen next;
    redlock_request *request = wait_for_it(&next);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), waits);
    redlock_request_cancel(request);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
}

GROUP_TEST(without_subscriptions_it_polls, five_nodes) {
    struct seen trying;
    queue_up(&seen);
    answer_late_tries();
    const redlock_acquire_options options = patient_options();
    assert_is(redlock_group_acquire(fake.group, "s", &options, NULL, see, &trying), REDLOCK_OK);
    memset(&trying, 0, sizeof trying);
    listens(0, REDLOCK_LISTENING_REFUSED);
    listens(1, REDLOCK_LISTENING_REFUSED);
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 0);
    listens(2, REDLOCK_LISTENING_REFUSED);
    listens(3, REDLOCK_LISTENING_REFUSED);
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
    assert_contains(fake.log, "too few nodes can keep a queue, so waiting tries again after random delays; "
                              "node node2:6379: NOPERM no channels");
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5); /* out of the queues */
    /* This also ends the first try of the other one. */
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 10);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);

    lose_a_try(0);
    listens(2, REDLOCK_LISTENING);
    listens(3, REDLOCK_LISTENING);
    lose_a_try(5);
    assert_int_equal(seen.count + trying.count, 0);
}

GROUP_TEST(without_permission_it_polls, five_nodes) {
    wait_for_it(&seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    for (unsigned i = 0; i < 5; i++) {
        fail_wait(i, REDLOCK_CAUSE_NOPERM, "NOPERM no zadd");
    }
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
    assert_contains(fake.log, "node node2:6379: NOPERM no zadd");
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_polls(&seen);
    /* An ACL may forbid this resource only. */
    lose_a_try(5);
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
}

/* The nodes hear SUBSCRIBE, and refuse the queue. */
static void refuse_again(const char *error) {
    struct seen seen;
    for (unsigned i = 0; i < 5; i++) {
        listens(i, REDLOCK_LISTENING);
    }
    redlock_request *request = wait_for_it(&seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    for (unsigned i = 0; i < 5; i++) {
        fail_wait(i, REDLOCK_CAUSE_NOPERM, error);
    }
    redlock_request_cancel(request);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
}

GROUP_TEST(the_same_reason_is_one_warning, five_nodes) {
    refuse_again("NOPERM no zadd");
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
    refuse_again("NOPERM no zadd"); /* after a reconnect */
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
    refuse_again("NOPERM no hset");
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 2);
}

/* Tries fail until it takes a place again. Returns how long that took. */
static int64_t polls_for_ms(void) {
    const int64_t from_ns = fake.now_ns;
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0) {
        assert_in_range(fake.now_ns - from_ns, 0, 60000 * REDLOCK_NS_PER_MS);
        fake_env_pass_ms(&fake, 10);
        for (unsigned i = 0; i < 5; i++) {
            while (fake_env_waiting(&fake, i, REDLOCK_OP_ACQUIRE)) {
                fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
            }
            while (fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE)) {
                fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
            }
        }
    }
    return (fake.now_ns - from_ns) / REDLOCK_NS_PER_MS;
}

static void queue_at(unsigned first, unsigned last) {
    for (unsigned i = first; i <= last; i++) {
        fake_env_queue(&fake, i, EARLIER, 1);
    }
}

static void until_refresh(void) {
    for (unsigned ms = 0; ms < 3000 && fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0; ms++) {
        fake_env_pass_ms(&fake, 1);
    }
    assert_int_not_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
}

/* Nodes that fail on different days were never bad together. */
GROUP_TEST(a_node_that_keeps_a_place_again_is_well, five_nodes) {
    static const enum redlock_cause causes[] = {REDLOCK_CAUSE_CLUSTER, REDLOCK_CAUSE_NOPERM};
    for (unsigned k = 0; k < 2; k++) {
        redlock_request *request = queue_up(&seen);
        answer_late_tries();
        for (unsigned bad = 0; bad < 5; bad++) {
            until_refresh();
            for (unsigned i = 0; i < 5; i++) {
                if (i == bad) {
                    fail_wait(i, causes[k], "CLUSTERDOWN or NOPERM");
                } else {
                    queue_at(i, i);
                }
            }
        }
        until_refresh();
        redlock_request_cancel(request);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        fake_env_turn(&fake);
    }
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 0);
}

GROUP_TEST(who_polls_returns_to_the_queue, five_nodes) {
    queue_up(&seen);
    answer_late_tries();
    until_refresh();
    for (unsigned i = 0; i < 3; i++) {
        fail_wait(i, REDLOCK_CAUSE_CLUSTER, "CLUSTERDOWN");
    }
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
    assert_in_range(polls_for_ms(), 250, 720);
    fail_wait(0, REDLOCK_CAUSE_CLUSTER, "CLUSTERDOWN"); /* the others are well */
    queue_at(1, 4);
    push(1, 3);
    assert_is(seen.code, REDLOCK_OK);
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
}

GROUP_TEST(who_began_to_poll_takes_a_place_when_nodes_are_well, five_nodes) {
    for (unsigned i = 0; i < 3; i++) {
        listens(i, REDLOCK_LISTENING_REFUSED);
    }
    wait_for_it(&seen);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    for (unsigned passed_ms = 0; passed_ms < 30000; passed_ms += 10) {
        fake_env_pass_ms(&fake, 10);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    }
    for (unsigned i = 0; i < fake.sent_count; i++) {
        assert_int_not_equal(fake.sent[i].operation, REDLOCK_OP_WAIT);
    }
    listens(0, REDLOCK_LISTENING);
    assert_in_range(polls_for_ms(), 0, 220); /* at its next try */
    queue_at(0, 4);
    push(1, 3);
    assert_is(seen.code, REDLOCK_OK);
}

/* The key of the queue holds something else. Other resources have queues all the same. */
GROUP_TEST(a_resource_whose_queue_cannot_be_kept_is_polled, five_nodes) {
    struct seen next;
    for (unsigned times = 0; times < 2; times++) {
        wait_for_it(&seen);
        fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
        fail_wait(0, REDLOCK_CAUSE_SERVER, "WRONGTYPE a string");
        fail_wait(1, REDLOCK_CAUSE_BUSY, "BUSY for now");
        fail_wait(2, REDLOCK_CAUSE_SERVER, "WRONGTYPE a string");
        assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], times);
        fail_wait(3, REDLOCK_CAUSE_SERVER, "WRONGTYPE a string");
        assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1); /* once, whoever comes after */
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        if (times == 0) {
            assert_polls(&seen);
        }
    }
    const redlock_acquire_options options = patient_options();
    memset(&next, 0, sizeof next);
    assert_is(redlock_group_acquire(fake.group, "s", &options, NULL, see, &next), REDLOCK_OK);
    assert_is(fake.sent[fake.sent_count - 1].operation, REDLOCK_OP_ACQUIRE);
    assert_int_equal(strlen(fake.sent[fake.sent_count - 1].token), 32);
}

/* --- How it ends --- */

GROUP_TEST(a_cancel_leaves_the_queues, five_nodes) {
    redlock_request *request = queue_up(&seen);
    answer_late_tries();
    push(0, 0);
    const struct fake_sent late = *last_wait(3);
    redlock_request_cancel(request);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    for (unsigned i = 0; i < 5; i++) {
        const struct fake_sent *release = fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE);
        assert_string_equal(release->token, late.token);
        /* what it was granted goes to the next in line */
        assert_is(release->handing, REDLOCK_HAND_OVER);
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    assert_seen(seen, 1, REDLOCK_ERR_CANCELLED);
    fake_env_push(&fake, &late); /* its WAIT came after its release, on an older connection */
    assert_given_back(&late);
    const unsigned sent = fake.sent_count;
    fake_env_pass_ms(&fake, 60000);
    assert_int_equal(fake.sent_count, sent);
    assert_int_equal(seen.count, 1);
}

GROUP_TEST(the_wait_ends, five_nodes) {
    all_listen();
    queue_up(&seen);
    answer_late_tries();
    while (fake.now_ns < 60900 * REDLOCK_NS_PER_MS) {
        fake_env_pass_ms(&fake, 100);
        assert_int_equal(seen.count, 0);
        for (unsigned i = 0; i < 5; i++) {
            if (fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)) {
                fake_env_queue(&fake, i, EARLIER, 20);
            }
        }
    }
    fake_env_pass_ms(&fake, 100);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_is(seen.code, REDLOCK_ERR_CONTENDED);
    assert_int_equal(seen.count, 1);
    /* The places were kept fresh: it looked whenever the keys, of a second, might have ended. */
    assert_in_range(fake.sent_count, 5 * 50, 5 * 65);
    assert_owed(0, 0);
}

GROUP_TEST(a_close_leaves_the_queues, five_nodes) {
    unsigned drained = 0;
    queue_up(&seen);
    answer_late_tries();
    const struct fake_sent late = *last_wait(2);
    redlock_group_drain(fake.group, count_drained, &drained);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    fake_env_turn(&fake);
    assert_is(seen.code, REDLOCK_ERR_CLOSED);
    assert_int_equal(drained, 0);
    fake_env_push(&fake, &late); /* it crosses the release */
    listens(0, REDLOCK_LISTENING);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    assert_int_equal(drained, 1);
    assert_int_equal(seen.count, 1);
}

/* The place may be served until it is stale, and then its key lives for its ttl. */
GROUP_TEST(a_place_that_a_node_does_not_give_up_ends_by_itself, five_nodes) {
    redlock_request *request = queue_up(&seen);
    answer_late_tries();
    fake.refusing = REDLOCK_NODE(2);
    redlock_request_cancel(request);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_pass_ms(&fake, 17400);
    assert_owed(1, 0);
    fake_env_pass_ms(&fake, 200);
    assert_owed(0, 1);
}

/* Its place is still that of its last WAIT. */
GROUP_TEST(an_extension_does_not_shorten_the_debt_of_a_place, five_nodes) {
    struct seen extended = {0};
    queue_up(&seen);
    answer_late_tries();
    push(0, 2);
    assert_is(seen.code, REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_is(redlock_extend(seen.lease, 1000, see, &extended), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_turn(&fake);
    assert_is(extended.code, REDLOCK_OK);
    fake.refusing = REDLOCK_NODE(3);
    assert_is(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake_env_pass_ms(&fake, 17400);
    assert_owed(1, 0);
    fake_env_pass_ms(&fake, 200);
    assert_owed(0, 1);
}

GROUP_TEST(without_random_bytes_there_is_no_place, five_nodes) {
    static const int codes[] = {REDLOCK_ERR_RANDOM, REDLOCK_ERR_FORKED};
    for (unsigned i = 0; i < 2; i++) {
        wait_for_it(&seen);
        fake.random_code = codes[i];
        fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
        fake_env_turn(&fake);
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.code, codes[i]);
        assert_null(fake.channel);
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
        fake.random_code = REDLOCK_OK;
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    }
    queue_up(&seen); /* nobody counts as waiting here: it tried first */
    assert_non_null(fake.channel);
}

/* The last token is released before the next one is drawn. A push of it may come after that. */
GROUP_TEST(without_random_bytes_a_late_grant_is_given_back, five_nodes) {
    queue_up(&seen);
    answer_late_tries();
    const struct fake_sent old = *last_wait(3);
    push(0, 1);
    fake_env_pass_ms(&fake, 2);
    fake_env_votes(&fake, REDLOCK_OP_WAIT, "GG");
    fake.random_code = REDLOCK_ERR_RANDOM;
    /* The two that wait say that an earlier one has the lock, so it yields. Node 4 is slow. */
    fake_env_queue(&fake, 2, EARLIER, 1);
    fake_env_queue(&fake, 3, EARLIER, 1);
    fake_env_pass_ms(&fake, 10);
    assert_int_equal(statistics().yields, 1);
    for (unsigned i = 0; i < 5; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
    }
    /* The lease is still there. */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 1);
    fake_env_push(&fake, &old);
    assert_given_back(&old);
    assert_seen(seen, 1, REDLOCK_ERR_RANDOM);
    fake.random_code = REDLOCK_OK;
}

GROUP_TEST(without_memory_there_is_no_acquire, five_nodes) {
    const redlock_acquire_options options = patient_options();
    acquire(NULL, &seen); /* its room in the schedule stays */
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    const uint64_t acquires = statistics().acquires;
    const unsigned sent = fake.sent_count;
    no_memory = true;
    const int code = redlock_group_acquire(fake.group, "r", &options, NULL, see, &seen);
    no_memory = false;
    assert_is(code, REDLOCK_ERR_NO_MEMORY);
    assert_int_equal(statistics().acquires, acquires);
    assert_int_equal(fake.sent_count, sent);
    queue_up(&seen);
    push(0, 2);
    assert_is(seen.code, REDLOCK_OK);
}

#define MANY 20 /* more than there is room for at first */

static struct seen many[MANY];

static void see_and_queue_up_many(const redlock_result *result, void *data) {
    const redlock_acquire_options options = patient_options();
    see(result, data);
    for (unsigned i = 0; i < MANY; i++) {
        many[i] = (struct seen){0};
        assert_is(redlock_group_acquire(fake.group, "r", &options, NULL, see, &many[i]), REDLOCK_OK);
    }
    redlock_lease_forget(((struct seen *)data)->lease);
}

/* The callback of a lease that a push made changes the list in which the push found it. */
GROUP_TEST(a_callback_may_begin_and_end_waits, five_nodes) {
    struct seen other;
    const redlock_acquire_options options = patient_options();
    queue_up(&other);
    assert_is(redlock_group_acquire(fake.group, "r", &options, NULL, see_and_queue_up_many, &seen), REDLOCK_OK);
    for (unsigned i = 0; i < 5; i++) {
        fake_env_queue(&fake, i, EARLIER, 2);
    }
    push(0, 2);
    assert_is(seen.code, REDLOCK_OK);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 5 * MANY);
    fake.log[0] = '\0';
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    const unsigned sent = fake.sent_count;
    listens(0, REDLOCK_LISTENING);
    fake_env_pass_ms(&fake, 2);
    assert_int_equal(fake.sent_count, sent + 5 * (MANY + 1));
}
