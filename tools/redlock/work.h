/* The work that a lease guards: the command of `run` and of `elect`. */
#ifndef TOOL_WORK_H
#define TOOL_WORK_H

#include "child.h"
#include "session.h"

/* One lease, and the command while that is held. */
struct tool_work {
    struct tool_session *session;
    struct tool_child child;
    redlock_lease *lease; /* not to be used after the loss */
    bool lost;
    bool cut_short; /* the loss stopped the command, or kept it from beginning */
    bool begun;     /* the command has begun, and the lease was checked after that */
    bool is_over;   /* the command has succeeded, and a loss is none any more */
    bool warned;    /* already warned of a failed renewal */
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    int64_t rest_ms;        /* of the lease, when the command had ended */
    uint64_t failed_before; /* renewals of earlier leases that failed */
};

void tool_work_init(struct tool_work *work, struct tool_session *session);

/* The lease is lost: stops the command, if there is one, and reports it. Only once. */
void tool_work_lose(struct tool_work *work, const char *reason);

/* Runs the command until it and, after a loss, its process group have ended. Returns the exit
 * status. The session's signals go to the command. */
int tool_work_do(struct tool_work *work, redlock_lease *lease);

/* The release has ended with this code, and the session has its result. Where too few nodes have
 * confirmed it, asks again for a while. Reports a failure. Returns the exit status, if that of the
 * command is `status`. */
int tool_work_released(struct tool_work *work, int code, int status);

/* After tool_work_do(). Passes on an interrupt that only the command got from the terminal. */
void tool_work_end(struct tool_work *work);

/* Somebody has asked the command or the tool to end: it must not begin again. */
bool tool_work_is_unwanted(const struct tool_work *work);

#endif
