/* A node while its connection stands: order, timeouts, stall, scripts (R4, R6, R7, R11, R17). */
#include "subscriber.h"
#include "test.h"
#include "wire/script.h"
#include "wire/wire.h"

#define FRESH_TEST(name) TEST_WITH(name, first_setup, first_teardown)

FRESH_TEST(answers_come_in_order) {
    connect_it();
    assert_int_equal(peer.became_ready, 1);
    assert_int_equal(peer.became_unready, 0);
    assert_true(peer_send(&peer, "aa", 1));
    assert_true(peer_send(&peer, "bb", 2));
    assert_true(peer_send(&peer, "cc", 3));
    assert_int_equal(peer.heard_size, 0); /* nothing is written inside send (R6) */
    peer_serve(&peer, "aabbcc", "+OK\r\n$-1\r\n");
    peer_until_answers(&peer, 2);
    peer_say(&peer, "-OOM no\r\n");
    peer_until_answers(&peer, 3);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_GRANTED, "");
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_DENIED, "another token");
    peer_assert_answer(&peer, 2, 3, REDLOCK_VOTE_FAILED, "OOM no");
    assert_true(peer_info(&peer).round_trip_us >= 0);
    assert_string_equal(peer_info(&peer).error, "");
    assert_true(redlock_node_is_at(peer.node, "r1"));
}

static void sends_again(struct peer *self) {
    if (self->answer_count < 5) {
        assert_true(peer_send(self, "x", (uint32_t)self->answer_count));
    }
}

FRESH_TEST(an_answer_may_send) {
    connect_it();
    peer.in_answer = sends_again;
    assert_true(peer_send(&peer, "x", 0));
    for (size_t i = 1; i <= 5; i++) {
        peer_serve(&peer, "x", "+OK\r\n");
        peer_until_answers(&peer, i);
        peer_assert_answer(&peer, i - 1, (uint32_t)(i - 1), REDLOCK_VOTE_GRANTED, "");
    }
}

/* R9: the connection stays, and the late reply is told apart from the next request's. */
FRESH_TEST(a_timeout_is_unknown_and_its_reply_is_dropped) {
    connect_it();
    peer_sends(&peer, "a", 1);
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "no answer within 400 ms");
    assert_is(peer.answers[0].cause, REDLOCK_CAUSE_TIMEOUT);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    assert_true(peer_send(&peer, "b", 2));
    peer_say(&peer, "+OK\r\n");
    peer_serve(&peer, "b", "$-1\r\n");
    peer_until_answer(&peer, 1, 2, REDLOCK_VOTE_DENIED, "");
    assert_false(peer.heard_end || peer.heard_reset);
}

static bool send_without_timeout(uint32_t round) {
    return peer_queue(&peer, "r", REDLOCK_OP_RELEASE | REDLOCK_SERVER_NO_TIMEOUT, round, redlock_loop_now_ns(NULL));
}

/* Its reply counts however late it comes, before and after the stall; the silence counts for the
 * stall all the same (R17). */
FRESH_TEST(without_a_timeout_the_late_reply_answers) {
    connect_it();
    assert_true(send_without_timeout(1));
    assert_true(peer_send(&peer, "a", 2));
    assert_true(send_without_timeout(3));
    peer_expect(&peer, "rar");
    peer_until_state(&peer, REDLOCK_NODE_STALLED);
    peer_until_answer(&peer, 0, 2, REDLOCK_VOTE_UNKNOWN, "no answer within 400 ms");
    peer_serve(&peer, "*1\r\n$4\r\nPING\r\n", ":1\r\n");
    peer_until_answer(&peer, 1, 1, REDLOCK_VOTE_GRANTED, "");
    peer_say(&peer, "+OK\r\n:0\r\n+PONG\r\n");
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer.answer_count, 3); /* the reply to "a" was dropped */
    peer_assert_answer(&peer, 2, 3, REDLOCK_VOTE_DENIED, "");
}

FRESH_TEST(without_a_timeout_the_end_of_the_connection_answers) {
    connect_it();
    assert_true(send_without_timeout(1));
    assert_true(peer_send(&peer, "a", 2));
    peer_expect(&peer, "ra");
    peer_until_answer(&peer, 0, 2, REDLOCK_VOTE_UNKNOWN, "no answer");
    assert_true(send_without_timeout(3));
    peer_close(&peer);
    peer_until_answers(&peer, 3);
    peer_assert_answer(&peer, 1, 1, REDLOCK_VOTE_UNKNOWN,
                       "connection closed by the node after the request was written");
    assert_int_equal(peer.answers[2].round, 3);
    assert_int_equal(peer.answer_count, 3);
}

