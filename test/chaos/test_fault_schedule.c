/* Faults over time: the rules of random faults for many seeds and shapes, and the text. */
#include <inttypes.h>

#include "faults/schedule.h"
#include "short_memory.h"
#include "test.h"

static int64_t end_ms_of(const struct chaos_fault *fault) {
    return fault->at_ms + chaos_fault_length_ms(fault);
}

/* CONFIGURE never comes at random. */
enum { SEEDS = 300, ALL_KINDS = ((1 << CHAOS_FAULT_KINDS) - 1) & ~(1 << CHAOS_FAULT_CONFIGURE) };

static uint32_t kinds_of(const char *list) {
    uint32_t kinds = 0;
    struct chaos_error error;
    assert_true(chaos_fault_kinds_parse(list, &kinds, &error));
    return kinds;
}

static struct chaos_schedule draw(uint64_t seed, const struct chaos_schedule_shape *shape) {
    struct chaos_schedule schedule;
    memset(&schedule, 0x55, sizeof schedule);
    chaos_schedule_random(seed, shape, &schedule);
    return schedule;
}

static size_t count_bits(uint64_t set) {
    return (size_t)__builtin_popcountll(set);
}

/* Both faults are on at some moment. A fault that ends when the other begins does not meet it. */
static bool meet(const struct chaos_fault *a, const struct chaos_fault *b) {
    return a->at_ms <= end_ms_of(b) && b->at_ms <= end_ms_of(a);
}

static bool takes_away(enum chaos_fault_kind kind) {
    return kind == CHAOS_FAULT_KILL || kind == CHAOS_FAULT_RESTART_EMPTY || kind == CHAOS_FAULT_PAUSE;
}

static void check_amount(const struct chaos_fault *fault) {
    int64_t amount = fault->amount, size = amount < 0 ? -amount : amount;
    switch (fault->kind) {
    case CHAOS_FAULT_SLOW:
    case CHAOS_FAULT_BUSY:
        assert_in_range(amount, 50, 1000);
        break;
    case CHAOS_FAULT_DELAY:
        assert_in_range(amount, 1, 80);
        break;
    case CHAOS_FAULT_JITTER:
        assert_in_range(amount, 1, 30);
        break;
    case CHAOS_FAULT_BANDWIDTH:
        assert_in_range(amount, 1000, 100000);
        break;
    case CHAOS_FAULT_CLOCK_SKEW:
        assert_in_range(size, 1000, 200000);
        break;
    case CHAOS_FAULT_CLOCK_JUMP:
        assert_in_range(size, 100, 10000);
        break;
    default:
        assert_int_equal(amount, 0);
    }
}

static void check_fault(const struct chaos_fault *fault, const struct chaos_schedule_shape *shape) {
    const struct chaos_fault_about *about = chaos_fault_about(fault->kind);
    assert_true((shape->kinds >> fault->kind & 1) != 0);
    assert_true(fault->at_ms >= 0);
    assert_true(end_ms_of(fault) <= shape->duration_ms * 9 / 10);
    assert_true(about->target == CHAOS_TARGET_CLIENTS ? fault->nodes == 0 : fault->nodes != 0);
    assert_true(about->target == CHAOS_TARGET_NODES ? fault->clients == 0 : fault->clients != 0);
    assert_true((fault->nodes & ~((UINT64_C(1) << shape->nodes) - 1)) == 0);
    assert_true(shape->clients == 64 || fault->clients >> shape->clients == 0);
    if (about->lasts) {
        assert_in_range(fault->for_ms, 300, 5000);
    } else {
        assert_int_equal(fault->for_ms, 0);
    }
    check_amount(fault);
}

static void check_pair(const struct chaos_fault *a, const struct chaos_fault *b) {
    const struct chaos_fault_about *one = chaos_fault_about(a->kind), *other = chaos_fault_about(b->kind);
    bool share = (a->nodes & b->nodes) != 0 || (a->clients & b->clients) != 0;
    if (!meet(a, b) || one->target != other->target || !share) {
        return;
    }
    assert_false(one->exclusive && other->exclusive);
    /* A dead or paused node cannot take another fault. */
    bool of_process =
        one->target == CHAOS_TARGET_NODES && a->kind != CHAOS_FAULT_CLOCK_JUMP && b->kind != CHAOS_FAULT_CLOCK_JUMP;
    assert_false(of_process && (takes_away(a->kind) || takes_away(b->kind)));
}

