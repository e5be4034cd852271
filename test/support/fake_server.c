/* A hostile node: accepts one connection after another and plays its script on each. */
#include "fake_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support.h"

#define WORDS      4
#define FLOOD_SIZE 32768 /* sent each millisecond */

const char fake_server_own[] = "";

struct fake_server {
    pthread_t thread;
    struct fake_script script;
    int listener, stop[2];
    atomic_int connections, hostile_answers, replies[FAKE_REPLIES_MAX];
    atomic_llong bytes_sent;
    char name[32], uri[48], run_id[41];
};

struct conversation {
    struct fake_server *fake;
    int fd;
    size_t used;
    char input[65536];
};

/* Waits for the descriptor or for the stop. Returns false for the stop. */
static bool wait_for(struct fake_server *fake, int fd, short events) {
    struct pollfd polls[2] = {{.fd = fake->stop[0], .events = POLLIN}, {.fd = fd, .events = events}};
    while (poll(polls, 2, -1) < 0) {
        if (errno != EINTR) {
            support_fatal("fake server: poll: %s", strerror(errno));
        }
    }
    return !polls[0].revents;
}

static bool say(struct conversation *talk, const char *bytes, size_t size) {
    for (size_t sent = 0; sent < size;) {
        if (!wait_for(talk->fake, talk->fd, POLLOUT)) {
            return false;
        }
        ssize_t n = send(talk->fd, bytes + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            continue;
        }
        if (n < 0) {
            return false;
        }
        sent += (size_t)n;
        atomic_fetch_add(&talk->fake->bytes_sent, n);
    }
    return true;
}

static bool say_text(struct conversation *talk, const char *text) {
    return say(talk, text, strlen(text));
}

/* `word` ends with a line. */
static bool say_bulk(struct conversation *talk, const char *word) {
    char header[32];
    const size_t size = strcspn(word, "\r");
    snprintf(header, sizeof header, "$%zu\r\n", size);
    return say_text(talk, header) && say(talk, word, size) && say_text(talk, "\r\n");
}

/* Returns false after a stop, or if the client is gone. */
static bool hear(struct conversation *talk) {
    if (talk->used == sizeof talk->input) {
        support_fatal("fake server: a request of more than %zu bytes", sizeof talk->input);
    }
    if (!wait_for(talk->fake, talk->fd, POLLIN)) {
        return false;
    }
    ssize_t n = recv(talk->fd, talk->input + talk->used, sizeof talk->input - talk->used, 0);
    if (n <= 0) {
        return n < 0 && errno == EINTR;
    }
    talk->used += (size_t)n;
    return true;
}

/* Finds the first complete request. Returns its length (0: none yet) and where its first words
 * begin. */
static size_t next_request(const struct conversation *talk, const char *words[WORDS]) {
    const char *at = talk->input, *end = talk->input + talk->used;
    for (size_t i = 0; i < WORDS; i++) {
        words[i] = "";
    }
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    if (!line_end) {
        return 0;
    }
    if (*at != '*') {
        support_fatal("fake server: the request does not begin with an array");
    }
    long count = atol(at + 1);
    at = line_end + 1;
    for (long i = 0; i < count; i++) {
        line_end = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (!line_end) {
            return 0;
        }
        long size = atol(at + 1);
        if (i < WORDS) {
            words[i] = line_end + 1;
        }
        if (end - line_end - 1 < size + 2) {
            return 0;
        }
        at = line_end + 1 + size + 2;
    }
    return (size_t)(at - talk->input);
}

static bool begins(const char *words, const char *name) {
    size_t size = strlen(name);
    return strncasecmp(words, name, size) == 0 && words[size] == '\r';
}

static bool ends(const char *words, const char *name) {
    const size_t size = strlen(name), length = strcspn(words, "\r");
    return length >= size && memcmp(words + length - size, name, size) == 0;
}

static bool matches(const struct conversation *talk, const char *word, const char *command) {
    return strcmp(command, "SET GET") == 0 ? begins(word, "SET") && talk->input[1] == '7' : begins(word, command);
}

static bool say_info(struct conversation *talk) {
    const char *version = talk->fake->script.version;
    char info[512], reply[600];
    int size = snprintf(info, sizeof info,
                        "# Server\r\n%s\r\nrun_id:%s\r\nuptime_in_seconds:100\r\n"
                        "# Memory\r\nmaxmemory_policy:noeviction\r\nmaxmemory:0\r\n# Persistence\r\nloading:0\r\n"
                        "# Replication\r\nrole:master\r\n",
                        version ? version : "redis_version:6.2.14", talk->fake->run_id);
    snprintf(reply, sizeof reply, "$%d\r\n%s\r\n", size, info);
    return say_text(talk, reply);
}

/* Answers a handshake command as a real node would, and others as `replies` says. Sets *known to
 * false for the rest. */
