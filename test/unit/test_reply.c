/* Replies in any number of pieces, bounds on size and nesting, and what is not RESP (R20). */
#include "test.h"

#include "wire/reply.h"

static struct redlock_reader *reader;

static int setup(UNUSED void **state) {
    reader = redlock_reader_new();
    return reader == NULL ? -1 : 0;
}

static int teardown(UNUSED void **state) {
    redlock_reader_delete(reader);
    return 0;
}

static const struct redlock_reply *next(void) {
    const struct redlock_reply *reply = NULL;
    assert_is(redlock_reader_next(reader, &reply), REDLOCK_READ_REPLY);
    return reply;
}

static void feed(const char *bytes, size_t size) {
    assert_true(redlock_reader_feed(reader, bytes, size));
}

static void assert_value(const struct redlock_reply_value *value, enum redlock_reply_type type, const char *bytes,
                         int64_t integer) {
    assert_int_equal(value->type, type);
    if (bytes != NULL) {
        assert_int_equal(value->size, strlen(bytes));
        assert_memory_equal(value->bytes, bytes, value->size);
    } else {
        assert_int_equal(value->integer, integer);
    }
}

static const char stream[] =
    "+OK\r\n:-42\r\n$5\r\nab\r\nc\r\n$-1\r\n-ERR no\r\n*2\r\n$2\r\nhi\r\n:7\r\n*-1\r\n$0\r\n\r\n"
    "*6\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n$3\r\nsix\r\n*2\r\n*1\r\n$1\r\nx\r\n+y\r\n*0\r\n:1\r\n";

static void assert_stream(void) {
    assert_value(&next()->value, REDLOCK_REPLY_STATUS, "OK", 0);
    assert_value(&next()->value, REDLOCK_REPLY_INTEGER, NULL, -42);
    assert_value(&next()->value, REDLOCK_REPLY_STRING, "ab\r\nc", 0);
    assert_is(next()->value.type, REDLOCK_REPLY_NIL);
    assert_value(&next()->value, REDLOCK_REPLY_ERROR, "ERR no", 0);
    const struct redlock_reply *reply = next();
    assert_is(reply->value.type, REDLOCK_REPLY_ARRAY);
    assert_int_equal(reply->element_count, 2);
    assert_value(&reply->elements[0], REDLOCK_REPLY_STRING, "hi", 0);
    assert_value(&reply->elements[1], REDLOCK_REPLY_INTEGER, NULL, 7);
    assert_is(next()->value.type, REDLOCK_REPLY_NIL);
    assert_value(&next()->value, REDLOCK_REPLY_STRING, "", 0);
    reply = next();
    assert_int_equal(reply->element_count, 6);
    assert_value(&reply->elements[3], REDLOCK_REPLY_INTEGER, NULL, 4);
    reply = next();
    assert_int_equal(reply->element_count, 2);
    assert_is(reply->elements[0].type, REDLOCK_REPLY_OTHER);
    assert_value(&reply->elements[1], REDLOCK_REPLY_STATUS, "y", 0);
    reply = next();
    assert_is(reply->value.type, REDLOCK_REPLY_ARRAY);
    assert_int_equal(reply->element_count, 0);
    assert_value(&next()->value, REDLOCK_REPLY_INTEGER, NULL, 1);
}

#define FRESH_TEST(name) TEST_WITH(name, setup, teardown)

FRESH_TEST(all_types_at_once) {
    const struct redlock_reply *reply;
    feed(stream, sizeof stream - 1);
    assert_stream();
    assert_is(redlock_reader_next(reader, &reply), REDLOCK_READ_MORE);
}

/* Votes are known by their bytes where they come whole, and parsed where they do not: nobody can
 * tell. */
FRESH_TEST(votes_cut_anywhere) {
    static const char votes[] = "+OK\r\n:1\r\n:0\r\n:-1\r\n$-1\r\n+OKAY\r\n:10\r\n$1\r\nx\r\n+OK\r\n";
    static const enum redlock_reply_type types[] = {REDLOCK_REPLY_STATUS,  REDLOCK_REPLY_INTEGER, REDLOCK_REPLY_INTEGER,
                                                    REDLOCK_REPLY_INTEGER, REDLOCK_REPLY_NIL,     REDLOCK_REPLY_STATUS,
                                                    REDLOCK_REPLY_INTEGER, REDLOCK_REPLY_STRING,  REDLOCK_REPLY_STATUS};
    static const int64_t integers[] = {0, 1, 0, -1, 0, 0, 10, 0, 0};
    static const size_t sizes[] = {2, 0, 0, 0, 0, 4, 0, 1, 2};
    for (size_t cut = 0; cut < sizeof votes; cut++) {
        const struct redlock_reply *reply;
        size_t count = 0;
        for (int piece = 0; piece < 2; piece++) {
            feed(votes + (piece ? cut : 0), piece ? sizeof votes - 1 - cut : cut);
            for (; redlock_reader_next(reader, &reply) == REDLOCK_READ_REPLY; count++) {
                assert_true(count < sizeof types / sizeof *types);
                assert_int_equal(reply->value.type, types[count]);
                assert_int_equal(reply->value.integer, integers[count]);
                assert_int_equal(reply->value.size, sizes[count]);
            }
        }
        assert_int_equal(count, sizeof types / sizeof *types);
    }
}