static void check_moment(const struct chaos_schedule *schedule, size_t i, const struct chaos_schedule_shape *shape) {
    size_t on = 0;
    uint64_t clients = 0;
    int64_t now_ms = schedule->faults[i].at_ms;
    for (size_t j = 0; j < schedule->count; j++) {
        const struct chaos_fault *fault = &schedule->faults[j];
        if (fault->at_ms <= now_ms && now_ms <= end_ms_of(fault)) {
            on++;
            clients |= chaos_fault_about(fault->kind)->target == CHAOS_TARGET_CLIENTS ? fault->clients : 0;
        }
    }
    assert_in_range(on, 1, 3);
    assert_in_range(count_bits(clients), 0, shape->clients < 3 ? 1 : shape->clients / 3);
}

/* When the last fault has ended. */
static int64_t last_end_ms(const struct chaos_schedule *schedule) {
    int64_t end_ms = 0;
    for (size_t i = 0; i < schedule->count; i++) {
        int64_t fault_end_ms = end_ms_of(&schedule->faults[i]);
        end_ms = fault_end_ms > end_ms ? fault_end_ms : end_ms;
    }
    return end_ms;
}

static void check_schedule(const struct chaos_schedule *schedule, const struct chaos_schedule_shape *shape) {
    for (size_t i = 0; i < schedule->count; i++) {
        check_fault(&schedule->faults[i], shape);
        check_moment(schedule, i, shape);
        assert_true(i == 0 || schedule->faults[i - 1].at_ms <= schedule->faults[i].at_ms);
        for (size_t j = 0; j < i; j++) {
            check_pair(&schedule->faults[j], &schedule->faults[i]);
        }
    }
    assert_true(last_end_ms(schedule) <= shape->duration_ms * 9 / 10);
}

static const struct chaos_schedule_shape shapes[] = {
    {5, 20, 60000, ALL_KINDS, true},  {5, 20, 10000, ALL_KINDS, true}, {3, 3, 15000, ALL_KINDS, true},
    {1, 1, 60000, ALL_KINDS, true},   {2, 2, 60000, ALL_KINDS, true},  {4, 5, 30000, ALL_KINDS, true},
    {31, 64, 60000, ALL_KINDS, true}, {7, 1, 60000, ALL_KINDS, true},  {1, 64, 60000, ALL_KINDS, false},
    {5, 20, 120000, ALL_KINDS, true},
};

TEST(random_ones_keep_to_the_rules) {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct chaos_schedule schedule = draw(seed, &shapes[s]);
            check_schedule(&schedule, &shapes[s]);
            uint32_t seen = 0;
            for (size_t i = 0; i < schedule.count; i++) {
                seen |= UINT32_C(1) << schedule.faults[i].kind;
            }
            if (seen != ALL_KINDS) {
                fail_msg("shape %zu, seed %" PRIu64 ": kinds %x of %x", s, seed, (unsigned)seen, (unsigned)ALL_KINDS);
            }
            chaos_schedule_clear(&schedule);
        }
    }
}

TEST(any_length_will_do) {
    for (int64_t duration_ms = 0; duration_ms < 8000; duration_ms += 37) {
        struct chaos_schedule_shape shape = {5, 20, duration_ms, kinds_of("safe"), true};
        for (uint64_t seed = 0; seed < 10; seed++) {
            struct chaos_schedule schedule = draw(seed, &shape);
            check_schedule(&schedule, &shape);
            assert_true(schedule.count > 0 || duration_ms < 400);
            chaos_schedule_clear(&schedule);
        }
    }
}

TEST(each_kind_alone) {
    for (int kind = 0; kind < CHAOS_FAULT_KINDS; kind++) {
        struct chaos_schedule_shape shape = {5, 20, 60000, UINT32_C(1) << kind, true};
        if (kind == CHAOS_FAULT_CONFIGURE) { /* never at random */
            struct chaos_schedule schedule = draw(1, &shape);
            assert_int_equal(schedule.count, 0);
            continue;
        }
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct chaos_schedule schedule = draw(seed, &shape);
            check_schedule(&schedule, &shape);
            assert_true(schedule.count >= 8);
            chaos_schedule_clear(&schedule);
        }
    }
}

