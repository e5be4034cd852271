/* Stands between the library and one server. */
#include "relay.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "contender.h"
#include "request.h"
#include "still_clock.h"

#define TURN_NS      1000000 /* how long a turn of the loop takes, by the still clock */
#define IDLE_SECONDS 0.01    /* how long one waits at most if nothing comes */

static void address_of(struct sockaddr_un *address, const char *path) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address->sun_path) {
        contender_fatal("the path of a socket is too long: %s", path);
    }
    memcpy(address->sun_path, path, strlen(path) + 1);
}

static int new_socket(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        contender_fatal("socket: %s", strerror(errno));
    }
    return fd;
}

static int connect_to(const char *path) {
    struct sockaddr_un address;
    int fd = new_socket();
    address_of(&address, path);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        contender_fatal("cannot connect to the server at %s: %s", path, strerror(errno));
    }
    return fd;
}

/* The library may have left: its end is read next. */
static void send_all(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EPIPE) {
            return;
        }
        if (sent < 0) {
            contender_fatal("send: %s", strerror(errno));
        }
        bytes += sent;
        size -= (size_t)sent;
    }
}

/* One request and its reply. Returns the size of the reply. */
static size_t exchange(int server, const char *request, size_t size, char *reply, size_t reply_max) {
    redisReader *reader = redisReaderCreate();
    void *parsed = NULL;
    size_t used = 0;
    if (!reader) {
        contender_fatal("no memory for a reply");
    }
    send_all(server, request, size);
    while (!parsed) {
        ssize_t got = recv(server, reply + used, reply_max - used, 0);
        if (got <= 0) {
            contender_fatal("the server said too much, or nothing: %s", got < 0 ? strerror(errno) : "end of file");
        }
        if (redisReaderFeed(reader, reply + used, (size_t)got) != REDIS_OK ||
            redisReaderGetReply(reader, &parsed) != REDIS_OK) {
            contender_fatal("the server said what is no reply: %s", reader->errstr);
        }
        used += (size_t)got;
    }
    freeReplyObject(parsed);
    redisReaderFree(reader);
    return used;
}

static enum relay_kind kind_of(const char *const words[REQUEST_WORDS]) {
    static const enum relay_kind scripts[] = {RELAY_SCRIPT, RELAY_SCRIPT_FENCED, RELAY_SCRIPT_QUEUED};
    const char keys = *words[2];
    if (request_is(words[0], "SET")) {
        return RELAY_SET;
    }
    if (request_is(words[0], "DELEX") || request_is(words[0], "DELIFEQ")) {
        return RELAY_DELETE;
    }
    return request_is(words[0], "EVALSHA") && keys >= '1' && keys <= '3' ? scripts[keys - '1'] : RELAY_OTHER;
}

static void pass_one(struct relay_link *link, struct relay_request *request) {
    char *reply = link->output + link->output_used;
    request->reply_at = link->output_used;
    request->said = exchange(link->server, link->input + request->at, request->size, reply,
                             sizeof link->output - link->output_used);
    if (request->kind != RELAY_OTHER && *reply == '-') {
        contender_fatal("the server refused a request: %.*s", (int)request->said, reply);
    }
    link->output_used += request->said;
}

/* The replies in the order of the requests. In one piece, because a socket has no room for many
 * small ones, and the library reads in this thread. */
static void say(struct relay_link *link) {
    static char said[sizeof link->output];
    size_t size = 0;
    for (size_t i = 0; i < link->held; i++) {
        memcpy(said + size, link->output + link->requests[i].reply_at, link->requests[i].said);
        size += link->requests[i].said;
    }
    send_all(link->client, said, size);
    memmove(link->input, link->input + link->parsed, link->used - link->parsed);
    link->used -= link->parsed;
    link->parsed = link->output_used = link->held = 0;
}

static void take_requests(struct relay_link *link) {
    const char *words[REQUEST_WORDS], *end = link->input + link->used;
    /* What this server says may be a push, so nobody waits for replies. */
    if (link->listens) {
        send_all(link->server, link->input, link->used);
        link->used = 0;
        return;
    }
    for (size_t size; (size = request_size(link->input + link->parsed, end, words)) > 0;) {
        if (link->held == RELAY_HELD_MAX) {
            contender_fatal("the library asks for more than %d things at a time", RELAY_HELD_MAX);
        }
        link->requests[link->held++] = (struct relay_request){.kind = kind_of(words), .at = link->parsed, .size = size};
        link->parsed += size;
        link->listens = link->listens || request_is(words[0], "SUBSCRIBE");
    }
    for (size_t i = 0; i < link->held && link->requests[i].kind == RELAY_OTHER; i++) {
        if (link->requests[i].said == 0) {
            pass_one(link, &link->requests[i]);
        }
        if (i + 1 == link->held) {
            say(link);
        }
    }
}

