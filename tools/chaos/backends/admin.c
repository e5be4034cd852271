/* Asks nodes as the user "chaos", by hiredis' synchronous calls. */
#include "backends/admin.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/program.h"
#include "values/clock.h"
#include "values/values.h"

enum { TIMEOUT_MS = 500, SCRIPT_ENDS_MS = 5000, STALE_REPLIES_MAX = 64 };

/* After so long a script, others are answered by BUSY, and SCRIPT KILL is heard. */
#define BUSY_AFTER       "10"
#define BUSY_AFTER_USUAL "5000"
/* TIME stands still in scripts of Redis 7.2, and os.clock() came with 7.4: so the script counts,
 * and cannot run for ever. */
#define COUNT_SCRIPT "for i = 1, tonumber(ARGV[1]) do end"

struct session {
    redisContext *redis;
    uint16_t port;
    int *held; /* NULL: no connection is to be kept */
    struct chaos_error *error;
};

static bool is_held(const struct session *session) {
    return session->held != NULL && *session->held != 0 && session->redis->fd == *session->held;
}

/* What to do about an answer of the node's. */
static const char *advice(const char *answer) {
    if (strstr(answer, "max number of clients") != NULL) {
        return "; wait for the end of the maxclients fault, or restart the node";
    }
    if (strncmp(answer, "WRONGPASS", 9) == 0 || strncmp(answer, "NOPERM", 6) == 0 ||
        strncmp(answer, "NOAUTH", 6) == 0) {
        return "; the node's configuration needs a user chaos that may do anything";
    }
    if (strstr(answer, "DEBUG command not allowed") != NULL) {
        return "; the node's configuration needs enable-debug-command yes";
    }
    if (strncmp(answer, "BUSY", 4) == 0 || strncmp(answer, "LOADING", 7) == 0) {
        return "; try again in a moment";
    }
    return "";
}

static bool is_timeout(const redisContext *redis) {
#ifdef REDIS_ERR_TIMEOUT /* hiredis 1.0 */
    if (redis->err == REDIS_ERR_TIMEOUT) {
        return true;
    }
#endif
    return redis->err == REDIS_ERR_IO && (errno == EAGAIN || errno == ETIMEDOUT || errno == EINPROGRESS);
}

/* No answer came. `what` was asked; it names no password. */
static bool unanswered(const struct session *session, const char *what) {
    const redisContext *redis = session->redis;
    const char *why = redis == NULL ? "out of memory" : redis->errstr;
    if (redis != NULL && redis->err == 0) {
        why = "too many answers to other questions came first";
    } else if (redis != NULL && is_timeout(redis)) {
        why = "no answer within 500 ms; it is paused or busy: try again when that is over";
    } else if (redis != NULL && redis->err == REDIS_ERR_IO && errno == ECONNREFUSED) {
        why = "nobody listens there: the node is dead, or its server has ended (its log says why)";
    } else if (redis != NULL && (redis->err == REDIS_ERR_EOF ||
                                 (redis->err == REDIS_ERR_IO && (errno == ECONNRESET || errno == EPIPE)))) {
        why = "the connection was closed before the answer; the node was killed, or takes no more clients";
    }
    return chaos_fail(session->error, "127.0.0.1:%u was asked for %s: %s", session->port, what, why);
}

static bool is_error(const redisReply *reply, const char *code) {
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, code, strlen(code)) == 0;
}

