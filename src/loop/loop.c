/* The event loop: connects the env and the reactor to libev. */
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "core/validity.h"

#define LOG_LINE_SIZE 512

/* What the loop keeps for one watch. */
struct watched {
    ev_io io;
    struct redlock_loop *loop;
    struct redlock_watch *watch;
    struct watched *previous, *next;
    int64_t timer_ns;
    bool ran; /* its timer ran in this pass over the timers */
};

struct redlock_loop {
    struct ev_loop *ev;
    struct redlock_loop_hooks hooks;
    struct redlock_random *random;
    struct watched *watches;
    struct redlock_watch *flush_first, **flush_last;
    ev_prepare prepare; /* flushes before each poll (R6) */
    ev_io timer;        /* a timerfd on CLOCK_BOOTTIME, which counts suspended time (R2) */
    ev_timer soon;      /* for times that have passed already; costs no system call */
    int64_t wake_ns;
    /* When the timerfd fires. Never later than any time asked for; often earlier, to save system
     * calls. */
    int64_t armed_ns;
    bool *deleted; /* set while the wake hook runs: the hook may delete the loop */
};

int64_t redlock_loop_now_ns(void *context) {
    struct timespec now;
    (void)context;
    int failed = clock_gettime(CLOCK_BOOTTIME, &now);
    assert(failed == 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t redlock_loop_wall_us(void *context) {
    struct timespec now;
    (void)context;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    assert(failed == 0);
    return now.tv_sec < 0 ? 0 : (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int redlock_loop_random(void *context, void *buffer, size_t size) {
    struct redlock_loop *loop = context;
    return redlock_random_bytes(loop->random, buffer, size);
}

bool redlock_loop_forked(const struct redlock_loop *loop) {
    return redlock_random_forked(loop->random);
}

void redlock_loop_vlog(struct redlock_loop *loop, redlock_log_level level, const char *format, va_list arguments) {
    char line[LOG_LINE_SIZE];
    if (loop->hooks.on_log == NULL || level > loop->hooks.log_level) {
        return;
    }
    (void)vsnprintf(line, sizeof line, format, arguments);
    loop->hooks.on_log(level, line, loop->hooks.log_data);
}

void redlock_loop_log(void *context, redlock_log_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    redlock_loop_vlog(context, level, format, arguments);
    va_end(arguments);
}

static void arm(struct redlock_loop *loop, int64_t when_ns) {
    /* In a child process the descriptor is still the parent's timer. */
    if (when_ns >= loop->armed_ns || redlock_loop_forked(loop)) {
        return;
    }
    if (when_ns <= redlock_loop_now_ns(loop)) {
        if (!ev_is_active(&loop->soon)) {
            ev_timer_set(&loop->soon, 0., 0.);
            ev_timer_start(loop->ev, &loop->soon);
        }
        return;
    }
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(when_ns / 1000000000), .tv_nsec = when_ns % 1000000000}};
    int failed = timerfd_settime(loop->timer.fd, TFD_TIMER_ABSTIME, &at, NULL);
    assert(failed == 0);
    loop->armed_ns = when_ns;
}

void redlock_loop_wake_at(void *context, int64_t when_ns) {
    struct redlock_loop *loop = context;
    loop->wake_ns = when_ns;
    arm(loop, when_ns);
}

/* Runs the timers of nodes first, in any order. Each may attach or detach watches. Then runs the
 * wake hook, which may delete the loop. */
static void run_due(struct redlock_loop *loop) {
    bool deleted = false;
    int64_t now_ns = redlock_loop_now_ns(loop);
    for (struct watched *w = loop->watches; w != NULL; w = w->next) {
        w->ran = false;
    }
    for (struct watched *w = loop->watches; w != NULL;) {
        if (w->ran || w->timer_ns > now_ns) {
            w = w->next;
            continue;
        }
        w->ran = true;
        w->timer_ns = REDLOCK_NEVER_NS;
        w->watch->on_timer(w->watch);
        w = loop->watches; /* on_timer() may have changed the list */
    }
    if (loop->wake_ns <= now_ns) {
        loop->wake_ns = REDLOCK_NEVER_NS;
        loop->deleted = &deleted;
        loop->hooks.wake(loop->hooks.ctx);
        if (deleted) {
            return;
        }
        loop->deleted = NULL;
    }
    int64_t next_ns = loop->wake_ns;
    for (struct watched *w = loop->watches; w != NULL; w = w->next) {
        if (w->timer_ns < next_ns) {
            next_ns = w->timer_ns;
        }
    }
    arm(loop, next_ns);
}

static void on_timer(struct ev_loop *ev, ev_io *io, int events) {
    struct redlock_loop *loop = io->data;
    uint64_t expirations;
    (void)events;
    if (redlock_loop_forked(loop)) {
        ev_io_stop(ev, io);
        return;
    }
    if (read(io->fd, &expirations, sizeof expirations) < 0) {
        return; /* EAGAIN: the timer was set again after it fired */
    }
    loop->armed_ns = REDLOCK_NEVER_NS;
    run_due(loop);
}

static void on_soon(struct ev_loop *ev, ev_timer *timer, int events) {
    struct redlock_loop *loop = timer->data;
    (void)ev;
    (void)events;
    if (!redlock_loop_forked(loop)) {
        run_due(loop);
    }
}

static void on_prepare(struct ev_loop *ev, ev_prepare *prepare, int events) {
    struct redlock_loop *loop = prepare->data;
    (void)ev;
    (void)events;
    if (loop->flush_first == NULL || redlock_loop_forked(loop)) {
        return;
    }
    while (loop->flush_first != NULL) {
        struct redlock_watch *watch = loop->flush_first;
        loop->flush_first = watch->next_flush;
        if (loop->flush_first == NULL) {
            loop->flush_last = &loop->flush_first;
        }
        watch->flush_asked = false;
        watch->on_flush(watch);
    }
}

static void on_io(struct ev_loop *ev, ev_io *io, int events) {
    struct watched *watched = io->data;
    if (redlock_loop_forked(watched->loop)) {
        /* The connection belongs to the parent: to read here would take bytes from it. */
        ev_io_stop(ev, io);
        return;
    }
    watched->watch->on_io(watched->watch, ((events & EV_READ) != 0 ? REDLOCK_READABLE : 0U) |
                                              ((events & EV_WRITE) != 0 ? REDLOCK_WRITABLE : 0U));
}

static int attach(void *context, struct redlock_watch *watch) {
    struct redlock_loop *loop = context;
    struct watched *watched = calloc(1, sizeof *watched);
    if (watched == NULL) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    ev_io_init(&watched->io, on_io, -1, 0);
    watched->io.data = watched;
    watched->loop = loop;
    watched->watch = watch;
    watched->timer_ns = REDLOCK_NEVER_NS;
    watched->next = loop->watches;
    if (watched->next != NULL) {
        watched->next->previous = watched;
    }
    loop->watches = watched;
    watch->impl = watched;
    watch->flush_asked = false;
    watch->next_flush = NULL;
    return 0;
}

static void detach(void *context, struct redlock_watch *watch) {
    struct redlock_loop *loop = context;
    struct watched *watched = watch->impl;
    ev_io_stop(loop->ev, &watched->io);
    if (watch->flush_asked) {
        struct redlock_watch **link = &loop->flush_first;
        while (*link != watch) {
            link = &(*link)->next_flush;
        }
        *link = watch->next_flush;
        if (*link == NULL) {
            loop->flush_last = link;
        }
    }
    if (watched->previous != NULL) {
        watched->previous->next = watched->next;
    } else {
        loop->watches = watched->next;
    }
    if (watched->next != NULL) {
        watched->next->previous = watched->previous;
    }
    free(watched);
    watch->impl = NULL;
}

static void watch_fd(void *context, struct redlock_watch *watch, int fd, unsigned events) {
    struct redlock_loop *loop = context;
    struct watched *watched = watch->impl;
    int wanted = ((events & REDLOCK_READABLE) != 0 ? EV_READ : 0) | ((events & REDLOCK_WRITABLE) != 0 ? EV_WRITE : 0);
    ev_io_stop(loop->ev, &watched->io);
    if (fd < 0) {
        return;
    }
    ev_io_set(&watched->io, fd, wanted);
    ev_io_start(loop->ev, &watched->io);
}

static void timer_at(void *context, struct redlock_watch *watch, int64_t when_ns) {
    struct watched *watched = watch->impl;
    watched->timer_ns = when_ns;
    arm(context, when_ns);
}

static void flush_soon(void *context, struct redlock_watch *watch) {
    struct redlock_loop *loop = context;
    if (watch->flush_asked) {
        return;
    }
    watch->flush_asked = true;
    watch->next_flush = NULL;
    *loop->flush_last = watch;
    loop->flush_last = &watch->next_flush;
}

void redlock_loop_reactor(struct redlock_loop *loop, struct redlock_reactor *reactor) {
    *reactor = (struct redlock_reactor){
        .ctx = loop,
        .now_ns = redlock_loop_now_ns,
        .random = redlock_loop_random,
        .attach = attach,
        .detach = detach,
        .watch = watch_fd,
        .timer_at = timer_at,
        .flush_soon = flush_soon,
        .log = redlock_loop_log,
    };
}

struct redlock_loop *redlock_loop_new(struct ev_loop *ev, const struct redlock_loop_hooks *hooks) {
    struct redlock_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL) {
        return NULL;
    }
    loop->ev = ev;
    loop->hooks = *hooks;
    loop->flush_last = &loop->flush_first;
    loop->wake_ns = loop->armed_ns = REDLOCK_NEVER_NS;
    loop->random = redlock_random_new();
    int fd = loop->random == NULL ? -1 : timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0) {
        int error = loop->random == NULL ? ENOMEM : errno;
        redlock_random_delete(loop->random);
        free(loop);
        errno = error;
        return NULL;
    }
    ev_io_init(&loop->timer, on_timer, fd, EV_READ);
    ev_timer_init(&loop->soon, on_soon, 0., 0.);
    ev_prepare_init(&loop->prepare, on_prepare);
    /* After the program's own watchers, which may queue requests. */
    ev_set_priority(&loop->prepare, EV_MINPRI);
    loop->timer.data = loop->soon.data = loop->prepare.data = loop;
    ev_io_start(ev, &loop->timer);
    ev_prepare_start(ev, &loop->prepare);
    return loop;
}

void redlock_loop_delete(struct redlock_loop *loop) {
    if (loop == NULL) {
        return;
    }
    assert(loop->watches == NULL);
    if (loop->deleted != NULL) {
        *loop->deleted = true;
    }
    ev_io_stop(loop->ev, &loop->timer);
    ev_timer_stop(loop->ev, &loop->soon);
    ev_prepare_stop(loop->ev, &loop->prepare);
    (void)close(loop->timer.fd);
    redlock_random_delete(loop->random);
    free(loop);
}
