/* The planted bugs of the core: each does what its name says, and does nothing while it is off. */
#include "core/debt.h"
#include "core/planted.h"
#include "life.h"

enum redlock_planted_bug redlock_planted_bug = REDLOCK_BUG_NONE;

static int heal(UNUSED void **state) {
    redlock_planted_bug = REDLOCK_BUG_NONE;
    return 0;
}

#define FRESH_TEST(name) TEST_WITH(name, NULL, heal)

FRESH_TEST(quorum_half) {
    assert_int_equal(redlock_quorum(5), 3);
    redlock_planted_bug = REDLOCK_BUG_QUORUM_HALF;
    static const unsigned half[] = {0, 1, 1, 1, 2, 2, 3, 3};
    for (unsigned n = 1; n <= 7; n++) {
        assert_int_equal(redlock_quorum(n), half[n]);
    }
}

FRESH_TEST(no_drift) {
    struct life life;
    life_init(&life, 1);
    redlock_planted_bug = REDLOCK_BUG_NO_DRIFT;
    life_begin(&life);
    life_vote(&life, 0, G);
    assert_int_equal(life_held_until_ms(&life), TTL_MS);
}

FRESH_TEST(unknown_grants) {
    for (int bug = REDLOCK_BUG_NONE; bug <= REDLOCK_BUG_UNKNOWN_GRANTS; bug += REDLOCK_BUG_UNKNOWN_GRANTS) {
        redlock_planted_bug = (enum redlock_planted_bug)bug;
        struct life life;
        life_start(&life, 3);
        life_votes(&life, "GU");
        if (bug == REDLOCK_BUG_NONE) {
            life_expect(&life, ACQUIRING, NOTHING);
        } else {
            life_expect(&life, HELD, ACQUIRED(OK));
        }
    }
}

FRESH_TEST(no_release_to_timed_out) {
    redlock_planted_bug = REDLOCK_BUG_NO_RELEASE_TIMED_OUT;
    struct life life;
    life_start(&life, 3);
    life_expect(life_votes(&life, "UGD"), ENDED, .cleanup = 6, ACQUIRED(ERR_CONTENDED));
    life_start(&life, 3);
    life_votes(&life, "UGG");
    life_expect(life_release(&life), RELEASING, SENDS(RELEASE, 6, 2));
}

FRESH_TEST(extend_after_the_end) {
    struct life life;
    life_held(&life, false);
    redlock_planted_bug = REDLOCK_BUG_EXTEND_AFTER_END;
    life.at_ms = END_MS + 1;
    assert_is(redlock_lease_extend_check(&life.core, T0 + life.at_ms * MS), REDLOCK_OK);
    life_expect(life_extend(&life, TTL_MS), EXTENDING, SENDS(EXTEND, 31, 2));
    assert_int_equal(life_next_ms(&life), -1);
    life_expect(life_timer(&life), EXTENDING, NOTHING);
    life_expect(life_votes(&life, "GGG"), HELD, EXTENDED(OK));
    assert_int_equal(life_held_until_ms(&life), END_MS + 1 + END_MS);
    life.at_ms += END_MS; /* a loss without an extend still runs on_lost */
    life_expect(life_timer(&life), LOST, .cleanup = 31, .lost = true);
    life_held(&life, true);
    life_expect(life_timer(life_at(&life, END_MS)), EXTENDING, SENDS(EXTEND, 31, 2));
}

FRESH_TEST(loss_on_reply_only) {
    struct life life;
    life_init(&life, 3);
    redlock_planted_bug = REDLOCK_BUG_LOSS_ON_REPLY_ONLY;
    life_begin(&life);
    life_votes(&life, "GG");
    assert_int_equal(life_next_ms(&life), -1); /* and the timer does not fire again and again */
    life_expect(life_timer(life_at(&life, 2 * END_MS)), HELD, NOTHING);
    life_expect(life_vote(&life, 2, G), LOST, .cleanup = 7, .lost = true);
    life_held(&life, true);
    life_timer(life_at(&life, END_MS)); /* a due renewal is sent, and its reply shows the loss */
    life_expect(&life, EXTENDING, SENDS(EXTEND, 31, 2));
    assert_int_equal(life_next_ms(&life), -1);
    life_expect(life_vote(&life, 0, G), LOST, .cleanup = 31, .lost = true);
}

