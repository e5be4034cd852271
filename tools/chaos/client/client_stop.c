/* How a client is asked to end: SIGTERM, which cuts an acquire that waits. */
#include "client/client_stop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static bool move(struct chaos_stop *stop, int from, int to) {
    return atomic_compare_exchange_strong(&stop->state, &from, to);
}

/* The main thread is the only one that asks: what is pending is its acquire. */
static bool library_has_acquire(struct chaos_stop *stop) {
    stop->last = (redlock_statistics){.size = sizeof stop->last};
    return redlock_client_statistics(stop->library, &stop->last) == REDLOCK_OK && stop->last.requests_pending > 0;
}

static void *await_signal(void *data) {
    struct chaos_stop *stop = data;
    const sigset_t set = chaos_stop_signal();
    int number;
    while (sigwait(&set, &number) != 0) {
    }
    while (eventfd_write(stop->event, 1) != 0 && errno == EINTR) {
    }
    for (int state; (state = atomic_load(&stop->state)) != CHAOS_STOP_OVER; (void)poll(NULL, 0, 1)) {
        if (state == CHAOS_STOP_WAITING && library_has_acquire(stop) &&
            move(stop, CHAOS_STOP_WAITING, CHAOS_STOP_CUT)) {
            (void)redlock_client_close(stop->library);
            break;
        }
    }
    return NULL;
}

bool chaos_stop_block(void) {
    const sigset_t set = chaos_stop_signal();
    return sigprocmask(SIG_BLOCK, &set, NULL) == 0;
}

bool chaos_stop_start(struct chaos_stop *stop, redlock_client *library) {
    stop->library = library;
    atomic_init(&stop->state, CHAOS_STOP_FREE);
    stop->event = eventfd(0, EFD_CLOEXEC);
    if (stop->event < 0) {
        return false;
    }
    int failed = pthread_create(&stop->thread, NULL, await_signal, stop);
    if (failed != 0) {
        close(stop->event);
        errno = failed;
    }
    return failed == 0;
}

bool chaos_stop_finish(struct chaos_stop *stop) {
    bool open = move(stop, CHAOS_STOP_FREE, CHAOS_STOP_OVER);
    if (!chaos_stop_wait_us(stop, 0)) {
        /* an end for another reason: the thread still waits for this */
        (void)kill(getpid(), SIGTERM);
    }
    pthread_join(stop->thread, NULL);
    close(stop->event);
    return open;
}

void chaos_stop_enter(struct chaos_stop *stop) {
    (void)move(stop, CHAOS_STOP_FREE, CHAOS_STOP_WAITING);
}

bool chaos_stop_leave(struct chaos_stop *stop) {
    return move(stop, CHAOS_STOP_WAITING, CHAOS_STOP_FREE);
}

bool chaos_stop_cut(const struct chaos_stop *stop) {
    return atomic_load(&stop->state) == CHAOS_STOP_CUT;
}

bool chaos_stop_wait_us(const struct chaos_stop *stop, int64_t time_us) {
    struct pollfd event = {stop->event, POLLIN, 0};
    struct timespec time = {time_us / 1000000, time_us % 1000000 * 1000};
    int ready = ppoll(&event, 1, &time, NULL);
    return ready > 0;
}
