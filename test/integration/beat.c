/* A command that does not want to end: it ignores SIGTERM, and writes down when it first and last
 * was alive, by CLOCK_BOOTTIME. */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* What it says stays in the page cache when SIGKILL ends it. takeover_check.py reads it. */
struct beat {
    _Atomic int64_t first_ns;
    _Atomic int64_t last_ns;
    _Atomic int64_t told_ns; /* SIGTERM came; 0: never */
    _Atomic int64_t pid;
};

static struct beat *beat;

static int64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void told(int number) {
    (void)number;
    if (beat->told_ns == 0) {
        beat->told_ns = now_ns();
    }
}

int main(int argc, char **argv) {
    const struct timespec pause = {.tv_nsec = 100000};
    const int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    if (fd < 0 || ftruncate(fd, sizeof *beat) != 0) {
        return 70;
    }
    beat = mmap(NULL, sizeof *beat, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (beat == MAP_FAILED) {
        return 70;
    }
    if (argc > 2 && strcmp(argv[2], "root") == 0 && setreuid(0, 0) != 0) {
        return 71; /* this file has no set-user-ID bit */
    }
    beat->first_ns = now_ns();
    beat->pid = getpid();
    (void)signal(SIGTERM, told);
    /* A second process of the group, which outlives the first one if that alone is killed. */
    if (argc > 2 && strcmp(argv[2], "family") == 0 && fork() < 0) {
        return 70;
    }
    /* The group of the tool: no signal to its own group reaches it any more. */
    if (argc > 2 && strncmp(argv[2], "left", 4) == 0 && setpgid(0, getpgid(getppid())) != 0) {
        return 70;
    }
    for (;;) {
        const int64_t at_ns = now_ns();
        if (at_ns > beat->last_ns) {
            beat->last_ns = at_ns;
        }
        (void)nanosleep(&pause, NULL);
    }
}