/* The first deadline is told of, and no other. */
FRESH_TEST(expiring_once) {
    for (int on = 0; on < 2; on++) {
        struct life life;
        life_init(&life, 1);
        life.plan.expiring_ms = 1000;
        redlock_planted_bug = on ? REDLOCK_BUG_EXPIRING_ONCE : REDLOCK_BUG_NONE;
        life_begin(&life);
        life_vote(&life, 0, G);
        life_expect(life_timer(life_at(&life, END_MS - 1000)), HELD, .expiring = true);
        life_extend(&life, TTL_MS);
        life_vote(&life, 0, G);
        assert_int_equal(life_next_ms(&life), life.at_ms + END_MS - (on ? 0 : 1000));
    }
}

FRESH_TEST(debt_ends_by_clock) {
    struct redlock_debt debt;
    redlock_debt_start(&debt, 1, 1, 1000);
    assert_false(redlock_debt_over(&debt, 1000));
    redlock_planted_bug = REDLOCK_BUG_DEBT_ENDS_BY_CLOCK;
    redlock_debt_start(&debt, 1, 1, 1000);
    assert_false(redlock_debt_over(&debt, 999));
    assert_int_equal(redlock_debt_next_ns(&debt, 0, 999), 1000);
    assert_true(redlock_debt_over(&debt, 1000));
}

/* A waiter on three nodes, at 1000 ms, with WAITs 1 and 2 sent. */
static void queued(struct life *life) {
    life_init(life, 3);
    life_may_queue(life);
    life->in_line = true;
    life->view = (struct redlock_grants_view){.holder = REDLOCK_HOLDER_EARLIER, .holder_id = 9, .pttl_ms = 1000};
    life_begin(life);
    life->at_ms = 1000;
    life->core.next_try_ns = T0 + 1000 * MS;
    life_expect(life_timer(life), QUEUED, WAITS(7, 2, REFRESHED));
}

FRESH_TEST(queue_no_serials) {
    for (int on = 0; on <= 1; on++) {
        struct life life;
        queued(&life);
        redlock_planted_bug = on ? REDLOCK_BUG_QUEUE_NO_SERIALS : REDLOCK_BUG_NONE;
        life_vote(&life, 0, D);
        life_push(&life, 0, 1);
        assert_int_equal(life_queue(&life)->granted, on);
    }
}

FRESH_TEST(queue_bound_at_push) {
    struct life life;
    queued(&life);
    redlock_planted_bug = REDLOCK_BUG_QUEUE_BOUND_AT_PUSH;
    life_push(life_at(&life, 3000), 0, 1);
    life_push(&life, 1, 1);
    assert_int_equal(life_held_until_ms(&life), 3000 + END_MS);
}

FRESH_TEST(queue_late_backing) {
    for (int on = 0; on <= 1; on++) {
        struct life life;
        queued(&life);
        redlock_planted_bug = on ? REDLOCK_BUG_QUEUE_LATE_BACKING : REDLOCK_BUG_NONE;
        life_vote(&life, 0, G);
        life_vote(&life, 1, G);
        life_push(&life, 2, 1);
        assert_int_equal(redlock_lease_backing_nodes(&life.core), on ? 7 : 3);
    }
}

FRESH_TEST(queue_yield_keeps) {
    struct life life;
    queued(&life);
    redlock_planted_bug = REDLOCK_BUG_QUEUE_YIELD_KEEPS;
    life_vote(&life, 0, D);
    life_vote(&life, 1, G);
    life_expect(life_timer(life_at(&life, 1002)), QUEUED, WAITS(7, 3, LOOKED));
    life_vote(&life, 0, D);
    life_vote(&life, 1, G);
    life_expect(life_vote(&life, 2, U), QUEUED, .cleanup = 7, WAITS(7, 4, YIELDED));
    assert_false(life.did.fresh_token);
    life_push(&life, 1, 3); /* a token that was given up */
    assert_int_equal(life_queue(&life)->granted, 2);
}
