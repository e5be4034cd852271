/* Comparisons: when one holds, what is said of it, and its page. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit.h"
#include "report/report.h"

#define S  INT64_C(1000000)
#define MS INT64_C(1000)

static bool no_memory;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size) {
    return no_memory ? NULL : __real_calloc(count, size);
}

struct trio {
    struct kit kits[CHAOS_SIDES];
    struct chaos_comparison comparison;
};

static void make_side(struct kit *kit, enum chaos_side side) {
    kit_begin(kit, 5, 3, 2);
    kit->history.protection = chaos_side_protection(side);
    kit->history.protection.ttl_max_ms = side == CHAOS_SIDE_GUARDS ? 1000 : 0;
    kit->history.breaks_assumptions = true;
    kit_sweep(kit, 1, 1 * S, 1100 * MS);
    kit_band(kit, CHAOS_FAULT_CLOCK_JUMP, 0x07, 0, 1300 * MS, 1300 * MS);
    kit->history.bands[0].fault.amount = 5000;
}

static size_t acquire(struct kit *kit, int client, const char *token, int64_t fence, int64_t from_us) {
    size_t lease = kit_acquire(kit, client, 0, token, from_us, from_us + 900 * MS);
    kit_fence(kit, token, fence);
    return lease;
}

/* Without protection an overlap and a lost update; with tokens an overlap, and the write is refused; with guards nothing. */
static int set_up(void **state) {
    struct trio *trio = calloc(1, sizeof *trio);
    assert_non_null(trio);
    *state = trio;
    for (int side = 0; side < CHAOS_SIDES; side++) {
        struct kit *kit = &trio->kits[side];
        bool fenced = side != CHAOS_SIDE_NONE;
        make_side(kit, (enum chaos_side)side);
        size_t one = acquire(kit, 0, "a", fenced ? 10 : 0, 1 * S);
        size_t two = acquire(kit, 1, "b", fenced ? 11 : 0, side == CHAOS_SIDE_GUARDS ? 2500 * MS : 1500 * MS);
        int64_t read_us = side == CHAOS_SIDE_GUARDS ? 2600 * MS : 1600 * MS;
        size_t old = kit_increment(kit, one, 0, 1100 * MS, side == CHAOS_SIDE_FENCING ? CHAOS_NEVER_US : 1700 * MS);
        size_t new = kit_increment(kit, two, side == CHAOS_SIDE_GUARDS, read_us, read_us + 50 * MS);
        if (fenced) {
            kit_receipts(kit, old, 10, 1, side == CHAOS_SIDE_FENCING ? 0 : 2);
            kit_receipts(kit, new, 11, side == CHAOS_SIDE_FENCING ? 2 : 3, side == CHAOS_SIDE_FENCING ? 3 : 4);
            kit_tally(kit, 0, 3 * S, 1, side == CHAOS_SIDE_GUARDS ? 3 : 0);
        }
        if (side == CHAOS_SIDE_FENCING) {
            kit_refuse(kit, old, 0, 0, 1710 * MS, 10, 11);
        }
        kit_release(kit, one, 1750 * MS);
        kit_release(kit, two, 3300 * MS);
        kit_finish(kit, 9 * S);
    }
    return 0;
}

/* The histories are the kits'. */
static int tear_down(void **state) {
    struct trio *trio = *state;
    for (int side = 0; side < CHAOS_SIDES; side++) {
        chaos_verdict_clear(&trio->comparison.verdicts[side]);
        kit_clear(&trio->kits[side]);
    }
    free(trio);
    return 0;
}

static void judge(struct trio *trio) {
    for (int side = 0; side < CHAOS_SIDES; side++) {
        chaos_verdict_clear(&trio->comparison.verdicts[side]);
        trio->comparison.histories[side] = trio->kits[side].history;
        assert_true(chaos_check(&trio->kits[side].history, 1 * S, &trio->comparison.verdicts[side]));
    }
}

static void expect_says(struct trio *trio, const char *words) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    chaos_comparison_say(out, &trio->comparison);
    assert_int_equal(fclose(out), 0);
    if (strstr(text, words) == NULL) {
        fail_msg("\"%s\" is not in: %s", words, text);
    }
    free(text);
}

static void one_that_holds(void **state) {
    struct trio *trio = *state;
    judge(trio);
    assert_true(chaos_comparison_holds(&trio->comparison));
    expect_says(trio,
                "Without protection: two clients relied on one lease 1 time, and 1 update of the resource was lost.");
    expect_says(trio,
                "With fencing tokens: leases overlapped 1 time all the same; the resource refused 1 access with old "
                "tokens and granted 0, and 0 updates were lost.");
    expect_says(trio,
                "With guards, too: no violation. Nodes that had restarted, or whose clocks had jumped, were kept from "
                "voting (3 times, counted by each client).");
    expect_says(trio, "\ncomparison=holds none=2 fencing=1 guards=0\n");
}

static void expect_side_fails(struct trio *trio, enum chaos_side side, const char *words) {
    judge(trio);
    assert_false(chaos_comparison_holds(&trio->comparison));
    for (int other = 0; other < CHAOS_SIDES; other++) {
        assert_int_equal(chaos_side_holds(&trio->comparison, (enum chaos_side)other), other != (int)side);
    }
    expect_says(trio, words);
    expect_says(trio, "\ncomparison=fails ");
}

