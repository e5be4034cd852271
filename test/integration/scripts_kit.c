/* One real server, and the bytes that the library sends to it. */
#include "scripts_kit.h"

#include <sys/socket.h>

#include "core/fence.h"

#define PASSWORD "admin-geheim"

static struct servers servers;
struct server *server;
struct raw line;
static struct redlock_reader *reader;
static char text[512]; /* of the last answer */

const char *say(const char *command, const char *key) {
    return server_ask(server, command, key);
}

struct redlock_message message_of(enum redlock_operation operation, uint64_t fence) {
    static const struct redlock_fence_keys keys = {.suffix = ":fence", .suffix_size = 6};
    static uint16_t room[16];
    return (struct redlock_message){.operation = operation,
                                    .target = redlock_target_make(room, "", 0, "door", 4),
                                    .token = OURS,
                                    .token_size = 32,
                                    .ttl_ms = TTL_MS,
                                    .fence = fence,
                                    .fence_keys = &keys,
                                    .wait_suffix = REDLOCK_WAIT_SUFFIX};
}

struct redlock_answer ask(const struct redlock_message *message) {
    char bytes[REDLOCK_WIRE_SIZE_MAX];
    const struct redlock_reply *reply;
    struct redlock_answer answer;
    unsigned kind;
    enum redlock_read got;
    size_t size = redlock_wire_format(message, bytes, &kind);
    assert_int_equal(send(line.fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
    while ((got = redlock_reader_next(reader, &reply)) == REDLOCK_READ_MORE) {
        ssize_t came = recv(line.fd, bytes, sizeof bytes, 0);
        assert_true(came > 0);
        assert_true(redlock_reader_feed(reader, bytes, (size_t)came));
    }
    assert_is(got, REDLOCK_READ_REPLY);
    redlock_wire_answer(kind, reply, NULL, &answer);
    (void)snprintf(text, sizeof text, "%s", redlock_text_string(answer.text));
    redlock_text_drop(answer.text);
    answer.text = NULL;
    return answer;
}

void assert_says(const char *words) {
    assert_contains(text, words);
}

/* A vote, and what it says of the counter. */
void assert_answer(const struct redlock_message *message, redlock_vote_kind vote, bool fenced, bool accepted,
                   uint64_t counter) {
    struct redlock_answer answer = ask(message);
    if (answer.vote != vote) {
        fail_msg("vote %s, not %s: %s", redlock_vote_name(answer.vote), redlock_vote_name(vote), text);
    }
    assert_int_equal(answer.fenced, fenced);
    assert_int_equal(answer.accepted, accepted);
    assert_true(answer.counter == counter);
    assert_int_equal(answer.clock.server_us != 0,
                     message->timed && (vote == REDLOCK_VOTE_GRANTED || vote == REDLOCK_VOTE_DENIED));
}

void assert_granted(const struct redlock_message *message) {
    const bool fenced =
        message->operation == REDLOCK_OP_FENCE || (message->operation == REDLOCK_OP_ACQUIRE && message->fence != 0);
    assert_answer(message, REDLOCK_VOTE_GRANTED, fenced, fenced, 0);
}

void assert_denied(const struct redlock_message *message, const char *words) {
    assert_answer(message, REDLOCK_VOTE_DENIED, false, false, 0);
    assert_says(words);
}

/* An error reply: nothing of it may have been applied (R4). */
void assert_failed(const struct redlock_message *message, const char *words) {
    assert_answer(message, REDLOCK_VOTE_FAILED, false, false, 0);
    assert_says(words);
}

void assert_value(const char *key, const char *value) {
    assert_string_equal(say("GET", key), value);
}

void assert_counter(uint64_t number) {
    char digits[REDLOCK_FENCE_DIGITS + 1] = "";
    redlock_fence_format(number, digits);
    assert_value("door:fence", digits);
}

void set_counter(uint64_t number) {
    char digits[REDLOCK_FENCE_DIGITS + 1] = "";
    redlock_fence_format(number, digits);
    assert_string_equal(server_ask(server, "SET", "door:fence", digits), "OK");
}

void lock_as(const char *token) {
    assert_string_equal(server_ask(server, "SET", "door", token, "PX", "600000"), "OK");
}

void unlock(void) {
    (void)say("DEL", "door");
}

int64_t server_now_us(void) {
    long long seconds, microseconds;
    assert_int_equal(sscanf(server_ask(server, "TIME"), "%lld\n%lld", &seconds, &microseconds), 2);
    return (int64_t)seconds * 1000000 + microseconds;
}

static const struct {
    bool by_source, timed;
} forms[FORMS] = {{false, false}, {true, false}, {false, true}, {true, true}};

void take_form(struct redlock_message *message, size_t index) {
    message->by_source = forms[index].by_source;
    message->timed = forms[index].timed && message->operation != REDLOCK_OP_FENCE;
}

int scripts_begin(UNUSED void **state) {
    static const struct server_options options = {
        .password = PASSWORD, .no_default_user = true, .config = "user all on >geheim ~* +@all\n"};
    servers_start(&servers, 1, &options);
    server = &servers.at[0];
    return 0;
}

int scripts_end(UNUSED void **state) {
    servers_stop(&servers);
    return 0;
}

int scripts_setup(UNUSED void **state) {
    servers_reset(&servers);
    reader = redlock_reader_new();
    if (reader == NULL || !raw_open_tcp(&line, "127.0.0.1", server->port)) {
        return -1;
    }
    for (int i = 0; i < REDLOCK_SCRIPT_COUNT; i++) {
        (void)server_ask(server, "SCRIPT", "LOAD", redlock_script_get((enum redlock_script_id)i)->source);
    }
    return strcmp(raw_ask(&line, "AUTH", "all", "geheim"), "OK");
}

int scripts_teardown(UNUSED void **state) {
    redlock_reader_delete(reader);
    raw_close(&line);
    return 0;
}

void start_anew(void) {
    servers_reset(&servers);
}
