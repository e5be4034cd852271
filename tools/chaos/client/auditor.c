/* The auditor process: asks every node, past the proxy, who has which key. Its connection to one
 * node asks for all resources at once, and never waits. */
#include "client/auditor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "history/history.h"
#include "history/log.h"

/*
 * state       event                                       → state
 * AWAY        a sweep begins, RETRY_MS after the last try → CONNECTING
 * CONNECTING  connected: AUTH is sent                     → BEHIND
 *             no answer for CONNECT_MS                    → AWAY
 * IDLE        a sweep begins: the questions are sent      → ASKED
 * ASKED       the last answer                             → IDLE
 *             the sweep ends without it                   → BEHIND
 * BEHIND      the last answer that is owed (it is dropped) → IDLE
 *             none for BEHIND_MS                          → AWAY
 * any         closed, out of protocol, no memory          → AWAY
 */
enum state { AWAY, CONNECTING, IDLE, ASKED, BEHIND };

struct probe {
    enum state state;
    uint16_t port;       /* of 127.0.0.1 */
    int fd;              /* -1: AWAY */
    int64_t since_us;    /* of CONNECTING and BEHIND */
    int64_t next_try_us; /* of AWAY */
    redisReader *reader;
    size_t owed; /* BEHIND: answers that nobody waits for any more */
    size_t resources;
    size_t answered;   /* ASKED: answers so far */
    redisReply *first; /* the first GET of the resource whose answers are coming in */
    int64_t pttl_ms;
    struct chaos_sight sights[CHAOS_RESOURCES_MAX]; /* of the current sweep, or the last */
    /* when the last of its answers was taken; 0: none */
    int64_t last_us;
    bool complained;
};

/* One resource's questions: GET, PTTL, GET. Where both GETs say the same, PTTL was of that key. */
enum { QUESTIONS = 3 };
enum { RETRY_MS = 100, CONNECT_MS = 1000, BEHIND_MS = 3000, READ_SIZE = 16384 };

static const char auth[] = "*3\r\n$4\r\nAUTH\r\n$5\r\nchaos\r\n$5\r\nchaos\r\n";

static void probe_init(struct probe *probe, uint16_t port, size_t resources) {
    *probe = (struct probe){.state = AWAY, .port = port, .fd = -1, .resources = resources};
}

static void probe_clear(struct probe *probe) {
    if (probe->fd >= 0) {
        close(probe->fd);
    }
    redisReaderFree(probe->reader);
    freeReplyObject(probe->first);
    probe->fd = -1;
    probe->reader = NULL;
    probe->first = NULL;
    probe->state = AWAY;
}

static void lose(struct probe *probe) {
    probe_clear(probe);
    probe->next_try_us = chaos_now_us() + RETRY_MS * 1000;
}

static void fall_behind(struct probe *probe, size_t owed) {
    probe->state = BEHIND;
    probe->owed = owed;
    probe->since_us = chaos_now_us();
}

