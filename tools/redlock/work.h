/* The work that a lease guards: the command of `run` and of `elect`. */
#ifndef TOOL_WORK_H
#define TOOL_WORK_H

#include "child.h"
#include "session.h"

/*
 * The command ends before its lease does. Its lease lasts until the deadline, which each renewal
 * moves. SIGKILL comes a margin before the deadline, for what the kernel and a loaded machine need;
 * SIGTERM comes the grace before SIGKILL:
 *
 *     margin   a tenth of the ttl, at most 500 ms
 *     grace    --grace, at most a fifth of the ttl
 *
 * Renewals begin at a third of the ttl, and a failed one is tried again after a quarter of the time
 * left. So the last SIGTERM time, 0.69 of a ttl, leaves them three tries.
 *
 * | state    | event                                | what happens                     | next     |
 * | -------- | ------------------------------------ | -------------------------------- | -------- |
 * | WAITING  | the lease lasts beyond SIGTERM time  | the command starts               | GUARDING |
 * | WAITING  | a signal, or the lease is lost       | no command                       | OVER     |
 * | GUARDING | a renewal                            | all times move                   | GUARDING |
 * | GUARDING | SIGTERM time                         | SIGTERM; SIGKILL by its time     | ENDING   |
 * | GUARDING | a loss that is known earlier (votes, | SIGTERM; SIGKILL after the grace | ENDING   |
 * |          | a clock)                             | or by its old time, the earlier  |          |
 * | GUARDING | the command ends                     |                                  | OVER     |
 * | ENDING   | a renewal: it keeps others out       | nothing: SIGKILL comes as said   | ENDING   |
 * | ENDING   | a loss                               | nothing: it has been reported    | ENDING   |
 * | ENDING   | the command ends                     | the lease is released, if it is  | OVER     |
 * |          |                                      | still held                       |          |
 *
 * In ENDING, `lost` is set: whether the lease is still held then does not matter to the command.
 */
struct tool_work {
    struct tool_session *session;
    struct tool_child child;
    redlock_lease *lease; /* not to be used after the loss */
    int64_t deadline_ns;  /* of the lease, as far as we know; CLOCK_BOOTTIME */
    ev_timer stop_timer;  /* wakes the loop at SIGTERM time */
    bool lost;            /* or about to be */
    bool cut_short;       /* the loss stopped the command, or kept it from beginning */
    bool is_over;         /* the command has succeeded, and a loss is none any more */
    bool warned;          /* already warned of a failed renewal */
    bool warned_reach;    /* already warned that no signal reaches the command */
    char tokens[REDLOCK_ITEMS_MAX][REDLOCK_TOKEN_SIZE_MAX + 1];
    int64_t rest_ms; /* of the lease, when the command had ended */
    char loss[1024]; /* why it was lost */
};

void tool_work_init(struct tool_work *work, struct tool_session *session);

/* Warns of a --grace that does not fit into the ttl. */
void tool_work_check_grace(const struct tool_session *session);

/* The lease is lost: stops the command, if there is one, and reports it. Only once. */
void tool_work_lose(struct tool_work *work, const char *reason);

/* Runs the command until it and, after a loss, its process group have ended. Returns the exit
 * status. The session's signals go to the command; one that comes before stops the session, and
 * there is no command. */
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
