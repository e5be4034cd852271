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
 * Nothing here waits: not for the exec, either, which takes its time on a slow disk.
 *
 * | state    | event                            | what happens                                    | next     |
 * | -------- | -------------------------------- | ----------------------------------------------- | -------- |
 * | ABSENT   | a signal                         | dropped                                         | ABSENT   |
 * | ABSENT   | started                          |                                                 | STARTING |
 * | STARTING | the exec has succeeded           |                                                 | RUNNING  |
 * | STARTING | the exec has failed              | the terminal comes back                         | OVER     |
 * | STARTING | the lease is lost                | SIGKILL to its group: it has done nothing yet   | KILLED   |
 * | STARTING, RUNNING | a signal                | sent to its group                               | the same |
 * | STARTING, RUNNING | it ends                 | the terminal comes back                         | OVER     |
 * | RUNNING  | the lease is lost                | SIGTERM and SIGCONT to its group, grace begins  | STOPPING |
 * | STOPPING | a signal                         | sent to its group                               | STOPPING |
 * | STOPPING | it ends, and so did its group    |                                                 | OVER     |
 * | STOPPING | it ends, others of its group live | look again soon                                | STOPPING |
 * | STOPPING | the grace ends                   | SIGKILL to its group                            | KILLED   |
 * | KILLED   | it ends                          |                                                 | OVER     |
 */
enum tool_child_state {
    TOOL_CHILD_ABSENT = 0,
    TOOL_CHILD_STARTING,
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
    int report;        /* from where it tells how its exec went; -1: it has */
    int exec_error;    /* the errno of an exec that failed */
    bool reaped;       /* wait_status is there */
    int wait_status;   /* as of waitpid() */
    bool had_terminal; /* when it ended */
    struct tool_terminal terminal;
    ev_io report_watcher;
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

/* Returns 0, or the errno of what failed. What becomes of the exec shows later. */
int tool_child_start(struct tool_child *child, char **argv);

/* The lease is lost: stops what is there. */
void tool_child_stop(struct tool_child *child, int64_t grace_ms);

/* 0 to 255: its own status, or 128 + n. Not where the exec failed. */
int tool_child_exit_status(const struct tool_child *child);

/* Gives the signals up. */
void tool_child_end(struct tool_child *child);

#endif
