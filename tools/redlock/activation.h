/* The variables by which systemd names one process: LISTEN_PID and WATCHDOG_PID. */
#ifndef TOOL_ACTIVATION_H
#define TOOL_ACTIVATION_H

enum { TOOL_ACTIVATION_VARIABLES = 2 };

/* systemd starts the tool and names that. Sockets and watchdog are meant for the command, which
 * ignores both unless the variables name it. */
struct tool_activation {
    char *values[TOOL_ACTIVATION_VARIABLES]; /* in the environment; NULL: it does not name us */
};

/* Before the fork: makes room in the environment for the pid of any process. Returns 0 or an
 * errno. */
int tool_activation_prepare(struct tool_activation *activation);

/* In the child: the variables that named the tool name this process. Async-signal-safe. */
void tool_activation_take(const struct tool_activation *activation);

#endif
