/* redlock-chaos: experiments with faults on a quorum lock. */
#include <errno.h>
#include <fcntl.h>
#include <redlock/redlock.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conductor/run.h"

/* If a standard file is closed, the next file that is opened takes its place and is written
 * into. */
static bool have_standard_files(void) {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    return fd >= 0 && close(fd) == 0;
}

static int act(const struct chaos_options *options) {
    struct chaos_error error;
    bool interrupted;
    switch (options->command) {
    case CHAOS_RUN:
        return options->compare ? chaos_compare(options) : chaos_run(options, &interrupted);
    case CHAOS_FAULT:
        if (!chaos_control_ask(options->run_directory, options->line, &error)) {
            fprintf(stderr, "redlock-chaos fault: %s\n", error.text);
            return CHAOS_EXIT_BROKEN;
        }
        return CHAOS_EXIT_CLEAN;
    case CHAOS_CHECK:
    case CHAOS_REPORT:
        return chaos_judge(options->run_directory, options->slack_ms, options->command == CHAOS_REPORT,
                           options->porcupine);
    case CHAOS_LIST:
        chaos_options_list();
        break;
    case CHAOS_HELP:
        chaos_options_help();
        break;
    case CHAOS_VERSION:
        printf("redlock-chaos %s\n", redlock_version());
    }
    return CHAOS_EXIT_CLEAN;
}

int main(int argc, char **argv) {
    struct chaos_options options;
    if (!have_standard_files()) {
        fprintf(stderr, "redlock-chaos: cannot open /dev/null: %s\n", strerror(errno));
        return CHAOS_EXIT_BROKEN;
    }
    if (!chaos_options_parse(argc, argv, &options)) {
        return CHAOS_EXIT_USAGE;
    }
    if (options.settings.tls && redlock_tls_library() == NULL) {
        fprintf(stderr, "redlock-chaos: --tls: this program was built without TLS; build it where OpenSSL is\n");
        return CHAOS_EXIT_USAGE;
    }
    int status = act(&options);
    /* A closed pipe is no error: its reader has read what it wanted. */
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE) {
        fprintf(stderr, "redlock-chaos: cannot write to standard output: %s\n",
                errno != 0 ? strerror(errno) : "an earlier write failed");
        return CHAOS_EXIT_BROKEN;
    }
    return status;
}
