/* The program that instructions.sh measures. The library and the nodes run in one thread, so every
 * run does the same. */
#include <errno.h>
#include <ev.h>
#include <gnu/libc-version.h>
#include <hiredis/hiredis.h>
#include <redlock/redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else /* build anyway; instructions.sh says what is missing */
#define CALLGRIND_TOGGLE_COLLECT          (void)0
#define CALLGRIND_ZERO_STATS              (void)0
#define CALLGRIND_DUMP_STATS_AT(position) (void)(position)
#endif

#include "contender.h"
#include "request.h"
#include "still_clock.h"

#define NODES           5
#define OUTSTANDING_MAX 1024
#define OPERATIONS      2048   /* counted; as many run before them, uncounted */
#define TURN_NS         100000 /* how long a wait for the nodes takes: as on loopback */
#define INPUT_SIZE      65536
#define OUTPUT_SIZE     32768

/* One listening socket, and one connection at a time. */
struct node {
    int listener, fd;
    size_t used, said;
    bool denies;      /* every lock is held by another client */
    const char *last; /* the request before this one */
    size_t last_size;
    char path[64], uri[80], run_id[41];
    char input[INPUT_SIZE], output[OUTPUT_SIZE];
};

struct bench;

struct worker {
    struct bench *bench;
    redlock_lease *lease;
    char resource[16];
};

struct operation {
    const char *name;
    unsigned outstanding;
    bool denied;
    void (*start)(struct worker *worker);
};

struct bench {
    struct ev_loop *loop;
    redlock_manager *manager;
    const struct operation *operation;
    unsigned left, under_way;
    struct node nodes[NODES];
    struct worker workers[OUTSTANDING_MAX];
};

static char directory[] = "/tmp/redlock-instructions-XXXXXX"; /* for the nodes' sockets */

static void say(struct node *node, const char *text) {
    size_t size = strlen(text);
    if (size > sizeof node->output - node->said) {
        contender_fatal("more to say in one turn than %d bytes", OUTPUT_SIZE);
    }
    memcpy(node->output + node->said, text, size);
    node->said += size;
}

/* SET … NX GET: the value that is there. If a client asks for the same twice, the first has set
 * it. */
static void answer_set(struct node *node, const char *request, size_t size, const char *token) {
    const bool again = size == node->last_size && memcmp(request, node->last, size) == 0;
    const bool gets = strncmp(request, "*7", 2) == 0;
    char ours[64];
    (void)snprintf(ours, sizeof ours, "$32\r\n%.34s", token);
    say(node, !gets          ? node->denies ? "$-1\r\n" : "+OK\r\n"
              : node->denies ? "$32\r\n0123456789abcdef0123456789abcdef\r\n"
              : again        ? ours
                             : "$-1\r\n");
    node->last = request;
    node->last_size = size;
}

static void answer(struct node *node, const char *request, size_t size, const char *const words[REQUEST_WORDS]) {
    char info[256], reply[300];
    if (request_is(words[0], "SET")) {
        answer_set(node, request, size, words[2]);
    } else if (request_is(words[0], "EVALSHA")) {
        say(node, node->denies ? ":-1\r\n" : ":1\r\n");
    } else if (request_is(words[0], "INFO")) {
        int said = snprintf(info, sizeof info, "redis_version:7.0.15\r\nrun_id:%s\r\nrole:master\r\n", node->run_id);
        (void)snprintf(reply, sizeof reply, "$%d\r\n%s\r\n", said, info);
        say(node, reply);
    } else if (request_is(words[0], "PING")) {
        say(node, "+PONG\r\n");
    } else if (request_is(words[0], "TIME")) {
        say(node, "*2\r\n$10\r\n1795000000\r\n$1\r\n0\r\n");
    } else if (request_is(words[0], "CLIENT")) {
        say(node, request_is(words[1], "ID") ? ":7\r\n" : "+OK\r\n");
    } else if (request_is(words[0], "SCRIPT")) {
        say(node, "$40\r\n0123456789012345678901234567890123456789\r\n");
    } else {
        contender_fatal("a node was asked what it does not know: %.20s", words[0]);
    }
}

static void answer_all(struct node *node) {
    const char *words[REQUEST_WORDS], *at = node->input, *end = node->input + node->used;
    for (size_t size; (size = request_size(at, end, words)) > 0; at += size) {
        answer(node, at, size, words);
    }
    node->last_size = 0; /* the two come in one write */
    node->used = (size_t)(end - at);
    memmove(node->input, at, node->used);
}

