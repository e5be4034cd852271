/* Observers over a fake env: whom they ask, what they hear, what they are told. */
#include "observer_kit.h"

#define CHANNEL "redlock:leader:r"

GROUP_TEST(an_observer_asks_and_subscribes, three_nodes) {
    struct watch watch;
    observe(&watch);
    assert_int_equal(count_asked(), 3);
    assert_string_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_INSPECT)->key, "r");
    assert_string_equal(fake.channels->first->name, CHANNEL);
    assert_null(fake.channels->first->next);
    answer(0, ALICE);
    assert_int_equal(watch.count, 0);
    answer(2, ALICE);
    assert_int_equal(watch.count, 1);
    assert_string_equal(watch.token, ALICE);
    answer(1, ALICE);
    assert_int_equal(watch.count, 1);
    redlock_observer_end(watch.observer);
    assert_int_equal(fake.left, 1);
    assert_null(fake.channels->first);
}

GROUP_TEST(the_key_prefix_is_part_of_the_channel, five_nodes) {
    struct watch watch;
    observe(&watch);
    assert_string_equal(fake.channels->first->name, "redlock:leader:locks:r");
    assert_int_equal(count_asked(), 5);
    answer_all("");
    hint_on(0, "r"); /* of another group */
    assert_int_equal(count_asked(), 0);
    hint_on(0, "locks:r");
    assert_int_equal(count_asked(), 1);
    assert_string_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_INSPECT)->key, "locks:r");
}

GROUP_TEST(what_nodes_announce_is_told, three_nodes) {
    struct watch watch;
    observe_all(&watch);
    announce(0, 1, ALICE);
    assert_int_equal(watch.count, 2);
    assert_string_equal(watch.token, ALICE);
    announce(2, 2, ALICE);
    assert_int_equal(watch.count, 2);
    announce(0, 2, BOB);
    assert_int_equal(watch.count, 3);
    announce(0, 2, "");
    assert_int_equal(watch.count, 4);
    assert_string_equal(watch.token, "");
    assert_int_equal(count_asked(), 0);
    /* of others */
    hint_on(0, "s");
    hint_on(1, "rr");
    hint_on(2, "");
    assert_int_equal(count_asked(), 0);
    assert_int_equal(watch.count, 4);
}

/* Anybody may say anything on a channel, and other databases use the same one. */
GROUP_TEST(what_nodes_do_not_confirm_is_not_told, three_nodes) {
    struct watch watch;
    observe_all(&watch);
    for (unsigned i = 0; i < 3; i++) {
        hint_on(i, "r");
    }
    assert_int_equal(count_asked(), 3);
    answer_all("");
    assert_int_equal(count_asked(), 0);
    assert_int_equal(watch.count, 1);
}

/* It may be about what has changed since the question. */
GROUP_TEST(a_hint_during_a_question_makes_one_more, three_nodes) {
    struct watch watch;
    observe_all(&watch);
    for (unsigned i = 0; i < 2; i++) {
        hint_on(i, "r");
        hint_on(i, "r");
        hint_on(i, "r");
    }
    assert_int_equal(count_asked(), 2);
    answer(0, "");
    answer(1, "");
    assert_int_equal(count_asked(), 2);
    answer(0, ALICE);
    answer(1, ALICE);
    assert_int_equal(count_asked(), 0);
    assert_string_equal(watch.token, ALICE);
}

/* Hints cost 50 questions a second, and 16 at once, however many come. */
GROUP_TEST(a_flood_of_hints_costs_few_questions, three_nodes) {
    struct watch watch;
    unsigned questions = 0;
    observe_all(&watch);
    for (unsigned ms = 0; ms < 1000; ms++) {
        for (unsigned n = 0; n < 20; n++) {
            hint_on(0, "r");
            if (count_asked() > 0) {
                questions++;
                answer(0, "");
            }
        }
        fake_env_pass_ms(&fake, 1);
    }
    assert_true(questions >= 60 && questions <= 66);
    /* The last of them is not left out. */
    fake_env_pass_ms(&fake, 20);
    assert_int_equal(count_asked(), 1);
    assert_int_equal(watch.count, 1);
}

GROUP_TEST(a_server_that_becomes_another_node_says_it_once, three_nodes) {
    struct watch watch;
    observe_all(&watch);
    announce(0, 0, ALICE);
    redlock_group_moved(fake.group, 0);
    assert_int_equal(count_asked(), 1);
    announce(1, 1, ALICE);
    assert_int_equal(watch.count, 1);
    announce(2, 2, ALICE);
    assert_int_equal(watch.count, 2);
    assert_string_equal(watch.token, ALICE);
}

GROUP_TEST(the_leader_says_who_it_is, three_nodes) {
    struct watch watch;
    observe_all(&watch);
    assert_string_equal(watch.holder, "");
    announce(0, 1, ALICE "@web-3:4711");
    assert_string_equal(watch.token, ALICE "@web-3:4711");
    assert_string_equal(watch.holder, "web-3:4711");
    announce(0, 1, BOB);
    assert_string_equal(watch.token, BOB);
    assert_string_equal(watch.holder, "");
}

