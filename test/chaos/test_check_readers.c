/* The rules for those who read beside those who write, each check alone: a clean history, a planted
 * violation, and the limits between. */
#include "check_kit.h"

/* OUTLIVED: a reader has an entry among others, or the whole key. */

FRESH_TEST(a_quorum_has_the_reader) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S), sweep = kit_sweep(kit, 0, 1100 * MS, 1110 * MS);
    kit_see_reader(kit, sweep, 0x07, "b", 100);
    kit_see_reader(kit, sweep, 0x03, "a", 890);
    kit_see(kit, sweep, 0x08, "a", 890);
    kit_release(kit, lease, 1300 * MS);
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
    kit->history.sweeps[sweep].nodes[0].readers[1].left_ms = 888;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    expect_text(0, "at first: node 1 has it for 888 ms more only, node 2 has it, node 3 another's token, node 4 has "
                   "it, node 5 no key");
}

/* OVERLAP: those who read have it together. */

FRESH_TEST(readers_have_it_together) {
    kit_release(kit, kit_acquire(kit, 0, 0, "w", 500 * MS, 1400 * MS), 1 * S);
    kit_release(kit, kit_acquire_shared(kit, 1, 0, "a", 1 * S, 2 * S), 1900 * MS);
    kit_release(kit, kit_acquire_shared(kit, 2, 0, "b", 1200 * MS, 2200 * MS), 1300 * MS);
    kit_release(kit, kit_acquire(kit, 0, 0, "x", 1900 * MS, 2900 * MS), 2 * S);
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 0);
}

/* The one who reads for longest counts, whoever came in between. */
FRESH_TEST(a_writer_beside_a_reader) {
    kit_release(kit, kit_acquire_shared(kit, 1, 0, "a", 1 * S, 2 * S), 1900 * MS);
    kit_release(kit, kit_acquire_shared(kit, 2, 0, "b", 1200 * MS, 2200 * MS), 1300 * MS);
    kit_release(kit, kit_acquire(kit, 0, 0, "x", 1900 * MS - 1, 2900 * MS), 2 * S);
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 1);
    expect_text(
        0,
        "client 2 (token a, to read) relied on it from 1.000 s to 1.900 s, client 1 (token x) from 1.900 s to 2.000");
}

FRESH_TEST(readers_beside_a_writer) {
    kit_release(kit, kit_acquire(kit, 0, 0, "x", 1 * S, 2 * S), 1900 * MS);
    kit_release(kit, kit_acquire_shared(kit, 1, 0, "a", 1500 * MS, 2500 * MS), 2 * S);
    kit_release(kit, kit_acquire_shared(kit, 2, 0, "b", 1900 * MS - 1, 2800 * MS), 2 * S);
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 2);
}

/* CHANGED */

FRESH_TEST(a_count_stays_while_it_is_read) {
    size_t lease = kit_acquire_shared(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_read(kit, lease, 5, 1100 * MS, 0, 0);
    kit_read(kit, lease, 5, 2 * S, 0, 0);
    size_t later = kit_acquire_shared(kit, 1, 0, "b", 1500 * MS, 2500 * MS);
    kit_read(kit, later, 6, 1600 * MS, 0, 0);
    expect_at_end(kit, chaos_check_updates, CHAOS_VIOLATION_CHANGED, 0);
    kit->history.reads[2].count = 4;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_CHANGED, 1);
    expect_text(0, "r1: client 1 (token a) read 5 by 1.100 s and 4 by 2.000 s, though it had it until 2.000 s to read");
    /* It was stopped, and read on when its lease was over. */
    kit->history.reads[2].at_us++;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_CHANGED, 0);
}

/* FENCE: above every earlier writer's, below every later writer's. */

static size_t fenced(struct kit *kit, bool shared, int client, const char *token, int64_t fence, int64_t from_us) {
    size_t lease = (shared ? kit_acquire_shared : kit_acquire)(kit, client, 0, token, from_us, from_us + 900 * MS);
    kit_fence(kit, token, fence);
    kit->history.protection.fencing = true;
    return lease;
}

FRESH_TEST(readers_may_share_a_token) {
    fenced(kit, false, 0, "w", 10, 1 * S);
    fenced(kit, true, 1, "a", 1999, 2 * S);
    fenced(kit, true, 2, "b", 1999, 2100 * MS);
    fenced(kit, true, 2, "c", 999, 3 * S);
    fenced(kit, false, 0, "x", 2000, 4 * S);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 0);
    kit->history.operations[2].shared = false;
    expect(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 2);
    expect_text(0, "client 3, which asked for it at 2.999 s and got it at 3.000 s, has the fencing token 999, but "
                   "client 3 had got a higher one by 2.100 s: 1999");
    expect_text(1, "both have the fencing token 1999");
}

FRESH_TEST(a_reader_below_an_earlier_writer) {
    fenced(kit, false, 0, "w", 1000, 1 * S);
    fenced(kit, true, 1, "a", 999, 2 * S);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 1);
    expect_text(0, "client 2, which asked for it at 1.999 s and got it at 2.000 s, has the fencing token 999");
}

FRESH_TEST(a_writer_below_an_earlier_reader) {
    fenced(kit, true, 1, "a", 1999, 1 * S);
    fenced(kit, true, 2, "b", 999, 2 * S);
    fenced(kit, false, 0, "w", 1001, 3 * S);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 1);
    expect_text(0, "client 1, which asked for it at 2.999 s");
}

