/* A proxy that passes every byte on after a time: links of 1, 5 or 50 ms, a slow node. */
#include "delay.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LINKS_MAX 64
#define DELAY_MAX INT64_C(60000000) /* us */
#define LINE_SIZE 256
#define BACKLOG   1024
#define EVENTS    256

struct program {
    struct delay_proxy proxy;
    struct delay_source input, timer;
    struct delay_link links[LINKS_MAX];
    size_t link_count;
    char line[LINE_SIZE];
    size_t line_used;
};

__attribute__((format(printf, 1, 2), noreturn)) void delay_fatal(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)fputs("delay: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    exit(1);
}

void delay_watch(const struct delay_proxy *proxy, struct delay_source *source, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, source->fd, &event) != 0) {
        delay_fatal("epoll_ctl: %s", strerror(errno));
    }
}

static void on_listener(struct delay_proxy *proxy, const struct delay_link *link) {
    int client = accept4(link->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) {
        delay_connection_open(proxy, link, client);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        delay_fatal("cannot accept a connection: %s", strerror(errno));
    }
}

static void run_due(struct delay_proxy *proxy) {
    int64_t now = proxy->agenda.count > 0 ? contender_now_ns() : 0;
    for (struct delay_way *way; (way = delay_agenda_due(&proxy->agenda, now)) != NULL;) {
        delay_connection_pump(proxy, way);
    }
}

/* Commands. */

static bool number(const char *text, int64_t largest, int64_t *value) {
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    *value = parsed;
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && parsed <= largest;
}

/* Says what is wrong with the command, or NULL. */
static const char *obey(struct program *program, char *line) {
    char *rest = NULL;
    const char *command = strtok_r(line, " ", &rest), *which = strtok_r(NULL, " ", &rest);
    const char *delay = strtok_r(NULL, " ", &rest);
    int64_t index = 0, delay_us;
    if (command == NULL || strcmp(command, "delay_us") != 0 || delay == NULL || strtok_r(NULL, " ", &rest) != NULL) {
        return "the one command is: delay_us INDEX|all MICROSECONDS";
    }
    bool all = strcmp(which, "all") == 0;
    if (!all && !number(which, (int64_t)program->link_count - 1, &index)) {
        return "there is no such link: an INDEX counts from 0";
    }
    if (!number(delay, DELAY_MAX, &delay_us)) {
        return "MICROSECONDS must be 0 to 60000000";
    }
    for (size_t i = 0; i < program->link_count; i++) {
        if (all || i == (size_t)index) {
            program->links[i].delay_ns = delay_us * 1000;
        }
    }
    return NULL;
}

static void say(const char *before, const char *text) {
    if (printf("%s%s\n", before, text) < 0 || fflush(stdout) != 0) {
        delay_fatal("standard output: %s", strerror(errno));
    }
}

/* False at the end of input. */
static bool on_input(struct program *program) {
    ssize_t got = read(program->input.fd, program->line + program->line_used, LINE_SIZE - program->line_used);
    if (got <= 0) {
        return got < 0 && errno == EINTR;
    }
    program->line_used += (size_t)got;
    for (char *end; (end = memchr(program->line, '\n', program->line_used)) != NULL;) {
        *end = '\0';
        const char *wrong = obey(program, program->line);
        say(wrong == NULL ? "ok" : "error: ", wrong == NULL ? "" : wrong);
        program->line_used -= (size_t)(end + 1 - program->line);
        memmove(program->line, end + 1, program->line_used);
    }
    if (program->line_used == LINE_SIZE) {
        delay_fatal("a command of more than %d bytes", LINE_SIZE - 1);
    }
    return true;
}

