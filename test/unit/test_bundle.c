/* The states of a bundle: each row of the table in core/bundle.h. */

#include "core/bundle.h"
#include "core/time.h"
#include "redlock/result.h"
#include "test.h"

#define MS REDLOCK_NS_PER_MS
/* Sets of items. */
#define A   REDLOCK_ITEM(0)
#define B   REDLOCK_ITEM(1)
#define C   REDLOCK_ITEM(2)
#define D   REDLOCK_ITEM(3)
#define ALL (A | B | C | D)

static struct redlock_bundle_core bundle;
static struct redlock_bundle_actions actions;
static int64_t now_ns;

static int fresh(UNUSED void **state) {
    now_ns = 5000 * MS;
    redlock_bundle_init(&bundle, 4, 6000 * MS, false);
    return 0;
}

static void feed(enum redlock_bundle_event_type type, redlock_items item, int code) {
    const struct redlock_bundle_event event = {
        .type = type, .item = item ? (unsigned)__builtin_ctzll(item) : 0, .code = code, .now_ns = now_ns};
    redlock_bundle_step(&bundle, &event, &actions);
}

/* What is done is that, and nothing else. */
static void assert_done(enum redlock_bundle_state next, struct redlock_bundle_actions expected) {
    assert_is(bundle.state, next);
    assert_int_equal(actions.cancel, expected.cancel);
    assert_int_equal(actions.end, expected.end);
    assert_int_equal(actions.forget, expected.forget);
    assert_int_equal(actions.release, expected.release);
    assert_int_equal(actions.extend, expected.extend);
    assert_int_equal(actions.ask, expected.ask);
    assert_int_equal(actions.wait, expected.wait);
    assert_int_equal(actions.settle, expected.settle);
    assert_int_equal(actions.later, expected.later);
    assert_int_equal(actions.keep, expected.keep);
    assert_int_equal(actions.tell_kept, expected.tell_kept);
    assert_int_equal(actions.tell_acquired, expected.tell_acquired);
    assert_int_equal(actions.tell_extended, expected.tell_extended);
    assert_int_equal(actions.tell_lost, expected.tell_lost);
    assert_int_equal(actions.tell_released, expected.tell_released);
    assert_is(actions.acquired_code, expected.acquired_code);
    assert_is(actions.extended_code, expected.extended_code);
    assert_is(actions.released_code, expected.released_code);
}
#define assert_next(next, ...) assert_done(REDLOCK_BUNDLE_##next, (struct redlock_bundle_actions){__VA_ARGS__})
#define assert_nothing(next)   assert_next(next, .cancel = 0)

static void call(enum redlock_bundle_event_type type) {
    feed(type, 0, REDLOCK_OK);
}

static void won(redlock_items item) {
    feed(REDLOCK_BUNDLE_WON, item, REDLOCK_OK);
}

static void failed(redlock_items item, int code) {
    feed(REDLOCK_BUNDLE_FAILED, item, code);
}

static void lost(redlock_items item) {
    feed(REDLOCK_BUNDLE_ITEM_LOST, item, REDLOCK_ERR_LOST);
}

static void begin(void) {
    call(REDLOCK_BUNDLE_BEGIN);
    assert_next(TRYING, .ask = ALL);
}

static void begin_without_wait(void) {
    redlock_bundle_init(&bundle, 4, 0, false);
    begin();
}

/* Holds A and B, and waits for C. */
static void wait_for_c(void) {
    begin();
    won(A);
    won(D);
    failed(C, REDLOCK_ERR_CONTENDED);
    assert_next(TRYING, .keep = true);
    won(B);
    assert_next(WAITING, .end = D, .wait = C);
}

static void hold(void) {
    begin();
    won(D);
    won(A);
    assert_nothing(TRYING);
    won(B);
    won(C);
    assert_next(HELD, .settle = true, .tell_acquired = true);
    assert_true(redlock_bundle_is_out(&bundle));
}

#define BUNDLE_TEST(name) TEST_WITH(name, fresh, NULL)

BUNDLE_TEST(all_at_once) {
    hold();
    assert_int_equal(bundle.attempts, 1);
}

BUNDLE_TEST(it_keeps_the_prefix_and_waits_for_the_first_that_is_missing) {
    wait_for_c();
    won(C);
    assert_next(TRYING, .ask = D);
    won(D);
    assert_next(HELD, .settle = true, .tell_acquired = true);
    assert_int_equal(bundle.attempts, 3);
}

