/* The kinds of faults, and one fault as text: its line, and its phrase for people. */
#include "faults/fault.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct chaos_fault_about abouts[] = {
#define CHAOS_X(constant, name, target, amount, lasts, exclusive, breaks, help, phrase, several)                       \
    {name, help, CHAOS_TARGET_##target, CHAOS_AMOUNT_##amount, lasts, exclusive, breaks, phrase, several},
    CHAOS_FAULT_MAP(CHAOS_X)
#undef CHAOS_X
};

const struct chaos_amount_about chaos_amounts[] = {
    [CHAOS_AMOUNT_NONE] = {.example = "there is nothing to measure"},
    [CHAOS_AMOUNT_TIME] = {.example = "amount=500ms", .expected = "a time above 0 is expected, such as 500ms, 10s, 2m"},
    /* a clock that stands, or runs twice as fast */
    [CHAOS_AMOUNT_PPM] = {"ppm", "ppm", 1000000, "amount=50000ppm",
                          "parts per million of up to 1000000 and but 0 are expected, such as 50000ppm or -2000ppm"},
    [CHAOS_AMOUNT_BYTES_PER_S] = {"B/s", "bytes a second", 1000000000, "amount=2000B/s",
                                  "bytes a second above 0 are expected, such as 2000B/s"},
    [CHAOS_AMOUNT_NODES] = {"", "nodes", CHAOS_NODES_MAX, "amount=4", "a number of nodes is expected, such as 4"}};

_Static_assert(CHAOS_FAULT_KINDS <= 32, "kinds are bits of a uint32_t");

const struct chaos_fault_about *chaos_fault_about(enum chaos_fault_kind kind) {
    return &abouts[kind];
}

bool chaos_fault_breaks(const struct chaos_fault *fault, bool forgets) {
    /* The drift (1 % of the ttl) allows for this clock rate. */
    bool slight = fault->kind == CHAOS_FAULT_CLOCK_SKEW && fault->amount >= -10000 && fault->amount <= 10000;
    return (abouts[fault->kind].breaks && !slight) || (fault->kind == CHAOS_FAULT_KILL && forgets);
}

bool chaos_fault_hits_somebody(const struct chaos_fault *fault) {
    enum chaos_target target = abouts[fault->kind].target;
    return (target == CHAOS_TARGET_CLIENTS || fault->nodes != 0) &&
           (target == CHAOS_TARGET_NODES || fault->clients != 0);
}

uint32_t chaos_fault_kinds(bool breaking) {
    uint32_t kinds = 0;
    for (int kind = 0; kind < CHAOS_FAULT_KINDS; kind++) {
        bool meant = kind != CHAOS_FAULT_DROP && kind != CHAOS_FAULT_CONFIGURE && (breaking || !abouts[kind].breaks);
        kinds |= (meant ? UINT32_C(1) : 0) << kind;
    }
    return kinds;
}

bool chaos_fault_kind_find(const char *name, enum chaos_fault_kind *kind) {
    for (int i = 0; i < CHAOS_FAULT_KINDS; i++) {
        if (strcmp(name, abouts[i].name) == 0) {
            *kind = (enum chaos_fault_kind)i;
            return true;
        }
    }
    return false;
}

/* Text that grows in a buffer of a fixed size; what does not fit is cut off. */
struct words {
    char *buffer;
    size_t size;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *words, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(words->buffer + words->length, words->size - words->length, format, arguments);
    va_end(arguments);
    if (length > 0) {
        size_t room = words->size - words->length - 1;
        words->length += (size_t)length < room ? (size_t)length : room;
    }
}

static bool has(uint64_t set, size_t i) {
    return i < 64 && (set >> i & 1) != 0;
}

/* The last of the run of set bits that begins at `first`. */
static size_t run_end(uint64_t set, size_t first) {
    while (has(set, first + 1)) {
        first++;
    }
    return first;
}

enum { RUN_MIN = 4 }; /* from so many on, "4-7" is easier to read than "4,5,6,7" */

