/* The command line: what is asked for. */
#ifndef CHAOS_OPTIONS_H
#define CHAOS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "faults/experiments.h"

enum chaos_command { CHAOS_RUN, CHAOS_FAULT, CHAOS_CHECK, CHAOS_REPORT, CHAOS_LIST, CHAOS_HELP, CHAOS_VERSION };

/* Exit statuses. */
enum { CHAOS_EXIT_CLEAN = 0, CHAOS_EXIT_VIOLATION = 1, CHAOS_EXIT_USAGE = 2, CHAOS_EXIT_BROKEN = 3 };

struct chaos_options {
    enum chaos_command command;
    const struct chaos_experiment *experiment; /* NULL for none */
    struct chaos_settings settings;
    const char *backend; /* "process" or, if it is composed, "compose" */
    bool composed;
    const char *output;   /* NULL: a new directory here, named after experiment and seed */
    const char *schedule; /* a file, "-" for standard input; NULL for none */
    const char *server;
    const char *compose_file;
    uint32_t kinds; /* of --faults */
    bool kinds_given;
    int64_t seed;
    int64_t slack_ms;
    /* the same without protection, with fencing tokens, and with all */
    bool compare;
    const char *run_directory;       /* fault, check, report */
    bool porcupine;                  /* check, report: Porcupine is asked, too */
    char line[CHAOS_FAULT_LINE_MAX]; /* fault */
    /* as it was typed, and with its seed, for the report; a shell can read it back */
    char command_line[4096];
};

/* False: a sentence is on standard error, and the exit status is CHAOS_EXIT_USAGE. */
bool chaos_options_parse(int argc, char **argv, struct chaos_options *options);
void chaos_options_help(void);
void chaos_options_list(void);

#endif
