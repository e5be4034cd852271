/* The bytes of each operation, and the vote in every reply it can and cannot get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "reply.h"
#include "script.h"
#include "wire.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static void assert_bytes(const struct redlock_message *message, const char *expected) {
    char buffer[REDLOCK_WIRE_SIZE_MAX];
    size_t size = redlock_wire_format(message, buffer);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(buffer, expected, size);
}

static struct redlock_message message_of(enum redlock_operation operation) {
    return (struct redlock_message){
        .operation = operation, .key = "res", .key_size = 3, .token = TOKEN, .token_size = 32, .ttl_ms = 10000};
}

static void acquire_is_set_nx_px(void **state) {
    struct redlock_message message = message_of(REDLOCK_OP_ACQUIRE);
    (void)state;
    assert_bytes(&message,
                 "*6\r\n$3\r\nSET\r\n$3\r\nres\r\n$32\r\n" TOKEN "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n10000\r\n");
    message.ttl_ms = REDLOCK_TTL_MS_MAX;
    assert_bytes(&message,
                 "*6\r\n$3\r\nSET\r\n$3\r\nres\r\n$32\r\n" TOKEN "\r\n$2\r\nNX\r\n$2\r\nPX\r\n$10\r\n2147483647\r\n");
}

static void assert_script(enum redlock_operation operation, enum redlock_script_id id, const char *count,
                          const char *arguments) {
    const struct redlock_script *script = redlock_script_get(id);
    struct redlock_message message = message_of(operation);
    char expected[REDLOCK_WIRE_SIZE_MAX];
    (void)snprintf(expected, sizeof expected, "*%s\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$3\r\nres\r\n%s", count,
                   script->sha1, arguments);
    assert_bytes(&message, expected);
    message.by_source = true;
    (void)snprintf(expected, sizeof expected, "*%s\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n1\r\n$3\r\nres\r\n%s", count,
                   script->source_size, script->source, arguments);
    assert_bytes(&message, expected);
}

static void the_others_are_scripts_by_sha_or_source(void **state) {
    (void)state;
    assert_script(REDLOCK_OP_RELEASE, REDLOCK_SCRIPT_RELEASE, "5", "$32\r\n" TOKEN "\r\n");
    assert_script(REDLOCK_OP_EXTEND, REDLOCK_SCRIPT_EXTEND, "6", "$32\r\n" TOKEN "\r\n$5\r\n10000\r\n");
    assert_script(REDLOCK_OP_INSPECT, REDLOCK_SCRIPT_INSPECT, "4", "");
}

static void the_longest_message_fits(void **state) {
    char key[REDLOCK_RESOURCE_SIZE_MAX], buffer[REDLOCK_WIRE_SIZE_MAX];
    struct redlock_message message = {.operation = REDLOCK_OP_EXTEND,
                                      .by_source = true,
                                      .key = key,
                                      .key_size = sizeof key,
                                      .token = key,
                                      .token_size = REDLOCK_TOKEN_SIZE_MAX,
                                      .ttl_ms = REDLOCK_TTL_MS_MAX};
    (void)state;
    memset(key, '\n', sizeof key);
    assert_in_range(redlock_wire_format(&message, buffer), sizeof key, sizeof buffer);
}

/* The vote that these bytes make; its text goes to a buffer. */
static struct redlock_answer vote_of(enum redlock_operation operation, const char *bytes, char text[512]) {
    struct redlock_reader *reader = redlock_reader_new();
    const struct redlock_reply *reply;
    struct redlock_answer answer;
    assert_non_null(reader);
    assert_true(redlock_reader_feed(reader, bytes, strlen(bytes)));
    assert_int_equal(redlock_reader_next(reader, &reply), REDLOCK_READ_REPLY);
    redlock_wire_answer(operation, reply, &answer);
    (void)snprintf(text, 512, "%s", redlock_text_string(answer.text));
    redlock_text_drop(answer.text);
    if (answer.holder != NULL) {
        (void)snprintf(text, 512, "%.*s", (int)answer.holder_size, answer.holder);
    }
    redlock_reader_delete(reader);
    return answer;
}

struct row {
    enum redlock_operation operation;
    const char *bytes;
    redlock_vote_kind vote;
    const char *text;
};

