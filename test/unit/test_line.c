/* What a group keeps for queues: ids, the channel, the fleet's clock, and who waits here. */
#include "core/time.h"
#include "group/line.h"
#include "test.h"

#define MANY 100

static struct redlock_line line;
static struct {
    bool no_memory, no_bytes;
    unsigned listens;
    const char *channel;
    int64_t wall_us, now_ns;
} world;

void *__real_realloc(void *old, size_t size);
/* The linker puts it in place of realloc(). */
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size) {
    return world.no_memory ? NULL : __real_realloc(old, size);
}

static int random_bytes(void *ctx, void *buffer, size_t size) {
    (void)ctx;
    memset(buffer, 0xab, size);
    return world.no_bytes ? REDLOCK_ERR_RANDOM : REDLOCK_OK;
}

static void listen_to(void *ctx, const char *channel) {
    (void)ctx;
    world.listens++;
    world.channel = channel;
}

static int64_t wall_us(void *ctx) {
    (void)ctx;
    return world.wall_us;
}

static int64_t now_ns(void *ctx) {
    (void)ctx;
    return world.now_ns;
}

static const struct redlock_env env = {
    .random = random_bytes, .listen = listen_to, .wall_us = wall_us, .now_ns = now_ns};

static int open_line(UNUSED void **state) {
    memset(&line, 0, sizeof line);
    memset(&world, 0, sizeof world);
    world.wall_us = 1795167037000000;
    return 0;
}

static int close_line(UNUSED void **state) {
    redlock_line_clear(&line);
    return 0;
}

static struct redlock_lease *lease_of(uintptr_t number) {
    return (struct redlock_lease *)(number * 16); /* never read */
}

#define LINE_TEST(name) TEST_WITH(name, open_line, close_line)

LINE_TEST(ids_are_those_of_their_leases) {
    uint32_t id;
    assert_null(redlock_line_get(&line, 0));
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(redlock_line_add(&line, lease_of(i + 1), &id));
        assert_int_equal(id, i);
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_ptr_equal(redlock_line_get(&line, i), lease_of(i + 1));
    }
    redlock_line_remove(&line, 50);
    redlock_line_remove(&line, 7);
    redlock_line_remove(&line, 60);
    assert_null(redlock_line_get(&line, 7));
    assert_null(redlock_line_get(&line, line.place_count));
    assert_null(redlock_line_get(&line, UINT32_MAX)); /* a push may say anything */
    static const unsigned next[] = {7, 50, 60, MANY};
    for (unsigned i = 0; i < 4; i++) {
        assert_true(redlock_line_add(&line, lease_of(200 + i), &id));
        assert_int_equal(id, next[i]);
        assert_ptr_equal(redlock_line_get(&line, id), lease_of(200 + i));
    }
}

LINE_TEST(without_memory_the_others_keep_their_ids) {
    uint32_t id;
    world.no_memory = true;
    assert_false(redlock_line_add(&line, lease_of(1), &id));
    world.no_memory = false;
    assert_true(redlock_line_add(&line, lease_of(1), &id));
    const uint32_t room = line.place_count;
    while (id + 1 < room) {
        assert_true(redlock_line_add(&line, lease_of(2), &id));
    }
    world.no_memory = true;
    assert_false(redlock_line_add(&line, lease_of(3), &id));
    assert_ptr_equal(redlock_line_get(&line, 0), lease_of(1));
    redlock_line_remove(&line, 3);
    assert_true(redlock_line_add(&line, lease_of(4), &id));
    assert_int_equal(id, 3);
}

LINE_TEST(the_channel_is_drawn_once) {
    world.no_bytes = true;
    assert_is(redlock_line_open(&line, &env), REDLOCK_ERR_RANDOM);
    assert_int_equal(world.listens, 0);
    world.no_bytes = false;
    assert_is(redlock_line_open(&line, &env), REDLOCK_OK);
    assert_is(redlock_line_open(&line, &env), REDLOCK_OK);
    assert_int_equal(world.listens, 1);
    assert_string_equal(world.channel, "redlock:abababababababababababababababab");
}

static struct redlock_clock_sample sample(int64_t at_ms, int64_t ahead_us) {
    return (struct redlock_clock_sample){.sent_ns = (at_ms - 1) * REDLOCK_NS_PER_MS,
                                         .read_ns = (at_ms + 1) * REDLOCK_NS_PER_MS,
                                         .server_us = at_ms * 1000 + ahead_us};
}

static uint64_t ticket_at(int64_t ms) {
    return redlock_line_ticket(&line, &env, (uint64_t)ms * 1000);
}

