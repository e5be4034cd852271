/* What a server is told at its creation, and whom it calls. */
#ifndef REDLOCK_SERVER_CALLBACKS_H
#define REDLOCK_SERVER_CALLBACKS_H

#include "core/guard.h"
#include "server/tls_context.h"
#include "wire/channel.h"
#include "wire/message.h"

#define REDLOCK_SERVER_NO_TIMEOUT 0x8000u /* beside the kind of a reply */

/* Behind the key prefix; nobody sets it. */
#define REDLOCK_PROBED_KEY "redlock:probe"
/* 's', which no token begins with, 32 random digits, and the end. */
#define REDLOCK_SERVER_MARK_SIZE  34
#define REDLOCK_SERVER_OTHERS_MAX 60 /* marks of the other nodes: see redlock_node_marks() */

struct redlock_server_options {
    int64_t node_timeout_ms;
    int64_t connect_timeout_ms;
    const char *client_name; /* must outlive the server */
    const char *probed;      /* a key that nobody has, likewise */
    const char *marker;      /* the key that tells servers apart, likewise; NULL: one node */
    /* Gets no acquire before its handshake: docs/protocols.md, "Restart guard". */
    bool guarded;
    struct redlock_tls_context *tls; /* for an address with TLS; must outlive the server */
};

/* Callbacks of a server. None runs inside a call of node.h. */
struct redlock_server_callbacks {
    void *ctx;
    size_t votes_at; /* where an owner keeps its votes, in bytes from its begin */
    /* The answer is a grant and nothing else. */
    void (*granted)(void *ctx, unsigned index, void *owner, uint32_t round, int64_t read_ns);
    /* Any other answer. May change it. */
    void (*answer)(void *ctx, unsigned index, void *owner, uint32_t round, struct redlock_answer *answer);
    /* On a new connection, before ready_changed(). */
    void (*greeted)(void *ctx, unsigned index, const struct redlock_greeting *greeting);
    void (*ready_changed)(void *ctx, unsigned index, bool ready);
    /* A push on the server's subscription, and changes of that: see redlock_node_listen(). */
    void (*pushed)(void *ctx, unsigned index, const struct redlock_push *push);
    void (*listens)(void *ctx, unsigned index, enum redlock_listening listening, struct redlock_text *why);
    /* Likewise for the channels of redlock_node_hear(). */
    void (*hinted)(void *ctx, unsigned index, const struct redlock_hint *hint);
    void (*hears)(void *ctx, unsigned index, const struct redlock_channel *channel);
    /* Returns the name of another node with this run_id, or with this mark, or NULL (R18). If that
     * node is later in the list, the callback calls redlock_node_yield() for it and sets
     * *yields. */
    const char *(*same_server)(void *ctx, unsigned index, const char *server, bool *yields);
    /* Gives the marks of the other nodes, and returns how many. They outlive the node, and may
     * change. */
    size_t (*other_marks)(void *ctx, unsigned index, const char *marks[REDLOCK_SERVER_OTHERS_MAX]);
};

#endif
