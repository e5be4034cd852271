/* A process of its own that ends the command of `run` and `elect` in time, whatever becomes of the
 * tool. */
#ifndef TOOL_SENTRY_H
#define TOOL_SENTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The tool itself may be stopped, swapped out, busy or killed when its command must end. The sentry
 * does nothing but wait for that time. It holds no descriptor of the tool but the pipe on which its
 * orders come, and is in a process group of its own, with every signal blocked: what stops or ends
 * the tool's group, or the command's, does not reach it.
 *
 * | state    | event                             | what happens                | next     |
 * | -------- | --------------------------------- | --------------------------- | -------- |
 * | IDLE     | an order: this group, this time   |                             | WATCHING |
 * | WATCHING | an order: another time            |                             | WATCHING |
 * | WATCHING | the time                          | SIGKILL to the group        | ends     |
 * | WATCHING | the pipe ends: the tool is dead   | looks for the group, often  | ALONE    |
 * | WATCHING | an order: nothing to watch        |                             | IDLE     |
 * | ALONE    | the group has ended               |                             | ends     |
 * | ALONE    | the time                          | SIGKILL to the group        | ends     |
 * | IDLE     | the pipe ends                     |                             | ends     |
 *
 * The group's leader is meant with it, wherever it has gone. The sentry has a name of its own,
 * lease-sentry, so that `pkill redlock`, `pkill -f redlock` and `killall redlock` leave it alone.
 *
 * Orders that wait are read before the time is looked at. A sentry that was killed has a successor
 * from the next order on; meanwhile the tool sends the same signals by its own timers.
 */
struct tool_sentry {
    int orders; /* the pipe to it; -1: there is none */
};

/* At the start, with the arguments of main(): a sentry writes its name over them. Without this only
 * the name of its thread is its own. */
void tool_sentry_init(int argc, char **argv);

/* Starts it. Call this with every signal blocked. Returns 0 or an errno. */
int tool_sentry_start(struct tool_sentry *sentry);

/* Our own group, from the child that leads it: the tool may be stopped or killed before it could
 * send this. Async-signal-safe. */
void tool_sentry_begin(const struct tool_sentry *sentry, int64_t kill_ns);

/* SIGKILL to this process group at this time; group 0: to none. Never blocks. Returns false if
 * there is no sentry: somebody has ended it. SIGPIPE must be ignored. */
bool tool_sentry_order(const struct tool_sentry *sentry, pid_t group, int64_t kill_ns);

/* Ends it, if there is one. */
void tool_sentry_end(struct tool_sentry *sentry);

#endif
