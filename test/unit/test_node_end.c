/* How a node's connection ends and comes back: what in-flight requests become, RST, KILL, backoff,
 * rivals (R4, R9, R16, R18, R20). */
#include "test.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/stream.h"
#include "subscriber.h"

static void refused_while_away(struct peer *self) {
    assert_false(peer_send(self, "z", 99));
    assert_contains(redlock_text_string(redlock_node_refusal(self->node)), "connection closed by the node");
    assert_is(redlock_text_cause(redlock_node_refusal(self->node)), REDLOCK_CAUSE_CONNECTION);
}

#define FRESH_TEST(name) TEST_WITH(name, first_setup, first_teardown)

FRESH_TEST(written_is_unknown_and_unwritten_is_failed) {
    connect_it();
    peer_sends(&peer, "a", 1);
    peer_close(&peer);
    assert_true(peer_send(&peer, "b", 2)); /* may be written into the closed connection, or not */
    peer.in_answer = refused_while_away;
    peer_until_answers(&peer, 2);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN,
                       "connection closed by the node after the request was written");
    assert_is(peer.answers[0].cause, REDLOCK_CAUSE_CONNECTION);
    if (peer.answers[1].vote == REDLOCK_VOTE_FAILED) {
        peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_FAILED, "nothing was sent: connection closed by the node");
    } else {
        peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_UNKNOWN, "after the request was written");
    }
    assert_false(redlock_node_is_at(peer.node, "r1"));
}

FRESH_TEST(replies_that_came_before_the_end_count) {
    connect_it();
    assert_true(peer_send(&peer, "a", 1));
    assert_true(peer_send(&peer, "b", 2));
    peer_serve(&peer, "ab", "+OK\r\n+O");
    peer_close(&peer);
    peer_until_answers(&peer, 2);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_GRANTED, "");
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_UNKNOWN, "after the request was written");
}

/* A program that was started without standard input gets it for its first connection. */
FRESH_TEST(a_connection_may_be_descriptor_0) {
    connect_it();
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    int input = dup(STDIN_FILENO);
    (void)close(STDIN_FILENO);
    peer_greet(&peer, "r1", 8, 7);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    struct sockaddr_in server;
    socklen_t size = sizeof server;
    assert_int_equal(getpeername(STDIN_FILENO, (struct sockaddr *)&server, &size), 0);
    assert_int_equal(ntohs(server.sin_port), peer.port);
    assert_true(peer_send(&peer, "a", 1));
    peer_serve(&peer, "a", "+OK\r\n");
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_GRANTED, "");
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    if (input >= 0) {
        assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
        (void)close(input);
    }
}

static void sends_after_the_first(struct peer *self) {
    if (self->answer_count == 1) {
        assert_true(peer_send(self, "b", 2));
    }
}

/* The flush was asked for while the connection stood, and comes when it has ended: it does nothing,
 * and the reason stands. */
FRESH_TEST(a_flush_after_the_end_does_nothing) {
    connect_it();
    peer_sends(&peer, "a", 1);
    peer.in_answer = sends_after_the_first;
    peer_say(&peer, "+OK\r\n?\r\n");
    peer_until_answers(&peer, 2);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_GRANTED, "");
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_FAILED, "nothing was sent: the node answered out of protocol");
    assert_is(peer.answers[1].cause, REDLOCK_CAUSE_NOT_A_NODE);
    peer_turn(&peer);
    assert_contains(peer_info(&peer).error, "out of protocol");
    peer_greet(&peer, "r1", 8, 7);
    peer_until_state(&peer, REDLOCK_NODE_READY);
}

FRESH_TEST(the_old_connection_is_killed_on_the_same_server) {
    connect_it();
    peer_close(&peer);
    peer_greet(&peer, "r1", 8, 7);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    peer_close(&peer);
    peer_greet(&peer, "r1", 9, 8);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer.became_ready, 3);
    assert_int_equal(peer_info(&peer).connects, 3);
}

FRESH_TEST(a_restarted_server_is_spared) {
    connect_it();
    peer_close(&peer);
    peer_greet(&peer, "r2", 8, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
}

/* A handshake that fails in between must not make it forget whom to kill. */
FRESH_TEST(the_debt_to_kill_outlives_a_failed_try) {
    connect_it();
    peer_close(&peer);
    peer_accept(&peer);
    peer_ping(&peer);
    peer_expect(&peer, "*1\r\n$4\r\nINFO\r\n");
    peer_close(&peer);
    peer_greet(&peer, "r1", 9, 7);
    peer_until_state(&peer, REDLOCK_NODE_READY);
}

static void assert_cut(const char *bytes, const char *words) {
    peer.answer_count = 0;
    assert_true(peer_send(&peer, "a", 1));
    peer_serve(&peer, "a", bytes);
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, words);
    assert_is(peer.answers[0].cause, REDLOCK_CAUSE_NOT_A_NODE);
    peer_expect_end(&peer, true);
}

FRESH_TEST(what_is_out_of_protocol_is_cut_with_a_reset) {
    connect_it();
    assert_cut("HTTP/1.1 400\r\n", "out of protocol");
    peer_greet(&peer, "r1", 8, 7);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    peer_sends(&peer, "a", 1);
    peer.answer_count = 0;
    peer_say(&peer, "+OK\r\n+OK\r\n"); /* the second was not asked for */
    peer_expect_end(&peer, true);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_GRANTED, "");
    assert_contains(peer.log, "what nobody had asked");
}

