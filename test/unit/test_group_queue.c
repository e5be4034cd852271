/* Waiting in queues through the public API over a fake env: what is sent, which pushes count, and
 * which are given back. */
#include <stdio.h>
#include <stdlib.h>

#include "group_kit.h"

#define EARLIER "0000000000000001aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" /* tokens of other waiters */
#define LATER   "00ffffffffffffffaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static bool no_memory;

void *__real_realloc(void *old, size_t size);
/* The linker puts it in place of realloc(). */
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size) {
    return no_memory ? NULL : __real_realloc(old, size);
}

static redlock_acquire_options patient_options(void) {
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = 60000;
    return options;
}

/* Asks for the lock "r", and waits for it. */
static redlock_request *wait_for_it(struct seen *seen) {
    redlock_request *request;
    const redlock_acquire_options options = patient_options();
    *seen = (struct seen){0};
    assert_int_equal(redlock_group_acquire(fake.group, "r", &options, &request, see, seen), REDLOCK_OK);
    return request;
}

/* Somebody holds the lock "r". After a first try, the acquire has a place on all nodes. */
static redlock_request *queue_up(struct seen *seen) {
    redlock_request *request = wait_for_it(seen);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    }
    for (unsigned i = 0; i < fake.node_count; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
        fake_env_queue(&fake, i, EARLIER, 1);
    }
    assert_int_equal(seen->count, 0);
    return request;
}

/* The last WAIT that this node got. */
static const struct fake_sent *last_wait(unsigned node) {
    for (unsigned i = fake.sent_count; i > 0; i--) {
        if (fake.sent[i - 1].node == node && fake.sent[i - 1].operation == REDLOCK_OP_WAIT) {
            return &fake.sent[i - 1];
        }
    }
    fail();
    return NULL;
}

static void push(unsigned first, unsigned last) {
    for (unsigned i = first; i <= last; i++) {
        fake_env_push(&fake, last_wait(i));
    }
}

/* The next WAIT to all nodes, which say "queued". */
static void refresh(void) {
    while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0) {
        fake_env_pass_ms(&fake, 1);
    }
    for (unsigned i = 0; i < fake.node_count; i++) {
        if (fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)) {
            fake_env_queue(&fake, i, EARLIER, 1);
        }
    }
}

static void fail_wait(unsigned node, enum redlock_cause cause, const char *error) {
    struct redlock_text *text = redlock_text_new(cause, "%s", error);
    fake_env_answer_as(&fake, node, REDLOCK_OP_WAIT,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_FAILED, .text = text});
    redlock_text_drop(text);
}

static void listens(unsigned node, enum redlock_listening listening) {
    struct redlock_text *why = redlock_text_new(REDLOCK_CAUSE_NOPERM, "NOPERM no channels");
    redlock_group_listens(fake.group, node, listening, listening == REDLOCK_LISTENING_REFUSED ? why : NULL);
    redlock_text_drop(why);
}

static void release_quietly(redlock_lease *lease, bool handed_over) {
    assert_int_equal(redlock_release(lease, NULL, NULL), REDLOCK_OK);
    for (unsigned i = 0; i < fake.node_count; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_RELEASE,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED, .handed_over = handed_over});
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
}

/* --- Taking a place --- */

static void a_lost_try_takes_a_place_in_the_same_turn(void **state) {
    (void)state;
    struct seen seen;
    redlock_request *request = wait_for_it(&seen);
    const struct fake_sent *try = &fake.sent[0];
    assert_int_equal(strlen(try->token), 48);
    assert_memory_equal(try->token, "0000000000000000", 16); /* it will hand over, and waits for nobody */
    assert_null(fake.channel);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    }
    assert_int_equal(fake.sent_count, 15);
    for (unsigned i = 0; i < 5; i++) {
        const struct fake_sent *release = &fake.sent[5 + i], *wait = &fake.sent[10 + i];
        char ticket[17];
        assert_int_equal(release->operation, REDLOCK_OP_RELEASE);
        assert_string_equal(release->token, try->token);
        assert_false(release->keeps); /* who is in line before us must not be passed over */
        assert_int_equal(wait->operation, REDLOCK_OP_WAIT);
        assert_int_equal(strlen(wait->token), 48);
        (void)snprintf(ticket, sizeof ticket, "%016llx", (unsigned long long)wait->place.ticket);
        assert_memory_equal(wait->token, ticket, 16);
        assert_int_equal(wait->place.ticket, fake.wall_us); /* no node's clock is known */
        assert_int_equal(wait->place.stale_ms, 7500);
        assert_int_equal(wait->place.queue_ttl_ms, 15000);
        assert_true(wait->place.takes);
        assert_string_equal(wait->token, fake.sent[10].token);
    }
    assert_int_equal(strlen(fake.channel), 40);
    redlock_request_cancel(request);
}