/* R17: what it still owes comes first, or the next request would time out behind that, too. */
FRESH_TEST(three_timeouts_stall_it_and_the_pong_returns_it) {
    connect_it();
    peer_sends_each(&peer, "aaa");
    peer_until_answers(&peer, 3);
    peer_until_state(&peer, REDLOCK_NODE_STALLED);
    assert_false(peer_send(&peer, "b", 4));
    assert_contains(redlock_text_string(redlock_node_refusal(peer.node)), "stalled: the last 3 requests");
    assert_is(redlock_text_cause(redlock_node_refusal(peer.node)), REDLOCK_CAUSE_STALLED);
    assert_true(redlock_node_is_at(peer.node, "r1"));
    peer_expect(&peer, "*1\r\n$4\r\nPING\r\n");
    assert_int_equal(peer.became_ready, 1);
    peer_say(&peer, "+OK\r\n+OK\r\n");
    const int64_t limit_ns = redlock_loop_now_ns(NULL) + PEER_LIMIT_MS * INT64_C(1000000);
    /* Until a late reply was read. */
    while (peer_info(&peer).round_trip_us < PEER_TIMEOUT_MS * 1000) {
        assert_true(redlock_loop_now_ns(NULL) < limit_ns);
        peer_turn(&peer);
    }
    assert_is(peer_info(&peer).state, REDLOCK_NODE_STALLED);
    assert_int_equal(peer.became_ready, 1);
    assert_false(peer_send(&peer, "b", 4));
    peer_say(&peer, "+OK\r\n+PONG\r\n");
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer.became_ready, 2);
    assert_true(peer_send(&peer, "c", 5));
    peer_serve(&peer, "c", "+OK\r\n");
    peer_until_answer(&peer, 3, 5, REDLOCK_VOTE_GRANTED, "");
}

/* R20: no server answers PING with a number. */
FRESH_TEST(a_pong_of_another_form_ends_the_connection) {
    connect_it();
    peer_sends_each(&peer, "aaa");
    peer_until_state(&peer, REDLOCK_NODE_STALLED);
    peer_serve(&peer, "*1\r\n$4\r\nPING\r\n", "+OK\r\n+OK\r\n+OK\r\n:1\r\n");
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    assert_contains(peer_info(&peer).error, "what nobody had asked");
}

/* Such a node is written to after the others (R7): it owes an answer for longer than a millisecond,
 * a timeout does not end that. */
FRESH_TEST(a_node_is_behind_while_it_owes_an_answer) {
    const int64_t ms_ns = 1000000;
    connect_it();
    assert_false(redlock_node_is_behind(peer.node, redlock_loop_now_ns(NULL) + 1000 * ms_ns));
    assert_true(peer_send(&peer, "a", 1));
    /* Queued at times to come, so that they do not time out here. */
    int64_t queued_ns = redlock_loop_now_ns(NULL) + PEER_LIMIT_MS * ms_ns;
    assert_true(peer_queue(&peer, "b", REDLOCK_OP_ACQUIRE, 2, queued_ns));
    assert_true(peer_queue(&peer, "c", REDLOCK_OP_ACQUIRE, 3, queued_ns + 2 * ms_ns));
    peer_expect(&peer, "abc");
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "no answer");
    assert_true(redlock_node_is_behind(peer.node, redlock_loop_now_ns(NULL)));
    peer_say(&peer, "+OK\r\n+OK\r\n");
    peer_until_answer(&peer, 1, 2, REDLOCK_VOTE_GRANTED, "");
    assert_false(redlock_node_is_behind(peer.node, queued_ns + 3 * ms_ns));
    assert_true(redlock_node_is_behind(peer.node, queued_ns + 3 * ms_ns + 1));
    peer_say(&peer, "+OK\r\n");
    peer_until_answers(&peer, 3);
    assert_false(redlock_node_is_behind(peer.node, queued_ns + 1000 * ms_ns));
}

static void turn_for_ms(int64_t ms) {
    for (const int64_t end_ns = redlock_loop_now_ns(NULL) + ms * INT64_C(1000000);
         redlock_loop_now_ns(NULL) < end_ns;) {
        peer_turn(&peer);
    }
}

/* The first try may take the connect timeout; the node timeout begins when they are written
 * (R7). */
