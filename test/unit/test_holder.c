/* The holder's text: which tokens have one, how the group writes it, and who reads it. */
#include "base/holder.h"
#include "group_kit.h"

#define DIGITS  "00112233445566778899aabbccddeeff"
#define TICKET  "000651a2b3c4d5e6"
#define EARLIER "0000000000000001" DIGITS

static const struct group_setup named = {.node_count = 3, .config = {.holder = "web-3:4711"}};

/* A text of this size: each byte that is allowed, from '!' on. */
static const char *text_of(size_t size, char text[REDLOCK_HOLDER_SIZE_MAX + 2]) {
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)('!' + (i + size) % ('~' - '!' + 1));
    }
    text[size] = '\0';
    return text;
}

TEST(only_our_own_tokens_have_a_text) {
    static const struct {
        const char *token, *text;
    } rows[] =
        LIST({DIGITS "@web-3:4711", "web-3:4711"}, {TICKET DIGITS "@web-3:4711", "web-3:4711"}, {DIGITS "@a@b", "a@b"},
             {DIGITS "@@", "@"}, {DIGITS "@!~", "!~"}, {DIGITS, ""}, {TICKET DIGITS, ""}, {DIGITS "@", ""},
             {TICKET DIGITS "@", ""}, {DIGITS " web", ""}, {DIGITS "web", ""}, {DIGITS "@two words", ""},
             {DIGITS "@web\x1b[31m", ""}, {DIGITS "@web\x7f", ""}, {DIGITS "@w\xc3\xbc", ""}, {TICKET "@web", ""},
             {"00112233445566778899aabbccddeef@web", ""}, {"00112233445566778899AABBCCDDEEFF@web", ""},
             {"g0112233445566778899aabbccddeeff@web", "web"}, {"v0112233445566778899aabbccddeeff@web", "web"},
             {"G0112233445566778899aabbccddeeff@web", "web"}, {"V0112233445566778899aabbccddeeff@web", "web"},
             {"w0112233445566778899aabbccddeeff@web", ""}, {"F0112233445566778899aabbccddeeff@web", ""},
             {"W0112233445566778899aabbccddeeff@web", ""}, {"gg112233445566778899aabbccddeeff@web", ""},
             {"g" TICKET DIGITS "@web", ""}, {"/0112233445566778899aabbccddeeff@web", ""},
             {":0112233445566778899aabbccddeeff@web", ""}, {"`0112233445566778899aabbccddeeff@web", ""},
             {DIGITS "s@web", "web"}, {TICKET DIGITS "s@web", "web"}, {DIGITS "s", ""}, {DIGITS "s@", ""},
             {"g0112233445566778899aabbccddeeffs@web", "web"}, {DIGITS "ss@web", ""}, {DIGITS "sweb", ""},
             {DIGITS "S@web", ""}, {TICKET "s" DIGITS "@web", ""}, {"a" DIGITS "@web", ""}, {"@web", ""}, {"", ""},
             {NULL, ""});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(redlock_token_holder(rows[i].token), rows[i].text);
    }
    static const char token[] = DIGITS "@web";
    assert_ptr_equal(redlock_token_holder(token), token + sizeof token - sizeof "web");
}

TEST(the_letter_behind_the_digits_says_that_a_token_reads) {
    static const struct {
        const char *token;
        bool reads, is_try, has_ticket;
    } rows[] = LIST({TICKET DIGITS "s", true, false, true}, {TICKET DIGITS "s@web", true, false, true},
                    {"g0112233445566778899aabbccddeeffs", true, true, false},
                    {"V0112233445566778899aabbccddeeffs@web", true, true, false}, {TICKET DIGITS, false, false, true},
                    {TICKET DIGITS "@s", false, false, true}, {"g0112233445566778899aabbccddeeff", false, true, false},
                    {TICKET DIGITS "ss", false, false, false}, {TICKET DIGITS "t", false, false, false},
                    {DIGITS "s", false, false, false}, {"s", false, false, false}, {"", false, false, false});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t size = strlen(rows[i].token);
        assert_int_equal(redlock_holder_reads(rows[i].token, size), rows[i].reads);
        assert_int_equal(redlock_holder_is_try(rows[i].token, size), rows[i].is_try);
        assert_int_equal(redlock_holder_has_ticket(rows[i].token, size), rows[i].has_ticket);
    }
}

