/*
 * Which process group is in the foreground of the terminal: the tool's or its command's.
 *
 * The command has its own process group, so that a loss can stop all of it. The terminal must be
 * given to that group, or the command could not read from it. Then Ctrl-C and Ctrl-Z reach only the
 * command, and the tool passes them on to its own group.
 */
#ifndef TOOL_TERMINAL_H
#define TOOL_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct tool_terminal {
    bool handed; /* the command's group has the terminal */
};

/*
 * Whether the command gets the terminal at its start: standard input and output are the terminal,
 * and our group is in its foreground. A command in a pipeline gets it only when it reads from it,
 * because its neighbours may need it, too.
 */
bool tool_terminal_wanted(void);

/* Whether our group is in the foreground of the terminal at standard input. */
bool tool_terminal_is_ours(void);

/* Puts group into the foreground. Works from the command's process and from ours. SIGTTOU must be
 * ignored or blocked. */
void tool_terminal_give(pid_t group);

/* Puts our own group back into the foreground. */
void tool_terminal_take_back(struct tool_terminal *terminal);

#endif