FRESH_TEST(before_the_first_connection_requests_wait_for_the_handshake) {
    assert_true(peer_send(&peer, "a", 1));
    peer_accept(&peer);
    turn_for_ms(PEER_TIMEOUT_MS + PEER_TIMEOUT_MS / 2);
    assert_true(peer_send(&peer, "b", 2));
    assert_int_equal(peer.answer_count, 0);
    peer_hello(&peer, "r1", 7, 0);
    peer_introduced(&peer);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    peer_expect(&peer, "ab");
    assert_int_equal(peer.answer_count, 0);
    peer_say(&peer, "+OK\r\n");
    peer_until_answers(&peer, 2);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_GRANTED, "");
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_UNKNOWN, "no answer within 400 ms");
    assert_true(peer_info(&peer).round_trip_min_us < PEER_TIMEOUT_MS * 1000);
}

/* Not a byte of it was written: FAILED is the truth, and it must never be written later (R4). */
FRESH_TEST(the_end_of_the_first_try_ends_what_waited_for_it) {
    assert_true(peer_send(&peer, "a", 1));
    peer_accept(&peer);
    peer_until_answers(&peer, 1);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_FAILED,
                       "nothing was sent: connected, but no answer to the handshake within 2000 ms");
    assert_is(peer.answers[0].cause, REDLOCK_CAUSE_CONNECTION);
    assert_false(peer_send(&peer, "b", 2)); /* no later try */
    peer_greet(&peer, "r1", 7, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer.heard_size, 0);
}

FRESH_TEST(a_refused_first_try_ends_it_at_once) {
    assert_true(peer_send(&peer, "a", 1));
    peer_accept(&peer);
    peer_close(&peer);
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_FAILED, "nothing was sent: connection");
    assert_is(peer.answers[0].cause, REDLOCK_CAUSE_CONNECTION);
}

/* With the socket full, what was begun is UNKNOWN, the rest withdrawn; the stream stays in
 * order. */
FRESH_TEST(a_full_socket_withdraws_what_was_not_begun) {
    static char large[32 * 1024];
    uint32_t sent = 0, unknown = 0, failed = 0;
    connect_it();
    int connection = peer.connection;
    peer.connection = -1; /* the server does not read */
    memset(large, 'x', sizeof large - 1);
    while (sent < PEER_ANSWERS_MAX - 8) {
        assert_true(peer_send(&peer, large, sent++));
    }
    peer_until_answers(&peer, sent);
    for (uint32_t i = 0; i < sent; i++) {
        assert_int_equal(peer.answers[i].round, i);
        unknown += peer.answers[i].vote == REDLOCK_VOTE_UNKNOWN;
        failed += peer.answers[i].vote == REDLOCK_VOTE_FAILED;
    }
    assert_int_equal(unknown + failed, sent);
    assert_true(unknown > 0 && failed > 0);
    for (uint32_t i = 0; i < sent; i++) {
        assert_int_equal(peer.answers[i].vote, i < unknown ? REDLOCK_VOTE_UNKNOWN : REDLOCK_VOTE_FAILED);
    }
    peer.connection = connection;
    for (size_t left = unknown * (sizeof large - 1); left > 0;) {
        peer_turn(&peer);
        size_t took = peer.heard_size < left ? peer.heard_size : left;
        for (size_t i = 0; i < took; i++) {
            assert_int_equal(peer.heard[i], 'x');
        }
        memmove(peer.heard, peer.heard + took, peer.heard_size - took);
        peer.heard_size -= took;
        left -= took;
    }
    peer_expect(&peer, "*1\r\n$4\r\nPING\r\n");
    for (uint32_t i = 0; i < unknown; i++) {
        peer_say(&peer, "+OK\r\n");
    }
    peer_say(&peer, "+PONG\r\n");
    peer_until_state(&peer, REDLOCK_NODE_READY);
}

FRESH_TEST(forgotten_scripts_are_loaded_again) {
    connect_it();
    assert_true(peer_queue(&peer, "r", REDLOCK_OP_RELEASE, 1, redlock_loop_now_ns(NULL)));
    peer_serve(&peer, "r", "-NOSCRIPT no\r\n");
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_FAILED, "does not know the script");
    /* Within the first second of a connection they are not: the handshake has just loaded them. */
    peer_sends(&peer, "s", 2);
    int64_t later_ns = redlock_loop_now_ns(NULL) + 1050 * INT64_C(1000000);
    peer_say(&peer, "+OK\r\n");
    peer_until_answers(&peer, 2);
    while (redlock_loop_now_ns(NULL) < later_ns) {
        peer_turn(&peer);
    }
    assert_true(peer_queue(&peer, "r", REDLOCK_OP_RELEASE, 3, redlock_loop_now_ns(NULL)));
    peer_serve(&peer, "r", "-NOSCRIPT no\r\n");
    peer_expect(&peer, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n");
}

