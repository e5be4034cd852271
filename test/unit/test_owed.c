/* Thousands of owed releases: a node that comes back is asked in parts, and the oldest is dropped
 * for a new one; and which of them the ttl ends. */
#include "group/owed.h"
#include "group_kit.h"

#define MANY 3000
#define PART 1024

static const struct group_setup two_refusing = {.node_count = 2, .refusing = 3};

static void owe(unsigned count, redlock_nodes nodes, redlock_nodes uncertain, int64_t ttl_ms) {
    for (unsigned i = 0; i < count; i++) {
        uint16_t room[16];
        char token[16];
        const int size = snprintf(token, sizeof token, "%08x", i);
        redlock_owed_add(fake.group,
                         &(struct redlock_owed_release){.target = redlock_target_make(room, "", 0, "key", 3),
                                                        .token = token,
                                                        .token_size = (size_t)size,
                                                        .nodes = nodes,
                                                        .uncertain = uncertain,
                                                        .ttl_ms = ttl_ms});
    }
    redlock_group_rearm(fake.group);
}

static void come_back(unsigned node) {
    fake.refusing &= ~REDLOCK_NODE(node);
    redlock_group_ready_changed(fake.group, node, true);
}

GROUP_TEST(a_node_that_comes_back_is_asked_in_parts, two_refusing) {
    owe(MANY, 1, 1, 10000);
    assert_int_equal(fake.sent_count, 0);
    come_back(0);
    assert_int_equal(fake.sent_count, PART);
    for (unsigned parts = 2; fake.sent_count < MANY; parts++) {
        assert_true(fake.wake_ns <= fake.now_ns);
        fake_env_turn(&fake);
        assert_int_equal(fake.sent_count, parts * PART < MANY ? parts * PART : MANY);
    }
    assert_int_equal(fake.wake_ns, REDLOCK_NEVER_NS);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_owed(0, 0);
}

/* Debts also end between the parts: some are paid, and the ttl ends the one that would be asked
 * next. */
GROUP_TEST(debts_end_between_the_parts, two_refusing) {
    owe(MANY, 1, 0, 1000);
    come_back(0);
    assert_int_equal(fake.sent_count, PART);
    fake_env_answer_all(&fake, REDLOCK_VOTE_DENIED);
    assert_owed(MANY - PART, 0);
    fake.now_ns += 1000 * REDLOCK_NS_PER_MS;
    fake_env_turn(&fake);
    assert_owed(0, MANY - PART);
    assert_int_equal(fake.sent_count, PART);
    assert_int_equal(fake.wake_ns, REDLOCK_NEVER_NS);
}

/* A node is lost between its parts. Another one comes back at that time, and is asked for all that
 * it owes. */
GROUP_TEST(nodes_come_and_go_between_the_parts, two_refusing) {
    owe(MANY, 3, 3, 10000);
    come_back(0);
    assert_int_equal(fake.sent_count, PART);
    fake.refusing = 3;
    redlock_group_ready_changed(fake.group, 0, false);
    fake_env_turn(&fake);
    assert_int_equal(fake.sent_count, PART);
    come_back(1);
    for (unsigned turns = 0; turns < 2 * MANY / PART; turns++) {
        fake_env_turn(&fake);
    }
    assert_int_equal(fake.sent_count, PART + MANY);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_owed(MANY - PART, 0);
    fake.sent_count = 0;
    come_back(0);
    for (unsigned turns = 0; turns < 2 * MANY / PART; turns++) {
        fake_env_turn(&fake);
    }
    assert_int_equal(fake.sent_count, MANY - PART);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_owed(0, 0);
}

/* Node 0 has answered with an error and waits for its backoff. The return of another node does not
 * shorten that. */
