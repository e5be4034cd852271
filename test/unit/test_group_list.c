/* Listing all locks over a fake env: pages, callbacks, votes, ends. */
#include "group_kit.h"
#include "scarce_memory.h"

#define TOKEN "00112233445566778899aabbccddeeff"

struct listed {
    unsigned count;
    char text[512];   /* "node resource ttl waiters readers;" for each */
    unsigned stop_at; /* this call says stop; 0: none */
    bool closes;      /* the first call closes the group */
    struct seen seen;
    int64_t latency_us; /* of node 0 */
};

static unsigned drained;

static bool each(const redlock_listed *lock, void *data) {
    struct listed *listed = data;
    const size_t used = strlen(listed->text);
    assert_int_equal(listed->seen.count, 0); /* the result comes last */
    assert_int_equal(lock->size, sizeof *lock);
    assert_string_equal(lock->token, TOKEN);
    (void)snprintf(listed->text + used, sizeof listed->text - used, "%zu %s %lld %lld %lld;", lock->node,
                   lock->resource, (long long)lock->ttl_ms, (long long)lock->waiters, (long long)lock->readers);
    listed->count++;
    if (listed->closes && listed->count == 1) {
        redlock_group_drain(fake.group, count_drained, &drained);
    }
    return listed->count != listed->stop_at;
}

static void done(const redlock_result *result, void *data) {
    struct listed *listed = data;
    redlock_vote vote = {.size = sizeof vote};
    assert_is(redlock_result_vote(result, 0, &vote), REDLOCK_OK);
    listed->latency_us = vote.latency_us;
    see(result, &listed->seen);
}

static void list(const redlock_list_options *options, struct listed *listed) {
    assert_is(redlock_group_list(fake.group, options, each, done, listed), REDLOCK_OK);
    assert_int_equal(listed->count + listed->seen.count, 0); /* never inside the call (R14) */
}

/* The node answers with this page. */
static void page(unsigned node, const char *entries, uint64_t cursor, uint64_t unread) {
    fake_env_answer_as(&fake, node, REDLOCK_OP_LIST,
                       (struct redlock_answer){.vote = REDLOCK_VOTE_GRANTED,
                                               .holder = entries,
                                               .holder_size = strlen(entries),
                                               .cursor = cursor,
                                               .unread = unread});
}

GROUP_TEST(pages_follow_each_other_until_the_cursor_is_0, five_nodes) {
    struct listed listed = {0};
    redlock_list_options options;
    redlock_list_options_default(&options);
    options.match = "job*";
    options.others = true;
    list(&options, &listed);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_LIST), 5);
    assert_string_equal(fake.sent[0].pattern, "locks:job*");
    assert_true(fake.sent[0].others && fake.sent[0].by_source);
    page(0, "9 32 600 1 0 locks:job" TOKEN "10 32 -1 -1 3 locks:jobs" TOKEN, 7, 0);
    assert_string_equal(listed.text, "0 job 600 1 0;0 jobs -1 -1 3;");
    fake_env_pass_ms(&fake, 3);
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_LIST)->cursor, 7);
    page(0, "", 9, 2); /* an empty page is not the last */
    assert_int_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_LIST)->cursor, 9);
    page(0, "9 32 5 0 0 locks:job" TOKEN, 0, 1);
    assert_null(fake_env_waiting(&fake, 0, REDLOCK_OP_LIST));
    page(1, "", 0, 0);
    page(2, "", 0, 0);
    fake_env_answer(&fake, 3, REDLOCK_OP_LIST, REDLOCK_VOTE_FAILED);
    assert_int_equal(listed.seen.count, 0);
    page(4, "9 32 5 0 0 locks:job" TOKEN, 11, 0);
    fake_env_answer(&fake, 4, REDLOCK_OP_LIST, REDLOCK_VOTE_UNKNOWN);
    fake_env_turn(&fake);
    assert_int_equal(listed.count, 4);
    assert_int_equal(listed.seen.count, 1);
    assert_is(listed.seen.code, REDLOCK_OK); /* three of five named all */
    assert_is(listed.seen.votes[0], REDLOCK_VOTE_GRANTED);
    assert_int_equal(listed.latency_us, 3000);
    assert_string_equal(listed.seen.errors[0], "it has 3 keys that this user may not read");
    assert_string_equal(listed.seen.errors[1], "");
    assert_is(listed.seen.votes[3], REDLOCK_VOTE_FAILED);
    assert_is(listed.seen.votes[4], REDLOCK_VOTE_UNKNOWN);
    assert_int_equal(statistics().requests_pending, 0);
}

