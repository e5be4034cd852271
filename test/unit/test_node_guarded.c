/* A node with a guard: what it says of itself, and what it is not asked before; and clocks that
 * answers tell of. */
#include "peer.h"
#include "test.h"
#include "wire/wire.h"

#define A_TIME "$10\r\n1763791726\r\n$5\r\n50413\r\n"

static struct peer peer;

static int setup(UNUSED void **state) {
    peer_start_guarded(&peer);
    return 0;
}

static int setup_unguarded(UNUSED void **state) {
    peer_start(&peer);
    return 0;
}

static int teardown(UNUSED void **state) {
    peer_stop(&peer);
    return 0;
}

static void greet(const char *run_id, int id, int kills) {
    int64_t before_ns = redlock_loop_now_ns(NULL);
    int before = peer.greeted, settled_before = peer.became_ready;
    peer_greet(&peer, run_id, id, kills);
    assert_int_equal(peer.greeted, before); /* not before the last reply */
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer.greeted, before + 1);
    assert_int_equal(peer.settled_when_greeted, settled_before);
    assert_int_equal(peer.became_ready, settled_before + 1);
    assert_string_equal(peer.greeting.run_id, run_id);
    assert_int_equal(peer.greeting.uptime_s, 12);
    const struct redlock_clock_sample *clock = &peer.greeting.clock;
    assert_true(clock->server_us == PEER_SERVER_US);
    assert_true(before_ns <= clock->read_ns && clock->read_ns <= redlock_loop_now_ns(NULL));
    assert_true(clock->sent_ns < clock->read_ns);
}

#define FRESH_TEST(name)   TEST_WITH(name, setup, teardown)
#define FRESH_TEST_2(name) TEST_WITH(name, setup_unguarded, teardown)

FRESH_TEST(each_new_connection_greets_before_it_settles) {
    greet("r1", 7, 0);
    assert_int_equal(peer.became_ready, 1);
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    greet("r2", 8, 0);
    assert_int_equal(peer.became_ready, 2);
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    greet("r2", 9, 8);
    assert_int_equal(peer.became_ready, 3);
}

/* Its clock was read on this connection, with these times about it, though the answer to the rest
 * of the handshake takes longer. */
FRESH_TEST(a_slow_handshake_reads_the_clock_when_it_comes) {
    int64_t begin_ns = redlock_loop_now_ns(NULL);
    peer_accept(&peer);
    peer_ping(&peer);
    peer_expect(&peer, "*1\r\n$4\r\nINFO\r\n");
    int64_t said_ns = redlock_loop_now_ns(NULL);
    peer_say(&peer, "$8\r\nrun_id:a\r\n*2\r\n" A_TIME);
    for (int i = 0; i < 3; i++) { /* what was said is there already */
        peer_turn(&peer);
    }
    int64_t later_ns = redlock_loop_now_ns(NULL);
    assert_int_equal(peer.greeted, 0);
    peer_say(&peer, "-NOPERM no ID\r\n");
    peer_introduced(&peer);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer.greeted, 1);
    assert_int_equal(peer.greeting.uptime_s, -1);
    const struct redlock_clock_sample *clock = &peer.greeting.clock;
    assert_true(begin_ns <= clock->read_ns && clock->sent_ns <= said_ns);
    assert_true(said_ns <= clock->read_ns && clock->read_ns <= later_ns);
}

FRESH_TEST(the_return_of_a_stalled_node_is_no_greeting) {
    greet("r1", 7, 0);
    peer_sends_each(&peer, "aaa");
    peer_until_state(&peer, REDLOCK_NODE_STALLED);
    peer_serve(&peer, "*1\r\n$4\r\nPING\r\n", "+OK\r\n+OK\r\n+OK\r\n+PONG\r\n");
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer.became_ready, 2);
    assert_int_equal(peer.greeted, 1);
}

/* Whether it is in quarantine is known once it has greeted. Until then nothing may set a key there:
 * no acquire, no WAIT, and no heal. A release may wait for it. */