BUNDLE_TEST(the_first_that_is_missing_is_not_the_first_that_answers) {
    begin();
    failed(D, REDLOCK_ERR_CONTENDED);
    assert_next(TRYING, .keep = true);
    won(A);
    won(C);
    failed(B, REDLOCK_ERR_NO_QUORUM);
    assert_next(WAITING, .end = C, .wait = B);
    won(B);
    assert_next(TRYING, .ask = C | D);
    won(C);
    failed(D, REDLOCK_ERR_TOO_SLOW);
    assert_next(WAITING, .wait = D);
    won(D);
    assert_next(HELD, .settle = true, .tell_acquired = true);
}

BUNDLE_TEST(nothing_is_kept_behind_the_very_first) {
    begin();
    won(B);
    won(C);
    won(D);
    failed(A, REDLOCK_ERR_CONTENDED);
    assert_next(WAITING, .end = B | C | D, .wait = A);
}

BUNDLE_TEST(without_a_wait_the_first_that_is_missing_says_why) {
    begin_without_wait();
    failed(C, REDLOCK_ERR_CONTENDED);
    failed(D, REDLOCK_ERR_NO_QUORUM);
    assert_nothing(TRYING);
    won(A);
    won(B);
    assert_next(ENDED, .end = A | B, .tell_acquired = true, .tell_kept = true, .acquired_code = REDLOCK_ERR_CONTENDED);
    assert_true(redlock_bundle_is_over(&bundle));
}

BUNDLE_TEST(the_last_answer_can_say_why) {
    begin_without_wait();
    won(A);
    won(C);
    failed(D, REDLOCK_ERR_NO_QUORUM);
    failed(B, REDLOCK_ERR_CONTENDED);
    assert_next(ENDED, .end = A | C, .tell_acquired = true, .acquired_code = REDLOCK_ERR_CONTENDED);
}

BUNDLE_TEST(no_wait_helps_after_some_errors) {
    begin();
    won(A);
    won(B);
    won(C);
    failed(D, REDLOCK_ERR_RANDOM);
    assert_next(ENDED, .end = A | B | C, .tell_acquired = true, .acquired_code = REDLOCK_ERR_RANDOM);
}

BUNDLE_TEST(no_wait_begins_after_its_time) {
    begin();
    won(A);
    won(B);
    won(C);
    now_ns = 6000 * MS;
    failed(D, REDLOCK_ERR_CONTENDED);
    assert_next(ENDED, .end = A | B | C, .tell_acquired = true, .acquired_code = REDLOCK_ERR_CONTENDED);
}

BUNDLE_TEST(a_wait_that_fails_ends_all) {
    wait_for_c();
    failed(C, REDLOCK_ERR_CONTENDED);
    assert_next(ENDED, .end = A | B, .tell_acquired = true, .acquired_code = REDLOCK_ERR_CONTENDED);
    assert_true(redlock_bundle_is_over(&bundle));
}

BUNDLE_TEST(one_that_is_lost_while_others_are_asked_for_is_missing) {
    begin();
    won(A);
    won(B);
    lost(A);
    assert_next(TRYING, .end = A, .keep = true);
    failed(C, REDLOCK_ERR_CONTENDED);
    assert_nothing(TRYING);
    won(D);
    assert_next(WAITING, .end = B | D, .wait = A);
}

BUNDLE_TEST(a_loss_without_a_wait_is_no_quorum) {
    begin_without_wait();
    won(A);
    lost(A);
    won(B);
    won(C);
    won(D);
    assert_next(ENDED, .end = B | C | D, .tell_acquired = true, .tell_kept = true,
                .acquired_code = REDLOCK_ERR_NO_QUORUM);
}

BUNDLE_TEST(one_that_is_lost_during_the_wait_is_waited_for_instead) {
    wait_for_c();
    lost(B);
    assert_next(RETREATING, .cancel = C, .end = B, .keep = true);
    failed(C, REDLOCK_ERR_CANCELLED);
    assert_next(WAITING, .wait = B);
    won(B);
    assert_next(TRYING, .ask = C | D);
}

BUNDLE_TEST(what_comes_after_the_one_that_is_lost_is_released) {
    wait_for_c();
    lost(A);
    assert_next(RETREATING, .cancel = C, .end = A | B, .keep = true);
    failed(C, REDLOCK_ERR_CANCELLED);
    assert_next(WAITING, .wait = A);
}

BUNDLE_TEST(two_are_lost_during_the_wait) {
    wait_for_c();
    lost(B);
    lost(A);
    assert_next(RETREATING, .end = A, .keep = true);
    failed(C, REDLOCK_ERR_CANCELLED);
    assert_next(WAITING, .wait = A);
}

