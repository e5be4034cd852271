/* Requests as a server reads them: an array of bulk strings. */
#ifndef SIM_COMMAND_H
#define SIM_COMMAND_H

#include <stddef.h>

#define SIM_ARGUMENTS_MAX 16

struct sim_argument {
    const char *bytes;
    size_t size;
};

/* Parses one command. Returns the number of arguments; 0 if the bytes are not exactly one
 * well-formed command. */
size_t sim_command_parse(const char *bytes, size_t size, struct sim_argument arguments[SIM_ARGUMENTS_MAX]);

#endif
