/* By which clock a waiter's ticket is, over a fake env: places that are not asked for before a
 * quorum of nodes has said what time it is, and tickets that were wrong. */
#include "queue_kit.h"

#define HOUR_MS INT64_C(3600000)
/* Of reading(0) at that time. */
#define RIGHT_US(at_ns) (INT64_C(1795167037000000) + (at_ns) / 1000)

/* The acquire of an election: it asks for a place at once. */
static redlock_request *campaign(struct seen *seen) {
    redlock_request *request;
    const redlock_acquire_options options = patient_options();
    *seen = (struct seen){0};
    assert_is(redlock_group_campaign(fake.group, "r", &options, &request, see, seen), REDLOCK_OK);
    return request;
}

static int64_t ticket(unsigned node) {
    const struct fake_sent *wait = last_wait(node);
    char digits[17];
    (void)snprintf(digits, sizeof digits, "%016llx", (unsigned long long)wait->place.ticket);
    assert_memory_equal(wait->token, digits, 16); /* tokens sort like tickets */
    return (int64_t)wait->place.ticket;
}

static void queue_all(void) {
    for (unsigned i = 0; i < fake.node_count; i++) {
        if (fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)) {
            fake_env_queue(&fake, i, EARLIER, 1);
        }
    }
}

/* The client's own clock is an hour behind: it would pass over everybody. */
GROUP_TEST(no_place_is_asked_for_before_a_quorum_has_told_the_time, five_nodes) {
    const int64_t begun_ns = fake.now_ns;
    fake.group->line.met = 0;
    fake.wall_us -= HOUR_MS * 1000;
    redlock_request *request = campaign(&seen);
    fake_env_pass_ms(&fake, 1000);
    greet(3, "d", 100000, reading(0));
    greet(4, "e", 100000, reading(0));
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 0);
    greet(0, "a", 100000, reading(0));
    fake_env_pass_ms(&fake, 3); /* a new node is asked at once */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 5);
    /* When the acquire began, not when it could ask. The reading takes 1 ms. */
    assert_in_range(ticket(0) - RIGHT_US(begun_ns), 0, 1000);
    /* What was never sent needs none. */
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    redlock_request_cancel(request);
}

/* What keeps the others from it is not what keeps a node from it that is ready. */
GROUP_TEST(a_ready_node_that_is_not_asked_is_told_as_that, five_nodes) {
    fake.group->line.met = 0;
    redlock_request *request = campaign(&seen);
    for (unsigned i = 1; i < fake.node_count; i++) {
        redlock_group_ready_changed(fake.group, i, false);
    }
    greet(0, "a", 100000, reading(0));
    fake_env_pass_ms(&fake, 1000);
    redlock_request_cancel(request);
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.errors[0], "not asked: a place in the queue waits until a quorum of nodes is connected");
    assert_string_equal(seen.errors[1], "");
}

/* The nodes are there, but tell no time: a proxy refuses TIME. The answers to the first WAIT do. */
GROUP_TEST(a_ticket_that_was_guessed_is_set_right, five_nodes) {
    const int64_t begun_ns = fake.now_ns;
    fake.wall_us += HOUR_MS * 1000;
    redlock_request *request = campaign(&seen);
    assert_int_equal(ticket(0), fake.wall_us);
    const struct fake_sent guessed = *last_wait(0);
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer_as(&fake, i, REDLOCK_OP_WAIT,
                           (struct redlock_answer){.vote = REDLOCK_VOTE_DENIED,
                                                   .holder = EARLIER,
                                                   .holder_size = sizeof EARLIER - 1,
                                                   .holder_ttl_ms = 60000,
                                                   .rank = 1,
                                                   .clock = reading(0)});
    }
    queue_all();
    while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0) { /* the next refresh */
        assert_true(fake.now_ns - begun_ns < 3000 * REDLOCK_NS_PER_MS);
        fake_env_pass_ms(&fake, 1);
    }
    assert_in_range(ticket(0) - RIGHT_US(begun_ns), 0, 1000);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 5);
    assert_string_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)->token, guessed.token);
    redlock_request_cancel(request);
}

/* Most of the nodes that we knew at first were wrong. */
GROUP_TEST(a_ticket_by_clocks_that_lied_is_set_right_by_the_others, five_nodes) {
    const int64_t begun_ns = fake.now_ns;
    fake.group->line.met = 0;
    redlock_request *request = campaign(&seen);
    fake.refusing = REDLOCK_NODE(3) | REDLOCK_NODE(4);
    greet(0, "a", 100000, reading(HOUR_MS));
    greet(1, "b", 100000, reading(HOUR_MS));
    greet(2, "c", 100000, reading(0));
    fake_env_pass_ms(&fake, 3);
    assert_in_range(ticket(0) - RIGHT_US(begun_ns), HOUR_MS * 1000, HOUR_MS * 1000 + 1000);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    fake.refusing = 0;
    greet(3, "d", 100000, reading(0));
    greet(4, "e", 100000, reading(0));
    fake_env_pass_ms(&fake, 3);
    assert_in_range(ticket(4) - RIGHT_US(begun_ns), 0, 1000);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_WAIT), 5);
    redlock_request_cancel(request);
}

/* The same clocks are read again, a little better or worse. */
GROUP_TEST(a_ticket_that_is_right_stays, five_nodes) {
    greet_all();
    redlock_request *request = campaign(&seen);
    const int64_t first = ticket(0);
    for (unsigned i = 0; i < 5; i++) {
        queue_all();
        for (unsigned node = 0; node < 5; node++) {
            greet(node, "x", 100000, reading(i % 2 == 0 ? 900 : -900));
        }
        while (fake_env_waiting_count(&fake, REDLOCK_OP_WAIT) == 0) {
            fake_env_pass_ms(&fake, 1);
        }
        assert_int_equal(ticket(0), first);
        assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_RELEASE), 0);
    }
    assert_int_equal(statistics().yields, 0);
    redlock_request_cancel(request);
}

/* Two acquires of one program: the first one waits for its try, and takes its place later. */
GROUP_TEST(an_acquire_that_began_earlier_has_the_lower_ticket, five_nodes) {
    struct seen first, second;
    greet_all();
    redlock_request *one = wait_for_it(&first), *two = campaign(&second);
    const int64_t later = ticket(0);
    fake_env_pass_ms(&fake, 2);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DDD");
    assert_int_equal(ticket(0), later - 1); /* of the same moment */
    redlock_request_cancel(one);
    redlock_request_cancel(two);
}
