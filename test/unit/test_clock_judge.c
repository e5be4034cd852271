/* How a node's clock is judged: a clock within the bounds is never a jump, and one that leaves them
 * always is. */

#include "core/clock.h"
#include "core/time.h"
#include "test.h"

#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)
#define US INT64_C(1000)

#define EPOCH_US INT64_C(1795167037000000)

/* A reading with a round trip of 2 ms around at_ns, of a clock that is ahead by offset_ns (whole
 * microseconds). */
static struct redlock_clock_sample sample_at(int64_t at_ns, int64_t offset_ns) {
    return (struct redlock_clock_sample){
        .sent_ns = at_ns - MS, .read_ns = at_ns + MS, .server_us = EPOCH_US + (at_ns + offset_ns) / US};
}

/* The error of a reading of 2 ms: half of it, 1 % of that, and the fraction that TIME cuts off. */
#define ERROR_NS (MS + MS / 100 + 1 + US)

static enum redlock_clock_verdict judge(struct redlock_clock *clock, int64_t at_ns, int64_t offset_ns,
                                        int64_t *step_ns) {
    const struct redlock_clock_sample sample = sample_at(at_ns, offset_ns);
    return redlock_clock_judge(clock, &sample, step_ns);
}

TEST(the_first_reading_is_the_reference) {
    struct redlock_clock clock = {0};
    int64_t step_ns = 7;
    assert_is(judge(&clock, 10 * S, 0, &step_ns), REDLOCK_CLOCK_STEADY);
    assert_int_equal(step_ns, 0);
    assert_true(clock.known);
    assert_int_equal(clock.offset_ns, EPOCH_US * US);
    assert_int_equal(clock.error_ns, ERROR_NS);
    assert_int_equal(clock.at_ns, 10 * S);
}

TEST(a_step_is_more_than_errors_rate_and_a_millisecond) {
    /* 1 s later: 1 % is 10 ms. Offsets are in whole microseconds here. */
    const int64_t bound_ns = 2 * ERROR_NS + 10 * MS + REDLOCK_CLOCK_STEP_MIN_NS;
    const int64_t within_ns = bound_ns / US * US;
    for (int sign = -1; sign <= 1; sign += 2) {
        struct redlock_clock clock = {0};
        int64_t step_ns = 7;
        judge(&clock, 10 * S, 0, NULL);
        assert_is(judge(&clock, 11 * S, sign * within_ns, &step_ns), REDLOCK_CLOCK_STEADY);
        assert_int_equal(step_ns, 0);
        clock = (struct redlock_clock){0};
        judge(&clock, 10 * S, 0, NULL);
        assert_int_equal(judge(&clock, 11 * S, sign * (within_ns + US), &step_ns),
                         sign > 0 ? REDLOCK_CLOCK_FORWARD : REDLOCK_CLOCK_BACKWARD);
        assert_int_equal(step_ns, sign * (within_ns + US));
        assert_int_equal(clock.offset_ns, EPOCH_US * US + step_ns); /* the state begins anew */
        assert_int_equal(clock.error_ns, ERROR_NS);
        assert_int_equal(clock.at_ns, 11 * S);
        assert_is(judge(&clock, 12 * S, step_ns, NULL), REDLOCK_CLOCK_STEADY);
        clock = (struct redlock_clock){0};
        judge(&clock, 10 * S, 0, NULL);
        assert_int_equal(judge(&clock, 11 * S, sign * 120 * S, NULL),
                         sign > 0 ? REDLOCK_CLOCK_FORWARD : REDLOCK_CLOCK_BACKWARD);
    }
}

/* Readings without a round trip, 988 ns apart. The bound is then whole microseconds, like the
 * clocks. */
TEST(a_move_up_to_the_bound_is_no_step) {
    const struct redlock_clock_sample first = {.sent_ns = S, .read_ns = S, .server_us = EPOCH_US};
    const int64_t bound_ns = (1 + US + 10) + (1 + US) + REDLOCK_CLOCK_STEP_MIN_NS;
    const int64_t bound_us = (bound_ns + 988) / US;
    assert_int_equal(bound_us * US, bound_ns + 988);
    for (int more_us = 0; more_us <= 1; more_us++) {
        const struct redlock_clock_sample second = {
            .sent_ns = S + 988, .read_ns = S + 988, .server_us = EPOCH_US + bound_us + more_us};
        struct redlock_clock clock = {0};
        assert_is(redlock_clock_judge(&clock, &first, NULL), REDLOCK_CLOCK_STEADY);
        assert_int_equal(redlock_clock_judge(&clock, &second, NULL),
                         more_us == 0 ? REDLOCK_CLOCK_STEADY : REDLOCK_CLOCK_FORWARD);
    }
}

