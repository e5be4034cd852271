/* The rules for holders, each check alone: a clean history, a planted violation, and the limits
 * between. */
#include "check_kit.h"

/* OVERLAP */

FRESH_TEST(touching_is_no_overlap) {
    kit_release(kit, kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S), 1500 * MS);
    kit_acquire(kit, 1, 0, "b", 1500 * MS, 2500 * MS);
    kit_acquire(kit, 2, 1, "c", 1200 * MS, 2200 * MS); /* another resource */
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 0);
}

FRESH_TEST(one_us_is_overlap) {
    kit_release(kit, kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S), 1500 * MS + 1);
    kit_acquire(kit, 1, 0, "b", 1500 * MS, 2500 * MS);
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 1);
    const struct chaos_violation *violation = &verdict.violations[0];
    assert_int_equal(violation->from_us, KIT_START_US + 1500 * MS);
    assert_int_equal(violation->to_us, KIT_START_US + 1500 * MS + 1);
    assert_int_equal(violation->clients[0], 0);
    assert_int_equal(violation->clients[1], 1);
    assert_int_equal(violation->resource, 0);
    assert_string_equal(violation->text,
                        "r1: client 1 (token a) relied on it from 1.000 s to 1.500 s, client 2 (token b) "
                        "from 1.500 s to 2.500 s: both for 0.001 ms");
}

/* A lease ends with its latest promise, not when its owner noticed the end. */
FRESH_TEST(promise_is_the_end) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_claim(kit, lease, 1400 * MS, 2400 * MS);
    kit_end(kit, lease, 7 * S, false);
    kit_acquire(kit, 1, 0, "b", 2400 * MS, 3400 * MS);
    size_t third = kit_acquire(kit, 2, 0, "c", 3400 * MS, 4400 * MS);
    kit_release(kit, third, 8 * S);
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 0);
    kit->history.leases[0].until_us++;
    expect(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 1);
}

/* A lease seen as lost ends there, even in the last ms of its promise. */
FRESH_TEST(lost_is_the_end) {
    kit_end(kit, kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S), 2 * S - 900, false);
    kit_acquire(kit, 1, 0, "b", 2 * S - 900, 3 * S);
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 0);
    kit->history.leases[1].from_us--;
    expect(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 1);
}

FRESH_TEST(the_dead_rely_on_nothing) {
    kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_kill(kit, 0, 1300 * MS);
    kit_spawn(kit, 0, 1400 * MS);
    kit_acquire(kit, 1, 0, "b", 1300 * MS, 1600 * MS);
    kit_acquire(kit, 0, 0, "c", 1600 * MS, 2600 * MS);
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 0);
    kit->history.leases[1].from_us--;
    expect(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 1);
}

FRESH_TEST(one_client_twice) {
    kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_acquire(kit, 0, 0, "b", 1500 * MS, 2500 * MS);
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 1);
    assert_int_equal(verdict.violations[0].clients[1], 0);
}

/* A short lease between a long one and a later one does not hide it. The checker reports each that
 * began too early. */
FRESH_TEST(long_lease_over_many) {
    kit_acquire(kit, 0, 0, "a", 1 * S, 5 * S);
    kit_release(kit, kit_acquire(kit, 1, 0, "b", 2 * S, 3 * S), 2100 * MS);
    kit_release(kit, kit_acquire(kit, 2, 0, "c", 4 * S, 6 * S), 5 * S);
    kit_acquire(kit, 1, 0, "d", 5 * S, 6 * S);
    expect_at_end(kit, chaos_check_overlap, CHAOS_VIOLATION_OVERLAP, 2);
    expect_text(1, "client 1 (token a)");
    expect_text(1, "client 3 (token c)");
}

/* OUTLIVED */

FRESH_TEST(quorum_has_it) {
    kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_see(kit, kit_sweep(kit, 0, 1100 * MS, 1110 * MS), 0x07, "a", 900);
    /* A node that does not answer does not count against the lease. */
    size_t silent = kit_sweep(kit, 0, 1200 * MS, 1210 * MS);
    kit_see(kit, silent, 0x01, "a", 800);
    kit_silent(kit, silent, 0x06);
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
}