/* "1,2,4-9", with `comma` between two, `last_comma` before the last, `to` within a run. */
static void say_numbers(struct words *words, uint64_t set, const char *comma, const char *last_comma, const char *to) {
    for (size_t i = 0, said = 0; i < 64; i++) {
        if (!has(set, i)) {
            continue;
        }
        size_t end = run_end(set, i), next = end - i + 1 >= RUN_MIN ? end : i;
        bool last = next >= 63 || set >> (next + 1) == 0;
        say(words, "%s%zu", said++ == 0 ? "" : last ? last_comma : comma, i + 1);
        if (next > i) {
            say(words, "%s%zu", to, next + 1);
        }
        i = next;
    }
}

static void say_list(struct words *words, const char *word, uint64_t set, size_t count) {
    say(words, " %s=%s", word, chaos_count_bits(set) == count ? "all" : "");
    if (chaos_count_bits(set) != count) {
        say_numbers(words, set, ",", ",", "-");
    }
}

/* "node 1", "nodes 1, 2 and 4 to 9", "all nodes" */
static void say_set(struct words *words, const char *one, uint64_t set, size_t count) {
    size_t bits = chaos_count_bits(set);
    if (bits == count && count > 1) {
        say(words, "all %ss", one);
        return;
    }
    say(words, "%s%s ", one, bits == 1 ? "" : "s");
    say_numbers(words, set, ", ", " and ", " to ");
}

/* With the largest unit that loses nothing. */
static void say_time(struct words *words, const char *before, int64_t ms, const char *after) {
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    size_t i = 0;
    while (ms % units[i].ms != 0) {
        i++;
    }
    say(words, "%s%" PRId64 "%s%s", before, ms / units[i].ms, ms == 0 ? "ms" : units[i].name, after);
}

char *chaos_fault_format(const struct chaos_fault *fault, size_t node_count, size_t client_count, bool with_at,
                         char *buffer, size_t size) {
    const struct chaos_fault_about *about = &abouts[fault->kind];
    struct words words = {buffer, size, 0};
    if (with_at) {
        say_time(&words, "at=", fault->at_ms, " ");
    }
    if (about->lasts) {
        say_time(&words, "for=", fault->for_ms, " ");
    }
    say(&words, "fault=%s", about->name);
    if (about->target != CHAOS_TARGET_CLIENTS) {
        say_list(&words, "nodes", fault->nodes, node_count);
    }
    if (about->target != CHAOS_TARGET_NODES) {
        say_list(&words, "clients", fault->clients, client_count);
    }
    if (about->amount == CHAOS_AMOUNT_TIME) {
        say_time(&words, " amount=", fault->amount, "");
    } else if (about->amount != CHAOS_AMOUNT_NONE) {
        say(&words, " amount=%" PRId64 "%s", fault->amount, chaos_amounts[about->amount].unit);
    }
    return buffer;
}

static void say_amount(struct words *words, enum chaos_amount amount, int64_t value) {
    int64_t size = value < 0 ? -value : value;
    if (amount != CHAOS_AMOUNT_TIME) {
        say(words, "%" PRId64 " %s", size, chaos_amounts[amount].words);
    } else if (size >= 1000 && size % 1000 == 0) {
        say(words, "%" PRId64 " s", size / 1000);
    } else if (size >= 1000 && size % 100 == 0) {
        say(words, "%" PRId64 ".%" PRId64 " s", size / 1000, size % 1000 / 100);
    } else {
        say(words, "%" PRId64 " ms", size);
    }
}

char *chaos_fault_describe(const struct chaos_fault *fault, size_t node_count, size_t client_count, char *buffer,
                           size_t size) {
    const struct chaos_fault_about *about = &abouts[fault->kind];
    struct words words = {buffer, size, 0};
    bool several = about->several != NULL && chaos_count_bits(fault->nodes) > 1;
    for (const char *c = several ? about->several : about->phrase; *c != '\0'; c++) {
        switch (*c) {
        case '@':
            say_set(&words, "node", fault->nodes, node_count);
            break;
        case '&':
            say_set(&words, "client", fault->clients, client_count);
            break;
        case '#':
            say_amount(&words, about->amount, fault->amount);
            break;
        case '<':
            say(&words, "%s", fault->amount < 0 ? "back " : "");
            break;
        case '>':
            say(&words, "%s", fault->amount < 0 ? "slow" : "fast");
            break;
        default:
            say(&words, "%c", *c);
        }
    }
    return buffer;
}