/* A key may hold any value. The lock is not free then, and nobody can be named. */
GROUP_TEST(a_key_without_a_name_is_no_news, three_nodes) {
    static const struct {
        const char *bytes;
        size_t size;
    } values[] = {{"", 0}, {"\0lice", 5}};
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        struct watch watch;
        observe(&watch);
        for (unsigned i = 0; i < 3; i++) {
            fake_env_answer_as(&fake, i, REDLOCK_OP_INSPECT,
                               (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED,
                                                       .holder = values[v].bytes,
                                                       .holder_size = values[v].size,
                                                       .holder_ttl_ms = 600000,
                                                       .waiters = -1,
                                                       .waited_ms = -1});
            hear(i, i);
            hint_on(i, "r");
        }
        fake_env_turn(&fake);
        assert_int_equal(watch.count, 0);
        answer_all(ALICE);
        assert_int_equal(watch.count, 1);
        assert_string_equal(watch.token, ALICE);
        redlock_observer_end(watch.observer);
    }
}

GROUP_TEST(a_node_is_asked_once_it_is_heard, three_nodes) {
    struct watch watch;
    observe(&watch);
    answer_all("");
    assert_int_equal(count_asked(), 0);
    hear(1, 1);
    assert_int_equal(count_asked(), 1);
    assert_non_null(fake_env_waiting(&fake, 1, REDLOCK_OP_INSPECT));
    answer(1, ALICE);
    /* refused: it is asked from time to time */
    fake.channels->first->refused |= 4;
    redlock_group_hears(fake.group, 2, fake.channels->first);
    assert_int_equal(count_asked(), 0);
    fake_env_pass_ms(&fake, 2500);
    assert_int_equal(count_asked(), 2);
    answer(0, "");
    answer(2, "");
    /* Its subscription ends. */
    fake.channels->first->heard = 0;
    redlock_group_listens(fake.group, 1, REDLOCK_LISTENING_NOT, NULL);
    fake_env_pass_ms(&fake, 2500);
    assert_int_equal(count_asked(), 3);
    /* A confirmed subscription to the manager's own channel says nothing of this one. */
    answer_all("");
    redlock_group_listens(fake.group, 1, REDLOCK_LISTENING, NULL);
    assert_int_equal(count_asked(), 0);
}

GROUP_TEST(a_node_that_lost_the_script_gets_its_source, three_nodes) {
    struct watch watch;
    observe(&watch);
    fake_env_answer_no_script(&fake, 1, REDLOCK_OP_INSPECT);
    assert_true(fake_env_waiting(&fake, 1, REDLOCK_OP_INSPECT)->by_source);
    fake_env_answer_no_script(&fake, 1, REDLOCK_OP_INSPECT); /* not a second time */
    assert_null(fake_env_waiting(&fake, 1, REDLOCK_OP_INSPECT));
    fake.refusing = 4;
    fake_env_answer_no_script(&fake, 2, REDLOCK_OP_INSPECT);
    assert_null(fake_env_waiting(&fake, 2, REDLOCK_OP_INSPECT));
    fake.refusing = 0;
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(count_asked(), 3);
    answer(1, ALICE);
    answer(2, ALICE);
    assert_string_equal(watch.token, ALICE);
}

GROUP_TEST(nodes_that_refuse_or_fail_are_asked_again, three_nodes) {
    struct watch watch;
    fake.refusing = 7;
    observe(&watch);
    assert_int_equal(count_asked(), 0);
    fake.refusing = 5;
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(count_asked(), 1);
    fake_env_answer(&fake, 1, REDLOCK_OP_INSPECT, REDLOCK_VOTE_FAILED);
    fake.refusing = 1;
    fake_env_pass_ms(&fake, 1000);
    assert_int_equal(count_asked(), 2);
    fake_env_votes(&fake, REDLOCK_OP_INSPECT, ".UF");
    fake_env_pass_ms(&fake, 1000);
    answer(1, BOB);
    answer(2, BOB);
    assert_string_equal(watch.token, BOB);
}

/* What changes back before the callback runs is no news. */
static void change_inside(const redlock_result *result, void *data) {
    (void)result;
    (void)data;
    announce(0, 2, ALICE);
    announce(0, 2, BOB);
}

static void change_and_back_inside(const redlock_result *result, void *data) {
    (void)result;
    (void)data;
    announce(0, 2, ALICE);
    announce(0, 2, "");
}

GROUP_TEST(changes_that_follow_fast_are_told_as_one, three_nodes) {
    struct watch watch;
    observe_all(&watch);
    assert_is(redlock_group_inspect(fake.group, "s", change_and_back_inside, NULL), REDLOCK_OK);
    answer_all("");
    fake_env_turn(&fake);
    assert_int_equal(watch.count, 1);
    assert_is(redlock_group_inspect(fake.group, "s", change_inside, NULL), REDLOCK_OK);
    answer_all("");
    fake_env_turn(&fake);
    assert_int_equal(watch.count, 2);
    assert_string_equal(watch.token, BOB);
}

/* Of a term that is over at once, the callback is not told. */
GROUP_TEST(who_leads_knows_it_before_the_nodes_say_so, three_nodes) {
    struct watch watch;
    observe_all(&watch);
    redlock_observer_lead(watch.observer, ALICE, true);
    redlock_group_wake(fake.group);
    assert_int_equal(watch.count, 2);
    assert_string_equal(watch.token, ALICE);
    redlock_observer_lead(watch.observer, BOB, false);
    redlock_group_wake(fake.group);
    announce(0, 1, BOB);
    assert_int_equal(watch.count, 2);
    announce(0, 1, "");
    assert_int_equal(watch.count, 3);
    assert_string_equal(watch.token, "");
}