GROUP_TEST(without_a_quorum_of_whole_lists_the_result_says_so, five_nodes) {
    struct listed listed = {0};
    list(NULL, &listed);
    assert_string_equal(fake.sent[0].pattern, "locks:*");
    assert_false(fake.sent[0].others);
    page(0, "", 0, 0);
    page(1, "", 0, 0);
    fake_env_votes(&fake, REDLOCK_OP_LIST, "..FFF");
    fake_env_turn(&fake);
    assert_seen(listed.seen, 1, REDLOCK_ERR_NO_QUORUM);
    assert_contains(listed.seen.message, "cannot list the locks: ");
}

/* The node does not answer within the node timeout. */
static void time_out(unsigned node, redlock_vote_kind vote) {
    static const struct redlock_text why = {.string = "no answer within 50 ms", .cause = REDLOCK_CAUSE_TIMEOUT};
    fake_env_answer_as(&fake, node, REDLOCK_OP_LIST,
                       (struct redlock_answer){.vote = vote, .text = redlock_text_constant(&why)});
}

static void assert_asked(unsigned node, uint64_t cursor, uint32_t keys) {
    assert_int_equal(fake_env_waiting(&fake, node, REDLOCK_OP_LIST)->cursor, cursor);
    assert_int_equal(fake_env_waiting(&fake, node, REDLOCK_OP_LIST)->keys, keys);
}

GROUP_TEST(a_page_that_came_too_late_is_asked_for_again, five_nodes) {
    struct listed listed = {0};
    list(NULL, &listed);
    assert_asked(0, 0, 250);
    page(0, "7 32 5 0 0 locks:a" TOKEN, 7, 0);
    for (uint64_t cursor = 7; cursor < 9; cursor++) {
        assert_asked(0, cursor, 250);
        time_out(0, REDLOCK_VOTE_UNKNOWN);
        assert_asked(0, cursor, 62);
        time_out(0, REDLOCK_VOTE_UNKNOWN);
        assert_asked(0, cursor, 15);
        page(0, cursor == 7 ? "" : "7 32 5 0 0 locks:b" TOKEN, cursor + 1, 0);
    }
    page(0, "", 0, 0);
    page(1, "", 0, 0);
    time_out(2, REDLOCK_VOTE_UNKNOWN);
    page(2, "", 0, 0);
    assert_string_equal(listed.text, "0 a 5 0 0;0 b 5 0 0;");
    fake_env_votes(&fake, REDLOCK_OP_LIST, "...UU");
    fake_env_turn(&fake);
    assert_is(listed.seen.code, REDLOCK_OK);
}

GROUP_TEST(a_page_is_asked_for_three_times_in_all, five_nodes) {
    struct listed listed = {0};
    list(NULL, &listed);
    time_out(0, REDLOCK_VOTE_FAILED); /* nothing was sent: the node is not there */
    assert_null(fake_env_waiting(&fake, 0, REDLOCK_OP_LIST));
    time_out(1, REDLOCK_VOTE_UNKNOWN);
    fake.refusing = REDLOCK_NODE(1);
    time_out(1, REDLOCK_VOTE_UNKNOWN); /* it cannot be asked again */
    for (unsigned i = 2; i < 5; i++) {
        for (int tries = 0; tries < 3; tries++) {
            time_out(i, REDLOCK_VOTE_UNKNOWN);
        }
    }
    fake_env_turn(&fake);
    assert_seen(listed.seen, 1, REDLOCK_ERR_NO_QUORUM);
    assert_is(listed.seen.votes[1], REDLOCK_VOTE_FAILED);
    assert_is(listed.seen.votes[2], REDLOCK_VOTE_UNKNOWN);
    assert_string_equal(listed.seen.errors[2], "no answer within 50 ms, 3 times in a row");
    /* An end in the middle: nobody is asked again. */
    struct listed second = {0};
    fake.refusing = 0;
    list(NULL, &second);
    redlock_group_drain(fake.group, count_drained, &drained);
    fake_env_turn(&fake);
    assert_is(second.seen.code, REDLOCK_ERR_CLOSED);
    time_out(0, REDLOCK_VOTE_UNKNOWN);
    assert_null(fake_env_waiting(&fake, 0, REDLOCK_OP_LIST));
}

GROUP_TEST(nodes_that_refuse_fail_at_once, five_nodes) {
    struct listed listed = {0};
    fake.refusing = redlock_nodes_all(5);
    list(NULL, &listed);
    fake_env_turn(&fake);
    assert_seen(listed.seen, 1, REDLOCK_ERR_NO_QUORUM);
    /* In the middle. */
    fake.refusing = 0;
    struct listed second = {0};
    list(NULL, &second);
    fake.refusing = REDLOCK_NODE(0);
    page(0, "", 5, 0);
    fake_env_turn(&fake);
    for (unsigned i = 1; i < 5; i++) {
        page(i, "", 0, 0);
    }
    fake_env_turn(&fake);
    assert_is(second.seen.code, REDLOCK_OK);
    assert_is(second.seen.votes[0], REDLOCK_VOTE_FAILED);
}

