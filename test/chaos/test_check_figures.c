/* The verdict's figures, its words and its last line. It also ends cleanly wherever memory runs
 * out. */
#include <inttypes.h>

#include "check_world.h"
#include "checks/check_parts.h"
#include "short_memory.h"
#include "test.h"

#define MS INT64_C(1000)
#define S  INT64_C(1000000)

struct fixture {
    struct kit kit;
    struct chaos_verdict verdict;
    char *words;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    *state = fixture;
    if (fixture != NULL) {
        kit_begin(&fixture->kit, 5, 2, 1);
    }
    return fixture == NULL;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    chaos_verdict_clear(&fixture->verdict);
    kit_clear(&fixture->kit);
    free(fixture->words);
    free(fixture);
    return 0;
}

static void check(struct fixture *fixture) {
    chaos_verdict_clear(&fixture->verdict);
    free(fixture->words);
    chaos_check(&fixture->kit.history, 0, &fixture->verdict);
    size_t size;
    FILE *out = open_memstream(&fixture->words, &size);
    assert_non_null(out);
    chaos_verdict_say(out, &fixture->kit.history, &fixture->verdict);
    assert_int_equal(fclose(out), 0);
}

static void expect_words(const struct fixture *fixture, const char *part) {
    assert_contains(fixture->words, part);
}

/* The spans without a healthy quorum for this client, as "from-to from-to" in ms. */
static void expect_spans(const struct kit *kit, int client, const char *expected) {
    size_t count;
    char text[512] = "";
    struct chaos_span *spans = chaos_unhealthy_spans(&kit->history, client, &count);
    assert_true((spans == NULL) == (count == 0));
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%" PRId64 "-%" PRId64, i == 0 ? "" : " ",
                 (spans[i].from_us - KIT_START_US) / MS, (spans[i].to_us - KIT_START_US) / MS);
    }
    free(spans);
    assert_string_equal(text, expected);
}

#define FRESH_TEST(name) TEST_HAS(name, set_up, tear_down, NULL, (*state), UNUSED struct fixture *fixture)

/* Here nodes take 2600 ms to settle. */
FRESH_TEST(spans_of_nodes) {
    struct kit *kit = &fixture->kit;
    kit_band(kit, CHAOS_FAULT_KILL, 0x03, 0, 1 * S, 4 * S);
    kit_band(kit, CHAOS_FAULT_PAUSE, 0x02, 0, 2 * S, 3 * S); /* the same node twice counts once */
    kit_finish(kit, 60 * S);
    expect_spans(kit, 0, "");
    kit_band(kit, CHAOS_FAULT_PAUSE, 0x04, 0, 5 * S, 6 * S); /* while the others settle */
    expect_spans(kit, 0, "5000-6600");
    kit_band(kit, CHAOS_FAULT_JITTER, 0x1f, 0x2, 6500 * MS, 7 * S); /* client 2's links */
    expect_spans(kit, 0, "5000-6600");
    expect_spans(kit, 1, "5000-9600");
    kit_band(kit, CHAOS_FAULT_FLUSHALL, 0x1c, 0, 20 * S, 20 * S);
    expect_spans(kit, 0, "5000-6600 20000-22600");
    size_t slow = kit_band(kit, CHAOS_FAULT_SLOW, 0x1c, 0, 30 * S, 30 * S);
    kit->history.bands[slow].fault.amount = 4000;
    expect_spans(kit, 0, "5000-6600 20000-22600 30000-36600");
    kit_band(kit, CHAOS_FAULT_OOM, 0x1c, 0, 59 * S, CHAOS_NEVER_US);
    expect_spans(kit, 0, "5000-6600 20000-22600 30000-36600 59000-60000");
}

FRESH_TEST(spans_of_clients) {
    struct kit *kit = &fixture->kit;
    kit_band(kit, CHAOS_FAULT_CLIENT_PAUSE, 0, 0x1, 1 * S, 2 * S);
    kit_band(kit, CHAOS_FAULT_CLIENT_KILL, 0, 0x1, 2 * S, 3 * S);
    kit_band(kit, CHAOS_FAULT_CLIENT_KILL, 0, 0x2, 50 * S, CHAOS_NEVER_US);
    kit_finish(kit, 60 * S);
    expect_spans(kit, 0, "1000-3000");
    expect_spans(kit, 1, "50000-60000");
}

