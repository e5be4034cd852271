/* The text that --help prints. */
#ifndef TOOL_HELP_H
#define TOOL_HELP_H

#include "options.h"

/* Writes the text to standard output; TOOL_NO_COMMAND stands for the tool as a whole. */
void tool_help_print(enum tool_command command);

#endif
