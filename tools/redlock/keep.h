/* run --at-least: the lock stays after a success, until so long after its start. */
#ifndef TOOL_KEEP_H
#define TOOL_KEEP_H

#include "work.h"

/*
 * Nobody is there to hold the lock once the tool has ended, so its keys must live by their ttl:
 *
 * | the command                    | the lock                                                 |
 * | ------------------------------ | -------------------------------------------------------- |
 * | fails, cannot be run, a signal | is released at once                                      |
 * | succeeds after that time       | is released                                              |
 * | succeeds before                | its ttl becomes the rest of the time; nobody releases it |
 * | is stopped by a loss           | was lost: nothing to keep                                |
 *
 * Times are read from CLOCK_BOOTTIME, from the moment at which the lock was taken. An extension
 * that finds no quorum is tried again for as long as the lease is valid.
 */

/* Whether the lock must stay after a command with this exit status. */
bool tool_keep_is_due(const struct tool_session *session, const struct tool_work *work, int status);

/* Lets it stay, and ends the lease. Reports what goes wrong. Returns the exit status, if that of
 * the command is `status`. */
int tool_keep(struct tool_session *session, struct tool_work *work, redlock_lease *lease, int status);

#endif
