/* What --help says. */
#ifndef TOOL_HELP_H
#define TOOL_HELP_H

#include "options.h"

/* Writes it to standard output; TOOL_NO_COMMAND is the tool as a whole. */
void tool_help_print(enum tool_command command);

#endif
