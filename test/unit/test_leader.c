/* Who leads, as an observer knows it: the tables in core/leader.h, but for the times. */
#include "leader_kit.h"

#define FRESH_TEST(name) TEST_WITH(name, setup, NULL)

FRESH_TEST(all_are_asked_at_the_start) {
    assert_no_news();
    assert_true(redlock_leadership_next_ns(&it) == now_ns);
    assert_asked(ALL);
    assert_asked(0);
    assert_true(redlock_leadership_next_ns(&it) == REDLOCK_NEVER_NS);
    assert_no_news();
}

/* Whoever asks one server under two names hears one word. */
FRESH_TEST(another_server_has_said_nothing) {
    assert_asked(ALL);
    for (unsigned i = 0; i < 4; i++) {
        answer(i, i < 2 ? ALICE : BOB, 5000);
    }
    redlock_leadership_forget(&it, 0, now_ns);
    redlock_leadership_forget(&it, 4, now_ns); /* its answer is still to come */
    assert_asked(REDLOCK_NODE(0));
    announce(2, ALICE, 5000);
    answer(4, ALICE, 5000); /* of the server before */
    assert_no_news();
    assert_asked(REDLOCK_NODE(4));
    answer(4, ALICE, 5000);
    assert_news(ALICE);
}

FRESH_TEST(a_quorum_names_the_leader) {
    assert_asked(ALL);
    answer(0, ALICE, 5000);
    answer(1, ALICE, 5000);
    answer(2, BOB, 5000);
    assert_no_news();
    answer(3, ALICE, 5000);
    assert_news(ALICE);
    answer(4, "", -1);
    assert_no_news();
}

FRESH_TEST(a_quorum_says_that_nobody_leads) {
    assert_asked(ALL);
    /* Its token is NULL. */
    redlock_leadership_answer(&it, 0, &(struct redlock_leader_word){.token_size = 9, .ttl_ms = -1}, now_ns);
    answer(1, "", -1);
    answer(2, ALICE, 5000);
    assert_no_news();
    answer(3, "", -1);
    assert_news("");
}

FRESH_TEST(every_change_is_told_once) {
    hear(ALL, true);
    know(ALICE, 5000);
    static const char *const changes[] = {BOB, "", ALICE, BOB};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        announce(0, changes[i], 5000);
        announce(1, changes[i], 5000);
        assert_no_news();
        announce(2, changes[i], 5000);
        assert_news(changes[i]);
        announce(3, changes[i], 5000);
        announce(4, changes[i], 5000);
        assert_no_news();
    }
}

/* The observer was not told yet when it changed back. */
FRESH_TEST(what_changed_back_is_no_news) {
    know(ALICE, 5000);
    for (unsigned i = 0; i < 3; i++) {
        announce(i, BOB, 5000);
    }
    assert_true(redlock_leadership_has_event(&it));
    announce(0, ALICE, 5000);
    assert_asked(24); /* they said so before Bob led */
    answer(3, ALICE, 5000);
    answer(4, ALICE, 5000);
    assert_no_news();
}

FRESH_TEST(without_a_quorum_the_last_news_stands) {
    know(ALICE, 5000);
    announce(0, BOB, 5000);
    announce(1, BOB, 5000);
    announce(2, "", 0);
    announce(3, "", 0);
    assert_no_news();
    announce(4, BOB, 5000);
    assert_news(BOB);
}

/* Node 2 said "free" before Alice led, and node 1 says "Alice" after she has resigned. */
FRESH_TEST(words_from_before_a_leader_make_no_other) {
    begin(3);
    assert_asked(7);
    answer(2, "", -1);
    answer(0, ALICE, 5000);
    answer(1, ALICE, 5000);
    assert_news(ALICE);
    announce(0, "", 0);
    assert_no_news();
    assert_asked(4);
    answer(2, ALICE, 5000); /* the node was slow: it is from before she resigned */
    assert_no_news();
    announce(1, "", 0);
    assert_news("");
    announce(2, "", 0);
    assert_no_news();
}

