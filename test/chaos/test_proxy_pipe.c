/* The pipe of the link proxy, in virtual time: what may leave when, and always in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "proxy_pipe.h"

static struct chaos_lane lane;
static struct chaos_pipe pipe_;

static int start(void **state) {
    (void)state;
    lane = (struct chaos_lane){0};
    pipe_ = (struct chaos_pipe){.lane = &lane};
    return 0;
}

static int stop(void **state) {
    (void)state;
    chaos_pipe_clear(&pipe_);
    return 0;
}

static void put(struct chaos_pipe *pipe, const char *text, int64_t now_us) {
    assert_true(chaos_pipe_put(pipe, text, strlen(text), now_us));
}

/* All that leaves by now. */
static const char *flow(struct chaos_pipe *pipe, int64_t now_us) {
    static char text[4096];
    const char *bytes;
    size_t used = 0;
    for (size_t size; (size = chaos_pipe_due(pipe, now_us, &bytes)) > 0; used += size) {
        assert_true(used + size < sizeof text);
        memcpy(text + used, bytes, size);
        chaos_pipe_left(pipe, size);
    }
    text[used] = '\0';
    return text;
}

static void a_clear_lane_passes_at_once(void **state) {
    (void)state;
    assert_true(chaos_lane_is_clear(&lane));
    assert_true(chaos_pipe_next_us(&pipe_) == CHAOS_PIPE_NEVER_US);
    put(&pipe_, "one ", 5);
    put(&pipe_, "two", 5);
    chaos_pipe_ends(&pipe_, CHAOS_END_FIN, 5);
    assert_int_equal(chaos_pipe_due_end(&pipe_, 5), CHAOS_END_NONE);
    assert_string_equal(flow(&pipe_, 5), "one two");
    assert_int_equal(chaos_pipe_due_end(&pipe_, 5), CHAOS_END_FIN);
    assert_true(chaos_pipe_is_empty(&pipe_));
}

static void a_delay_is_of_the_rule_as_it_is_now(void **state) {
    (void)state;
    chaos_lane_set(&lane, false, 100, 0, 0, 0);
    assert_false(chaos_lane_is_clear(&lane));
    put(&pipe_, "one ", 10);
    put(&pipe_, "two ", 20);
    assert_string_equal(flow(&pipe_, 109), "");
    assert_int_equal(chaos_pipe_next_us(&pipe_), 110);
    assert_string_equal(flow(&pipe_, 110), "one ");
    assert_int_equal(chaos_pipe_next_us(&pipe_), 120);
    chaos_lane_set(&lane, false, 500, 0, 0, 115);
    assert_int_equal(chaos_pipe_next_us(&pipe_), 520);
    chaos_lane_set(&lane, false, 5, 0, 0, 116);
    put(&pipe_, "three", 116);
    assert_string_equal(flow(&pipe_, 117), "two ");
    assert_string_equal(flow(&pipe_, 121), "three");
    chaos_pipe_ends(&pipe_, CHAOS_END_FIN, 200);
    assert_int_equal(chaos_pipe_next_us(&pipe_), 205);
    assert_int_equal(chaos_pipe_due_end(&pipe_, 204), CHAOS_END_NONE);
    assert_int_equal(chaos_pipe_due_end(&pipe_, 205), CHAOS_END_FIN);
}

static void a_hold_keeps_bytes_and_ends(void **state) {
    (void)state;
    chaos_lane_set(&lane, true, 0, 0, 0, 0);
    put(&pipe_, "one", 10);
    chaos_pipe_ends(&pipe_, CHAOS_END_FIN, 10);
    chaos_pipe_ends(&pipe_, CHAOS_END_RESET, 11);
    chaos_pipe_ends(&pipe_, CHAOS_END_FIN, 12); /* a RST stays one */
    assert_string_equal(flow(&pipe_, 1000000), "");
    assert_true(chaos_pipe_next_us(&pipe_) == CHAOS_PIPE_NEVER_US);
    chaos_lane_set(&lane, false, 0, 0, 0, 1000000);
    assert_int_equal(chaos_pipe_due_end(&pipe_, 1000000), CHAOS_END_NONE);
    assert_string_equal(flow(&pipe_, 1000000), "one");
    assert_int_equal(chaos_pipe_due_end(&pipe_, 1000000), CHAOS_END_RESET);
}