static void the_ticket_stays_and_the_token_changes(void **state) {
    (void)state;
    struct seen seen;
    redlock_request *request = queue_up(&seen);
    const struct fake_sent first = *last_wait(0);
    push(0, 1);
    fake_env_pass_ms(&fake, 2);
    fake_env_answer(&fake, 0, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    fake_env_answer(&fake, 1, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    refresh(); /* an earlier one has the other nodes, so these two go back */
    assert_int_equal(statistics().yields, 1);
    const struct fake_sent *second = last_wait(0);
    assert_string_not_equal(second->token, first.token);
    assert_memory_equal(second->token, first.token, 16);
    assert_int_equal(second->place.id, first.place.id);
    redlock_request_cancel(request);
}

static void who_does_not_queue_has_a_short_token(void **state) {
    (void)state;
    struct seen seen;
    redlock_acquire_options options = default_options();
    for (unsigned i = 0; i < 2; i++) {
        fake.sent_count = 0;
        acquire(&options, &seen);
        assert_int_equal(strlen(fake.sent[0].token), 32);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
        options.wait_timeout_ms = 60000;
        options.order = REDLOCK_ORDER_NONE;
    }
    assert_null(fake.channel);
}

static void nobody_jumps_a_queue_that_this_process_waits_in(void **state) {
    (void)state;
    struct seen first, second, third;
    redlock_request *one = queue_up(&first);
    redlock_request *two = wait_for_it(&second);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 2); /* the late ones of `first` */
    assert_true(fake_env_waiting(&fake, 0, REDLOCK_OP_WAIT)->place.takes);
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_WAIT)->place.id, 1);
    redlock_request_cancel(one);
    redlock_request_cancel(two);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    assert_int_equal(second.code, REDLOCK_ERR_CANCELLED);
    const redlock_acquire_options options = patient_options();
    acquire(&options, &third);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
}

static void who_handed_over_does_not_jump_the_queue(void **state) {
    (void)state;
    struct seen seen;
    const redlock_acquire_options options = patient_options();
    release_quietly(take(&options, &seen), true);
    wait_for_it(&seen);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)->place.takes);
        fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    }
    assert_int_equal(seen.code, REDLOCK_OK);
    release_quietly(seen.lease, false);
    wait_for_it(&seen); /* nobody waits any more */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
}

static void a_wait_that_a_node_does_not_know_is_sent_by_source(void **state) {
    (void)state;
    struct seen seen;
    wait_for_it(&seen);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    }
    const struct fake_sent first = *last_wait(0);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer_no_script(&fake, i, REDLOCK_OP_WAIT);
        const struct fake_sent *again = fake_env_waiting(&fake, i, REDLOCK_OP_WAIT);
        assert_true(again->by_source);
        assert_string_equal(again->token, first.token);
        assert_int_equal(again->round, first.round);
        assert_int_equal(again->place.id, first.place.id);
        assert_int_equal(again->place.ticket, first.place.ticket);
        fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    }
    assert_int_equal(seen.code, REDLOCK_OK);
}

/* Whoever is before us may have died with the holder. */
static void the_second_in_line_looks_when_the_holder_may_be_dead(void **state) {
    (void)state;
    struct seen seen;
    redlock_request *request = queue_up(&seen); /* the lock ends in a second */
    fake_env_pass_ms(&fake, 1010);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
    fake_env_pass_ms(&fake, 2);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 5);
    assert_false(last_wait(0)->place.takes); /* the holder may be alive, with a node that lost its key */
    for (unsigned i = 0; i < 5; i++) {
        fake_env_queue(&fake, i, EARLIER, 8);
    }
    fake_env_pass_ms(&fake, 1200);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0); /* enough others look */
    redlock_request_cancel(request);
}