/* The strings of a reply that comes in pieces outlive the parser's buffer. */
FRESH_TEST(all_types_byte_by_byte) {
    struct redlock_reader *whole = reader;
    const struct redlock_reply *expected, *got;
    size_t replies = 0;
    feed(stream, sizeof stream - 1);
    reader = redlock_reader_new();
    for (size_t i = 0; i < sizeof stream - 1; i++) {
        feed(stream + i, 1);
        if (redlock_reader_next(reader, &got) != REDLOCK_READ_REPLY) {
            continue;
        }
        assert_is(redlock_reader_next(whole, &expected), REDLOCK_READ_REPLY);
        assert_int_equal(got->value.type, expected->value.type);
        assert_int_equal(got->value.integer, expected->value.integer);
        assert_int_equal(got->value.size, expected->value.size);
        if (got->value.size > 0) {
            assert_memory_equal(got->value.bytes, expected->value.bytes, got->value.size);
        }
        for (size_t e = 0; e < REDLOCK_REPLY_ELEMENTS_MAX && e < got->element_count; e++) {
            assert_int_equal(got->elements[e].type, expected->elements[e].type);
            assert_int_equal(got->elements[e].integer, expected->elements[e].integer);
            if (got->elements[e].size > 0) {
                assert_memory_equal(got->elements[e].bytes, expected->elements[e].bytes, got->elements[e].size);
            }
        }
        replies++;
    }
    assert_int_equal(replies, 12);
    redlock_reader_delete(whole);
}

FRESH_TEST(many_replies_in_a_row) {
    char bytes[16384];
    for (int round = 0; round < 40; round++) {
        size_t size = 0;
        while (size < sizeof bytes - 64) {
            size += (size_t)sprintf(bytes + size, "$5\r\n%05zu\r\n:%zu\r\n", size % 100000, size);
        }
        feed(bytes, size);
        for (size_t at = 0; at < size;) {
            char text[8];
            (void)sprintf(text, "%05zu", at % 100000);
            assert_value(&next()->value, REDLOCK_REPLY_STRING, text, 0);
            assert_value(&next()->value, REDLOCK_REPLY_INTEGER, NULL, (int64_t)at);
            char whole[64];
            at += (size_t)sprintf(whole, "$5\r\n%05zu\r\n:%zu\r\n", at % 100000, at);
        }
    }
}

static void assert_refused(const char *bytes) {
    const struct redlock_reply *reply;
    struct redlock_reader *fresh = redlock_reader_new();
    assert_true(redlock_reader_feed(fresh, bytes, strlen(bytes)));
    assert_is(redlock_reader_next(fresh, &reply), REDLOCK_READ_PROTOCOL);
    assert_true(strlen(redlock_reader_error(fresh)) > 0);
    redlock_reader_delete(fresh);
}

TEST(what_is_not_resp_is_refused) {
    assert_refused("HTTP/1.1 400 Bad Request\r\n");
    assert_refused("$-7\r\nabc\r\n");
    assert_refused("*99999999999999999999\r\n");
}

/* hiredis before 1.1 has a limit to the depth and refuses it; later ones read it, and then it is
 * none of our types. */
TEST(deep_nesting_is_no_vote) {
    const char bytes[] = "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n";
    const struct redlock_reply *reply = NULL;
    struct redlock_reader *fresh = redlock_reader_new();
    assert_true(redlock_reader_feed(fresh, bytes, strlen(bytes)));
    enum redlock_read read = redlock_reader_next(fresh, &reply);
    if (read != REDLOCK_READ_PROTOCOL) {
        assert_is(read, REDLOCK_READ_REPLY);
        assert_is(reply->value.type, REDLOCK_REPLY_ARRAY);
        assert_is(reply->elements[0].type, REDLOCK_REPLY_OTHER);
    }
    redlock_reader_delete(fresh);
}

/* A bulk of a gigabyte is cut when its bytes come, not when it is announced: no memory is set
 * aside for it. */
FRESH_TEST(a_reply_over_a_mebibyte_is_cut) {
    static char block[65536];
    const struct redlock_reply *reply;
    enum redlock_read read = REDLOCK_READ_MORE;
    size_t fed = 0;
    memset(block, 'x', sizeof block);
    feed("$1073741824\r\n", 13);
    while (read == REDLOCK_READ_MORE) {
        assert_true(fed <= REDLOCK_REPLY_SIZE_MAX + sizeof block);
        feed(block, sizeof block);
        fed += sizeof block;
        read = redlock_reader_next(reader, &reply);
    }
    assert_is(read, REDLOCK_READ_PROTOCOL);
    assert_contains(redlock_reader_error(reader), "1 MiB");
}

FRESH_TEST(an_array_without_end_is_cut) {
    const struct redlock_reply *reply;
    enum redlock_read read = REDLOCK_READ_MORE;
    size_t fed = 0;
    feed("*2000000000\r\n", 13);
    while (read == REDLOCK_READ_MORE) {
        assert_true(fed <= REDLOCK_REPLY_SIZE_MAX + 64);
        feed(":1\r\n:2\r\n:3\r\n:4\r\n", 16);
        fed += 16;
        read = redlock_reader_next(reader, &reply);
    }
    assert_is(read, REDLOCK_READ_PROTOCOL);
}

FRESH_TEST(a_reply_of_almost_a_mebibyte_is_whole) {
    static char block[1000000];
    memset(block, 'y', sizeof block);
    feed("$1000000\r\n", 10);
    feed(block, sizeof block);
    feed("\r\n+OK\r\n", 7);
    const struct redlock_reply *reply = next();
    assert_int_equal(reply->value.size, sizeof block);
    assert_memory_equal(reply->value.bytes, block, sizeof block);
    assert_value(&next()->value, REDLOCK_REPLY_STATUS, "OK", 0);
}