FRESH_TEST(no_quorum_has_it) {
    kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    size_t sweep = kit_sweep(kit, 0, 1100 * MS, 1110 * MS);
    kit_see(kit, sweep, 0x01, "a", 900);
    kit_see(kit, sweep, 0x08, "b", 900);
    kit_silent(kit, sweep, 0x02);
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    assert_int_equal(verdict.violations[0].from_us, KIT_START_US + 1100 * MS);
    assert_int_equal(verdict.violations[0].to_us, KIT_START_US + 1110 * MS);
    expect_text(
        0,
        "until 2.000 s, but from 1.100 s to 1.110 s (1 sweep) at most 2 of 5 nodes had it for so long, and a quorum is "
        "3; at first: node 1 has it, node 2 did not answer, node 3 no key, node 4 another's token, node 5 no key");
}

/* Only a sweep within the lease counts. */
FRESH_TEST(sweeps_at_the_edges) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_release(kit, lease, 1500 * MS);
    kit_sweep(kit, 0, 1 * S - 1, 1100 * MS);
    kit_sweep(kit, 0, 1490 * MS, 1500 * MS);
    kit_sweep(kit, 1, 1200 * MS, 1210 * MS);
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
    kit->history.sweeps[2].to_us--;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    kit->history.sweeps[2].to_us++;
    kit->history.sweeps[0].from_us++;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    /* After the owner's death nobody relies on the lease. */
    kit->history.lives[0].ended_us = kit->history.sweeps[0].to_us;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
}

FRESH_TEST(too_little_time) {
    kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    size_t sweep = kit_sweep(kit, 0, 1100 * MS, 1110 * MS);
    kit_see(kit, sweep, 0x03, "a", 890);
    kit_see(kit, sweep, 0x1c, "a", 889); /* 1110 + 889 + 1 = 2000: just enough */
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
    kit->history.leases[0].claims[0].until_us++;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    expect_text(0, "node 2 has it, node 3 has it for 889 ms more only");
    /* A key without a ttl never ends. */
    kit->history.sweeps[0].nodes[4].pttl_ms = -1;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
}

/* A sweep that starts before a claim may still show the keys as they were before the extension. A
 * later sweep may not. */
FRESH_TEST(claim_in_force) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_claim(kit, lease, 1500 * MS, 2500 * MS);
    kit_see(kit, kit_sweep(kit, 0, 1499 * MS, 1510 * MS), 0x1f, "a", 500);
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
    kit->history.sweeps[0].from_us = KIT_START_US + 1500 * MS;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    expect_text(0, "until 2.500 s");
}

/* On a clock that was set back, a key lives longer than its pttl says. */
FRESH_TEST(slow_clocks) {
    kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_see(kit, kit_sweep(kit, 0, 1100 * MS, 1110 * MS), 0x1f, "a", 100);
    size_t band = kit_band(kit, CHAOS_FAULT_CLOCK_JUMP, 0x07, 0, 1900 * MS, 1900 * MS);
    kit->history.bands[band].fault.amount = -1000;
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
    kit->history.bands[0].fault.amount = 1000;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    kit->history.bands[0].fault = (struct chaos_fault){.kind = CHAOS_FAULT_CLOCK_SKEW, .nodes = 0x07, .amount = -100};
    kit->history.bands[0].from_us = KIT_START_US;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
    kit->history.bands[0].to_us = KIT_START_US + 1100 * MS - 1; /* before the sweep */
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
}

/* Contiguous violations count as one. A sweep without evidence does not split them. A sweep that
 * finds a quorum of keys does. */
FRESH_TEST(contiguous_is_one) {
    kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    for (int i = 1; i <= 9; i++) {
        size_t sweep = kit_sweep(kit, 0, 1 * S + i * 50 * MS, 1 * S + i * 50 * MS + 10 * MS);
        if (i == 3) {
            kit_silent(kit, sweep, 0x1f);
        } else if (i == 6) {
            kit_see(kit, sweep, 0x15, "a", 900);
        }
    }
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 2);
    assert_int_equal(verdict.violations[0].from_us, KIT_START_US + 1050 * MS);
    assert_int_equal(verdict.violations[0].to_us, KIT_START_US + 1260 * MS);
    expect_text(0, "(4 sweeps)");
    assert_int_equal(verdict.violations[1].from_us, KIT_START_US + 1350 * MS);
    assert_int_equal(verdict.violations[1].to_us, KIT_START_US + 1460 * MS);
}