TEST(a_reading_without_a_time_says_nothing) {
    static const int64_t wrong_us[] = {0, -1, INT64_MIN, INT64_MAX, INT64_C(9000000000000001)};
    struct redlock_clock clock = {0};
    for (size_t i = 0; i < sizeof wrong_us / sizeof wrong_us[0]; i++) {
        const struct redlock_clock_sample sample = {.sent_ns = S, .read_ns = S, .server_us = wrong_us[i]};
        int64_t step_ns = 7;
        assert_false(redlock_clock_has_time(&sample));
        assert_is(redlock_clock_judge(&clock, &sample, &step_ns), REDLOCK_CLOCK_STEADY);
        assert_int_equal(step_ns, 0);
        assert_false(clock.known);
    }
    const struct redlock_clock_sample last = {.server_us = INT64_C(9000000000000000)};
    assert_true(redlock_clock_has_time(&last));
    judge(&clock, 10 * S, 0, NULL);
    const struct redlock_clock before = clock;
    for (size_t i = 0; i < sizeof wrong_us / sizeof wrong_us[0]; i++) {
        const struct redlock_clock_sample sample = {.sent_ns = 20 * S, .read_ns = 20 * S, .server_us = wrong_us[i]};
        assert_is(redlock_clock_judge(&clock, &sample, NULL), REDLOCK_CLOCK_STEADY);
        assert_memory_equal(&clock, &before, sizeof clock);
    }
}

TEST(the_most_exact_reading_stays_the_reference) {
    struct redlock_clock clock = {0};
    const struct redlock_clock_sample wide = {.sent_ns = 10 * S, .read_ns = 11 * S, .server_us = EPOCH_US + 10900000};
    /* An error of half a second; the clock is off by 0.4 s. */
    redlock_clock_judge(&clock, &wide, NULL);
    assert_int_equal(clock.offset_ns, EPOCH_US * US + 400 * MS);
    assert_is(judge(&clock, 12 * S, 0, NULL), REDLOCK_CLOCK_STEADY);
    assert_int_equal(clock.offset_ns, EPOCH_US * US);
    assert_int_equal(clock.error_ns, ERROR_NS);
    const struct redlock_clock_sample again = {.sent_ns = 12 * S, .read_ns = 13 * S, .server_us = EPOCH_US + 12900000};
    assert_is(redlock_clock_judge(&clock, &again, NULL), REDLOCK_CLOCK_STEADY);
    assert_int_equal(clock.offset_ns, EPOCH_US * US);
    /* 1 % of the half second between the middles of the two. */
    assert_int_equal(clock.error_ns, ERROR_NS + 5 * MS);
    assert_int_equal(clock.at_ns, 12 * S + 500 * MS);
}

TEST(a_reading_sent_earlier_and_read_later_is_judged_by_its_middle) {
    struct redlock_clock clock = {0};
    judge(&clock, 20 * S, 0, NULL);
    assert_is(judge(&clock, 10 * S, 50 * MS, NULL), REDLOCK_CLOCK_STEADY);
    assert_int_equal(clock.at_ns, 20 * S);
    assert_is(judge(&clock, 10 * S, 110 * MS, NULL), REDLOCK_CLOCK_FORWARD);
}

/* From one reading to the next the clock moves by far less than their errors. */
TEST(a_clock_that_creeps_away_is_found) {
    for (int sign = -1; sign <= 1; sign += 2) {
        struct redlock_clock clock = {0};
        int64_t at_ns = 10 * S;
        enum redlock_clock_verdict verdict = REDLOCK_CLOCK_STEADY;
        for (; verdict == REDLOCK_CLOCK_STEADY && at_ns < 11 * S; at_ns += MS) {
            verdict = judge(&clock, at_ns, sign * (at_ns - 10 * S) / 10, NULL);
        }
        assert_int_equal(verdict, sign > 0 ? REDLOCK_CLOCK_FORWARD : REDLOCK_CLOCK_BACKWARD);
        /* 10 % of 60 ms is 6 ms: more than two errors and a millisecond. */
        assert_true(at_ns <= 10 * S + 60 * MS);
    }
}

