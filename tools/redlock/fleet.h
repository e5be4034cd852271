/* Settings that all clients of the nodes must share: command line first, then environment. */
#ifndef TOOL_FLEET_H
#define TOOL_FLEET_H

#include "options.h"

/*
 * Fills in what the command line does not set: guards, the longest ttl and the names of the fencing
 * counters from the environment, then the default ttl. Checks that these settings fit together.
 * Returns 0, or TOOL_EXIT_USAGE after printing what is wrong.
 */
int tool_fleet_complete(struct tool_options *options);

/* Sets the quorum to the number in `text`. Returns as above. */
int tool_fleet_quorum(struct tool_options *options, const char *label, const char *text);

#endif
