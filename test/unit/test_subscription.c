/* A node's second connection, which only subscribes: when it opens, what it hears, how it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

#define INFO   "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
#define NAME   "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$6\r\nme-sub\r\n"
#define LISTEN "*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n"
#define HELLO  INFO NAME LISTEN

#define RUN_ID_R1   "$11\r\nrun_id:r1\r\n\r\n"
#define SUBSCRIBED  "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n"
#define MESSAGE     "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n"
#define A_PUSH      MESSAGE "$37\r\n9 3 1763791726 50413 tok key with 5\n\x01\r\n"
#define PING        "*1\r\n$4\r\nPING\r\n"
#define PONG        "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
#define REFUSED_LOG "SUBSCRIBE refused"

static struct peer peer;
static struct peer second; /* the server's end of the second connection; the rest is unused */

static struct { /* of malloc(), calloc(), realloc() */
    bool armed;
    long count, fails;
} memory;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool fails_now(void) {
    return memory.armed && ++memory.count == memory.fails;
}

void *__wrap_malloc(size_t size) {
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size) {
    return fails_now() ? NULL : __real_realloc(old, size);
}

static void share(void) {
    memset(&second, 0, sizeof second);
    second.ev = peer.ev;
    second.listener = peer.listener;
    second.connection = -1;
}

static int setup(void **state) {
    (void)state;
    peer_start(&peer);
    share();
    return 0;
}

static int setup_with_password(void **state) {
    (void)state;
    peer_start_with(&peer, "bob:geheim@");
    share();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    peer_stop(&peer);
    peer_close(&second);
    return 0;
}

static void connect_it(void) {
    peer_greet(&peer, "r1", 7, 0);
    peer_until_state(&peer, REDLOCK_NODE_READY);
}

static void greet_second(void) {
    const int before = peer.told_listening;
    peer_accept(&second);
    peer_expect(&second, HELLO);
    peer_say(&second, RUN_ID_R1 "+OK\r\n" SUBSCRIBED);
    PEER_UNTIL(&second, peer.told_listening > before);
    assert_int_equal(peer.told_listening, before + 1);
    assert_int_equal(peer.listening, REDLOCK_LISTENING);
    assert_string_equal(peer.why_not, "");
}

static void listen_on_it(void) {
    connect_it();
    redlock_node_listen(peer.node, "ch");
    greet_second();
}