/* One reply too many would shift the others: the next +OK would grant what was not asked. */
FRESH_TEST(a_reply_that_cannot_be_ends_the_connection) {
    connect_it();
    assert_true(peer_send(&peer, "a", 1));
    assert_true(peer_send(&peer, "b", 2));
    peer_serve(&peer, "ab", ":1\r\n+OK\r\n+OK\r\n");
    peer_until_answers(&peer, 2);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "out of protocol");
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_UNKNOWN, "after the request was written");
    peer_expect_end(&peer, true);
}

/* Nobody listens, and the system gives the socket the very port that it connects to. */
TEST(a_socket_connected_to_itself_is_no_node) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(redlock_stream_connected(fd), ECONNREFUSED);
    (void)close(fd);
}

FRESH_TEST(a_stalled_node_is_given_up_after_its_limit) {
    connect_it();
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(peer_send(&peer, "a", i));
    }
    peer_expect(&peer, "aaa*1\r\n$4\r\nPING\r\n");
    peer_until_answers(&peer, 3);
    int64_t said_ns = redlock_loop_now_ns(NULL);
    while (redlock_loop_now_ns(NULL) < said_ns + 500 * INT64_C(1000000)) {
        peer_turn(&peer);
    }
    said_ns = redlock_loop_now_ns(NULL);
    peer_say(&peer, "+OK\r\n"); /* while it works off what it owes, it is waited for */
    peer_expect_end(&peer, true);
    assert_true(redlock_loop_now_ns(NULL) >= said_ns + 5000 * INT64_C(1000000));
    assert_int_equal(peer.answer_count, 3);
    assert_contains(peer_info(&peer).error, "no answer to anything for 5000 ms");
    peer_greet(&peer, "r1", 8, 7);
    peer_until_state(&peer, REDLOCK_NODE_READY);
}

FRESH_TEST(a_failed_first_try_is_told_and_makes_nobody_wait) {
    peer_accept(&peer);
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    assert_int_equal(peer.became_unready, 1);
    assert_false(peer_send(&peer, "a", 1));
    peer_accept(&peer);
    assert_false(peer_send(&peer, "a", 1)); /* only the first try makes requests wait */
    peer_close(&peer);
    peer_greet(&peer, "r1", 1, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer.became_ready, 1);
}

/* Only who has not answered at all may want TLS. */
FRESH_TEST(who_closes_at_info_is_no_tls_port) {
    peer_accept(&peer);
    peer_expect(&peer, "*1\r\n$4\r\nPING\r\n");
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    assert_contains(peer_info(&peer).error, "before any answer; does it want TLS (rediss://)?");
    peer_accept(&peer);
    peer_ping(&peer);
    PEER_UNTIL(&peer, strstr(peer_info(&peer).error, "at INFO; is it a proxy") != NULL || (peer_close(&peer), false));
    assert_lacks(peer_info(&peer).error, "TLS");
}

FRESH_TEST(the_same_server_twice_has_one_vote) {
    peer.rival = "other:1";
    peer_greet(&peer, "r1", 7, 0);
    peer_until_state(&peer, REDLOCK_NODE_UNUSABLE);
    assert_contains(peer_info(&peer).error, "the same server as other:1");
    assert_false(peer_send(&peer, "a", 1));
    peer.rival_yields = true;
    peer_greet(&peer, "r1", 8, 0);
    PEER_UNTIL(&peer, peer.rival_asked > 5); /* READY only when the other one has given way */
    assert_is(peer_info(&peer).state, REDLOCK_NODE_CONNECTING);
    peer.rival = NULL;
    peer_until_state(&peer, REDLOCK_NODE_READY);
    peer_sends(&peer, "a", 1);
    redlock_node_yield(peer.node, "first:1");
    assert_int_equal(peer.answer_count, 0);
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "the same server as first:1");
    assert_is(peer.answers[0].cause, REDLOCK_CAUSE_SAME_SERVER);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_UNUSABLE);
}

/* It has not been READY, and does not become so. */
FRESH_TEST(who_connects_to_anothers_server_gives_way) {
    peer_accept(&peer);
    peer_hello(&peer, "r1", 7, 0);
    PEER_UNTIL(&peer, memmem(peer.heard, peer.heard_size, "SETNAME", 7) != NULL);
    redlock_node_yield(peer.node, "first:1");
    peer_until_state(&peer, REDLOCK_NODE_UNUSABLE);
    assert_contains(peer_info(&peer).error, "the same server as first:1");
    assert_int_equal(peer.became_ready, 0);
}

/* The marker stays as it is. So whoever takes the place of a node takes its mark. */
TEST_WITH(the_mark_of_who_gives_way_is_taken_over, NULL, first_teardown) {
    peer_start_marked(&peer);
    peer.finds_other = true;
    peer.rival = "other:1";
    peer.rival_yields = true;
    peer_greet(&peer, "", 7, 0);
    PEER_UNTIL(&peer, peer.rival_asked > 0);
    assert_false(redlock_node_is_at(peer.node, PEER_OTHER_MARK));
    peer.rival = NULL;
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_true(redlock_node_is_at(peer.node, PEER_OTHER_MARK));
    assert_string_equal(peer_info(&peer).warning, "");
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    assert_false(redlock_node_is_at(peer.node, PEER_OTHER_MARK));
}