TEST(nothing_overflows) {
    static const int64_t times[] = {0, 1, S, INT64_MAX / 2, INT64_MAX - 1, INT64_MAX};
    static const int64_t server_us[] = {1, EPOCH_US, INT64_C(9000000000000000)};
    enum { TIMES = 6, SAMPLES = TIMES * TIMES * 3 };
    struct redlock_clock_sample samples[SAMPLES];
    size_t count = 0;
    for (size_t i = 0; i < TIMES * TIMES; i++) {
        for (size_t k = 0; k < 3 && times[i / TIMES] <= times[i % TIMES]; k++) {
            samples[count++] = (struct redlock_clock_sample){times[i / TIMES], times[i % TIMES], server_us[k]};
        }
    }
    for (size_t i = 0; i < count * count * count; i++) {
        struct redlock_clock clock = {0};
        redlock_clock_judge(&clock, &samples[i % count], NULL);
        redlock_clock_judge(&clock, &samples[i / count % count], NULL);
        int64_t step_ns;
        const enum redlock_clock_verdict verdict =
            redlock_clock_judge(&clock, &samples[i / count / count % count], &step_ns);
        assert_true(clock.known && clock.error_ns >= 0);
        assert_true(verdict == REDLOCK_CLOCK_STEADY    ? step_ns == 0
                    : verdict == REDLOCK_CLOCK_FORWARD ? step_ns > 0
                                                       : step_ns < 0);
    }
    struct redlock_clock clock = {0};
    int64_t step_ns;
    redlock_clock_judge(&clock, &(struct redlock_clock_sample){INT64_MAX, INT64_MAX, 1}, NULL);
    assert_is(redlock_clock_judge(&clock, &(struct redlock_clock_sample){0, 0, server_us[2]}, &step_ns),
              REDLOCK_CLOCK_FORWARD);
    assert_int_equal(step_ns, INT64_MAX);
}

TEST(differences_end_at_the_limits) {
    assert_int_equal(redlock_clock_difference_ns(5, 7), -2);
    assert_int_equal(redlock_clock_difference_ns(5, -7), 12);
    assert_int_equal(redlock_clock_difference_ns(INT64_MAX, -1), INT64_MAX);
    assert_int_equal(redlock_clock_difference_ns(INT64_MAX - 1, -1), INT64_MAX);
    assert_int_equal(redlock_clock_difference_ns(-INT64_MAX, 1), -INT64_MAX);
    assert_int_equal(redlock_clock_difference_ns(INT64_MIN, 0), -INT64_MAX);
    assert_int_equal(redlock_clock_difference_ns(INT64_MIN, INT64_MAX), -INT64_MAX);
    assert_int_equal(redlock_clock_difference_ns(0, INT64_MIN), INT64_MAX);
    assert_int_equal(redlock_clock_difference_ns(-1, INT64_MIN), INT64_MAX);
    assert_int_equal(redlock_clock_difference_ns(-2, INT64_MIN), INT64_MAX - 1);
    assert_int_equal(redlock_clock_difference_ns(INT64_MIN, INT64_MIN), 0);
}

/* A node's true clock: its rate changes, within 1 % of ours, and it steps when the test says so. */
struct truth {
    uint32_t random;
    int64_t now_ns, wall_ns;
    int64_t trip_max_ns;
};

static int64_t draw(struct truth *truth, int64_t below) {
    const uint64_t high = redlock_jitter_next(&truth->random);
    return (int64_t)((high << 31 ^ redlock_jitter_next(&truth->random)) % (uint64_t)below);
}

static void pass(struct truth *truth, int64_t ns) {
    truth->now_ns += ns;
    truth->wall_ns += ns + ns * (draw(truth, 19999) - 9999) / 1000000;
}

/* The node reads its clock at any moment of the round trip. */
static struct redlock_clock_sample read_truth(struct truth *truth) {
    struct redlock_clock_sample sample = {.sent_ns = truth->now_ns};
    const int64_t trip_ns = draw(truth, 1 + draw(truth, truth->trip_max_ns));
    const int64_t there_ns = draw(truth, 4) == 0 ? 0 : draw(truth, 3) == 0 ? trip_ns : draw(truth, trip_ns + 1);
    pass(truth, there_ns);
    sample.server_us = truth->wall_ns / US;
    pass(truth, trip_ns - there_ns);
    sample.read_ns = truth->now_ns;
    return sample;
}

