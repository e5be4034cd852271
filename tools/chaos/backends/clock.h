/* A node's wall clock that jumps and drifts: the page that redlock-chaos and the preloaded shim
 * share. */
#ifndef CHAOS_CLOCK_H
#define CHAOS_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

/* Tells the shim where the page is. */
#define CHAOS_CLOCK_ENV "REDLOCK_CHAOS_CLOCK"

/* The wall clock that the server sees: real + offset_ns + (real − since_ns) × rate_ppm / 10^6. */
struct chaos_clock_setting {
    _Atomic int64_t offset_ns;
    _Atomic int64_t since_ns;
    _Atomic int64_t rate_ppm;
};

/*
 * The page: a file of this struct, mapped shared; a file of zeros is true time. What counts is
 * settings[sequence % 2]. The writer fills the other one and then raises the sequence; readers who
 * find it raised read again. So no reader sees half a setting, and none waits for a writer that
 * died in the middle.
 */
struct chaos_clock {
    _Atomic uint32_t sequence;
    struct chaos_clock_setting settings[2];
};

/* Makes the file if needed (true time) and maps it; what it has is kept. NULL with errno. */
struct chaos_clock *chaos_clock_open(const char *path);
void chaos_clock_close(struct chaos_clock *clock);

/* One thread of one process calls these two. Errors of more than 100 years and rates of more than
 * 10^9 ppm are cut to that. */

/* Steps by so much, at once. */
void chaos_clock_jump(struct chaos_clock *clock, int64_t step_ms);
/* Runs so much fast from now on (negative: slow), without a step; 0: runs true, and keeps the error
 * that it has by now. */
void chaos_clock_skew(struct chaos_clock *clock, int64_t rate_ppm);

/* In whole milliseconds first: a year at any rate does not overflow. */
static inline int64_t chaos_clock_drift_ns(int64_t elapsed_ns, int64_t rate_ppm) {
    return elapsed_ns / 1000000 * rate_ppm + elapsed_ns % 1000000 * rate_ppm / 1000000;
}

/* What the server's wall clock reads when the real one reads real_ns. Here, so that the shim needs
 * nothing else. */
static inline int64_t chaos_clock_read_ns(const struct chaos_clock *clock, int64_t real_ns) {
    int64_t offset_ns, since_ns, rate_ppm;
    uint32_t before, after;
    do {
        before = atomic_load_explicit(&clock->sequence, memory_order_acquire);
        const struct chaos_clock_setting *setting = &clock->settings[before % 2];
        offset_ns = atomic_load_explicit(&setting->offset_ns, memory_order_relaxed);
        since_ns = atomic_load_explicit(&setting->since_ns, memory_order_relaxed);
        rate_ppm = atomic_load_explicit(&setting->rate_ppm, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        after = atomic_load_explicit(&clock->sequence, memory_order_relaxed);
    } while (before != after);
    return real_ns + offset_ns + chaos_clock_drift_ns(real_ns - since_ns, rate_ppm);
}

#endif
