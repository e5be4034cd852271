/* The auditor process: asks every node, past the proxy, who has which key. Its connection to one
 * node asks for all resources at once, and never waits. */
#include "client/auditor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "client/client.h"
#include "history/history.h"
#include "history/log.h"
#include "values/clock.h"

/*
 * state    event                                             → state
 * AWAY     a sweep, RETRY_MS after the last try: connects, sends AUTH → BEHIND
 * IDLE     a sweep begins: the questions are to be sent      → ASKED
 * ASKED    the last answer                                   → IDLE
 *          the sweep ends without it                         → BEHIND
 * BEHIND   the last answer that is owed (it is dropped)      → IDLE
 *          none for BEHIND_MS                                → AWAY
 * any      closed, out of protocol, no memory                → AWAY
 */
enum state { AWAY, IDLE, ASKED, BEHIND };

struct probe {
    enum state state;
    uint16_t port;       /* of 127.0.0.1 */
    redisContext *redis; /* NULL: AWAY */
    bool unsent;         /* some of what it is asked waits to be sent */
    int64_t since_us;    /* of AWAY and BEHIND */
    size_t owed;         /* ASKED and BEHIND: answers to come */
    /* of the current sweep, or the last; NULL: nothing is known */
    redisReply *seen[CHAOS_RESOURCES_MAX];
    /* when the last of its answers was taken; 0: none */
    int64_t last_us;
    bool complained;
};

/* One resource at one moment: its value, how long it lives, who waits for it; who reads it, each
 * with the ms that are left. */
#define QUESTION                                                                                                       \
    "local readers, time = redis.pcall('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'), redis.call('TIME')\n"                  \
    "for i = 2, #readers, 2 do readers[i] = readers[i] - time[1] * 1000 - math.floor(time[2] / 1000) end\n"            \
    "return {redis.pcall('GET', KEYS[1]), redis.call('PTTL', KEYS[1]), redis.pcall('ZRANGE', KEYS[2], 0, -1), "        \
    "readers.err and {} or readers}"
enum { RETRY_MS = 100, BEHIND_MS = 3000 };

static void enter(struct probe *probe, enum state state) {
    probe->state = state;
    probe->since_us = tool_now_us();
}

static void forget_seen(struct probe *probe) {
    for (size_t i = 0; i < CHAOS_RESOURCES_MAX; i++) {
        freeReplyObject(probe->seen[i]);
        probe->seen[i] = NULL;
    }
}

static void lose(struct probe *probe) {
    if (probe->redis != NULL) {
        redisFree(probe->redis);
    }
    probe->redis = NULL;
    enter(probe, AWAY);
}

static void owe(struct probe *probe, enum state state, size_t answers) {
    probe->unsent = true;
    probe->owed = answers;
    enter(probe, state);
}

static void reach(struct probe *probe) {
    probe->redis = redisConnectNonBlock("127.0.0.1", probe->port);
    if (probe->redis == NULL || probe->redis->err != 0 ||
        redisAppendCommand(probe->redis, "AUTH chaos chaos") != REDIS_OK) {
        lose(probe);
    } else {
        owe(probe, BEHIND, 1);
    }
}

static void ask(struct probe *probe, const struct chaos_auditor_options *options) {
    bool worked = true;
    for (size_t i = 0; i < options->resource_count; i++) {
        const char *key = options->resources[i];
        worked = worked && redisAppendCommand(probe->redis, "EVAL %s 2 %s %s:wait", QUESTION, key, key) == REDIS_OK;
    }
    if (worked) {
        owe(probe, ASKED, options->resource_count);
    } else {
        lose(probe);
    }
}

/* Asks, if it can be asked now. */
static void probe_begin(struct probe *probe, const struct chaos_auditor_options *options) {
    int64_t since_us = tool_now_us() - probe->since_us;
    probe->last_us = 0;
    forget_seen(probe);
    if (probe->state == BEHIND && since_us > BEHIND_MS * 1000) {
        lose(probe);
    } else if (probe->state == AWAY && since_us >= RETRY_MS * 1000) {
        reach(probe);
    } else if (probe->state == IDLE) {
        ask(probe, options);
    }
}