/* The library broke a promise. The last ms is rounding. */
FRESH_TEST(lost_before_the_promise) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 1500 * MS);
    kit_claim(kit, lease, 1400 * MS, 2 * S);
    kit_end(kit, lease, 1999 * MS, false);
    kit_release(kit, kit_acquire(kit, 1, 1, "b", 1 * S, 2 * S), 1200 * MS);
    expect_at_end(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 0);
    kit->history.leases[0].ended_us--;
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    expect_text(0, "r1: client 1 (token a) had been promised it until 2.000 s, but found it lost at 1.999 s");
    /* If a sweep shows the same violation, the checker reports it once. */
    kit_sweep(kit, 0, 1800 * MS, 1810 * MS);
    expect(kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, 1);
    expect_text(0, "(1 sweep)");
}

/* LOST_UPDATE */

FRESH_TEST(increments_in_a_row) {
    size_t lease = kit_lease(kit, 0, 0, "a", 1 * S, 9 * S), other = kit_lease(kit, 1, 1, "b", 1 * S, 9 * S);
    for (int64_t i = 0; i < 9; i++) {
        kit_increment(kit, lease, i, 1 * S + i * MS, 1 * S + i * MS + 500);
        kit_increment(kit, other, i, 1 * S + i * MS, 1 * S + i * MS + 500);
    }
    expect_at_end(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 0);
    kit->history.counters[0]--;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 1);
    assert_int_equal(verdict.lost_updates, 1);
    expect_text(0, "r1: its counter is 8 at the end, though 1 count beyond it had been written");
    kit->history.counters[0] += 2;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 1);
    assert_int_equal(verdict.lost_updates, 0);
    expect_text(0, "1 was written by nobody");
    kit->history.counters[0] = -1;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 1);
    assert_int_equal(verdict.lost_updates, 9);
}

FRESH_TEST(same_read_twice) {
    size_t a = kit_lease(kit, 0, 0, "a", 1 * S, 9 * S), b = kit_lease(kit, 1, 0, "b", 1 * S, 1500 * MS);
    kit_increment(kit, a, 0, 1 * S, 1 * S + 500);
    kit_increment(kit, b, 0, 1 * S, 1700 * MS);
    kit_increment(kit, a, 0, 1 * S, 3 * S);
    expect_at_end(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 2);
    assert_int_equal(verdict.lost_updates, 2);
    expect_text(
        0,
        "both wrote the successor of 0: client 1 (token a) read it by 1.000 s and wrote by 1.000 s; client 2 (token b) "
        "read it by 1.000 s and wrote by 1.700 s, written 0.200 s after its own deadline");
    assert_lacks(verdict.violations[1].text, "deadline");
}

/* PAST */

FRESH_TEST(work_ends_with_the_lease) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_increment(kit, lease, 0, 1 * S + 10, 2 * S);
    kit_increment(kit, lease, 1, 1 * S + 10, CHAOS_NEVER_US);
    expect_at_end(kit, chaos_check_late_work, CHAOS_VIOLATION_PAST, 0);
    kit->history.increments[0].done_us++;
    expect(kit, chaos_check_late_work, CHAOS_VIOLATION_PAST, 1);
    assert_int_equal(verdict.violations[0].clients[0], 0);
    assert_string_equal(verdict.violations[0].text,
                        "r1: client 1 (token a) had it until 2.000 s, and wrote by 2.000 s: 0.001 ms later");
}

/* Who is stopped between its look and its write ends later by as much, and by no more. */
FRESH_TEST(a_stop_is_allowed_for) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    size_t one = kit_increment(kit, lease, 0, 1 * S + 10, 3 * S);
    kit_band(kit, CHAOS_FAULT_CLIENT_PAUSE, 0, 1, 1900 * MS, 2900 * MS);
    expect_at_end(kit, chaos_check_late_work, CHAOS_VIOLATION_PAST, 0);
    kit->history.increments[one].done_us = KIT_START_US + 3100 * MS + 1; /* 100 ms to catch up */
    expect(kit, chaos_check_late_work, CHAOS_VIOLATION_PAST, 1);
}

