/* The queue of a lock on a real server. */
#include "queue_scripts.h"

struct raw listener;

struct redlock_message message_with(enum redlock_operation operation, const char *token) {
    struct redlock_message message = message_of(operation, 0);
    message.token = token;
    message.token_size = strlen(token);
    return message;
}

struct redlock_answer wait_as(struct wait wait) {
    struct redlock_message message = message_with(REDLOCK_OP_WAIT, wait.token);
    const struct redlock_place place = {.ticket = wait.ticket,
                                        .stale_ms = wait.stale_ms == 0 ? STALE_MS : wait.stale_ms,
                                        .queue_ttl_ms = QUEUE_MS,
                                        .channel = wait.channel == NULL ? CHANNEL : wait.channel,
                                        .id = 9,
                                        .takes = !wait.enters_only};
    message.place = &place;
    message.round = 5;
    message.by_source = wait.by_source;
    const int64_t before_us = server_now_us();
    struct redlock_answer answer = ask(&message);
    if (answer.vote == REDLOCK_VOTE_GRANTED || answer.vote == REDLOCK_VOTE_DENIED) {
        assert_true(answer.clock.server_us >= before_us && answer.clock.server_us <= server_now_us());
    }
    return answer;
}

void assert_taken(struct wait wait) {
    assert_is(wait_as(wait).vote, REDLOCK_VOTE_GRANTED);
    assert_value("door", wait.token);
}

void assert_queued(struct wait wait, uint32_t rank, const char *holder) {
    const struct redlock_answer answer = wait_as(wait);
    assert_is(answer.vote, REDLOCK_VOTE_DENIED);
    assert_int_equal(answer.rank, rank);
    if (holder == NULL) {
        assert_null(answer.holder);
        assert_int_equal(answer.holder_ttl_ms, -2);
        assert_false(server_has_key(server, "door"));
        return;
    }
    assert_int_equal(answer.holder_size, strlen(holder));
    assert_memory_equal(answer.holder, holder, answer.holder_size);
    assert_true(answer.holder_ttl_ms > TTL_MS / 2 && answer.holder_ttl_ms <= TTL_MS);
}

enum released released_by(const struct redlock_message *message) {
    const struct redlock_answer answer = ask(message);
    if (answer.vote == REDLOCK_VOTE_GRANTED) {
        return answer.handed_over ? HANDED_OVER : DELETED;
    }
    assert_is(answer.vote, REDLOCK_VOTE_DENIED);
    return server_has_key(server, "door") ? OTHERS : MISSING;
}

enum released release_with(const char *token, enum redlock_handing handing) {
    struct redlock_message message = message_with(REDLOCK_OP_RELEASE, token);
    message.handing = handing;
    return released_by(&message);
}

enum released release_as(const char *token) {
    return release_with(token, REDLOCK_HAND_OVER);
}

void assert_free(void) {
    assert_false(server_has_key(server, "door"));
}

void queue_add(uint64_t ticket, const char *token, const char *channel, int64_t good_ms) {
    char score[24], entry[128];
    (void)snprintf(score, sizeof score, "%llu", (unsigned long long)ticket);
    (void)snprintf(entry, sizeof entry, "%lld %d 5 000000000900000000000000000000 %s",
                   (long long)(server_now_us() / 1000 + good_ms), (int)TTL_MS, channel);
    assert_string_equal(server_ask(server, "ZADD", QUEUE, score, token), "1");
    assert_string_equal(server_ask(server, "HSET", WAITERS, token, entry), "1");
}

/* The next message is this one, of about now. */
static void assert_hears(const char *on, const char *its_serial, const char *token) {
    char kind[16], channel[32], id[40], serial[8], got[80], key[16];
    long long seconds, microseconds;
    assert_int_equal(sscanf(raw_read(&listener), "%15s %31s %39s %7s %lld %lld %79s %15s", kind, channel, id, serial,
                            &seconds, &microseconds, got, key),
                     8);
    assert_string_equal(kind, "message");
    assert_string_equal(channel, on);
    assert_string_equal(id, "000000000900000000000000000000");
    assert_string_equal(serial, its_serial);
    assert_string_equal(got, token);
    assert_string_equal(key, "door");
    const int64_t at_us = seconds * 1000000 + microseconds, now_us = server_now_us();
    assert_true(at_us <= now_us && at_us > now_us - 60 * INT64_C(1000000));
}

void assert_pushed(const char *token) {
    assert_hears(CHANNEL, "5", token);
}

void assert_told(const char *token, const char *channel) {
    assert_hears(channel, "0", token);
}

void assert_silence(void) {
    assert_string_equal(raw_ask(&listener, "PING"), "pong\n\n");
}

int queue_setup(void **state) {
    int failed = scripts_setup(state);
    (void)server_ask(server, "ACL", "SETUSER", "all", "allchannels"); /* unknown before Redis 6.2 */
    if (failed || !raw_open_tcp(&listener, "127.0.0.1", server->port)) {
        return -1;
    }
    assert_string_equal(raw_ask(&listener, "AUTH", "all", "geheim"), "OK");
    return strcmp(raw_ask(&listener, "SUBSCRIBE", CHANNEL), "subscribe\n" CHANNEL "\n1\n");
}

int queue_teardown(void **state) {
    raw_close(&listener);
    return scripts_teardown(state);
}
