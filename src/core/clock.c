/* What we know of a node's wall clock: an interval that each reading narrows and time widens. */
#include "core/clock.h"

#include <assert.h>

#include "core/time.h"

#define NS_PER_US     1000
#define SERVER_US_MAX INT64_C(9000000000000000) /* the year 2255; in nanoseconds it still fits */
#define ERROR_NS_MAX  INT64_C(100000000000000000)

/* The node read its clock at some moment of the round trip. TIME cuts it to a microsecond. The
 * rates of the two clocks differ by REDLOCK_CLOCK_RATE_PERCENT at most. */
static struct redlock_clock read_clock(const struct redlock_clock_sample *sample) {
    assert(sample->sent_ns >= 0 && sample->read_ns >= sample->sent_ns);
    const int64_t trip_ns = sample->read_ns - sample->sent_ns;
    const int64_t half_ns = trip_ns - trip_ns / 2;
    const int64_t error_ns = half_ns + half_ns / 100 * REDLOCK_CLOCK_RATE_PERCENT + 1 + NS_PER_US;
    const int64_t at_ns = sample->sent_ns + trip_ns / 2;
    return (struct redlock_clock){.offset_ns = sample->server_us * NS_PER_US - at_ns,
                                  .error_ns = redlock_min_ns(error_ns, ERROR_NS_MAX),
                                  .at_ns = at_ns,
                                  .known = true};
}

/* How far the clock may be from our estimate at a later time. */
static int64_t error_at(const struct redlock_clock *clock, int64_t at_ns) {
    assert(at_ns >= clock->at_ns);
    const int64_t since_ns = at_ns - clock->at_ns;
    return clock->error_ns + (since_ns / 100 + (since_ns % 100 != 0)) * REDLOCK_CLOCK_RATE_PERCENT;
}

/*
 * Narrows the estimate to where the two intervals overlap. If they just miss each other, the
 * estimate becomes the end of ours that is nearer to the reading. So a clock cannot creep away by
 * many moves that are each smaller than a step. move_ns is from the middle of ours to the middle of
 * the reading.
 */
static void narrow(struct redlock_clock *clock, int64_t error_ns, int64_t move_ns, int64_t move_error_ns,
                   int64_t at_ns) {
    assert(error_ns >= 0 && move_error_ns >= 0);
    const int64_t low_ns = redlock_min_ns(error_ns, redlock_max_ns(-error_ns, move_ns - move_error_ns));
    const int64_t high_ns = redlock_max_ns(-error_ns, redlock_min_ns(error_ns, move_ns + move_error_ns));
    const int64_t width_ns = high_ns - low_ns;
    clock->offset_ns = redlock_clock_difference_ns(clock->offset_ns, -(low_ns + width_ns / 2));
    clock->error_ns = width_ns - width_ns / 2;
    clock->at_ns = at_ns;
}

int64_t redlock_clock_difference_ns(int64_t a, int64_t b) {
    if (b < 0) {
        return a > INT64_MAX + b ? INT64_MAX : a - b;
    }
    return a < -INT64_MAX + b ? -INT64_MAX : a - b;
}

bool redlock_clock_has_time(const struct redlock_clock_sample *sample) {
    return sample->server_us > 0 && sample->server_us <= SERVER_US_MAX;
}

enum redlock_clock_verdict redlock_clock_judge(struct redlock_clock *clock, const struct redlock_clock_sample *sample,
                                               int64_t *step_ns) {
    int64_t unused_ns;
    int64_t *moved_ns = step_ns ? step_ns : &unused_ns;
    *moved_ns = 0;
    if (!redlock_clock_has_time(sample)) {
        return REDLOCK_CLOCK_STEADY;
    }
    const struct redlock_clock reading = read_clock(sample);
    if (!clock->known) {
        *clock = reading;
        return REDLOCK_CLOCK_STEADY;
    }
    const int64_t at_ns = redlock_max_ns(clock->at_ns, reading.at_ns);
    const int64_t error_ns = error_at(clock, at_ns);
    const int64_t reading_error_ns = error_at(&reading, at_ns);
    const int64_t move_ns = redlock_clock_difference_ns(reading.offset_ns, clock->offset_ns);
    const int64_t distance_ns = move_ns < 0 ? -move_ns : move_ns;
    if (distance_ns > error_ns + reading_error_ns + REDLOCK_CLOCK_STEP_MIN_NS) {
        *clock = reading;
        *moved_ns = move_ns;
        return move_ns > 0 ? REDLOCK_CLOCK_FORWARD : REDLOCK_CLOCK_BACKWARD;
    }
    narrow(clock, error_ns, move_ns, reading_error_ns, at_ns);
    return REDLOCK_CLOCK_STEADY;
}
