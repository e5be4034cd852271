/*
 * The only writer to standard error: writes whole lines.
 *
 * The holder of a lease must renew it, even if nobody reads standard error: a pager waits for a
 * key, Ctrl-S has stopped the terminal, a disk hangs. So a thread writes, and the loop only puts
 * lines into the thread's queue. Simpler ways do not work. O_NONBLOCK belongs to the open file,
 * which our parent and our command share. poll() may report room in a pipe that the command then
 * fills.
 *
 * If standard error goes to systemd's journal, each line begins with its level, as in "<4>". The
 * journal takes that off.
 */
#ifndef TOOL_WORDS_H
#define TOOL_WORDS_H

#include <stdbool.h>
#include <stdio.h>

struct tool_words;

/* How important a line is, as syslog counts it. */
enum tool_words_level {
    TOOL_WORDS_ERROR = 3,
    TOOL_WORDS_WARNING,
    TOOL_WORDS_NOTICE,
    TOOL_WORDS_INFO,
    TOOL_WORDS_DEBUG
};

/* The log may fill only a part of the queue, so that there is always room for a report. */
enum tool_words_kind { TOOL_WORDS_LOG, TOOL_WORDS_REPORT };

/* Starts without a thread: the sender of a line writes it. Returns NULL if there is no memory. */
struct tool_words *tool_words_new(void);

/* From now on no line blocks its sender. Lines that do not fit into the queue are left out and
 * counted; the count is printed when there is room again, as JSON or not. Returns 0 or an errno. */
int tool_words_start(struct tool_words *words, bool json);

/* Print one line here, with its '\n', then call tool_words_send(). It is an ERROR, unless its level
 * is set before it is sent. */
FILE *tool_words_line(struct tool_words *words);
void tool_words_level(struct tool_words *words, enum tool_words_level level);
void tool_words_send(struct tool_words *words, enum tool_words_kind kind);

/* Waits until all lines are written, but gives up when nothing is written for 5 s. The process must
 * end then, and the rest is lost. NULL is allowed. */
void tool_words_end(struct tool_words *words);

#endif