/* Until it is told once more. */
static void until_told(enum redlock_listening listening, const char *words) {
    const int before = peer.told_listening;
    PEER_UNTIL(&second, peer.told_listening > before);
    assert_int_equal(peer.told_listening, before + 1);
    assert_int_equal(peer.listening, listening);
    if (strstr(peer.why_not, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", peer.why_not, words);
    }
}

static int count_in_log(const char *words) {
    int count = 0;
    for (const char *at = peer.log; (at = strstr(at, words)) != NULL; at++) {
        count++;
    }
    return count;
}

/* Nobody connects, for longer than the first delays. */
static void assert_nobody_comes(void) {
    for (int64_t end_ns = redlock_loop_now_ns(NULL) + INT64_C(60000000); redlock_loop_now_ns(NULL) < end_ns;) {
        peer_turn(&peer);
        assert_int_equal(accept4(peer.listener, NULL, NULL, SOCK_CLOEXEC), -1);
    }
}

static void it_opens_once_it_is_asked_to_listen(void **state) {
    (void)state;
    connect_it();
    assert_nobody_comes();
    redlock_node_listen(peer.node, "ch");
    assert_int_equal(peer.told_listening, 0);
    greet_second();
    assert_nobody_comes();
    assert_int_equal(peer_info(&peer).state, REDLOCK_NODE_READY);
    assert_int_equal(peer.told_listening, 1);
}

static void before_the_node_is_ready_it_waits_for_that(void **state) {
    (void)state;
    redlock_node_listen(peer.node, "ch");
    peer_accept(&peer);
    assert_nobody_comes();
    peer_close(&peer);
    connect_it();
    greet_second();
}

static void stall(void) {
    for (uint32_t i = 1; i <= 3; i++) {
        assert_true(peer_send(&peer, "a", i));
    }
    peer_expect(&peer, "aaa");
    peer_until_state(&peer, REDLOCK_NODE_STALLED);
}

static void a_stalled_node_listens_too(void **state) {
    (void)state;
    connect_it();
    stall();
    redlock_node_listen(peer.node, "ch");
    greet_second();
    peer_expect(&peer, PING);
    peer_say(&peer, "+OK\r\n+OK\r\n+OK\r\n+PONG\r\n");
    peer_until_state(&peer, REDLOCK_NODE_READY);
    assert_int_equal(peer.told_listening, 1);
}

static void a_push_is_told(void **state) {
    (void)state;
    listen_on_it();
    peer_say(&second, A_PUSH A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 2);
    assert_int_equal(peer.push.id, 9);
    assert_int_equal(peer.push.round, 3);
    assert_true(peer.push.server_us == PEER_SERVER_US);
    assert_string_equal(peer.push_token, "tok");
    assert_string_equal(peer.push_key, "key with 5\n\x01");
    /* In parts. */
    peer_say(&second, MESSAGE);
    peer_turn(&second);
    peer_say(&second, "$20\r\n8 2 1763791726 50413");
    peer_turn(&second);
    assert_int_equal(peer.pushes, 2);
    peer_say(&second, "\r\n" A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 3);
    assert_int_equal(peer.told_listening, 1);
}

static void what_is_no_push_is_ignored_and_warned_of_once(void **state) {
    (void)state;
    listen_on_it();
    peer_say(&second, MESSAGE "$5\r\nhello\r\n" MESSAGE "$0\r\n\r\n" MESSAGE ":1\r\n"
                              "*3\r\n$7\r\nmessage\r\n$2\r\nhc\r\n$24\r\n9 3 1763791726 50413 t k\r\n" A_PUSH);
    PEER_UNTIL(&second, peer.pushes > 0);
    assert_int_equal(peer.pushes, 1);
    assert_int_equal(count_in_log("a message on the channel ch is not ours"), 1);
    assert_int_equal(peer.told_listening, 1);
}

/* Such a server keeps no queue, as long as this connection lives. */
static void assert_refused(const char *error, const char *words) {
    connect_it();
    redlock_node_listen(peer.node, "ch");
    peer_accept(&second);
    peer_expect(&second, HELLO);
    peer_say(&second, RUN_ID_R1 "+OK\r\n");
    peer_say(&second, error);
    until_told(REDLOCK_LISTENING_REFUSED, words);
    peer_expect_end(&second, true);
    assert_nobody_comes();
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    assert_int_equal(peer.told_listening, 1);
    peer_greet(&peer, "r1", 8, 7);
    peer_accept(&second);
    peer_expect(&second, HELLO);
    peer_say(&second, RUN_ID_R1 "+OK\r\n");
    peer_say(&second, error);
    until_told(REDLOCK_LISTENING_REFUSED, words);
    assert_int_equal(count_in_log(REFUSED_LOG), 1);
    peer_close(&peer);
    peer_until_state(&peer, REDLOCK_NODE_WAITING);
    peer_greet(&peer, "r1", 9, 8);
    greet_second();
}

static void without_permission_it_is_refused(void **state) {
    (void)state;
    assert_refused("-NOPERM this user has no permissions to access one of the channels\r\n",
                   "SUBSCRIBE refused (NOPERM this user");
}

static void without_the_command_it_is_refused(void **state) {
    (void)state;
    assert_refused("-ERR unknown command 'SUBSCRIBE', with args beginning with: 'ch'\r\n",
                   "SUBSCRIBE refused (ERR unknown command 'SUBSCRIBE')");
}

/* The server says this instead of its whole greeting; then it has another try. */
static void assert_tried_again(const char *bytes, const char *words, int logged) {
    const int told = peer.told_listening;
    peer_accept(&second);
    peer_expect(&second, HELLO);
    peer_say(&second, bytes);
    peer_expect_end(&second, true);
    assert_int_equal(peer.told_listening, told);
    assert_int_equal(count_in_log(words), logged);
}

static void another_server_is_not_listened_to(void **state) {
    (void)state;
    connect_it();
    redlock_node_listen(peer.node, "ch");
    assert_tried_again("$11\r\nrun_id:r2\r\n\r\n+OK\r\n" SUBSCRIBED A_PUSH, "this is another server", 1);
    assert_tried_again("$11\r\nrun_id:r2\r\n\r\n+OK\r\n" SUBSCRIBED A_PUSH, "this is another server", 1);
    assert_int_equal(peer.pushes, 0);
    assert_tried_again("$0\r\n\r\n", "this is another server", 1); /* logged once */
    assert_tried_again("-NOPERM no INFO\r\n", "subscription: INFO failed: NOPERM no INFO", 1);
    greet_second();
}

static void where_info_is_refused_no_server_is_known(void **state) {
    (void)state;
    peer_accept(&peer);
    peer_expect(&peer, "*1\r\n$4\r\nINFO\r\n");
    peer_say(&peer, "-NOPERM no INFO\r\n-NOPERM no TIME\r\n-NOPERM no ID\r\n");
    peer_introduced(&peer);
    peer_until_state(&peer, REDLOCK_NODE_READY);
    redlock_node_listen(peer.node, "ch");
    assert_tried_again(RUN_ID_R1, "this is another server", 1);
    peer_accept(&second);
    peer_expect(&second, HELLO);
    peer_say(&second, "-NOPERM no INFO\r\n-NOPERM no SETNAME\r\n" SUBSCRIBED);
    until_told(REDLOCK_LISTENING, "");
}

static void a_bad_greeting_is_tried_again(void **state) {
    (void)state;
    connect_it();
    redlock_node_listen(peer.node, "ch");
    assert_tried_again("+OK\r\n", "out of protocol", 1);
    assert_tried_again("-ERR max number of clients reached\r\n", "INFO failed: ERR max number of clients", 1);
    assert_tried_again(RUN_ID_R1 ":1\r\n", "out of protocol", 2);
    assert_tried_again(RUN_ID_R1 "+OK\r\n-ERR later\r\n", "SUBSCRIBE failed: ERR later", 1);
    assert_tried_again(RUN_ID_R1 "+OK\r\n" A_PUSH, "out of protocol", 3);
    assert_tried_again(RUN_ID_R1 "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$2\r\nhc\r\n:1\r\n", "out of protocol", 3);
    greet_second();
}

static void closed_in_its_greeting_it_is_tried_again(void **state) {
    (void)state;
    connect_it();
    redlock_node_listen(peer.node, "ch");
    peer_accept(&second);
    peer_expect(&second, HELLO);
    peer_close(&second);
    peer_accept(&second);
    peer_expect(&second, HELLO);
    peer_close(&second);
    greet_second();
    assert_int_equal(peer.told_listening, 1);
    assert_int_equal(count_in_log("subscription: connection"), 1);
}

static void silent_in_its_greeting_it_is_tried_again(void **state) {
    (void)state;
    connect_it();
    redlock_node_listen(peer.node, "ch");
    assert_tried_again(RUN_ID_R1 "+OK\r\n", "connected, but not subscribed within 2000 ms", 1);
    greet_second();
}

static void refused_by_the_host_it_is_tried_again(void **state) {
    (void)state;
    connect_it();
    (void)close(peer.listener);
    redlock_node_listen(peer.node, "ch");
    PEER_UNTIL(&peer, count_in_log("subscription: connection refused") > 0);
    peer_start_listening(&peer);
    second.listener = peer.listener;
    greet_second();
    assert_int_equal(count_in_log("subscription: connection refused"), 1);
    assert_int_equal(peer_info(&peer).state, REDLOCK_NODE_READY);
}

static void closed_by_the_server_it_comes_back(void **state) {
    (void)state;
    listen_on_it();
    for (int i = 0; i < 3; i++) {
        peer_close(&second);
        until_told(REDLOCK_LISTENING_NOT, "connection closed by the node");
        greet_second();
        peer_say(&second, A_PUSH);
        PEER_UNTIL(&second, peer.pushes == i + 1);
    }
    assert_int_equal(peer.became_unready, 0);
}

/* R20: what a subscriber cannot hear. */
static void out_of_protocol_it_ends_and_comes_back(void **state) {
    static const char *const lies[] = {
        "+OK\r\n",
        ":1\r\n",
        "?\r\n",
        "$-1\r\n",
        PONG, /* to no PING */
        "-ERR no\r\n",
        SUBSCRIBED,
        "*3\r\n$11\r\nunsubscribe\r\n$2\r\nch\r\n:0\r\n",
        "*2\r\n$7\r\nmessage\r\n$2\r\nch\r\n",
        "*4\r\n$8\r\npmessage\r\n$1\r\nc\r\n$2\r\nch\r\n$1\r\na\r\n",
        "*0\r\n",
    };
    (void)state;
    listen_on_it();
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        peer_say(&second, lies[i]);
        until_told(REDLOCK_LISTENING_NOT, "out of protocol");
        greet_second();
    }
    assert_int_equal(peer.became_unready, 0);
}

