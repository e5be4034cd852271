/* The queue of requests that wait for replies: order, growth, timeouts, withdrawal from the middle,
 * requests with one more reply. */
#include "scarce_memory.h"
#include "server/inflight.h"
#include "test.h"

static struct redlock_inflight_entry entry_of(uint32_t round) {
    return (struct redlock_inflight_entry){.round = round, .position = (uint64_t)round * 10};
}

static void push(struct redlock_inflight *inflight, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        struct redlock_inflight_entry entry = entry_of(i);
        assert_non_null(redlock_inflight_push(inflight, &entry));
    }
}

TEST(first_in_first_out_while_it_grows) {
    struct redlock_inflight inflight = {0};
    struct redlock_inflight_entry entry;
    uint32_t in = 0, out = 0;
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

TEST(a_burst_gives_its_room_back) {
    struct redlock_inflight inflight = {0};
    struct redlock_inflight_entry entry;
    uint32_t in = 0, out = 0;
    push(&inflight, in, in + 5000);
    in += 5000;
    const size_t large = inflight.room;
    assert_true(large >= 5000);
    for (const uint32_t end = in + 3 * (uint32_t)large; in < end; in += 3) {
        while (inflight.count > 10) {
            assert_true(redlock_inflight_pop(&inflight, &entry));
            assert_int_equal(entry.round, out++);
        }
        push(&inflight, in, in + 3);
    }
    assert_true(inflight.room <= 256 && inflight.room >= inflight.count);
    redlock_inflight_clear(&inflight);
}

TEST(a_timed_out_request_gets_no_answer) {
    struct redlock_inflight inflight = {0};
    struct redlock_inflight_entry entry;
    push(&inflight, 0, 3);
    inflight.expired = 2;
    assert_false(redlock_inflight_pop(&inflight, &entry));
    assert_false(redlock_inflight_pop(&inflight, &entry));
    assert_true(redlock_inflight_pop(&inflight, &entry));
    assert_int_equal(entry.round, 2);
    redlock_inflight_clear(&inflight);
}

TEST(withdrawal_closes_the_gap) {
    struct redlock_inflight inflight = {0};
    struct redlock_inflight_entry entry;
    static const uint32_t rest[] = {60, 61, 65, 66, 67, 68, 69};
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

/* Takes the oldest entry and puts it back, as for a request with two replies. */
static void put_back_oldest(struct redlock_inflight *inflight) {
    struct redlock_inflight_entry entry;
    const bool in_time = redlock_inflight_pop(inflight, &entry);
    assert_true(redlock_inflight_put_back(inflight, &entry, in_time));
}

/* The entries from `first` on, of which the first `expired` have timed out. */
static void expect(struct redlock_inflight *inflight, uint32_t first, size_t count, size_t expired) {
    struct redlock_inflight_entry entry;
    assert_int_equal(inflight->count, count);
    assert_int_equal(inflight->expired, expired);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(redlock_inflight_pop(inflight, &entry), i >= expired);
        assert_int_equal(entry.round, first + i);
        assert_int_equal(entry.position, entry_of(first + i).position);
    }
}

TEST(a_request_that_is_put_back_is_the_oldest_again) {
    struct redlock_inflight inflight = {0};
    push(&inflight, 0, 3);
    put_back_oldest(&inflight);
    expect(&inflight, 0, 3, 0);
    struct redlock_inflight_entry third = entry_of(3);
    assert_true(redlock_inflight_put_back(&inflight, &third, true)); /* the queue is empty */
    push(&inflight, 4, 6);
    expect(&inflight, 3, 3, 0);
    redlock_inflight_clear(&inflight);
}

TEST(put_back_keeps_what_has_timed_out) {
    struct redlock_inflight inflight = {0};
    push(&inflight, 0, 5);
    inflight.expired = 3;
    put_back_oldest(&inflight);
    expect(&inflight, 0, 5, 3);
    push(&inflight, 5, 8);
    inflight.expired = 1; /* no other has */
    put_back_oldest(&inflight);
    expect(&inflight, 5, 3, 1);
    /* Those behind it can be withdrawn, as before. */
    push(&inflight, 8, 14);
    inflight.expired = 2;
    put_back_oldest(&inflight);
    redlock_inflight_withdraw(&inflight, 2, 4, 40);
    expect(&inflight, 8, 2, 2);
    redlock_inflight_clear(&inflight);
}

TEST(put_back_makes_room) {
    struct redlock_inflight inflight = {0};
    struct redlock_inflight_entry entry, more;
    for (uint32_t i = 0; i <= 64; i += 64) { /* the head at 0, then in the middle of the ring */
        push(&inflight, 0, i / 2);
        for (uint32_t j = 0; j < i / 2; j++) {
            (void)redlock_inflight_pop(&inflight, &entry);
        }
        push(&inflight, 0, 64);
        assert_int_equal(inflight.count, inflight.room);
        inflight.expired = 2;
        (void)redlock_inflight_pop(&inflight, &entry);
        more = entry_of(64);
        assert_non_null(redlock_inflight_push(&inflight, &more)); /* a callback asks meanwhile */
        memory_fails_at(1);
        assert_false(redlock_inflight_put_back(&inflight, &entry, false));
        memory.armed = false;
        assert_int_equal(inflight.count, 64);
        assert_int_equal(inflight.expired, 1);
        assert_true(redlock_inflight_put_back(&inflight, &entry, false));
        assert_int_equal(inflight.room, 128);
        expect(&inflight, 0, 65, 2);
        redlock_inflight_clear(&inflight);
    }
}

TEST(without_memory_the_queue_stays_as_it_is) {
    struct redlock_inflight inflight = {0};
    struct redlock_inflight_entry entry = entry_of(0);
    memory_fails_at(1);
    assert_null(redlock_inflight_push(&inflight, &entry));
    memory.armed = false;
    push(&inflight, 0, 1000);
    const size_t large = inflight.room;
    uint32_t next = 0, in = 1000;
    while (inflight.count > 10) {
        (void)redlock_inflight_pop(&inflight, &entry);
        assert_int_equal(entry.round, next++);
    }
    for (int turn = 0; turn < 3; turn++) {
        /* The first round saw the burst. Then it shrinks, but has no memory for that at first. */
        memory_fails_at(turn == 1 ? 1 : 0);
        for (bool ends = false; !ends; ends = inflight.head == 0) {
            push(&inflight, in, in + 1);
            in++;
            assert_true(redlock_inflight_pop(&inflight, &entry));
            assert_int_equal(entry.round, next++);
        }
        memory.armed = false;
        assert_int_equal(memory.count, turn > 0);
        assert_int_equal(inflight.room < large, turn == 2);
    }
    expect(&inflight, next, 10, 0);
    redlock_inflight_clear(&inflight);
}

TEST(withdrawal_may_take_the_last_or_all) {
    struct redlock_inflight inflight = {0};
    push(&inflight, 0, 5);
    redlock_inflight_withdraw(&inflight, 3, 2, 20);
    assert_int_equal(inflight.count, 3);
    redlock_inflight_withdraw(&inflight, 0, 0, 0);
    expect(&inflight, 0, 3, 0);
    push(&inflight, 3, 5);
    redlock_inflight_withdraw(&inflight, 0, 2, 20);
    push(&inflight, 5, 6);
    expect(&inflight, 5, 1, 0);
    redlock_inflight_clear(&inflight);
}
