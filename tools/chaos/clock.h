/* A node's wall clock that jumps and drifts: the page that redlock-chaos and the preloaded shim share. */
#ifndef CHAOS_CLOCK_H
#define CHAOS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Tells the shim where the page is. */
#define CHAOS_CLOCK_ENV "REDLOCK_CHAOS_CLOCK"

/*
 * The wall clock that the server sees: real + offset_ns + (real − since_ns) × rate_ppm / 10^6. `sequence` is odd while the writer is at it: readers try again.
 * The page is a file of this struct, mapped shared.
 */
struct chaos_clock {
    _Atomic uint32_t sequence;
    _Atomic int64_t offset_ns;
    _Atomic int64_t since_ns;
    _Atomic int64_t rate_ppm;
};

/* Makes the file if needed (true time) and maps it; NULL with errno. */
struct chaos_clock *chaos_clock_open(const char *path);
void chaos_clock_close(struct chaos_clock *clock);
/* Steps by so much, at once. */
void chaos_clock_jump(struct chaos_clock *clock, int64_t step_ms);
/* Runs so much fast from now on (negative: slow), without a step; 0: runs true, and keeps the error that it has by now. */
void chaos_clock_skew(struct chaos_clock *clock, int64_t rate_ppm);
/* What the server's wall clock reads when the real one reads real_ns. Used by the shim; inlined there. */
int64_t chaos_clock_read_ns(const struct chaos_clock *clock, int64_t real_ns);

#endif
