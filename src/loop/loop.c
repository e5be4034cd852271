/* The event loop: connects the env and the reactor to any loop. */
#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "core/time.h"

#define LOG_LINE_SIZE 512

static_assert((int)REDLOCK_READABLE == (int)REDLOCK_LOOP_READABLE, "the reactor's events are the public ones");
static_assert((int)REDLOCK_WRITABLE == (int)REDLOCK_LOOP_WRITABLE, "the reactor's events are the public ones");

struct redlock_loop {
    redlock_loop_ops ops;
    void *adapter;
    struct redlock_loop_hooks hooks;
    struct redlock_random *random;
    struct redlock_list watches, to_flush;
    bool flush_asked;
    /* Watches a timerfd on CLOCK_BOOTTIME, which counts suspended time (R2). */
    struct redlock_watch timer;
    int timer_fd;
    /* When the timerfd fires. Never later than any time asked for; often earlier, to save system
     * calls. */
    int64_t armed_ns;
    bool *deleted; /* set while timers run: one of them may delete the loop */
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

__attribute__((noinline)) static void arm_earlier(struct redlock_loop *loop, int64_t when_ns) {
    /* In a child process the descriptor is still the parent's timer. */
    if (redlock_loop_forked(loop)) {
        return;
    }
    if (when_ns <= 0) {
        when_ns = 1; /* a time that has passed; 0 would disarm */
    }
    struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(when_ns / 1000000000), .tv_nsec = (long)(when_ns % 1000000000)}};
    int failed = timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    assert(failed == 0);
    loop->armed_ns = when_ns;
}

/* It is seldom earlier. */
static inline void arm(struct redlock_loop *loop, int64_t when_ns) {
    if (when_ns < loop->armed_ns) {
        arm_earlier(loop, when_ns);
    }
}

static struct redlock_watch *watch_of(struct redlock_list_entry *entry) {
    return REDLOCK_CONTAINER(entry, struct redlock_watch, entry);
}

static struct redlock_watch *first_due(const struct redlock_loop *loop, int64_t now_ns) {
    REDLOCK_LIST_EACH(at, &loop->watches) {
        struct redlock_watch *w = watch_of(at);
        if (!w->ran && w->timer_ns <= now_ns) {
            return w;
        }
    }
    return NULL;
}

/* Each timer may attach or detach watches, or delete the loop. The watch that was attached first
 * comes last. A program that runs the loop in a callback comes here again. */
static void run_due(struct redlock_loop *loop) {
    bool deleted = false, *outer = loop->deleted;
    int64_t now_ns = redlock_loop_now_ns(loop), next_ns = REDLOCK_NEVER_NS;
    loop->deleted = &deleted;
    REDLOCK_LIST_EACH(at, &loop->watches) {
        watch_of(at)->ran = false;
    }
    for (struct redlock_watch *w; (w = first_due(loop, now_ns)) != NULL;) {
        w->ran = true;
        w->timer_ns = REDLOCK_NEVER_NS;
        w->on_timer(w);
        if (deleted) {
            if (outer != NULL) {
                *outer = true;
            }
            return;
        }
    }
    loop->deleted = outer;
    REDLOCK_LIST_EACH(at, &loop->watches) {
        next_ns = redlock_min_ns(next_ns, watch_of(at)->timer_ns);
    }
    arm(loop, next_ns);
}

static void on_timer(struct redlock_watch *timer, unsigned events) {
    struct redlock_loop *loop = timer->loop;
    uint64_t expirations;
    (void)events;
    assert(timer == &loop->timer);
    if (read(loop->timer_fd, &expirations, sizeof expirations) < 0) {
        return; /* EAGAIN: the timer was set again after it fired */
    }
    loop->armed_ns = REDLOCK_NEVER_NS;
    run_due(loop);
}

void redlock_loop_flush(redlock_loop *loop) {
    struct redlock_list_entry *first = redlock_list_pop(&loop->to_flush);
    if (first != NULL && redlock_loop_forked(loop)) {
        return;
    }
    for (; first != NULL; first = redlock_list_pop(&loop->to_flush)) {
        struct redlock_watch *watch = REDLOCK_CONTAINER(first, struct redlock_watch, to_flush);
        watch->on_flush(watch);
    }
    loop->flush_asked = false;
}

/* Adapters know a watch by another type. */
void redlock_loop_report(redlock_loop_watch *watched, unsigned events) {
    struct redlock_watch *watch = (struct redlock_watch *)(void *)watched;
    if (redlock_loop_forked(watch->loop)) {
        /* The connection belongs to the parent: to read here would take bytes from it. */
        (void)watch->loop->ops.watch(watch->slot, -1, 0);
        return;
    }
    events &= watch->events;
    if (events != 0) {
        watch->on_io(watch, events);
    }
}

void redlock_loop_io(redlock_loop_watch *watched, unsigned events) {
    redlock_loop_report(watched, events);
}

