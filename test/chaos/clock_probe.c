/* Prints each clock as it sees it, a name and nanoseconds a line: in its main thread, in another
 * one, and after a fork. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void print(const char *where, const char *name, long long seconds, long long ns) {
    printf("%s-%s %lld\n", where, name, seconds * 1000000000 + ns);
}

static void print_clock(const char *where, const char *name, clockid_t id) {
    struct timespec now;
    if (clock_gettime(id, &now) != 0) {
        abort();
    }
    print(where, name, now.tv_sec, now.tv_nsec);
}

static void *look(void *where) {
    struct timeval day;
    struct timespec got;
    time_t stored;
    print_clock(where, "realtime", CLOCK_REALTIME);
    print_clock(where, "coarse", CLOCK_REALTIME_COARSE);
    gettimeofday(&day, NULL);
    print(where, "gettimeofday", day.tv_sec, day.tv_usec * 1000);
    print(where, "time", time(&stored), 0);
    print(where, "stored", stored, 0);
    if (timespec_get(&got, TIME_UTC) != TIME_UTC || timespec_get(&got, 12345) != 0) {
        abort();
    }
    print(where, "timespec_get", got.tv_sec, got.tv_nsec);
    print_clock(where, "monotonic", CLOCK_MONOTONIC);
    print_clock(where, "boottime", CLOCK_BOOTTIME);
    return NULL;
}

/* `clock_probe cost` prints what a call costs, for people. */
static int cost(void) {
    struct timespec from, to, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 10000000; i++) {
        clock_gettime(CLOCK_REALTIME, &now);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%.1f ns\n", ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / 1e7);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "cost") == 0) {
        return cost();
    }
    pthread_t thread;
    look((void *)"main");
    if (pthread_create(&thread, NULL, look, (void *)"thread") != 0 || pthread_join(thread, NULL) != 0) {
        return 1;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        look((void *)"child");
        fflush(stdout);
        _exit(0);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
