/* What a subscription brings: pushes of a node, and everything else. */
#include "test.h"
#include "wire/push.h"

#define CHANNEL "redlock:0123"
#define TOKEN   "00000000000000000123456789abcdef0123456789abcdef"
#define ID      "000000000718446744073709551615"
#define REST    " 1763791726 50413 " TOKEN " door"

static char bytes[4096];
static struct redlock_reader *reader;

/* The push in these bytes of a reply. */
static bool read_bytes(size_t size, struct redlock_push *push) {
    const struct redlock_reply *reply;
    redlock_reader_delete(reader);
    reader = redlock_reader_new();
    assert_non_null(reader);
    assert_true(redlock_reader_feed(reader, bytes, size));
    assert_is(redlock_reader_next(reader, &reply), REDLOCK_READ_REPLY);
    return redlock_wire_push(reply, CHANNEL, push);
}

static bool read_payload(const char *payload, size_t size, struct redlock_push *push) {
    int head =
        snprintf(bytes, sizeof bytes, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n", strlen(CHANNEL), CHANNEL, size);
    assert_true(size + (size_t)head + 2 < sizeof bytes);
    memcpy(bytes + head, payload, size);
    memcpy(bytes + head + size, "\r\n", 2);
    return read_bytes((size_t)head + size + 2, push);
}

static bool reads(const char *payload, struct redlock_push *push) {
    return read_payload(payload, strlen(payload), push);
}

static int end(void **state);
TESTS_WITH(NULL, end);

TEST(a_push_has_all_its_words) {
    struct redlock_push push;
    assert_true(reads(ID " 12" REST, &push));
    assert_int_equal(push.id, 7);
    assert_int_equal(push.round, 12);
    assert_true(push.seal == UINT64_MAX);
    assert_int_equal(push.token_size, 48);
    assert_memory_equal(push.token, TOKEN, 48);
    assert_int_equal(push.key_size, 4);
    assert_memory_equal(push.key, "door", 4);
    assert_true(reads("429496729500000000000000000000 4294967295 x y t k", &push));
    assert_true(push.id == UINT32_MAX && push.seal == 0 && push.round == UINT32_MAX && push.token_size == 1 &&
                push.key_size == 1);
}

/* Without a serial and a seal: the lock is left free. */
TEST(a_push_may_be_no_grant) {
    struct redlock_push push;
    assert_true(reads("000000000700000000000000000000 0" REST, &push));
    assert_true(push.id == 7 && push.round == 0 && push.seal == 0 && push.token_size == 48 && push.key_size == 4);
}

TEST(a_key_may_hold_any_bytes) {
    static const char payload[] = ID " 12 1763791726 50413 " TOKEN " a b\0\r\n ";
    struct redlock_push push;
    assert_true(read_payload(payload, sizeof payload - 1, &push));
    assert_int_equal(push.key_size, 7);
    assert_memory_equal(push.key, "a b\0\r\n ", 7);
}

TEST(other_payloads_are_no_push) {
    static const char *const payloads[] = {
        "",
        " ",
        "hello",
        ID " 12 1763791726 50413 " TOKEN,
        ID " 12 1763791726 50413 " TOKEN " ",
        ID " 12 1763791726 50413  door",
        ID " 12 1763791726 " TOKEN " door",
        " 12" REST,
        ID " " REST,
        "7 12" REST, /* of an older version */
        "00000000071844674407370955161 12" REST,
        "0000000007018446744073709551615 12" REST,
        "000000000718446744073709551616 12" REST,
        "000000000799999999999999999999 12" REST,
        "00000000071844674407370955161x 12" REST,
        "0000000007-1844674407370955161 12" REST,
        "-00000000718446744073709551615 12" REST,
        "429496729600000000000000000000 12" REST,
        ID " -12" REST,
        ID " 0x1" REST,
        ID "\t12" REST,
        ID " 4294967296" REST,
        ID " 18446744073709551617" REST,
    };
    struct redlock_push push;
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        if (reads(payloads[i], &push)) {
            fail_msg("\"%s\" is a push", payloads[i]);
        }
    }
}

TEST(token_and_key_are_bounded) {
    char payload[2048], key[REDLOCK_RESOURCE_SIZE_MAX + 2], token[REDLOCK_TOKEN_SIZE_MAX + 2];
    struct redlock_push push;
    for (unsigned more = 0; more < 2; more++) {
        memset(key, 'k', sizeof key);
        memset(token, 't', sizeof token);
        key[REDLOCK_RESOURCE_SIZE_MAX + more] = token[REDLOCK_TOKEN_SIZE_MAX] = '\0';
        (void)snprintf(payload, sizeof payload, ID " 12 1763791726 50413 %s %s", token, key);
        assert_int_equal(reads(payload, &push), more == 0);
        token[REDLOCK_TOKEN_SIZE_MAX] = more == 0 ? '\0' : 't';
        token[REDLOCK_TOKEN_SIZE_MAX + 1] = '\0';
        (void)snprintf(payload, sizeof payload, ID " 12 1763791726 50413 %s k", token);
        assert_int_equal(reads(payload, &push), more == 0);
    }
}

