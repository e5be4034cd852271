/* A connection with TLS, without a node: what counts as written (R4), and how much is encrypted
 * ahead. */
#include "test.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "certificates.h"
#include "scarce_memory.h"
#include "server/connection.h"
#include "support.h"

#define REQUEST_SIZE 1024
#define REPLIES      20 /* more than one turn reads */

static char folder[] = "/tmp/redlock-test-tls-XXXXXX";
static struct redlock_tls_context *context;
static struct redlock_connection connection;
static SSL_CTX *server;
static SSL *peer; /* the other end of its socket, which it owns */
static int flushes, replies;

static void *openssl_malloc(size_t size, const char *file, int line) {
    (void)file, (void)line;
    return __wrap_malloc(size);
}

static void *openssl_realloc(void *old, size_t size, const char *file, int line) {
    (void)file, (void)line;
    return __wrap_realloc(old, size);
}

static void openssl_free(void *old, const char *file, int line) {
    (void)file, (void)line;
    free(old);
}

static int attach(void *ctx, struct redlock_watch *watch) {
    (void)ctx, (void)watch;
    return 0;
}

static void detach(void *ctx, struct redlock_watch *watch) {
    (void)ctx, (void)watch;
}

static void watch_fd(void *ctx, struct redlock_watch *watch, int fd, unsigned events) {
    (void)ctx, (void)watch, (void)fd, (void)events;
}

static int64_t now_ns(void *ctx) {
    (void)ctx;
    return 1;
}

static void flush_soon(void *ctx, struct redlock_watch *watch) {
    (void)ctx, (void)watch;
    flushes++;
}

static void take(struct redlock_connection *from, const struct redlock_reply *reply, int64_t read_ns) {
    (void)from, (void)read_ns;
    assert_is(reply->value.type, REDLOCK_REPLY_INTEGER);
    assert_int_equal(reply->value.integer, replies);
    replies++;
}

/* Returns REDLOCK_OK or an error code. */
static int make_context(struct redlock_tls_context **made) {
    char path[128], error[256] = "";
    (void)snprintf(path, sizeof path, "%s/node.crt", folder);
    const redlock_tls_options options = {
        .ca_file = path, .server_name = "node.example.", .min_version = REDLOCK_TLS_1_2, .verify = true};
    const int code = redlock_tls_context_new(&options, made, &(struct redlock_error_text){error, sizeof error});
    assert_int_equal(code == REDLOCK_OK, error[0] == '\0');
    return code;
}

static int start(UNUSED void **state) {
    char path[128];
    assert_non_null(mkdtemp(folder));
    support_remove_tree_at_death(folder);
    certificate_make(folder, "node", NULL,
                     &(struct certificate_options){.authority = true, .alternatives = "DNS:node.example"});
    assert_is(make_context(&context), REDLOCK_OK);
    (void)snprintf(path, sizeof path, "%s/node.crt", folder);
    server = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate_file(server, path, SSL_FILETYPE_PEM), 1);
    (void)snprintf(path, sizeof path, "%s/node.key", folder);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(server, path, SSL_FILETYPE_PEM), 1);
    return 0;
}

static int end(UNUSED void **state) {
    redlock_tls_context_free(context);
    SSL_CTX_free(server);
    support_remove_tree(folder);
    return 0;
}

/* A socket of the connection, and its peer. */
static void open_socket(void) {
    static const struct redlock_reactor reactor = {
        .now_ns = now_ns, .attach = attach, .detach = detach, .watch = watch_fd, .flush_soon = flush_soon};
    const int small = 4096;
    int ends[2];
    flushes = replies = 0;
    memset(&connection, 0, sizeof connection);
    assert_int_equal(redlock_connection_init(&connection, &reactor), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    connection.stream.fd = ends[0];
    peer = SSL_new(server);
    assert_int_equal(SSL_set_fd(peer, ends[1]), 1);
    SSL_set_accept_state(peer);
}

static enum redlock_tls_progress secure(int *error) {
    enum redlock_tls_progress securing = REDLOCK_TLS_WAITING;
    while (securing == REDLOCK_TLS_WAITING || (securing == REDLOCK_TLS_SECURED && !SSL_is_init_finished(peer))) {
        if (securing == REDLOCK_TLS_WAITING) {
            memory.armed = memory.fails != 0;
            securing = redlock_connection_secure(&connection, error);
            memory.armed = false;
        }
        (void)SSL_do_handshake(peer);
    }
    return securing;
}

static int setup(UNUSED void **state) {
    int error;
    open_socket();
    assert_true(redlock_connection_begin_tls(&connection, context, "127.0.0.1"));
    assert_is(secure(&error), REDLOCK_TLS_SECURED);
    assert_true(redlock_connection_start(&connection));
    assert_false(connection.blocked);
    return 0;
}

static int setup_1_2(void **state) {
    assert_int_equal(SSL_CTX_set_max_proto_version(server, TLS1_2_VERSION), 1);
    const int result = setup(state);
    assert_int_equal(SSL_CTX_set_max_proto_version(server, 0), 1);
    return result;
}

static void close_socket(void) {
    redlock_connection_free(&connection);
    (void)close(SSL_get_fd(peer));
    SSL_free(peer);
}

static int teardown(UNUSED void **state) {
    close_socket();
    return 0;
}

static void queue(size_t count) {
    char bytes[REQUEST_SIZE];
    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 0; i < count; i++) {
        struct redlock_inflight_entry entry = {.round = 1};
        assert_true(redlock_connection_queue(&connection, bytes, sizeof bytes, &entry));
    }
}

