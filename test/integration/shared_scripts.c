/* Shared locks on a real server. */
#include "shared_scripts.h"

#include <stdarg.h>

static redlock_vote_kind share(enum redlock_operation operation, const char *token, int64_t ttl_ms,
                               enum redlock_handing handing) {
    struct redlock_message message = message_with(operation, token);
    message.shared = true;
    message.by_source = true;
    message.ttl_ms = ttl_ms == 0 ? TTL_MS : ttl_ms;
    message.handing = handing;
    return ask(&message).vote;
}

redlock_vote_kind try_for(const char *token, int64_t ttl_ms) {
    return share(REDLOCK_OP_ACQUIRE, token, ttl_ms, REDLOCK_HAND_OVER);
}

redlock_vote_kind keep_for(const char *token, int64_t ttl_ms) {
    return share(REDLOCK_OP_EXTEND, token, ttl_ms, REDLOCK_HAND_OVER);
}

redlock_vote_kind keep_letting_nobody_in(const char *token) {
    return share(REDLOCK_OP_EXTEND, token, 0, REDLOCK_HAND_NOBODY);
}

redlock_vote_kind heal_as(const char *token) {
    return share(REDLOCK_OP_HEAL, token, 0, REDLOCK_HAND_OVER);
}

void assert_readers(const char *first, ...) {
    char expected[12];
    int count = 0;
    va_list others;
    va_start(others, first);
    for (const char *token = first; token != NULL; token = va_arg(others, const char *)) {
        assert_string_not_equal(server_ask(server, "ZSCORE", "door", token), "(nil)");
        count++;
    }
    va_end(others);
    (void)snprintf(expected, sizeof expected, "%d", count);
    assert_string_equal(say("ZCARD", "door"), expected);
}

void assert_entry_ms(const char *token, int64_t least, int64_t most) {
    const int64_t ms = strtoll(server_ask(server, "ZSCORE", "door", token), NULL, 10) - server_now_us() / 1000;
    assert_in_range(ms, least, most);
    assert_true(server_pttl_ms(server, "door") >= ms - 1);
}

void assert_waits_beside(struct wait wait, uint32_t rank, const char *holder) {
    const struct redlock_answer answer = wait_as(wait);
    assert_is(answer.vote, REDLOCK_VOTE_DENIED);
    assert_int_equal(answer.rank, rank);
    assert_false(answer.ahead);
    assert_true(answer.holder_ttl_ms > TTL_MS / 2 && answer.holder_ttl_ms <= TTL_MS + 1);
    assert_int_equal(answer.holder_size, holder == NULL ? 0 : strlen(holder));
    if (holder != NULL) {
        assert_memory_equal(answer.holder, holder, answer.holder_size);
    }
}

void assert_kept_out_by(struct wait wait, uint32_t rank, const char *first) {
    const struct redlock_answer answer = wait_as(wait);
    assert_is(answer.vote, REDLOCK_VOTE_DENIED);
    assert_int_equal(answer.rank, rank);
    assert_true(answer.ahead);
    assert_int_equal(answer.holder_size, strlen(first));
    assert_memory_equal(answer.holder, first, answer.holder_size);
}

void assert_joins(struct wait wait) {
    assert_is(wait_as(wait).vote, REDLOCK_VOTE_GRANTED);
    assert_string_not_equal(server_ask(server, "ZSCORE", "door", wait.token), "(nil)");
    assert_string_equal(server_ask(server, "ZSCORE", QUEUE, wait.token), "(nil)");
}

void wait_ms(int64_t ms) {
    const int64_t until_us = server_now_us() + ms * 1000;
    while (server_now_us() < until_us) {
        (void)say("GET", "door"); /* polls */
    }
}
