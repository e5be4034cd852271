/* What a subscription brings: pushes of a node, and everything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/push.h"
#include "wire/reply.h"

#define CHANNEL "redlock:0123"
#define TOKEN   "00000000000000000123456789abcdef0123456789abcdef"
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
    assert_int_equal(redlock_reader_next(reader, &reply), REDLOCK_READ_REPLY);
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

static void a_push_has_all_its_words(void **state) {
    struct redlock_push push;
    (void)state;
    assert_true(reads("7 12" REST, &push));
    assert_int_equal(push.id, 7);
    assert_int_equal(push.round, 12);
    assert_int_equal(push.server_us, INT64_C(1763791726050413));
    assert_int_equal(push.token_size, 48);
    assert_memory_equal(push.token, TOKEN, 48);
    assert_int_equal(push.key_size, 4);
    assert_memory_equal(push.key, "door", 4);
    assert_true(reads("4294967295 4294967295 9000000000 999999 t k", &push));
    assert_true(push.id == UINT32_MAX && push.round == UINT32_MAX && push.token_size == 1 && push.key_size == 1);
}

static void a_key_may_hold_any_bytes(void **state) {
    static const char payload[] = "7 12 1763791726 50413 " TOKEN " a b\0\r\n ";
    struct redlock_push push;
    (void)state;
    assert_true(read_payload(payload, sizeof payload - 1, &push));
    assert_int_equal(push.key_size, 7);
    assert_memory_equal(push.key, "a b\0\r\n ", 7);
}

static void other_payloads_are_no_push(void **state) {
    static const char *const payloads[] = {
        "",
        " ",
        "hello",
        "7 12 1763791726 50413 " TOKEN,
        "7 12 1763791726 50413 " TOKEN " ",
        "7 12 1763791726 50413  door",
        "7 12 1763791726 " TOKEN " door",
        " 12" REST,
        "7 " REST,
        "-7 12" REST,
        "+7 12" REST,
        "7 0x1" REST,
        "7\t12" REST,
        "4294967296 12" REST,
        "7 4294967296" REST,
        "7 18446744073709551617" REST,
        "00000000007 12" REST,
        "7 12 0 50413 " TOKEN " door",
        "7 12 9000000001 0 " TOKEN " door",
        "7 12 1763791726 1000000 " TOKEN " door",
        "7 12 1763791726 5.4 " TOKEN " door",
    };
    struct redlock_push push;
    (void)state;
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        if (reads(payloads[i], &push)) {
            fail_msg("\"%s\" is a push", payloads[i]);
        }
    }
}

static void token_and_key_are_bounded(void **state) {
    char payload[2048], key[REDLOCK_RESOURCE_SIZE_MAX + 2], token[REDLOCK_TOKEN_SIZE_MAX + 2];
    struct redlock_push push;
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        memset(key, 'k', sizeof key);
        memset(token, 't', sizeof token);
        key[REDLOCK_RESOURCE_SIZE_MAX + more] = token[REDLOCK_TOKEN_SIZE_MAX] = '\0';
        (void)snprintf(payload, sizeof payload, "7 12 1763791726 50413 %s %s", token, key);
        assert_int_equal(reads(payload, &push), more == 0);
        token[REDLOCK_TOKEN_SIZE_MAX] = more == 0 ? '\0' : 't';
        token[REDLOCK_TOKEN_SIZE_MAX + 1] = '\0';
        (void)snprintf(payload, sizeof payload, "7 12 1763791726 50413 %s k", token);
        assert_int_equal(reads(payload, &push), more == 0);
    }
}

/* A message with the words of a push, but for one thing. */
static void other_replies_are_no_push(void **state) {
#define GOOD "$21\r\n7 12 1763791726 5 t k\r\n"
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
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strcpy(bytes, rows[i].bytes);
        assert_int_equal(read_bytes(strlen(bytes), &push), rows[i].is_push);
    }
}