static size_t count_written(void) {
    size_t count = 0;
    while (count < connection.inflight.count &&
           redlock_connection_has_written(&connection, redlock_inflight_at(&connection.inflight, count))) {
        count++;
    }
    return count;
}

static size_t hear(void) {
    char bytes[REDLOCK_TLS_RECORD_MAX];
    size_t heard = 0, got;
    while (SSL_read_ex(peer, bytes, sizeof bytes, &got) == 1) {
        heard += got;
    }
    assert_int_equal(SSL_get_error(peer, 0), SSL_ERROR_WANT_READ);
    return heard;
}

static int before(UNUSED void **state) {
    assert(CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) == 1);
    return start(state);
}

TESTS_WITH(before, end);
#define FRESH_TEST(name) TEST_WITH(name, setup, teardown)

/* The socket takes less than a record: no second one is made, so its requests can be withdrawn. */
FRESH_TEST(one_record_is_made_ahead) {
    queue(64);
    assert_int_equal(redlock_connection_write(&connection, &connection.outbox), 0);
    assert_true(connection.blocked);
    assert_int_equal(count_written(), REDLOCK_TLS_RECORD_MAX / REQUEST_SIZE);
    assert_true(redlock_outbox_size(&connection.tls->wire) > 0);
    assert_int_equal(hear(), 0); /* not even a whole record is there */
    redlock_connection_withdraw(&connection, 16, 46);
    size_t heard = 0;
    while (connection.blocked) {
        redlock_connection_unblock(&connection);
        assert_int_equal(redlock_connection_write(&connection, &connection.outbox), 0);
        heard += hear();
    }
    assert_int_equal(heard + hear(), 18 * REQUEST_SIZE);
    assert_int_equal(count_written(), 18);
    assert_int_equal(redlock_outbox_size(&connection.tls->wire), 0);
}

static void say_replies(int count) {
    char text[16];
    size_t put;
    for (int i = 0; i < count; i++) {
        (void)snprintf(text, sizeof text, ":%d\r\n", i);
        if (SSL_write_ex(peer, text, strlen(text), &put) != 1) {
            fail_msg("the server cannot write: %s", ERR_error_string(ERR_get_error(), NULL));
        }
    }
}

static void receive(enum redlock_received expected, int expected_error) {
    int error = -1;
    assert_int_equal(redlock_connection_receive(&connection, take, &error), expected);
    if (expected == REDLOCK_RECEIVED_END) {
        assert_int_equal(error, expected_error);
    }
}

/* All records came with one read of the socket: no event will tell of the rest. */
FRESH_TEST(what_a_turn_leaves_is_announced) {
    say_replies(REPLIES);
    receive(REDLOCK_RECEIVED_UNREAD, 0);
    assert_int_equal(replies, 16);
    assert_true(connection.unread);
    receive(REDLOCK_RECEIVED, 0);
    assert_int_equal(replies, REPLIES);
    assert_false(connection.unread);
    receive(REDLOCK_RECEIVED, 0);
    assert_int_equal(replies, REPLIES);
    assert_int_equal(flushes, 0);
}