LINE_TEST(a_ticket_follows_the_clocks_of_most_nodes) {
    const int64_t base_us = 1795000000000000, ahead_us[] = {base_us + 3, base_us - 3600000000, base_us};
    world.now_ns = 700 * REDLOCK_NS_PER_MS;
    /* No clock is known yet. */
    assert_int_equal(ticket_at(700), world.wall_us);
    assert_int_equal(ticket_at(300), world.wall_us - 400000);
    redlock_line_note_clock(&line, 4, &(struct redlock_clock_sample){.server_us = 0});
    assert_false(redlock_line_knows_time(&line, 1));
    for (unsigned i = 0; i < 3; i++) {
        const struct redlock_clock_sample now = sample(500 + i, ahead_us[i]);
        redlock_line_note_clock(&line, 2 * i, &now);
        assert_int_equal(redlock_line_knows_time(&line, 2), i >= 1);
    }
    /* The slow clock has no say. */
    assert_int_equal(ticket_at(700), 700000 + base_us);
    const struct redlock_clock_sample now = sample(600, base_us + 9); /* read again */
    redlock_line_note_clock(&line, 2, &now);
    assert_int_equal(ticket_at(700), 700000 + base_us + 3);
    world.wall_us += 3600000000;
    assert_int_equal(ticket_at(700), 700000 + base_us + 3);
}

/* Of two clocks, a client goes by the one that is ahead: it is passed over until it knows a third,
 * and passes nobody over. */
LINE_TEST(of_two_clocks_the_later_one_counts) {
    const struct redlock_clock_sample late = sample(500, 7200000000), right = sample(500, 3600000000);
    redlock_line_note_clock(&line, 0, &late);
    redlock_line_note_clock(&line, 1, &right);
    assert_int_equal(ticket_at(500), 500000 + 7200000000);
    redlock_line_note_clock(&line, 2, &right);
    assert_int_equal(ticket_at(500), 500000 + 3600000000);
    assert_true(redlock_line_is_wrong(500000 + 7200000000, ticket_at(500)));
}

LINE_TEST(a_second_makes_a_ticket_wrong) {
    assert_false(redlock_line_is_wrong(5000000, 5000000));
    assert_false(redlock_line_is_wrong(5000000, 5999999));
    assert_true(redlock_line_is_wrong(5000000, 6000000));
    assert_false(redlock_line_is_wrong(5999999, 5000000));
    assert_true(redlock_line_is_wrong(6000000, 5000000));
}

LINE_TEST(acquires_of_one_moment_keep_their_order) {
    assert_int_equal(redlock_line_arrive(&line, 7000999), 7000);
    assert_int_equal(redlock_line_arrive(&line, 7000999), 7001);
    assert_int_equal(redlock_line_arrive(&line, 7001500), 7002);
    assert_int_equal(redlock_line_arrive(&line, 9000000), 9000);
}

LINE_TEST(a_ticket_fits_a_sorted_set_and_is_not_that_of_a_first_try) {
    world.wall_us = -5;
    assert_int_equal(ticket_at(0), 1);
    world.wall_us = INT64_MAX / 2;
    assert_int_equal(ticket_at(0), REDLOCK_TICKET_MAX);
}

LINE_TEST(who_is_in_line_is_counted) {
    uint16_t rooms[2][8];
    const struct redlock_target *target = redlock_target_make(rooms[0], "", 0, "r", 1);
    const struct redlock_target *other = redlock_target_make(rooms[1], "", 0, "s", 1);
    assert_false(redlock_line_is_in_line(&line, target));
    for (unsigned i = 0; i < 70000; i++) {
        redlock_line_note_queued(&line, target, true);
    }
    assert_false(redlock_line_is_in_line(&line, other));
    for (unsigned i = 0; i < 70000; i++) {
        assert_true(redlock_line_is_in_line(&line, target));
        redlock_line_note_queued(&line, target, false);
    }
    assert_false(redlock_line_is_in_line(&line, target));
    redlock_line_note_release(&line, target, true);
    assert_true(redlock_line_is_in_line(&line, target));
    assert_false(redlock_line_is_in_line(&line, other));
    redlock_line_note_release(&line, target, false);
    assert_false(redlock_line_is_in_line(&line, target));
}

LINE_TEST(a_push_is_given_back_once) {
    for (uint64_t seal = 1; seal <= REDLOCK_LINE_GIVEN + 1; seal++) {
        const struct redlock_push push = {.seal = seal};
        assert_true(redlock_line_give(&line, &push));
        assert_false(redlock_line_give(&line, &push));
    }
    /* Of more, the newest are remembered. One more release does no harm. */
    assert_false(redlock_line_give(&line, &(struct redlock_push){.seal = 2}));
    assert_true(redlock_line_give(&line, &(struct redlock_push){.seal = 1}));
}