/* What only has a timer needs no slot. */
static bool add_slot(struct redlock_loop *loop, struct redlock_watch *watch) {
    assert(!watch->loop && !watch->slot);
    watch->events = 0;
    watch->timer_ns = REDLOCK_NEVER_NS;
    watch->loop = loop;
    if (watch->on_io != NULL) {
        watch->slot = loop->ops.add(loop->adapter, (redlock_loop_watch *)(void *)watch);
        watch->loop = watch->slot != NULL ? loop : NULL;
    }
    return watch->loop != NULL;
}

static int attach(void *context, struct redlock_watch *watch) {
    struct redlock_loop *loop = context;
    if (!add_slot(loop, watch)) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    redlock_list_prepend(&loop->watches, &watch->entry);
    return 0;
}

static void detach(void *context, struct redlock_watch *watch) {
    struct redlock_loop *loop = context;
    assert(watch->loop == loop);
    if (watch->slot != NULL) {
        loop->ops.remove(watch->slot);
    }
    if (redlock_list_is_in(&watch->to_flush)) {
        redlock_list_remove(&watch->to_flush);
    }
    redlock_list_remove(&watch->entry);
    watch->loop = NULL;
    watch->slot = NULL;
}

static void watch_fd(void *context, struct redlock_watch *watch, int fd, unsigned events) {
    struct redlock_loop *loop = context;
    assert(watch->loop == loop && watch->slot);
    watch->events = fd < 0 ? 0 : events;
    if (!loop->ops.watch(watch->slot, fd, watch->events)) {
        redlock_loop_log(loop, REDLOCK_LOG_ERROR,
                         "the event loop refused to watch descriptor %d: its connection will time out", fd);
    }
}

static void timer_at(void *context, struct redlock_watch *watch, int64_t when_ns) {
    watch->timer_ns = when_ns;
    arm(context, when_ns);
}

static void flush_soon(void *context, struct redlock_watch *watch) {
    struct redlock_loop *loop = context;
    if (!redlock_list_is_in(&watch->to_flush)) {
        redlock_list_append(&loop->to_flush, &watch->to_flush);
    }
}

/* For a loop that must be asked. */
static void ask_flush_soon(void *context, struct redlock_watch *watch) {
    struct redlock_loop *loop = context;
    flush_soon(loop, watch);
    if (!loop->flush_asked) {
        loop->flush_asked = true;
        loop->ops.flush_soon(loop->adapter);
    }
}

void redlock_loop_reactor(struct redlock_loop *loop, struct redlock_reactor *reactor) {
    assert(loop->adapter);
    *reactor = (struct redlock_reactor){
        .ctx = loop,
        .now_ns = redlock_loop_now_ns,
        .random = redlock_loop_random,
        .attach = attach,
        .detach = detach,
        .watch = watch_fd,
        .timer_at = timer_at,
        .flush_soon = loop->ops.flush_soon == NULL ? flush_soon : ask_flush_soon,
        .log = redlock_loop_log,
    };
}

void redlock_loop_enter_child(struct redlock_loop *loop) {
    assert(redlock_loop_forked(loop));
    if (loop->ops.after_fork != NULL) {
        loop->ops.after_fork(loop->adapter);
    }
}

/* If it fails, errno says why, or is 0. */
static bool start(struct redlock_loop *loop, void *on) {
    loop->random = redlock_random_new();
    if (loop->random == NULL) {
        errno = ENOMEM;
        return false;
    }
    loop->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (loop->timer_fd < 0) {
        return false;
    }
    loop->adapter = loop->ops.attach(on, loop);
    if (loop->adapter == NULL || !add_slot(loop, &loop->timer)) {
        errno = ENOMEM;
        return false;
    }
    loop->timer.events = REDLOCK_READABLE;
    errno = 0;
    return loop->ops.watch(loop->timer.slot, loop->timer_fd, REDLOCK_READABLE);
}

struct redlock_loop *redlock_loop_new(const redlock_loop_ops *ops, void *on, const struct redlock_loop_hooks *hooks) {
    struct redlock_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL) {
        errno = ENOMEM; /* an allocator need not say so */
        return NULL;
    }
    assert(ops->attach && ops->detach && ops->add && ops->remove && ops->watch);
    loop->ops = *ops;
    loop->hooks = *hooks;
    redlock_list_init(&loop->watches);
    redlock_list_init(&loop->to_flush);
    loop->armed_ns = REDLOCK_NEVER_NS;
    loop->timer.on_io = on_timer;
    loop->timer_fd = -1;
    if (!start(loop, on)) {
        int error = errno;
        redlock_loop_delete(loop);
        errno = error;
        return NULL;
    }
    return loop;
}

void redlock_loop_delete(struct redlock_loop *loop) {
    if (loop == NULL) {
        return;
    }
    assert(redlock_list_is_empty(&loop->watches));
    if (loop->deleted != NULL) {
        *loop->deleted = true;
    }
    if (loop->timer.slot != NULL) {
        (void)loop->ops.watch(loop->timer.slot, -1, 0);
        loop->ops.remove(loop->timer.slot);
    }
    if (loop->adapter != NULL) {
        loop->ops.detach(loop->adapter);
    }
    if (loop->timer_fd >= 0) {
        (void)close(loop->timer_fd);
    }
    redlock_random_delete(loop->random);
    free(loop);
}
