/* Faults over time: as text, what can be said of them, and from a seed. */
#include "faults/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "faults/lists.h"
#include "faults/setup.h"
#include "values/values.h"

enum { FAULTS_MAX = 10000 };

void chaos_schedule_clear(struct chaos_schedule *schedule) {
    free(schedule->faults);
    *schedule = (struct chaos_schedule){0};
}

void chaos_schedule_add(struct chaos_schedule *schedule, const struct chaos_fault *fault) {
    size_t place = schedule->count;
    chaos_add(&schedule->faults, &schedule->count, fault, sizeof *fault);
    /* What is at one time stays in order. A schedule is written in order for the most part, and
     * short. */
    while (place > 0 && schedule->faults[place - 1].at_ms > fault->at_ms) {
        schedule->faults[place] = schedule->faults[place - 1];
        place--;
    }
    schedule->faults[place] = *fault;
}

static bool parse_line(const char *line, size_t nodes, size_t clients, struct chaos_schedule *schedule,
                       struct chaos_error *error) {
    struct chaos_fault fault;
    size_t blank = strspn(line, " \t\r");
    if (line[blank] == '\0' || line[blank] == '#') {
        return true;
    }
    if (!chaos_fault_parse(line, nodes, clients, &fault, error)) {
        return false;
    }
    if (schedule->count == FAULTS_MAX) {
        return chaos_fail(error, "more than %d faults", FAULTS_MAX);
    }
    chaos_schedule_add(schedule, &fault);
    return true;
}

bool chaos_schedule_parse(const char *text, size_t nodes, size_t clients, struct chaos_schedule *schedule,
                          struct chaos_error *error) {
    struct chaos_schedule read = {0};
    struct chaos_error why;
    char *lines = chaos_copy(text), *rest = lines;
    bool worked = true;
    for (size_t number = 1; worked && rest != NULL; number++) {
        worked = parse_line(strsep(&rest, "\n"), nodes, clients, &read, &why) ||
                 chaos_fail(error, "line %zu: %s", number, why.text);
    }
    free(lines);
    if (worked) {
        *schedule = read;
    } else {
        chaos_schedule_clear(&read);
    }
    return worked;
}

char *chaos_schedule_format(const struct chaos_schedule *schedule, size_t nodes, size_t clients) {
    char *text = chaos_allocate(schedule->count * (CHAOS_FAULT_LINE_MAX + 1) + 1, 1), *at = text;
    for (size_t i = 0; i < schedule->count; i++) {
        chaos_fault_format(&schedule->faults[i], nodes, clients, true, at, CHAOS_FAULT_LINE_MAX);
        at += strlen(at);
        *at++ = '\n';
    }
    *at = '\0';
    return text;
}

/* Of all clients at one moment. One that is told something new has the old until it has ended. */
struct setups {
    struct chaos_setup now[CHAOS_CLIENTS_MAX];
    size_t count;
};

static bool all_meet(const struct setups *setups, const struct chaos_setup *other) {
    for (size_t c = 0; c < setups->count; c++) {
        if (!chaos_setups_meet(&setups->now[c], other)) {
            return false;
        }
    }
    return true;
}

/* Whether two clients may run beside each other whose quorums need not share a node. What is told
 * at the begin is told before any client runs. */
static bool parts_clients(const struct chaos_schedule *schedule) {
    struct setups setups = {.count = 0};
    bool meet = true;
    CHAOS_EACH(const struct chaos_fault, fault, schedule->faults, schedule->count) {
        if (fault->kind != CHAOS_FAULT_CONFIGURE) {
            continue;
        }
        struct chaos_setup told = chaos_setup_of(fault);
        meet = meet && (fault->at_ms == 0 || all_meet(&setups, &told));
        for (size_t c = 0; c < CHAOS_CLIENTS_MAX; c++) {
            if (chaos_hits_client(fault, c)) {
                setups.now[c] = told;
                setups.count = setups.count > c ? setups.count : c + 1;
            }
        }
        meet = meet && (fault->at_ms > 0 || all_meet(&setups, &told));
    }
    return !meet;
}

bool chaos_schedule_breaks(const struct chaos_schedule *schedule, bool append_only) {
    CHAOS_EACH(const struct chaos_fault, fault, schedule->faults, schedule->count) {
        if (chaos_fault_breaks(fault, !append_only)) {
            return true;
        }
    }
    return parts_clients(schedule);
}

/* From a seed: spells of one to three faults with quiet between them. */

enum { SPELL_FAULTS_MAX = 3, LASTS_MIN_MS = 300, LASTS_MAX_MS = 5000, QUIET_MIN_MS = 200, QUIET_MAX_MS = 3000 };

