/* One node: its connection, the requests to it with their timeout, stall and reconnect. */
#ifndef REDLOCK_NODE_NODE_H
#define REDLOCK_NODE_NODE_H

#include "core/guard.h"
#include "loop/reactor.h"
#include "node/address.h"
#include "wire/message.h"

struct redlock_node;

struct redlock_node_options {
    int64_t node_timeout_ms;
    int64_t connect_timeout_ms;
    const char *client_name; /* outlives the node */
    /* Gets no acquire before its handshake: docs/protocols.md, "Restart guard". */
    bool guarded;
};

/* Where a node reports. None of these is called inside a call of this header. */
struct redlock_node_listener {
    void *ctx;
    void (*answer)(void *ctx, unsigned index, void *owner, uint32_t round, const struct redlock_answer *answer);
    /* Before ready_changed(), on a new connection of a guarded node. */
    void (*greeted)(void *ctx, unsigned index, const struct redlock_greeting *greeting);
    void (*ready_changed)(void *ctx, unsigned index, bool ready);
    /* The name of another ready node with this run_id, or NULL (R18). If that one is later in the
     * list, it must be told to redlock_node_yield(), and *yields be set. */
    const char *(*same_server)(void *ctx, unsigned index, const char *run_id, bool *yields);
};

/* Takes over the address on success. Begins to connect in the next turn of the loop. NULL
 * without memory. */
struct redlock_node *redlock_node_new(unsigned index, struct redlock_address *address,
                                      const struct redlock_node_options *options, const struct redlock_reactor *reactor,
                                      const struct redlock_node_listener *listener);

/* Closes the connection without an answer to anything in flight. In a forked child: `forked` closes
 * descriptors only. */
void redlock_node_delete(struct redlock_node *node, bool forked);

/*
 * Queues a request of `size` bytes for this turn's write. `reply_kind` is its enum
 * redlock_reply_kind, perhaps with NO_TIMEOUT. The answer comes within the node timeout, or with NO_TIMEOUT by the
 * reply, however late, or by the end of the connection. A request that is not written by then, as
 * the first connection is under way, is withdrawn: FAILED. Returns false if the node takes none
 * now: see redlock_node_refusal(). A guarded node takes no ACQUIRE before it is READY.
 */
#define REDLOCK_NODE_NO_TIMEOUT 0x80u /* in `reply_kind` */
bool redlock_node_send(struct redlock_node *node, const char *bytes, size_t size, unsigned reply_kind, void *owner,
                       uint32_t round, int64_t now_ns);

/* It has owed an answer for longer than a healthy node nearby ever does. */
bool redlock_node_is_behind(const struct redlock_node *node, int64_t now_ns);

/* The node is the same server as node `rival`: it becomes UNUSABLE in the next turn of the loop. */
void redlock_node_yield(struct redlock_node *node, const char *rival);

/* Why it refuses now; borrowed until the next call, NULL for nothing to say. */
struct redlock_text *redlock_node_refusal(struct redlock_node *node);
const char *redlock_node_name(const struct redlock_node *node);
const char *redlock_node_run_id(const struct redlock_node *node); /* "" unless READY or STALLED */
void redlock_node_info_get(const struct redlock_node *node, redlock_node_info *info);

#endif
