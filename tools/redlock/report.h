/* How failures and votes are told, to people and as JSON. */
#ifndef TOOL_REPORT_H
#define TOOL_REPORT_H

#include <redlock/redlock.h>

#include "json.h"
#include "session.h"

/* The exit status for a redlock_error. */
int tool_report_exit_status(const struct tool_options *options, int code);

/* A sentence on stderr, begun with "redlock: "; nothing with -q. */
__attribute__((format(printf, 2, 3))) void tool_report_say(const struct tool_options *options, const char *format, ...);

/* "redlock: warning: …", or with --json {"warning":name,"message":…}, always on stderr; nothing with -q. */
__attribute__((format(printf, 3, 4))) void tool_report_warn(const struct tool_options *options, const char *name,
                                                            const char *format, ...);

/* Tells the failure in session->code and session->result, as a sentence or as JSON; returns its exit status. */
int tool_report_failure(const struct tool_session *session);

/* The same for a lock that was asked for, with how long was waited and what to do. A refusal that -E expects is told as
 * JSON only. */
int tool_report_not_acquired(const struct tool_session *session);

/* Tells a failure with a sentence of ours; name is the "error" of the JSON object, result may be NULL. */
void tool_report_error(const struct tool_options *options, const char *name, const char *message,
                       const redlock_result *result);

/* "votes":[…]; for status with the holders. */
void tool_report_votes(struct tool_json *json, const redlock_result *result, bool holders);

/* Flushes standard output. Returns 0, or TOOL_EXIT_OUTPUT after saying why. */
int tool_report_flush(const struct tool_options *options);

#endif
