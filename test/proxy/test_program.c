/* redlock-proxy: which commands it understands, and how it begins and ends. */
#include <arpa/inet.h>
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
#include <unistd.h>

#define TIMEOUT_MS   20000
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

static void await(int fd, const char *what) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    if (poll(&one, 1, TIMEOUT_MS) <= 0) {
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
        await(from_proxy, "a line from the proxy");
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

int main(int argc, char **argv) {
    CHECK(argc == 2 && signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    for (int tries = 1; !start_proxy(argv[1]); tries++) {
        CHECK(stop_proxy() == 1 && tries < PORTS_TO_TRY);
    }
    test_commands();
    CHECK(stop_proxy() == 0);
    return 0;
}
