/* One manager on one loop, and requests made one after the other: the loop runs until each has completed. */
#ifndef TOOL_SESSION_H
#define TOOL_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>
#include <redlock/redlock.h>

#include "options.h"
#include "signals.h"

enum { TOOL_STOP_SIGNALS = 4 };

struct tool_session {
    const struct tool_options *options;
    const struct tool_signals *signals; /* as they were when the tool began */
    struct ev_loop *loop;
    redlock_manager *manager;
    ev_signal stop_watchers[TOOL_STOP_SIGNALS];
    int stop_signal;          /* the first of HUP, INT, QUIT, TERM that came while nobody else took it; 0: none */
    redlock_request *request; /* what such a signal cancels */
    bool done;                /* the request under way has completed */
    int code;                 /* its code, lease and result */
    redlock_lease *lease;
    redlock_result *result; /* NULL where memory was short */
    int64_t opened_ms;      /* CLOCK_BOOTTIME */
    ev_timer impatience;    /* looks whether there is a quorum at all while the lock is waited for */
    uint32_t told_unusable; /* a bit for each node that was warned of: it may not vote */
    uint32_t told_settings; /* likewise: its settings are risky */
    int raise_signal;       /* what shall end our process group when all is closed; 0: nothing */
};

/* Creates the manager. Returns 0, or an exit status after saying why. */
int tool_session_open(struct tool_session *session, const struct tool_options *options,
                      const struct tool_signals *signals);

/*
 * Waits until a quorum of nodes is ready and the others had a node timeout's chance, or, with everyone, until every node
 * is ready or has failed; at most the connect timeout. Fewer nodes are not an error here.
 */
void tool_session_connect(struct tool_session *session, bool everyone);

/* Since it was opened. */
int64_t tool_session_age_ms(const struct tool_session *session);

/* The callback of every request. data is the session. */
void tool_session_completed(const redlock_result *result, void *data);

/* started is what the call that made the request returned. Runs the loop until the request has completed; returns its
 * code. */
int tool_session_finish(struct tool_session *session, int started);

/*
 * Takes the lock as the options say. Returns whether it is held, with session->lease set; if not, it has said why and set
 * *status, which -E can make 0. A signal ends the wait: then nothing is held.
 */
bool tool_session_acquire(struct tool_session *session, bool auto_extend, redlock_lost_callback on_lost, void *data,
                          int *status);

/* For a session that a signal stopped: releases what was just taken, says so, returns the exit status. */
int tool_session_stopped(struct tool_session *session);

/* From now on signals are somebody else's. */
void tool_session_ignore_stop(struct tool_session *session);

/* Closes the manager, which flushes releases, and frees everything. */
void tool_session_close(struct tool_session *session);

#endif