/* She leads, and node 2 was free when that was found. */
static void find_alice_at_two_of_three(void) {
    begin(3);
    assert_asked(7);
    answer(0, ALICE, 5000);
    answer(1, ALICE, 5000);
    assert_news(ALICE);
    answer(2, "", -1);
}

/* Node 2 was free when Alice was found to lead, and she took it later. */
FRESH_TEST(a_leader_that_resigned_does_not_come_back) {
    find_alice_at_two_of_three();
    announce(2, "", -1);
    announce(0, "", 0); /* the other RELEASEs are under way */
    assert_no_news();
    assert_asked(4);
    answer(2, ALICE, 5000);
    announce(1, ALICE, 5000);
    assert_no_news();
    announce(1, "", 0); /* both were hers: nobody is asked again */
    assert_news("");
    announce(2, "", 0);
    assert_no_news();
    assert_asked(0);
}

/* It fails to answer in between, so nobody knows whose it was when it is free. */
FRESH_TEST(a_node_that_failed_is_asked_again_before_nobody_leads) {
    find_alice_at_two_of_three();
    hint(0);
    assert_asked(1);
    fail_to_answer(0);
    announce(2, "", -1);
    announce(0, "", 0);
    assert_no_news();
    assert_asked(5);
    answer(0, "", 0);
    assert_no_news();
    answer(2, "", 0);
    assert_news("");
}

/* What is known of nodes is of one leader. */
FRESH_TEST(with_each_leader_nodes_may_be_asked_again) {
    find_alice_at_two_of_three();
    announce(2, "", -1);
    announce(0, "", 0);
    assert_asked(4);
    answer(2, "", -1);
    assert_news("");
    announce(1, BOB, 5000);
    announce(2, BOB, 5000);
    assert_news(BOB);
    announce(0, "", -1);
    announce(1, "", 0);
    assert_no_news();
    assert_asked(1);
    answer(0, BOB, 5000);
    assert_no_news();
}

FRESH_TEST(a_node_that_was_the_leaders_may_say_twice_that_it_is_free) {
    begin(3);
    assert_asked(7);
    answer(0, ALICE, 5000);
    answer(1, ALICE, 5000);
    assert_news(ALICE);
    answer(2, ALICE, 5000);
    announce(0, "", 0);
    announce(0, "", 0);
    assert_no_news();
    announce(1, "", 0);
    assert_news("");
}

/* They say so still: the question costs one round trip. */
FRESH_TEST(old_words_are_asked_for_again) {
    assert_asked(ALL);
    answer(3, BOB, 5000);
    answer(4, BOB, 5000);
    for (unsigned i = 0; i < 3; i++) {
        answer(i, ALICE, 5000);
    }
    assert_news(ALICE);
    announce(0, BOB, 5000);
    assert_no_news();
    assert_asked(24);
    answer(3, BOB, 5000);
    assert_no_news();
    answer(4, BOB, 5000);
    assert_news(BOB);
}

/* So is an answer to a question from before; then the node is asked once more. */
FRESH_TEST(an_answer_from_before_a_leader_is_old) {
    know("", -1);
    now_ns += 2500 * MS;
    assert_asked(ALL);
    for (unsigned i = 0; i < 3; i++) {
        answer(i, ALICE, 5000);
    }
    assert_news(ALICE);
    announce(0, "", 0);
    answer(3, "", -1);
    answer(4, "", -1);
    assert_no_news();
    assert_asked(24);
    answer(3, ALICE, 5000);
    answer(4, "", -1);
    assert_no_news();
    announce(1, "", 0);
    assert_no_news();
    assert_asked(16); /* it may be hers by now */
    answer(4, "", -1);
    assert_news("");
}

/* Their answers will not be old: nobody is asked twice. */
FRESH_TEST(a_question_after_a_leader_is_enough) {
    know(ALICE, 5000);
    for (unsigned i = 0; i < 5; i++) {
        hint(i);
    }
    assert_asked(ALL);
    for (unsigned i = 0; i < 3; i++) {
        answer(i, BOB, 5000);
    }
    assert_news(BOB);
    answer(3, "", -1); /* he has resigned there before it was asked */
    answer(4, "", -1);
    for (unsigned i = 0; i < 5; i++) {
        hint(i);
    }
    assert_asked(ALL);
    answer(0, "", -1); /* with the words of 3 and 4 a quorum, but those are old */
    assert_no_news();
    answer(1, "", -1);
    assert_no_news();
    answer(2, "", -1);
    assert_news("");
}

