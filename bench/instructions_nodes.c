/* The program with which instructions.sh counts what our requests cost a server. It drives the
 * library through a relay to a real server, which callgrind runs. At an ECHO callgrind writes a
 * file. */
#include <errno.h>
#include <ev.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <redlock/redlock.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contender.h"
#include "relay.h"
#include "still_clock.h"

#define WORKERS       400
#define FILLERS       2100                /* other keys, so that the table of keys keeps its size */
#define FILLER_TTL_MS 10000000            /* longer than any run */
#define TTL_MS        60000               /* no lock ends before its phase does */
#define TIMEOUT_MS    60000               /* of the node: the relay holds requests */
#define REFRESH_NS    INT64_C(3000000000) /* after it waiters ask again */
#define SCRIPT_PERIOD 50                  /* Lua's garbage is collected after so many scripts */

_Static_assert(WORKERS % SCRIPT_PERIOD == 0, "each phase has its share of the collections");

/* The least that a release can be. */
#define COMPARE_AND_DELETE                                                                                             \
    "if redis.call('get', KEYS[1]) == ARGV[1] then return "                                                            \
    "redis.call('del', KEYS[1]) else return 0 end"
#define PLAIN_TOKEN "0123456789abcdef0123456789abcdef"

struct bench;

struct worker {
    struct bench *bench;
    redlock_lease *holder, *reader, *lease; /* `lease` may wait for what these hold */
    char resource[16];
};

struct bench {
    struct ev_loop *loop;
    redlock_manager *manager;
    struct relay relay;
    redisContext *server; /* beside the relay */
    char plain[64];       /* the SHA1 of COMPARE_AND_DELETE */
    bool has_command;     /* the server deletes a key if it holds a token */
    unsigned active;      /* workers in this round */
    bool counted;         /* only in the last round: those before warm up */
    unsigned files;       /* that callgrind has written */
    unsigned left;        /* callbacks to come */
    struct worker workers[WORKERS];
};

static void check(const redlock_result *result) {
    char message[512];
    if (redlock_result_code(result) != REDLOCK_OK) {
        redlock_result_message(result, message, sizeof message);
        contender_fatal("%s", message);
    }
}

static void accepted(const char *what, int code) {
    if (code != REDLOCK_OK) {
        contender_fatal("%s: %s", what, redlock_strerror(code));
    }
}

/* Asks the server beside the relay. The caller frees the reply, which is of this type. */
__attribute__((format(printf, 3, 4))) static redisReply *ask(struct bench *bench, int type, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = redisvCommand(bench->server, format, arguments);
    va_end(arguments);
    if (!reply || reply->type != type) {
        contender_fatal("%s: %s", format, reply && reply->str ? reply->str : bench->server->errstr);
    }
    return reply;
}

static void mark(struct bench *bench) {
    freeReplyObject(ask(bench, REDIS_REPLY_STRING, "ECHO mark"));
    bench->files++;
}

/* Two marks are around what is counted. */
static void counted(struct bench *bench, const char *name) {
    mark(bench);
    if (name && bench->counted) {
        (void)printf("operations %s %d %u\n", name, WORKERS, bench->files);
    }
}

/* Lets the server answer what all workers asked for. NULL: uncounted. */
static void pass(struct bench *bench, unsigned kinds, const char *name) {
    relay_collect(&bench->relay, kinds, bench->active);
    mark(bench);
    const size_t passed = relay_pass(&bench->relay, kinds);
    if (name && passed != bench->active) {
        contender_fatal("%s: %zu requests, not %u", name, passed, bench->active);
    }
    counted(bench, name);
}

static void run_until_done(struct bench *bench) {
    while (bench->left > 0) {
        relay_run(&bench->relay);
    }
}

static void finish(struct bench *bench) {
    relay_deliver(&bench->relay);
    run_until_done(bench);
}

static void on_done(const redlock_result *result, void *data) {
    struct worker *worker = data;
    check(result);
    worker->bench->left--;
}

static void on_acquired(const redlock_result *result, void *data) {
    struct worker *worker = data;
    worker->lease = redlock_result_lease(result);
    on_done(result, worker);
}