BUNDLE_TEST(the_time_ends_with_a_loss) {
    wait_for_c();
    lost(B);
    now_ns = 6000 * MS;
    failed(C, REDLOCK_ERR_CANCELLED);
    assert_next(ENDED, .end = A, .tell_acquired = true, .tell_kept = true, .acquired_code = REDLOCK_ERR_NO_QUORUM);
}

BUNDLE_TEST(a_cancel_while_it_asks) {
    begin();
    won(A);
    failed(B, REDLOCK_ERR_CONTENDED);
    feed(REDLOCK_BUNDLE_CANCEL, 0, REDLOCK_ERR_CANCELLED);
    assert_next(LEAVING, .cancel = C | D, .end = A);
    feed(REDLOCK_BUNDLE_CANCEL, 0, REDLOCK_ERR_CANCELLED);
    assert_nothing(LEAVING);
    failed(C, REDLOCK_ERR_CANCELLED);
    assert_nothing(LEAVING);
    failed(D, REDLOCK_ERR_CANCELLED);
    assert_next(ENDED, .tell_acquired = true, .acquired_code = REDLOCK_ERR_CANCELLED);
}

BUNDLE_TEST(a_cancel_while_it_waits) {
    wait_for_c();
    feed(REDLOCK_BUNDLE_CANCEL, 0, REDLOCK_ERR_CANCELLED);
    assert_next(LEAVING, .cancel = C, .end = A | B);
    failed(C, REDLOCK_ERR_CANCELLED);
    assert_next(ENDED, .tell_acquired = true, .acquired_code = REDLOCK_ERR_CANCELLED);
}

BUNDLE_TEST(a_cancel_while_it_retreats) {
    wait_for_c();
    lost(B);
    feed(REDLOCK_BUNDLE_CANCEL, 0, REDLOCK_ERR_CANCELLED);
    assert_next(LEAVING, .end = A);
    failed(C, REDLOCK_ERR_CANCELLED);
    assert_next(ENDED, .tell_acquired = true, .acquired_code = REDLOCK_ERR_CANCELLED);
}

BUNDLE_TEST(an_extension_is_of_all) {
    hold();
    call(REDLOCK_BUNDLE_EXTEND);
    assert_next(HELD, .extend = ALL);
    feed(REDLOCK_BUNDLE_EXTENDED, B, REDLOCK_OK);
    feed(REDLOCK_BUNDLE_EXTENDED, C, REDLOCK_OK);
    feed(REDLOCK_BUNDLE_EXTENDED, A, REDLOCK_OK);
    assert_nothing(HELD);
    feed(REDLOCK_BUNDLE_EXTENDED, D, REDLOCK_OK);
    assert_next(HELD, .tell_extended = true);
}

BUNDLE_TEST(the_worst_code_of_an_extension_is_told) {
    hold();
    call(REDLOCK_BUNDLE_EXTEND);
    feed(REDLOCK_BUNDLE_EXTENDED, B, REDLOCK_ERR_TOO_SLOW);
    assert_next(HELD, .keep = true);
    feed(REDLOCK_BUNDLE_EXTENDED, C, REDLOCK_ERR_NO_QUORUM);
    assert_next(HELD, .keep = true);
    feed(REDLOCK_BUNDLE_EXTENDED, A, REDLOCK_ERR_TOO_SLOW);
    assert_nothing(HELD);
    feed(REDLOCK_BUNDLE_EXTENDED, D, REDLOCK_OK);
    assert_next(HELD, .tell_extended = true, .tell_kept = true, .extended_code = REDLOCK_ERR_NO_QUORUM);
    call(REDLOCK_BUNDLE_EXTEND);
    assert_next(HELD, .extend = ALL);
    feed(REDLOCK_BUNDLE_EXTENDED, A, REDLOCK_OK);
    feed(REDLOCK_BUNDLE_EXTENDED, B, REDLOCK_OK);
    feed(REDLOCK_BUNDLE_EXTENDED, C, REDLOCK_OK);
    feed(REDLOCK_BUNDLE_EXTENDED, D, REDLOCK_ERR_LOST); /* adopted: no loss follows */
    assert_next(HELD, .tell_extended = true, .extended_code = REDLOCK_ERR_LOST);
}

BUNDLE_TEST(who_loses_one_loses_all) {
    hold();
    lost(C);
    assert_next(LOST, .end = ALL, .keep = true, .tell_lost = true);
    assert_true(redlock_bundle_is_out(&bundle));
    call(REDLOCK_BUNDLE_RELEASE);
    assert_next(RELEASING, .later = true);
    assert_false(redlock_bundle_is_out(&bundle));
    call(REDLOCK_BUNDLE_TIMER);
    assert_next(ENDED, .tell_released = true, .tell_kept = true, .released_code = REDLOCK_ERR_LOST);
    call(REDLOCK_BUNDLE_TIMER);
    assert_nothing(ENDED);
}