static void run(struct program *program) {
    struct delay_proxy *proxy = &program->proxy;
    struct epoll_event events[EVENTS];
    for (;;) {
        int count = epoll_wait(proxy->epoll, events, EVENTS, delay_agenda_timeout_ms(&proxy->agenda));
        if (count < 0 && errno != EINTR) {
            delay_fatal("epoll_wait: %s", strerror(errno));
        }
        for (int i = 0; i < count; i++) {
            struct delay_source *source = events[i].data.ptr;
            switch (source->kind) {
            case DELAY_SOURCE_INPUT:
                if (!on_input(program)) {
                    return;
                }
                break;
            case DELAY_SOURCE_TIMER:
                proxy->agenda.armed_ns = DELAY_NEVER_NS;
                break;
            case DELAY_SOURCE_LISTENER:
                on_listener(&program->proxy, (struct delay_link *)source);
                break;
            case DELAY_SOURCE_END:
                delay_connection_event(&program->proxy, (struct delay_socket *)source, events[i].events);
                break;
            }
        }
        run_due(proxy);
        delay_connection_turn(proxy);
    }
}

/* The start. */

static void add_link(struct program *program, char *argument) {
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    static const int on = 1;
    struct delay_link *link = &program->links[program->link_count];
    char *host = strchr(argument, '='), *port = strrchr(argument, ':');
    struct addrinfo *found;
    int64_t listen_port;
    if (program->link_count == LINKS_MAX || host == NULL || port == NULL || port < host) {
        delay_fatal("at most %d links, each as LISTEN_PORT=TARGET_HOST:TARGET_PORT; not '%s'", LINKS_MAX, argument);
    }
    *host++ = *port++ = '\0';
    if (!number(argument, 65535, &listen_port)) {
        delay_fatal("'%s' is no port", argument);
    }
    int error = getaddrinfo(host, port, &hints, &found);
    if (error != 0) {
        delay_fatal("%s port %s: %s", host, port, gai_strerror(error));
    }
    memcpy(&link->target, found->ai_addr, found->ai_addrlen);
    link->target_size = found->ai_addrlen;
    freeaddrinfo(found);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)listen_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    link->listener =
        (struct delay_source){DELAY_SOURCE_LISTENER, socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (link->listener.fd < 0 || setsockopt(link->listener.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(link->listener.fd, (const struct sockaddr *)&at, sizeof at) != 0 ||
        listen(link->listener.fd, BACKLOG) != 0) {
        delay_fatal("cannot listen on 127.0.0.1:%s: %s", argument, strerror(errno));
    }
    delay_watch(&program->proxy, &link->listener, EPOLLIN);
    program->link_count++;
}

static void start(struct program *program) {
    struct delay_proxy *proxy = &program->proxy;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* where it fails there are fewer connections */
    }
    proxy->epoll = epoll_create1(EPOLL_CLOEXEC);
    program->input = (struct delay_source){DELAY_SOURCE_INPUT, STDIN_FILENO};
    program->timer =
        (struct delay_source){DELAY_SOURCE_TIMER, timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
    proxy->agenda.timer = program->timer.fd;
    proxy->agenda.armed_ns = DELAY_NEVER_NS;
    proxy->agenda.again_last = &proxy->agenda.again_first;
    if (proxy->epoll < 0 || program->timer.fd < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        delay_fatal("cannot start: %s", strerror(errno));
    }
    delay_watch(&program->proxy, &program->timer, EPOLLIN | EPOLLET);
}

int main(int argc, char **argv) {
    static struct program program;
    if (argc < 2) {
        delay_fatal("usage: delay LISTEN_PORT=TARGET_HOST:TARGET_PORT …");
    }
    start(&program);
    for (int i = 1; i < argc; i++) {
        add_link(&program, argv[i]);
    }
    say("ready", "");
    /* A file has no events; all of it is there now. */
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &program.input};
    if (epoll_ctl(program.proxy.epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event) == 0) {
        run(&program);
    } else if (errno == EPERM) {
        while (on_input(&program)) {
        }
    } else {
        delay_fatal("standard input: %s", strerror(errno));
    }
    return 0;
}