/* --- Pushes --- */

static void a_quorum_of_pushes_makes_a_lease(void **state) {
    (void)state;
    struct seen seen, released = {0};
    queue_up(&seen);
    fake_env_pass_ms(&fake, 1000);
    push(0, 1);
    assert_int_equal(seen.count, 0);
    push(4, 4);
    assert_int_equal(seen.code, REDLOCK_OK);
    assert_int_equal(seen.attempts, 2);
    assert_string_equal(redlock_lease_token(seen.lease), last_wait(0)->token);
    /* R1: it counts from the WAIT that was granted, not from the push. */
    assert_int_equal(redlock_lease_validity_ms(seen.lease), 9000 - 102);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(seen.votes[i], i < 2 || i == 4 ? REDLOCK_VOTE_GRANTED : REDLOCK_VOTE_DENIED);
    }
    assert_non_null(strstr(seen.message, "3 of 5 nodes granted it"));
    assert_int_equal(statistics().queued, 1);
    assert_int_equal(statistics().handed_over, 1);
    push(2, 2); /* late, and it counts */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    assert_int_equal(redlock_release(seen.lease, see, &released), REDLOCK_OK);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5); /* also out of the queues */
    assert_false(fake_env_waiting(&fake, 3, REDLOCK_OP_RELEASE)->keeps);
    push(3, 3); /* the release is behind it on the node */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_int_equal(released.code, REDLOCK_OK);
    assert_owed(0, 0);
}

static void a_push_that_is_older_than_an_answer_does_not_count(void **state) {
    (void)state;
    struct seen seen;
    queue_up(&seen);
    const struct fake_sent old = *last_wait(0);
    refresh();
    fake_env_push(&fake, &old); /* the node said "queued" since */
    push(1, 2);
    assert_int_equal(seen.count, 0);
    push(0, 0);
    assert_int_equal(seen.code, REDLOCK_OK);
}

/* Node 3 is asked to take back exactly this. */
static void assert_given_back(const struct fake_sent *wait) {
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 1);
    const struct fake_sent *release = fake_env_waiting(&fake, 3, REDLOCK_OP_RELEASE);
    assert_string_equal(release->token, wait->token);
    assert_string_equal(release->key, wait->key);
    assert_false(release->keeps);
    assert_owed(1, 0);
    fake_env_answer(&fake, 3, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    assert_owed(0, 0);
}

static void what_nobody_waits_for_is_given_back(void **state) {
    (void)state;
    struct seen seen;
    queue_up(&seen);
    const struct fake_sent ours = *last_wait(3);
    struct fake_sent other = ours;
    other.place.id = UINT32_MAX; /* no lease */
    fake_env_push(&fake, &other);
    assert_given_back(&other);
    other.place.id = 1; /* a free one */
    fake_env_push(&fake, &other);
    assert_given_back(&other);
    other = ours;
    other.token[47] = (char)(other.token[47] == 'a' ? 'b' : 'a'); /* an old token */
    fake_env_push(&fake, &other);
    assert_given_back(&other);
    other = ours;
    other.token[47] = '\0'; /* a part of it */
    fake_env_push(&fake, &other);
    assert_given_back(&other);
    other = ours;
    memset(other.key, 'k', sizeof other.key - 1); /* another key */
    fake_env_push(&fake, &other);
    assert_given_back(&other);
    push(0, 1);
    assert_int_equal(seen.count, 0); /* none of these was a vote */
    push(3, 3);
    assert_int_equal(seen.code, REDLOCK_OK);
}

static void a_push_from_the_future_is_no_vote(void **state) {
    (void)state;
    struct seen seen;
    queue_up(&seen);
    struct fake_sent other = *last_wait(0);
    other.round++;
    fake_env_push(&fake, &other);
    other.round = 0;
    fake_env_push(&fake, &other);
    push(1, 2);
    assert_int_equal(seen.count, 0);
}

