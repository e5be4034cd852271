/* A connection that dies without a sound, and the second one that is tried beside it (R9, R16,
 * R17). */
#include <errno.h>
#include <signal.h>

#include "test.h"
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/spare.h"
#include "subscriber.h"

#define MS_NS INT64_C(1000000)

/* The server's end of the connection that goes silent; -1: none. */
static int old = -1;

static int setup_guarded(UNUSED void **state) {
    peer_start_guarded(&peer);
    return 0;
}

static int setup_marked(UNUSED void **state) {
    peer_start_marked(&peer);
    return 0;
}

static int teardown(UNUSED void **state) {
    if (old >= 0) {
        (void)close(old);
        old = -1;
    }
    peer_stop(&peer);
    return 0;
}

/* A request that does not time out, however slow the machine is. */
static bool send_for_long(const char *bytes, uint32_t round) {
    return peer_queue(&peer, bytes, REDLOCK_OP_ACQUIRE, round, redlock_loop_now_ns(NULL) + 60000 * MS_NS);
}

/* READY, with a request that gets no answer; the next to connect is the spare. */
static void go_silent(void) {
    connect_it();
    peer_sends(&peer, "a", 1);
    old = peer_put_aside(&peer);
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "no answer within 400 ms");
}

/* The spare has sent its greeting. */
static void let_spare_ask(void) {
    go_silent();
    peer_accept(&peer);
    peer_ping(&peer);
    peer_expect(&peer, "*1\r\n$4\r\nINFO\r\n");
}

/* The spare has become the connection. */
static void let_spare_take_over(void) {
    go_silent();
    peer_greet(&peer, "r1", 8, 7);
    PEER_UNTIL(&peer, peer_info(&peer).connects == 2);
}

static void say_on_old(const char *bytes) {
    assert_int_equal(send(old, bytes, strlen(bytes), MSG_NOSIGNAL), (ssize_t)strlen(bytes));
}

