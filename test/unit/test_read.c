/* The vote in every reply that a request can and cannot get. */
#include "kinds.h"
#include "test.h"
#include "wire/error.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static const char *password;     /* of the node that answers; NULL for none */
static enum redlock_cause cause; /* of the last text */

/* What is told without an answer: a vote of these kinds that says nothing else. */
static bool is_grant_alone(unsigned kind, const struct redlock_answer *answer) {
    return (kind == SET || kind == NAMED || kind == EXTEND || kind == RELEASE || kind == DELETING) &&
           answer->vote == REDLOCK_VOTE_GRANTED && answer->again == REDLOCK_AGAIN_NOT && !answer->fenced &&
           !answer->handed_over && answer->named == REDLOCK_NAMED_NOT && answer->counter == 0 && answer->text == NULL &&
           answer->clock.server_us == 0;
}

/* The vote that these bytes make; its text goes to a buffer. */
static struct redlock_answer vote_of(unsigned kind, const char *bytes, char text[512]) {
    struct redlock_reader *reader = redlock_reader_new();
    const struct redlock_reply *reply;
    struct redlock_answer answer;
    memset(&answer, 1, sizeof answer); /* what the reader leaves out, callers would take for true */
    assert_non_null(reader);
    assert_true(redlock_reader_feed(reader, bytes, strlen(bytes)));
    assert_is(redlock_reader_next(reader, &reply), REDLOCK_READ_REPLY);
    redlock_wire_answer(kind, reply, password, &answer);
    assert_int_equal(redlock_wire_grants(kind, &reply->value), is_grant_alone(kind, &answer));
    (void)snprintf(text, 512, "%s", redlock_text_string(answer.text));
    cause = redlock_text_cause(answer.text);
    redlock_text_drop(answer.text);
    if (kind == WAITING && answer.vote == REDLOCK_VOTE_DENIED && answer.holder != NULL) {
        const size_t size = strlen(text);
        (void)snprintf(text + size, 512 - size, ": %.*s", (int)answer.holder_size, answer.holder);
    }
    if (kind == INSPECT && answer.vote == REDLOCK_VOTE_GRANTED) {
        (void)snprintf(text, 512, "%.*s", (int)answer.holder_size, answer.holder);
    }
    redlock_reader_delete(reader);
    return answer;
}

struct row {
    unsigned kind;
    const char *bytes;
    redlock_vote_kind vote;
    const char *text;
};