/* A release that is delayed could take away a key that counts, once the node may vote again. */
static void a_node_that_may_not_vote_hands_nothing_over(void **state) {
    (void)state;
    struct seen seen;
    greet_all();
    queue_up(&seen);
    greet(1, "another", 0, reading(0)); /* it restarted */
    push(0, 2);
    assert_int_equal(seen.count, 0);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    push(3, 3);
    assert_int_equal(seen.code, REDLOCK_OK);
    assert_int_equal(seen.votes[1], REDLOCK_VOTE_DENIED);
    push(1, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    assert_int_equal(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
    assert_non_null(fake_env_waiting(&fake, 1, REDLOCK_OP_RELEASE));
}

static void a_node_that_may_not_vote_is_not_asked(void **state) {
    (void)state;
    struct seen seen;
    greet_all();
    queue_up(&seen);
    greet(1, "another", 0, reading(0));
    const uint32_t round = last_wait(0)->round;
    refresh();
    assert_int_equal(last_wait(0)->round, round + 1);
    assert_int_equal(last_wait(1)->round, round);
}

static void a_first_try_that_is_lost_asks_no_node_that_may_not_vote(void **state) {
    (void)state;
    struct seen seen;
    greet_all();
    (void)wait_for_it(&seen);
    greet(1, "another", 0, reading(0));
    for (unsigned i = 2; i < 5; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    }
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 4);
    assert_null(fake_env_waiting(&fake, 1, REDLOCK_OP_WAIT));
}

/* Nodes 0 and 1 have not answered the last WAIT but one. */
static void queue_up_slowly(struct seen *seen) {
    queue_up(seen);
    for (int i = 0; i < 2; i++) {
        while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) < 5) {
            fake_env_pass_ms(&fake, 1);
        }
        for (unsigned node = 2; node < 5 && i == 0; node++) {
            fake_env_queue(&fake, node, EARLIER, 1);
        }
    }
}

/* A node may always be slower than we ask again. */
static void an_answer_to_an_older_wait_may_grant(void **state) {
    (void)state;
    for (int restarted = 0; restarted <= 1; restarted++) {
        struct seen seen;
        greet_all();
        queue_up_slowly(&seen);
        if (restarted) {
            greet(1, "another", 0, reading(0));
        }
        const uint32_t round = last_wait(0)->round;
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)->round, round - 1);
            fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
        }
        assert_int_equal(seen.count, 0);
        push(2, 2);
        assert_int_equal(seen.count, !restarted);
        push(3, 3);
        assert_int_equal(seen.code, REDLOCK_OK);
        release_quietly(seen.lease, false);
    }
}

/* Somebody else may have adopted it. */
static void the_keys_of_a_forgotten_lease_stay(void **state) {
    (void)state;
    struct seen seen;
    queue_up(&seen);
    push(0, 2);
    const struct fake_sent late = *last_wait(3);
    redlock_lease_forget(seen.lease);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_push(&fake, &late);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
}

static void keys_that_outlive_a_lost_lease_stay(void **state) {
    (void)state;
    struct seen seen;
    redlock_acquire_options options = watched_options(&seen);
    options.wait_timeout_ms = 60000;
    options.lock_delay_ms = 5000;
    acquire(&options, &seen);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    push(0, 2);
    assert_int_equal(seen.code, REDLOCK_OK);
    const struct fake_sent late = *last_wait(3);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_pass_ms(&fake, 10000);
    assert_int_equal(seen.lost, 1);
    fake_env_push(&fake, &late);
    assert_int_equal(redlock_release(seen.lease, NULL, NULL), REDLOCK_OK);
    fake_env_turn(&fake);
    fake_env_push(&fake, &late);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
}

/* --- Subscriptions, and nodes that cannot keep a queue --- */

