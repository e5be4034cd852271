/* The floor of a handover: a releaser and a waiter of raw sockets, one process each. They do the
 * least that a lock on N nodes needs to pass to the next in its queue, so no client can be faster.
 *
 * In each round the releaser queues the waiter on every node, holds for HOLD_US, and sends the
 * RELEASE of its arguments. The waiter notes when a quorum of nodes has told it. The nodes have to
 * be empty, and to know the script. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "contender.h"

#define ANSWER_SECONDS 5
#define BUFFER_SIZE    2048
#define CHANNEL        "redlock:f100f100f100f100f100f100f100f100" /* as long as the library's */
#define USAGE          "usage: floor_handover MS HOLD_US HOST:PORT… -- EVALSHA SHA 1 KEY TOKEN SUFFIX …"

struct request {
    size_t size;
    char bytes[BUFFER_SIZE];
};

struct plan {
    int64_t duration_ms, hold_us;
    unsigned node_count, quorum;
    char *const *at;
    struct request subscribe, seed, release;
    char next[128]; /* the waiter's token */
    char push_head[128], push_tail[512];
};

/* A connection of the waiter. */
struct inbox {
    int fd;
    bool told; /* in this round */
    size_t size;
    char bytes[BUFFER_SIZE];
};

__attribute__((format(printf, 3, 4))) static void print(char *text, size_t room, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, room, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= room) {
        contender_fatal("a key or token is too long");
    }
}

static void add(struct request *request, size_t count, char *const words[]) {
    print(request->bytes + request->size, BUFFER_SIZE - request->size, "*%zu\r\n", count);
    request->size += strlen(request->bytes + request->size);
    for (size_t i = 0; i < count; i++) {
        print(request->bytes + request->size, BUFFER_SIZE - request->size, "$%zu\r\n%s\r\n", strlen(words[i]),
              words[i]);
        request->size += strlen(request->bytes + request->size);
    }
}

static int open_node(const char *at) {
    struct timeval patience = {.tv_sec = ANSWER_SECONDS};
    int fd = contender_open_socket(at);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0) {
        contender_fatal("%s: %s", at, strerror(errno));
    }
    return fd;
}

static void send_request(const char *at, int fd, const struct request *request) {
    if (send(fd, request->bytes, request->size, MSG_NOSIGNAL) != (ssize_t)request->size) {
        contender_fatal("%s: cannot send: %s", at, strerror(errno));
    }
}

/* Appends what came to a buffer. Returns its new size. */
static size_t take_bytes(const char *at, int fd, char *bytes, size_t size, size_t room) {
    ssize_t got = recv(fd, bytes + size, room - size, 0);
    if (got == 0) {
        contender_fatal("%s: the node closed the connection", at);
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        contender_fatal("%s: no answer within %d s", at, ANSWER_SECONDS);
    }
    if (got < 0) {
        contender_fatal("%s: %s", at, strerror(errno));
    }
    return size + (size_t)got;
}

/* Ends the program if the bytes do not begin like the expected ones, as far as both go. */
static void check_begin(const char *at, char *bytes, size_t size, const char *expected) {
    size_t both = size < strlen(expected) ? size : strlen(expected);
    if (memcmp(bytes, expected, both) == 0) {
        return;
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = bytes[i] < ' ' ? ' ' : bytes[i];
    }
    contender_fatal("%s: unexpected answer: %.*s", at, (int)size, bytes);
}

static void expect(const char *at, int fd, const char *replies) {
    char bytes[BUFFER_SIZE];
    size_t size = 0;
    while (size < strlen(replies)) {
        size = take_bytes(at, fd, bytes, size, sizeof bytes);
        check_begin(at, bytes, size, replies);
    }
    if (size > strlen(replies)) {
        contender_fatal("%s: more replies than requests", at);
    }
}

