/* Memory that a group keeps for its next requesters. */
#include <stdlib.h>

#include "group/group.h"
#include "test.h"

#define SIZE ((size_t)96)

TEST(last_given_is_next) {
    struct redlock_spares spares = {0};
    void *first = redlock_spares_take(&spares, SIZE), *second = redlock_spares_take(&spares, SIZE);
    redlock_spares_give(&spares, first, SIZE);
    redlock_spares_give(&spares, second, SIZE);
    if (REDLOCK_SPARES_MAX > 0) {
        assert_int_equal(spares.count, 2);
        assert_ptr_equal(redlock_spares_take(&spares, SIZE), second);
        assert_ptr_equal(redlock_spares_take(&spares, SIZE), first);
        redlock_spares_give(&spares, first, SIZE);
        redlock_spares_give(&spares, second, SIZE);
    }
    redlock_spares_clear(&spares);
    assert_int_equal(spares.count, 0);
    assert_null(spares.first);
}

TEST(keeps_no_more_than_its_bound) {
    static void *taken[REDLOCK_SPARES_MAX + 10];
    struct redlock_spares spares = {0};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        taken[i] = redlock_spares_take(&spares, SIZE);
    }
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        redlock_spares_give(&spares, taken[i], SIZE);
    }
    assert_int_equal(spares.count, REDLOCK_SPARES_MAX);
    redlock_spares_clear(&spares);
}

/* What is taken is as large as was asked for. Pieces of a size that nobody wants any more go, one
 * for each that is given of another size. */
TEST(another_size_makes_room) {
    struct redlock_spares spares = {0};
    void *kept[] = {redlock_spares_take(&spares, SIZE), redlock_spares_take(&spares, SIZE)};
    redlock_spares_give(&spares, kept[0], SIZE);
    redlock_spares_give(&spares, kept[1], SIZE);
    for (int i = 0; i < 3; i++) {
        char *larger = redlock_spares_take(&spares, 4 * SIZE);
        memset(larger, i, 4 * SIZE);
        redlock_spares_give(&spares, larger, 4 * SIZE);
    }
    if (REDLOCK_SPARES_MAX > 0) {
        assert_int_equal(spares.size, 4 * SIZE);
        assert_int_equal(spares.count, 1);
    }
    redlock_spares_clear(&spares);
}