static void who_can_be_told_from_now_on_asks_again(void **state) {
    (void)state;
    struct seen first, second;
    queue_up(&first);
    redlock_request *other = wait_for_it(&second);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    const unsigned sent = fake.sent_count;
    for (unsigned i = 0; i < 5; i++) {
        listens(i, REDLOCK_LISTENING);
    }
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake.sent_count, sent);
    fake_env_pass_ms(&fake, 1);
    assert_int_equal(fake.sent_count, sent + 10); /* once, for all subscriptions */
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    redlock_request_cancel(other);
    const unsigned then = fake.sent_count;
    listens(0, REDLOCK_LISTENING_NOT);
    fake_env_turn(&fake);
    assert_int_equal(fake.sent_count, then);
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 0);
}

/* The acquire waits as if its order were NONE. */
static void assert_polls(struct seen *seen) {
    const unsigned waits = fake_env_waiting_count(&fake, REDLOCK_OP_WAIT);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 0);
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 5);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), waits);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    }
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), waits);
    assert_int_equal(seen->count, 0);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
}

static void answer_late_tries(void) {
    while (fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE)) {
        for (unsigned i = 0; i < 5; i++) {
            if (fake_env_waiting(&fake, i, REDLOCK_OP_ACQUIRE)) {
                fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
            }
        }
    }
}

static void without_subscriptions_it_polls(void **state) {
    (void)state;
    struct seen seen, trying, next;
    queue_up(&seen);
    answer_late_tries();
    const redlock_acquire_options options = patient_options();
    assert_int_equal(redlock_group_acquire(fake.group, "s", &options, NULL, see, &trying), REDLOCK_OK);
    memset(&trying, 0, sizeof trying);
    listens(0, REDLOCK_LISTENING_REFUSED);
    listens(1, REDLOCK_LISTENING_REFUSED);
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 0);
    listens(2, REDLOCK_LISTENING_REFUSED);
    listens(3, REDLOCK_LISTENING_REFUSED);
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
    assert_non_null(strstr(fake.log, "too few nodes can keep a queue, so waiting tries again after random delays; "
                                     "node node2:6379: NOPERM no channels"));
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5); /* out of the queues */
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED); /* this also ends the first try of the other one */
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
    fake_env_pass_ms(&fake, 200);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_ACQUIRE), 10);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);

    acquire(&options, &next);
    assert_int_equal(strlen(fake.sent[fake.sent_count - 1].token), 32);
    listens(2, REDLOCK_LISTENING);
    listens(3, REDLOCK_LISTENING);
    acquire(&options, &next);
    assert_int_equal(strlen(fake.sent[fake.sent_count - 1].token), 48);
    assert_int_equal(seen.count + trying.count, 0);
}

static void without_permission_it_polls(void **state) {
    (void)state;
    struct seen seen;
    wait_for_it(&seen);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    }
    for (unsigned i = 0; i < 5; i++) {
        fail_wait(i, REDLOCK_CAUSE_NOPERM, "NOPERM no zadd");
    }
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
    assert_non_null(strstr(fake.log, "node node2:6379: NOPERM no zadd"));
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_polls(&seen);
    const redlock_acquire_options options = patient_options();
    struct seen next;
    acquire(&options, &next); /* of any resource */
    assert_int_equal(strlen(fake.sent[fake.sent_count - 1].token), 32);
    assert_int_equal(fake.logged[REDLOCK_LOG_WARNING], 1);
}

/* The key of the queue holds something else. Other resources have queues all the same. */
static void a_resource_whose_queue_cannot_be_kept_is_polled(void **state) {
    (void)state;
    struct seen seen, next;
    for (unsigned times = 0; times < 2; times++) {
        wait_for_it(&seen);
        for (unsigned i = 0; i < 3; i++) {
            fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
        }
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
    assert_int_equal(redlock_group_acquire(fake.group, "s", &options, NULL, see, &next), REDLOCK_OK);
    assert_int_equal(strlen(fake.sent[fake.sent_count - 1].token), 48);
}

/* --- How it ends --- */

static void a_cancel_leaves_the_queues(void **state) {
    (void)state;
    struct seen seen;
    redlock_request *request = queue_up(&seen);
    answer_late_tries();
    push(0, 0);
    const struct fake_sent late = *last_wait(3);
    redlock_request_cancel(request);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    for (unsigned i = 0; i < 5; i++) {
        const struct fake_sent *release = fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE);
        assert_string_equal(release->token, late.token);
        assert_false(release->keeps); /* what it was granted goes to the next in line */
    }
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.code, REDLOCK_ERR_CANCELLED);
    fake_env_push(&fake, &late); /* its WAIT came after its release, on an older connection */
    assert_given_back(&late);
    const unsigned sent = fake.sent_count;
    fake_env_pass_ms(&fake, 60000);
    assert_int_equal(fake.sent_count, sent);
    assert_int_equal(seen.count, 1);
}

