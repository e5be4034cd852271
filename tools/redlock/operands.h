/* The operands of the command line: command, nodes, resource, token, and what to run. */
#ifndef TOOL_OPERANDS_H
#define TOOL_OPERANDS_H

#include "options.h"

/* For a sentence. */
#define TOOL_COMMANDS "run, elect, acquire, extend, downgrade, release, clear, status and help"

/* "run", "acquire", …; "" for none. */
const char *tool_command_name(enum tool_command command);

/* Each returns 0, or an exit status after printing what is wrong. */

/* Sets the command of this name; "help COMMAND" is "COMMAND --help". */
int tool_operands_command(struct tool_options *options, const char *name);

/* Whether a second word before '--' is one more RESOURCE: '--' is still to come. */
bool tool_operands_goes_on(const struct tool_options *options, char **words);

/* Refuses a second word before '--': the options behind a command that is to run would be taken for
 * ours. */
int tool_operands_refuse(const struct tool_options *options, const char *resource, char **words);

/* Takes the nodes from -n, from --nodes-file, from REDLOCK_NODES, or from REDLOCK_NODES_FILE. */
int tool_operands_nodes(struct tool_options *options);

/* Checks options->operands and sets the resources and their tokens. */
int tool_operands_take(struct tool_options *options);

#endif