/* What is said after that counts: Bob cannot have taken these since. */
FRESH_TEST(who_may_be_the_leaders_is_asked_again_once) {
    know(ALICE, 5000);
    for (unsigned i = 0; i < 3; i++) {
        announce(i, BOB, 5000);
    }
    assert_news(BOB);
    announce(3, "", -1);
    announce(4, "", -1);
    assert_no_news();
    hint(4);
    assert_asked(16);
    announce(0, "", -1);
    assert_no_news();
    answer(4, "", -1); /* to a question from before */
    assert_no_news();
    assert_asked(24);
    answer(3, "", -1);
    assert_no_news();
    answer(4, "", -1);
    assert_news("");
    assert_asked(0);
}

/* So is what nodes said before we led ourselves. */
FRESH_TEST(words_from_before_we_lead_are_old) {
    begin(3);
    assert_asked(7);
    answer(2, "", -1);
    redlock_leadership_lead(&it, ALICE, strlen(ALICE));
    assert_news(ALICE);
    answer(0, "", -1);
    assert_no_news();
    assert_asked(5);
    answer(2, "", -1);
    answer(0, ALICE, 5000);
    assert_no_news();
    announce(0, "", 0);
    assert_no_news();
    assert_asked(4);
    answer(2, "", -1);
    assert_news("");
}

/* What changed after the question, nobody knows yet. */
FRESH_TEST(a_hint_during_a_question_makes_one_more) {
    assert_asked(ALL);
    for (unsigned i = 0; i < 5; i++) {
        hint(i);
        hint(i);
    }
    assert_asked(0);
    for (unsigned i = 0; i < 5; i++) {
        answer(i, ALICE, 5000);
    }
    assert_news(ALICE);
    assert_asked(ALL);
    for (unsigned i = 0; i < 5; i++) {
        answer(i, BOB, 5000);
    }
    assert_news(BOB);
    assert_asked(0);
}

FRESH_TEST(a_long_token_is_cut_off) {
    char token[REDLOCK_TOKEN_SIZE_MAX + 30];
    memset(token, 'x', sizeof token - 1);
    token[sizeof token - 1] = '\0';
    assert_asked(ALL);
    for (unsigned i = 0; i < 3; i++) {
        token[sizeof token - 2] = (char)('a' + i); /* which it does not see */
        answer(i, token, 5000);
    }
    token[REDLOCK_TOKEN_SIZE_MAX] = '\0';
    assert_news(token);
}

/* Bytes that are no text count, too. */
FRESH_TEST(a_token_may_hold_any_byte) {
    static const char tokens[2][5] = {"a\0b", "a\0c"};
    assert_asked(ALL);
    for (unsigned i = 0; i < 4; i++) {
        const struct redlock_leader_word word = {.token = tokens[i % 2], .token_size = 3, .ttl_ms = 5000};
        redlock_leadership_answer(&it, i, &word, now_ns);
    }
    assert_no_news();
    const struct redlock_leader_word word = {.token = tokens[1], .token_size = 3, .ttl_ms = 5000};
    redlock_leadership_answer(&it, 4, &word, now_ns);
    assert_true(redlock_leadership_has_event(&it));
    assert_memory_equal(redlock_leadership_tell(&it)->bytes, tokens[1], 4);
}

FRESH_TEST(one_node_is_a_quorum_of_one) {
    begin(1);
    assert_asked(1);
    answer(0, ALICE, 5000);
    assert_news(ALICE);
    begin(REDLOCK_NODES_MAX);
    assert_asked(0x7fffffff);
    for (unsigned i = 0; i < 16; i++) {
        assert_no_news();
        answer(30 - i, BOB, 5000);
    }
    assert_news(BOB);
}