static void the_wait_ends(void **state) {
    (void)state;
    struct seen seen;
    queue_up(&seen);
    answer_late_tries();
    while (fake.now_ns < 60900 * REDLOCK_NS_PER_MS) {
        fake_env_pass_ms(&fake, 100);
        assert_int_equal(seen.count, 0);
        for (unsigned i = 0; i < 5; i++) {
            if (fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)) {
                fake_env_queue(&fake, i, EARLIER, 20); /* too far back to look for itself */
            }
        }
    }
    fake_env_pass_ms(&fake, 100);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_int_equal(seen.code, REDLOCK_ERR_CONTENDED);
    assert_int_equal(seen.count, 1);
    assert_in_range(fake.sent_count, 5 * 25, 5 * 30); /* the places were kept fresh */
    assert_owed(0, 0);
}

static void a_close_leaves_the_queues(void **state) {
    (void)state;
    struct seen seen;
    unsigned drained = 0;
    queue_up(&seen);
    answer_late_tries();
    const struct fake_sent late = *last_wait(2);
    redlock_group_drain(fake.group, count_drained, &drained);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    fake_env_turn(&fake);
    assert_int_equal(seen.code, REDLOCK_ERR_CLOSED);
    assert_int_equal(drained, 0);
    fake_env_push(&fake, &late); /* it crosses the release */
    listens(0, REDLOCK_LISTENING);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_turn(&fake);
    assert_int_equal(drained, 1);
    assert_int_equal(seen.count, 1);
}

/* The place may be served until it is stale, and then its key lives for its ttl. */
static void a_place_that_a_node_does_not_give_up_ends_by_itself(void **state) {
    (void)state;
    struct seen seen;
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

static void without_random_bytes_there_is_no_place(void **state) {
    static const int codes[] = {REDLOCK_ERR_RANDOM, REDLOCK_ERR_FORKED};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct seen seen;
        wait_for_it(&seen);
        fake.random_code = codes[i];
        for (unsigned k = 0; k < 3; k++) {
            fake_env_answer(&fake, k, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
        }
        fake_env_turn(&fake);
        assert_int_equal(seen.count, 1);
        assert_int_equal(seen.code, codes[i]);
        assert_null(fake.channel);
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
        fake.random_code = REDLOCK_OK;
        fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    }
    struct seen seen;
    queue_up(&seen); /* nobody counts as waiting here: it tried first */
    assert_non_null(fake.channel);
}

static void without_memory_there_is_no_acquire(void **state) {
    (void)state;
    struct seen seen = {0};
    const redlock_acquire_options options = patient_options();
    acquire(NULL, &seen); /* its room in the schedule stays */
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    const uint64_t acquires = statistics().acquires;
    const unsigned sent = fake.sent_count;
    no_memory = true;
    const int code = redlock_group_acquire(fake.group, "r", &options, NULL, see, &seen);
    no_memory = false;
    assert_int_equal(code, REDLOCK_ERR_NO_MEMORY);
    assert_int_equal(statistics().acquires, acquires);
    assert_int_equal(fake.sent_count, sent);
    queue_up(&seen);
    push(0, 2);
    assert_int_equal(seen.code, REDLOCK_OK);
}

#define MANY 20 /* more than there is room for at first */

static struct seen many[MANY];

static void see_and_queue_up_many(const redlock_result *result, void *data) {
    const redlock_acquire_options options = patient_options();
    see(result, data);
    for (unsigned i = 0; i < MANY; i++) {
        many[i] = (struct seen){0};
        assert_int_equal(redlock_group_acquire(fake.group, "r", &options, NULL, see, &many[i]), REDLOCK_OK);
    }
    redlock_lease_forget(((struct seen *)data)->lease);
}

/* The callback of a lease that a push made changes the list in which the push found it. */
static void a_callback_may_begin_and_end_waits(void **state) {
    (void)state;
    struct seen seen = {0}, other;
    const redlock_acquire_options options = patient_options();
    queue_up(&other);
    assert_int_equal(redlock_group_acquire(fake.group, "r", &options, NULL, see_and_queue_up_many, &seen), REDLOCK_OK);
    for (unsigned i = 0; i < 5; i++) {
        fake_env_queue(&fake, i, EARLIER, 2);
    }
    push(0, 2);
    assert_int_equal(seen.code, REDLOCK_OK);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 5 * MANY);
    fake.log[0] = '\0';
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    const unsigned sent = fake.sent_count;
    listens(0, REDLOCK_LISTENING);
    fake_env_pass_ms(&fake, 2);
    assert_int_equal(fake.sent_count, sent + 5 * (MANY + 1));
}