/* Each of these begins one thing for each worker. */

static void acquire_as(struct bench *bench, redlock_acquire_options options) {
    bench->left = bench->active;
    for (unsigned i = 0; i < bench->active; i++) {
        struct worker *worker = &bench->workers[i];
        accepted("redlock_acquire",
                 redlock_acquire(bench->manager, worker->resource, &options, NULL, on_acquired, worker));
    }
}

static redlock_acquire_options options_of(bool waits) {
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    options.ttl_ms = TTL_MS;
    options.wait_timeout_ms = waits ? REDLOCK_WAIT_FOREVER : 0;
    return options;
}

static void acquire(struct bench *bench, bool waits) {
    acquire_as(bench, options_of(waits));
}

static void acquire_shared(struct bench *bench, bool waits) {
    redlock_acquire_options options = options_of(waits);
    options.mode = REDLOCK_SHARED;
    acquire_as(bench, options);
}

static void acquire_fenced(struct bench *bench) {
    redlock_acquire_options options = options_of(false);
    options.fencing = true;
    acquire_as(bench, options);
}

static void extend(struct bench *bench) {
    bench->left = bench->active;
    for (unsigned i = 0; i < bench->active; i++) {
        struct worker *worker = &bench->workers[i];
        accepted("redlock_extend", redlock_extend(worker->lease, TTL_MS, on_done, worker));
    }
}

static void release(struct bench *bench) {
    bench->left = bench->active;
    for (unsigned i = 0; i < bench->active; i++) {
        struct worker *worker = &bench->workers[i];
        accepted("redlock_release", redlock_release(worker->lease, on_done, worker));
    }
}

/* The phases. */

static void count_plain(struct bench *bench) {
    mark(bench);
    for (unsigned i = 0; i < bench->active; i++) {
        freeReplyObject(
            ask(bench, REDIS_REPLY_STATUS, "SET %s %s NX PX %d", bench->workers[i].resource, PLAIN_TOKEN, TTL_MS));
    }
    counted(bench, "plain_set");
    mark(bench);
    for (unsigned i = 0; i < bench->active; i++) {
        redisReply *reply = ask(bench, REDIS_REPLY_INTEGER, "EVALSHA %s 1 %s %s", bench->plain,
                                bench->workers[i].resource, PLAIN_TOKEN);
        if (reply->integer != 1) {
            contender_fatal("the plain script deleted no key");
        }
        freeReplyObject(reply);
    }
    counted(bench, "plain_release");
}

static void count_cycle(struct bench *bench) {
    acquire(bench, false);
    pass(bench, RELAY_SET, "set");
    finish(bench);
    extend(bench);
    pass(bench, RELAY_SCRIPT, "extend");
    finish(bench);
    release(bench);
    pass(bench, RELAY_SCRIPT | RELAY_DELETE, "release");
    finish(bench);
}

/* A proposal below the counter does not count: a FENCE follows. */
static void raise_counters(struct bench *bench) {
    for (unsigned i = 0; i < bench->active; i++) {
        freeReplyObject(ask(bench, REDIS_REPLY_STATUS, "SET %s:fence 0%010" PRId64 "000000000",
                            bench->workers[i].resource, STILL_CLOCK_S + 60));
    }
}

static void count_fenced(struct bench *bench) {
    for (int behind = 0; behind <= 1; behind++) {
        acquire_fenced(bench);
        pass(bench, RELAY_SCRIPT_FENCED, behind ? "fenced_behind" : "fenced");
        if (behind) {
            relay_deliver(&bench->relay);
            pass(bench, RELAY_SCRIPT_FENCED, "fence");
        }
        finish(bench);
        release(bench);
        pass(bench, RELAY_SCRIPT | RELAY_DELETE, NULL);
        finish(bench);
        raise_counters(bench);
    }
}

static void keep_as_holders(struct bench *bench) {
    for (unsigned i = 0; i < bench->active; i++) {
        bench->workers[i].holder = bench->workers[i].lease;
    }
}

static void release_holders(struct bench *bench) {
    for (unsigned i = 0; i < bench->active; i++) {
        accepted("redlock_release", redlock_release(bench->workers[i].holder, NULL, NULL));
    }
}

