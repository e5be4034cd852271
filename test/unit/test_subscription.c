/* A node's second connection, which only subscribes: when it opens, its greeting, what it hears. */
#include "test.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "subscriber.h"

#define FRESH_TEST(name) TEST_WITH(name, subscriber_setup, subscriber_teardown)

FRESH_TEST(it_opens_once_it_is_asked_to_listen) {
    connect_it();
    assert_nobody_comes();
    redlock_node_listen(peer.node, "ch");
    assert_int_equal(peer.told_listening, 0);
    greet_second();
    assert_nobody_comes();
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    assert_int_equal(peer.told_listening, 1);
}

FRESH_TEST(before_the_node_is_ready_it_waits_for_that) {
    redlock_node_listen(peer.node, "ch");
    peer_accept(&peer);
    assert_nobody_comes();
    peer_close(&peer);
    connect_it();
    greet_second();
}

/* What a greeting says of clocks may end a try, whose lease then waits. */
FRESH_TEST(who_is_greeted_may_ask_to_listen) {
    peer.listens_when_greeted = true;
    connect_it();
    greet_second();
    assert_int_equal(peer.told_listening, 1);
}

static void stall(void) {
    peer_sends_each(&peer, "aaa");
    peer_until_state(&peer, REDLOCK_NODE_STALLED);
}

FRESH_TEST(a_stalled_node_listens_too) {
    connect_it();
    stall();
    peer_accept(&second);
    const int spare = peer_put_aside(&second); /* it tries another connection, in vain */
    redlock_node_listen(peer.node, "ch");
    greet_second();
    peer_serve(&peer, PING, "+OK\r\n+OK\r\n+OK\r\n+PONG\r\n");
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer.told_listening, 1);
    (void)close(spare);
}

FRESH_TEST(a_push_is_told) {
    listen_on_it();
    peer_say(&second, A_PUSH A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 2);
    assert_int_equal(peer.push.id, 9);
    assert_int_equal(peer.push.round, 3);
    assert_true(peer.push.seal == 77);
    assert_string_equal(peer.push_token, "tok");
    assert_string_equal(peer.push_key, "key with 5\n\x01");
    /* In parts. */
    peer_say(&second, MESSAGE);
    peer_turn(&second);
    peer_say(&second, "$49\r\n000000000800000000000000000042 2 1763791726 50413");
    peer_turn(&second);
    assert_int_equal(peer.pushes, 2);
    peer_say(&second, "\r\n" A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 3);
    assert_int_equal(peer.told_listening, 1);
}

FRESH_TEST(what_is_no_push_is_ignored_and_warned_of_once) {
    listen_on_it();
    peer_say(
        &second, MESSAGE
        "$5\r\nhello\r\n" MESSAGE "$0\r\n\r\n" MESSAGE ":1\r\n"
        "*3\r\n$7\r\nmessage\r\n$2\r\nhc\r\n$53\r\n000000000900000000000000000077 3 1763791726 50413 t k\r\n" A_PUSH);
    PEER_UNTIL(&second, peer.pushes > 0);
    assert_int_equal(peer.pushes, 1);
    assert_int_equal(count_in_log("a message on the channel ch is not ours"), 1);
    assert_int_equal(peer.told_listening, 1);
}

/* The server refuses once more. Nothing is told: it stands as refused. */
static void refuse_again(const char *error) {
    const int told = peer.told_listening;
    peer_accept(&second);
    peer_serve(&second, HELLO, RUN_ID_R1 "+OK\r\n");
    peer_say(&second, error);
    peer_expect_end(&second, true);
    assert_int_equal(peer.told_listening, told);
    assert_true(peer_info(&peer).queue_refused);
}

