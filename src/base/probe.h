/* Static probes (sys/sdt.h): a nop where nobody listens. docs/telemetry.md lists them. */
#ifndef REDLOCK_BASE_PROBE_H
#define REDLOCK_BASE_PROBE_H

#ifdef REDLOCK_WITH_PROBES

/* Tracers count up a probe's semaphore while they listen. A file that asks for semaphores before it
 * includes this has them in all of its probes. */
#ifdef REDLOCK_PROBE_SEMAPHORES
#define _SDT_HAS_SEMAPHORES 1
#endif
#include <sys/sdt.h>

#ifdef __clang__
/* The macros of sys/sdt.h leave out variadic arguments. clang warns of that wherever they are used.
 */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif

/* A probe with so many arguments. */
#define REDLOCK_PROBE(count, name, ...) STAP_PROBE##count(redlock, name, __VA_ARGS__)
#define REDLOCK_PROBE_SEMAPHORE(name)                                                                                  \
    __attribute__((section(".probes"), used, visibility("hidden"))) unsigned short redlock_##name##_semaphore;
#define REDLOCK_PROBE_DECLARE(name)                                                                                    \
    extern __attribute__((visibility("hidden"))) unsigned short redlock_##name##_semaphore;
/* Tracers write there at any time, and nothing else depends on it. */
#define REDLOCK_PROBE_IS_ON(name) (*(const volatile unsigned short *)&redlock_##name##_semaphore != 0)

#else

#define REDLOCK_PROBE(count, name, ...) ((void)0)
#define REDLOCK_PROBE_SEMAPHORE(name)
#define REDLOCK_PROBE_DECLARE(name)
#define REDLOCK_PROBE_IS_ON(name) 0

#endif

#endif