/* One waiter for each lock. A refused acquire is released, and waits under another token. */
static void count_queue(struct bench *bench) {
    acquire(bench, true);
    pass(bench, RELAY_SET, NULL);
    finish(bench);
    keep_as_holders(bench);
    acquire(bench, true);
    pass(bench, RELAY_SET, "set_refused");
    relay_deliver(&bench->relay);
    pass(bench, RELAY_SCRIPT, "release_lost");
    pass(bench, RELAY_SCRIPT_QUEUED, "wait");
    relay_deliver(&bench->relay);
    still_clock_pass(REFRESH_NS);
    pass(bench, RELAY_SCRIPT_QUEUED, "refresh");
    relay_deliver(&bench->relay);
    release_holders(bench);
    if (bench->has_command) { /* it finds a mark, so the script follows */
        pass(bench, RELAY_DELETE, NULL);
        relay_deliver(&bench->relay);
    }
    pass(bench, RELAY_SCRIPT, "handover");
    finish(bench);
    release(bench);
    pass(bench, RELAY_SCRIPT, "release_queued");
    finish(bench);
}

/* One who reads alone, then one who reads beside another. */
static void count_shared(struct bench *bench) {
    acquire_shared(bench, false);
    pass(bench, RELAY_SCRIPT, "share");
    finish(bench);
    extend(bench);
    pass(bench, RELAY_SCRIPT, "share_extend");
    finish(bench);
    keep_as_holders(bench);
    acquire_shared(bench, false);
    pass(bench, RELAY_SCRIPT, "share_beside");
    finish(bench);
    release(bench);
    pass(bench, RELAY_SCRIPT, "share_release_beside");
    finish(bench);
    release_holders(bench);
    pass(bench, RELAY_SCRIPT, "share_release");
    relay_deliver(&bench->relay);
}

/* Two read each lock, and one who writes waits; then one who reads waits for that one. */
static void count_shared_queue(struct bench *bench) {
    acquire_shared(bench, false);
    pass(bench, RELAY_SCRIPT, NULL);
    finish(bench);
    for (unsigned i = 0; i < bench->active; i++) {
        bench->workers[i].reader = bench->workers[i].lease;
    }
    acquire_shared(bench, false);
    pass(bench, RELAY_SCRIPT, NULL);
    finish(bench);
    keep_as_holders(bench);
    acquire(bench, true);
    pass(bench, RELAY_SCRIPT_QUEUED, "wait_for_readers");
    relay_deliver(&bench->relay);
    for (unsigned i = 0; i < bench->active; i++) {
        accepted("redlock_release", redlock_release(bench->workers[i].reader, NULL, NULL));
    }
    pass(bench, RELAY_SCRIPT, "share_release_waited");
    relay_deliver(&bench->relay);
    release_holders(bench);
    pass(bench, RELAY_SCRIPT, "share_handover");
    finish(bench);
    release(bench);
    pass(bench, RELAY_SCRIPT, NULL);
    finish(bench);
    /* A first try, which never leaves the lock free. */
    acquire(bench, false);
    pass(bench, RELAY_SET, NULL);
    finish(bench);
    keep_as_holders(bench);
    acquire_shared(bench, true);
    pass(bench, RELAY_SCRIPT_QUEUED, "share_wait");
    relay_deliver(&bench->relay);
    release_holders(bench);
    pass(bench, RELAY_SCRIPT | RELAY_DELETE, "handover_to_reader");
    finish(bench);
    release(bench);
    pass(bench, RELAY_SCRIPT, NULL);
    finish(bench);
}

static void on_connected(const redlock_result *result, void *data) {
    struct bench *bench = data;
    check(result);
    bench->left--;
}

/* The value of a field of INFO. */
static void say_field(const char *info, const char *name) {
    const char *at = strstr(info, name);
    if (!at) {
        contender_fatal("INFO has no %s", name);
    }
    at += strlen(name);
    (void)printf(" %.*s", (int)strcspn(at, "\r"), at);
}