/* All or nothing: there is room, for a node is asked only when it owes nothing. */
static bool send_all(struct probe *probe, const char *bytes, size_t size) {
    return send(probe->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static void greet(struct probe *probe) {
    int error = 0, on = 1;
    socklen_t size = sizeof error;
    if (getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        lose(probe);
        return;
    }
    (void)setsockopt(probe->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    probe->reader = redisReaderCreate();
    if (probe->reader == NULL || !send_all(probe, auth, sizeof auth - 1)) {
        lose(probe);
        return;
    }
    fall_behind(probe, 1);
}

static void reach(struct probe *probe) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(probe->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    probe->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe->fd < 0 ||
        (connect(probe->fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)) {
        lose(probe);
        return;
    }
    probe->state = CONNECTING;
    probe->since_us = chaos_now_us();
}

static bool is_over(const struct probe *probe, int64_t limit_ms) {
    return chaos_now_us() - probe->since_us > limit_ms * 1000;
}

/* Asks, if it can be asked now. */
static void probe_begin(struct probe *probe, const char *questions, size_t size) {
    probe->last_us = 0;
    memset(probe->sights, 0, sizeof probe->sights);
    if ((probe->state == CONNECTING && is_over(probe, CONNECT_MS)) ||
        (probe->state == BEHIND && is_over(probe, BEHIND_MS))) {
        lose(probe);
    }
    if (probe->state == AWAY && chaos_now_us() >= probe->next_try_us) {
        reach(probe);
    } else if (probe->state == IDLE) {
        probe->answered = 0;
        probe->state = ASKED;
        if (!send_all(probe, questions, size)) {
            lose(probe);
        }
    }
}

/* What it did not answer by now is not of this sweep any more. */
static void probe_end(struct probe *probe) {
    if (probe->state == ASKED) {
        fall_behind(probe, probe->resources * QUESTIONS - probe->answered);
    }
}

/* A key of another type denies a lock as well. Any other error is no answer. */
static bool is_wrong_type(const redisReply *reply) {
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGTYPE", 9) == 0;
}

static bool is_same(const redisReply *a, const redisReply *b) {
    if (a->type == REDIS_REPLY_STRING && b->type == REDIS_REPLY_STRING) {
        return a->len == b->len && memcmp(a->str, b->str, (size_t)a->len) == 0;
    }
    return (a->type == REDIS_REPLY_NIL && b->type == REDIS_REPLY_NIL) || (is_wrong_type(a) && is_wrong_type(b));
}

/* The first characters of whatever is there; never "", which says that there is no key. */
static void describe_value(const redisReply *reply, char *token) {
    if (reply->type != REDIS_REPLY_STRING || reply->len == 0) {
        snprintf(token, CHAOS_TOKEN_SIZE, "%s", reply->type == REDIS_REPLY_STRING ? "(empty)" : "(not a string)");
        return;
    }
    size_t size = (size_t)reply->len < CHAOS_TOKEN_SIZE - 1 ? (size_t)reply->len : CHAOS_TOKEN_SIZE - 1;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)reply->str[i];
        token[i] = byte < 0x20 || byte >= 0x7f ? '?' : (char)byte;
    }
    token[size] = '\0';
}

/* Where the key went or came between the questions, nothing is known. */
static void see(struct probe *probe, const redisReply *second, struct chaos_sight *sight) {
    bool missing = second->type == REDIS_REPLY_NIL;
    if (!is_same(probe->first, second) || missing != (probe->pttl_ms == -2)) {
        return;
    }
    sight->answered = true;
    sight->pttl_ms = missing ? 0 : probe->pttl_ms;
    if (!missing) {
        describe_value(second, sight->token);
    }
}

/* Takes the reply. False if it is none that a server can have given to this question. */
static bool take_answer(struct probe *probe, redisReply *reply) {
    size_t resource = probe->answered / QUESTIONS, question = probe->answered % QUESTIONS;
    bool error = reply->type == REDIS_REPLY_ERROR;
    bool possible = error || (question == 1 ? reply->type == REDIS_REPLY_INTEGER
                                            : reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_NIL);
    probe->last_us = chaos_now_us();
    probe->answered++;
    if (possible && question == 0) {
        probe->first = reply;
        return true;
    }
    if (possible && question == 1) {
        probe->pttl_ms = error ? -2 : reply->integer;
    } else if (possible) {
        see(probe, reply, &probe->sights[resource]);
        freeReplyObject(probe->first);
        probe->first = NULL;
    }
    freeReplyObject(reply);
    if (probe->answered == probe->resources * QUESTIONS) {
        probe->state = IDLE;
    }
    return possible;
}

/* An AUTH that is refused is told once: without it, a node with a password answers nothing. */
static void drop(struct probe *probe, redisReply *reply) {
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGPASS", 9) == 0 && !probe->complained) {
        probe->complained = true;
        fprintf(stderr, "redlock-chaos: auditor: the node at port %u refuses the user \"chaos\": %s\n",
                (unsigned)probe->port, reply->str);
    }
    freeReplyObject(reply);
    if (--probe->owed == 0) {
        probe->state = IDLE;
        freeReplyObject(probe->first);
        probe->first = NULL;
    }
}

/* False if the connection cannot be understood any more. */
static bool take_replies(struct probe *probe) {
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(probe->reader, &reply) != REDIS_OK) {
            return false;
        }
        if (reply == NULL) {
            return true;
        }
        if (probe->state == BEHIND) {
            drop(probe, reply);
        } else if (probe->state != ASKED) {
            freeReplyObject(reply); /* nobody had asked */
            return false;
        } else if (!take_answer(probe, reply)) {
            return false;
        }
    }
}

