/* A clock for programs that are counted, in place of the system's: it stands still, so timers
 * expire at the same place in every run. */
#ifndef BENCH_STILL_CLOCK_H
#define BENCH_STILL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define STILL_CLOCK_S INT64_C(1795000000) /* where it begins */

/* Lets time pass, and a timer of the library expire. */
void still_clock_pass(int64_t ns);

/* Whether the library has set a timer by this clock. */
bool still_clock_is_used(void);

#endif