static void each_reply_makes_its_vote(void **state) {
    static const struct row rows[] = {
        {REDLOCK_OP_ACQUIRE, "+OK\r\n", REDLOCK_VOTE_GRANTED, ""},
        {REDLOCK_OP_ACQUIRE, "$-1\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {REDLOCK_OP_ACQUIRE, "*-1\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {REDLOCK_OP_ACQUIRE, "-OOM command not allowed\r\n", REDLOCK_VOTE_FAILED, "OOM command not allowed"},
        {REDLOCK_OP_ACQUIRE, "-\r\n", REDLOCK_VOTE_FAILED, "an error without a text"},
        {REDLOCK_OP_EXTEND, ":1\r\n", REDLOCK_VOTE_GRANTED, ""},
        {REDLOCK_OP_EXTEND, ":0\r\n", REDLOCK_VOTE_DENIED, "the key is missing"},
        {REDLOCK_OP_EXTEND, ":-1\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {REDLOCK_OP_RELEASE, ":1\r\n", REDLOCK_VOTE_GRANTED, ""},
        {REDLOCK_OP_RELEASE, ":0\r\n", REDLOCK_VOTE_DENIED, "the key is missing"},
        {REDLOCK_OP_RELEASE, ":-1\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {REDLOCK_OP_RELEASE, "-READONLY no\x1b[2J\r\n", REDLOCK_VOTE_FAILED, "READONLY no?[2J"},
        {REDLOCK_OP_INSPECT, "*2\r\n$3\r\nabc\r\n:99\r\n", REDLOCK_VOTE_GRANTED, "abc"},
        {REDLOCK_OP_INSPECT, "*2\r\n$-1\r\n:-2\r\n", REDLOCK_VOTE_DENIED, ""},
    };
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct redlock_answer answer = vote_of(rows[i].operation, rows[i].bytes, text);
        assert_int_equal(answer.vote, rows[i].vote);
        assert_string_equal(text, rows[i].text);
        assert_false(answer.no_script);
    }
    assert_int_equal(vote_of(REDLOCK_OP_INSPECT, "*2\r\n$1\r\na\r\n:-1\r\n", text).holder_ttl_ms, -1);
}

/* R20: never a vote, and never "surely not applied". */
static void what_an_operation_cannot_get_is_unknown(void **state) {
    static const char *const any[] = {"$2\r\nOK\r\n",
                                      "+ok\r\n",
                                      "+OKAY\r\n",
                                      "+\r\n",
                                      ":2\r\n",
                                      ":-2\r\n",
                                      "*0\r\n",
                                      "*1\r\n:1\r\n",
                                      "*1\r\n*1\r\n:1\r\n",
                                      "*3\r\n$1\r\na\r\n:1\r\n:1\r\n",
                                      "*2\r\n:1\r\n:1\r\n",
                                      "*2\r\n$1\r\na\r\n$1\r\n1\r\n",
                                      "*2\r\n*1\r\n:1\r\n:1\r\n",
                                      "$-1\r\n",
                                      "+QUEUED\r\n",
                                      ":1\r\n"};
    static const enum redlock_operation operations[] = {REDLOCK_OP_ACQUIRE, REDLOCK_OP_EXTEND, REDLOCK_OP_RELEASE,
                                                        REDLOCK_OP_INSPECT, REDLOCK_OP_NONE};
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        for (size_t j = 0; j < sizeof any / sizeof *any; j++) {
            enum redlock_operation operation = operations[i];
            bool integer = operation == REDLOCK_OP_EXTEND || operation == REDLOCK_OP_RELEASE;
            if ((operation == REDLOCK_OP_ACQUIRE && strcmp(any[j], "$-1\r\n") == 0) ||
                (integer && strcmp(any[j], ":1\r\n") == 0)) {
                continue;
            }
            struct redlock_answer answer = vote_of(operation, any[j], text);
            assert_int_equal(answer.vote, REDLOCK_VOTE_UNKNOWN);
            assert_non_null(strstr(text, "out of protocol"));
        }
    }
}

static void noscript_says_so(void **state) {
    char text[512];
    (void)state;
    struct redlock_answer answer = vote_of(REDLOCK_OP_RELEASE, "-NOSCRIPT No matching script.\r\n", text);
    assert_int_equal(answer.vote, REDLOCK_VOTE_FAILED);
    assert_true(answer.no_script);
}

static void an_error_quotes_no_arguments_and_is_bounded(void **state) {
    char bytes[2000], text[512];
    (void)state;
    (void)vote_of(REDLOCK_OP_RELEASE,
                  "-ERR unknown command 'EVALSHA', with args beginning with: 'sha' '1' 'res' '" TOKEN "' \r\n", text);
    assert_string_equal(text, "ERR unknown command 'EVALSHA'");
    memset(bytes, 'x', sizeof bytes);
    bytes[0] = '-';
    memcpy(bytes + sizeof bytes - 3, "\r\n", 3);
    (void)vote_of(REDLOCK_OP_RELEASE, bytes, text);
    assert_int_equal(strlen(text), REDLOCK_WIRE_ERROR_SIZE - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acquire_is_set_nx_px),
        cmocka_unit_test(the_others_are_scripts_by_sha_or_source),
        cmocka_unit_test(the_longest_message_fits),
        cmocka_unit_test(each_reply_makes_its_vote),
        cmocka_unit_test(what_an_operation_cannot_get_is_unknown),
        cmocka_unit_test(noscript_says_so),
        cmocka_unit_test(an_error_quotes_no_arguments_and_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