/* The last characters of whatever is there; never "", which says that there is no key. */
static void describe_value(const redisReply *reply, char *token) {
    if (reply->type != REDIS_REPLY_STRING || reply->len == 0) {
        snprintf(token, CHAOS_TOKEN_SIZE, "%s", reply->type == REDIS_REPLY_STRING ? "(empty)" : "(not a string)");
        return;
    }
    const char *end = chaos_token_end(reply->str, (size_t)reply->len);
    size_t size = (size_t)(reply->str + reply->len - end);
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)end[i];
        token[i] = byte < 0x20 || byte >= 0x7f ? '?' : (char)byte;
    }
    token[size] = '\0';
}

/* Takes the reply. False if it is none that a server can have given to this question. */
static bool take_answer(struct probe *probe, redisReply *reply, size_t resources) {
    bool error = reply->type == REDIS_REPLY_ERROR, good = reply->type == REDIS_REPLY_ARRAY && reply->elements == 4;
    probe->last_us = tool_now_us();
    if (good && reply->element[1]->type == REDIS_REPLY_INTEGER) {
        probe->seen[resources - probe->owed] = reply;
        return true;
    }
    freeReplyObject(reply);
    return error;
}

/* An AUTH that is refused is told once: without it, a node with a password answers nothing. */
static void drop(struct probe *probe, redisReply *reply) {
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGPASS", 9) == 0 && !probe->complained) {
        probe->complained = true;
        fprintf(stderr, "redlock-chaos: auditor: the node at port %u refuses the user \"chaos\": %s\n",
                (unsigned)probe->port, reply->str);
    }
    freeReplyObject(reply);
}

/* False if it cannot be understood any more, or was asked by nobody. */
static bool take_reply(struct probe *probe, redisReply *reply, size_t resources) {
    bool good = probe->state != IDLE;
    if (probe->state == ASKED) {
        good = take_answer(probe, reply, resources);
    } else {
        drop(probe, reply);
    }
    if (good && --probe->owed == 0) {
        probe->state = IDLE;
    }
    return good;
}

static void probe_io(struct probe *probe, size_t resources) {
    int sent = 0;
    void *reply = NULL;
    bool good = redisBufferWrite(probe->redis, &sent) == REDIS_OK && redisBufferRead(probe->redis) == REDIS_OK;
    probe->unsent = !sent;
    while (good && (good = redisGetReply(probe->redis, &reply) == REDIS_OK) && reply != NULL) {
        good = take_reply(probe, reply, resources);
    }
    if (!good) {
        lose(probe);
    }
}

struct auditor {
    const struct chaos_auditor_options *options;
    struct chaos_log log;
    struct probe probes[CHAOS_NODES_MAX];
    int signals; /* readable once SIGTERM has come */
    bool stopped;
};

static bool is_anybody_asked(const struct auditor *auditor) {
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        if (auditor->probes[n].state == ASKED) {
            return true;
        }
    }
    return false;
}

/* Takes what comes until then: all that comes, or what this sweep waits for. What is there by then
 * is taken, however late we look. */
static void take(struct auditor *auditor, int64_t until_us, bool of_sweep) {
    struct pollfd fds[CHAOS_NODES_MAX + 1];
    size_t count = auditor->options->node_count;
    while (of_sweep ? is_anybody_asked(auditor) : !auditor->stopped) {
        int64_t left_us = until_us - tool_now_us();
        left_us = left_us > 0 ? left_us : 0;
        for (size_t n = 0; n < count; n++) {
            const struct probe *probe = &auditor->probes[n];
            fds[n] = (struct pollfd){probe->redis != NULL ? probe->redis->fd : -1,
                                     (short)(POLLIN | (probe->unsent ? POLLOUT : 0)), 0};
        }
        fds[count] = (struct pollfd){auditor->stopped ? -1 : auditor->signals, POLLIN, 0};
        struct timespec left = {left_us / 1000000, left_us % 1000000 * 1000};
        int ready = ppoll(fds, count + 1, &left, NULL);
        if (ready == 0) {
            return;
        }
        if (ready < 0) {
            continue; /* a signal that is none of ours */
        }
        for (size_t n = 0; n < count; n++) {
            if (fds[n].revents != 0) {
                probe_io(&auditor->probes[n], auditor->options->resource_count);
            }
        }
        auditor->stopped |= fds[count].revents != 0;
    }
}

