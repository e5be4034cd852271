/* Both ends of a link, played by the test. */
#include "ends.h"

#include "test.h"
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

static struct sockaddr_in loopback(uint16_t port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool wait_for(int fd, short events, int ms) {
    struct pollfd poll_fd = {.fd = fd, .events = events};
    return poll(&poll_fd, 1, ms) == 1;
}

int ends_listen(uint16_t *port) {
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 512), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

int ends_connect(uint16_t port) {
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
    socklen_t size = sizeof error;
    assert_true(fd >= 0);
    assert_true(connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS);
    assert_true(wait_for(fd, POLLOUT, PATIENCE_MS));
    /* The proxy may have forwarded a refusal already. ends_hear_reset() checks that. */
    struct sockaddr_in peer;
    socklen_t peer_size = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0) {
        assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size), 0);
        assert_int_equal(error, 0);
    }
    return fd;
}

bool ends_is_called(int listener, int ms) {
    return wait_for(listener, POLLIN, ms);
}

int ends_accept(int listener) {
    assert_true(ends_is_called(listener, PATIENCE_MS));
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

void ends_send(int fd, const void *bytes, size_t size) {
    for (size_t gone = 0; gone < size;) {
        ssize_t sent = send(fd, (const char *)bytes + gone, size - gone, MSG_NOSIGNAL);
        if (sent < 0) {
            assert_int_equal(errno, EAGAIN);
            assert_true(wait_for(fd, POLLOUT, PATIENCE_MS));
        } else {
            gone += (size_t)sent;
        }
    }
}

void ends_say(int fd, const char *text) {
    ends_send(fd, text, strlen(text));
}

/* Reads once. Returns the number of bytes, 0 for FIN, or -1 with errno. */
static ssize_t listen_to(int fd, char *bytes, size_t size) {
    assert_true(wait_for(fd, POLLIN, PATIENCE_MS));
    return recv(fd, bytes, size, 0);
}

size_t ends_take(int fd, char *bytes, size_t size) {
    size_t came = 0;
    while (came < size) {
        ssize_t got = listen_to(fd, bytes + came, size - came);
        if (got <= 0) {
            break;
        }
        came += (size_t)got;
    }
    return came;
}

void ends_hear(int fd, const char *text) {
    char bytes[4096] = "";
    size_t size = strlen(text);
    assert_true(size < sizeof bytes);
    bytes[ends_take(fd, bytes, size)] = '\0';
    assert_string_equal(bytes, text);
}

void ends_hear_nothing(int fd, int ms) {
    assert_false(wait_for(fd, POLLIN, ms));
}

void ends_hear_fin(int fd) {
    char byte;
    assert_int_equal(listen_to(fd, &byte, 1), 0);
}

void ends_hear_reset(int fd) {
    char byte;
    assert_int_equal(listen_to(fd, &byte, 1), -1);
    assert_int_equal(errno, ECONNRESET);
}

void ends_close(int fd) {
    assert_int_equal(close(fd), 0);
}

void ends_close_both(int one, int other) {
    ends_close(one);
    ends_close(other);
}

void ends_reset(int fd) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    ends_close(fd);
}

void ends_start(struct ends *ends, size_t clients, size_t nodes) {
    struct chaos_error error = {""};
    for (size_t n = 0; n < nodes; n++) {
        ends->listeners[n] = ends_listen(&ends->ports[n]);
    }
    if (!chaos_links_start(&ends->links, clients, nodes, ends->ports, &error)) {
        fail_msg("%s", error.text);
    }
}

void ends_stop(struct ends *ends) {
    for (size_t n = 0; n < ends->links.nodes; n++) {
        ends_close(ends->listeners[n]);
    }
    chaos_links_stop(&ends->links);
}

void ends_join(struct ends *ends, size_t client, size_t node, int *near, int *far) {
    *near = ends_connect(ends->links.ports[client][node]);
    *far = ends_accept(ends->listeners[node]);
}

void ends_set(struct ends *ends, size_t client, size_t node, struct chaos_link_rule rule) {
    struct chaos_error error = {""};
    if (!chaos_links_set(&ends->links, client, node, &rule, &error)) {
        fail_msg("%s", error.text);
    }
}

void ends_cut(struct ends *ends, size_t client, size_t node) {
    struct chaos_error error = {""};
    if (!chaos_links_cut(&ends->links, client, node, &error)) {
        fail_msg("%s", error.text);
    }
}

void ends_silence(struct ends *ends, size_t client, size_t node, bool silent) {
    struct chaos_error error = {""};
    if (!chaos_links_silence(&ends->links, client, node, silent, &error)) {
        fail_msg("%s", error.text);
    }
}

size_t ends_files(pid_t pid) {
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(directory);
    return count;
}

void ends_wait_files(pid_t pid, size_t count) {
    int64_t deadline_ms = support_now_ms() + PATIENCE_MS;
    while (ends_files(pid) != count && support_now_ms() < deadline_ms) {
        support_pause_ms(5);
    }
    assert_int_equal(ends_files(pid), count);
}

int64_t ends_cpu_ms(pid_t pid) {
    char path[64], line[1024];
    unsigned long user, system;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    (void)fclose(file);
    const char *rest = strrchr(line, ')');
    assert_non_null(rest);
    assert_int_equal(sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
    return (int64_t)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
}