static void end_link(struct relay_link *link) {
    if (link->client >= 0) {
        ev_io_stop(link->relay->loop, &link->client_io);
        ev_io_stop(link->relay->loop, &link->server_io);
        (void)close(link->client);
        (void)close(link->server);
        link->client = link->server = -1;
        link->listens = false;
        link->used = link->parsed = link->output_used = link->held = 0;
    }
}

static void on_client(struct ev_loop *loop, ev_io *io, int events) {
    struct relay_link *link = io->data;
    ssize_t got = recv(link->client, link->input + link->used, sizeof link->input - link->used, MSG_DONTWAIT);
    (void)loop;
    (void)events;
    if (got <= 0) {
        end_link(link);
        return;
    }
    link->used += (size_t)got;
    take_requests(link);
}

/* What nobody waits for: a push, or what a link that listens has asked for. */
static void on_server(struct ev_loop *loop, ev_io *io, int events) {
    struct relay_link *link = io->data;
    char bytes[65536];
    ssize_t got = recv(link->server, bytes, sizeof bytes, MSG_DONTWAIT);
    (void)loop;
    (void)events;
    if (got > 0) {
        send_all(link->client, bytes, (size_t)got);
    } else if (got == 0) {
        contender_fatal("the server ended the connection");
    }
}

static void on_listener(struct ev_loop *loop, ev_io *io, int events) {
    struct relay *relay = io->data;
    struct relay_link *link = relay->links;
    (void)events;
    while (link < relay->links + RELAY_LINKS && link->client >= 0) {
        link++;
    }
    if (link == relay->links + RELAY_LINKS) {
        contender_fatal("the library wants more than %d connections to a node", RELAY_LINKS);
    }
    link->client = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC);
    if (link->client < 0) {
        contender_fatal("accept4: %s", strerror(errno));
    }
    link->server = connect_to(relay->server_path);
    ev_io_init(&link->client_io, on_client, link->client, EV_READ);
    ev_io_init(&link->server_io, on_server, link->server, EV_READ);
    link->client_io.data = link->server_io.data = link;
    ev_io_start(loop, &link->client_io);
    ev_io_start(loop, &link->server_io);
}

/* It keeps the loop from waiting for long, because the library's timers need the turns. */
static void on_idle(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop;
    (void)timer;
    (void)events;
}

void relay_start(struct relay *relay, struct ev_loop *loop, const char *path, const char *server_path) {
    struct sockaddr_un address;
    relay->loop = loop;
    relay->path = path;
    relay->server_path = server_path;
    for (size_t i = 0; i < RELAY_LINKS; i++) {
        relay->links[i].relay = relay;
        relay->links[i].client = relay->links[i].server = -1;
    }
    relay->listener = new_socket();
    address_of(&address, path);
    if (bind(relay->listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(relay->listener, RELAY_LINKS) != 0) {
        contender_fatal("cannot listen on %s: %s", path, strerror(errno));
    }
    ev_io_init(&relay->listener_io, on_listener, relay->listener, EV_READ);
    relay->listener_io.data = relay;
    ev_io_start(loop, &relay->listener_io);
    ev_timer_init(&relay->idle, on_idle, IDLE_SECONDS, IDLE_SECONDS);
    ev_timer_start(loop, &relay->idle);
}

void relay_stop(struct relay *relay) {
    for (size_t i = 0; i < RELAY_LINKS; i++) {
        end_link(&relay->links[i]);
    }
    ev_io_stop(relay->loop, &relay->listener_io);
    ev_timer_stop(relay->loop, &relay->idle);
    (void)close(relay->listener);
    (void)unlink(relay->path);
}

static size_t held(const struct relay *relay, unsigned kinds) {
    size_t count = 0;
    for (size_t i = 0; i < RELAY_LINKS; i++) {
        for (size_t j = 0; j < relay->links[i].held; j++) {
            count += (relay->links[i].requests[j].kind & kinds) != 0;
        }
    }
    return count;
}

void relay_run(struct relay *relay) {
    (void)ev_run(relay->loop, EVRUN_ONCE);
    still_clock_pass(TURN_NS);
}

void relay_collect(struct relay *relay, unsigned kinds, size_t count) {
    while (held(relay, kinds) < count) {
        relay_run(relay);
    }
}

size_t relay_pass(struct relay *relay, unsigned kinds) {
    size_t passed = 0;
    for (size_t i = 0; i < RELAY_LINKS; i++) {
        for (size_t j = 0; j < relay->links[i].held; j++) {
            struct relay_request *request = &relay->links[i].requests[j];
            if ((request->kind & kinds) && request->said == 0) {
                pass_one(&relay->links[i], request);
                passed++;
            }
        }
    }
    return passed;
}

void relay_deliver(struct relay *relay) {
    (void)relay_pass(relay, RELAY_OTHER);
    for (size_t i = 0; i < RELAY_LINKS; i++) {
        struct relay_link *link = &relay->links[i];
        for (size_t j = 0; j < link->held; j++) {
            if (link->requests[j].said == 0) {
                contender_fatal("the library also sent %.60s", link->input + link->requests[j].at);
            }
        }
        say(link);
    }
}
