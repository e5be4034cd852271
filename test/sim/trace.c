/* The trace: what happened when, in words, on standard output or only as a hash. */
#include "parts.h"

#include <stdarg.h>
#include <stdio.h>

void sim_trace_write(struct sim_world *world, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (int i = 0; i < size && i < (int)sizeof line - 1; i++) {
        world->trace_hash = (world->trace_hash ^ (unsigned char)line[i]) * UINT64_C(0x100000001b3);
    }
    world->trace_hash = (world->trace_hash ^ (uint64_t)world->now_ns) * UINT64_C(0x100000001b3);
    if (world->printing) {
        printf("[%12.6f ms] %s\n", (double)world->now_ns / 1e6, line);
    }
}
