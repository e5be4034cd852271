/* The seeded generator of a schedule: splitmix64. All random decisions of the simulation come from
 * here. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
    uint64_t state;
};

static inline uint64_t sim_random_next(struct sim_random *random) {
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in [0, bound); bound is 1 or more. */
static inline uint32_t sim_random_below(struct sim_random *random, uint32_t bound) {
    return (uint32_t)(((sim_random_next(random) >> 32) * bound) >> 32);
}

/* Uniform in [min, max]. */
static inline int64_t sim_random_between(struct sim_random *random, int64_t min, int64_t max) {
    return min + (int64_t)(sim_random_next(random) % (uint64_t)(max - min + 1));
}

static inline bool sim_random_percent(struct sim_random *random, unsigned percent) {
    return sim_random_below(random, 100) < percent;
}

static inline bool sim_random_permille(struct sim_random *random, unsigned permille) {
    return sim_random_below(random, 1000) < permille;
}

#endif
