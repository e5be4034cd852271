/* LIST: the bytes of the request, and the entries in the reply. */
#include "kinds.h"
#include "test.h"
#include "wire/page.h"
#include "wire/script.h"

TEST(the_request_is_the_script_without_keys) {
    const struct redlock_script *script = &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_LIST];
    const struct redlock_fence_keys fence = {.suffix = ":f", .suffix_size = 2};
    struct redlock_page page = {.cursor = UINT64_MAX, .pattern = "a*", .count = 250, .others = true};
    const struct redlock_message message = {
        .operation = REDLOCK_OP_LIST, .by_source = true, .fence_keys = &fence, .wait_suffix = ":w", .page = &page};
    char buffer[REDLOCK_WIRE_SIZE_MAX], expected[REDLOCK_WIRE_SIZE_MAX], longest[REDLOCK_PATTERN_SIZE_MAX + 1] = "";
    unsigned kind;
    const size_t size = redlock_wire_format(&message, buffer, &kind);
    assert_int_equal(kind, LISTING);
    (void)snprintf(expected, sizeof expected,
                   "*9\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n0\r\n$20\r\n18446744073709551615\r\n$2\r\na*\r\n"
                   "$3\r\n250\r\n$2\r\n:w\r\n$2\r\n:f\r\n$1\r\n1\r\n",
                   script->source_size, script->source);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(buffer, expected, size);
    memset(longest, '?', sizeof longest - 1);
    page.pattern = longest;
    assert_in_range(redlock_wire_format(&message, buffer, &kind), sizeof longest, sizeof buffer);
}

static struct redlock_answer answer_of(const char *bytes) {
    static struct redlock_reader *reader;
    const struct redlock_reply *reply;
    struct redlock_answer answer;
    redlock_reader_delete(reader); /* of the last call: the answer points into it */
    reader = bytes != NULL ? redlock_reader_new() : NULL;
    memset(&answer, 1, sizeof answer);
    if (bytes != NULL) {
        assert_true(redlock_reader_feed(reader, bytes, strlen(bytes)));
        assert_is(redlock_reader_next(reader, &reply), REDLOCK_READ_REPLY);
        redlock_wire_answer(LISTING, reply, NULL, &answer);
        redlock_text_drop(answer.text);
    }
    return answer;
}

static struct redlock_answer page_of(const char *cursor, const char *entries, int unread) {
    static char bytes[256]; /* the reader borrows them */
    (void)snprintf(bytes, sizeof bytes, "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n:%d\r\n", strlen(cursor), cursor,
                   strlen(entries), entries, unread);
    return answer_of(bytes);
}

TEST(a_page_has_entries_a_cursor_and_what_was_not_read) {
    struct redlock_page_entry entry;
    struct redlock_answer answer = page_of("17", "1 2 600 0 0 abb4 1 -1 -1 3 a 1tx9 9 0 12 0 9", 3);
    assert_is(answer.vote, REDLOCK_VOTE_UNKNOWN); /* the last one is cut */
    answer = page_of("17", "1 2 600 0 0 abb4 1 -1 -1 3 a 1tx", 3);
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    assert_int_equal(answer.cursor, 17);
    assert_int_equal(answer.unread, 3);
    const char *at = answer.holder, *end = at + answer.holder_size;
    assert_true(redlock_page_next(&at, end, &entry));
    assert_memory_equal(entry.key, "a", entry.key_size);
    assert_int_equal(entry.token_size, 2);
    assert_memory_equal(entry.token, "bb", 2);
    assert_int_equal(entry.ttl_ms, 600);
    assert_true(entry.waiters == 0 && entry.readers == 0);
    assert_true(redlock_page_next(&at, end, &entry));
    assert_int_equal(entry.key_size, 4);
    assert_memory_equal(entry.key, "a 1t", 4);
    assert_int_equal(entry.ttl_ms, -1);
    assert_true(entry.waiters == -1 && entry.readers == 3);
    assert_ptr_equal(at, end);
    assert_false(redlock_page_next(&at, end, &entry));
    answer = page_of("0", "", 0);
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    assert_int_equal(answer.holder_size, 0);
    answer_of(NULL);
}

TEST(a_page_with_a_fault_is_unknown) {
    static const char *const pages[] =
        LIST("0 1 5 0 0 b", "1 0 5 0 0 a", "1025 1 5 0 0 a", "1 129 5 0 0 a", "1 1 -3 0 0 ab", "1 1 5 -2 0 ab",
             "1 1 5 0 -1 ab", "1 1 5 0 0 a", "1 1 5 0 0", "1 1 5 0 ab", "1 1 5 0 ", "1 1 5x0 0 ab", " 1 1 5 0 0 ab",
             "+1 1 5 0 0 ab", "1 1 5 0 0 abc", "1 1 - 0 0 ab", "x", "1 1 5  0 0 ab", "-1 1 5 0 0 ab",
             "1 1 99999999999999999999 0 0 ab", "1 1 5 9007199254740992 0 ab", "1 1 5 0 9007199254740992 ab");
    static const char *const replies[] =
        LIST("*3\r\n$0\r\n\r\n$0\r\n\r\n:0\r\n", "*3\r\n$20\r\n18446744073709551616\r\n$0\r\n\r\n:0\r\n",
             "*3\r\n$21\r\n000000000000000000001\r\n$0\r\n\r\n:0\r\n", "*3\r\n$2\r\n1a\r\n$0\r\n\r\n:0\r\n",
             "*3\r\n$2\r\n-1\r\n$0\r\n\r\n:0\r\n", "*3\r\n:0\r\n$0\r\n\r\n:0\r\n", "*3\r\n$1\r\n0\r\n$-1\r\n:0\r\n",
             "*3\r\n$1\r\n0\r\n$0\r\n\r\n:-1\r\n", "*3\r\n$1\r\n0\r\n$0\r\n\r\n$1\r\n0\r\n",
             "*2\r\n$1\r\n0\r\n$0\r\n\r\n", "*4\r\n$1\r\n0\r\n$0\r\n\r\n:0\r\n:0\r\n");
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        if (page_of("0", pages[i], 0).vote != REDLOCK_VOTE_UNKNOWN) {
            fail_msg("accepted: %s", pages[i]);
        }
    }
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        if (answer_of(replies[i]).vote != REDLOCK_VOTE_UNKNOWN) {
            fail_msg("accepted: %s", replies[i]);
        }
    }
    /* A control: the numbers at their ends. */
    assert_is(page_of("18446744073709551615", "1 1 9007199254740991 -1 0 ab1", 0).vote, REDLOCK_VOTE_UNKNOWN);
    assert_is(page_of("18446744073709551615", "1 1 9007199254740991 -1 9007199254740991 ab", 0).vote,
              REDLOCK_VOTE_GRANTED);
    answer_of(NULL);
}
