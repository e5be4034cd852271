/* The tests' blocking RESP client: one request, one reply as text. */
#include "raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support.h"

static void raw_init(struct raw *raw) {
    memset(raw, 0, sizeof *raw);
    raw->fd = -1;
    raw->timeout_ms = 5000;
}

bool raw_open_tcp(struct raw *raw, const char *host, int port) {
    raw_init(raw);
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    bool is_v6 = inet_pton(AF_INET6, host, &v6.sin6_addr) == 1;
    if (!is_v6 && inet_pton(AF_INET, host, &v4.sin_addr) != 1) {
        support_fatal("raw_open_tcp: not an address: %s", host);
    }
    raw->fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (raw->fd < 0) {
        return false;
    }
    const struct sockaddr *address = is_v6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4;
    if (connect(raw->fd, address, is_v6 ? sizeof v6 : sizeof v4) != 0) {
        raw_close(raw);
        return false;
    }
    int on = 1;
    setsockopt(raw->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return true;
}

bool raw_open_unix(struct raw *raw, const char *path) {
    raw_init(raw);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        support_fatal("raw_open_unix: too long a path: %s", path);
    }
    strcpy(address.sun_path, path);
    raw->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (raw->fd < 0) {
        return false;
    }
    if (connect(raw->fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        raw_close(raw);
        return false;
    }
    return true;
}

void raw_close(struct raw *raw) {
    if (raw->fd >= 0) {
        close(raw->fd);
    }
    free(raw->text);
    raw->fd = -1;
    raw->text = NULL;
    raw->text_size = raw->text_capacity = 0;
    raw->start = raw->end = 0;
}

static void text_add(struct raw *raw, const char *bytes, size_t size) {
    if (raw->text_size + size + 1 > raw->text_capacity) {
        raw->text_capacity = (raw->text_size + size + 1) * 2;
        raw->text = realloc(raw->text, raw->text_capacity);
        if (!raw->text) {
            support_fatal("raw client: out of memory");
        }
    }
    memcpy(raw->text + raw->text_size, bytes, size);
    raw->text_size += size;
    raw->text[raw->text_size] = '\0';
}

static const char *broken(struct raw *raw, const char *what) {
    if (raw->fd >= 0) {
        close(raw->fd);
    }
    raw->fd = -1;
    raw->start = raw->end = 0;
    raw->text_size = 0;
    text_add(raw, "-IO ", 4);
    text_add(raw, what, strlen(what));
    return raw->text;
}

bool raw_send_argv(struct raw *raw, const char *const *argv) {
    size_t count = 0, size = 32;
    for (; argv[count]; count++) {
        size += strlen(argv[count]) + 32;
    }
    char *bytes = malloc(size);
    if (!bytes) {
        support_fatal("raw client: out of memory");
    }
    size_t used = (size_t)sprintf(bytes, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        used += (size_t)sprintf(bytes + used, "$%zu\r\n%s\r\n", strlen(argv[i]), argv[i]);
    }
    size_t sent = 0;
    while (raw->fd >= 0 && sent < used) {
        ssize_t n = send(raw->fd, bytes + sent, used - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            break;
        }
        sent += (size_t)n;
    }
    free(bytes);
    return sent == used;
}

static bool fill(struct raw *raw, int64_t deadline_ms) {
    for (;;) {
        int64_t left = deadline_ms - support_now_ms();
        struct pollfd wait = {.fd = raw->fd, .events = POLLIN};
        int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready <= 0) {
            return false;
        }
        ssize_t n = recv(raw->fd, raw->input, sizeof raw->input, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        raw->start = 0;
        raw->end = (size_t)n;
        return true;
    }
}

static bool take(struct raw *raw, char *byte, int64_t deadline_ms) {
    if (raw->start == raw->end && !fill(raw, deadline_ms)) {
        return false;
    }
    *byte = raw->input[raw->start++];
    return true;
}

/* Reads up to CRLF and leaves it out. */
static bool take_line(struct raw *raw, char *line, size_t size, int64_t deadline_ms) {
    size_t used = 0;
    char byte;
    while (take(raw, &byte, deadline_ms)) {
        if (byte == '\n' && used > 0 && line[used - 1] == '\r') {
            line[used - 1] = '\0';
            return true;
        }
        if (used + 1 >= size) {
            return false;
        }
        line[used++] = byte;
    }
    return false;
}

static bool take_bulk(struct raw *raw, size_t size, int64_t deadline_ms) {
    char byte;
    for (size_t i = 0; i < size + 2; i++) {
        if (!take(raw, &byte, deadline_ms)) {
            return false;
        }
        if (i < size) {
            text_add(raw, &byte, 1);
        }
    }
    return true;
}

static bool read_reply(struct raw *raw, int64_t deadline_ms) {
    char line[1024];
    if (!take_line(raw, line, sizeof line, deadline_ms)) {
        return false;
    }
    long long number = atoll(line + 1);
    switch (line[0]) {
    case '-':
        text_add(raw, line, strlen(line));
        return true;
    case '+':
    case ':':
        text_add(raw, line + 1, strlen(line + 1));
        return true;
    case '$':
        if (number >= 0) {
            return take_bulk(raw, (size_t)number, deadline_ms);
        }
        text_add(raw, "(nil)", 5);
        return true;
    case '*':
        if (number < 0) {
            text_add(raw, "(nil)", 5);
        }
        for (long long i = 0; i < number; i++) {
            if (!read_reply(raw, deadline_ms)) {
                return false;
            }
            text_add(raw, "\n", 1);
        }
        return true;
    default:
        return false;
    }
}

const char *raw_read(struct raw *raw) {
    raw->text_size = 0;
    text_add(raw, "", 0);
    if (raw->fd < 0) {
        return broken(raw, "not connected");
    }
    if (!read_reply(raw, support_now_ms() + raw->timeout_ms)) {
        return broken(raw, "no reply, or the connection broke");
    }
    return raw->text;
}

const char *raw_ask_argv(struct raw *raw, const char *const *argv) {
    if (raw->fd < 0) {
        return broken(raw, "not connected");
    }
    if (!raw_send_argv(raw, argv)) {
        return broken(raw, "cannot send");
    }
    return raw_read(raw);
}
