/* The commands. Each does its work in an open session and returns the exit status. */
#ifndef TOOL_COMMANDS_H
#define TOOL_COMMANDS_H

#include "session.h"

int tool_run(struct tool_session *session);
int tool_elect(struct tool_session *session);
int tool_acquire(struct tool_session *session);
int tool_extend(struct tool_session *session);
int tool_downgrade(struct tool_session *session);
int tool_release(struct tool_session *session);
int tool_clear(struct tool_session *session);
int tool_status(struct tool_session *session);

#endif