GROUP_TEST(keys_that_are_no_names_are_left_out, five_nodes) {
    struct listed listed = {0};
    list(NULL, &listed);
    page(0, "6 32 5 0 0 locks:" TOKEN "5 32 5 0 0 other" TOKEN "9 32 -2 0 0 locks:old" TOKEN "7 32 5 0 0 locks:r" TOKEN,
         0, 0);
    assert_string_equal(listed.text, "0 r 5 0 0;");
}

GROUP_TEST(a_callback_stops_it, five_nodes) {
    struct listed listed = {.stop_at = 1};
    list(NULL, &listed);
    page(0, "7 32 5 0 0 locks:a" TOKEN "7 32 5 0 0 locks:b" TOKEN, 3, 0);
    assert_int_equal(listed.count, 1);
    assert_seen(listed.seen, 1, REDLOCK_ERR_CANCELLED);
    for (unsigned i = 1; i < 5; i++) {
        page(i, "7 32 5 0 0 locks:a" TOKEN, 3, 0); /* too late: told to nobody */
    }
    assert_int_equal(listed.count, 1);
    assert_int_equal(fake_env_waiting_count(&fake, REDLOCK_OP_LIST), 0);
    assert_int_equal(statistics().requests_pending, 0);
}

GROUP_TEST(a_close_ends_it, five_nodes) {
    struct listed listed = {0};
    drained = 0;
    list(NULL, &listed);
    redlock_group_drain(fake.group, count_drained, &drained);
    fake_env_turn(&fake);
    assert_seen(listed.seen, 1, REDLOCK_ERR_CLOSED);
    assert_is(redlock_group_list(fake.group, NULL, each, done, &listed), REDLOCK_ERR_CLOSED);
    for (unsigned i = 0; i < 5; i++) {
        page(i, "7 32 5 0 0 locks:a" TOKEN, 3, 0);
    }
    fake_env_turn(&fake);
    assert_int_equal(listed.count, 0);
    assert_int_equal(drained, 1);
}

GROUP_TEST(a_callback_may_close, five_nodes) {
    struct listed listed = {.closes = true};
    drained = 0;
    list(NULL, &listed);
    page(0, "7 32 5 0 0 locks:a" TOKEN "7 32 5 0 0 locks:b" TOKEN, 3, 0);
    fake_env_turn(&fake);
    assert_int_equal(listed.count, 1);
    assert_seen(listed.seen, 1, REDLOCK_ERR_CLOSED);
    fake_env_votes(&fake, REDLOCK_OP_LIST, ".UUUU");
    fake_env_turn(&fake);
    assert_int_equal(listed.seen.count, 1);
    assert_int_equal(drained, 1);
}

GROUP_TEST(without_memory_it_says_so, five_nodes) {
    struct listed listed = {0};
    memory_fails_at(1);
    assert_is(redlock_group_list(fake.group, NULL, each, done, &listed), REDLOCK_ERR_NO_MEMORY);
    assert_int_equal(statistics().requests_pending, 0);
    list(NULL, &listed);
    memory_fails_at(1);
    page(0, "7 32 5 0 0 locks:a" TOKEN, 3, 0);
    for (unsigned i = 1; i < 5; i++) {
        page(i, "", 0, 0);
    }
    fake_env_turn(&fake);
    assert_is(listed.seen.code, REDLOCK_OK);
    assert_is(listed.seen.votes[0], REDLOCK_VOTE_FAILED);
    assert_string_equal(listed.seen.errors[0], "no memory for its answer");
    assert_int_equal(listed.count, 0);
}

GROUP_TEST(without_memory_no_other_query_begins, five_nodes) {
    struct seen refused = {0};
    memory_fails_at(1);
    assert_is(redlock_group_inspect(fake.group, "r", see, &refused), REDLOCK_ERR_NO_MEMORY);
    memory_fails_at(1);
    assert_is(redlock_group_connect(fake.group, 1000, see, &refused), REDLOCK_ERR_NO_MEMORY);
    assert_int_equal(statistics().requests_pending, 0);
    assert_int_equal(fake.sent_count, 0);
    fake_env_turn(&fake);
    assert_int_equal(refused.count, 0);
}

static const struct group_setup starred = {.node_count = 3, .config = {.key_prefix = "a*[b]\\?-^:"}};

GROUP_TEST(the_prefix_means_itself, starred) {
    struct listed listed = {0};
    list(NULL, &listed);
    assert_string_equal(fake.sent[0].pattern, "a\\*\\[b\\]\\\\\\?\\-\\^:*");
    page(0, "11 32 5 0 0 a*[b]\\?-^:r" TOKEN, 0, 0);
    assert_string_equal(listed.text, "0 r 5 0 0;");
}
