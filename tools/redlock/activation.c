/* The variables by which systemd names one process: LISTEN_PID and WATCHDOG_PID. */
#include "activation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[TOOL_ACTIVATION_VARIABLES] = {"LISTEN_PID", "WATCHDOG_PID"};

static int is_ours(const char *value) {
    char *end;
    errno = 0;
    const long pid = value != NULL ? strtol(value, &end, 10) : 0;
    return pid > 0 && errno == 0 && *end == '\0' && pid == (long)getpid();
}

int tool_activation_prepare(struct tool_activation *activation) {
    char room[16];
    *activation = (struct tool_activation){0};
    /* Still our own pid, in as many digits as any may have: the next command is prepared, too. */
    snprintf(room, sizeof room, "%010ld", (long)getpid());
    for (int i = 0; i < TOOL_ACTIVATION_VARIABLES; i++) {
        if (!is_ours(getenv(names[i]))) {
            continue;
        }
        if (setenv(names[i], room, 1) != 0) {
            return errno;
        }
        activation->values[i] = getenv(names[i]);
        /* It names the same process by the inode of its pidfd. */
        if (i == 0 && unsetenv("LISTEN_PIDFDID") != 0) {
            return errno;
        }
    }
    return 0;
}

void tool_activation_take(const struct tool_activation *activation) {
    char text[16];
    char *digit = text + sizeof text - 1;
    *digit = '\0';
    for (long rest = (long)getpid(); rest > 0; rest /= 10) {
        *--digit = (char)('0' + rest % 10);
    }
    for (int i = 0; i < TOOL_ACTIVATION_VARIABLES; i++) {
        if (activation->values[i] != NULL) {
            memcpy(activation->values[i], digit, (size_t)(text + sizeof text - digit));
        }
    }
}