/* Those whose time is over have nothing any more. */
static json_t *readers_of(const redisReply *seen) {
    json_t *readers = json_array();
    for (size_t i = 0; i + 1 < seen->element[3]->elements; i += 2) {
        char token[CHAOS_TOKEN_SIZE];
        json_int_t left_ms = seen->element[3]->element[i + 1]->integer;
        describe_value(seen->element[3]->element[i], token);
        if (left_ms >= 0) {
            json_array_append_new(readers, json_pack("[s,I]", token, left_ms));
        }
    }
    if (json_array_size(readers) == 0) {
        json_array_append_new(readers, json_string(""));
        json_array_append_new(readers, json_integer(0));
    }
    return readers;
}

/* A key of another type denies a lock as well; then GET is answered by an error. A set without a
 * ttl is a stranger's, too. */
static json_t *sight_of(const redisReply *seen) {
    char token[CHAOS_TOKEN_SIZE] = "";
    if (seen == NULL) {
        return json_null();
    }
    if (seen->element[3]->elements > 0 && seen->element[1]->integer >= 0) {
        return readers_of(seen);
    }
    bool missing = seen->element[0]->type == REDIS_REPLY_NIL;
    if (!missing) {
        describe_value(seen->element[0], token);
    }
    return json_pack("[s,I]", token, (json_int_t)(missing ? 0 : seen->element[1]->integer));
}

static json_t *line_of(const redisReply *seen) {
    json_t *line = json_array();
    for (size_t i = 0; seen != NULL && i < seen->element[2]->elements; i++) {
        char token[CHAOS_TOKEN_SIZE];
        describe_value(seen->element[2]->element[i], token);
        json_array_append_new(line, json_string(token));
    }
    return line;
}

static void write_down(struct auditor *auditor, int64_t from_us, int64_t to_us, size_t resource) {
    json_t *nodes = json_array(), *lines = json_array();
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        const redisReply *seen = auditor->probes[n].seen[resource];
        if (json_array_append_new(nodes, sight_of(seen)) != 0 || json_array_append_new(lines, line_of(seen)) != 0) {
            chaos_break_off("auditor", "a sight", strerror(errno));
        }
    }
    chaos_log_event(&auditor->log, from_us, "keys", "s:I,s:i,s:o,s:o", "to", (json_int_t)to_us, "resource",
                    (int)resource + 1, "nodes", nodes, "lines", lines);
}

static void sweep(struct auditor *auditor) {
    int64_t from_us = tool_now_us(), to_us = from_us;
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        probe_begin(&auditor->probes[n], auditor->options);
    }
    take(auditor, from_us + auditor->options->timeout_ms * 1000, true);
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        struct probe *probe = &auditor->probes[n];
        if (probe->state == ASKED) {
            enter(probe, BEHIND); /* what it did not answer by now is not of this sweep any more */
        }
        to_us = probe->last_us > to_us ? probe->last_us : to_us;
    }
    for (size_t i = 0; i < auditor->options->resource_count; i++) {
        write_down(auditor, from_us, to_us, i);
    }
}

static void work(struct auditor *auditor) {
    const struct chaos_auditor_options *options = auditor->options;
    int64_t next_us = tool_now_us();
    for (size_t n = 0; n < options->node_count; n++) {
        auditor->probes[n].port = options->ports[n];
    }
    while (!auditor->stopped) {
        sweep(auditor);
        /* Sweeps that were missed, for this process stood still, are not made up for. */
        int64_t now_us = tool_now_us();
        next_us += options->interval_ms * 1000;
        next_us = next_us < now_us ? now_us : next_us;
        take(auditor, next_us, false);
    }
    for (size_t n = 0; n < options->node_count; n++) {
        lose(&auditor->probes[n]);
        forget_seen(&auditor->probes[n]);
    }
}

int chaos_auditor_run(const struct chaos_auditor_options *options) {
    struct auditor auditor = {.options = options};
    const sigset_t set = chaos_stop_signal();
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 ||
        (auditor.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0) {
        chaos_break_off("auditor", "cannot take SIGTERM", strerror(errno));
    }
    if (!chaos_log_open(&auditor.log, options->log_path)) {
        chaos_break_off("auditor", options->log_path, strerror(errno));
    }
    work(&auditor);
    chaos_log_close(&auditor.log);
    close(auditor.signals);
    return 0;
}
