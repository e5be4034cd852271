/* redlock-proxy over its lines: nothing is too early, and all is in order. Late is allowed. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_MS   20000
#define MS           INT64_C(1000000)
#define FLOOD_SIZE   (64 * 1024 * 1024)
#define STUCK_MS     300
#define PORTS_TO_TRY 20

#define CHECK(condition) ((condition) ? (void)0 : fail("%s:%d: not true: %s", __FILE__, __LINE__, #condition))

static pid_t proxy_pid;
static int to_proxy, from_proxy, targets[2], ports[2];

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    if (proxy_pid > 0) {
        (void)kill(proxy_pid, SIGKILL);
    }
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool is_ready(int fd, short events, int timeout_ms) {
    struct pollfd one = {.fd = fd, .events = events};
    int count = poll(&one, 1, timeout_ms);
    CHECK(count >= 0);
    return count > 0;
}

static void await(int fd, short events, const char *what) {
    if (!is_ready(fd, events, TIMEOUT_MS)) {
        fail("not within %d ms: %s", TIMEOUT_MS, what);
    }
}

/* The proxy: two links to listening sockets of ours. */

static int listen_on_loopback(int *port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, size) == 0 && listen(fd, 16) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &size) == 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static void read_line(char *line, size_t size) {
    size_t used = 0;
    do {
        await(from_proxy, POLLIN, "a line from the proxy");
        CHECK(used + 1 < size);
        if (read(from_proxy, line + used, 1) != 1) {
            line[0] = '\0';
            return;
        }
    } while (line[used++] != '\n');
    line[used - 1] = '\0';
}

