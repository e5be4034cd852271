/* The signal dispositions and mask that the tool was started with, which the child of `run` gets back. */
#ifndef TOOL_SIGNALS_H
#define TOOL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct tool_signals {
    sigset_t mask;
    bool ignored[NSIG];
};

/*
 * Records them, then unblocks everything and ignores SIGPIPE and SIGTTOU: a closed standard output shall release the
 * lock and not kill the tool, and the terminal may have been handed to the child.
 */
void tool_signals_begin(struct tool_signals *signals);

/* In the child, between fork and exec, with every signal blocked: puts everything back. Async-signal-safe. */
void tool_signals_restore(const struct tool_signals *signals);

#endif