FRESH_TEST(it_takes_nothing_that_sets_a_key_before_it_is_ready) {
    assert_false(peer_send(&peer, "a", 1));
    assert_false(peer_send_as(&peer, "b", REDLOCK_OP_ACQUIRE | REDLOCK_KIND_FENCED | REDLOCK_KIND_TIMED, 2));
    assert_false(peer_send_as(&peer, "h", REDLOCK_OP_HEAL, 6));
    assert_false(peer_send_as(&peer, "w", REDLOCK_OP_WAIT, 8));
    assert_contains(redlock_text_string(redlock_node_refusal(peer.node)), "not connected yet; connecting now");
    assert_is(redlock_text_cause(redlock_node_refusal(peer.node)), REDLOCK_CAUSE_CONNECTION);
    assert_true(peer_send_as(&peer, "c", REDLOCK_OP_RELEASE, 3));
    peer_accept(&peer);
    peer_ping(&peer);
    peer_expect(&peer, "*1\r\n$4\r\nINFO\r\n");
    assert_false(peer_send(&peer, "d", 4));
    assert_false(peer_send_as(&peer, "h", REDLOCK_OP_HEAL, 7));
    assert_false(peer_send_as(&peer, "w", REDLOCK_OP_WAIT, 9));
    peer_close(&peer);
    peer_until_answer(&peer, 0, 3, REDLOCK_VOTE_FAILED, "nothing was sent");
    greet("r1", 7, 0);
    assert_true(peer_send(&peer, "e", 5));
    peer_serve(&peer, "e", "+OK\r\n");
    peer_until_answer(&peer, 1, 5, REDLOCK_VOTE_GRANTED, "");
}

FRESH_TEST_2(without_a_guard_it_greets_too_and_an_acquire_may_wait) {
    assert_true(peer_send(&peer, "a", 1));
    greet("r1", 7, 0);
    peer_expect(&peer, "a");
}

/* Between the request's queuing and its reading. */
FRESH_TEST_2(an_answer_that_tells_the_time_tells_the_times_about_it) {
    peer_greet(&peer, "r1", 7, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    int64_t queued_ns = redlock_loop_now_ns(NULL);
    assert_true(peer_queue(&peer, "a", REDLOCK_OP_ACQUIRE | REDLOCK_KIND_TIMED, 1, queued_ns));
    assert_true(peer_send_as(&peer, "b", REDLOCK_OP_TIME, 2));
    assert_true(peer_send(&peer, "c", 3));
    peer_expect(&peer, "abc");
    int64_t said_ns = redlock_loop_now_ns(NULL);
    peer_say(&peer, "*4\r\n:1\r\n$-1\r\n" A_TIME "*2\r\n" A_TIME "+OK\r\n");
    peer_until_answers(&peer, 3);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_GRANTED, "");
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_GRANTED, "");
    assert_true(peer.answers[0].clock.sent_ns == queued_ns);
    for (size_t i = 0; i < 2; i++) {
        const struct redlock_clock_sample *clock = &peer.answers[i].clock;
        assert_true(clock->server_us == PEER_SERVER_US);
        assert_true(queued_ns <= clock->sent_ns && clock->sent_ns <= said_ns);
        assert_true(said_ns <= clock->read_ns && clock->read_ns <= redlock_loop_now_ns(NULL));
    }
    assert_true(peer.answers[2].clock.server_us == 0);
}

/* R20: a +OK in the place of a script's reply is one reply too many, and grants nothing. */
FRESH_TEST_2(a_reply_of_another_form_ends_the_connection) {
    peer_greet(&peer, "r1", 7, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_true(peer_send_as(&peer, "a", REDLOCK_OP_ACQUIRE | REDLOCK_KIND_FENCED, 1));
    assert_true(peer_send_as(&peer, "b", REDLOCK_OP_ACQUIRE | REDLOCK_KIND_FENCED, 2));
    peer_serve(&peer, "ab", "+OK\r\n:1\r\n");
    peer_until_answers(&peer, 2);
    peer_assert_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "out of protocol");
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_UNKNOWN, "what nobody had asked");
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
}
