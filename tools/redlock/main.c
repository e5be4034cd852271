/* The tool `redlock`: reads the command line and hands it to a command. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "commands.h"
#include "report.h"
#include "sentry.h"

static int (*const commands[])(struct tool_session *session) = {
    [TOOL_RUN] = tool_run,       [TOOL_ELECT] = tool_elect,         [TOOL_ACQUIRE] = tool_acquire,
    [TOOL_EXTEND] = tool_extend, [TOOL_DOWNGRADE] = tool_downgrade, [TOOL_RELEASE] = tool_release,
    [TOOL_CLEAR] = tool_clear,   [TOOL_STATUS] = tool_status};

/*
 * The next file that is opened, such as a node's socket, would get the number of a closed standard
 * descriptor, and our output would go there. So open /dev/null in the wrong direction: using it
 * fails, as with a closed descriptor.
 */
static void fill_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            /* open() takes the lowest free number, which is fd. */
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/* Ends our process group as the terminal would have. Returns if the signal does not end us. */
static void raise_for_group(int number) {
    prctl(PR_SET_DUMPABLE, 0); /* no core dump for SIGQUIT */
    signal(number, SIG_DFL);
    (void)kill(0, number);
}

int main(int argc, char **argv) {
    struct tool_signals signals;
    struct tool_options options;
    struct tool_session session = {0};
    tool_sentry_init(argc, argv);
    fill_standard_descriptors();
    tool_signals_begin(&signals);
    struct tool_words *words = tool_words_new();
    if (words == NULL) {
        fputs("redlock: out of memory\n", stderr);
        return TOOL_EXIT_SYSTEM;
    }
    int status = tool_options_parse(argc, argv, words, &options);
    if (status == 0 && options.help) {
        tool_help_print(options.command);
        status = tool_report_flush(&options);
    } else if (status == 0 && options.version) {
        const char *tls = redlock_tls_library();
        printf("redlock %s\n%s%s\n", redlock_version(), tls != NULL ? "TLS: " : "without TLS", tls != NULL ? tls : "");
        status = tool_report_flush(&options);
    } else if (status == 0) {
        status = tool_session_open(&session, &options, &signals);
        if (status == 0) {
            status = commands[options.command](&session);
        }
        tool_session_close(&session);
    }
    tool_words_end(words);
    if (session.raise_signal != 0) {
        raise_for_group(session.raise_signal);
    }
    tool_options_free(&options);
    return status;
}