static void acquire(struct kit *kit, int client, int64_t invoked_us, int64_t completed_us, const char *result) {
    kit_operation(kit, client, 0, CHAOS_ACQUIRE, invoked_us, completed_us, result);
}

FRESH_TEST(availability) {
    struct kit *kit = &fixture->kit;
    kit_band(kit, CHAOS_FAULT_PARTITION, 0x07, 0x1, 10 * S, 20 * S); /* until 22.6 s */
    acquire(kit, 0, 1 * S, 2 * S, "OK");
    acquire(kit, 0, 3 * S, 4 * S, "CONTENDED");
    acquire(kit, 0, 9 * S, 10 * S, "OK");
    acquire(kit, 0, 9 * S, 10 * S + 1, "NO_QUORUM"); /* only partly healthy */
    acquire(kit, 0, 22600 * MS - 1, 23 * S, "TOO_SLOW");
    acquire(kit, 0, 22600 * MS, 23 * S, "NO_QUORUM");
    acquire(kit, 1, 15 * S, 16 * S, "OK");     /* this client's links work */
    acquire(kit, 1, 30 * S, 31 * S, "CLOSED"); /* cut short by the client's end */
    acquire(kit, 1, 50 * S, CHAOS_NEVER_US, "");
    kit_operation(kit, 1, 0, CHAOS_RELEASE, 17 * S, 18 * S, "NO_QUORUM");
    kit_finish(kit, 51 * S);
    check(fixture);
    const struct chaos_verdict *verdict = &fixture->verdict;
    assert_int_equal(verdict->healthy_acquires, 5);
    assert_int_equal(verdict->healthy_acquired, 3);
    assert_int_equal(chaos_availability_10000(verdict), 6000);
    assert_int_equal(verdict->operations, 9);
    assert_int_equal(verdict->acquires, 8);
    assert_int_equal(verdict->acquired, 3);
    assert_int_equal(verdict->contended, 1);
    assert_int_equal(verdict->no_quorum, 2);
    assert_int_equal(verdict->too_slow, 1);
    assert_int_equal(verdict->other, 1);
    assert_int_equal(verdict->releases, 1);
    assert_int_equal(verdict->release_no_quorum, 1);
    /* The gaps: from 2 to 10 s, where the unhealthy span of one client begins. Then from 22.6 to 31
     * s, where the last acquire ended. */
    assert_int_equal(verdict->longest_gap_us, 31 * S - 22600 * MS);
    char line[128];
    snprintf(line, sizeof line, "violations=%zu lost_updates=0 operations=9 availability=0.6000",
             verdict->violation_count);
    char buffer[128];
    assert_string_equal(chaos_verdict_line(verdict, buffer, sizeof buffer), line);
}

FRESH_TEST(gap_inside) {
    acquire(&fixture->kit, 0, 1 * S, 2 * S, "OK");
    acquire(&fixture->kit, 0, 2 * S, 7 * S, "OK");
    acquire(&fixture->kit, 1, 1 * S, 4 * S, "OK");
    acquire(&fixture->kit, 1, 7 * S, 9 * S, "OK");
    kit_finish(&fixture->kit, 60 * S);
    check(fixture);
    assert_int_equal(fixture->verdict.longest_gap_us, 3 * S);
    assert_int_equal(chaos_availability_10000(&fixture->verdict), 10000);
}

