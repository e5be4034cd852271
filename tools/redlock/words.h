/*
 * All that the tool writes to standard error: whole lines, through one door.
 *
 * Who holds a lease must renew it, whoever reads standard error: a pager that waits for a key, a
 * terminal that Ctrl-S has stopped, a disk that hangs, nobody. So a thread writes, and the loop
 * only puts lines into the thread's queue. Nothing less is enough. O_NONBLOCK belongs to the open
 * file, which our starter and our command use, too. What poll() says of room in a pipe is over as
 * soon as the command has taken that room.
 */
#ifndef TOOL_WORDS_H
#define TOOL_WORDS_H

#include <stdbool.h>
#include <stdio.h>

struct tool_words;

/* The log may fill a part of the queue only, so that it never takes a report's place. */
enum tool_words_kind { TOOL_WORDS_LOG, TOOL_WORDS_REPORT };

/* Without a thread: whoever sends a line writes it. NULL without memory. */
struct tool_words *tool_words_new(void);

/* From now on no line blocks its sender. What does not fit into the queue is left out and counted;
 * the count is told when there is room again, as JSON or not. Returns 0 or an errno. */
int tool_words_start(struct tool_words *words, bool json);

/* What is printed here until the next tool_words_send() is a line; it ends with '\n'. */
FILE *tool_words_line(struct tool_words *words);
void tool_words_send(struct tool_words *words, enum tool_words_kind kind);

/* Waits until all is written, unless for 5 s nothing of it is; then the rest is lost with the
 * process, which must end. Takes NULL. */
void tool_words_end(struct tool_words *words);

#endif
