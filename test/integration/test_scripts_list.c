/* The script of a listing on a real server: which keys it takes for locks, and what it says of
 * them. */
#include "scripts_kit.h"
#include "wire/page.h"

#define TICKET   "00000000000000aa"
#define COUNTER  "00001700000000000000"
#define KEY_MAX  1024
#define TEXT_MAX 64

/* A page that looks at every key. Its entries are those of the last answer. */
static struct redlock_answer page(bool others) {
    const struct redlock_page wanted = {.pattern = "*", .count = 100000, .others = others};
    struct redlock_message message = message_of(REDLOCK_OP_LIST, 0);
    message.page = &wanted;
    const struct redlock_answer answer = ask(&message);
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    assert_int_equal(answer.cursor, 0);
    return answer;
}

/* How many locks a page names; the last one is *entry. */
static int count(bool others, struct redlock_page_entry *entry) {
    const struct redlock_answer answer = page(others);
    const char *at = answer.holder, *end = answer.holder + answer.holder_size;
    int entries = 0;
    while (redlock_page_next(&at, end, entry)) {
        entries++;
    }
    assert_ptr_equal(at, end);
    return entries;
}

/* The only key of the server is listed: as a token of ours, as somebody else's lock, or not. */
static void check(const char *key, const char *value, bool ends, bool ours, bool others) {
    struct redlock_page_entry entry;
    start_anew();
    assert_string_equal(
        ends ? server_ask(server, "SET", key, value, "PX", "600000") : server_ask(server, "SET", key, value), "OK");
    for (int asks_for_others = 0; asks_for_others <= 1; asks_for_others++) {
        if (count(asks_for_others, &entry) != (asks_for_others ? others : ours)) {
            fail_msg("%.40s with %.70s: listed otherwise", key, value);
        }
        if (asks_for_others ? others : ours) {
            assert_int_equal(entry.key_size, strlen(key));
            assert_memory_equal(entry.key, key, entry.key_size);
            assert_int_equal(entry.token_size, strlen(value));
            assert_memory_equal(entry.token, value, entry.token_size);
            assert_true(entry.waiters == 0 && entry.readers == 0);
            assert_true(ends ? entry.ttl_ms > 0 && entry.ttl_ms <= TTL_MS : entry.ttl_ms == -1);
        }
    }
}

TESTS_WITH(scripts_begin, scripts_end);
#define TRY             "v123456789abcdef0123456789abcdef"
#define LIST_TEST(name) TEST_WITH(name, scripts_setup, scripts_teardown)

LIST_TEST(tokens_of_ours_are_listed) {
    check("door", OURS, true, true, true);
    check("door", OURS, false, true, true); /* somebody took the ttl away */
    check("door", TICKET OURS, true, true, true);
    check("door", OURS "@host:1", true, true, true);
    check("door", TICKET OURS "@!~", true, true, true);
    check("door", TRY, true, true, true);
    check("door", TRY "@host:1", true, true, true);
}

/* As sets are: with these members, which end so much later than now. */
static void add_set(const char *key, const char *first, int64_t first_ms, const char *second, int64_t second_ms,
                    bool ends) {
    char ends_at[2][24];
    (void)snprintf(ends_at[0], sizeof ends_at[0], "%lld", (long long)(server_now_us() / 1000 + first_ms));
    (void)snprintf(ends_at[1], sizeof ends_at[1], "%lld", (long long)(server_now_us() / 1000 + second_ms));
    assert_string_equal(server_ask(server, "ZADD", key, ends_at[0], first, ends_at[1], second), "2");
    assert_string_equal(ends ? server_ask(server, "PEXPIRE", key, "600000") : "1", "1");
}

LIST_TEST(a_lock_that_some_read_is_listed_under_the_lowest_token) {
    struct redlock_page_entry entry;
    static const char later[] = TRY "s@host:1", lowest[] = TICKET OURS "s", ended[] = "0" TICKET THEIRS;
    for (int others = 0; others < 2; others++) {
        start_anew();
        add_set("door", later, 600000, lowest, 500000, true);
        assert_string_equal(server_ask(server, "ZADD", "door", "1", ended), "1");
        assert_int_equal(count(others, &entry), 1);
        assert_int_equal(entry.token_size, strlen(lowest));
        assert_memory_equal(entry.token, lowest, entry.token_size);
        assert_true(entry.ttl_ms > 0 && entry.ttl_ms <= TTL_MS);
        assert_true(entry.waiters == 0 && entry.readers == 2);
        /* A queue is none, nor is a set of others, or one whose readers have gone. */
        start_anew();
        add_set("door:wait", later, 600000, lowest, 500000, true);
        assert_int_equal(count(others, &entry), 0);
        start_anew();
        add_set("door", later, 600000, lowest, 500000, false);
        assert_int_equal(count(others, &entry), 0);
        start_anew();
        add_set("door", later, -1, lowest, -2, true);
        assert_int_equal(count(others, &entry), 0);
        start_anew();
        add_set("door", "x", 600000, "y", 600000, true);
        assert_int_equal(count(others, &entry), 0);
    }
    check("door", TICKET OURS "s", true, true, true); /* an older version served it */
    check("door", OURS "ss", true, false, true);
    check("door", "S" OURS, true, false, true);
}

