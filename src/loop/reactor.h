/* The interface between the event loop and what waits for it: connections of nodes, and a group. */
#ifndef REDLOCK_LOOP_REACTOR_H
#define REDLOCK_LOOP_REACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <redlock/redlock.h>

#include "base/list.h"

enum redlock_reactor_events { REDLOCK_READABLE = 1, REDLOCK_WRITABLE = 2 };

/* One descriptor to watch, and one timer. Embed it, set the callbacks, and attach it to the
 * reactor. */
struct redlock_watch {
    void (*on_io)(struct redlock_watch *watch, unsigned events); /* NULL: there is no descriptor */
    void (*on_timer)(struct redlock_watch *watch);               /* may delete the loop */
    /* Called once before the loop polls, after redlock_reactor.flush_soon(). Writes what is queued
     * (R6). */
    void (*on_flush)(struct redlock_watch *watch);
    /* The loop's own. */
    struct redlock_loop *loop; /* NULL: it is not attached */
    void *slot;                /* the adapter's */
    unsigned events;           /* that are watched */
    bool ran;                  /* its timer ran in this pass over the timers */
    int64_t timer_ns;
    struct redlock_list_entry entry, to_flush;
};

/* All times are CLOCK_BOOTTIME, as in the env. */
struct redlock_reactor {
    void *ctx;
    int64_t (*now_ns)(void *ctx);
    int (*random)(void *ctx, void *buffer, size_t size);
    int (*attach)(void *ctx, struct redlock_watch *watch); /* 0 or REDLOCK_ERR_NO_MEMORY */
    void (*detach)(void *ctx, struct redlock_watch *watch);
    /* fd -1 watches nothing. Each call replaces the descriptor and events of the last one. */
    void (*watch)(void *ctx, struct redlock_watch *watch, int fd, unsigned events);
    /* REDLOCK_NEVER_NS stops the timer. on_timer() may run early. Of timers that are due at once,
     * that of the watch that was attached first runs last. */
    void (*timer_at)(void *ctx, struct redlock_watch *watch, int64_t when_ns);
    void (*flush_soon)(void *ctx, struct redlock_watch *watch);
    void (*log)(void *ctx, redlock_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
};

#endif
