/* Fencing tokens, the resource that checks them, and the guards: a clean history, a planted
 * violation, and the limits between. */
#include "check_kit.h"

static size_t acquire(struct kit *kit, int client, int resource, const char *token, int64_t fence, int64_t from_us) {
    size_t lease = kit_acquire(kit, client, resource, token, from_us, from_us + 900 * MS);
    kit_fence(kit, token, fence);
    return lease;
}

static size_t increment(struct kit *kit, size_t lease, int64_t read, int64_t fence, int64_t first_number) {
    int64_t from_us = kit->history.leases[lease].from_us - KIT_START_US;
    size_t index = kit_increment(kit, lease, read, from_us + 10 * MS, from_us + 20 * MS);
    kit_receipts(kit, index, fence, first_number, first_number + 1);
    return index;
}

static struct kit *fenced(struct kit *kit) {
    kit->history.protection.fencing = true;
    return kit;
}

#define FENCED_TEST(name) TEST_HAS(name, set_up, tear_down, NULL, (fenced(*state)), UNUSED struct kit *kit)

/* FENCE */

FENCED_TEST(tokens_rise) {
    acquire(kit, 0, 0, "a", 10, 1 * S);
    acquire(kit, 1, 0, "b", 11, 2 * S);
    acquire(kit, 2, 1, "c", 10, 2 * S); /* each resource has its own tokens */
    acquire(kit, 2, 1, "d", INT64_MAX, 3 * S);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 0);
}

/* The acquire of a starts 1 ms before it completes. */
FENCED_TEST(a_lower_token_after_a_higher) {
    acquire(kit, 0, 0, "a", 12, 1 * S);
    acquire(kit, 1, 0, "b", 11, 1 * S + 1 * MS + 1);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 1);
    assert_string_equal(
        verdict.violations[0].text,
        "r1: client 2, which asked for it at 1.000 s and got it at 1.001 s, has the fencing token 11, but "
        "client 1 had got a higher one by 1.000 s: 12");
    assert_int_equal(verdict.violations[0].clients[0], 0);
    assert_int_equal(verdict.violations[0].clients[1], 1);
}

/* An acquire that started before the other one completed may have a lower token if its lease was
 * over before it was relied on: the other one may have come later. */
FENCED_TEST(tokens_of_one_time_may_cross) {
    acquire(kit, 0, 0, "a", 12, 1 * S);
    kit_operation(kit, 1, 0, CHAOS_ACQUIRE, 1 * S, 1 * S + 1 * MS, "OK");
    kit_fence(kit, "b", 11);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 0);
}

/* One that waits while the other holds the lock is later, whenever it started; not where nodes may
 * have forgotten the other one. */
FENCED_TEST(a_lower_token_of_one_that_waited) {
    acquire(kit, 0, 0, "a", 12, 1 * S);
    kit_operation(kit, 1, 0, CHAOS_ACQUIRE, 500 * MS, 3 * S, "OK");
    kit_fence(kit, "b", 11);
    kit_lease(kit, 1, 0, "b", 3 * S, 4 * S);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 1);
    expect_text(0, "client 2, which asked for it at 0.500 s and got it at 3.000 s, has the fencing token 11, but "
                   "client 1 had got a higher one by 1.000 s: 12");
    kit->history.breaks_assumptions = true;
    expect(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 0);
}

/* The highest token so far counts, not the last. */
FENCED_TEST(one_higher_long_before) {
    acquire(kit, 0, 0, "a", 50, 1 * S);
    acquire(kit, 1, 0, "b", 20, 2 * S);
    acquire(kit, 2, 0, "c", 30, 3 * S);
    acquire(kit, 0, 0, "d", 51, 4 * S);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 2);
    expect_text(1, "client 3, which asked for it at 2.999 s");
    expect_text(1, "by 1.000 s: 50");
}

FENCED_TEST(equal_tokens) {
    acquire(kit, 0, 0, "a", 10, 1 * S);
    acquire(kit, 1, 0, "b", 10, 1 * S + 500);
    acquire(kit, 2, 0, "c", 10, 3 * S);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 2);
    expect_text(0, "both have the fencing token 10");
}

