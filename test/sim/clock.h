/* The clocks of clients and nodes: each runs at its own constant rate relative to true time. A
 * clock never stops, though a process may pause. A node's clock is a wall clock, which may be
 * set. */
#ifndef SIM_CLOCK_H
#define SIM_CLOCK_H

#include <stdint.h>

/* The time of the wall clocks at the start of the world: in 2027. */
#define SIM_WALL_NS INT64_C(1800000000000000000)

struct sim_clock {
    int64_t offset_ns;
    int64_t ppm; /* fast if positive */
    double rate; /* about the same: of true time to its time */
};

static inline void sim_clock_set_ppm(struct sim_clock *clock, int64_t ppm) {
    clock->ppm = ppm;
    clock->rate = 1.0 / (1.0 + (double)ppm / 1e6);
}

static inline int64_t sim_clock_local(const struct sim_clock *clock, int64_t true_ns) {
    return clock->offset_ns + true_ns + true_ns * clock->ppm / 1000000;
}

/* The first true time at which the clock shows local_ns or more. */
static inline int64_t sim_clock_true(const struct sim_clock *clock, int64_t local_ns) {
    int64_t true_ns = (int64_t)((double)(local_ns - clock->offset_ns) * clock->rate);
    while (sim_clock_local(clock, true_ns) < local_ns) {
        true_ns += 1 + (local_ns - sim_clock_local(clock, true_ns)) / 2;
    }
    while (true_ns > 0 && sim_clock_local(clock, true_ns - 1) >= local_ns) {
        true_ns--;
    }
    return true_ns;
}

#endif
