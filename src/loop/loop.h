/* The event loop on libev: clock, timers, descriptors, the flush before each poll, random bytes,
 * and the check for a fork. */
#ifndef REDLOCK_LOOP_LOOP_H
#define REDLOCK_LOOP_LOOP_H

#include <stdarg.h>

#include "loop/reactor.h"

struct redlock_loop;

struct redlock_loop_hooks {
    void *ctx;
    void (*wake)(void *ctx); /* called at the time of redlock_loop_wake_at() */
    redlock_log_callback on_log;
    redlock_log_level log_level;
    void *log_data;
};

/* NULL if there is no memory or no descriptor; errno says which. */
struct redlock_loop *redlock_loop_new(struct ev_loop *ev, const struct redlock_loop_hooks *hooks);
void redlock_loop_delete(struct redlock_loop *loop);

void redlock_loop_reactor(struct redlock_loop *loop, struct redlock_reactor *reactor);
int64_t redlock_loop_now_ns(void *loop);
int64_t redlock_loop_wall_us(void *loop); /* never negative */
int redlock_loop_random(void *loop, void *buffer, size_t size);
void redlock_loop_wake_at(void *loop, int64_t when_ns);
bool redlock_loop_forked(const struct redlock_loop *loop);
void redlock_loop_log(void *loop, redlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void redlock_loop_vlog(struct redlock_loop *loop, redlock_log_level level, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

#endif
