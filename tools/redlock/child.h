/* The command that `run` runs: started in a process group of its own, given our signals, stopped when the lease is lost. */
#ifndef TOOL_CHILD_H
#define TOOL_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <ev.h>

#include "signals.h"
#include "terminal.h"

enum { TOOL_FORWARDED_SIGNALS = 8 };

/*
 * | state    | event                            | what happens                                    | next     |
 * | -------- | -------------------------------- | ----------------------------------------------- | -------- |
 * | ABSENT   | a signal                         | dropped                                         | ABSENT   |
 * | ABSENT   | started                          |                                                 | RUNNING  |
 * | RUNNING  | a signal                         | sent to its group                               | RUNNING  |
 * | RUNNING  | it ends                          | the terminal comes back                         | OVER     |
 * | RUNNING  | the lease is lost                | SIGTERM and SIGCONT to its group, grace begins  | STOPPING |
 * | STOPPING | it ends, and so did its group    |                                                 | OVER     |
 * | STOPPING | it ends, others of its group live | look again soon                                | STOPPING |
 * | STOPPING | the grace ends                   | SIGKILL to its group                            | KILLED   |
 * | KILLED   | it ends                          |                                                 | OVER     |
 */
enum tool_child_state {
    TOOL_CHILD_ABSENT = 0,
    TOOL_CHILD_RUNNING,
    TOOL_CHILD_STOPPING,
    TOOL_CHILD_KILLED,
    TOOL_CHILD_OVER
};

struct tool_child {
    enum tool_child_state state;
    struct ev_loop *loop;
    const struct tool_signals *signals;
    bool (*may_run)(void *data); /* asked before a stopped command is continued: is the lease still ours? */
    void *data;
    pid_t pid;         /* and its process group */
    bool reaped;       /* wait_status is there */
    int wait_status;   /* as of waitpid() */
    bool had_terminal; /* when it ended */
    struct tool_terminal terminal;
    ev_child watcher;
    ev_timer kill_timer;
    ev_timer group_timer;
    ev_signal forwarders[TOOL_FORWARDED_SIGNALS];
    ev_signal suspend;
    ev_signal resume;
};

/* Prepares an absent child and takes over its signals. */
void tool_child_init(struct tool_child *child, struct ev_loop *loop, const struct tool_signals *signals,
                     bool (*may_run)(void *data), void *data);

/* Returns 0, or the errno of what failed; then *in_exec says whether that was the exec. */
int tool_child_start(struct tool_child *child, char **argv, bool *in_exec);

/* The lease is lost: stop what runs. */
void tool_child_stop(struct tool_child *child, int64_t grace_ms);

/* 0 to 255: its own status, or 128 + n. */
int tool_child_exit_status(const struct tool_child *child);

/* Gives the signals up. */
void tool_child_end(struct tool_child *child);

#endif