BUNDLE_TEST(with_a_lock_delay_the_others_are_not_released) {
    redlock_bundle_init(&bundle, 4, 6000 * MS, true);
    hold();
    lost(C);
    assert_next(LOST, .end = C, .forget = A | B | D, .keep = true, .tell_lost = true);
    call(REDLOCK_BUNDLE_FORGET);
    assert_nothing(ENDED);
    assert_true(redlock_bundle_is_over(&bundle));
}

BUNDLE_TEST(a_loss_ends_the_extension) {
    hold();
    call(REDLOCK_BUNDLE_EXTEND);
    feed(REDLOCK_BUNDLE_EXTENDED, C, REDLOCK_ERR_LOST);
    assert_next(HELD, .keep = true);
    lost(C);
    assert_next(LOST, .end = ALL, .keep = true, .tell_lost = true, .tell_extended = true,
                .extended_code = REDLOCK_ERR_LOST);
    feed(REDLOCK_BUNDLE_EXTENDED, A, REDLOCK_ERR_CANCELLED);
    feed(REDLOCK_BUNDLE_EXTENDED, B, REDLOCK_ERR_CANCELLED);
    assert_nothing(LOST);
    call(REDLOCK_BUNDLE_FORGET);
    assert_nothing(ENDED);
    assert_false(redlock_bundle_is_over(&bundle)); /* D */
    feed(REDLOCK_BUNDLE_EXTENDED, D, REDLOCK_ERR_CANCELLED);
    assert_nothing(ENDED);
    assert_true(redlock_bundle_is_over(&bundle));
}

BUNDLE_TEST(a_release_is_of_all) {
    hold();
    call(REDLOCK_BUNDLE_RELEASE);
    assert_next(RELEASING, .release = ALL);
    assert_int_equal(bundle.held, 0);
    call(REDLOCK_BUNDLE_TIMER);
    assert_nothing(RELEASING);
    feed(REDLOCK_BUNDLE_RELEASED, A, REDLOCK_OK);
    feed(REDLOCK_BUNDLE_RELEASED, B, REDLOCK_OK);
    feed(REDLOCK_BUNDLE_RELEASED, C, REDLOCK_OK);
    assert_nothing(RELEASING);
    feed(REDLOCK_BUNDLE_RELEASED, D, REDLOCK_OK);
    assert_next(ENDED, .tell_released = true);
}

BUNDLE_TEST(the_worst_code_of_a_release_is_told) {
    hold();
    call(REDLOCK_BUNDLE_RELEASE);
    feed(REDLOCK_BUNDLE_RELEASED, A, REDLOCK_ERR_LOST);
    assert_next(RELEASING, .keep = true);
    feed(REDLOCK_BUNDLE_RELEASED, B, REDLOCK_ERR_NO_QUORUM);
    feed(REDLOCK_BUNDLE_RELEASED, C, REDLOCK_OK);
    assert_nothing(RELEASING);
    feed(REDLOCK_BUNDLE_RELEASED, D, REDLOCK_ERR_CLOSED);
    assert_next(ENDED, .tell_released = true, .tell_kept = true, .released_code = REDLOCK_ERR_LOST);
}

BUNDLE_TEST(the_last_answer_to_a_release_can_be_the_worst) {
    hold();
    call(REDLOCK_BUNDLE_RELEASE);
    feed(REDLOCK_BUNDLE_RELEASED, A, REDLOCK_ERR_NO_QUORUM);
    feed(REDLOCK_BUNDLE_RELEASED, B, REDLOCK_OK);
    feed(REDLOCK_BUNDLE_RELEASED, C, REDLOCK_OK);
    feed(REDLOCK_BUNDLE_RELEASED, D, REDLOCK_ERR_LOST);
    assert_next(ENDED, .tell_released = true, .released_code = REDLOCK_ERR_LOST);
}

BUNDLE_TEST(a_release_ends_the_extension) {
    hold();
    call(REDLOCK_BUNDLE_EXTEND);
    feed(REDLOCK_BUNDLE_EXTENDED, A, REDLOCK_OK);
    call(REDLOCK_BUNDLE_RELEASE);
    assert_next(RELEASING, .release = ALL);
    feed(REDLOCK_BUNDLE_EXTENDED, B, REDLOCK_ERR_CANCELLED);
    feed(REDLOCK_BUNDLE_EXTENDED, C, REDLOCK_ERR_CANCELLED);
    feed(REDLOCK_BUNDLE_EXTENDED, D, REDLOCK_ERR_CANCELLED);
    assert_next(RELEASING, .tell_extended = true, .tell_kept = true, .extended_code = REDLOCK_ERR_CANCELLED);
}