TEST(a_longer_text_is_none) {
    char text[REDLOCK_HOLDER_SIZE_MAX + 2], token[REDLOCK_TOKEN_SIZE_MAX + 1];
    for (size_t size = 1; size <= REDLOCK_HOLDER_SIZE_MAX + 1; size++) {
        const char *wanted = text_of(size, text);
        (void)snprintf(token, sizeof token, "%s@%s", TICKET DIGITS, wanted);
        assert_string_equal(redlock_token_holder(token), size <= REDLOCK_HOLDER_SIZE_MAX ? wanted : "");
        assert_string_equal(redlock_token_holder(token + sizeof TICKET - 1),
                            size <= REDLOCK_HOLDER_SIZE_MAX ? wanted : "");
    }
}

/* "<digits>", or "<digits>@<text>". */
static void assert_token(const char *token, size_t digits, const char *text) {
    const size_t letters = redlock_holder_is_try(token, strlen(token));
    assert_int_equal(letters + strspn(token + letters, "0123456789abcdef"), digits);
    assert_int_equal(strlen(token), digits + (text[0] ? 1 + strlen(text) : 0));
    assert_true(token[digits] == (text[0] ? REDLOCK_HOLDER_AT : '\0'));
    assert_string_equal(redlock_token_holder(token), text);
}

/* Any size, in the acquire, the extension and the release; also in a release that is owed. */
TEST(every_request_has_the_whole_token) {
    char text[REDLOCK_HOLDER_SIZE_MAX + 2];
    for (size_t size = 0; size <= REDLOCK_HOLDER_SIZE_MAX; size++) {
        const char *holder = text_of(size, text);
        fake_env_open(&fake, 3, (redlock_manager_options){.holder = holder});
        struct seen seen;
        redlock_lease *lease = take(NULL, &seen);
        const char *token = redlock_lease_token(lease);
        assert_token(token, REDLOCK_TOKEN_DIGITS, holder);
        assert_is(redlock_extend(lease, 1000, NULL, NULL), REDLOCK_OK);
        assert_string_equal(fake_env_waiting(&fake, 1, REDLOCK_OP_EXTEND)->token, token);
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
        char copy[REDLOCK_TOKEN_SIZE_MAX + 1];
        strcpy(copy, token);
        assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
        assert_string_equal(fake_env_waiting(&fake, 2, REDLOCK_OP_RELEASE)->token, copy);
        /* The lease ends, and the release is owed. */
        fake_env_answer_all(&fake, REDLOCK_VOTE_UNKNOWN);
        redlock_group_ready_changed(fake.group, 2, true);
        assert_string_equal(fake_env_waiting(&fake, 2, REDLOCK_OP_RELEASE)->token, copy);
        redlock_group_ready_changed(fake.group, 0, true);
        redlock_group_ready_changed(fake.group, 1, true);
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
        assert_owed(0, 0);
        close_group(NULL);
    }
}

GROUP_TEST(attempts_differ_in_their_digits, named) {
    redlock_lease *first = take(NULL, &seen), *second = take(NULL, &seen);
    assert_memory_not_equal(redlock_lease_token(first), redlock_lease_token(second), REDLOCK_TOKEN_DIGITS);
    assert_token(redlock_lease_token(first), REDLOCK_TOKEN_DIGITS, "web-3:4711");
    assert_token(redlock_lease_token(second), REDLOCK_TOKEN_DIGITS, "web-3:4711");
    give_back(first);
    give_back(second);
}

/* The token of another holder, or of an older version, stays as it is. */
GROUP_TEST(an_adopted_token_gets_no_text, named) {
    static const char *const tokens[] = {"t", DIGITS, DIGITS "@db-1:7", TICKET DIGITS "@x"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        redlock_lease *lease;
        assert_is(redlock_group_adopt(fake.group, "r", tokens[i], NULL, &lease), REDLOCK_OK);
        assert_string_equal(redlock_lease_token(lease), tokens[i]);
        assert_is(redlock_release(lease, NULL, NULL), REDLOCK_OK);
        assert_string_equal(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE)->token, tokens[i]);
        fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
    }
}

/* Asks for the lock "r", which this token has on all nodes, and takes a place in the queues. */
static void queue_behind(const char *holder, int64_t wait_ms, struct seen *seen) {
    redlock_acquire_options options = default_options();
    options.wait_timeout_ms = wait_ms;
    acquire(&options, seen);
    for (unsigned i = 0; i < 3; i++) {
        assert_token(fake_env_waiting(&fake, i, REDLOCK_OP_ACQUIRE)->token, REDLOCK_TOKEN_DIGITS, "web-3:4711");
        fake_env_answer(&fake, i, REDLOCK_OP_ACQUIRE, REDLOCK_VOTE_DENIED);
    }
    for (unsigned i = 0; i < 3; i++) {
        fake_env_answer(&fake, i, REDLOCK_OP_RELEASE, REDLOCK_VOTE_DENIED);
        assert_token(fake_env_waiting(&fake, i, REDLOCK_OP_WAIT)->token, REDLOCK_TICKET_DIGITS + REDLOCK_TOKEN_DIGITS,
                     "web-3:4711");
        fake_env_queue(&fake, i, holder, 0);
    }
}