/* Compare counts only if this line is the same. */
static void say_what_this_is(struct bench *bench) {
    redisReply *info = ask(bench, REDIS_REPLY_STRING, "INFO");
    const bool is_valkey = strstr(info->str, "valkey_version:") != NULL;
    (void)printf("server %s", is_valkey ? "valkey" : "redis");
    say_field(info->str, is_valkey ? "valkey_version:" : "redis_version:");
    say_field(info->str, "mem_allocator:");
    (void)putchar('\n');
    freeReplyObject(info);
}

static void prepare_server(struct bench *bench, const char *path) {
    bench->server = redisConnectUnix(path);
    if (!bench->server || bench->server->err) {
        contender_fatal("cannot connect to %s: %s", path, bench->server ? bench->server->errstr : "no memory");
    }
    redisReply *sha = ask(bench, REDIS_REPLY_STRING, "SCRIPT LOAD %s", COMPARE_AND_DELETE);
    (void)snprintf(bench->plain, sizeof bench->plain, "%s", sha->str);
    freeReplyObject(sha);
    redisReply *commands = ask(bench, REDIS_REPLY_ARRAY, "COMMAND INFO DELIFEQ DELEX");
    bench->has_command = commands->element[0]->elements > 0 || commands->element[1]->elements > 0;
    freeReplyObject(commands);
    for (unsigned i = 0; i < FILLERS; i++) {
        freeReplyObject(ask(bench, REDIS_REPLY_STATUS, "SET filler-%04u %s PX %d", i, PLAIN_TOKEN, FILLER_TTL_MS));
    }
}

static void start(struct bench *bench, const char *path, const char *server_path) {
    char uri[256], error[256];
    const char *uris[] = {uri};
    redlock_manager_options options;
    (void)snprintf(uri, sizeof uri, "unix://%s", path);
    redlock_manager_options_default(&options);
    options.nodes = uris;
    options.node_count = 1;
    options.node_timeout_ms = options.connect_timeout_ms = TIMEOUT_MS;
    options.listen = true;
    relay_start(&bench->relay, bench->loop, path, server_path);
    if (redlock_manager_create(bench->loop, &options, &bench->manager, error, sizeof error) != REDLOCK_OK) {
        contender_fatal("redlock_manager_create: %s", error);
    }
    bench->left = 1;
    accepted("redlock_manager_connect", redlock_manager_connect(bench->manager, TIMEOUT_MS, on_connected, bench));
    run_until_done(bench);
}

static void on_closed(void *data) {
    struct bench *bench = data;
    bench->left--;
}

static void stop(struct bench *bench) {
    bench->left = 1;
    redlock_manager_close(bench->manager, on_closed, bench);
    while (bench->left > 0) {
        relay_run(&bench->relay);
    }
    relay_stop(&bench->relay);
}

/* A manager of its own: one that has handed over a lock goes another way to take it. */
static void count_all(struct bench *bench, char *paths[2], const char *resources, bool is_counted) {
    bench->counted = is_counted;
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &bench->workers[i];
        worker->bench = bench;
        (void)snprintf(worker->resource, sizeof worker->resource, "%s-%04u", resources, i);
    }
    start(bench, paths[0], paths[1]);
    /* The first acquire proves that the server knows SET with GET. */
    bench->active = 1;
    acquire(bench, false);
    pass(bench, RELAY_SET, NULL);
    finish(bench);
    release(bench);
    pass(bench, RELAY_SCRIPT | RELAY_DELETE, NULL);
    finish(bench);
    bench->active = WORKERS;
    count_plain(bench);
    count_cycle(bench);
    count_fenced(bench);
    count_queue(bench);
    count_shared(bench);
    count_shared_queue(bench);
    stop(bench);
}

int main(int count, char **words) {
    static struct bench bench;
    if (count != 3) {
        contender_fatal("usage: instructions_nodes SOCKET SOCKET_OF_SERVER");
    }
    bench.loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (!bench.loop) {
        contender_fatal("no memory for a loop");
    }
    prepare_server(&bench, words[2]);
    say_what_this_is(&bench);
    count_all(&bench, words + 1, "early", false); /* warms up */
    count_all(&bench, words + 1, "bench", true);
    redisFree(bench.server);
    ev_loop_destroy(bench.loop);
    return 0;
}
