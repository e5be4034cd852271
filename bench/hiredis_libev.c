/* hiredis and libev with prepared bytes and counted votes, but without lock logic. The difference
 * to our library is the cost of the logic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
/* After hiredis, because its adapter needs both. */
#include <hiredis/adapters/libev.h>

#include "contender.h"
#include "exchange.h"

#define WORKER_BITS 12
_Static_assert(CONTENDER_WORKERS_MAX <= 1 << WORKER_BITS, "a worker's number fits");

struct client {
    struct exchange exchange;
    struct ev_loop *loop;
    redisAsyncContext *nodes[CONTENDER_NODES_MAX];
    unsigned pending; /* replies that have not come */
    char *error;
};

static void fail(struct client *client, const char *what) {
    if (client->error && !*client->error) {
        (void)snprintf(client->error, CONTENDER_ERROR_SIZE, "%s", what);
    }
    client->exchange.ending = true;
    client->exchange.outstanding = 0;
    ev_break(client->loop, EVBREAK_ONE);
}

static void on_reply(redisAsyncContext *node, void *reply_data, void *tag_data) {
    struct client *client = node->data;
    const redisReply *reply = reply_data;
    uintptr_t packed = (uintptr_t)tag_data;
    struct exchange_tag tag = {(uint32_t)(packed & ((1U << WORKER_BITS) - 1)), (uint32_t)(packed >> WORKER_BITS)};
    client->pending--;
    if (!reply) {
        if (client->exchange.outstanding > 0) {
            fail(client, node->errstr);
        }
        return;
    }
    exchange_vote(&client->exchange, tag,
                  reply->type == REDIS_REPLY_STATUS || (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1));
    if (client->exchange.outstanding == 0) {
        ev_break(client->loop, EVBREAK_ONE);
    }
}

static void queue(void *data, const struct exchange_request *request, struct exchange_tag tag) {
    struct client *client = data;
    /* A pointer has room for at least 20 bits of the sequence. No vote is a million phases late. */
    uintptr_t packed = ((uintptr_t)tag.sequence << WORKER_BITS) | tag.worker;
    for (unsigned i = 0; i < client->exchange.node_count; i++) {
        if (redisAsyncFormattedCommand(client->nodes[i], on_reply, (void *)packed, request->bytes, request->size) !=
            REDIS_OK) {
            fail(client, "redisAsyncFormattedCommand is refused");
            return;
        }
        client->pending++;
    }
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events) {
    (void)loop, (void)events;
    ((struct client *)timer->data)->exchange.ending = true;
}

static void cycles(void *data, struct contender_cycles *cycles, char error[CONTENDER_ERROR_SIZE]) {
    struct client *client = data;
    ev_timer end;
    client->error = error;
    if (client->exchange.node_count == 0) {
        (void)snprintf(error, CONTENDER_ERROR_SIZE, "not connected");
        return;
    }
    ev_now_update(client->loop);
    ev_timer_init(&end, on_time, (double)cycles->duration_ms / 1000.0, 0);
    end.data = client;
    ev_timer_start(client->loop, &end);
    int64_t began_ns = contender_now_ns();
    exchange_begin(&client->exchange, cycles);
    while (client->exchange.outstanding > 0) {
        ev_run(client->loop, 0);
    }
    cycles->took_ns = contender_now_ns() - began_ns;
    ev_timer_stop(client->loop, &end);
    while (!*error && client->pending > 0) {
        ev_run(client->loop, EVRUN_ONCE); /* count late votes in this run */
    }
}

static void forget(const redisAsyncContext *node) {
    struct client *client = node->data;
    for (unsigned i = 0; i < CONTENDER_NODES_MAX; i++) {
        if (client->nodes[i] == node) {
            client->nodes[i] = NULL;
        }
    }
}

/* When a connect fails, hiredis frees the context and calls no other callback. */
static void on_connected(const redisAsyncContext *node, int status) {
    if (status != REDIS_OK) {
        forget(node);
    }
}

static void on_disconnected(const redisAsyncContext *node, int status) {
    struct client *client = node->data;
    forget(node);
    if (status != REDIS_OK && client->exchange.outstanding > 0) {
        fail(client, "a node closed the connection");
    }
}

static void disconnect(struct client *client) {
    for (unsigned i = 0; i < CONTENDER_NODES_MAX; i++) {
        if (client->nodes[i]) {
            redisAsyncFree(client->nodes[i]);
            client->nodes[i] = NULL;
        }
    }
    client->exchange.node_count = 0;
}

static void on_script(redisAsyncContext *node, void *reply_data, void *data) {
    struct client *client = node->data;
    const redisReply *reply = reply_data;
    (void)data;
    client->pending--;
    if (!reply || reply->type != REDIS_REPLY_STRING || !exchange_sha1_matches(reply->str, (size_t)reply->len)) {
        fail(client, reply ? "SCRIPT LOAD: an unexpected answer" : node->errstr);
    }
}

static const char *connect_node(struct client *client, const char *at) {
    const char *colon = strrchr(at, ':');
    char host[64];
    if (!colon || (size_t)(colon - at) >= sizeof host) {
        return "not HOST:PORT";
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - at), at);
    redisAsyncContext *node = redisAsyncConnect(host, (int)strtol(colon + 1, NULL, 10));
    if (!node || node->err) {
        redisAsyncFree(node);
        return "redisAsyncConnect fails";
    }
    node->data = client;
    client->nodes[client->exchange.node_count++] = node;
    redisLibevAttach(client->loop, node);
    redisAsyncSetConnectCallback(node, on_connected);
    redisAsyncSetDisconnectCallback(node, on_disconnected);
    redisAsyncCommand(node, on_script, NULL, "SCRIPT LOAD %s", exchange_release_script);
    client->pending++;
    return NULL;
}

static void connect_nodes(void *data, const struct contender_nodes *nodes, char error[CONTENDER_ERROR_SIZE]) {
    struct client *client = data;
    disconnect(client);
    client->error = error;
    client->pending = 0;
    client->exchange.quorum = (unsigned)nodes->count / 2 + 1;
    for (size_t i = 0; i < nodes->count && !*error; i++) {
        const char *failure = connect_node(client, nodes->at[i]);
        if (failure) {
            (void)snprintf(error, CONTENDER_ERROR_SIZE, "%s: %s", nodes->at[i], failure);
        }
    }
    while (!*error && client->pending > 0) {
        ev_run(client->loop, EVRUN_ONCE);
    }
    if (*error) {
        disconnect(client);
    }
}

int main(void) {
    static const struct contender contender = {
        .name = "hiredis_libev",
        .version = "hiredis's own libev adapter",
        .notes =
            "no lock: preformatted bytes, votes counted; no validity, no timeouts, no random tokens, no reconnection",
        .connect = connect_nodes,
        .cycles = cycles};
    struct client client = {.exchange = {.send = queue, .data = &client}, .loop = ev_loop_new(EVFLAG_AUTO)};
    if (!client.loop) {
        contender_fatal("no event loop");
    }
    exchange_make(&client.exchange);
    int status = contender_run(&contender, &client);
    disconnect(&client);
    exchange_free(&client.exchange);
    ev_loop_destroy(client.loop);
    return status;
}