/* The text must not hide the ticket. Else a holder that hands over would look like another
 * library, and be polled. */
TEST(a_ticket_is_read_before_a_text) {
    static const struct {
        const char *holder;
        bool polled;
    } rows[] = {{EARLIER, false},
                {EARLIER "@a", false},
                {EARLIER "@0123456789012345678901234567890123456789012345678901234567890123", false},
                {"0000000000000000" DIGITS "@a", false}, /* a try from before the mark */
                {"g0112233445566778899aabbccddeeff@a", false},
                {DIGITS "@a", true},
                {EARLIER "a", true},
                {EARLIER "+a", true},
                {"another library's", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct seen seen;
        fake_env_open(&fake, 3, named.config);
        queue_behind(rows[i].holder, 60000, &seen);
        fake_env_pass_ms(&fake, 200);
        if ((statistics().polls > 0) != rows[i].polled) {
            fail_msg("%s: polled %d times", rows[i].holder, (int)statistics().polls);
        }
        close_group(NULL);
    }
}

/* Only the digits are compared: the texts of two tokens say nothing about who came first. */
TEST(a_text_changes_no_order) {
    static const struct {
        const char *holder;
        uint64_t passed_over;
    } rows[] = {{EARLIER "@~", 0}, {EARLIER, 0}, {"00ffffffffffffff" DIGITS "@!", 1}, {"00ffffffffffffff" DIGITS, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct seen seen;
        fake_env_open(&fake, 3, named.config);
        queue_behind(rows[i].holder, 100, &seen);
        fake_env_pass_ms(&fake, 101);
        assert_is(seen.code, REDLOCK_ERR_CONTENDED);
        assert_int_equal(seen.passed_over, rows[i].passed_over);
        close_group(NULL);
    }
}

/* A push names the whole token. */
GROUP_TEST(a_push_for_another_text_is_not_ours, named) {
    queue_behind(EARLIER "@a", 60000, &seen);
    struct fake_sent wait = {0};
    for (unsigned i = 0; i < fake.sent_count; i++) {
        if (fake.sent[i].operation == REDLOCK_OP_WAIT && fake.sent[i].node == 0) {
            wait = fake.sent[i];
        }
    }
    wait.token[strlen(wait.token) - 1] = '2';
    fake_env_push(&fake, &wait);
    assert_null(fake_env_waiting(&fake, 0, REDLOCK_OP_RELEASE));
    fake_env_answer_all(&fake, REDLOCK_VOTE_GRANTED);
}

TEST(the_reason_names_the_holder) {
    struct redlock_text *named_text = redlock_holder_queued(EARLIER "@a", sizeof EARLIER "@a" - 1);
    struct redlock_text *other = redlock_holder_queued(EARLIER, sizeof EARLIER - 1);
    struct redlock_text *hostile = redlock_holder_queued(EARLIER "@\x1b[2J", sizeof EARLIER "@\x1b[2J" - 1);
    assert_string_equal(redlock_text_string(named_text), "queued behind a");
    assert_string_equal(redlock_holder_of_text(named_text), "a");
    assert_is(redlock_text_cause(named_text), REDLOCK_CAUSE_HELD);
    assert_string_equal(redlock_text_string(other), "queued behind another token");
    assert_string_equal(redlock_holder_of_text(other), "");
    assert_ptr_equal(hostile, other);
    assert_string_equal(redlock_holder_of_text(NULL), "");
    redlock_text_drop(named_text);
    /* The bytes of a reply are not terminated. */
    struct redlock_text *cut = redlock_holder_queued(EARLIER "@abc", sizeof EARLIER "@ab" - 1);
    assert_string_equal(redlock_holder_of_text(cut), "ab");
    redlock_text_drop(cut);
    struct redlock_text *held = redlock_holder_held(EARLIER "@abc", sizeof EARLIER "@ab" - 1);
    assert_string_equal(redlock_text_string(held), "held by ab");
    assert_string_equal(redlock_holder_of_text(held), "ab");
    redlock_text_drop(held);
    assert_ptr_equal(redlock_holder_held(EARLIER, sizeof EARLIER - 1), &redlock_holder_other);
    assert_string_equal(redlock_holder_of_text(redlock_holder_held("", 0)), "");
}
