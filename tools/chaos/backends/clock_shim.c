/* Preloaded into a server: its wall clock is what the shared page makes of it; CLOCK_MONOTONIC,
 * CLOCK_BOOTTIME and all others are true. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "backends/clock.h"

#define EXPORT __attribute__((visibility("default")))

typedef int clock_function(clockid_t id, struct timespec *out);

/*
 * Both are written once, before main() and before any thread, and are NULL until then. A function
 * here never looks a symbol up: an allocator that asks for the time while it starts (jemalloc)
 * would come back here from within dlsym(), for ever. Until the constructor has run, the time is
 * asked of the kernel itself.
 */
static const struct chaos_clock *page;
static clock_function *real;

__attribute__((constructor)) static void start(void) {
    void *symbol = dlsym(RTLD_NEXT, "clock_gettime");
    /* ISO C knows no conversion of an object pointer to a function pointer, POSIX does. */
    __builtin_memcpy(&real, &symbol, sizeof real);
    const char *path = getenv(CHAOS_CLOCK_ENV);
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return; /* true time; the backend looks whether the page is mapped */
    }
    struct stat stat;
    if (fstat(fd, &stat) == 0 && stat.st_size >= (off_t)sizeof *page) {
        void *mapped = mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED, fd, 0);
        page = mapped == MAP_FAILED ? NULL : mapped;
    }
    close(fd);
}

static int ask(clockid_t id, struct timespec *out) {
    return real != NULL ? real(id, out) : (int)syscall(SYS_clock_gettime, id, out);
}

static void bend(struct timespec *time) {
    if (page == NULL) {
        return;
    }
    int64_t ns = chaos_clock_read_ns(page, (int64_t)time->tv_sec * 1000000000 + time->tv_nsec);
    int64_t rest_ns = ns % 1000000000;
    rest_ns += rest_ns < 0 ? 1000000000 : 0; /* before 1970 */
    time->tv_sec = (time_t)((ns - rest_ns) / 1000000000);
    time->tv_nsec = (long)rest_ns;
}

EXPORT int clock_gettime(clockid_t id, struct timespec *out) {
    int result = ask(id, out);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        bend(out);
    }
    return result;
}

EXPORT int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    (void)zone; /* obsolete: the kernel's is 0 */
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return -1;
    }
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

EXPORT time_t time(time_t *out) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return (time_t)-1;
    }
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

EXPORT int timespec_get(struct timespec *out, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, out) == 0 ? base : 0;
}
