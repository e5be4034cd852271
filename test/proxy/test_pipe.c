/* The pipe of the proxy, in virtual time: what may leave when, and always in order. */
#include "test.h"

#include "proxy/pipe.h"

static struct proxy_lane lane;
static struct proxy_pipe pipe_;

static int start(UNUSED void **state) {
    lane = (struct proxy_lane){0};
    pipe_ = (struct proxy_pipe){.lane = &lane};
    return 0;
}

static int tear_down(UNUSED void **state) {
    proxy_pipe_clear(&pipe_);
    return 0;
}

static void set(bool hold, int64_t delay_us, int64_t jitter_us, int64_t bytes_per_s, int64_t now_us) {
    const struct proxy_rule rule = {
        .hold = hold, .delay_us = delay_us, .jitter_us = jitter_us, .bytes_per_s = bytes_per_s};
    proxy_lane_set(&lane, &rule, now_us);
}

static void put(struct proxy_pipe *pipe, const char *text, int64_t now_us) {
    assert_true(proxy_pipe_put(pipe, text, strlen(text), now_us));
}

/* All that leaves by now. */
static const char *flow(struct proxy_pipe *pipe, int64_t now_us) {
    static char text[4096];
    const char *bytes;
    size_t used = 0;
    for (size_t size; (size = proxy_pipe_due(pipe, now_us, &bytes)) > 0; used += size) {
        assert_true(used + size < sizeof text);
        memcpy(text + used, bytes, size);
        proxy_pipe_left(pipe, size);
    }
    text[used] = '\0';
    return text;
}

#define FRESH_TEST(name) TEST_WITH(name, start, tear_down)

FRESH_TEST(a_clear_lane_passes_at_once) {
    assert_true(proxy_pipe_is_clear(&pipe_));
    assert_true(proxy_pipe_next_us(&pipe_) == PROXY_PIPE_NEVER_US);
    put(&pipe_, "one ", 5);
    put(&pipe_, "two", 5);
    proxy_pipe_ends(&pipe_, PROXY_END_FIN, 5);
    assert_int_equal(proxy_pipe_due_end(&pipe_, 5), PROXY_END_NONE);
    assert_string_equal(flow(&pipe_, 5), "one two");
    assert_int_equal(proxy_pipe_due_end(&pipe_, 5), PROXY_END_FIN);
    assert_true(proxy_pipe_is_empty(&pipe_));
}

FRESH_TEST(a_delay_is_of_the_rule_as_it_is_now) {
    set(false, 100, 0, 0, 0);
    assert_false(proxy_pipe_is_clear(&pipe_));
    put(&pipe_, "one ", 10);
    put(&pipe_, "two ", 20);
    assert_string_equal(flow(&pipe_, 109), "");
    assert_int_equal(proxy_pipe_next_us(&pipe_), 110);
    assert_string_equal(flow(&pipe_, 110), "one ");
    assert_int_equal(proxy_pipe_next_us(&pipe_), 120);
    set(false, 500, 0, 0, 115);
    assert_int_equal(proxy_pipe_next_us(&pipe_), 520);
    set(false, 5, 0, 0, 116);
    put(&pipe_, "three", 116);
    assert_string_equal(flow(&pipe_, 117), "two ");
    assert_string_equal(flow(&pipe_, 121), "three");
    proxy_pipe_ends(&pipe_, PROXY_END_FIN, 200);
    assert_int_equal(proxy_pipe_next_us(&pipe_), 205);
    assert_int_equal(proxy_pipe_due_end(&pipe_, 204), PROXY_END_NONE);
    assert_int_equal(proxy_pipe_due_end(&pipe_, 205), PROXY_END_FIN);
}

FRESH_TEST(a_hold_keeps_bytes_and_ends) {
    set(true, 0, 0, 0, 0);
    put(&pipe_, "one", 10);
    proxy_pipe_ends(&pipe_, PROXY_END_FIN, 10);
    proxy_pipe_ends(&pipe_, PROXY_END_RESET, 11);
    proxy_pipe_ends(&pipe_, PROXY_END_FIN, 12); /* a RST stays one */
    assert_string_equal(flow(&pipe_, 1000000), "");
    assert_true(proxy_pipe_next_us(&pipe_) == PROXY_PIPE_NEVER_US);
    set(false, 0, 0, 0, 1000000);
    assert_int_equal(proxy_pipe_due_end(&pipe_, 1000000), PROXY_END_NONE);
    assert_string_equal(flow(&pipe_, 1000000), "one");
    assert_int_equal(proxy_pipe_due_end(&pipe_, 1000000), PROXY_END_RESET);
}