FRESH_TEST(recoveries) {
    struct kit *kit = &fixture->kit;
    kit_band(kit, CHAOS_FAULT_PAUSE, 0x03, 0, 10 * S, 12 * S);
    kit_band(kit, CHAOS_FAULT_DROP, 0x04, 0, 10 * S, 12 * S);
    acquire(kit, 0, 9 * S, 12 * S, "OK"); /* not after the fault */
    acquire(kit, 0, 11 * S, 12250 * MS, "OK");
    kit_band(kit, CHAOS_FAULT_FLUSHALL, 0x1f, 0, 15 * S, 15 * S);    /* these nodes still answer */
    kit_band(kit, CHAOS_FAULT_PARTITION, 0x07, 0x1, 20 * S, 25 * S); /* one client only … */
    kit_band(kit, CHAOS_FAULT_CLIENT_PAUSE, 0, 0x2, 22 * S, 23 * S); /* … then both: 22 to 23 s */
    kit_band(kit, CHAOS_FAULT_KILL, 0x1c, 0, 24 * S, 30 * S);
    acquire(kit, 1, 29 * S, 31 * S, "OK");
    acquire(kit, 1, 32 * S, 33 * S, "OK");
    kit_band(kit, CHAOS_FAULT_OOM, 0x1c, 0, 50 * S, 55 * S); /* nothing comes after it */
    kit_band(kit, CHAOS_FAULT_OOM, 0x1c, 0, 58 * S, CHAOS_NEVER_US);
    kit_finish(kit, 60 * S);
    check(fixture);
    const struct chaos_verdict *verdict = &fixture->verdict;
    assert_int_equal(verdict->recovery_count, 4);
    static const int64_t expected[4][2] = {
        {12 * S, 12250 * MS}, {23 * S, CHAOS_NEVER_US}, {30 * S, 31 * S}, {55 * S, CHAOS_NEVER_US}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(verdict->recoveries[i].healed_us - KIT_START_US, expected[i][0]);
        int64_t acquired_us = verdict->recoveries[i].acquired_us;
        assert_int_equal(acquired_us == CHAOS_NEVER_US ? CHAOS_NEVER_US : acquired_us - KIT_START_US, expected[i][1]);
    }
    expect_words(fixture,
                 "Recovery: a quorum came back 4 times; the next success followed after 0.250 s to 1.000 s; 2 times "
                 "there was none before the next outage or the end.\n");
}

FRESH_TEST(percentiles) {
    for (int64_t i = 0; i < 200; i++) {
        int64_t took_us = (i * 73 % 200 + 1) * MS; /* 1 to 200 ms in some order */
        acquire(&fixture->kit, 0, i * S, i * S + took_us, "OK");
        fixture->kit.history.operations[i].attempts = took_us <= 100 * MS ? 1 : 2;
    }
    kit_operation(&fixture->kit, 0, 0, CHAOS_RELEASE, 300 * S, 300 * S + 7, "OK");
    kit_operation(&fixture->kit, 0, 0, CHAOS_RELEASE, 301 * S, 301 * S + 9, "LOST");
    kit_finish(&fixture->kit, 400 * S);
    check(fixture);
    const struct chaos_verdict *verdict = &fixture->verdict;
    assert_int_equal(verdict->acquire.count, 200);
    assert_int_equal(verdict->acquire.p50_us, 100 * MS);
    assert_int_equal(verdict->acquire.p90_us, 180 * MS);
    assert_int_equal(verdict->acquire.p99_us, 198 * MS);
    assert_int_equal(verdict->acquire.max_us, 200 * MS);
    assert_int_equal(verdict->acquire_first_try.count, 100);
    assert_int_equal(verdict->acquire_first_try.p99_us, 99 * MS);
    assert_int_equal(verdict->release.count, 1);
    assert_int_equal(verdict->release.p50_us, 7);
    assert_int_equal(verdict->release.max_us, 7);
    assert_int_equal(verdict->release_lost, 1);
    expect_words(fixture, "1 release was answered by LOST, though no fault ended keys early");
}

/* One turn as clients take it, with a sweep. */
static void one_turn(struct kit *kit, int64_t at_us) {
    char token[CHAOS_TOKEN_SIZE];
    snprintf(token, sizeof token, "%" PRId64, at_us);
    size_t lease = kit_acquire(kit, 0, 0, token, at_us, at_us + 900 * MS);
    kit_see(kit, kit_sweep(kit, 0, at_us + 10, at_us + 20), 0x1f, token, 950);
    kit_release(kit, lease, at_us + 100 * MS);
}

