/* Porcupine's verdict beside ours: where the two agree, differ, and where nothing is known. */
#include "check_kit.h"
#include "checks/porcupine.h"

/* Where the verdict has violations of this kind, one on each of these resources. */
static void set_violations(enum chaos_violation_kind kind, size_t count, const int *resources) {
    chaos_verdict_clear(&verdict);
    for (size_t i = 0; i < count; i++) {
        struct chaos_violation violation = {.kind = kind, .resource = resources[i], .text = strdup("it")};
        chaos_add(&verdict.violations, &verdict.violation_count, &violation, sizeof violation);
    }
}
#define OURS(kind, ...)                                                                                                \
    set_violations(CHAOS_VIOLATION_##kind, sizeof((int[]){__VA_ARGS__}) / sizeof(int), (int[]){__VA_ARGS__})

/* Only the first words count where they end with a colon. */
static void expect_compared(struct kit *kit, const char *said, enum chaos_porcupine expected, const char *words) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    enum chaos_porcupine compared = chaos_porcupine_compare(said, &kit->history, &verdict, out);
    assert_int_equal(fclose(out), 0);
    if (strncmp(text, words, strlen(words)) != 0 || (words[strlen(words) - 1] != ':' && strcmp(text, words) != 0)) {
        fail_msg("\"%s\" is said of \"%s\", not \"%s\"", text, said, words);
    }
    assert_int_equal(compared, expected);
    free(text);
}
#define AGREES(said, words)  expect_compared(kit, said, CHAOS_PORCUPINE_AGREES, "Porcupine agrees: " words "\n")
#define DIFFERS(said, words) expect_compared(kit, said, CHAOS_PORCUPINE_DIFFERS, "Porcupine differs:\n  " words "\n")
#define UNKNOWN(said)        expect_compared(kit, said, CHAOS_PORCUPINE_UNKNOWN, "Porcupine does not know:")

#define FINE_2 "whole 2 ok 1\n"
#define PARTS(lock, tokens, both, counter, resource)                                                                   \
    "whole 1 illegal 9\nlock 1 " lock " 9\ntokens 1 " tokens " 9\nlock+tokens 1 " both " 9\ncounter 1 " counter        \
    " 9\nresource 1 " resource " 9\n" FINE_2

FRESH_TEST(both_find_nothing) {
    AGREES("whole 1 ok 9\n" FINE_2, "of 2 resources, 0 illegal");
    OURS(LATE, 0, 1);
    AGREES("whole 1 ok 9\n" FINE_2, "of 2 resources, 0 illegal");
}

FRESH_TEST(both_find_the_same) {
    OURS(OVERLAP, 0, 0);
    AGREES(PARTS("illegal", "ok", "illegal", "ok", "ok"), "of 2 resources, 1 illegal (lock 1)");
    OURS(FENCE, 0);
    AGREES(PARTS("ok", "illegal", "illegal", "ok", "ok"), "of 2 resources, 1 illegal (tokens 1)");
    AGREES(PARTS("ok", "ok", "illegal", "ok", "ok"), "of 2 resources, 1 illegal (tokens 1)");
    OURS(LOST_UPDATE, 0);
    AGREES("whole 1 illegal 9\nlock 1 ok 9\ncounter 1 illegal 9\n" FINE_2, "of 2 resources, 1 illegal (counter 1)");
    OURS(CHANGED, 0);
    AGREES("whole 1 illegal 9\nlock 1 ok 9\ncounter 1 illegal 9\n" FINE_2, "of 2 resources, 1 illegal (counter 1)");
    OURS(STALE, 0);
    AGREES(PARTS("ok", "ok", "ok", "ok", "illegal"), "of 2 resources, 1 illegal (resource 1)");
}

FRESH_TEST(only_porcupine_finds_it) {
    DIFFERS(PARTS("illegal", "ok", "illegal", "ok", "ok"),
            "r1, lock: illegal for Porcupine, but no violation \"overlap\" here");
    DIFFERS(PARTS("ok", "ok", "illegal", "ok", "ok"),
            "r1, tokens: illegal for Porcupine, but no violation \"fencing token\" here");
    DIFFERS(PARTS("ok", "ok", "ok", "ok", "ok"), "r1, whole: illegal for Porcupine, but none of its parts is");
    OURS(OVERLAP, 1);
    DIFFERS("whole 1 ok 9\nwhole 2 illegal 9\nlock 2 illegal 1\ncounter 2 illegal 1\n",
            "r2, counter: illegal for Porcupine, but no violation \"lost update\" here");
}

FRESH_TEST(only_we_find_it) {
    OURS(OVERLAP, 1);
    DIFFERS("whole 1 ok 9\n" FINE_2, "r2, lock: ok for Porcupine, but a violation \"overlap\" here");
    OURS(STALE, 0);
    DIFFERS(PARTS("ok", "ok", "ok", "illegal", "ok"),
            "r1, counter: illegal for Porcupine, but no violation \"lost update\" here\n"
            "  r1, resource: ok for Porcupine, but a violation \"stale access\" here");
}

/* Each judge sees its own part of it. */
FRESH_TEST(a_history_that_contradicts_itself) {
    OURS(INCOMPLETE, 0);
    AGREES(PARTS("ok", "ok", "ok", "ok", "illegal"), "of 2 resources, 1 illegal (resource 1)");
}

FRESH_TEST(what_is_unknown_is_not_ok) {
    UNKNOWN("whole 1 unknown 9\nlock 1 ok 9\ncounter 1 ok 9\n" FINE_2);
    UNKNOWN(PARTS("unknown", "ok", "ok", "ok", "ok"));
    UNKNOWN("whole 1 ok 9\n");
    UNKNOWN("lock 1 ok 9\n" FINE_2);
    UNKNOWN("");
    UNKNOWN("whole 3 ok 9\n");
    UNKNOWN("whole 0 ok 9\n");
    UNKNOWN("hole 1 ok 9\n" FINE_2);
    UNKNOWN("whole 1 fine 9\n" FINE_2);
    UNKNOWN("whole 1\n" FINE_2);
}
