/* Operations, processes and the record itself, each check alone: a clean history, a planted
 * violation, and the limits between. */
#include "check_kit.h"

/* LATE; the slack is 100 ms here */

FRESH_TEST(late_by_one_us) {
    kit_operation(kit, 0, 0, CHAOS_ACQUIRE, 1 * S, 3100 * MS, "CONTENDED"); /* due by 3 s */
    expect_at_end(kit, chaos_check_operations, CHAOS_VIOLATION_LATE, 0);
    kit->history.operations[0].completed_us++;
    expect(kit, chaos_check_operations, CHAOS_VIOLATION_LATE, 1);
    expect_text(
        0,
        "r1: an acquire of client 1 that was invoked at 1.000 s and due by 3.000 s (with slack and pauses by 3.100 s) "
        "completed at 3.100 s with CONTENDED");
}

FRESH_TEST(paused_in_between) {
    kit_operation(kit, 0, 0, CHAOS_RELEASE, 1 * S, 5200 * MS, "OK");
    /* Only the part of a pause within the operation counts, and overlaps count once. But the client
     * may take 100 ms to wake from each pause. */
    kit_band(kit, CHAOS_FAULT_CLIENT_PAUSE, 0, 0x1, 500 * MS, 2 * S);
    kit_band(kit, CHAOS_FAULT_CLIENT_PAUSE, 0, 0x5, 1500 * MS, 2900 * MS);
    kit_band(kit, CHAOS_FAULT_CLIENT_PAUSE, 0, 0x6, 1 * S, 9 * S); /* of other clients */
    kit_band(kit, CHAOS_FAULT_PAUSE, 0x1f, 0, 1 * S, 9 * S);
    expect_at_end(kit, chaos_check_operations, CHAOS_VIOLATION_LATE, 0);
    kit->history.operations[0].completed_us++;
    expect(kit, chaos_check_operations, CHAOS_VIOLATION_LATE, 1);
    /* A pause that begins after all this is no excuse. */
    kit_band(kit, CHAOS_FAULT_CLIENT_PAUSE, 0, 0x1, 5200 * MS + 1, 9 * S);
    expect(kit, chaos_check_operations, CHAOS_VIOLATION_LATE, 1);
    kit->history.bands[4].from_us--;
    expect(kit, chaos_check_operations, CHAOS_VIOLATION_LATE, 0);
}

FRESH_TEST(never_completed) {
    kit_operation(kit, 0, 0, CHAOS_ACQUIRE, 1 * S, CHAOS_NEVER_US, "");
    kit_kill(kit, 0, 3100 * MS);
    kit_spawn(kit, 0, 4 * S);
    /* Cut by the end of the run. */
    kit_operation(kit, 1, 0, CHAOS_ACQUIRE, 7 * S, CHAOS_NEVER_US, "");
    expect_at_end(kit, chaos_check_operations, CHAOS_VIOLATION_LATE, 0);
    kit->history.lives[0].ended_us++;
    expect(kit, chaos_check_operations, CHAOS_VIOLATION_LATE, 1);
    expect_text(0, "never completed, though its process lived on");
    kit->history.operations[1].deadline_us = KIT_START_US + 8 * S;
    expect(kit, chaos_check_operations, CHAOS_VIOLATION_LATE, 2);
}

/* CRASH, LEFT */

/* One turn as clients take it, with a sweep. Nothing is wrong with it. */
static size_t turn(struct kit *kit) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_see(kit, kit_sweep(kit, 0, 1050 * MS, 1060 * MS), 0x1f, "a", 950);
    kit_increment(kit, lease, 0, 1070 * MS, 1080 * MS);
    kit_release(kit, lease, 1100 * MS);
    return lease;
}

FRESH_TEST(crashes) {
    turn(kit);
    kit_kill(kit, 1, 3 * S);
    expect_at_end(kit, chaos_check_record, CHAOS_VIOLATION_CRASH, 0);
    kit->history.lives[1].expected = false;
    kit->history.lives[1].signal = 11;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_CRASH, 1);
    expect_text(0, "client 2 (pid 1002) ended by itself at 3.000 s with signal 11");
    kit->history.lives[1].status = 70;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_CRASH, 1);
    expect_text(0, "with status 70");
    /* It still runs, and is reported as left behind. */
    kit->history.lives[1].ended_us = CHAOS_NEVER_US;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_CRASH, 0);
}

FRESH_TEST(left_behind) {
    turn(kit);
    kit_leave(kit, "3 keys on node 2");
    kit_leave(kit, "process 4711");
    expect_at_end(kit, chaos_check_record, CHAOS_VIOLATION_LEFT, 2);
    expect_text(1, "process 4711");
}

/* INCOMPLETE */