/* The announcement in "message", this channel and this payload. */
static bool announces(const char *channel, const char *payload, size_t size,
                      struct redlock_announcement *announcement) {
    const struct redlock_reply *reply;
    const int head =
        snprintf(bytes, sizeof bytes, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n", strlen(channel), channel, size);
    assert_true(size + (size_t)head + 2 < sizeof bytes);
    memcpy(bytes + head, payload, size);
    memcpy(bytes + (size_t)head + size, "\r\n", 2);
    redlock_reader_delete(reader);
    reader = redlock_reader_new();
    assert_non_null(reader);
    assert_true(redlock_reader_feed(reader, bytes, (size_t)head + size + 2));
    assert_int_equal(redlock_reader_next(reader, &reply), REDLOCK_READ_REPLY);
    return redlock_wire_announcement(reply, announcement);
}

#define DOOR "redlock:leader:door"

static void an_announcement_names_the_leader_or_nobody(void **state) {
    struct redlock_announcement it;
    (void)state;
    assert_true(announces(DOOR, "600000 " TOKEN, 7 + 48, &it));
    assert_int_equal(it.ttl_ms, 600000);
    assert_int_equal(it.token_size, 48);
    assert_memory_equal(it.token, TOKEN, 48);
    assert_int_equal(it.key_size, 4);
    assert_memory_equal(it.key, "door", 4);
    assert_true(announces("redlock:leader:a b", "0 a b", 5, &it));
    assert_int_equal(it.ttl_ms, 0);
    assert_int_equal(it.token_size, 3);
    assert_memory_equal(it.token, "a b", 3);
    assert_int_equal(it.key_size, 3);
    assert_true(announces(DOOR, "", 0, &it));
    assert_int_equal(it.token_size, 0);
}

static void anything_else_announces_nothing(void **state) {
    static const char *const payloads[] = {"x", " ", "5", "5 ", " tok", "-1 tok", "5\t", "00000000005 tok"};
    static const char *const others[] = {
        "*3\r\n$9\r\nsubscribe\r\n$19\r\n" DOOR "\r\n$0\r\n\r\n",
        "*3\r\n$7\r\nmessage\r\n$19\r\n" DOOR "\r\n:1\r\n",
        "*3\r\n$7\r\nmessage\r\n$19\r\n" DOOR "\r\n$-1\r\n",
        "*3\r\n$7\r\nmessage\r\n:1\r\n$0\r\n\r\n",
        "*4\r\n$7\r\nmessage\r\n$19\r\n" DOOR "\r\n$0\r\n\r\n:1\r\n",
        "*2\r\n$7\r\nmessage\r\n$19\r\n" DOOR "\r\n",
        "$19\r\n" DOOR "\r\n",
    };
    struct redlock_announcement it;
    (void)state;
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        if (announces(DOOR, payloads[i], strlen(payloads[i]), &it)) {
            fail_msg("\"%s\" is an announcement", payloads[i]);
        }
    }
    char longest[2 + REDLOCK_TOKEN_SIZE_MAX + 1];
    memset(longest, 't', sizeof longest);
    memcpy(longest, "5 ", 2);
    assert_true(announces(DOOR, longest, sizeof longest - 1, &it));
    assert_int_equal(it.token_size, REDLOCK_TOKEN_SIZE_MAX);
    assert_false(announces(DOOR, longest, sizeof longest, &it));
    assert_false(announces("redlock:leader:", "", 0, &it)); /* no key is empty */
    assert_false(announces("redlock:leadex:door", "", 0, &it));
    assert_false(announces(CHANNEL, "", 0, &it));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const struct redlock_reply *reply;
        redlock_reader_delete(reader);
        reader = redlock_reader_new();
        assert_non_null(reader);
        assert_true(redlock_reader_feed(reader, others[i], strlen(others[i])));
        assert_int_equal(redlock_reader_next(reader, &reply), REDLOCK_READ_REPLY);
        assert_false(redlock_wire_announcement(reply, &it));
    }
}

static int end(void **state) {
    (void)state;
    redlock_reader_delete(reader);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_has_all_its_words),        cmocka_unit_test(a_key_may_hold_any_bytes),
        cmocka_unit_test(other_payloads_are_no_push),      cmocka_unit_test(token_and_key_are_bounded),
        cmocka_unit_test(other_replies_are_no_push),       cmocka_unit_test(an_announcement_names_the_leader_or_nobody),
        cmocka_unit_test(anything_else_announces_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
