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

/* What a user calls the option of the library with which a sentence about bad input begins:
 * "--cacert (or REDLOCK_CACERT)" for ca_file. NULL if it begins with none of TLS. */
const char *tool_tls_option(const char *sentence);

#endif
