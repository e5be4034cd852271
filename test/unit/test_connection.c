/* A connection without a node: what counts as written (R4), and what may be withdrawn. */
#include "test.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/connection.h"

static struct redlock_connection connection;
static int peer;         /* the other end of its socket */
static unsigned watched; /* events */
static int64_t clock_ns; /* rises with each reading */
static struct {
    size_t count;
    int64_t integers[8], read_ns[8];
} taken;

static int attach(void *context, struct redlock_watch *watch) {
    (void)context;
    (void)watch;
    return 0;
}

static void detach(void *context, struct redlock_watch *watch) {
    (void)context;
    (void)watch;
}

static void watch_fd(void *context, struct redlock_watch *watch, int fd, unsigned events) {
    (void)context;
    assert_ptr_equal(watch, &connection.watch);
    assert_int_equal(fd, events == 0 ? -1 : connection.stream.fd);
    watched = events;
}

static int64_t now_ns(void *context) {
    (void)context;
    return ++clock_ns;
}

/* Notes the integer of the reply and when it was read. The reply 0 ends the connection. */
static void take(struct redlock_connection *from, const struct redlock_reply *reply, int64_t read_ns) {
    assert_ptr_equal(from, &connection);
    assert_is(reply->value.type, REDLOCK_REPLY_INTEGER);
    assert_true(taken.count < sizeof taken.integers / sizeof *taken.integers);
    taken.integers[taken.count] = reply->value.integer;
    taken.read_ns[taken.count++] = read_ns;
    if (reply->value.integer == 0) {
        redlock_connection_reset(&connection);
    }
}

static int setup(UNUSED void **state) {
    static const struct redlock_reactor reactor = {
        .now_ns = now_ns, .attach = attach, .detach = detach, .watch = watch_fd};
    int ends[2];
    taken.count = 0;
    clock_ns = 0;
    memset(&connection, 0, sizeof connection);
    assert_int_equal(redlock_connection_init(&connection, &reactor), 0);
    assert_int_equal(connection.stream.fd, -1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    connection.stream.fd = ends[0];
    peer = ends[1];
    assert_true(redlock_connection_start(&connection));
    return 0;
}

static void assert_peer_hears_the_end(void) {
    char heard[64];
    assert_int_equal(recv(peer, heard, sizeof heard, 0), 0);
}

static int teardown(UNUSED void **state) {
    redlock_connection_free(&connection);
    if (peer >= 0) {
        assert_peer_hears_the_end();
        (void)close(peer);
    }
    return 0;
}

static void queue(uint32_t round, const char *bytes) {
    struct redlock_inflight_entry entry = {.round = round};
    assert_true(redlock_connection_queue(&connection, bytes, strlen(bytes), &entry));
}

static int write_requests(void) {
    return redlock_connection_write(&connection, &connection.outbox);
}

static bool is_written(size_t index) {
    return redlock_connection_has_written(&connection, redlock_inflight_at(&connection.inflight, index));
}

static void assert_heard(const char *bytes) {
    char heard[64];
    assert_int_equal(recv(peer, heard, sizeof heard, 0), strlen(bytes));
    assert_memory_equal(heard, bytes, strlen(bytes));
}

#define FRESH_TEST(name) TEST_WITH(name, setup, teardown)

FRESH_TEST(a_request_is_written_with_its_first_byte) {
    queue(1, "aaaa");
    queue(2, "bbbb");
    queue(3, "cccc");
    assert_false(redlock_connection_owes_reply(&connection));
    assert_false(is_written(0));
    redlock_outbox_wrote(&connection.outbox, 4);
    assert_true(is_written(0));
    assert_false(is_written(1));
    redlock_outbox_wrote(&connection.outbox, 1);
    assert_true(is_written(1));
    assert_false(is_written(2));
    assert_true(redlock_connection_owes_reply(&connection));
}

FRESH_TEST(requests_are_withdrawn_from_the_middle_and_from_the_end) {
    queue(1, "a");
    assert_int_equal(write_requests(), 0);
    assert_heard("a");
    queue(2, "bb");
    queue(3, "ccc");
    queue(4, "dddd");
    redlock_connection_withdraw(&connection, 1, 2);
    assert_int_equal(connection.inflight.count, 2);
    queue(5, "eeeee");
    queue(6, "f");
    redlock_connection_withdraw(&connection, 2, 2);
    queue(7, "gg");
    assert_false(is_written(1));
    assert_int_equal(write_requests(), 0);
    assert_heard("ddddgg");
    assert_true(is_written(2));
    static const uint32_t rounds[] = {1, 4, 7};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(redlock_inflight_at(&connection.inflight, i)->round, rounds[i]);
    }
}

FRESH_TEST(a_full_socket_takes_the_rest_when_it_is_writable) {
    static char large[4 << 20], heard[sizeof large];
    size_t size = 0;
    memset(large, 'x', sizeof large - 1);
    queue(1, large);
    queue(2, "last");
    assert_int_equal(write_requests(), 0);
    assert_true(connection.blocked);
    assert_int_equal(watched, REDLOCK_READABLE | REDLOCK_WRITABLE);
    assert_true(is_written(0));
    assert_false(is_written(1));
    while (size < sizeof large - 1 + 4) {
        ssize_t got = recv(peer, heard, sizeof heard, 0);
        assert_true(got > 0);
        size += (size_t)got;
        redlock_connection_unblock(&connection);
        assert_is(watched, REDLOCK_READABLE);
        assert_int_equal(write_requests(), 0);
    }
    assert_false(connection.blocked);
    assert_true(is_written(1));
}