/* Such a server keeps no queue, until it permits that. */
static void assert_refused(const char *error, const char *words) {
    connect_it();
    redlock_node_listen(peer.node, "ch");
    peer_accept(&second);
    peer_serve(&second, HELLO, RUN_ID_R1 "+OK\r\n");
    peer_say(&second, error);
    until_told(REDLOCK_LISTENING_REFUSED, words);
    assert_true(peer_info(&peer).queue_refused);
    assert_contains(peer_info(&peer).queue_error, words);
    peer_expect_end(&second, true);
    assert_nobody_comes();
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    assert_false(peer_info(&peer).queue_refused);
    assert_int_equal(peer.told_listening, 1);
    peer_greet(&peer, "r1", 8, 7);
    peer_accept(&second);
    peer_serve(&second, HELLO, RUN_ID_R1 "+OK\r\n");
    peer_say(&second, error);
    until_told(REDLOCK_LISTENING_REFUSED, words);
    assert_int_equal(count_in_log("SUBSCRIBE refused"), 1);
    refuse_again(error);
    refuse_again(error);
    assert_int_equal(count_in_log("SUBSCRIBE refused"), 1);
    assert_nobody_comes(); /* it takes its time */
    greet_second();
    assert_false(peer_info(&peer).queue_refused);
    assert_string_equal(peer_info(&peer).queue_error, "");
}

FRESH_TEST(without_permission_it_is_refused) {
    assert_refused("-NOPERM this user has no permissions to access one of the channels\r\n",
                   "SUBSCRIBE refused (NOPERM this user");
}

FRESH_TEST(without_the_command_it_is_refused) {
    assert_refused("-ERR unknown command 'SUBSCRIBE', with args beginning with: 'ch'\r\n",
                   "SUBSCRIBE refused (ERR unknown command 'SUBSCRIBE')");
}

static int tries; /* that sent SUBSCRIBE in vain: the third is told */

static void begin_to_listen(void) {
    redlock_node_listen(peer.node, "ch");
    tries = 0;
}

/* The server says this instead of its whole greeting; then it has another try. */
static void assert_tried_again(const char *bytes, const char *words, int logged) {
    const int told = peer.told_listening;
    peer_accept(&second);
    peer_serve(&second, HELLO, bytes);
    peer_expect_end(&second, true);
    tries++;
    assert_int_equal(peer.told_listening, told + (tries == 3));
    assert_true(tries < 3 || peer.listening == REDLOCK_LISTENING_REFUSED);
    assert_int_equal(count_in_log(words), logged);
    assert_int_equal(peer_info(&peer).queue_refused, tries >= 3);
}

FRESH_TEST(another_server_is_not_listened_to) {
    connect_it();
    begin_to_listen();
    assert_tried_again("$11\r\nrun_id:r2\r\n\r\n+OK\r\n" SUBSCRIBED A_PUSH, "this is another server", 1);
    assert_tried_again("$11\r\nrun_id:r2\r\n\r\n+OK\r\n" SUBSCRIBED A_PUSH, "this is another server", 1);
    assert_int_equal(peer.pushes, 0);
    assert_tried_again("$0\r\n\r\n", "this is another server", 1); /* logged once */
    assert_tried_again("-NOPERM no INFO\r\n", "subscription: INFO failed: NOPERM no INFO", 1);
    greet_second();
}

FRESH_TEST(where_info_is_refused_no_server_is_known) {
    peer_accept(&peer);
    peer_ping(&peer);
    peer_serve(&peer, "*1\r\n$4\r\nINFO\r\n", "-NOPERM no INFO\r\n-NOPERM no TIME\r\n-NOPERM no ID\r\n");
    peer_introduced(&peer);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    begin_to_listen();
    assert_tried_again(RUN_ID_R1, "this is another server", 1);
    peer_accept(&second);
    peer_serve(&second, HELLO, "-NOPERM no INFO\r\n-NOPERM no ID\r\n-NOPERM no SETNAME\r\n" SUBSCRIBED);
    until_told(REDLOCK_LISTENING, "");
}

FRESH_TEST(a_bad_greeting_is_tried_again) {
    connect_it();
    begin_to_listen();
    assert_tried_again("+OK\r\n", "out of protocol", 1);
    assert_tried_again("-ERR max number of clients reached\r\n", "INFO failed: ERR max number of clients", 1);
    assert_tried_again(RUN_ID_R1 ":1\r\n", "out of protocol", 2);
    assert_tried_again("$11\r\nrun_id:r1\r\n\r\n+OK\r\n", "out of protocol", 2);
    assert_tried_again(RUN_ID_R1 "+OK\r\n-ERR later\r\n", "SUBSCRIBE failed: ERR later", 1);
    assert_tried_again(RUN_ID_R1 "+OK\r\n" A_PUSH, "out of protocol", 3);
    assert_tried_again(RUN_ID_R1 "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$2\r\nhc\r\n:1\r\n", "out of protocol", 3);
    greet_second();
}