FRESH_TEST(a_bandwidth_takes_its_time) {
    set(false, 0, 0, 1000, 0);
    put(&pipe_, "0123456789", 1000000); /* 10 ms at 1000 B/s */
    assert_string_equal(flow(&pipe_, 1009999), "");
    assert_int_equal(proxy_pipe_next_us(&pipe_), 1010000);
    put(&pipe_, "abcde", 1009999);
    assert_string_equal(flow(&pipe_, 1010000), "0123456789");
    assert_string_equal(flow(&pipe_, 1014999), "");
    assert_string_equal(flow(&pipe_, 1015000), "abcde");
    /* After a late wake nothing is lost of the bandwidth, and nothing is gained by an idle time. */
    put(&pipe_, "01234", 2000000);
    put(&pipe_, "56789", 2000000);
    assert_string_equal(flow(&pipe_, 1999999), "");
    assert_string_equal(flow(&pipe_, 2010000), "0123456789");
    put(&pipe_, "x", 3000000);
    assert_string_equal(flow(&pipe_, 3000999), "");
    assert_string_equal(flow(&pipe_, 3001000), "x");
}

FRESH_TEST(a_frozen_pipe_keeps_what_the_lane_would_pass) {
    put(&pipe_, "one", 10);
    pipe_.frozen = true;
    assert_false(proxy_pipe_is_clear(&pipe_));
    proxy_pipe_ends(&pipe_, PROXY_END_FIN, 10);
    assert_string_equal(flow(&pipe_, 1000000), "");
    assert_true(proxy_pipe_next_us(&pipe_) == PROXY_PIPE_NEVER_US);
    pipe_.frozen = false;
    assert_string_equal(flow(&pipe_, 1000000), "one");
    assert_int_equal(proxy_pipe_due_end(&pipe_, 1000000), PROXY_END_FIN);
}

FRESH_TEST(a_trickle_is_a_byte_at_a_time) {
    const struct proxy_rule trickle = {.trickle = 1};
    const char *bytes;
    proxy_lane_set(&lane, &trickle, 0);
    assert_false(proxy_pipe_is_clear(&pipe_));
    put(&pipe_, "one", 0);
    assert_int_equal(proxy_pipe_due(&pipe_, 0, &bytes), 1);
    assert_string_equal(flow(&pipe_, 0), "one");
}

FRESH_TEST(a_cut_replaces_the_end_that_came) {
    put(&pipe_, "one", 0);
    proxy_pipe_ends(&pipe_, PROXY_END_CUT_FIN, 0);
    proxy_pipe_ends(&pipe_, PROXY_END_RESET, 0);
    assert_int_equal(proxy_pipe_due_end(&pipe_, 0), PROXY_END_NONE);
    assert_string_equal(flow(&pipe_, 0), "one");
    assert_int_equal(proxy_pipe_due_end(&pipe_, 0), PROXY_END_CUT_FIN);
}

FRESH_TEST(part_of_what_is_booked_may_leave) {
    const char *bytes;
    set(false, 0, 0, 1000, 0);
    put(&pipe_, "0123456789", 0);
    assert_int_equal(proxy_pipe_due(&pipe_, 0, &bytes), 0);
    assert_int_equal(proxy_pipe_due(&pipe_, 10000, &bytes), 10);
    proxy_pipe_left(&pipe_, 4);
    assert_int_equal(proxy_pipe_due(&pipe_, 10000, &bytes), 6);
    assert_int_equal(memcmp(bytes, "456789", 6), 0);
    /* A new rule makes the rest wait anew. */
    set(false, 0, 0, 100, 10000);
    assert_int_equal(proxy_pipe_due(&pipe_, 69999, &bytes), 0);
    assert_int_equal(proxy_pipe_due(&pipe_, 70000, &bytes), 6);
}

FRESH_TEST(what_was_held_was_not_carried) {
    set(true, 0, 0, 1000, 0);
    put(&pipe_, "0123456789", 0);
    set(false, 0, 0, 1000, 5000000);
    assert_string_equal(flow(&pipe_, 5009999), "");
    assert_string_equal(flow(&pipe_, 5010000), "0123456789");
}

