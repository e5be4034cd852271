/* Reports failures and votes, to people and as JSON. */
#ifndef TOOL_REPORT_H
#define TOOL_REPORT_H

#include <limits.h>

#include <redlock/redlock.h>

#include "json.h"
#include "session.h"
#include "values/values.h"

/* The exit status for a redlock_error. */
int tool_report_exit_status(const struct tool_options *options, int code);

/* Prints a sentence on stderr, after "redlock: "; nothing with -q. Not with --json: then everything
 * on standard error is an object of its own line. */
void tool_report_note(const struct tool_options *options, enum tool_words_level level, const char *text);

/* Ends an object on standard error, and sends it. */
void tool_report_send(struct tool_json *json, const struct tool_options *options, enum tool_words_level level);

/* A line on standard error, also with -q: "redlock: ", the mark and the text, made safe for a
 * terminal, or with --json {key:name,"message":text}. */
void tool_report_line(const struct tool_options *options, enum tool_words_level level, enum tool_words_kind kind,
                      const char *key, const char *name, const char *mark, const char *text);

/* The sentence of the macros below, by its format: as long as a path, and what is said of it. */
#define TOOL_SENTENCE(...) TOOL_TEXT(PATH_MAX + 1024, __VA_ARGS__)

/* What cannot be written, or what becomes of it: on standard error, as a sentence or as the error
 * OUTPUT. */
#define tool_report_output(options, ...) tool_report_unwritten(options, TOOL_SENTENCE(__VA_ARGS__))
void tool_report_unwritten(const struct tool_options *options, const char *text);

#define TOOL_WARNING_SETTINGS "NODE_SETTINGS" /* of nodes that work */

/* Prints "redlock: warning: …", or with --json {"warning":name,"message":…}, always on stderr;
 * nothing with -q, or with --no-warn for this name. */
#define tool_report_warn(options, name, ...) tool_report_warning(options, name, TOOL_SENTENCE(__VA_ARGS__))
void tool_report_warning(const struct tool_options *options, const char *name, const char *text);

/* Reports the failure in session->code and session->result, as a sentence or as JSON, with what it
 * means, if that is not NULL: a sentence more, or a member "explanation". Returns its exit
 * status. */
int tool_report_failure(const struct tool_session *session, const char *explanation);

/* The same for an acquire that failed, with the time waited and what to do. With -E, a contended
 * lock is reported as JSON only. */
int tool_report_not_acquired(const struct tool_session *session);

/* Reports a code of the library without a result; returns its exit status. */
int tool_report_code(const struct tool_session *session, int code);

/* Reports a failure with the tool's own sentence. name is the "error" of the JSON object. */
#define tool_report_error(options, name, ...) tool_report_sentence(options, name, TOOL_SENTENCE(__VA_ARGS__))
void tool_report_sentence(const struct tool_options *options, const char *name, const char *message);
/* Where the system failed; the exit status. */
#define tool_report_system(options, ...) (tool_report_error(options, "SYSTEM", __VA_ARGS__), TOOL_EXIT_SYSTEM)

/* Writes the name of the resource; an array of names if there are several. */
void tool_report_name(struct tool_json *json, const char *key, const struct tool_options *options);

/* With four digits and a comma each. */
#define TOOL_SLOTS_SIZE (5 * REDLOCK_PERMITS_MAX + 1)
/* "3,17": the slots of its permits; "" for a lock. */
const char *tool_report_slots(const struct tool_session *session, char *buffer, size_t size);

/* Writes "resource" and "token"; of several, "resources":[…], with them in each. Of a lease that
 * was acquired, with the rest that each has of its own; NULL: of the options. */
void tool_report_items(struct tool_json *json, const struct tool_options *options, const redlock_lease *acquired);

/* Writes how the acquire waited: "waited_ms", "handed_over" and "passed_over". */
void tool_report_wait(struct tool_json *json, const struct tool_session *session);

/* run --json that waited: an object on standard error says that the lock is held, and how it
 * waited. */
void tool_report_acquired(const struct tool_session *session);

/* Writes "votes":[…]; for status with the holders. */
void tool_report_votes(struct tool_json *json, const redlock_result *result, bool holders);

/* Flushes standard output. Returns 0, or TOOL_EXIT_OUTPUT after printing why. */
int tool_report_flush(const struct tool_options *options);

#endif