/* Most faults hit a minority, about a quarter a majority. There are many faults, and there is quiet
 * time. */
TEST(shares) {
    struct chaos_schedule_shape shape = {5, 20, 60000, kinds_of("safe"), true};
    size_t faults = 0, majority = 0, on_nodes = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct chaos_schedule schedule = draw(seed, &shape);
        int64_t quiet_ms = 0, end_ms = 0;
        for (size_t i = 0; i < schedule.count; i++) {
            const struct chaos_fault *fault = &schedule.faults[i];
            on_nodes += fault->nodes != 0;
            majority += count_bits(fault->nodes) >= 3;
            quiet_ms += fault->at_ms > end_ms ? fault->at_ms - end_ms : 0;
            end_ms = end_ms_of(fault) > end_ms ? end_ms_of(fault) : end_ms;
        }
        faults += schedule.count;
        assert_in_range(quiet_ms, 3000, 45000);
        assert_true(end_ms > 40000);
        chaos_schedule_clear(&schedule);
    }
    assert_in_range(faults / SEEDS, 20, 60);
    assert_in_range(majority * 100 / on_nodes, 15, 35);
}

static char *text_of(uint64_t seed, const struct chaos_schedule_shape *shape) {
    struct chaos_schedule schedule = draw(seed, shape);
    char *text = chaos_schedule_format(&schedule, shape->nodes, shape->clients);
    assert_non_null(text);
    chaos_schedule_clear(&schedule);
    return text;
}

TEST(a_seed_is_one_schedule) {
    struct chaos_schedule_shape shape = {5, 20, 10000, kinds_of("kill,pause,partition,delay"), true};
    char *first = text_of(7, &shape), *again = text_of(7, &shape), *other = text_of(8, &shape);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    /* On every machine: the start of seed 7 when this was written. */
    static const char expected[] = "at=521ms for=731ms fault=delay nodes=4 clients=1-8,10-20 amount=12ms\n"
                                   "at=646ms for=636ms fault=kill nodes=5\n"
                                   "at=1811ms for=1027ms fault=partition nodes=2-5 clients=2,6,7,10,11,14,18\n";
    assert_memory_equal(first, expected, sizeof expected - 1);
    free(first);
    free(again);
    free(other);
}

TEST(kill_needs_an_aof) {
    struct chaos_schedule_shape shape = {5, 20, 60000, kinds_of("kill,pause"), false};
    struct chaos_schedule schedule = draw(1, &shape);
    assert_true(schedule.count > 0);
    for (size_t i = 0; i < schedule.count; i++) {
        assert_int_equal(schedule.faults[i].kind, CHAOS_FAULT_PAUSE);
    }
    assert_false(chaos_schedule_breaks(&schedule, false));
    chaos_schedule_clear(&schedule);
    shape.kinds = kinds_of("kill");
    schedule = draw(1, &shape);
    assert_int_equal(schedule.count, 0);
    chaos_schedule_clear(&schedule);
    shape.kinds = kinds_of("kill,flushall");
    schedule = draw(1, &shape);
    bool killed = false;
    for (size_t i = 0; i < schedule.count; i++) {
        killed |= schedule.faults[i].kind == CHAOS_FAULT_KILL;
    }
    assert_true(killed);
    chaos_schedule_clear(&schedule);
    shape.kinds = 0;
    schedule = draw(1, &shape);
    assert_int_equal(schedule.count, 0);
    char *text = chaos_schedule_format(&schedule, 5, 20);
    assert_string_equal(text, "");
    free(text);
}

static void parse_ok(const char *text, struct chaos_schedule *schedule) {
    struct chaos_error error = {""};
    if (!chaos_schedule_parse(text, 5, 20, schedule, &error)) {
        fail_msg("%s", error.text);
    }
}

TEST(text_is_read) {
    struct chaos_schedule schedule;
    parse_ok("# a comment\r\n\n   \t\n  at=3s fault=cut nodes=1\nat=1s for=5s fault=pause\n\t# more\nat=3s fault=cut "
             "nodes=2\n"
             "fault=slow amount=7s nodes=4",
             &schedule);
    assert_int_equal(schedule.count, 4);
    assert_int_equal(schedule.faults[0].kind, CHAOS_FAULT_SLOW);
    assert_int_equal(schedule.faults[1].kind, CHAOS_FAULT_PAUSE);
    assert_int_equal(schedule.faults[2].nodes, 1); /* faults at the same time keep their order */
    assert_int_equal(schedule.faults[3].nodes, 2);
    assert_int_equal(last_end_ms(&schedule), 7000);
    chaos_schedule_clear(&schedule);
    assert_null(schedule.faults);
    parse_ok("", &schedule);
    assert_int_equal(schedule.count, 0);
    assert_int_equal(last_end_ms(&schedule), 0);
    chaos_schedule_clear(&schedule);
}