FRESH_TEST(whole) {
    expect_at_end(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "no client did anything");
    turn(kit);
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 0);
    kit->history.left_told = false;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    kit->history.finish_us = CHAOS_NEVER_US;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 2);
    size_t sweeps = kit->history.sweep_count;
    kit->history.sweep_count = 0;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 3);
    kit->history.sweep_count = sweeps;
}

FRESH_TEST(token_of_two) {
    turn(kit);
    kit_release(kit, kit_acquire(kit, 1, 0, "b", 4 * S, 5 * S), 4500 * MS);
    expect_at_end(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 0);
    kit->history.leases[1].token[0] = 'a';
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "r1: client 2, at 4.000 s: a token");
}

/* A client does one thing at a time, and increments while it has the lease. */
FRESH_TEST(two_things_at_a_time) {
    turn(kit);
    kit_release(kit, kit_acquire(kit, 0, 0, "b", 4 * S, 5 * S), 4500 * MS);
    expect_at_end(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 0);
    kit->history.operations[1].completed_us = kit->history.operations[2].invoked_us + 1;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "an operation was completed when its process had begun the next");
}

FRESH_TEST(increments_outside_of_their_lease) {
    size_t lease = kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_increment(kit, lease, 0, 1 * S, 1500 * MS);
    kit_release(kit, lease, 1500 * MS);
    kit_sweep(kit, 0, 1 * S, 1 * S);
    expect_at_end(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 0);
    struct chaos_increment *increment = &kit->history.increments[0];
    increment->intent_us -= 1;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "client 1, at 1.000 s: an increment outside of its lease");
    increment->intent_us += 1;
    increment->done_us += 1;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    increment->done_us -= 1;
    increment->token[0] = 'b';
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    increment->token[0] = 'a';
    increment->intent_us = increment->done_us + 1;
    increment->done_us = CHAOS_NEVER_US;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
}

FRESH_TEST(claims_and_acquires) {
    turn(kit);
    size_t second = kit_acquire(kit, 1, 0, "b", 4 * S, 5 * S);
    kit_release(kit, second, 4500 * MS);
    kit_finish(kit, 9 * S);
    /* An acquire that was OK, without a claim. */
    kit->history.lease_count = 1;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "r1: client 2, at 4.000 s: an acquire that was OK, but no claim");
    /* The ttl is 1000 ms, the drift 12 ms: nothing was left of the lease when the client looked. */
    kit->history.operations[3].invoked_us = kit->history.operations[2].invoked_us + 986 * MS;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 0);
    kit->history.operations[3].invoked_us -= 1;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    /* It was the last operation: the client was killed. */
    kit->history.operation_count = 3;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 0);
    /* A claim without an acquire that was OK, or of the other resource. */
    kit->history.lease_count = 2;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 0);
    kit->history.operations[2].resource = 1;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    kit->history.operations[2].resource = 0;
    snprintf(kit->history.operations[2].result, sizeof kit->history.operations[2].result, "CONTENDED");
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "a claim without an acquire");
}

FRESH_TEST(by_the_dead) {
    size_t lease = turn(kit);
    kit_claim(kit, lease, 1090 * MS, 2090 * MS);
    kit_operation(kit, 1, 0, CHAOS_ACQUIRE, 5 * S, CHAOS_NEVER_US, "");
    kit_kill(kit, 1, 5500 * MS);
    expect_at_end(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 0);
    /* Client 1 died between its claims. Its later operations are just as impossible. */
    kit->history.lives[0].ended_us = KIT_START_US + 1080 * MS;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 2);
    expect_text(0, "completed by a process that did not run");
    expect_text(1, "a claim by a process that did not run");
    kit->history.lives[0].ended_us = KIT_START_US + 9 * S;
    /* The process ended in order, so the operation should have completed. */
    kit->history.lives[1].status = 0;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "never completed");
}

FRESH_TEST(goes_on_with_a_lease) {
    kit_acquire(kit, 0, 0, "a", 1 * S, 2 * S);
    kit_see(kit, kit_sweep(kit, 0, 1050 * MS, 1060 * MS), 0x1f, "a", 950);
    kit_kill(kit, 0, 1200 * MS);
    kit_spawn(kit, 0, 2 * S);
    kit_operation(kit, 0, 0, CHAOS_ACQUIRE, 3 * S, 4 * S, "CONTENDED");
    expect_at_end(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 0);
    kit->history.lives[0].ended_us = KIT_START_US + 3 * S; /* so it could make that operation */
    kit->history.lives[3].spawned_us = KIT_START_US + 5 * S;
    kit->history.operations[1].completed_us = KIT_START_US + 3 * S;
    expect(kit, chaos_check_record, CHAOS_VIOLATION_INCOMPLETE, 1);
    expect_text(0, "a lease without an end");
}