GROUP_TEST(only_the_node_that_is_back_is_asked, two_refusing) {
    owe(1, 3, 3, 10000);
    come_back(0);
    fake_env_answer(&fake, 0, REDLOCK_OP_RELEASE, REDLOCK_VOTE_FAILED);
    assert_int_equal(fake.sent_count, 1);
    come_back(1);
    assert_int_equal(fake.sent_count, 2);
    assert_int_equal(fake.sent[1].node, 1);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

static void assert_no_timeout(bool no_timeout) {
    for (unsigned i = 0; i < fake.sent_count; i++) {
        assert_is(fake.sent[i].operation, REDLOCK_OP_RELEASE);
        assert_int_equal(fake.sent[i].no_timeout, no_timeout);
    }
}

/* R9: an answer counts however late it comes. That is so for the first request, by source, after an
 * error, and to a node that is back. */
GROUP_TEST(an_owed_release_has_no_timeout, two_refusing) {
    fake.refusing = 2;
    owe(1, 3, 3, 10000);
    assert_int_equal(fake.sent_count, 1);
    fake_env_answer_no_script(&fake, 0, REDLOCK_OP_RELEASE);
    assert_int_equal(fake.sent_count, 2);
    assert_true(fake.sent[1].by_source);
    fake_env_answer(&fake, 0, REDLOCK_OP_RELEASE, REDLOCK_VOTE_FAILED);
    redlock_group_ready_changed(fake.group, 0, true);
    assert_int_equal(fake.sent_count, 3);
    come_back(1);
    assert_int_equal(fake.sent_count, 4);
    assert_no_timeout(true);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_owed(0, 0);
}

GROUP_TEST(the_oldest_that_is_not_being_asked_is_dropped, two_refusing) {
    const unsigned asked = 20;
    fake.refusing = 2;
    owe(asked, 1, 1, 10000);
    assert_int_equal(fake.sent_count, asked);
    fake.refusing = 3;
    owe(REDLOCK_OWED_MAX - asked, 1, 1, 10000);
    assert_owed(REDLOCK_OWED_MAX, 0);
    owe(1, 1, 1, 10000); /* the search stops, as those at the front are being asked */
    assert_owed(REDLOCK_OWED_MAX + 1, 0);
    owe(2, 1, 1, 10000);
    assert_owed(REDLOCK_OWED_MAX + 1, 2);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_owed(REDLOCK_OWED_MAX + 1 - asked, 2);
}

/* The debt that would be asked next is moved or dropped. */
GROUP_TEST(room_is_made_between_the_parts, two_refusing) {
    owe(REDLOCK_OWED_MAX, 1, 1, 10000);
    come_back(0);
    assert_int_equal(fake.sent_count, PART);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    fake.refusing = 3;
    owe(PART + 2, 1, 1, 10000);
    assert_owed(REDLOCK_OWED_MAX, 2);
    fake.refusing = 2;
    fake.sent_count = 0;
    fake_env_turn(&fake);
    assert_int_equal(fake.sent_count, PART);
}

/* The debts that would be asked next wait for an answer of another node. They move to the end, and
 * those behind them still have their turn. */
GROUP_TEST(a_debt_moved_between_the_parts_delays_no_other, two_refusing) {
    const unsigned moved = 20;
    owe(PART, 1, 1, 10000);
    fake.refusing = 1;
    owe(moved, 3, 3, 10000);
    assert_int_equal(fake.sent_count, moved);
    fake.refusing = 3;
    owe(REDLOCK_OWED_MAX - PART - moved, 1, 1, 10000);
    come_back(0);
    assert_int_equal(fake.sent_count, moved + PART);
    for (unsigned i = 0; i < PART; i++) {
        fake_env_answer(&fake, 0, REDLOCK_OP_RELEASE, REDLOCK_VOTE_GRANTED);
    }
    fake.refusing = 3;
    owe(PART + 1, 1, 1, 10000);
    assert_owed(REDLOCK_OWED_MAX + 1, 0);
    fake.refusing = 2;
    fake.sent_count = 0;
    fake_env_turn(&fake);
    assert_int_equal(fake.sent_count, PART);
}

/* --- Which debts the ttl ends: leases on three nodes, of which node 2 hangs at some time and
 * refuses the release --- */

/* Takes a lease that nodes 0 and 1 grant. */
static redlock_lease *take_from_two(void) {
    struct seen seen;
    acquire(NULL, &seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "GG");
    assert_is(seen.code, REDLOCK_OK);
    return seen.lease;
}

/* Node 2 does not take the release; the others confirm it. Returns whether node 2 still owes it
 * long after the ttl. */
static bool owes_for_ever(redlock_lease *lease) {
    struct seen released = {0};
    fake.refusing = 4;
    assert_is(redlock_release(lease, see, &released), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_RELEASE, "GG");
    assert_is(released.code, REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
    assert_owed(1, 0);
    fake_env_pass_ms(&fake, 100 * 1000);
    return statistics().releases_owed == 1;
}

/* Nodes 3 and 4 take no acquire. Node 4 is healed. Its answer does not mean that anything was ever
 * sent to node 3. */
GROUP_TEST(the_answer_to_a_heal_is_about_its_node_alone, five_nodes) {
    struct seen taken = {0}, released = {0};
    fake.refusing = REDLOCK_NODE(3) | REDLOCK_NODE(4);
    acquire(NULL, &taken);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(taken.code, REDLOCK_OK);
    fake.refusing = REDLOCK_NODE(3);
    fake_env_pass_ms(&fake, 1000);
    fake_env_answer(&fake, 4, REDLOCK_OP_HEAL, REDLOCK_VOTE_GRANTED);
    assert_is(redlock_release(taken.lease, see, &released), REDLOCK_OK);
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    assert_is(released.code, REDLOCK_OK);
    assert_owed(1, 0);
    fake_env_pass_ms(&fake, 100 * 1000);
    assert_owed(0, 1);
}

GROUP_TEST(a_node_that_answered_is_certain, three_nodes) {
    redlock_lease *lease = take_from_two();
    fake_env_answer(&fake, 2, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
    assert_false(owes_for_ever(lease));
}

GROUP_TEST(a_silent_node_is_uncertain, three_nodes) {
    redlock_lease *lease = take_from_two();
    fake_env_answer(&fake, 2, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_UNKNOWN);
    fake.refusing = 4; /* a request that it refuses does not make it certain */
    assert_is(redlock_extend(lease, 10000, NULL, NULL), REDLOCK_OK);
    fake_env_votes(&fake, REDLOCK_OP_EXTEND, "GG");
    assert_true(owes_for_ever(lease));
}

GROUP_TEST(a_later_answer_makes_it_certain_again, three_nodes) {
    redlock_lease *lease = take_from_two();
    fake_env_answer(&fake, 2, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
    for (unsigned i = 0; i < 2; i++) {
        assert_is(redlock_extend(lease, 10000, NULL, NULL), REDLOCK_OK);
        fake_env_votes(&fake, REDLOCK_OP_EXTEND, "GGG");
    }
    assert_false(owes_for_ever(lease));
}

/* The answer to the ACQUIRE comes while HEAL, which also sets the key, is under way. */
GROUP_TEST(one_answer_of_two_makes_nothing_certain, three_nodes) {
    redlock_lease *lease = take_from_two();
    fake_env_pass_ms(&fake, 1000);
    assert_non_null(fake_env_waiting(&fake, 2, REDLOCK_OP_HEAL));
    fake_env_answer(&fake, 2, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED);
    fake_env_answer(&fake, 2, REDLOCK_OP_HEAL, REDLOCK_VOTE_UNKNOWN);
    assert_true(owes_for_ever(lease));
}

/* The answer to the first attempt comes while the second attempt is under way. */
GROUP_TEST(an_answer_to_an_earlier_attempt_makes_nothing_certain, three_nodes) {
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    options.order = REDLOCK_ORDER_NONE;
    acquire(&options, &seen);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "DD");
    fake_env_votes(&fake, REDLOCK_OP_RELEASE, "DDD");
    assert_owed(0, 0);
    fake_env_pass_ms(&fake, 500);
    fake_env_votes(&fake, REDLOCK_OP_ACQUIRE, "GG");
    assert_is(seen.code, REDLOCK_OK);
    fake_env_answer(&fake, 2, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_GRANTED); /* the first attempt's */
    fake_env_answer(&fake, 2, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_UNKNOWN);
    assert_true(owes_for_ever(seen.lease));
}
