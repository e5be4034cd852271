/* The small common parts of the test helpers. */
#include "support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t support_now_ns(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) {
        support_fatal("CLOCK_BOOTTIME: %s", strerror(errno));
    }
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t support_now_ms(void) {
    return support_now_ns() / 1000000;
}

void support_fatal(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("test support: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(EXIT_FAILURE);
}

void support_pause_ms(int ms) {
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
}

int support_listen(int *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        support_fatal("cannot listen on 127.0.0.1: %s", strerror(errno));
    }
    *port = ntohs(address.sin_port);
    return fd;
}

int support_free_port(void) {
    int port;
    close(support_listen(&port));
    return port;
}

char *support_read_file(const char *path) {
    FILE *file = fopen(path, "re");
    if (!file) {
        return NULL;
    }
    size_t used = 0, capacity = 4096;
    char *text = malloc(capacity);
    while (text) {
        used += fread(text + used, 1, capacity - used - 1, file);
        text[used] = '\0';
        if (used + 1 < capacity) {
            break;
        }
        char *more = realloc(text, capacity *= 2);
        if (!more) {
            free(text);
        }
        text = more;
    }
    fclose(file);
    if (!text) {
        support_fatal("out of memory");
    }
    return text;
}

void support_write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
        support_fatal("cannot write %s: %s", path, strerror(errno));
    }
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    return remove(path);
}

void support_remove_tree(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Reads paths, each with a newline at its end, until the last writer is dead. Then removes what is
 * left of them. */
_Noreturn static void clean_up_after(int fd) {
    static char paths[65536];
    size_t used = 0;
    ssize_t n;
    while ((n = read(fd, paths + used, sizeof paths - 1 - used)) > 0 || (n < 0 && errno == EINTR)) {
        used += n > 0 ? (size_t)n : 0;
        if (used == sizeof paths - 1) {
            _exit(1); /* thousands of servers: that test must clean up itself */
        }
    }
    for (char *path = strtok(paths, "\n"); path; path = strtok(NULL, "\n")) {
        /* The servers die with the test, but not at once. */
        for (int tries = 0; tries < 100 && access(path, F_OK) == 0; tries++) {
            support_remove_tree(path);
            support_pause_ms(tries);
        }
    }
    _exit(0);
}

void support_remove_tree_at_death(const char *path) {
    static int janitor = -1;
    if (janitor < 0) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            support_fatal("pipe2: %s", strerror(errno));
        }
        pid_t pid = fork();
        if (pid < 0) {
            support_fatal("fork: %s", strerror(errno));
        }
        if (pid == 0) {
            setpgid(0, 0); /* signals to the test's group must not end it */
            if (ends[0] != 3) {
                dup2(ends[0], 3);
            }
            for (int fd = 0; fd < 1024; fd++) {
                if (fd != 3) {
                    close(fd);
                }
            }
            clean_up_after(3);
        }
        close(ends[0]);
        janitor = ends[1];
    }
    char line[256];
    int size = snprintf(line, sizeof line, "%s\n", path);
    if (size < 0 || (size_t)size >= sizeof line || write(janitor, line, (size_t)size) != size) {
        support_fatal("the process that cleans up does not listen");
    }
}