FRESH_TEST(a_peer_that_is_gone_takes_nothing) {
    int error = -1;
    assert_is(redlock_connection_receive(&connection, take, &error), REDLOCK_RECEIVED);
    (void)close(peer);
    peer = -1;
    queue(1, "a");
    assert_int_equal(write_requests(), EPIPE);
    assert_false(is_written(0));
    assert_is(redlock_connection_receive(&connection, take, &error), REDLOCK_RECEIVED_END);
    assert_int_equal(error, 0);
}

static void say(const char *bytes) {
    assert_int_equal(send(peer, bytes, strlen(bytes), MSG_NOSIGNAL), (ssize_t)strlen(bytes));
}

FRESH_TEST(replies_come_in_order_with_the_time_of_their_read) {
    static const int64_t integers[] = {1, 25, -1, 7}, read_ns[] = {1, 1, 2, 2};
    int error;
    say(":1\r\n:25\r\n:-");
    assert_is(redlock_connection_receive(&connection, take, &error), REDLOCK_RECEIVED);
    assert_int_equal(taken.count, 2);
    say("1\r\n:7\r\n");
    assert_is(redlock_connection_receive(&connection, take, &error), REDLOCK_RECEIVED);
    assert_int_equal(taken.count, 4);
    assert_memory_equal(taken.integers, integers, sizeof integers);
    assert_memory_equal(taken.read_ns, read_ns, sizeof read_ns);
}

FRESH_TEST(no_reply_comes_after_the_end) {
    int error;
    say(":1\r\n:0\r\n:2\r\n");
    assert_is(redlock_connection_receive(&connection, take, &error), REDLOCK_RECEIVED);
    assert_int_equal(taken.count, 2);
    assert_int_equal(connection.stream.fd, -1);
    (void)close(peer);
    peer = -1;
}

FRESH_TEST(what_is_no_reply_ends_it) {
    int error;
    say(":1\r\nHTTP/1.1 400\r\n");
    assert_is(redlock_connection_receive(&connection, take, &error), REDLOCK_RECEIVED_PROTOCOL);
    assert_int_equal(taken.count, 1);
    assert_non_null(redlock_reader_error(connection.reader));
}

FRESH_TEST(the_handshake_ends_with_the_socket_and_requests_do_not) {
    queue(1, "a");
    assert_true(redlock_outbox_append(&connection.hello, "AUTH secret", 11));
    connection.blocked = true;
    redlock_connection_reset(&connection);
    assert_int_equal(watched, 0);
    assert_int_equal(connection.stream.fd, -1);
    assert_false(connection.blocked);
    assert_int_equal(redlock_outbox_size(&connection.hello), 0);
    assert_int_equal(connection.inflight.count, 1);
    assert_int_equal(write_requests(), 0);
    assert_false(is_written(0));
}

FRESH_TEST(a_socket_that_is_given_up_is_closed) {
    redlock_connection_close(&connection);
    assert_int_equal(watched, 0);
    assert_int_equal(connection.stream.fd, -1);
    assert_peer_hears_the_end();
}

FRESH_TEST(what_cannot_be_opened_says_why) {
    const struct sockaddr_un nowhere = {.sun_family = AF_UNIX, .sun_path = "/nowhere/at/all"};
    struct sockaddr_in bound = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof bound;
    redlock_connection_close(&connection);
    assert_int_equal(redlock_connection_open(&connection, (const struct sockaddr *)&nowhere, sizeof nowhere), ENOENT);
    assert_int_equal(connection.stream.fd, -1);
    int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* it does not listen */
    assert_int_equal(bind(silent, (const struct sockaddr *)&bound, size), 0);
    assert_int_equal(getsockname(silent, (struct sockaddr *)&bound, &size), 0);
    assert_int_equal(redlock_connection_open(&connection, (const struct sockaddr *)&bound, size), 0);
    assert_is(watched, REDLOCK_WRITABLE);
    struct pollfd writable = {.fd = connection.stream.fd, .events = POLLOUT};
    assert_int_equal(poll(&writable, 1, 20000), 1);
    assert_int_equal(redlock_stream_connected(connection.stream.fd), ECONNREFUSED);
    (void)close(silent);
}

FRESH_TEST(a_full_socket_is_left_alone) {
    connection.blocked = true;
    queue(1, "a");
    assert_int_equal(write_requests(), 0);
    assert_false(is_written(0));
}

FRESH_TEST(the_bound_refuses_a_request) {
    static char block[(1 << 20) + 1];
    struct redlock_inflight_entry entry = {.round = 65};
    memset(block, 'x', sizeof block - 1);
    for (uint32_t i = 0; i < 64; i++) {
        queue(i, block);
    }
    assert_false(redlock_connection_queue(&connection, "a", 1, &entry));
    assert_int_equal(connection.inflight.count, 64);
}
