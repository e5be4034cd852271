/* The kinds of faults, and one fault as text: its line, and its phrase for people. Lines are read
 * strictly: what is not understood is refused with a sentence. */
#include "faults/fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "values/values.h"

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

/* Text that grows in a buffer of a fixed size. */
struct words {
    char *buffer;
    size_t size;
};

#define say(words, ...) tool_append((words)->buffer, (words)->size, __VA_ARGS__)

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
    struct words words = {buffer, size};
    buffer[0] = '\0';
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
    struct words words = {buffer, size};
    buffer[0] = '\0';
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

#define TIME_MAX_MS INT64_C(3600000000) /* 1000 h: sums of microseconds fit in int64_t */

bool chaos_time_parse(const char *text, int64_t *ms) {
    return tool_duration_parse(text, ms) == TOOL_DURATION_OK && *ms <= TIME_MAX_MS;
}

/* ", "-separated names of all kinds, for a sentence. */
static const char *names_of_kinds(char *buffer, size_t size) {
    buffer[0] = '\0';
    for (int kind = 0; kind < CHAOS_FAULT_KINDS; kind++) {
        tool_append(buffer, size, "%s%s", kind == 0 ? "" : ", ", abouts[kind].name);
    }
    return buffer;
}

bool chaos_fault_kinds_parse(const char *list, uint32_t *kinds, struct chaos_error *error) {
    char names[CHAOS_FAULT_LINE_MAX];
    uint32_t set = 0;
    for (const char *at = list;; at++) {
        char name[32];
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), at);
        enum chaos_fault_kind one;
        if (strcmp(name, "all") == 0 || strcmp(name, "safe") == 0) {
            set |= chaos_fault_kinds(name[0] == 'a');
        } else if (chaos_fault_kind_find(name, &one)) {
            set |= UINT32_C(1) << one;
        } else if (strcmp(name, "none") != 0) {
            return chaos_fail(error, "%s '%s'; there are: all, safe, none, %s",
                              length == 0 ? "an empty name of a fault," : "unknown fault", name,
                              names_of_kinds(names, sizeof names));
        }
        at += length;
        if (*at == '\0') {
            break;
        }
    }
    *kinds = set;
    return true;
}

/* The words of a line, in no order. */
enum word { AT, FOR, FAULT, NODES, CLIENTS, AMOUNT, WORDS };

static const char *const word_names[WORDS] = {"at", "for", "fault", "nodes", "clients", "amount"};

struct line {
    char text[CHAOS_FAULT_LINE_MAX];
    const char *values[WORDS]; /* NULL: not given */
    struct chaos_error *error;
};

static bool read_word(struct line *line, const char *word) {
    for (int i = 0; i < WORDS; i++) {
        size_t length = strlen(word_names[i]);
        if (strncmp(word, word_names[i], length) != 0 || word[length] != '=') {
            continue;
        }
        if (line->values[i] != NULL) {
            return chaos_fail(line->error, "%s= is given twice", word_names[i]);
        }
        line->values[i] = word + length + 1;
        return true;
    }
    return chaos_fail(line->error,
                      "cannot understand '%s'; a fault is told by at=, for=, fault=, nodes=, clients=, amount=", word);
}

/* "1,3-5" or "all", of 1 to count. */
static bool read_set(struct line *line, enum word word, size_t count, uint64_t *set) {
    const char *text = line->values[word];
    *set = text == NULL || strcmp(text, "all") == 0 ? chaos_all(count) : 0;
    if (*set != 0) {
        return true;
    }
    const char *what = word_names[word];
    for (const char *at = text;; at++) {
        int64_t first, last;
        const char *end;
        bool number = tool_number_read(at, INT32_MAX, &first, &end);
        last = first;
        if (number && *end == '-') {
            number = tool_number_read(end + 1, INT32_MAX, &last, &end);
        }
        if (!number || (*end != '\0' && *end != ',')) {
            return chaos_fail(line->error,
                              "cannot understand %s=%s; numbers and ranges are expected, such as %s=1,3-5, or %s=all",
                              what, text, what, what);
        }
        if (first < 1 || last > (int64_t)count || first > last) {
            return chaos_fail(line->error,
                              "%s=%s: %s are numbered from 1 to %zu, and a range begins with the smaller one", what,
                              text, what, count);
        }
        for (int64_t i = first; i <= last; i++) {
            *set |= UINT64_C(1) << (i - 1);
        }
        at = end;
        if (*at == '\0') {
            return true;
        }
    }
}

static bool read_time_word(struct line *line, enum word word, bool positive, int64_t *ms) {
    const char *text = line->values[word];
    return (chaos_time_parse(text, ms) && (!positive || *ms != 0)) ||
           chaos_fail(line->error,
                      "cannot understand %s=%s; a time%s of up to 1000h is expected, such as 500ms, 10s, 2m",
                      word_names[word], text, positive ? " above 0" : "");
}

