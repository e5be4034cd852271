/* A node that gets new credentials: on an open connection, in a handshake, refused, replaced. */
#include "test.h"
#include <unistd.h>

#include "credentials_kit.h"

#define FRESH_TEST(name) TEST_WITH(name, subscriber_setup_with_password, credentials_teardown)

FRESH_TEST(an_open_connection_gets_auth_in_order) {
    connect_with(OLD);
    assert_false(peer_info(&peer).credentials_pending);
    assert_true(peer_send(&peer, "aa", 1));
    offer("bob", "neu-1");
    assert_true(peer_info(&peer).credentials_pending);
    assert_true(peer_send(&peer, "bb", 2));
    peer_serve(&peer, "aa" NEW WITH_PING "bb", "+OK\r\n+OK\r\n" ECHO "$-1\r\n");
    peer_until_answers(&peer, 2);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_GRANTED, "");
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_DENIED, "");
    assert_accepted();
    assert_int_equal(count_in_log("has accepted the new credentials"), 1);
    assert_int_equal(peer.became_unready, 0);
    peer_close(&peer);
    connect_with(NEW);
    assert_accepted();
}

/* Redis from 7.2 on: a refused AUTH has no reply while the client has not got all earlier ones. */
FRESH_TEST(a_refusal_in_silence_shifts_no_reply) {
    connect_with(OLD);
    assert_true(peer_send(&peer, "aa", 1));
    offer("bob", "neu-1");
    assert_true(peer_send(&peer, "bb", 2));
    assert_true(peer_send(&peer, "cc", 3));
    peer_serve(&peer, "aa" NEW WITH_PING "bbcc", "+OK\r\n" ECHO "$-1\r\n+OK\r\n");
    peer_until_answers(&peer, 3);
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_DENIED, "");
    peer_assert_answer(&peer, 2, 3, REDLOCK_VOTE_GRANTED, "");
    assert_contains(peer_info(&peer).credentials_error, "AUTH failed: WRONGPASS");
    assert_true(peer_info(&peer).credentials_pending);
    assert_int_equal(peer.became_unready, 0);
}

/* Only who is not permitted to PING gets an error behind an AUTH that was accepted. */
FRESH_TEST(what_follows_auth_is_looked_at) {
    static const struct {
        const char *replies;
        bool ends;
    } cases[] =
        LIST({"+OK\r\n-NOPERM no ping\r\n", false}, {"+OK\r\n+OK\r\n", true}, {REFUSED "-NOPERM no ping\r\n", true},
             {REFUSED "+OK\r\n", true}, {"$12\r\nredlock-autH\r\n", true});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        connect_with(OLD);
        offer("bob", "neu-1");
        peer_serve(&peer, NEW WITH_PING, cases[i].replies);
        if (cases[i].ends) {
            peer_expect_end(&peer, true);
        } else {
            assert_accepted();
            assert_true(peer_send(&peer, "aa", 1));
            peer_serve(&peer, "aa", "+OK\r\n");
            peer_until_answers(&peer, 1);
        }
        assert_int_equal(credentials_teardown(state), 0);
        assert_int_equal(subscriber_setup_with_password(state), 0);
    }
}

FRESH_TEST(without_a_user_auth_has_the_password_only) {
    connect_with(OLD);
    offer(NULL, "neu-1");
    peer_serve(&peer, "*2\r\n$4\r\nAUTH\r\n$5\r\nneu-1\r\n" WITH_PING, "+OK\r\n" ECHO);
    assert_accepted();
}

/* The connection that works goes on; the next one tries the new ones first. */
FRESH_TEST(refused_ones_leave_the_old_ones_in_use) {
    connect_with(OLD);
    offer("bob", "neu-1");
    peer_serve(&peer, NEW WITH_PING, REFUSED ECHO);
    PEER_UNTIL(&peer, peer_info(&peer).credentials_error[0] != '\0');
    assert_contains(peer_info(&peer).credentials_error, "AUTH failed: WRONGPASS");
    assert_contains(peer_info(&peer).warning, "the old ones are in use");
    assert_true(peer_info(&peer).credentials_pending);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    assert_int_equal(count_in_log("refuses the new credentials"), 1);
    assert_true(peer_send(&peer, "aa", 1));
    peer_serve(&peer, "aa", "+OK\r\n");
    peer_until_answers(&peer, 1);
    peer_close(&peer);
    hear_auth(NEW);
    refuse_handshake();
    connect_with(OLD);
    assert_contains(peer_info(&peer).warning, "the old ones are in use");
    assert_true(peer_info(&peer).credentials_pending);
    assert_int_equal(count_in_log("refuses the new credentials"), 1); /* said once */
    offer("bob", "neu-1");                                            /* the node has them now */
    peer_serve(&peer, NEW WITH_PING, "+OK\r\n" ECHO);
    assert_accepted();
}