static bool old_is_reset(void) {
    char bytes[4096];
    ssize_t got;
    while ((got = recv(old, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    return got < 0 && errno == ECONNRESET;
}

static bool old_hears(const char *bytes) {
    char heard[256];
    const ssize_t got = recv(old, heard, sizeof heard, MSG_PEEK | MSG_DONTWAIT);
    return got == (ssize_t)strlen(bytes) && memcmp(heard, bytes, (size_t)got) == 0;
}

static void turn_for(int64_t ms) {
    const int64_t end_ns = redlock_loop_now_ns(NULL) + ms * MS_NS;
    while (redlock_loop_now_ns(NULL) < end_ns) {
        peer_turn(&peer);
    }
}

#define SPARE_TEST(name) TEST_WITH(name, first_setup, teardown)

/* R9: the old connection is reset, and killed by its id before any request. */
SPARE_TEST(a_new_connection_that_answers_replaces_a_silent_one) {
    let_spare_take_over();
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    PEER_UNTIL(&peer, old_is_reset());
    assert_int_equal(peer.became_unready, 0); /* nobody has to fail at once */
    assert_int_equal(peer.became_ready, 2);   /* what is owed is asked again */
    assert_int_equal(peer.greeted, 2);
    assert_int_equal(peer.answer_count, 1);
    assert_int_equal(peer_times_logged(&peer, "and a new one answers"), 1);
    assert_true(peer_send(&peer, "b", 2));
    peer_serve(&peer, "b", "+OK\r\n");
    peer_until_answer(&peer, 1, 2, REDLOCK_VOTE_GRANTED, "");
}

/* They may be waiting at both ends when the loop looks. */
SPARE_TEST(what_the_old_one_has_answered_already_counts) {
    let_spare_ask();
    peer_say(&peer, "$31\r\nredis_version:7.0.15\r\nrun_id:r1\r\n*2\r\n$10\r\n1763791726\r\n$5\r\n50413\r\n:8\r\n");
    say_on_old("+OK\r\n");
    peer_expect_end(&peer, true);
    assert_int_equal(peer_info(&peer).connects, 1);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    assert_false(old_is_reset());
}

/* What is asked meanwhile goes to the first that answers. */
SPARE_TEST(a_slow_connection_stays_and_gets_what_was_kept) {
    let_spare_ask();
    assert_true(send_for_long("b", 2));
    turn_for(20);
    assert_true(recv(old, (char[1]){0}, 1, MSG_DONTWAIT) < 0); /* not yet */
    say_on_old("+OK\r\n");
    peer_expect_end(&peer, true);
    PEER_UNTIL(&peer, old_hears("b"));
    say_on_old("$-1\r\n");
    peer_until_answer(&peer, 1, 2, REDLOCK_VOTE_DENIED, "");
    assert_int_equal(peer_info(&peer).connects, 1);
    assert_int_equal(peer.became_ready, 1);
}

/* Some overdue answers come, and then nothing: no new request has to wait for it. */
SPARE_TEST(a_connection_that_goes_silent_again_gets_another_spare) {
    connect_it();
    peer_sends_each(&peer, "aaaa");
    old = peer_put_aside(&peer);
    peer_until_answers(&peer, 4);
    peer_accept(&peer);
    say_on_old("+OK\r\n");
    peer_expect_end(&peer, true);
    for (int i = 0; i < 2; i++) {
        turn_for(300);
        say_on_old("+OK\r\n");
    }
    peer_greet(&peer, "r1", 8, 7);
    PEER_UNTIL(&peer, peer_info(&peer).connects == 2);
}

static void read_from_old(const char *bytes) {
    struct redlock_watch *watch = &peer.node->server.connection.watch;
    say_on_old(bytes);
    assert_int_equal(
        poll(&(struct pollfd){.fd = peer.node->server.connection.stream.fd, .events = POLLIN}, 1, PEER_LIMIT_MS), 1);
    watch->on_io(watch, REDLOCK_READABLE);
}

/* The loop stands still until another spare is due, and reads before it looks at timers. */
SPARE_TEST(what_was_kept_for_a_spare_that_never_begins_is_sent) {
    connect_it();
    peer_sends_each(&peer, "aa");
    old = peer_put_aside(&peer);
    peer_until_answers(&peer, 2);
    peer_accept(&peer);
    read_from_old("+OK\r\n");
    while (!redlock_spare_is_due(&peer.node->server, redlock_loop_now_ns(NULL))) {
        (void)poll(NULL, 0, 1);
    }
    assert_true(send_for_long("b", 3));
    redlock_loop_flush(peer.loop);
    read_from_old("+OK\r\n");
    PEER_UNTIL(&peer, old_hears("b"));
    say_on_old("$-1\r\n");
    peer_until_answer(&peer, 2, 3, REDLOCK_VOTE_DENIED, "");
}

SPARE_TEST(what_was_kept_goes_to_the_new_connection) {
    go_silent();
    assert_true(send_for_long("b", 2));
    peer_greet(&peer, "r1", 8, 7);
    peer_serve(&peer, "b", "+OK\r\n");
    peer_until_answer(&peer, 1, 2, REDLOCK_VOTE_GRANTED, "");
}

static bool send_without_timeout(uint32_t round) {
    return peer_queue(&peer, "r", REDLOCK_OP_RELEASE | REDLOCK_SERVER_NO_TIMEOUT, round, redlock_loop_now_ns(NULL));
}

/* A release that waits for its answer, however late, is asked again by its owner (R8). */
SPARE_TEST(what_was_written_on_the_old_connection_is_unknown) {
    connect_it();
    assert_true(send_without_timeout(1));
    assert_true(peer_send(&peer, "a", 2));
    peer_expect(&peer, "ra");
    old = peer_put_aside(&peer);
    peer_until_answer(&peer, 0, 2, REDLOCK_VOTE_UNKNOWN, "no answer");
    peer_greet(&peer, "r1", 8, 7);
    peer_until_answer(&peer, 1, 1, REDLOCK_VOTE_UNKNOWN, "silent and is replaced after the request was written");
    assert_true(send_without_timeout(3));
    peer_expect(&peer, "r");
}

/* The new connection gets no half of a request (R4). */
SPARE_TEST(what_was_written_in_part_is_unknown_and_dropped) {
    const size_t size = (size_t)32 * 1024 * 1024;
    char *big = malloc(size + 1);
    assert_non_null(big);
    memset(big, 'x', size);
    big[size] = '\0';
    connect_it();
    old = peer_put_aside(&peer); /* nobody reads */
    assert_true(peer_send(&peer, big, 1));
    free(big);
    peer_until_answer(&peer, 0, 1, REDLOCK_VOTE_UNKNOWN, "no answer");
    assert_true(send_for_long("b", 2));
    assert_true(send_for_long("c", 3));
    peer_greet(&peer, "r1", 8, 7);
    peer_serve(&peer, "bc", "$-1\r\n+OK\r\n");
    peer_until_answers(&peer, 3);
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_DENIED, "");
    peer_assert_answer(&peer, 2, 3, REDLOCK_VOTE_GRANTED, "");
}

/* Votes of one server may not count for another (R18). */
SPARE_TEST(another_server_gets_nothing_that_was_kept) {
    go_silent();
    assert_true(send_for_long("b", 2));
    peer_greet(&peer, "r2", 8, 0);
    PEER_UNTIL(&peer, peer_info(&peer).connects == 2);
    assert_int_equal(peer.answer_count, 2);
    peer_assert_answer(&peer, 1, 2, REDLOCK_VOTE_FAILED, "nothing was sent");
    assert_int_equal(peer.became_unready, 1);
    assert_int_equal(peer.became_ready, 2);
    assert_string_equal(peer.greeted_run_id, "r2");
    assert_int_equal(peer.heard_size, 0);
}

/* Without a run_id nobody knows which server it is; an id is not killed at a stranger. */
SPARE_TEST(a_server_without_a_name_gets_nothing_either) {
    peer_greet(&peer, "", 7, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    peer_sends(&peer, "a", 1);
    old = peer_put_aside(&peer);
    peer_until_answers(&peer, 1);
    assert_true(send_for_long("b", 2));
    peer_greet(&peer, "", 8, 0);
    peer_until_answer(&peer, 1, 2, REDLOCK_VOTE_FAILED, "nothing was sent");
    PEER_UNTIL(&peer, peer_info(&peer).connects == 2);
}

static bool is_known_to_others(const char *mark) {
    const char *marks[2];
    redlock_node_marks(peer.node, marks);
    return strcmp(marks[0], mark) == 0 && mark[0] != '\0';
}

/* By its mark, the other nodes learn that it is the same server as theirs. */
TEST_WITH(the_mark_of_a_spare_is_known_to_others, setup_marked, teardown) {
    char first[64];
    peer_greet(&peer, "", 7, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_true(is_known_to_others(peer.mark));
    (void)snprintf(first, sizeof first, "%s", peer.mark);
    peer_sends(&peer, "a", 1);
    old = peer_put_aside(&peer);
    peer_until_answers(&peer, 1);
    peer_accept(&peer);
    assert_true(is_known_to_others(first)); /* it may stay */
    peer_hello(&peer, "", 8, 0);
    peer_introduced(&peer);
    PEER_UNTIL(&peer, peer_info(&peer).connects == 2);
    assert_true(is_known_to_others(peer.mark));
    assert_int_not_equal(strcmp(peer.mark, first), 0); /* its address may lead elsewhere by now */
    assert_string_equal(peer_info(&peer).warning, "");
}

/* The guard has seen this run before: it may go on. */
TEST_WITH(a_guarded_node_resumes_with_the_same_run, setup_guarded, teardown) {
    go_silent();
    assert_true(send_for_long("b", 2));
    peer_greet(&peer, "r1", 8, 7);
    peer_expect(&peer, "b");
    assert_int_equal(peer.greeted, 2);
}

/* R16: one at a time, and then a pause; R17: after the limit the node is given up. */
SPARE_TEST(a_node_that_hangs_gets_few_connections) {
    struct pollfd came = {.fd = peer.listener, .events = POLLIN};
    int connections = 0;
    go_silent();
    const int64_t begun_ns = redlock_loop_now_ns(NULL);
    for (uint32_t i = 2; peer_info(&peer).state != REDLOCK_NODE_WAITING; i++) {
        if (peer.answer_count > 0) {
            peer.answer_count = 0;
            (void)peer_send(&peer, "b", i);
        }
        peer_turn(&peer);
        if (poll(&came, 1, 0) > 0) {
            peer_close(&peer); /* it is accepted, and never answered */
            peer.connection = accept(peer.listener, NULL, NULL);
            connections++;
        }
        assert_true(redlock_loop_now_ns(NULL) < begun_ns + PEER_LIMIT_MS * MS_NS);
    }
    const int64_t lasted_ms = (redlock_loop_now_ns(NULL) - begun_ns) / MS_NS;
    assert_true(lasted_ms >= 5000);
    assert_contains(peer_info(&peer).error, "no answer to anything for 5000 ms");
    assert_in_range(connections, 1, 1 + lasted_ms / 2000); /* the connect timeout */
    PEER_UNTIL(&peer, old_is_reset());
}

/* It is no news about the node. */
SPARE_TEST(a_spare_that_is_refused_changes_nothing) {
    let_spare_ask();
    peer_say(&peer, "-LOADING Redis is loading the dataset in memory\r\n");
    peer_expect_end(&peer, true);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    assert_contains(peer_info(&peer).version, "7.0.15");
    peer_greet(&peer, "r1", 8, 7); /* the next one, after a pause */
    PEER_UNTIL(&peer, peer_info(&peer).connects == 2);
}

SPARE_TEST(a_stalled_connection_is_replaced_too) {
    connect_it();
    peer_sends_each(&peer, "aaa");
    old = peer_put_aside(&peer);
    peer_until_state(&peer, REDLOCK_NODE_STALLED);
    peer_greet(&peer, "r1", 8, 7);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer_info(&peer).connects, 2);
    assert_int_equal(peer.became_ready, 2);
    PEER_UNTIL(&peer, old_is_reset());
}

/* Not a byte of it was written, and none will be: FAILED is the truth (R4). */
SPARE_TEST(what_was_kept_fails_when_the_node_stalls) {
    connect_it();
    peer_sends_each(&peer, "aaa");
    old = peer_put_aside(&peer);
    peer_until_answers(&peer, 3);
    assert_true(send_for_long("b", 4));
    peer_until_answer(&peer, 3, 4, REDLOCK_VOTE_FAILED, "nothing was sent: stalled: the last 3 requests");
    assert_is(peer.answers[3].cause, REDLOCK_CAUSE_STALLED);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_STALLED);
    PEER_UNTIL(&peer, old_hears(PING));
}

/* Three that time out at once do not stall a node whose spare has just begun. */
SPARE_TEST(many_requests_wait_for_the_spare) {
    connect_it();
    peer_sends_each(&peer, "aaa");
    old = peer_put_aside(&peer);
    peer_until_answers(&peer, 3);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    assert_true(send_for_long("b", 4));
    peer_greet(&peer, "r1", 8, 7);
    peer_expect(&peer, "b");
    assert_int_equal(peer.became_unready, 0);
}

/* A reply that comes shows that the connection lives, also if older requests are overdue. Returns
 * whether there was a longer pause between two of them, as on a busy machine. */
static bool answer_late_but_steadily(void) {
    const int64_t pause_ns = PEER_TIMEOUT_MS / 8 * MS_NS;
    int64_t last_ns = redlock_loop_now_ns(NULL), longest_ns = 0;
    for (uint32_t i = 1; i <= 12; i++) {
        assert_true(peer_send(&peer, "a", i)); /* each is answered after one and a half timeouts */
    }
    for (uint32_t i = 1; i <= 20; i++) {
        turn_for(PEER_TIMEOUT_MS / 8);
        (void)peer_send(&peer, "a", i);
        peer_say(&peer, "+OK\r\n");
        peer_turn(&peer);
        const int64_t now_ns = redlock_loop_now_ns(NULL);
        longest_ns = now_ns - last_ns > longest_ns ? now_ns - last_ns : longest_ns;
        last_ns = now_ns;
    }
    assert_true(peer.answer_count > 0); /* the last ones have timed out */
    return longest_ns > 4 * pause_ns;
}

SPARE_TEST(a_busy_connection_gets_no_spare) {
    struct pollfd came = {.fd = peer.listener, .events = POLLIN};
    connect_it();
    for (int i = 0; i < 20 && answer_late_but_steadily(); i++) {
        (void)teardown(NULL);
        (void)first_setup(NULL);
        came.fd = peer.listener;
        connect_it();
    }
    assert_int_equal(poll(&came, 1, 0), 0);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
}

/* The subscription may be as dead as the connection that it goes with. */
TEST_WITH(the_subscription_is_renewed, subscriber_setup, subscriber_teardown) {
    listen_on_it();
    peer_sends(&peer, "a", 1);
    old = peer_put_aside(&peer);
    peer_until_answers(&peer, 1);
    peer_greet(&peer, "r1", 8, 7);
    assert_is(peer.listening, REDLOCK_LISTENING_NOT);
    assert_contains(peer.why_not, "silent and is replaced");
    greet_second_that_kills();
}

/* What a node has taken over is not shared with a child either, and a fork comes to its end. */
SPARE_TEST(a_forked_child_lets_go_of_the_new_connection) {
    let_spare_take_over();
    const int fd = peer.node->server.connection.stream.fd;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct sockaddr_storage name;
        socklen_t size = sizeof name;
        _exit(getpeername(fd, (struct sockaddr *)&name, &size) != 0 && errno == ENOTCONN ? 0 : 1);
    }
    int status = -1;
    const int64_t over_ns = redlock_loop_now_ns(NULL) + INT64_C(20000000000);
    while (waitpid(child, &status, WNOHANG) == 0 && redlock_loop_now_ns(NULL) < over_ns) {
        turn_for(5);
    }
    (void)kill(child, SIGKILL);
    assert_int_equal(status, 0);
    peer_sends(&peer, "b", 2);
}