/* A spell: its faults begin and end within it, so that those of two spells never meet. */
struct spell {
    int64_t from_ms, to_ms;
    /* the nodes that a fault of a minority prefers in it: so it stays a minority, as a rule */
    uint32_t weak;
    /* nodes that are dead, paused, or are to be asked for something: each has one of these */
    uint32_t taken;
    uint64_t taken_clients;
};

struct draw {
    const struct chaos_schedule_shape *shape;
    uint64_t state;
    /* Kinds that are to come before one comes again, in a random order; from the end. */
    enum chaos_fault_kind bag[CHAOS_FAULT_KINDS];
    size_t bag_count;
    bool first_bag; /* what is in it has not come yet at all */
    uint32_t kinds;
};

/* From min to max. The bias of the remainder is too small to matter: ranges are far below 2^32. */
static int64_t between(struct draw *draw, int64_t min, int64_t max) {
    return max <= min ? min : min + (int64_t)(tool_random(&draw->state) % (uint64_t)(max - min + 1));
}

static bool one_in(struct draw *draw, int64_t n) {
    return between(draw, 1, n) == 1;
}

/* So many of the set, or all if it has fewer. */
static uint64_t pick(struct draw *draw, uint64_t set, size_t count) {
    while (chaos_count_bits(set) > count) {
        uint64_t bit = UINT64_C(1) << between(draw, 0, 63);
        set &= ~bit;
    }
    return set;
}

/* As many as can be missing, at least one. */
static size_t minority(const struct draw *draw) {
    size_t most = (draw->shape->nodes - 1) / 2;
    return most > 0 ? most : 1;
}

/* Faults that need the node's process to obey, or that take it away, do not share a node. */
static bool takes_node(enum chaos_fault_kind kind) {
    const struct chaos_fault_about *about = chaos_fault_about(kind);
    return about->target == CHAOS_TARGET_NODES && kind != CHAOS_FAULT_CLOCK_JUMP;
}

static uint32_t draw_nodes(struct draw *draw, const struct spell *spell, enum chaos_fault_kind kind) {
    uint32_t free_nodes = (uint32_t)chaos_all(draw->shape->nodes) & ~(takes_node(kind) ? spell->taken : 0);
    size_t quorum = draw->shape->nodes / 2 + 1;
    bool many = one_in(draw, 4);
    if (many && chaos_count_bits(free_nodes) >= quorum) {
        return (uint32_t)pick(draw, free_nodes, (size_t)between(draw, (int64_t)quorum, (int64_t)draw->shape->nodes));
    }
    uint32_t preferred = free_nodes & spell->weak;
    return (uint32_t)pick(draw, preferred != 0 ? preferred : free_nodes,
                          (size_t)between(draw, 1, (int64_t)minority(draw)));
}

static uint64_t draw_clients(struct draw *draw, const struct spell *spell, enum chaos_fault_kind kind) {
    int64_t clients = (int64_t)draw->shape->clients;
    uint64_t all = chaos_all(draw->shape->clients);
    if (chaos_fault_about(kind)->target == CHAOS_TARGET_LINKS) {
        return one_in(draw, 2) ? all : pick(draw, all, (size_t)between(draw, 1, clients));
    }
    /* At most a third are hit, also by two faults at a time. */
    int64_t room = (clients < 3 ? 1 : clients / 3) - (int64_t)chaos_count_bits(spell->taken_clients);
    return room <= 0 ? 0 : pick(draw, all & ~spell->taken_clients, (size_t)between(draw, 1, room));
}

static int64_t draw_amount(struct draw *draw, enum chaos_fault_kind kind, int64_t most_ms) {
    int64_t sign = one_in(draw, 2) ? -1 : 1;
    switch (kind) {
    case CHAOS_FAULT_SLOW:
    case CHAOS_FAULT_BUSY:
        return between(draw, 50, most_ms < 1000 ? most_ms : 1000);
    case CHAOS_FAULT_DELAY:
        return between(draw, 1, 80);
    case CHAOS_FAULT_JITTER:
        return between(draw, 1, 30);
    case CHAOS_FAULT_BANDWIDTH:
        return between(draw, 1, 10) * (one_in(draw, 2) ? 1000 : 10000);
    case CHAOS_FAULT_CLOCK_SKEW:
        return sign * between(draw, 1, 200) * 1000;
    case CHAOS_FAULT_CLOCK_JUMP:
        return sign * between(draw, 1, 100) * 100;
    default:
        return 0;
    }
}

