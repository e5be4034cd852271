/* Runs one check alone and compares what it finds. */
#include "check_kit.h"

struct chaos_verdict verdict;

void expect(struct kit *kit, void (*check)(struct chaos_case *), enum chaos_violation_kind kind, size_t count) {
    struct chaos_case c;
    chaos_verdict_clear(&verdict);
    chaos_case_open(&c, &kit->history, 100 * MS, &verdict);
    check(&c);
    chaos_case_close(&c);
    for (size_t i = 0; i < verdict.violation_count; i++) {
        if (verdict.violations[i].kind != kind) {
            fail_msg("%s: %s", chaos_violation_abouts[verdict.violations[i].kind].name, verdict.violations[i].text);
        }
    }
    if (verdict.counts[kind] != count) {
        fail_msg("%zu %s, not %zu; the first: %s", verdict.counts[kind], chaos_violation_abouts[kind].name, count,
                 verdict.violation_count > 0 ? verdict.violations[0].text : "none");
    }
    assert_int_equal(verdict.violation_count, count);
}

void expect_at_end(struct kit *kit, void (*check)(struct chaos_case *), enum chaos_violation_kind kind, size_t count) {
    kit_finish(kit, 9 * S);
    expect(kit, check, kind, count);
}

void expect_text(size_t index, const char *part) {
    assert_true(index < verdict.violation_count);
    assert_contains(verdict.violations[index].text, part);
}

int set_up(void **state) {
    struct kit *kit = malloc(sizeof *kit);
    *state = kit;
    if (kit != NULL) {
        kit_begin(kit, 5, 3, 2);
    }
    return kit == NULL;
}

int tear_down(void **state) {
    kit_clear(*state);
    free(*state);
    chaos_verdict_clear(&verdict);
    return 0;
}
