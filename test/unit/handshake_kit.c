/* A handshake with no server. */
#include "handshake_kit.h"

#include "test.h"

struct redlock_server_options options;
struct redlock_address address;
struct redlock_handshake handshake;
struct redlock_outbox outbox;
static struct redlock_reader *reader;

int handshake_setup(UNUSED void **state) {
    address = (struct redlock_address){.kind = REDLOCK_ADDRESS_TCP};
    options = (struct redlock_server_options){.client_name = "me", .probed = REDLOCK_PROBED_KEY};
    handshake.told = (struct redlock_handshake_told){
        .options = &options, .address = &address, .credentials = &address.credentials, .old_run_id = "", .mark = MARK};
    outbox = (struct redlock_outbox){0};
    reader = redlock_reader_new();
    return reader == NULL ? -1 : 0;
}

int handshake_teardown(UNUSED void **state) {
    redlock_outbox_clear(&outbox);
    redlock_reader_delete(reader);
    return 0;
}

void assert_said(const char *expected) {
    assert_int_equal(redlock_outbox_size(&outbox), strlen(expected));
    assert_memory_equal(outbox.bytes + outbox.head, expected, strlen(expected));
    redlock_outbox_wrote(&outbox, strlen(expected));
}

enum redlock_handshake_state reply(const char *bytes) {
    const struct redlock_reply *got;
    assert_true(redlock_reader_feed(reader, bytes, strlen(bytes)));
    assert_is(redlock_reader_next(reader, &got), REDLOCK_READ_REPLY);
    return redlock_handshake_reply(&handshake, got, &outbox);
}

enum redlock_handshake_state reply_info(const char *text) {
    char bytes[512];
    (void)snprintf(bytes, sizeof bytes, "$%zu\r\n%s\r\n", strlen(text), text);
    return reply(bytes);
}

/* Without a password, PING comes first. */
void start(void) {
    assert_is(redlock_handshake_start(&handshake, &outbox), REDLOCK_HANDSHAKE_WAITING);
    if (address.credentials.password == NULL) {
        assert_is(reply("+PONG\r\n"), REDLOCK_HANDSHAKE_WAITING);
    }
}

/* Drops the bytes that load the scripts, after a check of how they begin. */
void assert_introduced(const char *begin) {
    assert_true(redlock_outbox_size(&outbox) > strlen(begin));
    assert_memory_equal(outbox.bytes + outbox.head, begin, strlen(begin));
    redlock_outbox_wrote(&outbox, redlock_outbox_size(&outbox));
}

/* Answers CLIENT SETNAME, and SCRIPT LOAD of each script and of the probe. */
void load(void) {
    assert_int_equal(reply("+OK\r\n"), WAITING);
    for (int i = 0; i <= REDLOCK_SCRIPT_COUNT; i++) {
        assert_int_equal(reply("$3\r\nsha\r\n"), WAITING);
    }
}

void finish(void) {
    load();
    assert_is(reply(NOTHING_MISSING), REDLOCK_HANDSHAKE_DONE);
}

void assert_refused(const char *bytes, enum redlock_handshake_state state, enum redlock_cause cause,
                    const char *words) {
    assert_int_equal(reply(bytes), state);
    assert_int_equal(handshake.cause, cause);
    assert_contains(handshake.reason, words);
}
/* Up to the reply of the probe, on a server with this INFO: a bulk string, or an error. */
void until_probe(const char *info) {
    start();
    assert_int_equal(info[0] == '-' ? reply(info) : reply_info(info), WAITING);
    assert_int_equal(reply(A_TIME), WAITING);
    assert_int_equal(reply(":7\r\n"), WAITING);
}
