/* The writer's side of a node's wall clock. */
#include "backends/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OFFSET_MAX_MS (INT64_C(100) * 365 * 24 * 3600 * 1000)
#define RATE_MAX_PPM  INT64_C(1000000000)

/* Another process reads the page: a lock inside of this one would guard nothing. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics need a lock here");

struct chaos_clock *chaos_clock_open(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return NULL;
    }
    struct stat stat;
    void *page = MAP_FAILED;
    if (fstat(fd, &stat) == 0 &&
        (stat.st_size >= (off_t)sizeof(struct chaos_clock) || ftruncate(fd, sizeof(struct chaos_clock)) == 0)) {
        page = mmap(NULL, sizeof(struct chaos_clock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    int error = errno;
    close(fd);
    errno = error;
    return page == MAP_FAILED ? NULL : page;
}

void chaos_clock_close(struct chaos_clock *clock) {
    if (clock != NULL) {
        munmap(clock, sizeof *clock);
    }
}

static int64_t within(int64_t value, int64_t most) {
    return value > most ? most : value < -most ? -most : value;
}

/* The setting that counts. */
static const struct chaos_clock_setting *current(const struct chaos_clock *clock) {
    return &clock->settings[clock->sequence % 2];
}

static void set(struct chaos_clock *clock, int64_t offset_ns, int64_t since_ns, int64_t rate_ppm) {
    uint32_t next = atomic_load_explicit(&clock->sequence, memory_order_relaxed) + 1;
    struct chaos_clock_setting *setting = &clock->settings[next % 2];
    /* Who sees what is written here, sees that the sequence is past the one under which it was
     * read. */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&setting->offset_ns, within(offset_ns, OFFSET_MAX_MS * 1000000), memory_order_relaxed);
    atomic_store_explicit(&setting->since_ns, since_ns, memory_order_relaxed);
    atomic_store_explicit(&setting->rate_ppm, within(rate_ppm, RATE_MAX_PPM), memory_order_relaxed);
    atomic_store_explicit(&clock->sequence, next, memory_order_release);
}

void chaos_clock_jump(struct chaos_clock *clock, int64_t step_ms) {
    const struct chaos_clock_setting *old = current(clock);
    set(clock, old->offset_ns + within(step_ms, OFFSET_MAX_MS) * 1000000, old->since_ns, old->rate_ppm);
}

void chaos_clock_skew(struct chaos_clock *clock, int64_t rate_ppm) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t real_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    set(clock, chaos_clock_read_ns(clock, real_ns) - real_ns, real_ns, rate_ppm);
}