static void it_ends_with_the_first_connection(void **state) {
    (void)state;
    listen_on_it();
    peer_close(&peer);
    until_told(REDLOCK_LISTENING_NOT, "connection closed by the node");
    peer_expect_end(&second, true);
    peer_greet(&peer, "r1", 8, 7);
    greet_second();
    /* In its greeting nobody is told. */
    peer_close(&second);
    until_told(REDLOCK_LISTENING_NOT, "");
    peer_accept(&second);
    peer_expect(&second, HELLO);
    const int told = peer.told_listening;
    peer_close(&peer);
    peer_expect_end(&second, true);
    assert_int_equal(peer.told_listening, told);
    peer_greet(&peer, "r1", 9, 8);
    greet_second();
}

static void the_password_comes_first_and_is_never_told(void **state) {
    static const char auth[] = "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$6\r\ngeheim\r\n" HELLO;
    (void)state;
    peer_accept(&peer);
    peer_expect(&peer, "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$6\r\ngeheim\r\n");
    peer_say(&peer, "+OK\r\n" RUN_ID_R1 "-NOPERM no TIME\r\n:7\r\n");
    peer_introduced(&peer);
    redlock_node_listen(peer.node, "ch");
    peer_accept(&second);
    peer_expect(&second, auth);
    peer_say(&second, "-WRONGPASS not geheim\r\n");
    peer_expect_end(&second, true);
    assert_int_equal(count_in_log("subscription: AUTH failed: an error that quotes the password"), 1);
    assert_int_equal(count_in_log("geheim"), 0);
    peer_accept(&second);
    peer_expect(&second, auth);
    peer_say(&second, "+OK\r\n" RUN_ID_R1 "+OK\r\n" SUBSCRIBED);
    until_told(REDLOCK_LISTENING, "");
}