static struct truth truth_of(uint32_t seed) {
    static const int64_t trips_ns[] = {1, 100 * US, MS, 50 * MS, 2 * S};
    struct truth truth = {.random = seed, .now_ns = S, .wall_ns = EPOCH_US * US};
    truth.now_ns += draw(&truth, 1000 * S);
    truth.trip_max_ns = trips_ns[draw(&truth, 5)];
    return truth;
}

static void pause_some(struct truth *truth) {
    static const int64_t gaps_ns[] = {1, 50 * US, MS, 100 * MS, 10 * S, 3600 * S};
    pass(truth, draw(truth, gaps_ns[draw(truth, 6)]));
}

static int64_t error_of(const struct redlock_clock_sample *sample) {
    struct redlock_clock clock = {0};
    redlock_clock_judge(&clock, sample, NULL);
    return clock.error_ns;
}

TEST(a_clock_within_the_bounds_is_no_step_and_a_step_is_always_found) {
    for (uint32_t seed = 1; seed <= 20000; seed++) {
        struct truth truth = truth_of(seed);
        struct redlock_clock clock = {0};
        const bool slewed = seed % 2 == 0; /* once, by less than a step */
        for (int64_t left = 5 + draw(&truth, 40); left > 0; left--) {
            if (slewed && left == 5) {
                truth.wall_ns += draw(&truth, 2 * REDLOCK_CLOCK_STEP_MIN_NS + 1) - REDLOCK_CLOCK_STEP_MIN_NS;
            }
            const struct redlock_clock_sample sample = read_truth(&truth);
            assert_is(redlock_clock_judge(&clock, &sample, NULL), REDLOCK_CLOCK_STEADY);
            pause_some(&truth);
        }
        if (slewed) {
            continue;
        }
        const struct redlock_clock_sample sample = read_truth(&truth);
        const int64_t between_ns = sample.read_ns - clock.at_ns;
        const int64_t sure_ns =
            2 * (clock.error_ns + between_ns / 100 + error_of(&sample)) + REDLOCK_CLOCK_STEP_MIN_NS + 10 * US;
        const int64_t step_us = sure_ns / US + draw(&truth, sure_ns / US * 10);
        const int sign = draw(&truth, 2) == 0 ? 1 : -1;
        struct redlock_clock_sample stepped = sample;
        stepped.server_us += sign * step_us;
        int64_t told_ns;
        assert_int_equal(redlock_clock_judge(&clock, &stepped, &told_ns),
                         sign > 0 ? REDLOCK_CLOCK_FORWARD : REDLOCK_CLOCK_BACKWARD);
        const int64_t wrong_by_ns = told_ns - sign * step_us * US;
        assert_true(2 * wrong_by_ns < sure_ns && -2 * wrong_by_ns < sure_ns);
    }
}

/* The clock wanders at random. As long as no step is reported, no two readings are further apart
 * than the drift allowance of a lease. */
TEST(an_unnoticed_move_is_within_the_drift) {
    enum { READINGS = 60 };
    unsigned steady = 0;
    for (uint32_t seed = 1; seed <= 5000; seed++) {
        struct truth truth = truth_of(seed);
        struct redlock_clock clock = {0};
        struct redlock_clock readings[READINGS];
        unsigned count = 0;
        for (int i = 0; i < READINGS; i++) {
            truth.wall_ns += draw(&truth, 1 + draw(&truth, 3 * MS)) - (seed % 2 == 0 ? 1 : 0) * draw(&truth, 2 * MS);
            const struct redlock_clock_sample sample = read_truth(&truth);
            struct redlock_clock reading = {0};
            redlock_clock_judge(&reading, &sample, NULL);
            if (redlock_clock_judge(&clock, &sample, NULL) != REDLOCK_CLOCK_STEADY) {
                count = 0;
            }
            for (unsigned k = 0; k < count; k++) {
                const int64_t moved_ns = reading.offset_ns - readings[k].offset_ns;
                const int64_t may_ns = reading.error_ns + readings[k].error_ns +
                                       (reading.at_ns - readings[k].at_ns) / 100 + 2 * MS + READINGS;
                assert_true(moved_ns <= may_ns && -moved_ns <= may_ns);
                steady++;
            }
            readings[count++] = reading;
            pause_some(&truth);
        }
    }
    assert_true(steady > 100000);
}