/* Some proxies do that at SUBSCRIBE: behind them, nodes keep no queue. */
FRESH_TEST(closed_in_each_greeting_it_is_as_refused) {
    connect_it();
    begin_to_listen();
    for (int i = 0; i < 5; i++) {
        peer_accept(&second);
        assert_int_equal(peer.told_listening, i >= 3);
        peer_expect(&second, HELLO);
        peer_close(&second);
    }
    assert_is(peer.listening, REDLOCK_LISTENING_REFUSED);
    assert_contains(peer.why_not, "connection");
    assert_int_equal(count_in_log("subscription: connection"), 1);
    assert_is(peer_info(&peer).state, REDLOCK_NODE_READY);
    greet_second(); /* this lifts it */
}

FRESH_TEST(silent_in_its_greeting_it_is_tried_again) {
    connect_it();
    begin_to_listen();
    assert_tried_again(RUN_ID_R1 "+OK\r\n", "connected, but not subscribed within 2000 ms", 1);
    greet_second();
}

/* The host drops the SYN while the backlog is full. */
FRESH_TEST(a_connect_that_hangs_is_tried_again) {
    struct sockaddr_in server = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(peer.port)};
    connect_it();
    assert_int_equal(listen(peer.listener, 0), 0);
    const int filler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(filler, (const struct sockaddr *)&server, sizeof server), 0);
    redlock_node_listen(peer.node, "ch");
    PEER_UNTIL(&peer, count_in_log("subscription: no connection within 2000 ms") > 0);
    (void)close(filler);
    (void)close(accept4(peer.listener, NULL, NULL, SOCK_CLOEXEC));
    assert_int_equal(listen(peer.listener, 16), 0);
    greet_second();
    assert_int_equal(peer.told_listening, 1);
}

FRESH_TEST(without_a_descriptor_it_is_tried_again) {
    struct rlimit before, none_free;
    connect_it();
    const int free_now = dup(peer.listener);
    assert_int_equal(close(free_now), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none_free = before;
    none_free.rlim_cur = (rlim_t)free_now;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_free), 0);
    redlock_node_listen(peer.node, "ch");
    /* glibc and musl call it differently */
    const char *reason = strerror(EMFILE);
    char words[64];
    (void)snprintf(words, sizeof words, "subscription: %c%s", tolower((unsigned char)*reason), reason + 1);
    PEER_UNTIL(&peer, count_in_log(words) > 0);
    assert_int_equal(peer.told_listening, 0); /* one failure is none */
    until_told(REDLOCK_LISTENING_REFUSED, "3 tries in a row gave no second connection");
    assert_contains(peer.why_not, words + sizeof "subscription: " - 1);
    assert_contains(peer.why_not, "limits of open files");
    assert_true(peer_info(&peer).queue_refused);
    assert_string_equal(peer_info(&peer).queue_error, words + sizeof "subscription: " - 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    greet_second(); /* this lifts it */
    assert_false(peer_info(&peer).queue_refused);
    assert_string_equal(peer_info(&peer).queue_error, "");
}

TEST_WITH(the_password_comes_first_and_is_never_told, subscriber_setup_with_password, subscriber_teardown) {
    static const char auth[] = "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$6\r\ngeheim\r\n" HELLO;
    peer_accept(&peer);
    peer_expect(&peer, "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$6\r\ngeheim\r\n");
    peer_say(&peer, "+OK\r\n$11\r\nrun_id:r1\r\n\r\n-NOPERM no TIME\r\n:7\r\n");
    peer_introduced(&peer);
    redlock_node_listen(peer.node, "ch");
    peer_accept(&second);
    peer_serve(&second, auth, "-WRONGPASS not geheim\r\n");
    peer_expect_end(&second, true);
    assert_int_equal(count_in_log("subscription: AUTH failed: an error that quotes the password"), 1);
    assert_int_equal(count_in_log("geheim"), 0);
    peer_accept(&second);
    peer_serve(&second, auth, "+OK\r\n" RUN_ID_R1 "+OK\r\n" SUBSCRIBED);
    until_told(REDLOCK_LISTENING, "");
}
