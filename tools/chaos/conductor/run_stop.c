/* Ends an experiment: whatever still runs, by its id. */
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "conductor/run_state.h"

bool chaos_run_broke(struct chaos_run *run, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->error, sizeof run->error, format, arguments);
    va_end(arguments);
    run->state = CHAOS_BROKEN;
    return false;
}

void chaos_run_leave(struct chaos_run *run, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_array_append_new(run->left, json_string(text));
}

/* Ends what still runs; what cannot be ended is left. */
void chaos_run_stop(struct chaos_run *run) {
    char *left = NULL;
    for (size_t c = 0; c < run->crew.client_count; c++) {
        if (run->crew.clients[c].pid != 0) {
            (void)chaos_crew_signal(&run->crew, c, SIGKILL);
        }
    }
    if (run->crew.auditor != 0) {
        (void)kill(run->crew.auditor, SIGTERM);
    }
    if (run->links_started) {
        chaos_links_stop(&run->links);
    }
    if (run->backend != NULL) {
        run->backend->ops->stop(run->backend, &left);
    }
    if (left != NULL) {
        chaos_run_leave(run, "%s", left);
        free(left);
    }
    /* A process that is still there after two seconds does not obey. */
    int status;
    for (int tries = 0; tries < 200; tries++) {
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid < 0) {
            return;
        }
        if (pid > 0) {
            (void)chaos_crew_ended(&run->crew, pid, status);
        } else {
            (void)poll(NULL, 0, 10);
        }
    }
    if (run->crew.auditor != 0) {
        chaos_run_leave(run, "the auditor (pid %d), which did not end when it was asked to", (int)run->crew.auditor);
        (void)kill(run->crew.auditor, SIGKILL);
    } else {
        chaos_run_leave(run, "a process that did not end");
    }
}