FRESH_TEST(words_of_a_clean_run) {
    for (int64_t i = 0; i < 1234; i++) {
        one_turn(&fixture->kit, 1 * S + i * 200 * MS);
    }
    kit_finish(&fixture->kit, 300 * S);
    check(fixture);
    expect_words(
        fixture,
        "2 clients, 5 nodes (redis 7.0.15, process), 1 resource, 300.0 s, seed 7:\n"
        "1,234 acquires, 1,234 got the lock; 1,234 releases; 0 increments of the shared counters; 0 leases lost in the "
        "owner's eyes; the auditor looked at the keys 1,234 times.\n"
        "Availability: of 1,234 acquires that had a healthy quorum all the time, 1,234 got the lock (100.00 %).");
    expect_words(fixture, "Acquires that got the lock: half within 1.0 ms,");
    expect_words(fixture, "\nNo violation.\n");
    assert_lacks(fixture->words, "Redlock assumes");
    assert_lacks(fixture->words, "Recovery");
}

FRESH_TEST(words_of_violations) {
    struct kit *kit = &fixture->kit;
    one_turn(kit, 1 * S);
    for (int i = 0; i < 5; i++) {
        kit_leave(kit, "2 keys on node 3");
    }
    kit_band(kit, CHAOS_FAULT_FLUSHALL, 0x1f, 0, 2 * S, 2 * S); /* by hand */
    kit_finish(kit, 3 * S);
    free(kit->history.experiment);
    kit->history.experiment = strdup("split");
    assert_non_null(kit->history.experiment);
    check(fixture);
    expect_words(fixture, " s, split, seed 7:\n");
    expect_words(fixture, "This run breaks that (flushall): violations are expected here, and show what it costs.\n"
                          "5 violations:\n"
                          "left behind: 5 (keys or processes were left after the end)\n"
                          "  2 keys on node 3\n  2 keys on node 3\n  2 keys on node 3\n  and 2 more\n");
    assert_lacks(fixture->words, "No violation");
    kit->history.bands[0].fault.kind = CHAOS_FAULT_KILL;
    kit->history.breaks_assumptions = true;
    check(fixture);
    expect_words(fixture,
                 "This run breaks that (nodes were killed that keep nothing on disk): violations are expected");
}

FRESH_TEST(names) {
    assert_string_equal(chaos_violation_abouts[CHAOS_VIOLATION_LOST_UPDATE].name, "lost update");
    assert_string_equal(chaos_violation_abouts[CHAOS_VIOLATION_CRASH].meaning, "a client process ended by itself");
    char buffer[128];
    struct chaos_verdict empty = {0};
    assert_string_equal(chaos_verdict_line(&empty, buffer, sizeof buffer),
                        "violations=0 lost_updates=0 operations=0 availability=none");
    empty.healthy_acquires = 30000;
    empty.healthy_acquired = 29999; /* must not round up to all of them */
    assert_string_equal(chaos_verdict_line(&empty, buffer, sizeof buffer),
                        "violations=0 lost_updates=0 operations=0 availability=0.9999");
}

static enum short_end judge_all(void *what) {
    const struct kit *kit = what;
    struct chaos_verdict verdict;
    chaos_check(&kit->history, 0, &verdict);
    bool right = verdict.violation_count >= 9 && verdict.recovery_count >= 8;
    chaos_verdict_clear(&verdict);
    return right ? SHORT_ENOUGH : SHORT_WRONG;
}

static enum short_end find_spans(void *what) {
    const struct kit *kit = what;
    size_t count = 0;
    free(chaos_unhealthy_spans(&kit->history, 0, &count));
    return count > 0 ? SHORT_ENOUGH : SHORT_WRONG;
}

/* Every allocation fails in turn. Each ends the program; none gives a verdict that lacks a part. */
FRESH_TEST(without_memory) {
    struct kit kit;
    world_make(&kit, 5, 5, 3 * S);
    for (uint32_t i = 0; i < 8; i++) {
        kit_band(&kit, CHAOS_FAULT_PAUSE, 0x7, 0, i * 300 * MS, i * 300 * MS + 50 * MS);
        kit_leave(&kit, "a key");
    }
    kit_sort(&kit);
    kit.history.counters[0] = 0;
    long at = 1;
    enum short_end end;
    while ((end = short_run(at, judge_all, &kit)) == SHORT_ENDED) {
        at++;
    }
    assert_int_equal(end, SHORT_ENOUGH);
    assert_true(at > 60);
    assert_int_equal(short_run(1, find_spans, &kit), SHORT_ENDED);
    assert_int_equal(short_run(100000, find_spans, &kit), SHORT_ENOUGH);
    kit_clear(&kit);
}
