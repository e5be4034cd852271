/* Settings that must fit together: those that all clients of the nodes must share, TLS, status. */
#ifndef TOOL_SETTINGS_H
#define TOOL_SETTINGS_H

#include "options.h"

/* Each returns 0, or an exit status after printing what is wrong. */

/* Fills in what the command line does not set, from the environment and by default: guards, the
 * longest ttl, the names of the keys, the ttl, TLS. */
int tool_settings_complete(struct tool_options *options);

/* Checks what goes together in one command; after the operands. */
int tool_settings_check(struct tool_options *options);

/* With --tls: nodes without a scheme become rediss://, and redis:// is an error. */
int tool_settings_nodes(struct tool_options *options);

/* The values of --permits and of --slots. */
int tool_settings_permits(struct tool_options *options, const char *label, const char *text);
int tool_settings_slots(struct tool_options *options, const char *label, const char *text);

#endif
