/* Preloaded: an execvp() that makes the file $SLOW_EXEC_GATE.reached and waits for
 * $SLOW_EXEC_GATE. */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*exec_function)(const char *file, char *const argv[]);

static exec_function real_execvp;
static const char *gate;
static char reached[4096];

/* The child of a process with threads may not call this. */
__attribute__((constructor)) static void prepare(void) {
    *(void **)&real_execvp = dlsym(RTLD_NEXT, "execvp");
    gate = getenv("SLOW_EXEC_GATE");
    if (gate != NULL) {
        snprintf(reached, sizeof reached, "%s.reached", gate);
    }
}

__attribute__((visibility("default"))) int execvp(const char *file, char *const argv[]) {
    if (gate != NULL) {
        close(open(reached, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        while (access(gate, F_OK) != 0) {
            poll(NULL, 0, 10);
        }
    }
    return real_execvp(file, argv);
}