static void statistics_count_what_waiters_did(void **state) {
    (void)state;
    struct seen seen;
    queue_up(&seen);
    answer_late_tries();
    push(0, 1);
    fake_env_pass_ms(&fake, 2); /* no quorum: it looks */
    assert_int_equal(statistics().splits, 1);
    for (unsigned i = 0; i < 2; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    }
    for (unsigned i = 2; i < 5; i++) {
        fake_env_queue(&fake, i, LATER, 0);
    }
    assert_int_equal(statistics().yields, 1); /* one other token has a quorum */
    for (unsigned i = 0; i < 5; i++) {
        assert_true(fake_env_waiting(&fake, i, REDLOCK_OP_RELEASE)->keeps);
        fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
        fake_env_queue(&fake, i, LATER, 0);
    }
    assert_int_equal(statistics().polls, 0);
    fake_env_pass_ms(&fake, 1003); /* the holder's keys have ended */
    assert_int_equal(statistics().polls, 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)->place.takes);
        fake_env_answer(&fake, i, REDLOCK_OP_WAIT, REDLOCK_VOTE_GRANTED);
    }
    assert_int_equal(seen.code, REDLOCK_OK);
    const redlock_statistics now = statistics();
    assert_int_equal(now.queued, 1);
    assert_int_equal(now.handed_over, 1);
    assert_int_equal(now.passed_over, 1);
    assert_int_equal(now.attempts, 3); /* the try, the place, and the place after the yield */
    assert_int_equal(seen.passed_over, 1);
    static const char *const lines[] = {"acquire 'r': takes a place in the queues as attempt 2",
                                        "wait 'r': node node1:6379 handed it over",
                                        "wait 'r': 2 nodes granted it, 3 are needed: asks why",
                                        "wait 'r': gives back what it got, and waits on as attempt 3",
                                        "wait 'r': first in line, asks whether it is free",
                                        "acquire 'r': OK at attempt 3, valid for "};
    const char *at = fake.log;
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++) {
        at = strstr(at, lines[i]); /* in this order */
        assert_non_null(at);
    }
    assert_null(strstr(fake.log, redlock_lease_token(seen.lease)));
}

/* --- Who waits, as an inspection tells --- */

struct told {
    int64_t waiters, waited_ms;
};

static void see_waiters(const redlock_result *result, void *data) {
    struct told *told = data;
    redlock_result *copy = redlock_result_copy(result);
    assert_non_null(copy);
    *told = (struct told){redlock_result_waiters(copy), redlock_result_waited_ms(copy)};
    redlock_result_free(copy);
}

/* What an inspection tells if these nodes say so; -2: the node is silent. */
static struct told inspect(const int64_t waiters[5], const int64_t waited_ms[5]) {
    struct told told = {-2, -2};
    assert_int_equal(redlock_group_inspect(fake.group, "r", see_waiters, &told), REDLOCK_OK);
    for (unsigned i = 0; i < 5; i++) {
        const redlock_vote_kind vote = waiters[i] == -2 ? REDLOCK_VOTE_UNKNOWN : REDLOCK_VOTE_DENIED;
        fake_env_answer_as(&fake, i, REDLOCK_OP_INSPECT,
                           (struct redlock_answer){.vote = vote, .waiters = waiters[i], .waited_ms = waited_ms[i]});
    }
    return told;
}