/* False if no node or client is free for it in this spell. */
static bool draw_fault(struct draw *draw, struct spell *spell, enum chaos_fault_kind kind, struct chaos_fault *fault) {
    const struct chaos_fault_about *about = chaos_fault_about(kind);
    int64_t length_ms = spell->to_ms - spell->from_ms;
    *fault = (struct chaos_fault){.kind = kind};
    if (about->target != CHAOS_TARGET_CLIENTS) {
        fault->nodes = draw_nodes(draw, spell, kind);
    }
    if (about->target != CHAOS_TARGET_NODES) {
        fault->clients = draw_clients(draw, spell, kind);
    }
    if (!chaos_fault_hits_somebody(fault)) {
        return false;
    }
    fault->amount = draw_amount(draw, kind, length_ms);
    fault->for_ms = about->lasts ? between(draw, LASTS_MIN_MS, length_ms) : 0;
    fault->at_ms = between(draw, spell->from_ms, spell->to_ms - chaos_fault_length_ms(fault));
    spell->taken |= takes_node(kind) ? fault->nodes : 0;
    spell->taken_clients |= about->target == CHAOS_TARGET_CLIENTS ? fault->clients : 0;
    return true;
}

static void fill_bag(struct draw *draw) {
    for (int kind = 0; kind < CHAOS_FAULT_KINDS; kind++) {
        if ((draw->kinds >> kind & 1) == 0) {
            continue;
        }
        size_t place = (size_t)between(draw, 0, (int64_t)draw->bag_count);
        draw->bag[draw->bag_count++] = draw->bag[place];
        draw->bag[place] = (enum chaos_fault_kind)kind;
    }
}

/* The faults of one spell; those that find no place stay in the bag. */
static void draw_spell(struct draw *draw, struct spell *spell, int64_t count, struct chaos_schedule *schedule) {
    for (size_t i = draw->bag_count; i-- > 0 && count > 0;) {
        struct chaos_fault fault;
        if (!draw_fault(draw, spell, draw->bag[i], &fault)) {
            continue;
        }
        chaos_schedule_add(schedule, &fault);
        memmove(&draw->bag[i], &draw->bag[i + 1], (draw->bag_count - i - 1) * sizeof draw->bag[0]);
        draw->bag_count--;
        count--;
    }
}

/* How many spells what has not come yet may need: with few nodes, each takes a spell of its own. */
static int64_t spells_needed(const struct draw *draw) {
    int64_t left = draw->first_bag ? (int64_t)draw->bag_count : 0;
    return draw->shape->nodes < 3 || draw->shape->clients < 3 ? left : (left + 2) / 2;
}

void chaos_schedule_random(uint64_t seed, const struct chaos_schedule_shape *shape, struct chaos_schedule *schedule) {
    struct draw draw = {.shape = shape, .state = seed, .first_bag = true, .kinds = shape->kinds};
    const uint32_t breaking = chaos_fault_kinds(true) & ~chaos_fault_kinds(false);
    if (!shape->append_only && (draw.kinds & breaking) == 0) {
        draw.kinds &= ~(UINT32_C(1) << CHAOS_FAULT_KILL);
    }
    *schedule = (struct chaos_schedule){0};
    draw.kinds &= ((UINT32_C(1) << CHAOS_FAULT_KINDS) - 1) & ~(UINT32_C(1) << CHAOS_FAULT_CONFIGURE);
    fill_bag(&draw);
    const int64_t end_ms = shape->duration_ms * 9 / 10;
    int64_t now_ms = shape->duration_ms < 20000 ? shape->duration_ms / 20 : 1000;
    while (draw.kinds != 0 && end_ms - now_ms >= LASTS_MIN_MS) {
        int64_t spells = spells_needed(&draw), share_ms = (end_ms - now_ms) / (spells > 0 ? spells : 1);
        int64_t longest_ms = chaos_most(LASTS_MIN_MS, chaos_least(share_ms - QUIET_MIN_MS, LASTS_MAX_MS));
        struct spell spell = {.from_ms = now_ms, .to_ms = now_ms + between(&draw, LASTS_MIN_MS, longest_ms)};
        spell.weak = (uint32_t)pick(&draw, chaos_all(shape->nodes), minority(&draw));
        draw_spell(&draw, &spell, between(&draw, spells > 0 ? 2 : 1, SPELL_FAULTS_MAX), schedule);
        int64_t quiet_ms = chaos_least(share_ms - (spell.to_ms - spell.from_ms), QUIET_MAX_MS);
        /* Short ones as a rule: much shall happen. */
        now_ms = spell.to_ms + between(&draw, QUIET_MIN_MS, one_in(&draw, 3) ? quiet_ms : quiet_ms / 4);
        if (draw.bag_count == 0) {
            fill_bag(&draw);
            draw.first_bag = false;
        }
    }
}