TEST(each_reply_makes_its_vote) {
    static const struct row rows[] = {
        {SET, "+OK\r\n", REDLOCK_VOTE_GRANTED, ""},
        {SET, "$-1\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {SET, "*-1\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {SET, "-OOM command not allowed\r\n", REDLOCK_VOTE_FAILED, "OOM command not allowed"},
        {SET, "-\r\n", REDLOCK_VOTE_FAILED, "an error without a text"},
        {NAMED, "$-1\r\n", REDLOCK_VOTE_GRANTED, ""},
        {NAMED, "$1\r\na\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {NAMED, "$34\r\n" TOKEN "@a\r\n", REDLOCK_VOTE_DENIED, "held by a"},
        {NAMED, "-WRONGTYPE Operation against a key\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {NAMED, "-OOM command not allowed\r\n", REDLOCK_VOTE_FAILED, "OOM command not allowed"},
        {HEAL, "+OK\r\n", REDLOCK_VOTE_GRANTED, ""},
        {HEAL, "$-1\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {EXTEND, ":1\r\n", REDLOCK_VOTE_GRANTED, ""},
        {EXTEND, ":0\r\n", REDLOCK_VOTE_DENIED, "the key is missing"},
        {EXTEND, ":-1\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {RELEASE, ":1\r\n", REDLOCK_VOTE_GRANTED, ""},
        {RELEASE, ":0\r\n", REDLOCK_VOTE_DENIED, "the key is missing"},
        {RELEASE, ":-1\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {RELEASE, ":2\r\n", REDLOCK_VOTE_GRANTED, ""},
        {RELEASE, "-READONLY no\x1b[2J\r\n", REDLOCK_VOTE_FAILED, "READONLY no?[2J"},
        {DELETING, ":1\r\n", REDLOCK_VOTE_GRANTED, ""},
        {INSPECT, "*4\r\n$3\r\nabc\r\n:99\r\n:0\r\n:-1\r\n", REDLOCK_VOTE_GRANTED, "abc"},
        {INSPECT, "*4\r\n$-1\r\n:-2\r\n:3\r\n:2100\r\n", REDLOCK_VOTE_DENIED, ""},
        {INSPECT, "*5\r\n$-1\r\n:-2\r\n:0\r\n:-1\r\n$11\r\nOOM full up\r\n", REDLOCK_VOTE_DENIED, "OOM full up"},
        {INSPECT, "*5\r\n$-1\r\n:-2\r\n:0\r\n:-1\r\n$9\r\nNOPERM no\r\n", REDLOCK_VOTE_DENIED, ""},
        {TIMED, "-NOPERM no TIME\r\n", REDLOCK_VOTE_FAILED, "NOPERM no TIME"},
        {FENCING, ":0\r\n", REDLOCK_VOTE_DENIED, "the key is missing"},
        {FENCING, ":-1\r\n", REDLOCK_VOTE_DENIED, "held under another token"},
        {FENCING, "-ERR the fencing token is over an hour ahead\r\n", REDLOCK_VOTE_FAILED,
         "ERR the fencing token is over an hour ahead"},
    };
    char text[512];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct redlock_answer answer = vote_of(rows[i].kind, rows[i].bytes, text);
        assert_int_equal(answer.vote, rows[i].vote);
        assert_string_equal(text, rows[i].text);
        assert_false(answer.again != REDLOCK_AGAIN_NOT || answer.fenced || answer.accepted);
        assert_int_equal(answer.handed_over, rows[i].kind == RELEASE && strcmp(rows[i].bytes, ":2\r\n") == 0);
        assert_true(answer.counter == 0 && answer.clock.server_us == 0);
    }
    assert_int_equal(vote_of(INSPECT, "*4\r\n$1\r\na\r\n:-1\r\n:-1\r\n:-1\r\n", text).holder_ttl_ms, -1);
    /* What callers multiply and add must not overflow, and JSON readers must not round it. */
    assert_int_equal(vote_of(INSPECT, "*4\r\n$1\r\na\r\n:9223372036854775807\r\n:0\r\n:-1\r\n", text).holder_ttl_ms,
                     INT64_C(9007199254740991));
    const struct redlock_answer free_for_waiters = vote_of(INSPECT, "*4\r\n$-1\r\n:-2\r\n:3\r\n:2100\r\n", text);
    assert_int_equal(free_for_waiters.waiters, 3);
    assert_int_equal(free_for_waiters.waited_ms, 2100);
    const struct redlock_answer mute = vote_of(INSPECT, "*4\r\n$1\r\na\r\n:5\r\n:-1\r\n:-1\r\n", text);
    assert_int_equal(mute.waiters, -1);
    assert_int_equal(mute.waited_ms, -1);
}

#define COUNTER   "$20\r\n00000000000000000042\r\n"
#define NO_NUMBER "$-1\r\n"
#define A_TIME    "$10\r\n1763791726\r\n$5\r\n50413\r\n"
#define TIME_US   INT64_C(1763791726050413)

#define GRANTED                    "*6\r\n:1\r\n$-1\r\n:0\r\n:0\r\n" A_TIME
#define QUEUED(holder, pttl, rank) "*6\r\n:0\r\n" holder ":" pttl "\r\n:" rank "\r\n" A_TIME

/* Of an INSPECT. */
#define READ_BY(holder, count, names) "*6\r\n" holder ":1\r\n:0\r\n:-1\r\n" count "\r\n" names

struct told {
    unsigned kind;
    const char *bytes;
    redlock_vote_kind vote;
    bool fenced, accepted;
    uint64_t counter;
    int64_t server_us;
};

TEST(each_reply_tells_of_counter_and_clock) {
    static const struct told rows[] = {
        {WAITING, GRANTED, REDLOCK_VOTE_GRANTED, false, false, 0, TIME_US},
        {WAITING, QUEUED("$1\r\na\r\n", "-1", "3"), REDLOCK_VOTE_DENIED, false, false, 0, TIME_US},
        {WAITING, QUEUED(NO_NUMBER, "-2", "0"), REDLOCK_VOTE_DENIED, false, false, 0, TIME_US},
        {FENCED, ":1\r\n", REDLOCK_VOTE_GRANTED, true, true, 0, 0},
        {FENCED, "*2\r\n:2\r\n" COUNTER, REDLOCK_VOTE_GRANTED, true, false, 42, 0},
        {FENCED, "*2\r\n:0\r\n" COUNTER, REDLOCK_VOTE_DENIED, true, false, 42, 0},
        {FENCED, "*2\r\n:0\r\n" NO_NUMBER, REDLOCK_VOTE_DENIED, false, false, 0, 0},
        {TIMED, "*4\r\n:1\r\n" NO_NUMBER A_TIME, REDLOCK_VOTE_GRANTED, false, false, 0, TIME_US},
        {TIMED, "*4\r\n:0\r\n" NO_NUMBER A_TIME, REDLOCK_VOTE_DENIED, false, false, 0, TIME_US},
        {BOTH, "*4\r\n:1\r\n" NO_NUMBER A_TIME, REDLOCK_VOTE_GRANTED, true, true, 0, TIME_US},
        {BOTH, "*4\r\n:2\r\n" COUNTER A_TIME, REDLOCK_VOTE_GRANTED, true, false, 42, TIME_US},
        {BOTH, "*4\r\n:0\r\n" COUNTER A_TIME, REDLOCK_VOTE_DENIED, true, false, 42, TIME_US},
        {BOTH, "*4\r\n:0\r\n" NO_NUMBER A_TIME, REDLOCK_VOTE_DENIED, false, false, 0, TIME_US},
        {FENCED, "*2\r\n:2\r\n$20\r\n09223372036854775807\r\n", REDLOCK_VOTE_GRANTED, true, false, INT64_MAX, 0},
        {FENCING, ":1\r\n", REDLOCK_VOTE_GRANTED, true, true, 0, 0},
        {FENCING, "*2\r\n:2\r\n" COUNTER, REDLOCK_VOTE_DENIED, true, false, 42, 0},
        {EXTENDED, "*4\r\n:1\r\n" NO_NUMBER A_TIME, REDLOCK_VOTE_GRANTED, false, false, 0, TIME_US},
        {EXTENDED, "*4\r\n:0\r\n" NO_NUMBER A_TIME, REDLOCK_VOTE_DENIED, false, false, 0, TIME_US},
        {EXTENDED, "*4\r\n:-1\r\n" NO_NUMBER A_TIME, REDLOCK_VOTE_DENIED, false, false, 0, TIME_US},
        {TIME, "*2\r\n" A_TIME, REDLOCK_VOTE_GRANTED, false, false, 0, TIME_US},
        {READ, ":1\r\n", REDLOCK_VOTE_GRANTED, false, false, 0, 0},
        {READ_TIMED, "*4\r\n:1\r\n" NO_NUMBER A_TIME, REDLOCK_VOTE_GRANTED, false, false, 0, TIME_US},
        {READ_FENCED, "*2\r\n:1\r\n" COUNTER, REDLOCK_VOTE_GRANTED, true, false, 42, 0},
        {READ_FENCED, "*2\r\n:1\r\n" NO_NUMBER, REDLOCK_VOTE_GRANTED, true, false, 0, 0},
        {READ_FENCED, "*2\r\n:-1\r\n" NO_NUMBER, REDLOCK_VOTE_DENIED, false, false, 0, 0},
        {READ_BOTH, "*4\r\n:0\r\n" COUNTER A_TIME, REDLOCK_VOTE_DENIED, true, false, 42, TIME_US},
        {READ_ON, ":0\r\n", REDLOCK_VOTE_DENIED, false, false, 0, 0},
        {READ_ON_AT, "*4\r\n:1\r\n" NO_NUMBER A_TIME, REDLOCK_VOTE_GRANTED, false, false, 0, TIME_US},
        {READ_AGAIN, ":1\r\n", REDLOCK_VOTE_GRANTED, false, false, 0, 0},
        {TIME, "*2\r\n$10\r\n9000000000\r\n$6\r\n999999\r\n", REDLOCK_VOTE_GRANTED, false, false, 0,
         INT64_C(9000000000999999)},
        {TIME, "*2\r\n$1\r\n1\r\n$1\r\n0\r\n", REDLOCK_VOTE_GRANTED, false, false, 0, 1000000},
    };
    char text[512];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct told *row = &rows[i];
        struct redlock_answer answer = vote_of(row->kind, row->bytes, text);
        assert_int_equal(answer.vote, row->vote);
        assert_int_equal(answer.fenced, row->fenced);
        assert_int_equal(answer.accepted, row->accepted);
        assert_true(answer.counter == row->counter && answer.clock.server_us == row->server_us);
    }
    (void)vote_of(FENCING, "*2\r\n:2\r\n" COUNTER, text);
    assert_string_equal(text, "its fencing counter is not below the token");
    (void)vote_of(BOTH, "*4\r\n:0\r\n" COUNTER A_TIME, text);
    assert_string_equal(text, "held under another token");
    (void)vote_of(EXTENDED, "*4\r\n:0\r\n" NO_NUMBER A_TIME, text);
    assert_string_equal(text, "the key is missing");
    (void)vote_of(READ_ON, ":0\r\n", text);
    assert_string_equal(text, "the key is missing");
    (void)vote_of(READ, ":0\r\n", text);
    assert_string_equal(text, "others wait for it");
    (void)vote_of(READ, ":-1\r\n", text);
    assert_string_equal(text, "held under another token");
}

TEST(a_release_says_whether_it_handed_over) {
    char text[512];
    assert_true(vote_of(RELEASE, ":2\r\n", text).handed_over);
    assert_false(vote_of(RELEASE, ":1\r\n", text).handed_over);
    assert_false(vote_of(RELEASE, "*1\r\n:2\r\n", text).handed_over);
}

TEST(a_wait_says_who_is_before_us) {
    char text[512];
    struct redlock_answer answer = vote_of(WAITING, QUEUED("$3\r\na b\r\n", "1234", "4294967295"), text);
    assert_string_equal(text, "queued behind another token: a b");
    assert_true(answer.holder_ttl_ms == 1234 && answer.rank == UINT32_MAX);
    answer = vote_of(WAITING, QUEUED("$0\r\n\r\n", "9223372036854775807", "2"), text);
    assert_string_equal(text, "queued behind another token: ");
    assert_true(answer.holder_ttl_ms == INT64_C(9007199254740991) && answer.rank == 2);
    answer = vote_of(WAITING, QUEUED(NO_NUMBER, "-2", "1"), text);
    assert_string_equal(text, "queued for a free lock");
    assert_true(answer.holder == NULL && answer.holder_size == 0 && answer.holder_ttl_ms == -2 && answer.rank == 1);
    answer = vote_of(WAITING, QUEUED(NO_NUMBER, "50", "1"), text); /* left free for so long */
    assert_string_equal(text, "queued for a free lock");
    assert_true(answer.holder == NULL && answer.holder_ttl_ms == 50 && answer.rank == 1);
}

TEST(a_wait_says_who_reads) {
    char text[512];
    struct redlock_answer answer = vote_of(WAITING, "*6\r\n:2\r\n$1\r\na\r\n:7\r\n:3\r\n" A_TIME, text);
    assert_string_equal(text, "queued behind another token: a");
    assert_true(!answer.ahead && answer.holder_ttl_ms == 7 && answer.rank == 3);
    answer = vote_of(WAITING, "*6\r\n:3\r\n$1\r\na\r\n:7\r\n:3\r\n" A_TIME, text);
    assert_string_equal(text, "queued behind another token: a");
    assert_true(answer.ahead && answer.rank == 3);
    answer = vote_of(WAITING, "*6\r\n:2\r\n$-1\r\n:7\r\n:3\r\n" A_TIME, text);
    assert_string_equal(text, "queued beside others who read");
    assert_true(!answer.ahead && answer.holder == NULL && answer.holder_size == 0 && answer.holder_ttl_ms == 7);
    assert_false(vote_of(WAITING, QUEUED("$1\r\na\r\n", "5", "0"), text).ahead);
    assert_int_equal(vote_of(INSPECT, "*6\r\n$1\r\na\r\n:1\r\n:0\r\n:-1\r\n:3\r\n$0\r\n\r\n", text).readers, 3);
    assert_int_equal(vote_of(INSPECT, "*4\r\n$1\r\na\r\n:1\r\n:0\r\n:-1\r\n", text).readers, 0);
}

static bool is_one_of(unsigned kind, const unsigned *list) {
    for (; *list != 0; list++) {
        if (*list == kind) {
            return true;
        }
    }
    return false;
}

static void assert_take(const char *bytes, redlock_vote_kind vote, const char *expected) {
    char text[512];
    const struct redlock_answer answer = vote_of(TAKE, bytes, text);
    assert_is(answer.vote, vote);
    assert_string_equal(text, expected);
    assert_true(answer.clock.server_us == TIME_US);
}

TEST(a_take_says_which_slots_or_why_none) {
    static const char lock[] = "*4\r\n:-1\r\n$48\r\n0123456789abcdef" TOKEN "\r\n" A_TIME;
    static const char gate[] = "*4\r\n:-1\r\n$49\r\n0123456789abcdef" TOKEN "p\r\n" A_TIME;
    char text[512];
    const struct redlock_answer answer = vote_of(TAKE, "*4\r\n:1\r\n$4\r\n17 3\r\n" A_TIME, text);
    assert_is(answer.vote, REDLOCK_VOTE_GRANTED);
    assert_int_equal(answer.holder_size, 4);
    assert_true(answer.clock.server_us == TIME_US && !answer.fenced && answer.counter == 0);
    assert_take("*4\r\n:0\r\n$-1\r\n" A_TIME, REDLOCK_VOTE_DENIED, "too few slots are free");
    assert_take("*4\r\n:-1\r\n$-1\r\n" A_TIME, REDLOCK_VOTE_DENIED, "others wait at the gate of the slots");
    assert_take(gate, REDLOCK_VOTE_DENIED, "somebody stands at the gate of the slots");
    assert_take(lock, REDLOCK_VOTE_DENIED, "its name is locked: that closes the gate of its slots");
    assert_take("*4\r\n:-1\r\n$8\r\n(a zset)\r\n" A_TIME, REDLOCK_VOTE_DENIED,
                "its name is read, or no lock: it can have no slots");
}

/* R20: never a vote, and never "surely not applied", but for those whose own it is. */
TEST(what_a_message_cannot_get_is_unknown) {
    static const struct {
        const char *bytes;
        unsigned but[12];
    } rows[] = {
        {"+OK\r\n", {SET, HEAL}},
        {"$-1\r\n", {SET, HEAL, NAMED}},
        {":1\r\n", {EXTEND, RELEASE, FENCED, FENCING, DELETING, READ, READ_ON, READ_AGAIN, KEEP, TAKE_AGAIN, GIVE}},
        {":0\r\n", {EXTEND, RELEASE, FENCING, DELETING, READ, READ_ON, READ_AGAIN, KEEP, TAKE_AGAIN, GIVE}},
        {":-1\r\n", {EXTEND, RELEASE, FENCING, READ, READ_ON, READ_AGAIN, KEEP, TAKE_AGAIN, GIVE}},
        {"*2\r\n:0\r\n" COUNTER, {FENCED, READ_FENCED}},
        {"*2\r\n:0\r\n" NO_NUMBER, {FENCED, READ_FENCED}},
        {"*2\r\n:1\r\n" COUNTER, {READ_FENCED}},
        {"*2\r\n:-1\r\n" NO_NUMBER, {READ_FENCED}},
        {"*2\r\n:2\r\n" COUNTER, {FENCED, FENCING}},
        {"*4\r\n:1\r\n" NO_NUMBER A_TIME, {TIMED, BOTH, EXTENDED, READ_TIMED, READ_BOTH, READ_ON_AT, KEEP_AT}},
        {"*4\r\n:0\r\n" NO_NUMBER A_TIME, {TIMED, BOTH, EXTENDED, READ_TIMED, READ_BOTH, READ_ON_AT, KEEP_AT, TAKE}},
        {"*4\r\n:-1\r\n" NO_NUMBER A_TIME, {EXTENDED, READ_TIMED, READ_BOTH, READ_ON_AT, KEEP_AT, TAKE}},
        {"*4\r\n:0\r\n" COUNTER A_TIME, {BOTH, READ_BOTH}},
        {"*4\r\n:1\r\n" COUNTER A_TIME, {READ_BOTH, TAKE}},
        {"*4\r\n:-1\r\n$1\r\na\r\n" A_TIME, {TAKE}},
        {"*4\r\n:0\r\n$1\r\na\r\n" A_TIME, {0}},
        {"*4\r\n:1\r\n:1\r\n" A_TIME, {0}},
        {"*4\r\n:2\r\n" COUNTER A_TIME, {BOTH}},
        {"*2\r\n" A_TIME, {TIME}},
        {"*4\r\n$1\r\na\r\n:1\r\n:0\r\n:-1\r\n", {INSPECT}},
        {"*5\r\n$1\r\na\r\n:1\r\n:0\r\n:-1\r\n:3\r\n", {0}},
        {"*5\r\n$1\r\na\r\n:1\r\n:0\r\n:-1\r\n$3\r\nOOM\r\n", {0}},
        {READ_BY("$1\r\na\r\n", ":3", "$8\r\nr 1 99 a\r\n"), {INSPECT}},
        {READ_BY("$1\r\na\r\n", ":3", "$0\r\n\r\n"), {INSPECT}},
        {READ_BY("$1\r\na\r\n", ":0", "$8\r\nw 1 99 a\r\n"), {INSPECT}},
        {READ_BY("$-1\r\n", ":0", "$8\r\nw 1 99 a\r\n"), {INSPECT}},
        {READ_BY("$1\r\na\r\n", ":-1", "$8\r\nr 1 99 a\r\n"), {0}},
        {READ_BY("$1\r\na\r\n", ":3", "$8\r\nx 1 99 a\r\n"), {0}},
        {READ_BY("$1\r\na\r\n", ":3", "$8\r\nrr1 99 a\r\n"), {0}},
        {READ_BY("$1\r\na\r\n", ":3", "$1\r\nr\r\n"), {0}},
        {READ_BY("$-1\r\n", ":3", "$8\r\nr 1 99 a\r\n"), {0}},
        {READ_BY("$1\r\na\r\n", "$3\r\nOOM", "$8\r\nr 1 99 a\r\n"), {0}},
        {READ_BY("$1\r\na\r\n", ":3", "$-1\r\n"), {0}},
        {READ_BY("$1\r\na\r\n", ":3", "$8\r\nr 2 99 a\r\n"), {0}},
        {READ_BY("$1\r\na\r\n", ":3", "$8\r\nr 0 9 aa\r\n"), {0}},
        {READ_BY("$1\r\na\r\n", ":3", "$8\r\nr 1 -1 a\r\n"), {0}},
        {READ_BY("$1\r\na\r\n", ":3", "$9\r\nr 1 99 aa\r\n"), {0}},
        {"*4\r\n$1\r\na\r\n:-2\r\n:0\r\n:-1\r\n", {0}},
        {"*4\r\n$1\r\na\r\n:-9223372036854775808\r\n:0\r\n:-1\r\n", {0}},
        {"*4\r\n$1\r\na\r\n:1\r\n:-2\r\n:-1\r\n", {0}},
        {"*4\r\n$1\r\na\r\n:1\r\n:0\r\n:-2\r\n", {0}},
        {"*4\r\n$1\r\na\r\n:1\r\n$1\r\n0\r\n:-1\r\n", {0}},
        {"*2\r\n$1\r\na\r\n:1\r\n", {0}},
        {"$2\r\nOK\r\n", {NAMED, NAMED_TWICE}},
        {"+ok\r\n", {0}},
        {"+OKAY\r\n", {0}},
        {"+\r\n", {0}},
        {"+QUEUED\r\n", {0}},
        {":2\r\n", {RELEASE}},
        {":-2\r\n", {0}},
        {":3\r\n", {0}},
        {GRANTED, {WAITING}},
        {QUEUED("$1\r\na\r\n", "0", "0"), {WAITING}},
        {QUEUED("$-1\r\n", "-2", "0"), {WAITING}},
        {"*6\r\n:2\r\n$-1\r\n:5\r\n:0\r\n" A_TIME, {WAITING}},
        {"*6\r\n:2\r\n$1\r\na\r\n:0\r\n:0\r\n" A_TIME, {WAITING}},
        {"*6\r\n:3\r\n$1\r\na\r\n:5\r\n:0\r\n" A_TIME, {WAITING}},
        {":9223372036854775807\r\n", {0}},
        {"*0\r\n", {0}},
        {"*1\r\n:1\r\n", {0}},
        {"*1\r\n*1\r\n:1\r\n", {0}},
        {"*3\r\n$1\r\na\r\n:1\r\n:1\r\n", {0}},
        {"*2\r\n:1\r\n:1\r\n", {0}},
        {"*2\r\n$1\r\na\r\n$1\r\n1\r\n", {0}},
        {"*2\r\n*1\r\n:1\r\n:1\r\n", {0}},
    };
    char text[512];
    for (size_t k = 0; k < KIND_COUNT; k++) {
        const unsigned kind = kinds[k];
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) {
            struct redlock_answer answer = vote_of(kind, rows[j].bytes, text);
            if ((answer.vote == REDLOCK_VOTE_UNKNOWN) == is_one_of(kind, rows[j].but)) {
                fail_msg("%s for %u: %s", rows[j].bytes, kind, text);
            }
            assert_int_equal(strstr(text, "out of protocol") != NULL, answer.vote == REDLOCK_VOTE_UNKNOWN);
        }
    }
}

#define COUNTED(bytes)                  "*2\r\n:2\r\n" bytes
#define TIMED_BY(seconds, microseconds) "*4\r\n:1\r\n$-1\r\n" seconds microseconds

/* Where one thing of an otherwise good array is wrong, nothing of it is believed. */
TEST(an_array_with_a_fault_is_unknown_and_tells_nothing) {
    static const char *const faulty[] = {
        COUNTED("$19\r\n0000000000000000042\r\n"),
        COUNTED("$21\r\n000000000000000000042\r\n"),
        COUNTED("$20\r\n0000000000000000004 \r\n"),
        COUNTED("$20\r\n-0000000000000000042\r\n"),
        COUNTED("$20\r\n+0000000000000000042\r\n"),
        COUNTED("$20\r\n0x000000000000000042\r\n"),
        COUNTED("$20\r\n09223372036854775808\r\n"),
        COUNTED("$20\r\n99999999999999999999\r\n"),
        /* No counter is 0: it was raised to some number. */
        COUNTED("$20\r\n00000000000000000000\r\n"),
        COUNTED("$0\r\n\r\n"),
        COUNTED(":42\r\n"),
        COUNTED("+00000000000000000042\r\n"),
        COUNTED("*0\r\n"),
        COUNTED("*1\r\n$20\r\n00000000000000000042\r\n"),
        COUNTED("-ERR\r\n"),
        COUNTED(NO_NUMBER),
        "*2\r\n:1\r\n" COUNTER,
        "*2\r\n:1\r\n" NO_NUMBER,
        "*2\r\n:3\r\n" COUNTER,
        "*2\r\n:-1\r\n" COUNTER,
        "*2\r\n:9223372036854775807\r\n" COUNTER,
        "*2\r\n$1\r\n2\r\n" COUNTER,
        "*2\r\n$-1\r\n" COUNTER,
        "*2\r\n*0\r\n" COUNTER,
        "*3\r\n:2\r\n" COUNTER ":1\r\n",
        "*3\r\n:2\r\n" COUNTER "$1\r\n1\r\n",
        "*4\r\n:2\r\n" NO_NUMBER A_TIME,
        "*4\r\n:1\r\n" COUNTER A_TIME,
        "*4\r\n:3\r\n" COUNTER A_TIME,
        "*4\r\n:-2\r\n" NO_NUMBER A_TIME,
        "*4\r\n$1\r\n1\r\n" NO_NUMBER A_TIME,
        "*5\r\n:1\r\n" NO_NUMBER A_TIME "$1\r\n1\r\n",
        "*1000\r\n", /* and what comes after it */
        TIMED_BY(":1763791726\r\n", "$1\r\n0\r\n"),
        TIMED_BY("$10\r\n1763791726\r\n", ":0\r\n"),
        TIMED_BY("$-1\r\n", "$1\r\n0\r\n"),
        TIMED_BY("$11\r\n-1763791726\r\n", "$1\r\n0\r\n"),
        TIMED_BY("$2\r\n-1\r\n", "$1\r\n0\r\n"),
        TIMED_BY("$1\r\n0\r\n", "$1\r\n5\r\n"),
        TIMED_BY("$0\r\n\r\n", "$1\r\n5\r\n"),
        TIMED_BY("$1\r\n5\r\n", "$0\r\n\r\n"),
        TIMED_BY("$10\r\n9000000001\r\n", "$1\r\n0\r\n"),
        TIMED_BY("$11\r\n10000000000\r\n", "$1\r\n0\r\n"),
        TIMED_BY("$20\r\n99999999999999999999\r\n", "$1\r\n0\r\n"),
        TIMED_BY("$10\r\n1763791726\r\n", "$7\r\n1000000\r\n"),
        TIMED_BY("$10\r\n1763791726\r\n", "$2\r\n-5\r\n"),
        TIMED_BY("$10\r\n17637917 6\r\n", "$1\r\n5\r\n"),
        TIMED_BY("$10\r\n1763791726\r\n", "$1\r\nx\r\n"),
        TIMED_BY("*0\r\n", "$1\r\n5\r\n"),
        QUEUED("$1\r\na\r\n", "-2", "0"), /* of a lock that is there */
        QUEUED("$1\r\na\r\n", "-9223372036854775808", "0"),
        QUEUED("$1\r\na\r\n", "5", "-1"),
        QUEUED("$1\r\na\r\n", "5", "4294967296"),
        QUEUED("$-1\r\n", "0", "0"), /* of a lock that is free */
        QUEUED("$-1\r\n", "-1", "0"),
        QUEUED("$-1\r\n", "-3", "0"),
        QUEUED(":1\r\n", "5", "0"),
        QUEUED("*0\r\n", "5", "0"),
        "*6\r\n:0\r\n$1\r\na\r\n$1\r\n5\r\n:0\r\n" A_TIME,
        "*6\r\n:0\r\n$1\r\na\r\n:5\r\n$-1\r\n" A_TIME,
        "*6\r\n$1\r\n0\r\n$1\r\na\r\n:5\r\n:0\r\n" A_TIME,
        "*6\r\n:4\r\n$-1\r\n:0\r\n:0\r\n" A_TIME,
        "*6\r\n:3\r\n$-1\r\n:5\r\n:0\r\n" A_TIME, /* nobody is ahead */
        "*6\r\n:2\r\n$-1\r\n:-1\r\n:0\r\n" A_TIME,
        "*6\r\n:2\r\n$1\r\na\r\n:-1\r\n:0\r\n" A_TIME,
        "*6\r\n:3\r\n$1\r\na\r\n:-2\r\n:0\r\n" A_TIME,
        "*6\r\n:2\r\n:1\r\n:5\r\n:0\r\n" A_TIME,
        "*6\r\n:-1\r\n$1\r\na\r\n:5\r\n:0\r\n" A_TIME,
        "*6\r\n:1\r\n$1\r\na\r\n:0\r\n:0\r\n" A_TIME,
        "*6\r\n:1\r\n$-1\r\n:5\r\n:0\r\n" A_TIME,
        "*6\r\n:1\r\n$-1\r\n:0\r\n:1\r\n" A_TIME,
        "*6\r\n:0\r\n$1\r\na\r\n:5\r\n:0\r\n$1\r\n0\r\n$1\r\n0\r\n",
        "*7\r\n:0\r\n$1\r\na\r\n:5\r\n:0\r\n" A_TIME ":1\r\n",
        "*5\r\n:0\r\n$1\r\na\r\n:5\r\n" A_TIME,
    };
    static const unsigned fenced_or_timed[] = {FENCED, TIMED, BOTH, FENCING, EXTENDED, TIME, WAITING};
    char text[512], bytes[16384];
    for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
        size_t size = (size_t)snprintf(bytes, sizeof bytes, "%s", faulty[i]);
        for (int more = 0; strcmp(faulty[i], "*1000\r\n") == 0 && more < 1000; more++) {
            size += (size_t)snprintf(bytes + size, sizeof bytes - size, ":1\r\n");
        }
        for (size_t j = 0; j < sizeof fenced_or_timed / sizeof *fenced_or_timed; j++) {
            struct redlock_answer answer = vote_of(fenced_or_timed[j], bytes, text);
            if (answer.vote != REDLOCK_VOTE_UNKNOWN) {
                fail_msg("%s is a vote for %u", faulty[i], (unsigned)fenced_or_timed[j]);
            }
            assert_contains(text, "out of protocol");
            assert_false(answer.fenced || answer.accepted);
            assert_true(answer.counter == 0 && answer.clock.server_us == 0);
        }
    }
}

TEST(noscript_says_so) {
    char text[512];
    struct redlock_answer answer = vote_of(RELEASE, "-NOSCRIPT No matching script.\r\n", text);
    assert_is(answer.vote, REDLOCK_VOTE_FAILED);
    assert_true(answer.again);
    assert_is(cause, REDLOCK_CAUSE_NOSCRIPT);
}

/* Whatever the error: the script may do what the command cannot. */
TEST(a_refused_command_asks_for_the_script) {
    static const char *const errors[] = LIST("-ERR unknown command 'DELEX'\r\n", "-NOPERM no\r\n", "-OOM no\r\n",
                                             "-WRONGTYPE no\r\n", "-ERR syntax error\r\n", "-BUSY no\r\n");
    char text[512];
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        const struct redlock_answer answer = vote_of(DELETING, errors[i], text);
        assert_is(answer.vote, REDLOCK_VOTE_FAILED);
        assert_true(answer.again);
        assert_false(vote_of(RELEASE, errors[i], text).again);
    }
    assert_false(vote_of(DELETING, ":2\r\n", text).again);
    assert_false(vote_of(DELETING, ":1\r\n", text).again);
}

/* The key may be ours, with the mark of who waits. */
TEST(a_command_that_deleted_nothing_asks_for_the_script) {
    char text[512];
    const struct redlock_answer answer = vote_of(DELETING, ":0\r\n", text);
    assert_is(answer.vote, REDLOCK_VOTE_FAILED);
    assert_is(answer.again, REDLOCK_AGAIN_BY_SCRIPT);
    assert_string_equal(text, "the key is missing, held under another token, or waited for: only the script tells "
                              "which");
}

/* A server that has not the command, or a user that may not run it. A refused key is final: no
 * script could renew the lock. */
TEST(a_refused_name_asks_for_a_plain_set) {
    char text[512];
    assert_true(vote_of(NAMED, "-ERR syntax error\r\n", text).again);
    assert_true(vote_of(NAMED_TWICE, "-NOPERM User u has no permissions to run the 'set' command\r\n", text).again);
    assert_false(vote_of(NAMED_TWICE, "-NOPERM No permissions to access a key\r\n", text).again);
    assert_is(vote_of(NAMED, "-NOPERM No permissions to access a key\r\n", text).vote, REDLOCK_VOTE_FAILED);
    assert_is(cause, REDLOCK_CAUSE_NOPERM);
    assert_contains(text, "No permissions to access a key; this user must be allowed to read and write");
    assert_false(vote_of(NAMED, "-OOM no\r\n", text).again);
    assert_false(vote_of(NAMED, "-ERROR\r\n", text).again);
    assert_false(vote_of(NAMED, "-WRONGTYPE no\r\n", text).again);
    assert_false(vote_of(NAMED, "+OK\r\n", text).again);
    assert_false(vote_of(SET, "-ERR syntax error\r\n", text).again);
}

TEST(a_text_has_its_cause) {
    char text[512];
    (void)vote_of(SET, "-OOM command not allowed\r\n", text);
    assert_is(cause, REDLOCK_CAUSE_OOM);
    (void)vote_of(SET, "-ERR no ROOM\r\n", text);
    assert_is(cause, REDLOCK_CAUSE_SERVER);
    (void)vote_of(SET, ":1\r\n", text);
    assert_is(cause, REDLOCK_CAUSE_NOT_A_NODE);
}

TEST(an_error_quotes_no_arguments_and_is_bounded) {
    char bytes[2000], text[512];
    (void)vote_of(RELEASE, "-ERR unknown command 'EVALSHA', with args beginning with: 'sha' '1' 'res' '" TOKEN "' \r\n",
                  text);
    assert_string_equal(text, "ERR unknown command 'EVALSHA'");
    memset(bytes, 'x', sizeof bytes);
    bytes[0] = '-';
    memcpy(bytes + sizeof bytes - 3, "\r\n", 3);
    (void)vote_of(RELEASE, bytes, text);
    assert_int_equal(strlen(text), REDLOCK_WIRE_ERROR_SIZE - 1);
}

/* Whatever is asked, of whatever length the password, wherever it stands. */
TEST(no_text_quotes_the_password) {
    static const char *const passwords[] = {"geheim", "g", "ge", "a b\x01\xff"};
    char text[512], bytes[600], filler[400];
    memset(filler, 'x', sizeof filler);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const unsigned kind = kinds[i];
        for (size_t k = 0; k < sizeof passwords / sizeof *passwords; k++) {
            for (int before = 0; before < 400; before += 97) { /* also where it would be cut */
                password = passwords[k];
                (void)snprintf(bytes, sizeof bytes, "-ERR %.*s%s no\r\n", before, filler, password);
                const struct redlock_answer answer = vote_of(kind, bytes, text);
                password = NULL;
                assert_is(answer.vote, REDLOCK_VOTE_FAILED);
                assert_string_equal(text, "an error that quotes the password");
            }
        }
    }
    password = "geheim";
    (void)vote_of(RELEASE, "-ERR gehei m\r\n", text);
    assert_string_equal(text, "ERR gehei m");
    password = "";
    (void)vote_of(RELEASE, "-ERR no\r\n", text);
    assert_string_equal(text, "ERR no");
    password = NULL;
}