static void an_inspection_tells_the_median(void **state) {
    static const struct {
        int64_t waiters[5], waited_ms[5];
        struct told told;
    } rows[] = {
        {{0, 0, 0, 0, 0}, {-1, -1, -1, -1, -1}, {0, -1}},
        {{3, 3, 3, 3, 3}, {2000, 2001, 2002, 2003, 2004}, {3, 2002}},
        {{9, 3, 0, 4, 3}, {900000, 2001, -1, 2003, 0}, {3, 2001}}, /* two wrong clocks, and a node without a queue */
        {{1, 0, 0, 0, 1}, {500, -1, -1, -1, 500}, {0, -1}},        /* gone from most nodes */
        {{-2, -2, 2, 2, 2}, {0, 0, 10, 10, 10}, {2, 10}},
        {{-2, -1, -1, 2, 2}, {0, -1, -1, 10, 10}, {-1, -1}}, /* too few can tell */
        {{2, 2, 2, 2, 2}, {-1, -1, -1, -1, -1}, {2, -1}},    /* an ACL forbids TIME */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct told told = inspect(rows[i].waiters, rows[i].waited_ms);
        assert_int_equal(told.waiters, rows[i].told.waiters);
        assert_int_equal(told.waited_ms, rows[i].told.waited_ms);
    }
}

static void other_results_know_of_no_waiters(void **state) {
    struct told told = {-2, -2};
    (void)state;
    assert_int_equal(redlock_group_acquire(fake.group, "r", NULL, NULL, see_waiters, &told), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_int_equal(told.waiters, -1);
    assert_int_equal(told.waited_ms, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        group_test(a_lost_try_takes_a_place_in_the_same_turn, five_nodes),
        group_test(the_ticket_stays_and_the_token_changes, five_nodes),
        group_test(who_does_not_queue_has_a_short_token, five_nodes),
        group_test(nobody_jumps_a_queue_that_this_process_waits_in, five_nodes),
        group_test(who_handed_over_does_not_jump_the_queue, five_nodes),
        group_test(a_wait_that_a_node_does_not_know_is_sent_by_source, five_nodes),
        group_test(the_second_in_line_looks_when_the_holder_may_be_dead, five_nodes),
        group_test(a_quorum_of_pushes_makes_a_lease, five_nodes),
        group_test(a_push_that_is_older_than_an_answer_does_not_count, five_nodes),
        group_test(what_nobody_waits_for_is_given_back, five_nodes),
        group_test(a_push_from_the_future_is_no_vote, five_nodes),
        group_test(a_node_that_may_not_vote_hands_nothing_over, five_observed),
        group_test(a_node_that_may_not_vote_is_not_asked, five_observed),
        group_test(a_first_try_that_is_lost_asks_no_node_that_may_not_vote, five_observed),
        group_test(an_answer_to_an_older_wait_may_grant, five_observed),
        group_test(the_keys_of_a_forgotten_lease_stay, five_nodes),
        group_test(keys_that_outlive_a_lost_lease_stay, five_nodes),
        group_test(who_can_be_told_from_now_on_asks_again, five_nodes),
        group_test(without_subscriptions_it_polls, five_nodes),
        group_test(without_permission_it_polls, five_nodes),
        group_test(a_resource_whose_queue_cannot_be_kept_is_polled, five_nodes),
        group_test(a_cancel_leaves_the_queues, five_nodes),
        group_test(the_wait_ends, five_nodes),
        group_test(a_close_leaves_the_queues, five_nodes),
        group_test(a_place_that_a_node_does_not_give_up_ends_by_itself, five_nodes),
        group_test(without_random_bytes_there_is_no_place, five_nodes),
        group_test(without_memory_there_is_no_acquire, five_nodes),
        group_test(a_callback_may_begin_and_end_waits, five_nodes),
        group_test(statistics_count_what_waiters_did, five_nodes),
        group_test(an_inspection_tells_the_median, five_nodes),
        group_test(other_results_know_of_no_waiters, five_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
