/* One manager on one loop; makes requests one after another, and runs the loop until each
 * completes. */
#ifndef TOOL_SESSION_H
#define TOOL_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <ev.h>
#include <redlock/redlock.h>

#include "options.h"
#include "signals.h"

struct tool_keys;
struct tool_reload;

enum { TOOL_STOP_SIGNALS = 4, TOOL_COMMAND_SIGNALS = 3 };

struct tool_session {
    const struct tool_options *options;
    const struct tool_signals *signals; /* as they were when the tool began */
    struct ev_loop *loop;
    redlock_manager *manager;
    ev_signal stop_watchers[TOOL_STOP_SIGNALS];
    ev_signal command_watchers[TOOL_COMMAND_SIGNALS];
    int stop_signal;          /* the first of HUP, INT, QUIT, TERM that came; 0: none */
    redlock_request *request; /* pending; such a signal cancels it */
    bool done;                /* the pending request has completed */
    int code;                 /* its code, lease and result */
    redlock_lease *lease;
    redlock_result *result;     /* NULL if there was no memory */
    int64_t opened_ms;          /* CLOCK_BOOTTIME */
    int64_t waited_ms;          /* from the request for the lock to its result */
    int64_t acquired_ms;        /* that moment, by CLOCK_BOOTTIME */
    ev_timer explain_timer;     /* checks for a quorum during the wait for the lock */
    struct tool_reload *reload; /* NULL: no file of nodes to look at */
    struct tool_keys *keys;     /* status --all: where the locks go; NULL: nobody waits for them */
    uint32_t warned_unusable;   /* a bit for each unusable node that was reported */
    uint32_t warned_settings;   /* likewise for each node with risky settings */
    uint32_t warned_far;        /* likewise for each node that is too far away */
    int64_t held_for_ms;        /* how long the keys live; -1: for ever; 0: not known */
    /* Who holds the lock that was refused; "" if it is not known. */
    char held_by[REDLOCK_HOLDER_SIZE_MAX + 1];
    uint32_t slots[REDLOCK_PERMITS_MAX]; /* of the permits that it has */
    size_t slot_count;
    int64_t readers;           /* if more: that is the first of so many who read it */
    char renewal_failed[1024]; /* what the nodes said to the last renewal; "" if it succeeded */
    int raise_signal;          /* the signal to send to our process group at the end; 0: none */
};

/* Creates the manager. Returns 0, or an exit status after printing why. */
int tool_session_open(struct tool_session *session, const struct tool_options *options,
                      const struct tool_signals *signals);

/*
 * Waits until a quorum of nodes is ready and the others have had 50 ms more; with everyone, until
 * every node is ready or has failed. Waits at most for the connect timeout. Fewer nodes are no
 * error here.
 */
void tool_session_connect(struct tool_session *session, bool everyone);

/* The time since the session was opened. */
int64_t tool_session_age_ms(const struct tool_session *session);

/* The time since the lock was taken. */
int64_t tool_session_held_ms(const struct tool_session *session);

/* Frees the last result and resets the state for the next request. */
void tool_session_prepare(struct tool_session *session);

/* The callback of every request. data is the session. */
void tool_session_completed(const redlock_result *result, void *data);

/* Runs the loop until the request has completed; returns its code. started is the return value of
 * the call that made the request. */
int tool_session_finish(struct tool_session *session, int started);

/*
 * Before the first request on a lock: no reader of standard error can block us any more, and nodes
 * are connected. If it waits, a lack of a quorum is explained after a while, until
 * tool_session_stop_explaining(). Returns 0 or an exit status.
 */
int tool_session_begin(struct tool_session *session, bool waits);
void tool_session_stop_explaining(struct tool_session *session);

/*
 * Takes the lock as the options say. Returns whether it is held, with session->lease set. If not,
 * prints why and sets *status, which -E can make 0. A signal ends the wait; nothing is held then.
 */
bool tool_session_acquire(struct tool_session *session, bool auto_extend, redlock_lost_callback on_lost, void *data,
                          int *status);

/* Releases it, and runs the loop until that has completed; returns its code. */
int tool_session_release(struct tool_session *session, redlock_lease *lease);

/* A handle of the locks that have these tokens, or of the session's slots. Returns a code of the
 * library. */
int tool_session_adopt(struct tool_session *session, const redlock_item *items, size_t count, redlock_lease **lease);

/* For a session that a signal stopped: releases a lock that was just taken, prints why, returns the
 * exit status. */
int tool_session_stopped(struct tool_session *session);

/* Watches the signals that stop it, again. */
void tool_session_watch_stop(struct tool_session *session);
/* Stops watching signals. */
void tool_session_ignore_stop(struct tool_session *session);

/* Runs the loop for this time, or until it is over; NULL: nothing ends it earlier. */
void tool_session_rest(struct tool_session *session, int64_t ms, bool (*is_over)(const void *data), const void *data);
/* Whether a signal stopped the session; for the above. */
bool tool_session_is_stopped(const void *session);

redlock_node_info tool_session_node(const struct tool_session *session, size_t index);

/* Closes the manager, which sends pending releases, and frees everything. */
void tool_session_close(struct tool_session *session);

#endif