/* The half of a record is no reason for another turn. */
FRESH_TEST(half_a_record_waits_for_an_event) {
    char bytes[512];
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    const int socket = SSL_get_fd(peer);
    assert_int_equal(SSL_set_wfd(peer, ends[0]), 1);
    say_replies(1);
    const ssize_t size = recv(ends[1], bytes, sizeof bytes, 0);
    assert_true(size > 10);
    for (ssize_t i = 0; i < size; i++) {
        receive(REDLOCK_RECEIVED, 0);
        assert_false(connection.unread);
        assert_int_equal(replies, 0);
        assert_int_equal(send(socket, bytes + i, 1, 0), 1);
    }
    receive(REDLOCK_RECEIVED, 0);
    assert_int_equal(replies, 1);
    assert_false(connection.unread);
    assert_int_equal(SSL_set_fd(peer, socket), 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

FRESH_TEST(a_change_of_keys_is_followed) {
    assert_int_equal(SSL_key_update(peer, SSL_KEY_UPDATE_REQUESTED), 1);
    say_replies(1);
    receive(REDLOCK_RECEIVED, 0);
    assert_int_equal(replies, 1);
    queue(1);
    assert_int_equal(redlock_connection_write(&connection, &connection.outbox), 0);
    assert_int_equal(hear(), REQUEST_SIZE);
}

/* The refusal is written although nothing is queued. */
TEST_WITH(a_renegotiation_is_refused, setup_1_2, teardown) {
    assert_int_equal(SSL_version(peer), TLS1_2_VERSION);
    assert_int_equal(SSL_renegotiate(peer), 1);
    (void)SSL_do_handshake(peer); /* asks for it */
    receive(REDLOCK_RECEIVED, 0);
    assert_int_equal(flushes, 1);
    assert_true(redlock_outbox_size(&connection.tls->wire) > 0);
    assert_int_equal(redlock_connection_write(&connection, &connection.outbox), 0);
    assert_int_equal(redlock_outbox_size(&connection.tls->wire), 0);
}

FRESH_TEST(an_end_without_a_goodbye_is_an_end) {
    say_replies(1);
    assert_int_equal(shutdown(SSL_get_fd(peer), SHUT_WR), 0);
    receive(REDLOCK_RECEIVED, 0);
    assert_int_equal(replies, 1);
    receive(REDLOCK_RECEIVED_END, 0);
    redlock_connection_reset(&connection);
    assert_null(connection.tls);
}

FRESH_TEST(a_goodbye_is_an_end) {
    assert_int_equal(SSL_shutdown(peer), 0);
    receive(REDLOCK_RECEIVED_END, 0);
}

FRESH_TEST(a_wrong_record_says_so) {
    static const char record[] = "\x17\x03\x03\x00\x20 this was not encrypted at all...";
    assert_int_equal(send(SSL_get_fd(peer), record, sizeof record - 1, 0), sizeof record - 1);
    receive(REDLOCK_RECEIVED_END, EPROTO);
    assert_is(connection.tls->failure.cause, REDLOCK_CAUSE_CONNECTION);
    assert_contains(connection.tls->failure.text, "in TLS: ");
    assert_int_equal(replies, 0);
}

/* The whole life of a context and a connection. Returns whether nothing failed; what fails has its
 * reason. */
static bool live(struct redlock_tls_context **made) {
    struct redlock_inflight_entry entry = {.round = 1};
    int error;
    if (make_context(made) != REDLOCK_OK || !redlock_connection_begin_tls(&connection, *made, "127.0.0.1")) {
        return false;
    }
    memory.armed = false;
    if (secure(&error) != REDLOCK_TLS_SECURED) {
        assert_true(error == ENOMEM || error == EPROTO);
        assert_true(error != EPROTO || connection.tls->failure.text[0] != '\0');
        return false;
    }
    say_replies(1);
    memory.armed = memory.fails != 0;
    if (!redlock_connection_start(&connection) || !redlock_connection_queue(&connection, "hello", 5, &entry)) {
        return false;
    }
    error = redlock_connection_write(&connection, &connection.outbox);
    if (error == 0 && redlock_connection_receive(&connection, take, &error) == REDLOCK_RECEIVED) {
        assert_int_equal(replies, 1);
        return true;
    }
    assert_true(error == ENOMEM || error == EPROTO);
    return false;
}

/* A context that was loaded without memory may not be whole, and OpenSSL does not say so. Whatever
 * it is like, the next connection but one works. */
static void live_again(struct redlock_tls_context *made) {
    char error[256];
    int ended, tries = 0;
    memory.fails = 0;
    do {
        close_socket();
        open_socket();
        assert_int_equal(redlock_tls_context_refresh(made, &(struct redlock_error_text){error, sizeof error}),
                         REDLOCK_TLS_FILES_SAME);
        assert_true(redlock_connection_begin_tls(&connection, made, "127.0.0.1"));
        assert_true(++tries <= 2);
    } while (secure(&ended) != REDLOCK_TLS_SECURED);
}

TEST(every_allocation_may_fail) {
    bool whole = false;
    for (long fails = 0; !whole || fails < 2; fails++) {
        struct redlock_tls_context *made = NULL;
        open_socket();
        memory = (struct scarce_memory){.armed = fails != 0, .fails = fails};
        whole = live(&made);
        memory.armed = false;
        assert_true(fails != 0 || whole);
        if (!whole && made != NULL) {
            live_again(made);
        }
        whole = whole && memory.count < fails;
        close_socket();
        redlock_tls_context_free(made);
    }
    assert_true(memory.count > 500);
    memory.fails = 0;
}