/* An old count overwrites newer ones: 6 increments, and a counter of 3. */
FRESH_TEST(counter_falls_back) {
    size_t a = kit_lease(kit, 0, 0, "a", 1 * S, 9 * S), b = kit_lease(kit, 1, 0, "b", 1 * S, 9 * S);
    for (int64_t i = 0; i < 5; i++) {
        kit_increment(kit, a, i, 1 * S + i * MS, 1 * S + i * MS + 500);
    }
    kit_increment(kit, b, 2, 1 * S + 2 * MS, 2 * S);
    kit_finish(kit, 9 * S)->counters[0] = 3;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 2);
    assert_int_equal(verdict.lost_updates, 3);
}

/* Killed between intent and done, the client has written once or not at all. */
FRESH_TEST(killed_in_between) {
    size_t a = kit_lease(kit, 0, 0, "a", 1 * S, 2 * S), b = kit_lease(kit, 1, 0, "b", 3 * S, 4 * S);
    kit_increment(kit, a, 0, 1 * S, CHAOS_NEVER_US);
    kit_kill(kit, 0, 1 * S + 10);
    kit_finish(kit, 9 * S);
    kit->history.counters[0] = 0;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 0);
    kit->history.counters[0] = 1;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 0);
    kit->history.counters[0] = 2;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 1);
    /* The next increment reads its value. */
    size_t next = kit_increment(kit, b, 1, 3 * S, 3 * S + 10);
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 0);
    kit->history.counters[0] = 1;
    kit->history.increments[next].read = 0;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 0);
    kit->history.counters[0] = 2;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 1);
}

/* A lease that was seen as lost has written nothing. */
FRESH_TEST(lost_in_between) {
    size_t a = kit_lease(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_increment(kit, a, 0, 1 * S, CHAOS_NEVER_US);
    kit_end(kit, a, 2 * S, false);
    expect_at_end(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 0);
    kit->history.counters[0] = 1;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_LOST_UPDATE, 1);
    kit->history.counters[0] = 0;
    kit->history.leases[0].released = true;
    expect(kit, chaos_check_updates, CHAOS_VIOLATION_INCOMPLETE, 1);
}

/* Three nodes of three more have the key: a quorum for some setups. */
TEST_WITH(the_setup_of_its_client_counts, set_up, tear_down) {
    static const struct {
        struct chaos_setup setup;
        size_t outlived;
    } cases[] = {{{0}, 0},       {{0x07, 2}, 0}, {{0x1f, 3}, 0}, {{0x1f, 4}, 1},
                 {{0x1c, 2}, 1}, {{0x0e, 2}, 0}, {{0x18, 2}, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kit kit;
        kit_begin(&kit, 5, 2, 1);
        kit.history.lives[1].setup = cases[i].setup;
        kit_acquire(&kit, 1, 0, "a", 1 * S, 2 * S);
        kit_see(&kit, kit_sweep(&kit, 0, 1100 * MS, 1110 * MS), 0x07, "a", 900);
        kit_finish(&kit, 9 * S);
        expect(&kit, chaos_check_keys, CHAOS_VIOLATION_OUTLIVED, cases[i].outlived);
        kit_clear(&kit);
    }
}

/* Two processes at one time whose quorums need not share a node. */
TEST_WITH(setups_that_part_clients_break_the_assumptions, set_up, tear_down) {
    static const struct {
        struct chaos_setup a, b;
        bool breaks;
    } cases[] = {{{0x07, 2}, {0x1f, 4}, false}, {{0x1f, 4}, {0x1f, 3}, false}, {{0x07, 2}, {0x1f, 3}, true},
                 {{0x1f, 4}, {0x2f, 3}, false}, {{0x1f, 3}, {0x2f, 3}, true},  {{0x07, 2}, {0}, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int after = 0; after < 2; after++) {
            struct kit kit;
            kit_begin(&kit, 6, 2, 1);
            for (size_t c = 0; c < 2; c++) {
                kit.history.lives[c].setup = c == 0 ? cases[i].a : cases[i].b;
            }
            kit.history.lives[1].setup = cases[i].b.nodes != 0 ? cases[i].b : chaos_setup_default(5);
            if (after) { /* the one ends before the other begins */
                kit_kill(&kit, 0, 1 * S);
                kit.history.lives[1].spawned_us = kit.history.start_us + 2 * S;
            }
            kit_finish(&kit, 9 * S);
            assert_int_equal(chaos_breaks_assumptions(&kit.history), cases[i].breaks && !after);
            kit_clear(&kit);
        }
    }
}
