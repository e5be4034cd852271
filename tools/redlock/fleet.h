/* What all clients of the nodes must agree on, from the command line or else the environment. */
#ifndef TOOL_FLEET_H
#define TOOL_FLEET_H

#include "options.h"

/*
 * Fills in guards, the longest ttl and the fencing counters' names from the environment where the command line is silent, then the
 * default ttl, and checks that they fit together. Returns 0, or TOOL_EXIT_USAGE after saying what is wrong.
 */
int tool_fleet_settle(struct tool_options *options);

#endif
