/* The socket of a run, by which `redlock-chaos fault` asks for faults by hand. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "conductor/run.h"
#include "conductor/run_state.h"
#include "values/values.h"

/* Beginning a fault asks each node, half a second at most; docker takes longer. */
enum { SERVE_MS = 200, ASK_MS = 60000 };

/* A socket's path holds 107 bytes; by its directory's descriptor every path is short. */
static int open_directory(const char *directory, struct sockaddr_un *address, struct chaos_error *error) {
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        chaos_fail(error, "cannot open the directory %s: %s", directory, strerror(errno));
        return -1;
    }
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/control.sock", fd);
    return fd;
}

int chaos_control_listen(const char *directory, struct chaos_error *error) {
    struct sockaddr_un address;
    int folder = open_directory(directory, &address, error);
    if (folder < 0) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4) != 0) {
        chaos_fail(error, "cannot listen at %s/control.sock: %s", directory, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        fd = -1;
    }
    close(folder);
    return fd;
}

void chaos_control_close(const char *directory, int listener) {
    /* in its way it is no more than a file that nobody serves */
    (void)unlink(TOOL_TEXT(PATH_MAX, "%s/control.sock", directory));
    close(listener);
}

/* How long sending and receiving may take. */
static void limit(int fd, int ms) {
    struct timeval time = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    /* Where this is refused, a peer that says nothing would only take longer. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

/* One message. False with errno if none comes in time, or it is empty or too long. */
static bool receive(int fd, char *text, size_t size) {
    ssize_t got = recv(fd, text, size - 1, MSG_TRUNC);
    if (got >= 0) {
        errno = got == 0 ? ECONNRESET : EMSGSIZE;
    }
    text[got > 0 && got < (ssize_t)size ? got : 0] = '\0';
    return text[0] != '\0';
}

void chaos_control_serve(struct chaos_run *run) {
    int fd = accept4(run->control, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    char line[CHAOS_FAULT_LINE_MAX];
    struct chaos_error answer = {""};
    limit(fd, SERVE_MS);
    if (!receive(fd, line, sizeof line)) {
        chaos_fail(&answer, "no line of up to %d bytes came", CHAOS_FAULT_LINE_MAX - 1);
    } else if (chaos_run_by_hand(run, line, &answer)) {
        chaos_fail(&answer, "ok");
    }
    /* Who has gone does not hear it. */
    (void)send(fd, answer.text, strlen(answer.text), MSG_NOSIGNAL);
    close(fd);
}

bool chaos_control_ask(const char *directory, const char *line, struct chaos_error *error) {
    struct sockaddr_un address;
    int folder = open_directory(directory, &address, error);
    if (folder < 0) {
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    bool worked = false;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        chaos_fail(error,
                   "no experiment runs in %s: %s at its control.sock; start one by `redlock-chaos run --output %s`",
                   directory, strerror(errno), directory);
    } else {
        limit(fd, ASK_MS);
        if (send(fd, line, strlen(line), MSG_NOSIGNAL) >= 0 && receive(fd, error->text, sizeof error->text)) {
            worked = strcmp(error->text, "ok") == 0;
        } else {
            chaos_fail(error, "the experiment in %s did not answer: %s", directory, strerror(errno));
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    close(folder);
    return worked;
}