/* The server is alive, but this connection is dead, and nobody publishes. */
static void ping_finds_a_dead_connection(void **state) {
    (void)state;
    listen_on_it();
    int64_t begin_ns = redlock_loop_now_ns(NULL);
    peer_expect(&second, PING);
    assert_true(redlock_loop_now_ns(NULL) - begin_ns >= INT64_C(4900000000));
    peer_say(&second, A_PUSH PONG);
    PEER_UNTIL(&second, peer.pushes == 1);
    begin_ns = redlock_loop_now_ns(NULL);
    peer_expect(&second, PING);
    assert_true(redlock_loop_now_ns(NULL) - begin_ns >= INT64_C(4900000000));
    begin_ns = redlock_loop_now_ns(NULL);
    peer_say(&second, A_PUSH); /* is no answer */
    until_told(REDLOCK_LISTENING_NOT, "no answer to PING within 5000 ms");
    assert_true(redlock_loop_now_ns(NULL) - begin_ns >= INT64_C(4900000000));
    assert_int_equal(peer.pushes, 2);
    peer_expect_end(&second, true);
    greet_second();
    assert_int_equal(peer.became_unready, 0);
}

/* Answers whatever connection comes, until the subscription stands. */
static void serve_until_it_listens(void) {
    while (peer.listening != REDLOCK_LISTENING) {
        peer_accept(&second);
        PEER_UNTIL(&second, second.heard_size >= sizeof HELLO - 1 || second.heard_end || second.heard_reset);
        if (second.heard_size >= sizeof HELLO - 1) {
            peer_say(&second, RUN_ID_R1 "+OK\r\n" SUBSCRIBED);
            PEER_UNTIL(&second, peer.listening == REDLOCK_LISTENING || second.heard_end || second.heard_reset);
        }
    }
}