static void probe_io(struct probe *probe) {
    char buffer[READ_SIZE];
    if (probe->state == CONNECTING) {
        greet(probe);
        return;
    }
    ssize_t size = recv(probe->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (size <= 0 || redisReaderFeed(probe->reader, buffer, (size_t)size) != REDIS_OK || !take_replies(probe)) {
        lose(probe);
    }
}

enum { EXIT_BROKEN = 70 };

struct auditor {
    const struct chaos_auditor_options *options;
    struct chaos_log log;
    struct probe probes[CHAOS_NODES_MAX];
    char *questions; /* of one sweep, to any node */
    size_t questions_size;
    int signals; /* readable once SIGTERM has come */
    bool stopped;
};

static int broken(const char *what) {
    fprintf(stderr, "redlock-chaos: auditor: %s: %s\n", what, strerror(errno));
    return EXIT_BROKEN;
}

static bool write_questions(struct auditor *auditor) {
    FILE *out = open_memstream(&auditor->questions, &auditor->questions_size);
    if (out == NULL) {
        return false;
    }
    for (size_t i = 0; i < auditor->options->resource_count; i++) {
        const char *key = auditor->options->resources[i];
        static const char *const commands[QUESTIONS] = {"GET", "PTTL", "GET"};
        for (size_t q = 0; q < QUESTIONS; q++) {
            fprintf(out, "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(commands[q]), commands[q], strlen(key), key);
        }
    }
    bool worked = ferror(out) == 0;
    return fclose(out) == 0 && worked;
}

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
        int64_t left_us = until_us - chaos_now_us();
        left_us = left_us > 0 ? left_us : 0;
        for (size_t n = 0; n < count; n++) {
            fds[n] =
                (struct pollfd){auditor->probes[n].fd, auditor->probes[n].state == CONNECTING ? POLLOUT : POLLIN, 0};
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
                probe_io(&auditor->probes[n]);
            }
        }
        auditor->stopped |= fds[count].revents != 0;
    }
}

static json_t *sight_of(const struct chaos_sight *sight) {
    return sight->answered ? json_pack("[s,I]", sight->token, (json_int_t)sight->pttl_ms) : json_null();
}

static void write_down(struct auditor *auditor, int64_t from_us, int64_t to_us, size_t resource) {
    json_t *nodes = json_array();
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        if (json_array_append_new(nodes, sight_of(&auditor->probes[n].sights[resource])) != 0) {
            fputs("redlock-chaos: auditor: out of memory\n", stderr);
            _exit(EXIT_BROKEN); /* as chaos_log_event() does */
        }
    }
    chaos_log_event(&auditor->log, from_us, "keys", "s:I,s:i,s:o", "to", (json_int_t)to_us, "resource",
                    (int)resource + 1, "nodes", nodes);
}

static void sweep(struct auditor *auditor) {
    int64_t from_us = chaos_now_us(), to_us = from_us;
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        probe_begin(&auditor->probes[n], auditor->questions, auditor->questions_size);
    }
    take(auditor, from_us + auditor->options->timeout_ms * 1000, true);
    for (size_t n = 0; n < auditor->options->node_count; n++) {
        probe_end(&auditor->probes[n]);
        to_us = auditor->probes[n].last_us > to_us ? auditor->probes[n].last_us : to_us;
    }
    for (size_t i = 0; i < auditor->options->resource_count; i++) {
        write_down(auditor, from_us, to_us, i);
    }
}

static void work(struct auditor *auditor) {
    const struct chaos_auditor_options *options = auditor->options;
    int64_t next_us = chaos_now_us();
    for (size_t n = 0; n < options->node_count; n++) {
        probe_init(&auditor->probes[n], options->ports[n], options->resource_count);
    }
    while (!auditor->stopped) {
        sweep(auditor);
        /* Sweeps that were missed, for this process stood still, are not made up for. */
        int64_t now_us = chaos_now_us();
        next_us += options->interval_ms * 1000;
        next_us = next_us < now_us ? now_us : next_us;
        take(auditor, next_us, false);
    }
    for (size_t n = 0; n < options->node_count; n++) {
        probe_clear(&auditor->probes[n]);
    }
}

static int take_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    return sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
}

int chaos_auditor_run(const struct chaos_auditor_options *options) {
    struct auditor auditor = {.options = options};
    int status = 0;
    auditor.signals = take_signal();
    if (auditor.signals < 0) {
        return broken("cannot take SIGTERM");
    }
    if (!chaos_log_open(&auditor.log, options->log_path)) {
        status = broken(options->log_path);
    } else if (!write_questions(&auditor)) {
        status = broken("the commands");
    } else {
        work(&auditor);
    }
    free(auditor.questions);
    chaos_log_close(&auditor.log);
    close(auditor.signals);
    return status;
}
