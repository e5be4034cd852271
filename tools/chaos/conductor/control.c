/* The socket of a run, by which `redlock-chaos fault` asks for faults by hand. */
#include "conductor/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "faults/fault.h"
#include "history/log.h"

/* Beginning a fault asks each node, half a second at most; docker takes longer. */
enum { ANSWER_MAX = 1024, SERVE_MS = 200, ASK_MS = 60000 };

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
        /* in its way it is no more than a file that nobody serves */
        (void)unlink(address.sun_path);
        close(folder);
    }
    close(listener);
}

static void limit_sending(int fd, int ms) {
    struct timeval time = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    /* Where this is refused, a peer that does not read would only take longer. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

/* Up to the newline or the end, all of it within the time. False with errno if there is none, or it
 * is too long, or the time is over. */
static bool read_line(int fd, char *line, size_t size, int64_t within_ms) {
    int64_t end_us = chaos_now_us() + within_ms * 1000;
    size_t length = 0;
    while (length < size - 1) {
        int64_t left_us = end_us - chaos_now_us();
        struct pollfd one = {fd, POLLIN, 0};
        int ready = left_us <= 0 ? 0 : poll(&one, 1, (int)((left_us + 999) / 1000));
        ssize_t got = ready > 0 ? recv(fd, line + length, size - 1 - length, MSG_DONTWAIT) : -1;
        if (ready == 0) {
            errno = ETIMEDOUT;
            return false;
        }
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
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
            errno = ECONNRESET; /* for one that closes without a word */
            return newline != NULL || length > 0;
        }
    }
    errno = EMSGSIZE;
    return false;
}

void chaos_control_serve(int listener, chaos_control_handler handler, void *ctx) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    char line[CHAOS_FAULT_LINE_MAX], error[ANSWER_MAX - 16] = "", answer[ANSWER_MAX] = "ok\n";
    limit_sending(fd, SERVE_MS);
    if (!read_line(fd, line, sizeof line, SERVE_MS)) {
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
        limit_sending(fd, ASK_MS);
        if (send(fd, request, (size_t)length, MSG_NOSIGNAL) != length ||
            !read_line(fd, answer, sizeof answer, ASK_MS)) {
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