/* Reads from a node that is ready. Returns whether the whole push is there. */
static bool take_push(const struct plan *plan, const char *at, struct inbox *inbox) {
    size_t tail = strlen(plan->push_tail);
    inbox->size = take_bytes(at, inbox->fd, inbox->bytes, inbox->size, sizeof inbox->bytes - 1);
    check_begin(at, inbox->bytes, inbox->size, plan->push_head);
    inbox->bytes[inbox->size] = '\0';
    if (inbox->told || inbox->size == sizeof inbox->bytes - 1) {
        contender_fatal("%s: more than one push: %s", at, inbox->bytes);
    }
    inbox->told = inbox->size > strlen(plan->push_head) + tail &&
                  memcmp(inbox->bytes + inbox->size - tail, plan->push_tail, tail) == 0;
    return inbox->told;
}

/* Waits for the pushes of all nodes. Returns when the quorum was there. */
static int64_t wait_for_lock(const struct plan *plan, int epoll, struct inbox *inboxes) {
    struct epoll_event events[CONTENDER_NODES_MAX];
    int64_t held_ns = 0;
    for (unsigned told = 0; told < plan->node_count;) {
        int ready = epoll_wait(epoll, events, CONTENDER_NODES_MAX, ANSWER_SECONDS * 1000 + (int)plan->hold_us / 1000);
        if (ready < 0) {
            contender_fatal("epoll_wait: %s", strerror(errno));
        }
        for (unsigned i = 0; ready == 0 && i < plan->node_count; i++) {
            if (!inboxes[i].told) {
                contender_fatal("%u of %u nodes sent no push within %d s, among them %s", plan->node_count - told,
                                plan->node_count, ANSWER_SECONDS, plan->at[i]);
            }
        }
        for (int i = 0; i < ready; i++) {
            unsigned node = events[i].data.u32;
            told += take_push(plan, plan->at[node], &inboxes[node]);
            if (told == plan->quorum && held_ns == 0) {
                held_ns = contender_now_ns();
            }
        }
    }
    for (unsigned i = 0; i < plan->node_count; i++) {
        inboxes[i].told = false;
        inboxes[i].size = 0;
    }
    return held_ns;
}

static void tell(int to, int64_t ns) {
    if (write(to, &ns, sizeof ns) != (ssize_t)sizeof ns) {
        contender_fatal("cannot tell the releaser: %s", strerror(errno));
    }
}

/* Tells the releaser once it has subscribed, and in each round when it held the lock. */
__attribute__((noreturn)) static void run_waiter(const struct plan *plan, int to) {
    static struct inbox inboxes[CONTENDER_NODES_MAX];
    char subscribed[256];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    print(subscribed, sizeof subscribed, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", strlen(CHANNEL), CHANNEL);
    for (unsigned i = 0; i < plan->node_count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        inboxes[i].fd = open_node(plan->at[i]);
        send_request(plan->at[i], inboxes[i].fd, &plan->subscribe);
        expect(plan->at[i], inboxes[i].fd, subscribed);
        if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, inboxes[i].fd, &event) != 0) {
            contender_fatal("epoll: %s", strerror(errno));
        }
    }
    tell(to, 0);
    for (;;) {
        tell(to, wait_for_lock(plan, epoll, inboxes));
    }
}

static int64_t hear(int from) {
    int64_t ns;
    if (read(from, &ns, sizeof ns) != (ssize_t)sizeof ns) {
        contender_fatal("the waiter ended");
    }
    return ns;
}

/* Returns how long a handover took. */
static int64_t hand_over(const struct plan *plan, const int *fds, int from) {
    struct timespec hold = {.tv_sec = plan->hold_us / 1000000, .tv_nsec = plan->hold_us % 1000000 * 1000};
    for (unsigned i = 0; i < plan->node_count; i++) {
        send_request(plan->at[i], fds[i], &plan->seed);
    }
    for (unsigned i = 0; i < plan->node_count; i++) {
        expect(plan->at[i], fds[i], "+OK\r\n:1\r\n:1\r\n");
    }
    if (clock_nanosleep(CLOCK_MONOTONIC, 0, &hold, NULL) != 0) {
        contender_fatal("clock_nanosleep failed");
    }
    int64_t released_ns = contender_now_ns();
    for (unsigned i = 0; i < plan->node_count; i++) {
        send_request(plan->at[i], fds[i], &plan->release);
    }
    for (unsigned i = 0; i < plan->node_count; i++) {
        expect(plan->at[i], fds[i], ":2\r\n");
    }
    return hear(from) - released_ns;
}

