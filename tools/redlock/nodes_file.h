/* The list of nodes in a file: one URI a line. */
#ifndef TOOL_NODES_FILE_H
#define TOOL_NODES_FILE_H

#include "options.h"

/*
 * Sets nodes, node_count and node_lines from the file options->nodes_file. Empty lines, and lines
 * that begin with '#', mean nothing. A file that others may write is refused: they could name other
 * nodes. One that others may read, and that has passwords, is warned of. Returns 0, or an exit
 * status after printing what is wrong, which never shows what a line holds.
 */
int tool_nodes_file_read(struct tool_options *options);

#endif
