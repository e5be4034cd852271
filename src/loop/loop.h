/* The event loop: clock, timers, descriptors, the flush before each poll, random bytes, and the
 * check for a fork. An adapter (redlock_loop_ops) connects it to the caller's loop. */
#ifndef REDLOCK_LOOP_LOOP_H
#define REDLOCK_LOOP_LOOP_H

#include <stdarg.h>

#include <redlock/adapters/poll.h>
#include <redlock/loop.h>

#include "loop/reactor.h"

extern const redlock_loop_ops redlock_libev_ops; /* on a struct ev_loop */
extern const redlock_loop_ops redlock_poll_ops;  /* on a redlock_poll */

/* The parts of redlock_poll_dispatch(), for who blocks in the wait, and flushes before it: one
 * thread at a time, but not always the same. */
redlock_poll *redlock_poll_new_parted(void);
void redlock_poll_flush(redlock_poll *poll);
/* Returns how many events came; 0 also if a signal did. */
int redlock_poll_wait(redlock_poll *poll, int timeout_ms);
void redlock_poll_report(redlock_poll *poll);
/* Ends the wait, or the next one. Any thread; safe in a signal handler. */
void redlock_poll_wake(const redlock_poll *poll);

struct redlock_loop_hooks {
    redlock_log_callback on_log;
    redlock_log_level log_level;
    void *log_data;
};

/* NULL if there is no memory or no descriptor, or if the caller's loop refused one; errno says
 * which, or is 0 in the last case. */
struct redlock_loop *redlock_loop_new(const redlock_loop_ops *ops, void *on, const struct redlock_loop_hooks *hooks);
void redlock_loop_delete(struct redlock_loop *loop);
/* The work of redlock_loop_io(). The compiler can inline it in the library's own adapters, which it
 * may not do with an exported function. */
void redlock_loop_report(redlock_loop_watch *watch, unsigned events);
/* In a child process, before anything of the loop is deleted. */
void redlock_loop_enter_child(struct redlock_loop *loop);

void redlock_loop_reactor(struct redlock_loop *loop, struct redlock_reactor *reactor);
/* The same for any argument, both of them. */
int64_t redlock_loop_now_ns(void *loop);
int64_t redlock_loop_wall_us(void *loop); /* never negative */
int redlock_loop_random(void *loop, void *buffer, size_t size);
bool redlock_loop_forked(const struct redlock_loop *loop);
void redlock_loop_log(void *loop, redlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void redlock_loop_vlog(struct redlock_loop *loop, redlock_log_level level, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
