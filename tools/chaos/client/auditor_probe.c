/* The auditor's connection to one node: asks it for all resources at once, and never waits. */
#include "client/auditor_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "history/log.h"

enum { RETRY_MS = 100, CONNECT_MS = 1000, BEHIND_MS = 3000, READ_SIZE = 16384 };

static const char auth[] = "*3\r\n$4\r\nAUTH\r\n$5\r\nchaos\r\n$5\r\nchaos\r\n";

void chaos_probe_init(struct chaos_probe *probe, uint16_t port, size_t resources) {
    *probe = (struct chaos_probe){.state = CHAOS_PROBE_AWAY, .port = port, .fd = -1, .resources = resources};
}

void chaos_probe_clear(struct chaos_probe *probe) {
    if (probe->fd >= 0) {
        close(probe->fd);
    }
    if (probe->reader != NULL) {
        redisReaderFree(probe->reader);
    }
    if (probe->first != NULL) {
        freeReplyObject(probe->first);
    }
    probe->fd = -1;
    probe->reader = NULL;
    probe->first = NULL;
    probe->state = CHAOS_PROBE_AWAY;
}

static void lose(struct chaos_probe *probe) {
    chaos_probe_clear(probe);
    probe->next_try_us = chaos_now_us() + RETRY_MS * 1000;
}

static void fall_behind(struct chaos_probe *probe, size_t owed) {
    probe->state = CHAOS_PROBE_BEHIND;
    probe->owed = owed;
    probe->since_us = chaos_now_us();
}

/* All or nothing: there is room, for a node is asked only when it owes nothing. */
static bool send_all(struct chaos_probe *probe, const char *bytes, size_t size) {
    return send(probe->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static void greet(struct chaos_probe *probe) {
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

static void reach(struct chaos_probe *probe) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(probe->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    probe->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe->fd < 0 ||
        (connect(probe->fd, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)) {
        lose(probe);
        return;
    }
    probe->state = CHAOS_PROBE_CONNECTING;
    probe->since_us = chaos_now_us();
}

static bool is_over(const struct chaos_probe *probe, int64_t limit_ms) {
    return chaos_now_us() - probe->since_us > limit_ms * 1000;
}

void chaos_probe_begin(struct chaos_probe *probe, const char *questions, size_t size) {
    probe->last_us = 0;
    memset(probe->sights, 0, sizeof probe->sights);
    if ((probe->state == CHAOS_PROBE_CONNECTING && is_over(probe, CONNECT_MS)) ||
        (probe->state == CHAOS_PROBE_BEHIND && is_over(probe, BEHIND_MS))) {
        lose(probe);
    }
    if (probe->state == CHAOS_PROBE_AWAY && chaos_now_us() >= probe->next_try_us) {
        reach(probe);
    } else if (probe->state == CHAOS_PROBE_IDLE) {
        probe->answered = 0;
        probe->state = CHAOS_PROBE_ASKED;
        if (!send_all(probe, questions, size)) {
            lose(probe);
        }
    }
}

void chaos_probe_end(struct chaos_probe *probe) {
    if (probe->state == CHAOS_PROBE_ASKED) {
        fall_behind(probe, probe->resources * CHAOS_PROBE_QUESTIONS - probe->answered);
    }
}

short chaos_probe_events(const struct chaos_probe *probe) {
    return probe->state == CHAOS_PROBE_CONNECTING ? POLLOUT : POLLIN;
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
static void see(struct chaos_probe *probe, const redisReply *second, struct chaos_sight *sight) {
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
static bool take_answer(struct chaos_probe *probe, redisReply *reply) {
    size_t resource = probe->answered / CHAOS_PROBE_QUESTIONS, question = probe->answered % CHAOS_PROBE_QUESTIONS;
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
    if (probe->answered == probe->resources * CHAOS_PROBE_QUESTIONS) {
        probe->state = CHAOS_PROBE_IDLE;
    }
    return possible;
}

/* An AUTH that is refused is told once: without it, a node with a password answers nothing. */
static void drop(struct chaos_probe *probe, redisReply *reply) {
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGPASS", 9) == 0 && !probe->complained) {
        probe->complained = true;
        fprintf(stderr, "redlock-chaos: auditor: the node at port %u refuses the user \"chaos\": %s\n",
                (unsigned)probe->port, reply->str);
    }
    freeReplyObject(reply);
    if (--probe->owed == 0) {
        probe->state = CHAOS_PROBE_IDLE;
        if (probe->first != NULL) {
            freeReplyObject(probe->first);
            probe->first = NULL;
        }
    }
}

/* False if the connection cannot be understood any more. */
static bool take_replies(struct chaos_probe *probe) {
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(probe->reader, &reply) != REDIS_OK) {
            return false;
        }
        if (reply == NULL) {
            return true;
        }
        if (probe->state == CHAOS_PROBE_BEHIND) {
            drop(probe, reply);
        } else if (probe->state != CHAOS_PROBE_ASKED) {
            freeReplyObject(reply); /* nobody had asked */
            return false;
        } else if (!take_answer(probe, reply)) {
            return false;
        }
    }
}

void chaos_probe_io(struct chaos_probe *probe) {
    char buffer[READ_SIZE];
    if (probe->state == CHAOS_PROBE_CONNECTING) {
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