FRESH_TEST(connections_of_a_lane_take_turns) {
    struct proxy_pipe pipes[2] = {{.lane = &lane}, {.lane = &lane}};
    static char bytes[1460 * 10];
    int64_t gone[2] = {0};
    set(false, 0, 0, 1460000, 0); /* a segment a millisecond */
    for (int i = 0; i < 2; i++) {
        assert_true(proxy_pipe_put(&pipes[i], bytes, sizeof bytes, 0));
    }
    for (int64_t now_us = 0; now_us <= 20000; now_us += 1000) {
        for (int i = 0; i < 2; i++) {
            const char *unused;
            for (size_t size; (size = proxy_pipe_due(&pipes[i], now_us, &unused)) > 0; gone[i] += (int64_t)size) {
                proxy_pipe_left(&pipes[i], size);
            }
        }
        assert_in_range((uintmax_t)(gone[0] - gone[1] + 1460), 0, 2920);
        assert_true(gone[0] + gone[1] <= now_us * 1460 / 1000);
    }
    assert_int_equal(gone[0] + gone[1], 2 * (int64_t)sizeof bytes);
}

FRESH_TEST(it_is_full_at_its_bound) {
    size_t pieces = 0;
    for (; !proxy_pipe_is_full(&pipe_); pieces++) {
        put(&pipe_, "x", 0);
    }
    /* Small pieces count with what it costs to keep them. */
    assert_in_range(pieces, 1000, PROXY_PIPE_MAX / 16);
    proxy_pipe_clear(&pipe_);
    assert_false(proxy_pipe_is_full(&pipe_));
    assert_int_equal(pipe_.used, 0);
}

/* Whatever the rules become, every byte leaves once, in order, and not before its delay. */
FRESH_TEST(random_rules_never_lose_or_swap_a_byte) {
    srand(7);
    for (int round = 0; round < 300; round++) {
        int64_t now_us = 1000000;
        unsigned put_count = 0, got = 0;
        for (int step = 0; step < 200; step++) {
            now_us += rand() % 3000;
            if (rand() % 8 == 0) {
                set(rand() % 3 == 0, rand() % 5000, rand() % 5000, rand() % 2 * (1 + rand() % 100000), now_us);
            }
            for (int i = rand() % 4; i > 0; i--, put_count++) {
                assert_true(proxy_pipe_put(&pipe_, &(char){(char)put_count}, 1, now_us));
            }
            const char *bytes;
            for (size_t size; (size = proxy_pipe_due(&pipe_, now_us, &bytes)) > 0; got++) {
                assert_false(lane.rule.hold);
                assert_int_equal(size, 1);
                assert_int_equal(*bytes, (char)got);
                proxy_pipe_left(&pipe_, size);
            }
            assert_true(proxy_pipe_next_us(&pipe_) > now_us);
        }
        set(false, 0, 0, 0, now_us);
        (void)flow(&pipe_, now_us);
        assert_true(proxy_pipe_is_empty(&pipe_));
        assert_int_equal(pipe_.used, 0);
    }
}

/* Pieces of all sizes leave in parts of all sizes, against counters. */
FRESH_TEST(random_parts_leave_in_order) {
    static char piece[3000];
    unsigned came = 0, left = 0;
    srand(1);
    set(false, 250, 0, 0, 0);
    for (int64_t now_us = 0; now_us < 100000; now_us++) {
        size_t size = (size_t)rand() % sizeof piece + 1;
        if (!proxy_pipe_is_full(&pipe_)) {
            for (size_t i = 0; i < size; i++) {
                piece[i] = (char)(came++ % 251);
            }
            assert_true(proxy_pipe_put(&pipe_, piece, size, now_us));
        }
        const char *bytes;
        size_t due = proxy_pipe_due(&pipe_, now_us, &bytes);
        due = due > 0 ? (size_t)rand() % due + 1 : 0;
        for (size_t i = 0; i < due; i++) {
            assert_int_equal(bytes[i], (char)(left++ % 251));
        }
        if (due > 0) {
            proxy_pipe_left(&pipe_, due);
        }
        assert_true(pipe_.used < PROXY_PIPE_MAX + 2 * sizeof piece);
    }
    assert_true(left > 1000000);
}
