/* The life of a lease as its caller knows it: the steps in the table of group/handle.h, and no
 * others. */
#include "group/handle.h"
#include "test.h"

#define REQUESTED REDLOCK_LIFE_REQUESTED
#define OUT       REDLOCK_LIFE_OUT
#define RELEASING REDLOCK_LIFE_RELEASING
#define CLOSING   REDLOCK_LIFE_CLOSING
#define OVER      REDLOCK_LIFE_OVER
#define FORGOTTEN REDLOCK_LIFE_FORGOTTEN
#define LINGERING REDLOCK_LIFE_LINGERING

TEST(a_handle_takes_the_steps_of_the_table) {
    static const struct {
        enum redlock_life life, next;
    } steps[] = {
        {REQUESTED, OUT},  {REQUESTED, OVER}, {OUT, RELEASING}, {OUT, CLOSING},    {OUT, FORGOTTEN},
        {RELEASING, OVER}, {CLOSING, OVER},   {OVER, OVER},     {OVER, LINGERING}, {FORGOTTEN, LINGERING},
    };
    for (enum redlock_life life = REQUESTED; life <= LINGERING; life++) {
        for (enum redlock_life next = REQUESTED; next <= LINGERING; next++) {
            bool is_there = false;
            for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
                is_there = is_there || (steps[i].life == life && steps[i].next == next);
            }
            if (redlock_life_may_become(life, next) != is_there) {
                fail_msg("from %d to %d", (int)life, (int)next);
            }
        }
    }
}

TEST(a_span_lasts_from_the_handing_out_to_the_release) {
    struct redlock_lease lease = {.life = REQUESTED};
    assert_false(redlock_handle_has_span(&lease));
    redlock_handle_become(&lease, OUT);
    assert_true(redlock_handle_has_span(&lease));
    redlock_handle_become(&lease, CLOSING);
    assert_true(redlock_handle_has_span(&lease));
    redlock_handle_become(&lease, OVER);
    assert_false(redlock_handle_has_span(&lease));
    assert_false(redlock_handle_is_forgotten(&lease));
    redlock_handle_become(&lease, LINGERING);
    assert_false(redlock_handle_has_span(&lease));
    assert_true(redlock_handle_is_forgotten(&lease));
}