static void run_releaser(const struct plan *plan, int from) {
    struct contender_samples handovers = {0};
    int fds[CONTENDER_NODES_MAX];
    contender_samples_begin(&handovers, CONTENDER_SAMPLES_MAX);
    for (unsigned i = 0; i < plan->node_count; i++) {
        fds[i] = open_node(plan->at[i]);
    }
    (void)hear(from);
    int64_t end_ns = contender_now_ns() + plan->duration_ms * 1000000;
    do {
        contender_sample(&handovers, hand_over(plan, fds, from));
    } while (contender_now_ns() < end_ns && contender_sampling(&handovers));
    (void)printf("{\"rounds\":%zu", handovers.count);
    contender_write_samples(stdout, "handover_us", &handovers);
    (void)fputs("}\n", stdout);
    contender_samples_end(&handovers);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        contender_fatal("cannot write the figures: %s", strerror(errno));
    }
}

static int64_t number(const char *text, int64_t most) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > most) {
        contender_fatal("%s: not a number from 0 to %" PRId64 "; %s", text, most, USAGE);
    }
    return value;
}

/* The seed: the lock is held, and the queue's only waiter can be told. */
static void make_requests(struct plan *plan, size_t count, char **words) {
    char queue[256], waiters[300], entry[128], ttl[16], *token = words[4];
    int64_t good_until_ms = (int64_t)time(NULL) * 1000 + plan->duration_ms + 3600000;
    print(plan->next, sizeof plan->next, "%s", token);
    plan->next[strlen(token) - 1] = token[strlen(token) - 1] == '0' ? '1' : '0';
    print(queue, sizeof queue, "%s%s", words[3], words[5]);
    print(waiters, sizeof waiters, "%ser", queue);
    print(ttl, sizeof ttl, "%d", CONTENDER_TTL_MS);
    print(entry, sizeof entry, "%" PRId64 " %s 3 77 %s", good_until_ms, ttl, CHANNEL);
    add(&plan->subscribe, 2, (char *[]){"SUBSCRIBE", CHANNEL});
    add(&plan->seed, 5, (char *[]){"SET", words[3], token, "PX", ttl});
    add(&plan->seed, 4, (char *[]){"ZADD", queue, "2", plan->next});
    add(&plan->seed, 4, (char *[]){"HSET", waiters, plan->next, entry});
    add(&plan->release, count, words);
    print(plan->push_head, sizeof plan->push_head, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$", strlen(CHANNEL), CHANNEL);
    print(plan->push_tail, sizeof plan->push_tail, " %s %s\r\n", plan->next, words[3]);
}

int main(int argc, char **argv) {
    static struct plan plan;
    int nodes_end = 3, ends[2];
    while (nodes_end < argc && strcmp(argv[nodes_end], "--") != 0) {
        nodes_end++;
    }
    char **words = argv + nodes_end + 1;
    int word_count = argc - nodes_end - 1, node_count = nodes_end - 3;
    if (word_count < 6 || node_count < 1 || node_count > CONTENDER_NODES_MAX || strcmp(words[2], "1") != 0 ||
        words[4][0] == '\0') {
        contender_fatal("%s", USAGE);
    }
    plan.duration_ms = number(argv[1], 3600000);
    plan.hold_us = number(argv[2], 10000000);
    plan.at = argv + 3;
    plan.node_count = (unsigned)node_count;
    plan.quorum = plan.node_count / 2 + 1;
    make_requests(&plan, (size_t)word_count, words);
    pid_t releaser = getpid(), waiter;
    if (pipe(ends) != 0 || (waiter = fork()) < 0) {
        contender_fatal("cannot start the waiter: %s", strerror(errno));
    }
    if (waiter == 0) {
        (void)close(ends[0]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != releaser) {
            contender_fatal("the releaser ended");
        }
        run_waiter(&plan, ends[1]);
    }
    (void)close(ends[1]);
    run_releaser(&plan, ends[0]);
    if (kill(waiter, SIGKILL) != 0 || waitpid(waiter, NULL, 0) != waiter) {
        contender_fatal("cannot end the waiter: %s", strerror(errno));
    }
    return 0;
}