/* As the fleet does. */
static bool send_shared(uint32_t round) {
    const unsigned kind = REDLOCK_OP_ACQUIRE | REDLOCK_KIND_SHARED;
    redlock_node_load(peer.node, kind);
    return peer_send_as(&peer, "s", kind, round);
}

static void assert_share_is_loaded(uint32_t round) {
    const struct redlock_script *script = &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_SHARE];
    const size_t answers = peer.answer_count;
    char bytes[8192];
    (void)snprintf(bytes, sizeof bytes, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\ns", script->source_size,
                   script->source);
    assert_true(send_shared(round));
    peer_expect(&peer, bytes);
    peer_say(&peer, "$1\r\na\r\n:1\r\n");
    peer_until_answer(&peer, answers, round, REDLOCK_VOTE_GRANTED, "");
}

/* Once a connection, and only where somebody reads. */
FRESH_TEST(the_script_of_shared_locks_is_loaded_before_the_first) {
    connect_it();
    peer_sends(&peer, "w", 1);
    peer_say(&peer, "+OK\r\n");
    peer_until_answers(&peer, 1);
    assert_share_is_loaded(2);
    assert_true(send_shared(3));
    peer_serve(&peer, "s", ":1\r\n");
    peer_until_answer(&peer, 2, 3, REDLOCK_VOTE_GRANTED, "");
    peer_close(&peer);
    peer_greet(&peer, "r2", 8, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_share_is_loaded(4);
}

static void connect_as(const char *version) {
    peer.version = version;
    connect_it();
}

static void say_to_a_delete(uint32_t round, const char *reply) {
    const size_t answers = peer.answer_count;
    assert_true(peer_send_as(&peer, "d", REDLOCK_OP_RELEASE | REDLOCK_KIND_DELETING, round));
    peer_serve(&peer, "d", reply);
    peer_until_answers(&peer, answers + 1);
}

FRESH_TEST(a_server_that_has_a_command_to_delete_is_asked_by_it) {
    assert_is(redlock_node_form(peer.node).deleting, REDLOCK_DELETING_SCRIPT); /* not known yet */
    connect_as("redis_version:8.4.0");
    assert_is(redlock_node_form(peer.node).deleting, REDLOCK_DELETING_DELEX);
    say_to_a_delete(1, ":1\r\n");
    say_to_a_delete(2, ":0\r\n");
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_GRANTED, "");
    /* The script must tell why. That says nothing against the command. */
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_FAILED, "or waited for");
    assert_is(redlock_node_form(peer.node).deleting, REDLOCK_DELETING_DELEX);
    assert_int_equal(peer_times_logged(&peer, "releases use the script"), 0);
    /* The next server may be another. */
    peer_close(&peer);
    peer.version = NULL;
    peer_greet(&peer, "r2", 8, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_is(redlock_node_form(peer.node).deleting, REDLOCK_DELETING_SCRIPT);
}

/* Also where the answer comes too late for its request. */
FRESH_TEST(a_refused_delete_is_not_tried_again_on_this_connection) {
    connect_as("redis_version:7.2.4\r\nvalkey_version:9.0.1");
    assert_is(redlock_node_form(peer.node).deleting, REDLOCK_DELETING_DELIFEQ);
    assert_true(peer_send_as(&peer, "d", REDLOCK_OP_RELEASE | REDLOCK_KIND_DELETING, 1));
    peer_expect(&peer, "d");
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "no answer within 400 ms");
    peer_say(&peer, "-NOPERM User u has no permissions to run the 'delifeq' command\r\n");
    PEER_UNTIL(&peer, redlock_node_form(peer.node).deleting == REDLOCK_DELETING_SCRIPT);
    assert_int_equal(peer.answer_count, 1);
    say_to_a_delete(2, "-OOM no\r\n"); /* one that was under way; no script is loaded for it */
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_FAILED, "OOM no");
    assert_int_equal(peer_times_logged(&peer, "releases use the script"), 1);
    assert_int_equal(peer_times_logged(&peer, "NOPERM User u"), 1);
    peer_sends(&peer, "s", 3);
    peer_close(&peer);
    peer_greet(&peer, "r1", 8, 7);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_is(redlock_node_form(peer.node).deleting, REDLOCK_DELETING_DELIFEQ);
}

FRESH_TEST(a_delete_that_answers_out_of_protocol_ends_the_connection) {
    connect_as("redis_version:8.4.0");
    say_to_a_delete(1, "+OK\r\n");
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "out of protocol");
    peer_expect_end(&peer, true);
}