BUNDLE_TEST(to_forget_is_to_forget_all) {
    hold();
    call(REDLOCK_BUNDLE_EXTEND);
    call(REDLOCK_BUNDLE_FORGET);
    assert_next(ENDED, .forget = ALL);
    feed(REDLOCK_BUNDLE_EXTENDED, A, REDLOCK_ERR_CANCELLED);
    feed(REDLOCK_BUNDLE_EXTENDED, B, REDLOCK_ERR_CANCELLED);
    feed(REDLOCK_BUNDLE_EXTENDED, C, REDLOCK_ERR_CANCELLED);
    feed(REDLOCK_BUNDLE_EXTENDED, D, REDLOCK_ERR_CANCELLED);
    assert_next(ENDED, .tell_extended = true, .tell_kept = true, .extended_code = REDLOCK_ERR_CANCELLED);
    assert_true(redlock_bundle_is_over(&bundle));
}

BUNDLE_TEST(one_that_is_adopted_is_held) {
    call(REDLOCK_BUNDLE_ADOPT);
    assert_nothing(HELD);
    call(REDLOCK_BUNDLE_EXTEND);
    assert_next(HELD, .extend = ALL);
}

BUNDLE_TEST(a_close_while_it_asks) {
    begin();
    won(A);
    call(REDLOCK_BUNDLE_CLOSE);
    assert_nothing(LEAVING);
    failed(B, REDLOCK_ERR_CLOSED);
    failed(C, REDLOCK_ERR_CLOSED);
    failed(D, REDLOCK_ERR_CLOSED);
    assert_next(ENDED, .tell_acquired = true, .acquired_code = REDLOCK_ERR_CLOSED);
}

BUNDLE_TEST(a_close_after_a_cancel) {
    wait_for_c();
    feed(REDLOCK_BUNDLE_CANCEL, 0, REDLOCK_ERR_CANCELLED);
    call(REDLOCK_BUNDLE_CLOSE);
    assert_nothing(LEAVING);
    failed(C, REDLOCK_ERR_CANCELLED);
    assert_next(ENDED, .tell_acquired = true, .acquired_code = REDLOCK_ERR_CANCELLED);
}

BUNDLE_TEST(a_close_ends_what_is_held) {
    hold();
    call(REDLOCK_BUNDLE_EXTEND);
    call(REDLOCK_BUNDLE_CLOSE);
    assert_nothing(ENDED);
    feed(REDLOCK_BUNDLE_EXTENDED, A, REDLOCK_ERR_CLOSED);
    feed(REDLOCK_BUNDLE_EXTENDED, B, REDLOCK_ERR_CLOSED);
    feed(REDLOCK_BUNDLE_EXTENDED, C, REDLOCK_ERR_CLOSED);
    feed(REDLOCK_BUNDLE_EXTENDED, D, REDLOCK_ERR_CLOSED);
    assert_next(ENDED, .tell_extended = true, .tell_kept = true, .extended_code = REDLOCK_ERR_CLOSED);
}

BUNDLE_TEST(a_close_leaves_a_release_as_it_is) {
    hold();
    call(REDLOCK_BUNDLE_RELEASE);
    call(REDLOCK_BUNDLE_CLOSE);
    assert_nothing(RELEASING);
}

BUNDLE_TEST(one_item_and_sixty_four) {
    redlock_bundle_init(&bundle, 1, 6000 * MS, false);
    call(REDLOCK_BUNDLE_BEGIN);
    assert_next(TRYING, .ask = A);
    failed(A, REDLOCK_ERR_CONTENDED);
    assert_next(WAITING, .wait = A);
    won(A);
    assert_next(HELD, .settle = true, .tell_acquired = true);
    redlock_bundle_init(&bundle, REDLOCK_BUNDLE_MAX, REDLOCK_NEVER_NS, false);
    call(REDLOCK_BUNDLE_BEGIN);
    assert_next(TRYING, .ask = ~(redlock_items)0);
    for (unsigned i = 0; i < REDLOCK_BUNDLE_MAX - 1; i++) {
        won(REDLOCK_ITEM(i));
    }
    failed(REDLOCK_ITEM(REDLOCK_BUNDLE_MAX - 1), REDLOCK_ERR_CONTENDED);
    assert_next(WAITING, .wait = REDLOCK_ITEM(REDLOCK_BUNDLE_MAX - 1));
}