/* A message with the words of a push, but for one thing. */
TEST(other_replies_are_no_push) {
#define GOOD "$50\r\n" ID " 12 1763791726 5 t k\r\n"
    static const struct {
        const char *bytes;
        bool is_push;
    } rows[] = {
        {"*3\r\n$7\r\nmessage\r\n$12\r\n" CHANNEL "\r\n" GOOD, true},
        {"*3\r\n$7\r\nmessage\r\n$12\r\nredlock:0124\r\n" GOOD, false},
        {"*3\r\n$7\r\nmessage\r\n$13\r\n" CHANNEL "4\r\n" GOOD, false},
        {"*3\r\n$7\r\nmessage\r\n$11\r\nredlock:012\r\n" GOOD, false},
        {"*3\r\n$7\r\nMessage\r\n$12\r\n" CHANNEL "\r\n" GOOD, false},
        {"*3\r\n+message\r\n$12\r\n" CHANNEL "\r\n" GOOD, false},
        {"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$12\r\n" CHANNEL "\r\n" GOOD, false},
        {"*4\r\n$7\r\nmessage\r\n$12\r\n" CHANNEL "\r\n" GOOD ":1\r\n", false},
        {"*2\r\n$7\r\nmessage\r\n$12\r\n" CHANNEL "\r\n", false},
        {"*3\r\n$7\r\nmessage\r\n$12\r\n" CHANNEL "\r\n:1\r\n", false},
        {"*3\r\n$7\r\nmessage\r\n$12\r\n" CHANNEL "\r\n$-1\r\n", false},
        {"*3\r\n$9\r\nsubscribe\r\n$12\r\n" CHANNEL "\r\n:1\r\n", false},
        {GOOD, false},
        {"+OK\r\n", false},
        {"-ERR no\r\n", false},
    };
    struct redlock_push push;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strcpy(bytes, rows[i].bytes);
        assert_int_equal(read_bytes(strlen(bytes), &push), rows[i].is_push);
    }
}

/* The hint in these bytes of a reply. */
static bool hints(const char *reply_bytes, struct redlock_hint *hint) {
    const struct redlock_reply *reply;
    redlock_reader_delete(reader);
    reader = redlock_reader_new();
    assert_non_null(reader);
    assert_true(redlock_reader_feed(reader, reply_bytes, strlen(reply_bytes)));
    assert_is(redlock_reader_next(reader, &reply), REDLOCK_READ_REPLY);
    return redlock_wire_hint(reply, hint);
}

#define DOOR "*3\r\n$7\r\nmessage\r\n$19\r\nredlock:leader:door\r\n"

TEST(whatever_is_announced_is_a_hint) {
    static const char *const said[] = {DOOR "$0\r\n\r\n", DOOR "$5\r\n5 tok\r\n", DOOR "$1\r\nx\r\n", DOOR "$-1\r\n"};
    struct redlock_hint it;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        assert_true(hints(said[i], &it));
        assert_int_equal(it.key_size, 4);
        assert_memory_equal(it.key, "door", 4);
    }
    assert_true(hints("*3\r\n$7\r\nmessage\r\n$18\r\nredlock:leader:a b\r\n$0\r\n\r\n", &it));
    assert_int_equal(it.key_size, 3);
    assert_memory_equal(it.key, "a b", 3);
}

TEST(nothing_else_is_a_hint) {
    static const char *const others[] = {
        "*3\r\n$9\r\nsubscribe\r\n$19\r\nredlock:leader:door\r\n$0\r\n\r\n",
        "*3\r\n$7\r\nmessage\r\n$15\r\nredlock:leader:\r\n$0\r\n\r\n", /* no key is empty */
        "*3\r\n$7\r\nmessage\r\n$19\r\nredlock:leadex:door\r\n$0\r\n\r\n",
        "*3\r\n$7\r\nmessage\r\n$12\r\n" CHANNEL "\r\n$0\r\n\r\n",
        "*3\r\n$7\r\nmessage\r\n:1\r\n$0\r\n\r\n",
        "*4\r\n$7\r\nmessage\r\n$19\r\nredlock:leader:door\r\n$0\r\n\r\n:1\r\n",
        "*2\r\n$7\r\nmessage\r\n$19\r\nredlock:leader:door\r\n",
        "$19\r\nredlock:leader:door\r\n",
    };
    struct redlock_hint it;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(hints(others[i], &it));
    }
}

static int end(UNUSED void **state) {
    redlock_reader_delete(reader);
    return 0;
}