static void serve(struct node *node) {
    if (node->fd < 0) {
        node->fd = accept4(node->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    if (node->fd < 0) {
        return;
    }
    ssize_t got;
    while ((got = recv(node->fd, node->input + node->used, sizeof node->input - node->used, 0)) > 0) {
        node->used += (size_t)got;
        answer_all(node);
    }
    if (got == 0) {
        (void)close(node->fd);
        node->fd = -1;
    } else if (errno != EAGAIN) {
        contender_fatal("recv: %s", strerror(errno));
    } else if (node->said > 0 && send(node->fd, node->output, node->said, MSG_NOSIGNAL) != (ssize_t)node->said) {
        contender_fatal("a node could not say %zu bytes at once: %s", node->said, strerror(errno));
    }
    node->said = 0;
}

static void remove_sockets(void) {
    char path[64];
    for (unsigned i = 0; i < NODES; i++) {
        (void)snprintf(path, sizeof path, "%s/%u", directory, i);
        (void)unlink(path);
    }
    (void)rmdir(directory);
}

static void start_node(struct node *node, unsigned index) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    node->fd = -1;
    (void)snprintf(node->path, sizeof node->path, "%s/%u", directory, index);
    (void)snprintf(node->uri, sizeof node->uri, "unix://%s", node->path);
    (void)snprintf(node->run_id, sizeof node->run_id, "%040u", index);
    memcpy(address.sun_path, node->path, sizeof node->path);
    node->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (node->listener < 0 || bind(node->listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(node->listener, 1) != 0) {
        contender_fatal("cannot listen on %s: %s", node->path, strerror(errno));
    }
}

/* libev calls these right before and after it waits for descriptors. The nodes run in between,
 * uncounted. */

static void before_wait(struct ev_loop *loop) {
    struct bench *bench = ev_userdata(loop);
    CALLGRIND_TOGGLE_COLLECT;
    still_clock_pass(TURN_NS);
    for (unsigned i = 0; i < NODES; i++) {
        serve(&bench->nodes[i]);
    }
    CALLGRIND_TOGGLE_COLLECT;
}

static void after_wait(struct ev_loop *loop) {
    (void)loop;
}

static void check(const redlock_result *result, int wanted) {
    char message[512];
    if (redlock_result_code(result) != wanted) {
        redlock_result_message(result, message, sizeof message);
        contender_fatal("not %s but %s: %s", redlock_error_name(wanted),
                        redlock_error_name(redlock_result_code(result)), message);
    }
}

static void accepted(const char *what, int code) {
    if (code != REDLOCK_OK) {
        contender_fatal("%s: %s", what, redlock_strerror(code));
    }
}

static void next(struct worker *worker) {
    struct bench *bench = worker->bench;
    if (bench->left > 0) {
        bench->left--;
        bench->operation->start(worker);
    } else if (--bench->under_way == 0) {
        ev_break(bench->loop, EVBREAK_ALL);
    }
}

static void on_released(const redlock_result *result, void *data) {
    check(result, REDLOCK_OK);
    next(data);
}

static void on_acquired(const redlock_result *result, void *data) {
    check(result, REDLOCK_OK);
    accepted("redlock_release", redlock_release(redlock_result_lease(result), on_released, data));
}

static void start_cycle(struct worker *worker) {
    accepted("redlock_acquire",
             redlock_acquire(worker->bench->manager, worker->resource, NULL, NULL, on_acquired, worker));
}

static void start_fenced(struct worker *worker) {
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.fencing = true;
    accepted("redlock_acquire",
             redlock_acquire(worker->bench->manager, worker->resource, &options, NULL, on_acquired, worker));
}

static void on_refused(const redlock_result *result, void *data) {
    check(result, REDLOCK_ERR_CONTENDED);
    next(data);
}

static void start_refused(struct worker *worker) {
    accepted("redlock_acquire",
             redlock_acquire(worker->bench->manager, worker->resource, NULL, NULL, on_refused, worker));
}

static void on_extended(const redlock_result *result, void *data) {
    check(result, REDLOCK_OK);
    next(data);
}

static void on_held(const redlock_result *result, void *data) {
    struct worker *worker = data;
    check(result, REDLOCK_OK);
    worker->lease = redlock_result_lease(result);
    accepted("redlock_extend", redlock_extend(worker->lease, 10000, on_extended, worker));
}

/* The first call acquires. It runs before counting begins. */
static void start_extend(struct worker *worker) {
    if (!worker->lease) {
        accepted("redlock_acquire",
                 redlock_acquire(worker->bench->manager, worker->resource, NULL, NULL, on_held, worker));
    } else {
        accepted("redlock_extend", redlock_extend(worker->lease, 10000, on_extended, worker));
    }
}

static const struct operation operations[] = {
    {.name = "cycle_1", .outstanding = 1, .start = start_cycle},
    {.name = "cycle_64", .outstanding = 64, .start = start_cycle},
    {.name = "cycle_1024", .outstanding = 1024, .start = start_cycle},
    {.name = "fenced_1", .outstanding = 1, .start = start_fenced},
    {.name = "fenced_64", .outstanding = 64, .start = start_fenced},
    {.name = "refused_1", .outstanding = 1, .start = start_refused, .denied = true},
    {.name = "extend_1", .outstanding = 1, .start = start_extend},
};

static void run(struct bench *bench) {
    CALLGRIND_TOGGLE_COLLECT;
    bench->left = OPERATIONS;
    bench->under_way = bench->operation->outstanding;
    for (unsigned i = 0; i < bench->operation->outstanding; i++) {
        next(&bench->workers[i]);
    }
    ev_run(bench->loop, 0);
    CALLGRIND_TOGGLE_COLLECT;
}

static void count(struct bench *bench, const struct operation *operation) {
    bench->operation = operation;
    for (unsigned i = 0; i < NODES; i++) {
        bench->nodes[i].denies = operation->denied;
    }
    run(bench);
    CALLGRIND_ZERO_STATS;
    run(bench);
    CALLGRIND_DUMP_STATS_AT(operation->name);
    (void)printf("operations %s %d\n", operation->name, OPERATIONS);
}

static void on_connected(const redlock_result *result, void *data) {
    struct bench *bench = data;
    check(result, REDLOCK_OK);
    ev_break(bench->loop, EVBREAK_ALL);
}

static void start(struct bench *bench) {
    const char *uris[NODES];
    char error[256] = "no loop";
    redlock_manager_options options;
    if (!mkdtemp(directory) || atexit(remove_sockets) != 0) {
        contender_fatal("%s: %s", directory, strerror(errno));
    }
    for (unsigned i = 0; i < NODES; i++) {
        start_node(&bench->nodes[i], i);
        uris[i] = bench->nodes[i].uri;
    }
    for (unsigned i = 0; i < OUTSTANDING_MAX; i++) {
        bench->workers[i].bench = bench;
        (void)snprintf(bench->workers[i].resource, sizeof bench->workers[i].resource, "bench-%04u-0", i);
    }
    redlock_manager_options_default(&options);
    options.nodes = uris;
    options.node_count = NODES;
    bench->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (!bench->loop ||
        redlock_manager_create(bench->loop, &options, &bench->manager, error, sizeof error) != REDLOCK_OK) {
        contender_fatal("redlock_manager_create: %s", error);
    }
    ev_set_userdata(bench->loop, bench);
    ev_set_loop_release_cb(bench->loop, before_wait, after_wait);
    accepted("redlock_manager_connect", redlock_manager_connect(bench->manager, 1000, on_connected, bench));
    CALLGRIND_TOGGLE_COLLECT;
    ev_run(bench->loop, 0);
    CALLGRIND_TOGGLE_COLLECT;
    if (!still_clock_is_used()) {
        contender_fatal("the library has set no timer of ours: it runs by another clock");
    }
}

static void stop(struct bench *bench) {
    redlock_manager_close(bench->manager, NULL, NULL);
    CALLGRIND_TOGGLE_COLLECT;
    ev_run(bench->loop, 0);
    CALLGRIND_TOGGLE_COLLECT;
    ev_loop_destroy(bench->loop);
    for (unsigned i = 0; i < NODES; i++) {
        (void)close(bench->nodes[i].listener);
    }
}

/* Compare counts only if this line is the same. */
static void say_what_this_is(void) {
    struct utsname machine;
    if (uname(&machine) != 0) {
        contender_fatal("uname: %s", strerror(errno));
    }
#ifdef __clang__
    const char *compiler = __VERSION__;
#else
    const char *compiler = "gcc " __VERSION__;
#endif
    (void)printf("built %s, %s, %s; glibc %s, hiredis %d.%d.%d, libev %d.%d\n", machine.machine, compiler, BENCH_FLAGS,
                 gnu_get_libc_version(), HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH, ev_version_major(),
                 ev_version_minor());
}

int main(void) {
    static struct bench bench;
    say_what_this_is();
    start(&bench);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        count(&bench, &operations[i]);
    }
    stop(&bench);
    return 0;
}