static void without_memory_it_is_tried_again(void **state) {
    (void)state;
    listen_on_it();
    bool failed = true;
    for (memory.fails = 1; failed; memory.fails++) {
        peer_close(&second);
        until_told(REDLOCK_LISTENING_NOT, "connection closed");
        memory.count = 0;
        memory.armed = true;
        serve_until_it_listens();
        memory.armed = false;
        failed = memory.count >= memory.fails;
        peer_say(&second, A_PUSH);
        PEER_UNTIL(&second, peer.pushes == memory.fails);
    }
    assert_true(memory.fails > 3);
    assert_true(count_in_log("no memory for a subscription") > 0);
    assert_int_equal(peer.became_unready, 0);
}

/* A plain close: it sends no RST. */
static void its_deletion_closes_it(void **state) {
    (void)state;
    listen_on_it();
    redlock_node_delete(peer.node, false);
    peer.node = NULL;
    peer_expect_end(&second, false);
    assert_false(second.heard_reset);
    assert_int_equal(peer.told_listening, 1);
}

static void its_deletion_while_it_greets_tells_nobody(void **state) {
    (void)state;
    connect_it();
    redlock_node_listen(peer.node, "ch");
    peer_accept(&second);
    redlock_node_delete(peer.node, false);
    peer.node = NULL;
    PEER_UNTIL(&second, second.heard_end);
    assert_int_equal(peer.told_listening, 0);
}

static void a_forked_child_only_closes_it(void **state) {
    int status = -1;
    (void)state;
    listen_on_it();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        redlock_node_delete(peer.node, true);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    peer_say(&second, A_PUSH);
    PEER_UNTIL(&second, peer.pushes == 1);
    assert_false(second.heard_end || second.heard_reset);
    assert_int_equal(second.heard_size, 0);
    assert_int_equal(peer.told_listening, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(it_opens_once_it_is_asked_to_listen),
        TEST(before_the_node_is_ready_it_waits_for_that),
        TEST(a_stalled_node_listens_too),
        TEST(a_push_is_told),
        TEST(what_is_no_push_is_ignored_and_warned_of_once),
        TEST(without_permission_it_is_refused),
        TEST(without_the_command_it_is_refused),
        TEST(another_server_is_not_listened_to),
        TEST(where_info_is_refused_no_server_is_known),
        TEST(a_bad_greeting_is_tried_again),
        TEST(closed_in_its_greeting_it_is_tried_again),
        TEST(silent_in_its_greeting_it_is_tried_again),
        TEST(refused_by_the_host_it_is_tried_again),
        TEST(closed_by_the_server_it_comes_back),
        TEST(out_of_protocol_it_ends_and_comes_back),
        TEST(it_ends_with_the_first_connection),
        cmocka_unit_test_setup_teardown(the_password_comes_first_and_is_never_told, setup_with_password, teardown),
        TEST(ping_finds_a_dead_connection),
        TEST(without_memory_it_is_tried_again),
        TEST(its_deletion_closes_it),
        TEST(its_deletion_while_it_greets_tells_nobody),
        TEST(a_forked_child_only_closes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
