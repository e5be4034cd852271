/* The queue of requests that wait for replies: order, growth, timeouts, withdrawal from the
 * middle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/inflight.h"

static struct redlock_inflight_entry entry_of(uint32_t round) {
    return (struct redlock_inflight_entry){.round = round, .position = (uint64_t)round * 10};
}

static void push(struct redlock_inflight *inflight, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        struct redlock_inflight_entry entry = entry_of(i);
        assert_true(redlock_inflight_push(inflight, &entry));
    }
}

static void first_in_first_out_while_it_grows(void **state) {
    struct redlock_inflight inflight = {0};
    struct redlock_inflight_entry entry;
    uint32_t in = 0, out = 0;
    (void)state;
    for (int turn = 0; turn < 300; turn++) {
        push(&inflight, in, in + 7);
        in += 7;
        for (int i = 0; i < 5; i++) {
            assert_true(redlock_inflight_pop(&inflight, &entry));
            assert_int_equal(entry.round, out++);
        }
    }
    assert_int_equal(inflight.count, in - out);
    redlock_inflight_clear(&inflight);
    assert_int_equal(inflight.count, 0);
}

static void a_burst_gives_its_room_back(void **state) {
    struct redlock_inflight inflight = {0};
    struct redlock_inflight_entry entry;
    uint32_t in = 0, out = 0;
    (void)state;
    push(&inflight, in, in + 5000);
    in += 5000;
    const size_t large = inflight.room;
    assert_true(large >= 5000);
    for (; in < 10 * REDLOCK_INFLIGHT_CALM_AFTER; in += 3) {
        while (inflight.count > 10) {
            assert_true(redlock_inflight_pop(&inflight, &entry));
            assert_int_equal(entry.round, out++);
        }
        push(&inflight, in, in + 3);
    }
    assert_true(inflight.room <= 256 && inflight.room >= inflight.count);
    redlock_inflight_clear(&inflight);
}

static void a_timed_out_request_gets_no_answer(void **state) {
    struct redlock_inflight inflight = {0};
    struct redlock_inflight_entry entry;
    (void)state;
    push(&inflight, 0, 3);
    inflight.expired = 2;
    assert_false(redlock_inflight_pop(&inflight, &entry));
    assert_false(redlock_inflight_pop(&inflight, &entry));
    assert_true(redlock_inflight_pop(&inflight, &entry));
    assert_int_equal(entry.round, 2);
    redlock_inflight_clear(&inflight);
}

static void withdrawal_closes_the_gap(void **state) {
    struct redlock_inflight inflight = {0};
    struct redlock_inflight_entry entry;
    static const uint32_t rest[] = {60, 61, 65, 66, 67, 68, 69};
    (void)state;
    push(&inflight, 0, 60);
    for (int i = 0; i < 60; i++) {
        (void)redlock_inflight_pop(&inflight, &entry);
    }
    push(&inflight, 60, 70); /* across the end of the ring */
    inflight.expired = 1;
    redlock_inflight_withdraw(&inflight, 2, 3, 30);
    assert_int_equal(inflight.count, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(redlock_inflight_pop(&inflight, &entry), i > 0);
        assert_int_equal(entry.round, rest[i]);
        assert_int_equal(entry.position, rest[i] * 10 - (i < 2 ? 0 : 30));
    }
    redlock_inflight_clear(&inflight);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_in_first_out_while_it_grows),
        cmocka_unit_test(a_burst_gives_its_room_back),
        cmocka_unit_test(a_timed_out_request_gets_no_answer),
        cmocka_unit_test(withdrawal_closes_the_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