FENCED_TEST(no_token) {
    acquire(kit, 0, 0, "a", 0, 1 * S);
    /* The end of its client cuts it short. */
    kit_operation(kit, 1, 0, CHAOS_ACQUIRE, 1 * S, 2 * S, "OK");
    kit_operation(kit, 2, 0, CHAOS_RELEASE, 1 * S, 2 * S, "OK");
    kit_fence(kit, "c", 0);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 1);
    expect_text(0, "client 1 acquired it at 1.000 s and got no fencing token");
    kit->history.protection.fencing = false;
    expect(kit, chaos_check_fence, CHAOS_VIOLATION_FENCE, 0);
}

/* STALE */

FENCED_TEST(accesses_in_order) {
    increment(kit, acquire(kit, 0, 0, "a", 10, 1 * S), 0, 10, 1);
    increment(kit, acquire(kit, 1, 0, "b", 11, 2 * S), 1, 11, 3);
    increment(kit, acquire(kit, 2, 1, "c", 5, 2 * S), 0, 5, 1);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_STALE, 0);
}

/* The resource's order counts, not the time at which lines were written. */
FENCED_TEST(a_stale_write_granted) {
    size_t old = increment(kit, acquire(kit, 0, 0, "a", 10, 1 * S), 0, 10, 1);
    size_t new = increment(kit, acquire(kit, 1, 0, "b", 11, 1500 * MS), 0, 11, 2);
    kit_receipts(kit, old, 10, 1, 4);
    kit_receipts(kit, new, 11, 2, 3);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_STALE, 1);
    assert_string_equal(
        verdict.violations[0].text,
        "r1: the resource granted client 1 (token a) a write at 1.020 s with the fencing token 10, after it "
        "had granted client 2 an access with 11");
    /* The same for a read. */
    kit_receipts(kit, 0, 10, 5, 6);
    expect(kit, chaos_check_fence, CHAOS_VIOLATION_STALE, 2);
    expect_text(0, "a read at 1.010 s");
}

FENCED_TEST(a_refused_write_is_no_access) {
    size_t lease = acquire(kit, 0, 0, "a", 10, 1 * S);
    size_t old = kit_increment(kit, lease, 0, 1010 * MS, CHAOS_NEVER_US);
    kit_receipts(kit, old, 10, 1, 0);
    increment(kit, acquire(kit, 1, 0, "b", 11, 1500 * MS), 0, 11, 2);
    kit_refuse(kit, old, 0, 0, 1600 * MS, 10, 11);
    kit_release(kit, lease, 1601 * MS);
    kit_refuse(kit, SIZE_MAX, 0, 0, 1700 * MS, 9, 11);
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_STALE, 0);
    /* The refused write explains no lost update and hides none: its lease was released. */
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 0);
    kit->history.counters[0] = 2;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 1);
    kit->history.counters[0] = 1;
    kit->history.increments[0].refused = false;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_INCOMPLETE, 1);
}

FENCED_TEST(what_contradicts_itself) {
    size_t one = increment(kit, acquire(kit, 0, 0, "a", 10, 1 * S), 0, 10, 1);
    size_t two = increment(kit, acquire(kit, 1, 0, "b", 11, 2 * S), 1, 11, 3);
    kit_receipts(kit, two, 11, 2, 3); /* the number of the other's write */
    expect_at_end(kit, chaos_check_fence, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "two accesses have the number 2, of clients 1 and 2");
    kit_receipts(kit, two, 11, 0, 3);
    kit_receipts(kit, one, 10, 1, 2);
    expect(kit, chaos_check_fence, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "a read of client 2 at 2.010 s that the resource gave no number");
    kit_receipts(kit, two, 11, 3, 4);
    kit_refuse(kit, SIZE_MAX, 2, 1, 3 * S, 12, 12);
    expect(kit, chaos_check_fence, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "though its fencing token 12 is not below the highest that was seen, 12");
}

/* Guards */

static void guard(struct kit *kit, enum chaos_restart_guard restart, bool clock) {
    kit->history.memoryless = true;
    kit->history.protection =
        (struct chaos_protection){.restart_guard = restart, .clock_guard = clock, .ttl_max_ms = 1000};
}