/* On ports that were free a moment ago: another process may have taken one meanwhile. */
static bool start_proxy(const char *program) {
    char line[256], ready[64], arguments[2][64];
    int in[2], out[2], target_ports[2];
    for (int i = 0; i < 2; i++) {
        targets[i] = listen_on_loopback(&target_ports[i]);
        (void)close(listen_on_loopback(&ports[i]));
        (void)snprintf(arguments[i], sizeof arguments[i], "%d=%d", ports[i], target_ports[i]);
    }
    CHECK(pipe(in) == 0 && pipe(out) == 0);
    proxy_pid = fork();
    CHECK(proxy_pid >= 0);
    if (proxy_pid == 0) {
        (void)dup2(in[0], 0);
        (void)dup2(out[1], 1);
        for (int i = 0; i < 2; i++) {
            (void)close(in[i]);
            (void)close(out[i]);
        }
        (void)execl(program, program, arguments[0], arguments[1], (char *)NULL);
        _exit(127);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    to_proxy = in[1];
    from_proxy = out[0];
    read_line(line, sizeof line);
    (void)snprintf(ready, sizeof ready, "ready %d %d", ports[0], ports[1]);
    return strcmp(line, ready) == 0;
}

static int stop_proxy(void) {
    int status;
    (void)close(to_proxy);
    CHECK(waitpid(proxy_pid, &status, 0) == proxy_pid);
    proxy_pid = 0;
    (void)close(from_proxy);
    (void)close(targets[0]);
    (void)close(targets[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void say(const char *command) {
    CHECK(write(to_proxy, command, strlen(command)) == (ssize_t)strlen(command));
}

static void command(const char *command, const char *answer) {
    char line[256];
    say(command);
    read_line(line, sizeof line);
    if (strncmp(line, answer, strlen(answer)) != 0) {
        fail("to '%s' the proxy said '%s', not '%s'", command, line, answer);
    }
}

static int connect_to(int port) {
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

static void open_through(int link, int *client, int *target) {
    *client = connect_to(ports[link]);
    await(targets[link], POLLIN, "the proxy's connection to the target");
    *target = accept4(targets[link], NULL, NULL, SOCK_CLOEXEC);
    CHECK(*target >= 0);
}

static void send_text(int fd, const char *text) {
    CHECK(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

static void expect_text(int fd, const char *text) {
    char got[64];
    for (size_t used = 0; used < strlen(text);) {
        await(fd, POLLIN, text);
        ssize_t size = recv(fd, got, strlen(text) - used, 0);
        CHECK(size > 0 && memcmp(got, text + used, (size_t)size) == 0);
        used += (size_t)size;
    }
}

/* 0 for a FIN, else the error. */
static int expect_end(int fd) {
    char byte;
    await(fd, POLLIN, "an end");
    ssize_t size = recv(fd, &byte, 1, 0);
    CHECK(size <= 0);
    return size == 0 ? 0 : errno;
}

static void reset(int fd) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    CHECK(close(fd) == 0);
}

static void test_commands(void) {
    command("set 0 delay_us 5\n", "ok");
    command("set 1 requests delay_us 5 hold 1 replies delay_us 7 both hold 0\n", "ok");
    command("set all delay_us 0\n", "ok");
    command("plan 0 requests inject 0 2 0 0 0d0A\n", "ok");
    command("plan all replies none 0 0 0 0\n", "ok");
    command("plan 0 requests none 0 0 0 0\n", "ok");
    command("treat 0 thaw\n", "ok");
    command("cut 1 fin rst\n", "ok");
    command("count 0\n", "ok 0 0 0 0 0 0 0 0 0 0");
    const char *const bad[] = {"set 2 delay_us 5\n",
                               "set -1 delay_us 5\n",
                               "set 0 delay_us -5\n",
                               "set 0 delay_us 5x\n",
                               "set 0 delay_us\n",
                               "set\n",
                               "\n",
                               "set 0 delay_us 86400000001\n",
                               "set 0 delay_us 5 6\n",
                               "set x delay_us 5\n",
                               "set 0 hold 2\n",
                               "set 0 delay 5\n",
                               "delay_us 0 5\n",
                               "set 0 delay_us 99999999999999999999\n",
                               "plan 0 both cut 0 0 0 0\n",
                               "plan 0 requests rain 0 0 0 0\n",
                               "plan 0 requests cut 0 0 0\n",
                               "plan 0 requests cut 0 0 0 0 0\n",
                               "plan 0 requests inject 0 2 0 0 0d\n",
                               "plan 0 requests inject 0 2 0 0 xxxx\n",
                               "plan 0 requests inject 0 300 0 0 00\n",
                               "treat 0 kindly\n",
                               "cut 0 rst\n",
                               "treat 0 freeze now\n",
                               "cut 0 rst rst rst\n",
                               "count 0 0\n",
                               "count\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        command(bad[i], "error: ");
    }
    say("set 0 dela");
    command("y_us 1\nset 7 delay_us 1\nset 0 delay_us 0\n", "ok");
    command("", "error: ");
    command("", "ok");
}

static void test_delay(void) {
    int clients[2], at_targets[2];
    const int64_t delays_ms[] = {0, 5, 40, 1, 0};
    for (int i = 0; i < 2; i++) {
        open_through(i, &clients[i], &at_targets[i]);
    }
    for (size_t i = 0; i < sizeof delays_ms / sizeof *delays_ms; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "set all delay_us %lld\n", (long long)delays_ms[i] * 1000);
        command(text, "ok");
        for (int k = 0; k < 6; k++) {
            int64_t began = now_ns();
            send_text(clients[k % 2], "PING");
            expect_text(at_targets[k % 2], "PING");
            CHECK(now_ns() - began >= delays_ms[i] * MS);
            send_text(at_targets[k % 2], "PONG!");
            expect_text(clients[k % 2], "PONG!");
            CHECK(now_ns() - began >= 2 * delays_ms[i] * MS);
        }
    }
    for (int i = 0; i < 2; i++) {
        CHECK(close(clients[i]) == 0 && expect_end(at_targets[i]) == 0 && close(at_targets[i]) == 0);
    }
}

/* The delay is the rule's of now: what waits for the old one goes on, in order. */
static void test_delay_that_falls(void) {
    int client, target;
    open_through(0, &client, &target);
    command("set 0 delay_us 60000000\n", "ok");
    send_text(client, "first");
    CHECK(!is_ready(target, POLLIN, 50));
    command("set 0 delay_us 150000\n", "ok");
    send_text(client, "second");
    expect_text(target, "firstsecond");
    int64_t began = now_ns();
    send_text(client, "third");
    CHECK(!is_ready(target, POLLIN, 50) || now_ns() - began >= 150 * MS);
    command("set 0 delay_us 0\n", "ok");
    send_text(client, "fourth");
    expect_text(target, "thirdfourth");
    CHECK(now_ns() - began >= 50 * MS);
    CHECK(close(client) == 0 && expect_end(target) == 0 && close(target) == 0);
}

static void test_half_close(void) {
    int client, target;
    command("set all delay_us 20000\n", "ok");
    open_through(1, &client, &target);
    int64_t began = now_ns();
    send_text(client, "last words");
    CHECK(shutdown(client, SHUT_WR) == 0);
    expect_text(target, "last words");
    CHECK(expect_end(target) == 0 && now_ns() - began >= 20 * MS);
    send_text(target, "answer");
    CHECK(close(target) == 0);
    expect_text(client, "answer");
    CHECK(expect_end(client) == 0 && now_ns() - began >= 40 * MS && close(client) == 0);
    command("set all delay_us 0\n", "ok");
}

static void test_reset(void) {
    int client, target;
    for (int delay = 0; delay < 2; delay++) {
        command(delay ? "set all delay_us 10000\n" : "set all delay_us 0\n", "ok");
        open_through(0, &client, &target);
        send_text(client, "x");
        expect_text(target, "x");
        reset(target);
        CHECK(expect_end(client) == ECONNRESET && close(client) == 0);
        open_through(0, &client, &target);
        send_text(target, "x");
        expect_text(client, "x");
        CHECK(shutdown(client, SHUT_WR) == 0 && expect_end(target) == 0);
        reset(client); /* after its FIN */
        await(target, POLLHUP | POLLERR, "the reset");
        CHECK(recv(target, &(char){0}, 1, 0) <= 0 && close(target) == 0);
    }
    command("set all delay_us 0\n", "ok");
}

static void test_refused(void) {
    CHECK(close(targets[1]) == 0);
    int client = connect_to(ports[1]);
    int end = expect_end(client);
    CHECK((end == 0 || end == ECONNRESET) && close(client) == 0);
}

/* If a target does not read, the proxy stops, too. What it took comes whole and in order. */
static void test_backpressure(void) {
    static unsigned char chunk[65536];
    int client, target;
    size_t sent = 0, got = 0;
    ssize_t size;
    open_through(0, &client, &target);
    while (sent < FLOOD_SIZE && is_ready(client, POLLOUT, STUCK_MS)) {
        for (size_t i = 0; i < sizeof chunk; i++) {
            chunk[i] = (unsigned char)((sent + i) % 251);
        }
        size = send(client, chunk, sizeof chunk, MSG_DONTWAIT | MSG_NOSIGNAL);
        CHECK(size > 0 || errno == EAGAIN);
        sent += size > 0 ? (size_t)size : 0;
        if (sent == 3 * sizeof chunk) {
            command("set 0 delay_us 3000\n", "ok");
        }
    }
    CHECK(sent < FLOOD_SIZE);
    CHECK(shutdown(client, SHUT_WR) == 0);
    for (;;) {
        await(target, POLLIN, "the flood");
        size = recv(target, chunk, sizeof chunk, 0);
        CHECK(size >= 0);
        if (size == 0) {
            break;
        }
        for (ssize_t i = 0; i < size; i++) {
            CHECK(chunk[i] == (got + (size_t)i) % 251);
        }
        got += (size_t)size;
    }
    CHECK(got == sent && close(client) == 0 && close(target) == 0);
    command("set 0 delay_us 0\n", "ok");
}

int main(int argc, char **argv) {
    CHECK(argc == 2 && signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    for (int tries = 1; !start_proxy(argv[1]); tries++) {
        CHECK(stop_proxy() == 1 && tries < PORTS_TO_TRY);
    }
    test_commands();
    test_delay();
    test_delay_that_falls();
    test_half_close();
    test_reset();
    test_backpressure();
    test_refused();
    CHECK(stop_proxy() == 0);
    return 0;
}
