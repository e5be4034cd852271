/* What stands on the command line beside options: the nodes, the resource, the token, the command to run. */
#ifndef TOOL_OPERANDS_H
#define TOOL_OPERANDS_H

#include "options.h"

/* Each returns 0, or an exit status after saying what is wrong. */

/* Cuts the list of nodes into its URIs; without -n it is the environment's. */
int tool_operands_nodes(struct tool_options *options);

/* Gives options->operands their meaning. dashes: how many of them stood before '--', or -1. */
int tool_operands_take(struct tool_options *options, int dashes);

#endif