static void unprotected_and_nothing_happened(void **state) {
    struct trio *trio = *state;
    kit_clear(&trio->kits[CHAOS_SIDE_NONE]);
    make_side(&trio->kits[CHAOS_SIDE_NONE], CHAOS_SIDE_NONE);
    kit_release(&trio->kits[CHAOS_SIDE_NONE], acquire(&trio->kits[CHAOS_SIDE_NONE], 0, "a", 0, 1 * S), 1500 * MS);
    kit_finish(&trio->kits[CHAOS_SIDE_NONE], 9 * S);
    expect_side_fails(trio, CHAOS_SIDE_NONE, "nothing went wrong, so this run shows nothing");
}

static void unprotected_and_something_else(void **state) {
    struct trio *trio = *state;
    kit_leave(&trio->kits[CHAOS_SIDE_NONE], "a key");
    expect_side_fails(trio, CHAOS_SIDE_NONE, "there are violations that these faults do not explain");
}

static void a_stale_write_is_granted(void **state) {
    struct trio *trio = *state;
    struct chaos_increment *old = &trio->kits[CHAOS_SIDE_FENCING].history.increments[0];
    old->refused = false;
    old->done_us = old->intent_us + 600 * MS;
    old->write_number = 4;
    expect_side_fails(trio, CHAOS_SIDE_FENCING, "and granted 1, and 1 update was lost; that must not be");
}

static void guards_and_an_overlap(void **state) {
    struct trio *trio = *state;
    trio->kits[CHAOS_SIDE_GUARDS].history.leases[1].from_us -= 900 * MS;
    trio->kits[CHAOS_SIDE_GUARDS].history.leases[1].claims[0].at_us -= 900 * MS;
    expect_side_fails(trio, CHAOS_SIDE_GUARDS, "which must not be.");
}

static void guards_and_nobody_got_it(void **state) {
    struct trio *trio = *state;
    struct kit *kit = &trio->kits[CHAOS_SIDE_GUARDS];
    kit_clear(kit);
    make_side(kit, CHAOS_SIDE_GUARDS);
    kit_operation(kit, 0, 0, CHAOS_ACQUIRE, 1 * S, 2 * S, "NO_QUORUM");
    kit_finish(kit, 9 * S);
    expect_side_fails(trio, CHAOS_SIDE_GUARDS, "nobody got the lock: this run proves nothing.");
}

static char *write_page(struct trio *trio) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(chaos_report_compare(out, &trio->comparison, NULL));
    assert_int_equal(fclose(out), 0);
    return text;
}

static size_t occurrences(const char *text, const char *part) {
    size_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text++) {
        count++;
    }
    return count;
}

static void the_page(void **state) {
    struct trio *trio = *state;
    free(trio->kits[0].history.resources[0]);
    trio->kits[0].history.resources[0] = strdup("<r&1>");
    judge(trio);
    char *page = write_page(trio);
    assert_int_equal(occurrences(page, "<svg class=\"lane compared\""), 3);
    assert_int_equal(occurrences(page, "class=\"hue"), 6); /* two leases a run; the legend's is no fill of these */
    assert_int_equal(occurrences(page, "<rect class=\"overlap\""), 2);
    assert_int_equal(occurrences(page, "<path class=\"lost-update\""), 1);
    assert_int_equal(occurrences(page, "<path class=\"refused\""), 1);
    assert_int_equal(occurrences(page, "<rect class=\"fault\""), 3);
    assert_int_equal(occurrences(page, "<rect class=\"without\""), 1); /* three of five nodes are kept out */
    for (int side = 0; side < CHAOS_SIDES; side++) {
        char link[64];
        snprintf(link, sizeof link, "href=\"%s/report.html\"", chaos_side_name((enum chaos_side)side));
        assert_int_equal(occurrences(page, link), 2);
    }
    assert_null(strstr(page, "<r&1>"));
    assert_non_null(strstr(page, "&lt;r&amp;1&gt;"));
    assert_non_null(strstr(page, "Violations without protection, none with it"));
    for (size_t row = 0; row < chaos_row_count(); row++) {
        assert_non_null(strstr(page, chaos_row_at(row).name));
    }
    /* Each tag that is opened is closed. */
    static const char *const tags[] = {"section", "table", "tr", "td", "svg", "title", "h3", "div", "ul", "li"};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        char opened[16], plain[16], closed[16];
        snprintf(opened, sizeof opened, "<%s ", tags[i]);
        snprintf(plain, sizeof plain, "<%s>", tags[i]);
        snprintf(closed, sizeof closed, "</%s>", tags[i]);
        assert_int_equal(occurrences(page, opened) + occurrences(page, plain), occurrences(page, closed));
    }
    free(page);
}

static void memory_and_disk_run_out(void **state) {
    struct trio *trio = *state;
    judge(trio);
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    no_memory = true;
    assert_false(chaos_report_compare(out, &trio->comparison, NULL));
    no_memory = false;
    assert_int_equal(errno, ENOMEM);
    fclose(out);
    free(text);
    out = fopen("/dev/full", "w");
    assert_non_null(out);
    assert_false(chaos_report_compare(out, &trio->comparison, NULL));
    fclose(out);
}

int main(void) {
#define TRIO(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TRIO(one_that_holds),
        TRIO(unprotected_and_nothing_happened),
        TRIO(unprotected_and_something_else),
        TRIO(a_stale_write_is_granted),
        TRIO(guards_and_an_overlap),
        TRIO(guards_and_nobody_got_it),
        TRIO(the_page),
        TRIO(memory_and_disk_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
