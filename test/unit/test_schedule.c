/* The heap of deadlines against a plain array, over random operations. */

#include "core/time.h"
#include "group/schedule.h"
#include "test.h"

#define ITEMS 200

static int64_t earliest(const int64_t *when_ns) {
    int64_t first_ns = REDLOCK_NEVER_NS;
    for (unsigned i = 0; i < ITEMS; i++) {
        first_ns = when_ns[i] < first_ns ? when_ns[i] : first_ns;
    }
    return first_ns;
}

/* It may be the time of an item that was taken out. */
static void check_first(const struct redlock_schedule *schedule, const int64_t *when_ns, bool exactly) {
    const int64_t first_ns = redlock_schedule_first_ns(schedule), wanted_ns = earliest(when_ns);
    assert_true(exactly ? first_ns == wanted_ns : first_ns <= wanted_ns);
}

static void pop_one(struct redlock_schedule *schedule, struct redlock_due *items, int64_t *when_ns, int64_t now_ns) {
    const int64_t first_ns = earliest(when_ns);
    struct redlock_due *due = redlock_schedule_pop(schedule, now_ns);
    if (first_ns > now_ns) {
        assert_null(due);
        check_first(schedule, when_ns, true);
        return;
    }
    assert_non_null(due);
    assert_int_equal(due->place, 0);
    assert_int_equal(when_ns[due - items], first_ns);
    when_ns[due - items] = REDLOCK_NEVER_NS;
}

TEST(same_as_an_array) {
    struct redlock_schedule schedule = {0};
    struct redlock_due items[ITEMS] = {0};
    int64_t when_ns[ITEMS];
    for (unsigned i = 0; i < ITEMS; i++) {
        when_ns[i] = REDLOCK_NEVER_NS;
        assert_true(redlock_schedule_reserve(&schedule));
    }
    uint32_t random = 7;
    for (unsigned step = 0; step < 50000; step++) {
        const uint32_t draw = redlock_jitter_next(&random);
        const unsigned item = draw % ITEMS;
        if ((draw >> 16) % 4 == 0) {
            pop_one(&schedule, items, when_ns, (int64_t)(redlock_jitter_next(&random) % 1000));
        } else {
            const uint32_t when = redlock_jitter_next(&random) % 1100;
            when_ns[item] = when < 1000 ? (int64_t)when : REDLOCK_NEVER_NS;
            redlock_schedule_set(&schedule, &items[item], when_ns[item]);
        }
        check_first(&schedule, when_ns, false);
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        redlock_schedule_unreserve(&schedule, &items[i]);
    }
    assert_int_equal(redlock_schedule_first_ns(&schedule), REDLOCK_NEVER_NS);
    redlock_schedule_clear(&schedule);
}

TEST(empty_has_nothing_due) {
    struct redlock_schedule schedule = {0};
    assert_null(redlock_schedule_pop(&schedule, REDLOCK_NEVER_NS));
    assert_int_equal(redlock_schedule_first_ns(&schedule), REDLOCK_NEVER_NS);
    redlock_schedule_clear(&schedule);
}

/* Room is kept for those who are there, not for all that ever were. */
TEST(room_is_given_back) {
    struct redlock_schedule schedule = {0};
    struct redlock_due due = {0};
    uint32_t capacity = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(redlock_schedule_reserve(&schedule));
        redlock_schedule_set(&schedule, &due, i);
        redlock_schedule_unreserve(&schedule, &due);
        capacity = capacity != 0 ? capacity : schedule.capacity;
        assert_int_equal(schedule.capacity, capacity);
    }
    assert_int_equal(schedule.count, 0);
    redlock_schedule_clear(&schedule);
}
