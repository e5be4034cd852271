/* For LD_PRELOAD into a server that is counted: no seed of its hash tables is random, and its clock
 * moves on by a microsecond each time that it is read. So every run does the same. */
#undef _FILE_OFFSET_BITS /* so that fopen() and fopen64() are two */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>

#include "still_clock.h"

static _Atomic int64_t clock_us = STILL_CLOCK_S * 1000000;

/* It does not outlive the script that started it. */
__attribute__((constructor)) static void begin(void) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static FILE *open_file(const char *function, const char *path, const char *mode) {
    FILE *(*open)(const char *, const char *);
    void *found = dlsym(RTLD_NEXT, function);
    if (!found) {
        abort();
    }
    memcpy(&open, &found, sizeof open);
    return open(strcmp(path, "/dev/urandom") == 0 ? "/dev/zero" : path, mode);
}

/* These replace libc's functions. */
#pragma GCC visibility push(default)

FILE *fopen(const char *path, const char *mode) {
    return open_file("fopen", path, mode);
}

FILE *fopen64(const char *path, const char *mode) {
    return open_file("fopen64", path, mode);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    const int64_t us = clock_us++;
    (void)clock;
    *now = (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    return 0;
}

int gettimeofday(struct timeval *now, void *zone) {
    const int64_t us = clock_us++;
    (void)zone;
    *now = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    return 0;
}

time_t time(time_t *now) {
    const time_t s = (time_t)(clock_us++ / 1000000);
    if (now) {
        *now = s;
    }
    return s;
}

#pragma GCC visibility pop
