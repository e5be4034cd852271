/*
 * Who is in the foreground of the terminal: the tool's process group or that of the command that it runs.
 *
 * The command has a process group of its own, so that a loss reaches all of it. Then the terminal must be handed
 * to that group, or the command could not read from it; and what the terminal sends to the command alone (Ctrl-C,
 * Ctrl-Z) is passed back to the tool's own group, which would have had it otherwise.
 */
#ifndef TOOL_TERMINAL_H
#define TOOL_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct tool_terminal {
    bool handed; /* the command's group has it */
};

/* Whether the command shall have the terminal from its start: standard input and output are it, and we have it. A
 * command in a pipeline gets it only when it reads from it, for its neighbours may need it as much. */
bool tool_terminal_wanted(void);

/* Whether our group is in the foreground of the terminal at standard input. */
bool tool_terminal_is_ours(void);

/* From the command's process as well as from ours: puts group into the foreground. SIGTTOU must be ignored or blocked. */
void tool_terminal_give(pid_t group);

/* Puts our own group back. */
void tool_terminal_take_back(struct tool_terminal *terminal);

#endif
