/* The operands of the command line: the nodes, the resource, the token, the command to run. */
#ifndef TOOL_OPERANDS_H
#define TOOL_OPERANDS_H

#include "options.h"

/* Each returns 0, or an exit status after printing what is wrong. */

/* Takes the nodes from -n, from --nodes-file, from REDLOCK_NODES, or from REDLOCK_NODES_FILE. */
int tool_operands_nodes(struct tool_options *options);

/* Checks options->operands and sets resource and token. dashes: how many operands stood before
 * '--', or -1. */
int tool_operands_take(struct tool_options *options, int dashes);

/* Removes white space at both ends. */
char *tool_operands_trim(char *text);

/* Checks the next node of a list that has `count`. label says where it stands, separator what
 * stands between two. Returns false after writing what is wrong. Any thread. */
bool tool_operands_check_node(size_t count, const char *uri, const char *label, const char *separator, char *why,
                              size_t why_size);

#endif
