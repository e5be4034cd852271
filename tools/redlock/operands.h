/* The operands of the command line: the nodes, the resource, the token, the command to run. */
#ifndef TOOL_OPERANDS_H
#define TOOL_OPERANDS_H

#include "options.h"

/* Each returns 0, or an exit status after printing what is wrong. */

/* Splits the list of nodes into its URIs; without -n, the list is REDLOCK_NODES. */
int tool_operands_nodes(struct tool_options *options);

/* Checks options->operands and sets resource and token. dashes: how many operands stood before
 * '--', or -1. */
int tool_operands_take(struct tool_options *options, int dashes);

#endif
