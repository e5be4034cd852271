/* A node that is farther away than its timeout, or was only slow (R7). */
#include "test.h"
#include <sys/socket.h>
#include <time.h>

#include "server/server_state.h"
#include "subscriber.h"

/* From when the server hears something. */
static void be_late(void) {
    PEER_UNTIL(&peer, peer.heard_size > 0);
    const int64_t end_ns = redlock_loop_now_ns(NULL) + (PEER_TIMEOUT_MS + 1) * INT64_C(1000000);
    while (redlock_loop_now_ns(NULL) < end_ns) {
        peer_turn(&peer);
    }
}

/* The handshake has a longer timeout than a request: it shows that no vote can come in time. */
static void connect_it_late(void) {
    peer_accept(&peer);
    be_late();
    peer_hello(&peer, "r1", 7, 0);
    assert_false(redlock_node_is_too_far(peer.node)); /* not ready */
    be_late();
    peer_introduced(&peer);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_true(redlock_node_is_too_far(peer.node));
    assert_true(peer_info(&peer).round_trip_min_us > PEER_TIMEOUT_MS * 1000);
}

static void pong(void) {
    peer_serve(&peer, PING, "+PONG\r\n");
    PEER_UNTIL(&peer, peer.node->server.connection.inflight.count == 0);
}

/* The machine may be slow, too. */
static void pong_in_time(void) {
    for (int i = 0; i < 20 && redlock_node_is_too_far(peer.node); i++) {
        pong();
        (void)redlock_node_serves_waiters(peer.node);
    }
}

#define FRESH_TEST(name) TEST_WITH(name, first_setup, first_teardown)

FRESH_TEST(its_late_votes_say_so) {
    connect_it_late();
    const char *why = redlock_text_string(redlock_node_refusal(peer.node));
    assert_contains(why, "no answer within 400 ms, and a round trip takes ");
    assert_contains(why, " ms at least: node_timeout_ms must be longer, such as ");
    assert_int_equal(peer_times_logged(&peer, "node_timeout_ms must be longer"), 1);
    assert_true(peer_send(&peer, "a", 1));
    peer_expect(&peer, PING "a");
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, why);
    assert_is(peer.answers[0].cause, REDLOCK_CAUSE_TIMEOUT);
    /* No reply can be here yet, so the connection is not silent yet. */
    const int64_t trips_ns = 2 * peer.node->server.shortest_ns;
    assert_true(peer.node->server.dial.begun_ns >= peer.node->server.up_ns + trips_ns);
    peer_say(&peer, "+PONG\r\n+OK\r\n");
    PEER_UNTIL(&peer, peer.node->server.connection.inflight.count == 0);
    assert_true(redlock_node_is_too_far(peer.node));
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    assert_int_equal(peer_info(&peer).round_trip_min_us, -1);
    assert_false(redlock_node_is_too_far(peer.node));
}

/* A loop that runs late finds the answer before it looks at the timeout. */
FRESH_TEST(its_late_votes_never_count) {
    connect_it_late();
    assert_true(peer_send(&peer, "a", 1));
    peer_expect(&peer, PING "a");
    const int64_t queued_ns = redlock_inflight_at(&peer.node->server.connection.inflight, 0)->queued_ns;
    const struct timespec pause = {.tv_nsec = 5000000};
    assert_int_equal(send(peer.connection, "+PONG\r\n+OK\r\n", 12, MSG_NOSIGNAL), 12);
    while (redlock_loop_now_ns(NULL) <= queued_ns + (PEER_TIMEOUT_MS + 100) * INT64_C(1000000)) {
        (void)nanosleep(&pause, NULL); /* no turn of the loop meanwhile */
    }
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "no answer within 400 ms, and a round trip takes ");
    assert_is(peer.answers[0].cause, REDLOCK_CAUSE_TIMEOUT);
}

/* A grant would count however late it comes, and the lease could not be renewed. */
FRESH_TEST(it_serves_no_waiters_and_is_measured_again) {
    connect_it_late();
    for (int i = 0; i < 3; i++) {
        assert_false(redlock_node_serves_waiters(peer.node));
        assert_false(redlock_node_serves_waiters(peer.node)); /* one PING at a time */
        be_late();
        pong();
        assert_int_equal(peer.heard_size, 0);
        assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    }
    assert_int_equal(peer.became_ready, 1);
    assert_false(redlock_node_serves_waiters(peer.node));
}

/* Such a node must not stay without those who wait. */
FRESH_TEST(it_was_only_slow) {
    connect_it_late(); /* it is measured once more at once */
    pong_in_time();
    assert_true(redlock_node_serves_waiters(peer.node));
    assert_int_equal(peer.became_ready, 2); /* those who wait ask it now */
    assert_int_equal(peer.became_unready, 0);
    assert_int_equal(peer_times_logged(&peer, "answers within 400 ms now"), 1);
    assert_true(peer_info(&peer).round_trip_min_us <= PEER_TIMEOUT_MS * 1000);
    assert_true(peer_send(&peer, "c", 3));
    peer_expect(&peer, "c"); /* and no PING */
    peer_until_answer(&peer, 0, 3, REDLOCK_VOTE_UNKNOWN, "no answer within 400 ms");
    assert_lacks(peer.answers[0].text, "round trip");
}