static void refuse(const char *text, const char *sentence) {
    struct chaos_schedule schedule = {0};
    struct chaos_error error = {""};
    assert_false(chaos_schedule_parse(text, 5, 20, &schedule, &error));
    assert_contains(error.text, sentence);
    assert_null(schedule.faults);
}

TEST(text_is_refused) {
    refuse("\n# x\nfault=pauze for=1s\n", "line 3: unknown fault 'pauze'; there are: ");
    refuse("fault=cut\r\nat=1s for=2s", "line 2: fault= is missing");
    refuse("fault=cut # really", "line 1: cannot understand '#'");
    char *text = malloc(2000000);
    assert_non_null(text);
    memset(text, 'x', 1000);
    text[1000] = '\0';
    refuse(text, "line 1: a fault's line of 1000 bytes is too long");
    text[0] = '\0';
    char *at = text;
    for (int i = 0; i < 10001; i++) {
        at = stpcpy(at, "fault=cut\n");
    }
    refuse(text, "line 10001: more than 10000 faults");
    memset(text, ' ', 1000);
    text[1000] = '\0';
    struct chaos_schedule schedule;
    parse_ok(text, &schedule); /* a blank line may be long */
    assert_int_equal(schedule.count, 0);
    chaos_schedule_clear(&schedule);
    free(text);
}

TEST(text_is_read_back) {
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            struct chaos_error error = {""};
            char *text = text_of(seed, &shapes[s]);
            struct chaos_schedule again;
            assert_true(chaos_schedule_parse(text, shapes[s].nodes, shapes[s].clients, &again, &error));
            char *twice = chaos_schedule_format(&again, shapes[s].nodes, shapes[s].clients);
            assert_string_equal(text, twice);
            free(text);
            free(twice);
            chaos_schedule_clear(&again);
        }
    }
}

TEST(what_breaks) {
    struct chaos_schedule schedule;
    parse_ok("fault=cut\nfor=1s fault=kill nodes=1", &schedule);
    assert_false(chaos_schedule_breaks(&schedule, true));
    assert_true(chaos_schedule_breaks(&schedule, false));
    chaos_schedule_clear(&schedule);
    parse_ok("fault=cut\nfault=clock-jump amount=1s", &schedule);
    assert_true(chaos_schedule_breaks(&schedule, true));
    chaos_schedule_clear(&schedule);
}

static enum short_end draw_once(void *what) {
    struct chaos_schedule schedule;
    chaos_schedule_random(1, what, &schedule);
    return SHORT_ENOUGH;
}

static enum short_end parse_once(void *what) {
    struct chaos_schedule schedule;
    struct chaos_error error;
    return chaos_schedule_parse(what, 5, 20, &schedule, &error) ? SHORT_ENOUGH : SHORT_TOLD;
}

static enum short_end format_once(void *what) {
    return chaos_schedule_format(what, 5, 20) != NULL ? SHORT_ENOUGH : SHORT_TOLD;
}

/* How many allocations the work makes; each ends it where it fails. */
static long ends_of(enum short_end (*work)(void *what), void *what) {
    long at = 1;
    for (enum short_end end; (end = short_run(at, work, what)) != SHORT_ENOUGH; at++) {
        assert_int_equal(end, SHORT_ENDED);
    }
    return at - 1;
}

TEST(memory_runs_out) {
    struct chaos_schedule_shape shape = {5, 20, 60000, ALL_KINDS, true};
    struct chaos_schedule schedule = draw(1, &shape);
    char *text = text_of(1, &shape);
    assert_true(ends_of(draw_once, &shape) > 3);
    assert_true(ends_of(parse_once, text) > 3);
    assert_int_equal(ends_of(format_once, &schedule), 1);
    chaos_schedule_clear(&schedule);
    free(text);
}