FRESH_TEST(an_error_that_quotes_the_secret_is_not_shown) {
    connect_with(OLD);
    offer("bob", "neu-1");
    peer_serve(&peer, NEW WITH_PING, "-ERR neu-1 is no good\r\n" ECHO);
    PEER_UNTIL(&peer, peer_info(&peer).credentials_error[0] != '\0');
    assert_contains(peer_info(&peer).credentials_error, "quotes the password");
}

FRESH_TEST(before_the_first_connection_the_new_ones_are_tried) {
    offer("bob", "neu-1");
    connect_with(NEW);
    assert_accepted();
}

FRESH_TEST(a_handshake_ends_with_the_old_ones_first) {
    hear_auth(OLD);
    offer("bob", "neu-1");
    welcome("7.0.15");
    peer_serve(&peer, NEW WITH_PING, "+OK\r\n" ECHO);
    assert_accepted();
}

/* What came during a handshake with new ones that are refused is tried next, not the old ones. */
FRESH_TEST(a_refused_handshake_goes_on_with_newer_ones) {
    offer("bob", "neu-1");
    hear_auth(NEW);
    offer("bob", "neu-2");
    refuse_handshake();
    connect_with(NEWER);
    assert_accepted();
}

FRESH_TEST(if_the_node_refuses_both_the_new_ones_stay) {
    offer("bob", "neu-1");
    hear_auth(NEW);
    refuse_handshake();
    hear_auth(OLD);
    refuse_handshake();
    peer_until_state(&peer, REDLOCK_NODE_UNUSABLE);
    assert_true(peer_info(&peer).credentials_pending);
    assert_contains(peer_info(&peer).error, "WRONGPASS");
    hear_auth(NEW);
    refuse_handshake();
    peer_until_state(&peer, REDLOCK_NODE_UNUSABLE);
    connect_with(NEW);
    assert_accepted();
}

/* Without the right ones it was UNUSABLE, and would look again in up to two seconds. */
FRESH_TEST(an_unusable_node_is_tried_at_once) {
    hear_auth(OLD);
    refuse_handshake();
    peer_until_state(&peer, REDLOCK_NODE_UNUSABLE);
    assert_true(peer.node->server.due_ns > redlock_loop_now_ns(NULL));
    offer("bob", "neu-1");
    assert_true(peer.node->server.due_ns <= redlock_loop_now_ns(NULL));
    connect_with(NEW);
    assert_accepted();
}

/* Another failure of the handshake says nothing about the credentials. */
FRESH_TEST(a_handshake_that_is_cut_off_tries_the_new_ones_again) {
    offer("bob", "neu-1");
    hear_auth(NEW);
    peer_close(&peer);
    hear_auth(NEW);
    peer_say(&peer, "-LOADING data\r\n");
    connect_with(NEW);
    assert_accepted();
}

FRESH_TEST(the_end_of_the_connection_leaves_them_to_the_next) {
    connect_with(OLD);
    offer("bob", "neu-1");
    peer_expect(&peer, NEW WITH_PING);
    peer_close(&peer);
    connect_with(NEW);
    assert_accepted();
}

FRESH_TEST(one_auth_at_a_time) {
    connect_with(OLD);
    offer("bob", "neu-1");
    offer("bob", "neu-2"); /* the first is under way, and may be accepted */
    peer_expect(&peer, NEW WITH_PING);
    for (int i = 0; i < 10; i++) {
        peer_turn(&peer);
    }
    assert_int_equal(peer.heard_size, 0);
    peer_say(&peer, "+OK\r\n" ECHO);
    peer_expect(&peer, NEWER WITH_PING);
    assert_true(peer_info(&peer).credentials_pending);
    peer_say(&peer, REFUSED ECHO);
    PEER_UNTIL(&peer, peer_info(&peer).credentials_error[0] != '\0');
    peer_close(&peer);
    hear_auth(NEWER);
    refuse_handshake();
    connect_with(NEW); /* what was accepted last */
}

FRESH_TEST(a_refusal_is_over_when_newer_ones_wait) {
    connect_with(OLD);
    offer("bob", "neu-1");
    offer("bob", "neu-2");
    peer_serve(&peer, NEW WITH_PING, REFUSED ECHO);
    peer_serve(&peer, NEWER WITH_PING, "+OK\r\n" ECHO);
    assert_accepted();
}

