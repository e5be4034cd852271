/* The signal dispositions and mask at the tool's start, which the child of `run` gets back. */
#ifndef TOOL_SIGNALS_H
#define TOOL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct tool_signals {
    sigset_t mask;
    bool ignored[NSIG];
};

/*
 * Records them, then unblocks all signals and ignores SIGPIPE, SIGXFSZ and SIGTTOU. With the first
 * two, a standard output that is closed, or as large as it may be, would kill the tool before it
 * releases the lock. With SIGTTOU, the tool could not take the terminal back from the child.
 */
void tool_signals_begin(struct tool_signals *signals);

/* Restores them in the child, between fork and exec, with every signal blocked.
 * Async-signal-safe. */
void tool_signals_restore(const struct tool_signals *signals);

#endif
