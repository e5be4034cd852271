/* The command line, parsed and checked. */
#ifndef TOOL_OPTIONS_H
#define TOOL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <redlock/redlock.h>

/* The tool's exit statuses; 64 to 75 are those of sysexits.h. */
enum tool_exit {
    TOOL_EXIT_OK = 0,
    TOOL_EXIT_USAGE = 64,
    TOOL_EXIT_NO_QUORUM = 69, /* TOO_SLOW as well: too few nodes answered in time */
    TOOL_EXIT_SYSTEM = 71,    /* memory, random bytes, a system call */
    TOOL_EXIT_OUTPUT = 74,    /* standard output cannot be written */
    TOOL_EXIT_CONTENDED = 75,
    TOOL_EXIT_LOST = 76,
    TOOL_EXIT_CANNOT_EXECUTE = 126,
    TOOL_EXIT_NOT_FOUND = 127,
    TOOL_EXIT_SIGNAL_BASE = 128 /* plus the signal's number */
};

enum tool_command { TOOL_NO_COMMAND = 0, TOOL_RUN, TOOL_ACQUIRE, TOOL_EXTEND, TOOL_RELEASE, TOOL_STATUS };

#define TOOL_NOT_GIVEN INT64_C(-2)

struct tool_options {
    enum tool_command command;
    bool help;
    bool version;
    bool json;
    bool quiet;
    bool verbose;
    const char *node_list; /* as given; may hold passwords: never printed */
    char *node_copy;       /* node_list, cut at its commas */
    const char *nodes[REDLOCK_NODES_MAX];
    size_t node_count;
    int64_t node_timeout_ms;    /* TOOL_NOT_GIVEN: the library's default */
    int64_t connect_timeout_ms; /* never TOOL_NOT_GIVEN after the parsing */
    int64_t ttl_ms;             /* likewise, where the command has one */
    int64_t wait_ms;            /* or REDLOCK_WAIT_FOREVER */
    int64_t grace_ms;
    int64_t max_time_ms; /* 0: no limit */
    int contended_status;
    bool contended_expected; /* -E was given: then it is no failure to be told */
    const char *resource;
    const char *token;
    char **operands; /* status: resources; run: the command and its arguments, terminated by NULL */
    size_t operand_count;
};

/* Says on stderr what is wrong and returns TOOL_EXIT_USAGE, or returns 0. argv is rearranged and must outlive options. */
int tool_options_parse(int argc, char **argv, struct tool_options *options);

void tool_options_free(struct tool_options *options);

/* "run", "acquire", …; "" for none. */
const char *tool_command_name(enum tool_command command);

#endif