static void expect_kept_out(struct kit *kit, int64_t at_us, bool expected) {
    assert_int_equal(chaos_kept_out(&kit->history, 1, KIT_START_US + at_us, KIT_START_US + at_us), expected);
    assert_false(chaos_kept_out(&kit->history, 0, KIT_START_US + at_us, KIT_START_US + at_us));
}

FRESH_TEST(nodes_are_kept_out_for_ttl_max) {
    kit_band(kit, CHAOS_FAULT_RESTART_EMPTY, 0x02, 0, 2 * S, 3 * S);
    kit_finish(kit, 9 * S);
    expect_kept_out(kit, 2500 * MS, false); /* no guard */
    guard(kit, CHAOS_RESTART_GUARD_OFF, true);
    expect_kept_out(kit, 2500 * MS, false); /* another guard */
    guard(kit, CHAOS_RESTART_GUARD_OBSERVED, false);
    expect_kept_out(kit, 2 * S - 1, false);
    expect_kept_out(kit, 2 * S, true);
    expect_kept_out(kit, 4 * S, true);
    expect_kept_out(kit, 4 * S + 1, false);
    /* Someone deleted the append-only file, and the guard cannot know that. */
    kit->history.memoryless = false;
    expect_kept_out(kit, 2500 * MS, false);
}

FRESH_TEST(each_guard_is_for_its_faults) {
    static const struct {
        enum chaos_fault_kind kind;
        bool restart, clock;
    } cases[] = {{CHAOS_FAULT_RESTART_EMPTY, true, false}, {CHAOS_FAULT_KILL, true, false},
                 {CHAOS_FAULT_CLOCK_JUMP, false, true},    {CHAOS_FAULT_FLUSHALL, false, false},
                 {CHAOS_FAULT_CLOCK_SKEW, false, false},   {CHAOS_FAULT_PAUSE, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct chaos_fault fault = {.kind = cases[i].kind, .amount = 20000};
        guard(kit, CHAOS_RESTART_GUARD_STRICT, false);
        assert_int_equal(chaos_is_guarded(&kit->history, &fault), cases[i].restart);
        guard(kit, CHAOS_RESTART_GUARD_OFF, true);
        assert_int_equal(chaos_is_guarded(&kit->history, &fault), cases[i].clock);
    }
}

/* Three of five nodes lost the key. Without a guard others may get the lock. With a guard they may
 * not before the guard ends. */
FRESH_TEST(a_lease_rests_on_nodes_that_are_kept_out) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1900 * MS, 2800 * MS);
    kit_see(kit, kit_sweep(kit, 0, 1910 * MS, 1920 * MS), 0x1f, "a", 900);
    size_t sweep = kit_sweep(kit, 0, 2200 * MS, 2210 * MS);
    kit_see(kit, sweep, 0x18, "a", 600);
    kit_see(kit, sweep, 0x04, "b", 600);
    kit_band(kit, CHAOS_FAULT_RESTART_EMPTY, 0x03, 0, 2 * S, 2100 * MS);
    kit_band(kit, CHAOS_FAULT_RESTART_EMPTY, 0x04, 0, 2 * S, 2100 * MS);
    kit_end(kit, lease, 2300 * MS, true);
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    guard(kit, CHAOS_RESTART_GUARD_STRICT, false);
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
    kit->history.protection.ttl_max_ms = 99; /* a guard that ends too early */
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
}

/* When clocks jump, the library gives up a lease at once. Without the guard it has no reason to. */
FRESH_TEST(a_lease_lost_early) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_band(kit, CHAOS_FAULT_CLOCK_JUMP, 0x07, 0, 1300 * MS, 1300 * MS);
    kit_end(kit, lease, 1310 * MS, false);
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    guard(kit, CHAOS_RESTART_GUARD_OFF, true);
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
    kit->history.bands[0].from_us += 100 * MS; /* the clocks jump later than the lease ends */
    kit->history.bands[0].to_us += 100 * MS;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
}