/* The answer; NULL with a sentence if it is an error, or none. */
static redisReply *check_answer(const struct session *session, const char *what, redisReply *reply) {
    if (reply == NULL) {
        unanswered(session, what);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        chaos_fail(session->error, "127.0.0.1:%u was asked for %s and answered \"%s\"%s", session->port, what,
                   reply->str, advice(reply->str));
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

/* Frees the answer. False with a sentence if it is an error, or none. */
static bool accept_answer(const struct session *session, const char *what, redisReply *reply) {
    reply = check_answer(session, what, reply);
    freeReplyObject(reply);
    return reply != NULL;
}

/* A command without arguments of ours, which is shown as it is. */
static bool ask(const struct session *session, const char *command) {
    return accept_answer(session, command, redisCommand(session->redis, command));
}

/* Answers that nobody waited for lie before those that we are to get. */
static bool skip_stale(const struct session *session) {
    const char *mark = TOOL_TEXT(32, "%" PRId64, tool_now_us());
    redisReply *reply = redisCommand(session->redis, "ECHO %s", mark);
    for (int i = 0; i < STALE_REPLIES_MAX && reply != NULL; i++) {
        bool ours = reply->type == REDIS_REPLY_STRING && strcmp(reply->str, mark) == 0;
        freeReplyObject(reply);
        reply = NULL;
        if (ours) {
            return true;
        }
        void *next = NULL;
        reply = redisGetReply(session->redis, &next) == REDIS_OK ? next : NULL;
    }
    freeReplyObject(reply);
    return unanswered(session, "ECHO");
}

static void drop_held(int *held) {
    (void)shutdown(*held, SHUT_RDWR); /* processes that we forked meanwhile have it, too */
    close(*held);
    *held = 0;
}

/* Returns whether what it was for is done. */
static bool close_session(const struct session *session, bool done) {
    if (session->redis != NULL && is_held(session)) {
        (void)redisFreeKeepFd(session->redis);
    } else if (session->redis != NULL) {
        redisFree(session->redis);
    }
    return done;
}

/* On the held connection, if there is one that lives. */
static bool open_session(struct session *session, uint16_t port, int *held, struct chaos_error *error) {
    struct timeval timeout = {0, TIMEOUT_MS * 1000};
    *session = (struct session){NULL, port, held, error};
    if (held != NULL && *held != 0) {
        session->redis = redisConnectFd(*held);
        if (session->redis == NULL) {
            return unanswered(session, "a connection");
        }
        if (skip_stale(session)) {
            return true;
        }
        if (close_session(session, is_timeout(session->redis))) {
            return false;
        }
        drop_held(held); /* the node was restarted */
    }
    session->redis = redisConnectWithTimeout("127.0.0.1", port, timeout);
    if (session->redis == NULL || session->redis->err != 0) {
        return close_session(session, unanswered(session, "a connection"));
    }
    if (redisSetTimeout(session->redis, timeout) != REDIS_OK) {
        return close_session(session, unanswered(session, "a timeout"));
    }
    return accept_answer(session, "AUTH", redisCommand(session->redis, "AUTH chaos chaos")) ||
           close_session(session, false);
}

/*
 * Sends what has been appended, without waiting for the answer, but until the node's kernel has it
 * all: a server reads what a connection had been sent before it sees the connection's end, so it is
 * done even if we close at once, and even if it reads a second later.
 */
static bool tell(const struct session *session, const char *what, int appended) {
    int done = 0, unacknowledged = 1;
    while (appended == REDIS_OK && !done) {
        appended = redisBufferWrite(session->redis, &done);
    }
    int64_t deadline_ms = tool_now_ms() + TIMEOUT_MS;
    while (appended == REDIS_OK && ioctl(session->redis->fd, SIOCOUTQ, &unacknowledged) == 0 && unacknowledged > 0 &&
           chaos_wait(deadline_ms)) {
    }
    return (appended == REDIS_OK && unacknowledged == 0) || unanswered(session, what);
}

static bool begin_slow(const struct session *session, int64_t amount_ms) {
    /* Whether it may be asked for is seen before. */
    return ask(session, "DEBUG SLEEP 0") &&
           tell(session, "DEBUG SLEEP",
                redisAppendCommand(session->redis, "DEBUG SLEEP %lld.%03d", (long long)amount_ms / 1000,
                                   (int)(amount_ms % 1000)));
}

/* How long the script takes to count to 500,000, as seen from here; 0 with a sentence. */
static int64_t count_us(const struct session *session) {
    int64_t best_us = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        int64_t start_us = tool_now_us();
        if (!accept_answer(session, "EVAL", redisCommand(session->redis, "EVAL %s 0 500000", COUNT_SCRIPT))) {
            return 0;
        }
        int64_t took_us = tool_now_us() - start_us;
        best_us = took_us < best_us ? took_us : best_us;
    }
    return best_us > 0 ? best_us : 1;
}

/* A script that was begun before, or was killed just now, may run for a moment: on a busy machine
 * longer than it should. */
static bool set_busy_after(const struct session *session, const char *limit_ms) {
    const char *what = TOOL_TEXT(64, "CONFIG SET lua-time-limit %s", limit_ms);
    int64_t deadline_ms = tool_now_ms() + SCRIPT_ENDS_MS;
    redisReply *reply;
    while ((reply = redisCommand(session->redis, what)) != NULL && is_error(reply, "BUSY") && chaos_wait(deadline_ms)) {
        freeReplyObject(reply);
    }
    return accept_answer(session, what, reply);
}

static bool begin_busy(const struct session *session, int64_t amount_ms) {
    int64_t took_us = set_busy_after(session, BUSY_AFTER) ? count_us(session) : 0;
    return took_us > 0 && tell(session, "EVAL",
                               redisAppendCommand(session->redis, "EVAL %s 0 %lld", COUNT_SCRIPT,
                                                  (long long)(amount_ms * 500000 / took_us * 1000)));
}

/* A script that has ended meanwhile is as good as killed. */
static bool end_busy(const struct session *session) {
    redisReply *reply = redisCommand(session->redis, "SCRIPT KILL");
    bool ended = reply != NULL && is_error(reply, "NOTBUSY");
    if (ended) {
        freeReplyObject(reply);
    }
    return (ended || accept_answer(session, "SCRIPT KILL", reply)) && set_busy_after(session, BUSY_AFTER_USUAL);
}

/* The default first; less where the limit of open files does not allow it. */
static bool end_maxclients(const struct session *session) {
    bool done = ask(session, "CONFIG SET maxclients 10000") ||
                (session->redis->err == 0 && ask(session, "CONFIG SET maxclients 4000")) ||
                (session->redis->err == 0 && ask(session, "CONFIG SET maxclients 900"));
    if (done) {
        (void)chaos_fail(session->error, "%s", ""); /* of a number that was too high */
    }
    if (done && is_held(session)) {
        (void)shutdown(*session->held, SHUT_RDWR);
        *session->held = 0; /* so that it is closed with the session */
    }
    return done;
}

/* The faults of plain commands, and what ends those that have to be undone. */
static const struct {
    const char *begin[2], *end;
} commands[CHAOS_FAULT_KINDS] = {
    [CHAOS_FAULT_SCRIPT_FLUSH] = {{"SCRIPT FLUSH"}, NULL},
    [CHAOS_FAULT_FLUSHALL] = {{"FLUSHALL"}, NULL},
    [CHAOS_FAULT_DISCONNECT] = {{"CLIENT KILL USER default"}, NULL},
    [CHAOS_FAULT_UNSUBSCRIBE] = {{"CLIENT KILL TYPE pubsub"}, NULL},
    [CHAOS_FAULT_MAXCLIENTS] = {{"CONFIG SET maxclients 1"}, NULL},
    [CHAOS_FAULT_OOM] = {{"CONFIG SET maxmemory 1"}, "CONFIG SET maxmemory 0"},
    [CHAOS_FAULT_PASSWORD] = {{"ACL SETUSER default resetpass >rotated", "CLIENT KILL USER default"},
                              "ACL SETUSER default nopass"},
};

static bool begin(const struct session *session, const struct chaos_fault *fault) {
    const char *const *words = commands[fault->kind].begin;
    if (fault->kind == CHAOS_FAULT_SLOW || fault->kind == CHAOS_FAULT_BUSY) {
        return (fault->kind == CHAOS_FAULT_SLOW ? begin_slow : begin_busy)(session, fault->amount);
    }
    if (words[0] == NULL) {
        return chaos_fail(session->error, "this fault is none that a node can be asked for");
    }
    bool begun = ask(session, words[0]) && (words[1] == NULL || ask(session, words[1]));
    if (begun && fault->kind == CHAOS_FAULT_MAXCLIENTS) {
        *session->held = session->redis->fd;
    }
    return begun;
}

bool chaos_admin_begin(uint16_t port, const struct chaos_fault *fault, int *held, struct chaos_error *error) {
    struct session session;
    return open_session(&session, port, held, error) && close_session(&session, begin(&session, fault));
}

bool chaos_admin_end(uint16_t port, const struct chaos_fault *fault, int *held, struct chaos_error *error) {
    struct session session;
    const char *command = commands[fault->kind].end;
    bool busy = fault->kind == CHAOS_FAULT_BUSY, full = fault->kind == CHAOS_FAULT_MAXCLIENTS;
    return (!busy && !full && command == NULL) ||
           (open_session(&session, port, held, error) && close_session(&session, busy   ? end_busy(&session)
                                                                                 : full ? end_maxclients(&session)
                                                                                        : ask(&session, command)));
}

/* The answer to a question, to be freed; NULL with a sentence. */
static redisReply *ask_once(uint16_t port, const char *command, int type, struct chaos_error *error) {
    struct session session;
    if (!open_session(&session, port, NULL, error)) {
        return NULL;
    }
    redisReply *reply = check_answer(&session, command, redisCommand(session.redis, command));
    if (reply != NULL && reply->type != type) {
        chaos_fail(error, "127.0.0.1:%u gave no answer to %s: is it a Redis server?", port, command);
        freeReplyObject(reply);
        reply = NULL;
    }
    (void)close_session(&session, true);
    return reply;
}

bool chaos_admin_ping(uint16_t port, struct chaos_error *error) {
    redisReply *reply = ask_once(port, "PING", REDIS_REPLY_STATUS, error);
    freeReplyObject(reply);
    return reply != NULL;
}

static bool ends_with(const redisReply *key, const char *suffix) {
    const size_t length = strlen(suffix);
    return key->type == REDIS_REPLY_STRING && (size_t)key->len >= length &&
           memcmp(key->str + (size_t)key->len - length, suffix, length) == 0;
}

int64_t chaos_admin_key_count(uint16_t port, bool queues, struct chaos_error *error) {
    redisReply *reply = ask_once(port, "KEYS *", REDIS_REPLY_ARRAY, error);
    int64_t count = reply == NULL ? -1 : 0;
    for (size_t i = 0; reply != NULL && i < reply->elements; i++) {
        const redisReply *key = reply->element[i];
        /* A resource's counter of fencing tokens stays. */
        count += !ends_with(key, ":fence") && (queues || !(ends_with(key, ":wait") || ends_with(key, ":waiter")));
    }
    freeReplyObject(reply);
    return count;
}

int64_t chaos_admin_time_s(uint16_t port) {
    redisReply *reply = ask_once(port, "TIME", REDIS_REPLY_ARRAY, NULL);
    bool told = reply != NULL && reply->elements == 2 && reply->element[0]->str != NULL;
    int64_t seconds = told ? atoll(reply->element[0]->str) : -1;
    freeReplyObject(reply);
    return seconds;
}

/* The member's value, up to the end of its line, into out. */
static bool member(const char *info, const char *name, char *out, size_t size) {
    const char *at = strstr(info, name);
    if (at != NULL) {
        at += strlen(name);
        snprintf(out, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    }
    return at != NULL;
}

bool chaos_admin_version(uint16_t port, char *version, size_t version_size, struct chaos_error *error) {
    char number[32] = "?";
    redisReply *reply = ask_once(port, "INFO server", REDIS_REPLY_STRING, error);
    if (reply == NULL) {
        return false;
    }
    bool valkey = member(reply->str, "\nvalkey_version:", number, sizeof number);
    bool known = valkey || member(reply->str, "\nredis_version:", number, sizeof number);
    freeReplyObject(reply);
    snprintf(version, version_size, "%s %s", valkey ? "valkey" : "redis", number);
    return known || chaos_fail(error, "127.0.0.1:%u does not say its version: is it a Redis server?", port);
}
