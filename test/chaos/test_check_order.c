/* The order in a queue: a clean history, a planted violation, and each excuse. */
#include "check_kit.h"

/* The ttl is 1 s: a place is good for 750 ms, and all is calm 2,600 ms after the last fault. */
enum { CALM_S = 4 };

static void acquire(struct kit *kit, int client, const char *token, int64_t ticket, int64_t from_us, int64_t to_us) {
    kit_operation(kit, client, 0, CHAOS_ACQUIRE, from_us, to_us, "OK");
    kit_ticket(kit, token, ticket);
}

/* Client 1 waits with ticket 5 from 4 s, client 2 with ticket 6 from 4.1 s. Client 1 was seen in
 * line in between, at these nodes. They get the lock after so many ms. */
static void two(struct kit *kit, uint32_t seen_at, int64_t first_ms, int64_t second_ms) {
    acquire(kit, 0, "a", 5, CALM_S * S, CALM_S * S + first_ms * MS);
    acquire(kit, 1, "b", 6, CALM_S * S + 100 * MS, CALM_S * S + second_ms * MS);
    kit_queue(kit, kit_sweep(kit, 0, CALM_S * S + 50 * MS, CALM_S * S + 100 * MS), seen_at, "a");
}

static void expect_order(struct kit *kit, size_t count, int64_t passed_over, int64_t judged) {
    kit_finish(kit, 20 * S);
    expect(kit, chaos_check_order, CHAOS_VIOLATION_ORDER, count);
    assert_int_equal(verdict.passed_over, passed_over);
    assert_int_equal(verdict.order_judged, judged);
}

/* What the page says of the line: acquires with a ticket, first tries left out. */
FRESH_TEST(waits_are_counted) {
    two(kit, 31, 300, 400);
    acquire(kit, 2, "c", 0, CALM_S * S, CALM_S * S + 1);
    kit_finish(kit, 20 * S);
    expect(kit, chaos_figures, CHAOS_VIOLATION_ORDER, 0);
    assert_int_equal(verdict.acquire_in_line.count, 2);
    assert_int_equal(verdict.acquire_in_line.max_us, 300 * MS);
    assert_int_equal(verdict.acquire.count, 3);
}

FRESH_TEST(who_came_first_is_served_first) {
    two(kit, 31, 300, 400);
    expect_order(kit, 0, 0, 1);
}

FRESH_TEST(one_in_line_is_passed_over) {
    two(kit, 7, 500, 400);
    expect_order(kit, 1, 1, 1);
    expect_text(0,
                "r1: client 1 was in line by 4.100 s and got the lock at 4.500 s; client 2 began at 4.100 s, and got "
                "it at 4.400 s, with a higher ticket");
    assert_int_equal(verdict.violations[0].clients[0], 0);
    assert_int_equal(verdict.violations[0].clients[1], 1);
}

/* All of these are figures only. */
FRESH_TEST(a_minority_proves_nothing) {
    two(kit, 3, 500, 400);
    expect_order(kit, 0, 1, 0);
}

FRESH_TEST(nor_does_a_line_that_it_joined_later) {
    two(kit, 31, 500, 400);
    kit->history.operations[1].invoked_us--;
    expect_order(kit, 0, 1, 0);
}

FRESH_TEST(nor_does_another_token) {
    two(kit, 31, 500, 400);
    strcpy(kit->history.operations[0].token, "c");
    expect_order(kit, 0, 1, 0);
}

FRESH_TEST(nor_does_another_resource) {
    two(kit, 31, 500, 400);
    kit->history.operations[1].resource = 1;
    expect_order(kit, 0, 0, 0);
}

FRESH_TEST(places_become_stale) {
    two(kit, 31, 900, 749);
    acquire(kit, 2, "c", 7, CALM_S * S + 200 * MS, CALM_S * S + 750 * MS);
    expect_order(kit, 1, 2, 1);
}

FRESH_TEST(a_lower_ticket_goes_first) {
    two(kit, 31, 500, 400);
    kit->history.operations[1].ticket = 5;
    expect_order(kit, 0, 1, 0);
}

FRESH_TEST(a_first_try_has_no_ticket) {
    two(kit, 31, 500, 400);
    kit->history.operations[1].ticket = 0;
    expect_order(kit, 0, 1, 0);
}

FRESH_TEST(a_fault_excuses_it) {
    two(kit, 31, 500, 400);
    kit_band(kit, CHAOS_FAULT_UNSUBSCRIBE, 1, 0, 1 * S, CALM_S * S - 2599 * MS);
    expect_order(kit, 0, 1, 0);
}

FRESH_TEST(but_not_for_ever) {
    two(kit, 31, 500, 400);
    kit_band(kit, CHAOS_FAULT_UNSUBSCRIBE, 1, 0, 1 * S, CALM_S * S - 2600 * MS);
    kit_band(kit, CHAOS_FAULT_PAUSE, 1, 0, CALM_S * S + 401 * MS, 9 * S);
    expect_order(kit, 1, 1, 1);
}

FRESH_TEST(a_fault_without_end_does) {
    two(kit, 31, 500, 400);
    kit_band(kit, CHAOS_FAULT_PAUSE, 1, 0, 1 * S, CHAOS_NEVER_US);
    expect_order(kit, 0, 1, 0);
}

FRESH_TEST(so_does_a_new_process) {
    kit_kill(kit, 0, 1 * S);
    kit_spawn(kit, 0, CALM_S * S - 2599 * MS);
    two(kit, 31, 500, 400);
    expect_order(kit, 0, 1, 0);
}

/* Who began at about the same time was not passed over. */
FRESH_TEST(a_near_tie_counts_nothing) {
    acquire(kit, 0, "a", 5, CALM_S * S, CALM_S * S + 500 * MS);
    acquire(kit, 1, "b", 6, CALM_S * S + 50 * MS, CALM_S * S + 400 * MS);
    acquire(kit, 2, "c", 0, CALM_S * S + 50 * MS + 1, CALM_S * S + 450 * MS);
    expect_order(kit, 0, 1, 0);
}
