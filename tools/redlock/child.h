/* The command of `run`: starts it in its own process group, sends our signals on to it, and ends it
 * before its lease does. */
#ifndef TOOL_CHILD_H
#define TOOL_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <ev.h>

#include "sentry.h"
#include "signals.h"

enum { TOOL_FORWARDED_SIGNALS = 8, TOOL_ACTIVATION_VARIABLES = 2 };

/*
 * The command has its own process group, so that a loss can stop all of it. The terminal must be
 * given to that group, or the command could not read from it. Then Ctrl-C and Ctrl-Z reach only the
 * command, and the tool passes them on to its own group.
 *
 * Nothing here blocks, not even on the exec, which may take long on a slow disk. Signals go to the
 * whole process group of the command, and to the command where it has left that group. The kill
 * time is a moment of CLOCK_BOOTTIME that each renewal moves. At that time the sentry sends
 * SIGKILL, too, whatever this process does.
 *
 * | state              | event                      | what happens                  | next     |
 * | ------------------ | -------------------------- | ----------------------------- | -------- |
 * | ABSENT             | a signal                   | dropped                       | ABSENT   |
 * | ABSENT             | started                    | the sentry gets the kill time | STARTING |
 * | STARTING           | the exec succeeded         |                               | RUNNING  |
 * | STARTING           | the exec failed            | the terminal comes back       | OVER     |
 * | STARTING           | it must end                | SIGKILL                       | KILLED   |
 * | STARTING, RUNNING  | a signal                   | sent on                       | the same |
 * | STARTING, RUNNING  | the lease is renewed       | the sentry gets the new one   | the same |
 * | STARTING, RUNNING  | it ends                    | the terminal comes back       | OVER     |
 * | RUNNING            | it must end, at once       | SIGKILL                       | KILLED   |
 * | RUNNING            | it must end by a kill time | SIGTERM, SIGCONT              | STOPPING |
 * | STOPPING           | the lease is renewed       | nothing: it must end          | STOPPING |
 * | STOPPING           | a signal                   | sent on                       | STOPPING |
 * | STOPPING           | it ends, and its group     |                               | OVER     |
 * | STOPPING           | it ends, its group lives   | check again soon              | STOPPING |
 * | STOPPING           | the kill time              | SIGKILL                       | KILLED   |
 * | KILLED             | it ends                    |                               | OVER     |
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
    bool (*may_run)(void *data); /* before a stopped command continues: is the lease still ours? */
    void *data;
    pid_t pid;         /* also the id of its process group */
    int report;        /* the pipe on which the child reports its exec; -1: it has reported */
    int exec_error;    /* the errno of an exec that failed */
    bool end_asked;    /* INT, QUIT or TERM came, or HUP while it was being stopped */
    bool reaped;       /* wait_status is set */
    int wait_status;   /* from waitpid() */
    bool has_terminal; /* its group is in the foreground of the terminal */
    bool had_terminal; /* it was when it ended */
    struct tool_sentry sentry;
    char *activation[TOOL_ACTIVATION_VARIABLES]; /* in the environment, of systemd; or NULL */
    ev_io report_watcher;
    ev_child watcher;
    ev_timer kill_timer;
    ev_timer group_timer;
    ev_signal forwarders[TOOL_FORWARDED_SIGNALS];
    ev_signal suspend;
    ev_signal resume;
};

/* Prepares an absent child, and from now on sends it our signals. */
void tool_child_init(struct tool_child *child, struct ev_loop *loop, const struct tool_signals *signals,
                     bool (*may_run)(void *data), void *data);

/* The sentry kills it at kill_ns. Returns 0, or an errno. The result of the exec comes later. */
int tool_child_start(struct tool_child *child, char **argv, int64_t kill_ns);

/* The lease lasts longer: so may the command, unless it is being stopped. */
void tool_child_renew(struct tool_child *child, int64_t kill_ns);

/* Stops the command, if there is one: SIGTERM, and SIGKILL at kill_ns, which may be now. Returns in
 * which state it was: an exec that nobody had noticed yet counts. */
enum tool_child_state tool_child_stop(struct tool_child *child, int64_t kill_ns);

/* The command runs as another user now, as `sudo` does: no signal of ours reaches it. Or it has
 * ended, and that is so of all that is left of its group. */
bool tool_child_is_out_of_reach(const struct tool_child *child);

/* 0 to 255: its own status, or 128 + n after signal n. Not after an exec that failed. */
int tool_child_exit_status(const struct tool_child *child);

/* Stops watching signals and the child. */
void tool_child_end(struct tool_child *child);

#endif