/* Another library's value of a lock is any string. It has a ttl. */
LIST_TEST(other_strings_are_listed_on_request_if_they_end) {
    static const char *const values[] = {"x",      OURS "0",    TICKET OURS "0", "0123",   OURS "host",
                                         OURS "@", OURS "@a b", "g" TICKET OURS, "w" OURS, TRY OURS};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        check("door", values[i], true, false, true);
        check("door", values[i], false, false, false);
    }
}

LIST_TEST(the_holders_text_has_its_bound) {
    char value[sizeof OURS + 1 + TEXT_MAX + 1] = OURS "@";
    memset(value + sizeof OURS, 't', TEXT_MAX);
    check("door", value, true, true, true);
    value[sizeof OURS + TEXT_MAX] = 't';
    check("door", value, true, false, true);
}

LIST_TEST(what_no_token_and_no_lock_can_be_is_not_listed) {
    char value[130] = "", key[KEY_MAX + 2] = "";
    check("door", "", true, false, false);
    memset(value, 'v', 128);
    check("door", value, true, false, true);
    value[128] = 'v';
    check("door", value, true, false, false);
    memset(key, 'k', KEY_MAX);
    check(key, OURS, true, true, true);
    key[KEY_MAX] = 'k';
    check(key, OURS, true, false, false);
}

LIST_TEST(counters_are_not_taken_for_locks) {
    check("door:fence", COUNTER, true, false, false);
    check("door:fence", OURS, true, true, true); /* a lock of that name */
    check("door:fence", "12a", true, false, true);
    check("door:fences", COUNTER, true, false, true);
}

LIST_TEST(it_says_how_many_wait) {
    struct redlock_page_entry entry;
    lock_as(OURS);
    assert_string_equal(server_ask(server, "ZADD", "door:wait", "1", "a", "2", "b"), "2");
    assert_int_equal(count(true, &entry), 1);
    assert_int_equal(entry.waiters, 0); /* nobody can be told: they are dead */
    (void)say("DEL", "door:wait");
    assert_string_equal(server_ask(server, "SET", "door:wait", "no queue"), "OK");
    assert_int_equal(count(true, &entry), 1);
    assert_int_equal(entry.waiters, -1);
}

/* A page looks at so many of those who wait, whatever the number of queues. Those behind count as
 * living. */
LIST_TEST(a_page_looks_at_so_many_who_wait) {
    static const char fill[] = "for i = 1, 2000 do redis.call('ZADD', KEYS[1], i, i) end return 1";
    struct redlock_page_entry entry;
    int64_t waiters = 0;
    lock_as(OURS);
    assert_string_equal(server_ask(server, "SET", "gate", OURS, "PX", "600000"), "OK");
    assert_string_equal(server_ask(server, "EVAL", fill, "1", "door:wait"), "1");
    assert_string_equal(server_ask(server, "EVAL", fill, "1", "gate:wait"), "1");
    const struct redlock_answer answer = page(false);
    const char *at = answer.holder;
    while (redlock_page_next(&at, answer.holder + answer.holder_size, &entry)) {
        assert_true(entry.waiters == 0 || entry.waiters == 2000);
        waiters += entry.waiters;
    }
    assert_int_equal(waiters, 2000);
}

/* A key of another type is no lock of ours, and no fault. One that may not be read is counted. */
LIST_TEST(keys_that_cannot_be_read_are_counted) {
    struct redlock_page_entry entry;
    assert_string_equal(server_ask(server, "LPUSH", "list", "x"), "1");
    assert_int_equal(page(true).unread, 0);
    lock_as(OURS);
    assert_string_equal(server_ask(server, "ACL", "SETUSER", "all", "resetkeys", "~other*"), "OK");
    assert_int_equal(page(true).unread, 2);
    assert_int_equal(count(true, &entry), 0);
    assert_string_equal(server_ask(server, "ACL", "SETUSER", "all", "~*", "-pttl"), "OK");
    assert_int_equal(page(true).unread, 2);
    assert_string_equal(server_ask(server, "ACL", "SETUSER", "all", "+pttl"), "OK");
    assert_int_equal(count(true, &entry), 1);
}

/* A client takes a reply of 1 MiB: what does not fit is counted. */
LIST_TEST(a_page_has_its_bound) {
    char key[KEY_MAX + 1];
    memset(key, 'k', KEY_MAX);
    key[KEY_MAX] = '\0';
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof key, "%03d", i);
        key[3] = 'k';
        assert_string_equal(server_ask(server, "SET", key, OURS, "PX", "600000"), "OK");
    }
    struct redlock_page_entry entry;
    const struct redlock_answer answer = page(false);
    assert_in_range(answer.holder_size, 1000000 - 2 * KEY_MAX, 1000000);
    assert_in_range(answer.unread, 1, 999);
    assert_int_equal(count(false, &entry) + (int)answer.unread, 1000);
}
