/* The parts that the tests of an observer's knowledge share. */
#include "leader_kit.h"

struct redlock_leader_node nodes[REDLOCK_NODES_MAX];
struct redlock_leadership it;
int64_t now_ns;

void begin(unsigned node_count) {
    memset(nodes, 0, sizeof nodes);
    it = (struct redlock_leadership){.node_count = node_count, .quorum = redlock_quorum(node_count), .nodes = nodes};
    now_ns = 1000 * MS;
    redlock_leadership_init(&it, 7, now_ns);
}

int setup(UNUSED void **state) {
    begin(5);
    return 0;
}

static struct redlock_leader_word word_of(const char *token, int64_t ttl_ms) {
    return (struct redlock_leader_word){.token = token, .token_size = strlen(token), .ttl_ms = ttl_ms};
}

void answer(unsigned node, const char *token, int64_t ttl_ms) {
    const struct redlock_leader_word word = word_of(token, ttl_ms);
    redlock_leadership_answer(&it, node, &word, now_ns);
}

void fail_to_answer(unsigned node) {
    redlock_leadership_answer(&it, node, NULL, now_ns);
}

void hint(unsigned node) {
    redlock_leadership_hint(&it, node);
}

void announce(unsigned node, const char *token, int64_t ttl_ms) {
    hint(node);
    assert_int_equal(redlock_leadership_ask(&it, now_ns), REDLOCK_NODE(node));
    answer(node, token, ttl_ms);
}

void hear(redlock_nodes which, bool heard) {
    for (unsigned i = 0; i < it.node_count; i++) {
        if (which & REDLOCK_NODE(i)) {
            redlock_leadership_hear(&it, i, heard, now_ns);
        }
    }
}

void assert_asked(redlock_nodes which) {
    assert_int_equal(redlock_leadership_ask(&it, now_ns), which);
}

void assert_news(const char *token) {
    assert_true(redlock_leadership_has_event(&it));
    const struct redlock_leader_token *told = redlock_leadership_tell(&it);
    assert_string_equal(told->bytes, token);
    assert_int_equal(told->size, strlen(token));
    assert_false(redlock_leadership_has_event(&it));
}

void assert_no_news(void) {
    assert_false(redlock_leadership_has_event(&it));
}

void pass_to_next(int64_t least_ms, int64_t most_ms) {
    const int64_t next_ns = redlock_leadership_next_ns(&it);
    assert_true(next_ns >= now_ns + least_ms * MS);
    assert_true(next_ns <= now_ns + most_ms * MS);
    now_ns = next_ns;
}

void know(const char *token, int64_t ttl_ms) {
    assert_asked(ALL);
    for (unsigned i = 0; i < 5; i++) {
        answer(i, token, ttl_ms);
    }
    assert_news(token);
}