/* It waited while the reader had it. */
FRESH_TEST(a_writer_that_waited_below_a_reader) {
    fenced(kit, true, 1, "a", 1999, 1 * S);
    kit_operation(kit, 0, 0, CHAOS_ACQUIRE, 500 * MS, 3 * S, "OK");
    kit_fence(kit, "b", 11);
    kit_lease(kit, 0, 0, "b", 3 * S, 4 * S);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 1);
}

/* STALE: the resource compares one who reads with those who have the lock alone. */

FRESH_TEST(readers_come_in_any_order) {
    size_t writer = fenced(kit, false, 0, "w", 10, 1 * S);
    kit_receipts(kit, kit_increment(kit, writer, 0, 1010 * MS, 1020 * MS), 10, 1, 2);
    kit_release(kit, writer, 1030 * MS);
    kit_read(kit, fenced(kit, true, 1, "a", 2999, 2 * S), 1, 2010 * MS, 2999, 3);
    kit_read(kit, fenced(kit, true, 2, "b", 1999, 2 * S), 1, 2020 * MS, 1999, 4);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_STALE, 0);
    kit->history.reads[1].fence = 9;
    expect(kit, chaos_check_fence, CHAOS_VIOLATION_STALE, 1);
    expect_text(0, "the resource granted client 3 (token b) a read at 2.020 s with the fencing token 9, after it had "
                   "granted client 1 an access with 10");
}

FRESH_TEST(a_late_writer_after_a_reader) {
    kit_read(kit, fenced(kit, true, 1, "a", 999, 1 * S), 0, 1010 * MS, 999, 1);
    size_t writer = fenced(kit, false, 0, "w", 1001, 2 * S);
    kit_receipts(kit, kit_increment(kit, writer, 0, 2010 * MS, 2020 * MS), 1001, 2, 3);
    kit_release(kit, writer, 2030 * MS);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_STALE, 0);
    kit->history.increments[0].fence = 998;
    expect(kit, chaos_check_fence, CHAOS_VIOLATION_STALE, 2);
}

/* ORDER: a writer in line is passed by nobody who reads. */

static void line(struct kit *kit, bool first_reads, bool second_reads, int64_t ticket) {
    kit_operation(kit, 0, 0, CHAOS_ACQUIRE, 4 * S, 4500 * MS, "OK");
    kit_ticket(kit, "a", 5);
    kit->history.operations[0].shared = first_reads;
    kit_operation(kit, 1, 0, CHAOS_ACQUIRE, 4100 * MS, 4400 * MS, "OK");
    kit_ticket(kit, "b", ticket);
    kit->history.operations[1].shared = second_reads;
    kit_queue(kit, kit_sweep(kit, 0, 4050 * MS, 4100 * MS), 7, "a");
    kit_finish(kit, 20 * S);
}

FRESH_TEST(a_reader_passes_a_writer) {
    line(kit, false, true, 6);
    expect(kit, chaos_check_order, CHAOS_VIOLATION_ORDER, 1);
    expect_text(0, "with a higher ticket");
}

FRESH_TEST(a_reader_passes_a_writer_at_its_first_try) {
    line(kit, false, true, 0);
    expect(kit, chaos_check_order, CHAOS_VIOLATION_ORDER, 1);
    expect_text(0, "client 2 began at 4.100 s, and got it at 4.400 s, at its first try");
    kit->history.operations[1].shared = false;
    expect(kit, chaos_check_order, CHAOS_VIOLATION_ORDER, 0);
}

FRESH_TEST(a_writer_passes_a_reader) {
    line(kit, true, false, 6);
    expect(kit, chaos_check_order, CHAOS_VIOLATION_ORDER, 1);
}

FRESH_TEST(readers_are_let_in_together) {
    line(kit, true, true, 6);
    expect(kit, chaos_check_order, CHAOS_VIOLATION_ORDER, 0);
    assert_int_equal(verdict.passed_over, 0);
}

/* INCOMPLETE */

FRESH_TEST(modes_fit_each_other) {
    size_t reader = kit_acquire_shared(kit, 0, 0, "a", 1 * S, 2 * S),
           writer = kit_acquire(kit, 1, 0, "w", 3 * S, 4 * S);
    kit_read(kit, reader, 0, 1100 * MS, 0, 0);
    kit_increment(kit, writer, 0, 3100 * MS, 3200 * MS);
    kit_release(kit, reader, 1500 * MS);
    kit_release(kit, writer, 3500 * MS);
    kit_sweep(kit, 0, 1 * S, 1100 * MS);
    expect_at_end(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 0);
    kit->history.reads[0].at_us = KIT_START_US + 1500 * MS + 1;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "client 1, at 1.500 s: a read outside of its lease");
    kit->history.reads[0].at_us = KIT_START_US + 1100 * MS;
    kit->history.leases[0].shared = false;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 2);
    kit->history.leases[0].shared = true;
    kit->history.leases[1].shared = kit->history.operations[2].shared = true;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "an increment outside of its lease");
}

/* The figures: how long each kind waits. */
FRESH_TEST(waits_of_each_kind) {
    kit_read(kit, kit_acquire_shared(kit, 0, 0, "a", 1 * S, 2 * S), 0, 1100 * MS, 0, 0);
    kit_operation(kit, 1, 0, CHAOS_ACQUIRE, 1 * S, 3 * S, "OK");
    expect_at_end(kit, chaos_figures, CHAOS_VIOLATION_OVERLAP, 0);
    assert_int_equal(verdict.acquire_to_read.count, 1);
    assert_int_equal(verdict.acquire_to_read.max_us, 1 * MS);
    assert_int_equal(verdict.acquire_to_write.max_us, 2 * S);
    assert_int_equal(verdict.acquire.count, 2);
    assert_int_equal(verdict.reads, 1);
}
