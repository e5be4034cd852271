/* Porcupine's verdict on a history beside our own. */
#include "checks/porcupine.h"

#include <stdarg.h>
#include <string.h>

#include "checks/numbers.h"

/* The objects that redlock-porcupine judges, and the kinds of violations, as bits, that a part of
 * the whole is about. */
enum object { WHOLE, LOCK, TOKENS, LOCK_TOKENS, COUNTER, RESOURCE, OBJECTS };

#define KIND(kind) (UINT32_C(1) << CHAOS_VIOLATION_##kind)
static const struct about {
    const char *name;
    uint32_t kinds; /* 0: none by itself */
} abouts[OBJECTS] = {[WHOLE] = {"whole", 0},
                     [LOCK] = {"lock", KIND(OVERLAP)},
                     [TOKENS] = {"tokens", KIND(FENCE)},
                     [LOCK_TOKENS] = {"lock+tokens", 0},
                     [COUNTER] = {"counter", KIND(LOST_UPDATE) | KIND(CHANGED)},
                     [RESOURCE] = {"resource", KIND(STALE)}};

enum result { NOT_ASKED, OK, ILLEGAL, UNKNOWN };

struct sheet {
    enum result theirs[OBJECTS];
    bool ours[OBJECTS];
    bool contradicts_itself; /* what the two see in it need not be the same */
};

struct count {
    size_t wrong[OBJECTS], unknown, differ;
};

/* False for a line that is none of its. */
static bool take_line(struct sheet *sheets, const char *line, size_t resource_count) {
    static const char *const results[] = {[OK] = "ok", [ILLEGAL] = "illegal", [UNKNOWN] = "unknown"};
    char name[16], result[16];
    unsigned resource;
    if (sscanf(line, "%15s %u %15s", name, &resource, result) != 3 || resource < 1 || resource > resource_count) {
        return false;
    }
    for (size_t o = 0; o < OBJECTS; o++) {
        for (int r = OK; strcmp(name, abouts[o].name) == 0 && r <= UNKNOWN; r++) {
            if (strcmp(result, results[r]) == 0) {
                sheets[resource - 1].theirs[o] = (enum result)r;
                return true;
            }
        }
    }
    return false;
}

static bool take(struct sheet *sheets, const char *said, const struct chaos_history *history,
                 const struct chaos_verdict *verdict) {
    for (const char *line = said; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        if (!take_line(sheets, line, history->resource_count)) {
            return false;
        }
    }
    for (size_t i = 0; i < verdict->violation_count; i++) {
        const struct chaos_violation *violation = &verdict->violations[i];
        for (size_t o = 0; o < OBJECTS && violation->resource >= 0; o++) {
            sheets[violation->resource].ours[o] |= (abouts[o].kinds >> violation->kind & 1) != 0;
            sheets[violation->resource].contradicts_itself |= violation->kind == CHAOS_VIOLATION_INCOMPLETE;
        }
    }
    return true;
}

__attribute__((format(printf, 3, 4))) static void say_difference(struct count *count, FILE *out, const char *format,
                                                                 ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs(count->differ++ == 0 ? "Porcupine differs:\n  " : "  ", out);
    vfprintf(out, format, arguments);
    va_end(arguments);
}

/* The parts of a whole that is ok are not asked for: they are ok. Tokens that each acquire's own
 * times allow, but not the order of the leases, are wrong, too. */
static void judge(const struct sheet *sheet, const char *resource, struct count *count, FILE *out) {
    bool parts_wrong = false, parts_unknown = sheet->theirs[WHOLE] != OK && sheet->theirs[WHOLE] != ILLEGAL;
    count->wrong[WHOLE] += sheet->theirs[WHOLE] == ILLEGAL;
    for (size_t o = WHOLE + 1; o < OBJECTS; o++) {
        bool wrong = sheet->theirs[o] == ILLEGAL;
        wrong |= o == TOKENS && sheet->theirs[LOCK_TOKENS] == ILLEGAL && sheet->theirs[LOCK] == OK;
        parts_wrong |= wrong;
        parts_unknown |= sheet->theirs[o] == UNKNOWN;
        count->wrong[o] += wrong;
        if (abouts[o].kinds != 0 && wrong != sheet->ours[o] && !sheet->contradicts_itself &&
            sheet->theirs[o] != UNKNOWN) {
            say_difference(count, out, "%s, %s: %s for Porcupine, but %s violation \"%s\" here\n", resource,
                           abouts[o].name, wrong ? "illegal" : "ok", wrong ? "no" : "a",
                           chaos_violation_abouts[__builtin_ctz(abouts[o].kinds)].name);
        }
    }
    count->unknown += parts_unknown;
    if (sheet->theirs[WHOLE] == ILLEGAL && !parts_wrong && !parts_unknown) {
        say_difference(count, out, "%s, whole: illegal for Porcupine, but none of its parts is\n", resource);
    }
}

static enum chaos_porcupine say(const struct count *count, size_t resource_count, FILE *out) {
    if (count->differ > 0) {
        return CHAOS_PORCUPINE_DIFFERS;
    }
    if (count->unknown > 0) {
        fprintf(out, "Porcupine does not know: it came to no end in time with %s of %s\n", CHAOS_COUNT(count->unknown),
                CHAOS_MANY(resource_count, "resource"));
        return CHAOS_PORCUPINE_UNKNOWN;
    }
    fprintf(out, "Porcupine agrees: of %s, %s illegal", CHAOS_MANY(resource_count, "resource"),
            CHAOS_COUNT(count->wrong[WHOLE]));
    const char *before = " (";
    for (size_t o = WHOLE + 1; o < OBJECTS; o++) {
        if (count->wrong[o] > 0 && o != LOCK_TOKENS) {
            fprintf(out, "%s%s %s", before, abouts[o].name, CHAOS_COUNT(count->wrong[o]));
            before = ", ";
        }
    }
    fputs(before[0] == ',' ? ")\n" : "\n", out);
    return CHAOS_PORCUPINE_AGREES;
}

enum chaos_porcupine chaos_porcupine_compare(const char *said, const struct chaos_history *history,
                                             const struct chaos_verdict *verdict, FILE *out) {
    struct sheet sheets[CHAOS_RESOURCES_MAX] = {0};
    struct count count = {0};
    if (!take(sheets, said, history, verdict)) {
        fprintf(out, "Porcupine does not know: these are no verdicts: %.200s\n", said);
        return CHAOS_PORCUPINE_UNKNOWN;
    }
    for (size_t r = 0; r < history->resource_count; r++) {
        judge(&sheets[r], history->resources[r], &count, out);
    }
    return say(&count, history->resource_count, out);
}