static bool read_amount(struct line *line, enum chaos_amount amount, bool may_be_negative, int64_t *value) {
    const struct chaos_amount_about *about = &chaos_amounts[amount];
    const char *text = line->values[AMOUNT], *unit;
    bool negative = may_be_negative && *text == '-', time = amount == CHAOS_AMOUNT_TIME;
    const char *digits = text + (negative ? 1 : 0);
    bool understood = time ? chaos_time_parse(digits, value)
                           : tool_number_read(digits, about->most, value, &unit) && strcmp(unit, about->unit) == 0;
    if (!understood || *value == 0) {
        return chaos_fail(line->error, "cannot understand amount=%s; %s", text,
                          time && may_be_negative ? "a time but 0 is expected, such as 500ms, 10s, -3s"
                                                  : about->expected);
    }
    *value = negative ? -*value : *value;
    return true;
}

/* The library takes no other quorum. */
static bool check_quorum(struct line *line, const struct chaos_fault *fault) {
    size_t count = chaos_count_bits(fault->nodes);
    bool fits =
        fault->kind != CHAOS_FAULT_CONFIGURE || ((size_t)fault->amount > count / 2 && (size_t)fault->amount <= count);
    return fits ||
           chaos_fail(line->error, "amount=%" PRId64 ": the quorum is more than half of the %zu nodes, up to all",
                      fault->amount, count);
}

/* A word is there if and only if the kind has it. */
static bool check_word(struct line *line, enum word word, bool needed, const char *kind, const char *why_not) {
    return (line->values[word] != NULL) == needed ||
           chaos_fail(line->error, needed ? "%s needs %s=, such as %s" : "%s takes no %s=: %s", kind, word_names[word],
                      why_not);
}

static bool read_values(struct line *line, size_t node_count, size_t client_count, struct chaos_fault *fault) {
    char names[CHAOS_FAULT_LINE_MAX];
    const char *kind = line->values[FAULT];
    if (kind == NULL || !chaos_fault_kind_find(kind, &fault->kind)) {
        names_of_kinds(names, sizeof names);
        return kind == NULL ? chaos_fail(line->error, "fault= is missing; there are: %s", names)
                            : chaos_fail(line->error, "unknown fault '%s'; there are: %s", kind, names);
    }
    const struct chaos_fault_about *about = chaos_fault_about(fault->kind);
    bool amounts = about->amount != CHAOS_AMOUNT_NONE;
    bool of_nodes = about->target != CHAOS_TARGET_CLIENTS, of_clients = about->target != CHAOS_TARGET_NODES;
    uint64_t nodes = 0;
    if (!check_word(line, FOR, about->lasts, kind, about->lasts ? "for=3s" : "it has no length of its own") ||
        !check_word(line, AMOUNT, amounts, kind, chaos_amounts[about->amount].example) ||
        (!of_nodes && !check_word(line, NODES, false, kind, "it hits clients")) ||
        (!of_clients && !check_word(line, CLIENTS, false, kind, "it hits nodes"))) {
        return false;
    }
    if ((of_nodes && !read_set(line, NODES, node_count, &nodes)) ||
        (of_clients && !read_set(line, CLIENTS, client_count, &fault->clients)) ||
        (line->values[AT] != NULL && !read_time_word(line, AT, false, &fault->at_ms)) ||
        (about->lasts && !read_time_word(line, FOR, true, &fault->for_ms)) ||
        (amounts && !read_amount(line, about->amount, chaos_fault_is_of_clock(fault->kind), &fault->amount))) {
        return false;
    }
    fault->nodes = (uint32_t)nodes;
    return check_quorum(line, fault);
}

bool chaos_fault_parse(const char *line, size_t node_count, size_t client_count, struct chaos_fault *fault,
                       struct chaos_error *error) {
    struct line words = {.error = error};
    struct chaos_fault read = {0};
    size_t length = strlen(line);
    if (length >= sizeof words.text) {
        return chaos_fail(error, "a fault's line of %zu bytes is too long; %d are enough for each", length,
                          CHAOS_FAULT_LINE_MAX - 1);
    }
    memcpy(words.text, line, length + 1);
    char *rest = NULL;
    for (char *word = strtok_r(words.text, " \t\r\n", &rest); word != NULL; word = strtok_r(NULL, " \t\r\n", &rest)) {
        if (!read_word(&words, word)) {
            return false;
        }
    }
    if (!read_values(&words, node_count, client_count, &read)) {
        return false;
    }
    *fault = read;
    return true;
}
