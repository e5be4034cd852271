/* Where status prints: a terminal that is repainted, or a file that is replaced. */
#ifndef TOOL_SCREEN_H
#define TOOL_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Whether standard output is a terminal that can be repainted. */
bool tool_screen_is_there(void);

/* Repaints the terminal. Leaves out lines and columns for which it has no room. */
void tool_screen_paint(const char *title, const char *text);

/* Replaces the file in one step: who reads it sees all of the old text or all of the new. A device
 * or a pipe is written to. Returns 0 or an errno. */
int tool_screen_replace_file(const char *path, const char *text, size_t size);

#endif