static void a_bandwidth_takes_its_time(void **state) {
    (void)state;
    chaos_lane_set(&lane, false, 0, 0, 1000, 0);
    put(&pipe_, "0123456789", 1000000); /* 10 ms at 1000 B/s */
    assert_string_equal(flow(&pipe_, 1009999), "");
    assert_int_equal(chaos_pipe_next_us(&pipe_), 1010000);
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

static void part_of_what_is_booked_may_leave(void **state) {
    (void)state;
    const char *bytes;
    chaos_lane_set(&lane, false, 0, 0, 1000, 0);
    put(&pipe_, "0123456789", 0);
    assert_int_equal(chaos_pipe_due(&pipe_, 0, &bytes), 0);
    assert_int_equal(chaos_pipe_due(&pipe_, 10000, &bytes), 10);
    chaos_pipe_left(&pipe_, 4);
    assert_int_equal(chaos_pipe_due(&pipe_, 10000, &bytes), 6);
    assert_int_equal(memcmp(bytes, "456789", 6), 0);
    /* A new rule makes the rest wait anew. */
    chaos_lane_set(&lane, false, 0, 0, 100, 10000);
    assert_int_equal(chaos_pipe_due(&pipe_, 69999, &bytes), 0);
    assert_int_equal(chaos_pipe_due(&pipe_, 70000, &bytes), 6);
}

static void what_was_held_was_not_carried(void **state) {
    (void)state;
    chaos_lane_set(&lane, true, 0, 0, 1000, 0);
    put(&pipe_, "0123456789", 0);
    chaos_lane_set(&lane, false, 0, 0, 1000, 5000000);
    assert_string_equal(flow(&pipe_, 5009999), "");
    assert_string_equal(flow(&pipe_, 5010000), "0123456789");
}

static void connections_of_a_lane_take_turns(void **state) {
    struct chaos_pipe pipes[2] = {{.lane = &lane}, {.lane = &lane}};
    static char bytes[1460 * 10];
    int64_t gone[2] = {0};
    (void)state;
    chaos_lane_set(&lane, false, 0, 0, 1460000, 0); /* a segment a millisecond */
    for (int i = 0; i < 2; i++) {
        assert_true(chaos_pipe_put(&pipes[i], bytes, sizeof bytes, 0));
    }
    for (int64_t now_us = 0; now_us <= 20000; now_us += 1000) {
        for (int i = 0; i < 2; i++) {
            const char *unused;
            for (size_t size; (size = chaos_pipe_due(&pipes[i], now_us, &unused)) > 0; gone[i] += (int64_t)size) {
                chaos_pipe_left(&pipes[i], size);
            }
        }
        assert_in_range((uintmax_t)(gone[0] - gone[1] + 1460), 0, 2920);
        assert_true(gone[0] + gone[1] <= now_us * 1460 / 1000);
    }
    assert_int_equal(gone[0] + gone[1], 2 * (int64_t)sizeof bytes);
}

static void it_is_full_at_its_bound(void **state) {
    (void)state;
    size_t pieces = 0;
    for (; !chaos_pipe_is_full(&pipe_); pieces++) {
        put(&pipe_, "x", 0);
    }
    /* Small pieces count with what it costs to keep them. */
    assert_in_range(pieces, 1000, CHAOS_PIPE_MAX / 16);
    chaos_pipe_clear(&pipe_);
    assert_false(chaos_pipe_is_full(&pipe_));
    assert_int_equal(pipe_.used, 0);
}

/* Whatever the rules become, every byte leaves once, in order, and not before its delay. */
static void random_rules_never_lose_or_swap_a_byte(void **state) {
    (void)state;
    srand(7);
    for (int round = 0; round < 300; round++) {
        int64_t now_us = 1000000;
        unsigned put_count = 0, got = 0;
        for (int step = 0; step < 200; step++) {
            now_us += rand() % 3000;
            if (rand() % 8 == 0) {
                chaos_lane_set(&lane, rand() % 3 == 0, rand() % 5000, rand() % 5000, rand() % 2 * (1 + rand() % 100000),
                               now_us);
            }
            for (int i = rand() % 4; i > 0; i--, put_count++) {
                assert_true(chaos_pipe_put(&pipe_, &(char){(char)put_count}, 1, now_us));
            }
            const char *bytes;
            for (size_t size; (size = chaos_pipe_due(&pipe_, now_us, &bytes)) > 0; got++) {
                assert_false(lane.hold);
                assert_int_equal(size, 1);
                assert_int_equal(*bytes, (char)got);
                chaos_pipe_left(&pipe_, size);
            }
            assert_true(chaos_pipe_next_us(&pipe_) > now_us);
        }
        chaos_lane_set(&lane, false, 0, 0, 0, now_us);
        (void)flow(&pipe_, now_us);
        assert_true(chaos_pipe_is_empty(&pipe_));
        assert_int_equal(pipe_.used, 0);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(a_clear_lane_passes_at_once),
        TEST(a_delay_is_of_the_rule_as_it_is_now),
        TEST(a_hold_keeps_bytes_and_ends),
        TEST(a_bandwidth_takes_its_time),
        TEST(part_of_what_is_booked_may_leave),
        TEST(what_was_held_was_not_carried),
        TEST(connections_of_a_lane_take_turns),
        TEST(it_is_full_at_its_bound),
        TEST(random_rules_never_lose_or_swap_a_byte),
    };
    return cmocka_run_group_tests_name("proxy_pipe", tests, NULL, NULL);
}
