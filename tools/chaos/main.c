/* redlock-chaos: experiments with faults on a quorum lock. */
#include <redlock/redlock.h>
#include <stdio.h>

#include "control.h"
#include "run.h"

int main(int argc, char **argv) {
    struct chaos_options options;
    char error[1024];
    if (!chaos_options_parse(argc, argv, &options)) {
        return CHAOS_EXIT_USAGE;
    }
    switch (options.command) {
    case CHAOS_RUN:
        return chaos_run(&options);
    case CHAOS_FAULT:
        if (!chaos_control_ask(options.run_directory, options.line, error, sizeof error)) {
            fprintf(stderr, "redlock-chaos fault: %s\n", error);
            return CHAOS_EXIT_BROKEN;
        }
        return CHAOS_EXIT_CLEAN;
    case CHAOS_CHECK:
        return chaos_judge(options.run_directory, options.slack_ms, false);
    case CHAOS_REPORT:
        return chaos_judge(options.run_directory, options.slack_ms, true);
    case CHAOS_LIST:
        chaos_options_list();
        return CHAOS_EXIT_CLEAN;
    case CHAOS_HELP:
        chaos_options_help();
        return CHAOS_EXIT_CLEAN;
    case CHAOS_VERSION:
        printf("redlock-chaos %s\n", redlock_version());
        return CHAOS_EXIT_CLEAN;
    }
    return CHAOS_EXIT_USAGE;
}
