/* How the tool speaks TLS: command line first, then environment. */
#ifndef TOOL_ENCRYPTION_H
#define TOOL_ENCRYPTION_H

#include "options.h"

/* Fills in what the command line does not set. Returns 0, or TOOL_EXIT_USAGE after printing what is
 * wrong. */
int tool_tls_complete(struct tool_options *options);

/* With --tls: nodes without a scheme become rediss://, and redis:// is an error. Returns 0 or an
 * exit status after printing why. */
int tool_tls_nodes(struct tool_options *options);

#endif