static bool behave(struct conversation *talk, const char *const *words, bool *known) {
    const struct fake_reply *replies = talk->fake->script.replies;
    *known = true;
    if (begins(words[0], "EVALSHA") && ends(words[3], "redlock:probe")) { /* nothing is missing */
        return say_text(talk, "*2\r\n$0\r\n\r\n$0\r\n\r\n");
    }
    for (size_t i = 0; i < FAKE_REPLIES_MAX && replies[i].command; i++) {
        if (matches(talk, words[0], replies[i].command)) {
            const bool second = atomic_fetch_add(&talk->fake->replies[i], 1) % 2 != 0;
            return second && replies[i].then == fake_server_own ? say_bulk(talk, words[2])
                   : second && replies[i].then                  ? say_text(talk, replies[i].then)
                                                                : say_text(talk, replies[i].bytes);
        }
    }
    if (begins(words[0], "INFO")) {
        return say_info(talk);
    }
    if (begins(words[0], "AUTH") || begins(words[0], "SELECT")) {
        return say_text(talk, "+OK\r\n");
    }
    if (begins(words[0], "PING")) {
        return say_text(talk, "+PONG\r\n");
    }
    if (begins(words[0], "TIME")) {
        return say_text(talk, "*2\r\n$10\r\n1763791726\r\n$5\r\n50413\r\n");
    }
    if (begins(words[0], "CLIENT") && begins(words[1], "ID")) {
        return say_text(talk, ":7\r\n");
    }
    if (begins(words[0], "CLIENT")) {
        return say_text(talk, "+OK\r\n");
    }
    if (begins(words[0], "SCRIPT")) { /* any SHA1 will do: the client knows its own */
        return say_text(talk, "$40\r\n0123456789012345678901234567890123456789\r\n");
    }
    *known = false;
    return true;
}

static bool be_hostile(struct conversation *talk) {
    const struct fake_script *script = &talk->fake->script;
    atomic_fetch_add(&talk->fake->hostile_answers, 1);
    if (script->bytes && !say(talk, script->bytes, script->size)) {
        return false;
    }
    if (!script->for_ever) {
        return script->end == FAKE_KEEP_OPEN;
    }
    char chunk[FLOOD_SIZE];
    memset(chunk, 'x', sizeof chunk);
    size_t used = sizeof chunk;
    if (script->tail) {
        for (used = 0; used + script->tail_size <= sizeof chunk; used += script->tail_size) {
            memcpy(chunk + used, script->tail, script->tail_size);
        }
    }
    while (say(talk, chunk, used)) {
        support_pause_ms(1); /* fast enough to hurt, without using up the machine */
    }
    return false;
}

static void converse(struct conversation *talk) {
    const struct fake_script *script = &talk->fake->script;
    if (script->greet && !be_hostile(talk)) {
        return;
    }
    for (;;) {
        const char *words[WORDS];
        size_t size = next_request(talk, words);
        if (size == 0) {
            if (!hear(talk)) {
                return;
            }
            continue;
        }
        bool known = false;
        if (script->behave_in_handshake && !behave(talk, words, &known)) {
            return;
        }
        if (!known && !be_hostile(talk)) {
            return;
        }
        talk->used -= size;
        memmove(talk->input, talk->input + size, talk->used);
    }
}

static void *run(void *data) {
    struct fake_server *fake = data;
    struct conversation *talk = malloc(sizeof *talk);
    if (!talk) {
        support_fatal("fake server: out of memory");
    }
    while (wait_for(fake, fake->listener, POLLIN)) {
        *talk = (struct conversation){.fake = fake, .fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC)};
        if (talk->fd < 0) {
            continue;
        }
        atomic_fetch_add(&fake->connections, 1);
        converse(talk);
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        if (fake->script.end == FAKE_RST) {
            setsockopt(talk->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        } else {
            shutdown(talk->fd, SHUT_WR);
        }
        /* With unread input, close() would send a RST instead of our FIN. */
        char drain[4096];
        while (fake->script.end == FAKE_FIN && recv(talk->fd, drain, sizeof drain, MSG_DONTWAIT) > 0) {
        }
        close(talk->fd);
    }
    free(talk);
    return NULL;
}

struct fake_server *fake_server_start(const struct fake_script *script) {
    struct fake_server *fake = calloc(1, sizeof *fake);
    if (!fake) {
        support_fatal("fake server: out of memory");
    }
    int port;
    fake->script = *script;
    fake->listener = support_listen(&port);
    snprintf(fake->name, sizeof fake->name, "127.0.0.1:%d", port);
    snprintf(fake->uri, sizeof fake->uri, "redis://%s", fake->name);
    snprintf(fake->run_id, sizeof fake->run_id, "%040d", port);
    if (pipe2(fake->stop, O_CLOEXEC) != 0 || pthread_create(&fake->thread, NULL, run, fake) != 0) {
        support_fatal("fake server: cannot start");
    }
    return fake;
}

void fake_server_stop(struct fake_server *fake) {
    if (!fake) {
        return;
    }
    if (write(fake->stop[1], "", 1) != 1) {
        support_fatal("fake server: write: %s", strerror(errno));
    }
    pthread_join(fake->thread, NULL);
    close(fake->listener);
    close(fake->stop[0]);
    close(fake->stop[1]);
    free(fake);
}

const char *fake_server_uri(const struct fake_server *fake) {
    return fake->uri;
}

const char *fake_server_name(const struct fake_server *fake) {
    return fake->name;
}

int fake_server_connections(struct fake_server *fake) {
    return atomic_load(&fake->connections);
}

int fake_server_hostile_answers(struct fake_server *fake) {
    return atomic_load(&fake->hostile_answers);
}

int fake_server_replies(struct fake_server *fake, const char *command) {
    for (size_t i = 0; i < FAKE_REPLIES_MAX && fake->script.replies[i].command; i++) {
        if (strcmp(fake->script.replies[i].command, command) == 0) {
            return atomic_load(&fake->replies[i]);
        }
    }
    support_fatal("fake server: no reply for %s", command);
}

long long fake_server_bytes_sent(struct fake_server *fake) {
    return atomic_load(&fake->bytes_sent);
}