/* Redis 5 logs a connection out when AUTH fails, so it is not asked on one that works. */
FRESH_TEST(an_old_server_gets_them_with_the_next_connection) {
    hear_auth(OLD);
    welcome("5.0.6");
    offer("bob", "neu-1");
    assert_true(peer_send(&peer, "aa", 1));
    peer_serve(&peer, "aa", "+OK\r\n");
    peer_until_answers(&peer, 1);
    assert_int_equal(peer.heard_size, 0);
    assert_true(peer_info(&peer).credentials_pending);
    assert_int_equal(count_in_log("with its next connection"), 1);
    peer_close(&peer);
    hear_auth(NEW);
    welcome("5.0.6");
    assert_accepted();
}

/* A request fills the socket. AUTH is withdrawn like other requests, and asked again. */
FRESH_TEST(auth_that_could_not_be_written_is_asked_again) {
    const size_t size = (size_t)32 * 1024 * 1024;
    char *big = malloc(size + 1);
    assert_non_null(big);
    memset(big, 'x', size);
    big[size] = '\0';
    connect_with(OLD);
    const int connection = peer.connection;
    peer.connection = -1; /* nobody reads */
    assert_true(peer_send(&peer, big, 1));
    offer("bob", "neu-1");
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "no answer");
    for (int64_t end_ns = redlock_loop_now_ns(NULL) + INT64_C(1200) * 1000000; redlock_loop_now_ns(NULL) < end_ns;) {
        peer_turn(&peer); /* three timeouts of AUTH */
    }
    peer.connection = connection;
    for (size_t left = size; left > 0; peer.heard_size = 0) {
        PEER_UNTIL(&peer, peer.heard_size > 0);
        if (peer.heard_size > left) {
            assert_memory_equal(peer.heard + left, "*", 1);
            memmove(peer.heard, peer.heard + left, peer.heard_size - left);
            peer.heard_size -= left;
            break;
        }
        left -= peer.heard_size;
    }
    peer_expect(&peer, NEW WITH_PING);
    for (int i = 0; i < 10; i++) {
        peer_turn(&peer);
    }
    assert_int_equal(peer.heard_size, 0); /* once */
    peer_say(&peer, "$-1\r\n+OK\r\n" ECHO);
    assert_accepted();
    free(big);
}

/* It waits for whichever connection answers first, and is said there once. */
FRESH_TEST(auth_that_was_kept_is_said_once_on_the_new_connection) {
    connect_with(OLD);
    peer_sends(&peer, "aa", 1);
    const int old = peer_put_aside(&peer);
    peer_until_answers(&peer, 1);
    offer("bob", "neu-1");
    connect_with(NEW); /* it says them, too, for it may know no others any more */
    PEER_UNTIL(&peer, peer_info(&peer).connects == 2);
    peer_expect(&peer, NEW WITH_PING);
    for (int i = 0; i < 10; i++) {
        peer_turn(&peer);
    }
    assert_int_equal(peer.heard_size, 0);
    peer_say(&peer, "+OK\r\n" ECHO);
    assert_accepted();
    (void)close(old);
    peer_close(&peer);
    connect_with(NEW);
}

FRESH_TEST(an_answer_that_is_none_ends_the_connection) {
    connect_with(OLD);
    offer("bob", "neu-1");
    peer_serve(&peer, NEW WITH_PING, ":1\r\n");
    peer_expect_end(&peer, true);
    connect_with(NEW);
    assert_accepted();
}

/* The one before it, which may be dead, is killed. */
static void subscribe(const char *auth, bool kills) {
    const int before = peer.told_listening;
    peer_accept(&second);
    peer_expect(&second, auth);
    peer_serve(&second, kills ? INFO ID NAME : HELLO, "+OK\r\n" RUN_ID_R1 "+OK\r\n");
    if (kills) {
        peer_serve(&second, KILL LISTEN, ":1\r\n");
    }
    peer_say(&second, SUBSCRIBED);
    PEER_UNTIL(&second, peer.told_listening > before);
    assert_is(peer.listening, REDLOCK_LISTENING);
}

/* A subscriber may not say AUTH. The password matters to AUTH only, the user to all it does. */
FRESH_TEST(a_new_user_begins_the_second_connection_anew) {
    connect_with(OLD);
    redlock_node_listen(peer.node, "ch");
    subscribe(OLD, false);
    offer("bob", "neu-1");
    peer_serve(&peer, NEW WITH_PING, "+OK\r\n" ECHO);
    assert_accepted();
    assert_true(peer_info(&peer).listens);
    peer_say(&second, A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 1);
    offer("alice", "neu-3");
    peer_serve(&peer, ALICE WITH_PING, "+OK\r\n" ECHO);
    assert_accepted();
    assert_false(peer_info(&peer).listens);
    peer_expect_end(&second, true);
    subscribe(ALICE, true);
    assert_int_equal(peer.became_unready, 0);
}
