/* The socket of a run, by which `redlock-chaos fault` asks for faults by hand. */
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "fault.h"

enum { ANSWER_MAX = 1024 };

/* A socket's path holds 107 bytes; by its directory's descriptor every path is short. */
static int open_directory(const char *directory, struct sockaddr_un *address, char *error, size_t error_size) {
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(error, error_size, "cannot open the directory %s: %s", directory, strerror(errno));
        return -1;
    }
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/control.sock", fd);
    return fd;
}

int chaos_control_listen(const char *directory, char *error, size_t error_size) {
    struct sockaddr_un address;
    int folder = open_directory(directory, &address, error, error_size);
    if (folder < 0) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4) != 0) {
        snprintf(error, error_size, "cannot listen at %s/control.sock: %s", directory, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        fd = -1;
    }
    close(folder);
    return fd;
}

void chaos_control_close(const char *directory, int listener) {
    struct sockaddr_un address;
    char error[256];
    int folder = open_directory(directory, &address, error, sizeof error);
    if (folder >= 0) {
        (void)unlink(address.sun_path); /* in its way it is no more than a file that nobody serves */
        close(folder);
    }
    close(listener);
}

static void limit_time(int fd, int ms) {
    struct timeval time = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    /* Where this is refused, a silent peer would only take longer. */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

/* Up to the newline or the end. False if there is none, or it is too long, or the time is over. */
static bool read_line(int fd, char *line, size_t size) {
    size_t length = 0;
    while (length < size - 1) {
        ssize_t got = recv(fd, line + length, size - 1 - length, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return false;
        }
        length += (size_t)got;
        line[length] = '\0';
        char *newline = strchr(line, '\n');
        if (newline != NULL || got == 0) {
            if (newline != NULL) {
                *newline = '\0';
            }
            return newline != NULL || length > 0;
        }
    }
    return false;
}

void chaos_control_serve(int listener, chaos_control_handler handler, void *ctx) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    char line[CHAOS_FAULT_LINE_MAX], error[ANSWER_MAX - 16] = "", answer[ANSWER_MAX] = "ok\n";
    limit_time(fd, 200);
    if (!read_line(fd, line, sizeof line)) {
        snprintf(answer, sizeof answer, "error: no line of up to %d bytes came\n", CHAOS_FAULT_LINE_MAX - 1);
    } else if (!handler(ctx, line, error, sizeof error)) {
        snprintf(answer, sizeof answer, "error: %s\n", error);
    }
    /* Who has gone does not hear it. */
    (void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    close(fd);
}

bool chaos_control_ask(const char *directory, const char *line, char *error, size_t error_size) {
    struct sockaddr_un address;
    int folder = open_directory(directory, &address, error, error_size);
    if (folder < 0) {
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char request[CHAOS_FAULT_LINE_MAX + 1], answer[ANSWER_MAX];
    int length = snprintf(request, sizeof request, "%s\n", line);
    bool worked = false;
    if (length >= (int)sizeof request) {
        snprintf(error, error_size, "the fault's line is longer than %d bytes", CHAOS_FAULT_LINE_MAX - 1);
    } else if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        snprintf(error, error_size,
                 "no experiment runs in %s: %s at its control.sock; start one by `redlock-chaos run --output %s`",
                 directory, strerror(errno), directory);
    } else {
        /* Beginning a fault asks each node, half a second at most; docker takes longer. */
        limit_time(fd, 60000);
        if (send(fd, request, (size_t)length, MSG_NOSIGNAL) != length || !read_line(fd, answer, sizeof answer)) {
            snprintf(error, error_size, "the experiment in %s did not answer: %s", directory, strerror(errno));
        } else {
            worked = strcmp(answer, "ok") == 0;
            const char *sentence = strncmp(answer, "error: ", 7) == 0 ? answer + 7 : answer;
            snprintf(error, error_size, "%s", worked ? "" : sentence);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    close(folder);
    return worked;
}