FRESH_TEST(overlaps_stay_violations) {
    kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_acquire(kit, 1, 0, "b", 1500 * MS, 2500 * MS);
    kit_band(kit, CHAOS_FAULT_RESTART_EMPTY, 0x1f, 0, 1300 * MS, 1400 * MS);
    guard(kit, CHAOS_RESTART_GUARD_STRICT, true);
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 1);
}

/* The complete verdict of a run, and its words. */
static void judge(struct kit *kit) {
    chaos_verdict_clear(&verdict);
    chaos_check(&kit->history, 1 * S, &verdict);
}

static void expect_words(struct kit *kit, const char *words, bool there) {
    char *all;
    size_t size;
    FILE *out = open_memstream(&all, &size);
    assert_non_null(out);
    chaos_verdict_say(out, &kit->history, &verdict);
    assert_int_equal(fclose(out), 0);
    if ((strstr(all, words) != NULL) != there) {
        fail_msg("\"%s\" is %sin: %s", words, there ? "not " : "", all);
    }
    free(all);
}

FENCED_TEST(figures_and_words) {
    guard(kit, CHAOS_RESTART_GUARD_STRICT, true);
    kit->history.protection.fencing = true;
    kit->history.breaks_assumptions = true;
    kit_release(kit, acquire(kit, 0, 0, "a", 10, 1 * S), 1100 * MS);
    kit_release(kit, acquire(kit, 1, 0, "b", 11, 3500 * MS), 3600 * MS);
    kit_sweep(kit, 1, 1 * S, 1100 * MS);
    kit_band(kit, CHAOS_FAULT_CLOCK_JUMP, 0x07, 0, 2 * S, 2 * S);
    kit->history.bands[0].fault.amount = 5000;
    kit_tally(kit, 0, 1 * S, 900, 900); /* an earlier tally of the same process */
    kit_tally(kit, 0, 2 * S, 1200, 3);
    kit_tally(kit, 1, 2 * S, 34, 2);
    kit_refuse(kit, SIZE_MAX, 2, 0, 4 * S, 9, 11);
    kit_finish(kit, 9 * S);
    judge(kit);
    assert_int_equal(verdict.violation_count, 0);
    assert_int_equal(verdict.fenced_fast, 1234);
    assert_int_equal(verdict.quarantines, 5);
    assert_int_equal(verdict.reads_refused, 1);
    assert_int_equal(verdict.writes_refused, 0);
    assert_int_equal(verdict.longest_without_us, 2500 * MS);
    expect_words(kit,
                 "Fencing: 1,234 tokens at once, 0 written back; the resource refused 1 stale read and 0 stale writes, "
                 "and granted 0.",
                 true);
    expect_words(kit, "Guards: restarts strict, clocks watched, ttl_max 1.0 s: 5 quarantines of nodes", true);
    expect_words(kit, "the guards are on, and no violation is expected.", true);
    assert_true(chaos_breaks_assumptions(&kit->history) && chaos_all_guarded(&kit->history));
    kit->history.protection.clock_guard = false;
    assert_false(chaos_all_guarded(&kit->history));
    expect_words(kit, "violations were expected here, but nobody was harmed this time.", true);
    kit->history.protection = (struct chaos_protection){0};
    expect_words(kit, "Guards:", false);
    expect_words(kit, "Fencing:", false);
}

/* Violations that the faults explain are soft. A lost update is hard if the resource checks
 * tokens. */
FRESH_TEST(hard_violations) {
    size_t one = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S), two = kit_acquire(kit, 1, 0, "b", 1500 * MS, 2500 * MS);
    kit_increment(kit, one, 0, 1600 * MS, 1700 * MS);
    kit_increment(kit, two, 0, 1610 * MS, 1710 * MS);
    kit_release(kit, one, 1800 * MS);
    kit_release(kit, two, 1810 * MS);
    kit_sweep(kit, 1, 1 * S, 1100 * MS);
    kit_finish(kit, 9 * S);
    judge(kit);
    assert_int_equal(verdict.counts[CHAOS_VIOLATION_OVERLAP], 1);
    assert_int_equal(verdict.lost_updates, 1);
    assert_int_equal(chaos_hard_count(&kit->history, &verdict), 0);
    kit->history.protection.fencing = true;
    assert_int_equal(chaos_hard_count(&kit->history, &verdict), 1);
}
