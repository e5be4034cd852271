/* One node: a voter, as the caller configured it. What it says and does is its server's. */
#ifndef REDLOCK_NODE_NODE_H
#define REDLOCK_NODE_NODE_H

#include "server/server_state.h"

/*
 * A node decides what may be sent to it, says why not, and answers what the group asks. It has one
 * server. That decides nothing for the node, and calls the fleet, not the node: no answer passes
 * here.
 */
struct redlock_node {
    struct redlock_server server;
    struct redlock_text *refusal; /* made of the server's `why` on first use */
    uint32_t refusal_of;          /* the server's `changes` then */
};

/* Takes over the address on success. Starts to connect in the next turn of the loop. Returns NULL
 * without memory. */
struct redlock_node *redlock_node_new(unsigned index, struct redlock_address *address,
                                      const struct redlock_server_options *options,
                                      const struct redlock_reactor *reactor,
                                      const struct redlock_server_callbacks *callbacks);

/* Closes the connection and answers nothing in flight. In a forked child, set `forked`: it only
 * closes descriptors. */
void redlock_node_delete(struct redlock_node *node, bool forked);

/*
 * Queues a request of `size` bytes for this turn's write. The entry is copied; the copy gets its
 * position. Its `reply_kind` is the kind (wire.h), optionally with REDLOCK_SERVER_NO_TIMEOUT. The
 * answer comes within the node timeout. With NO_TIMEOUT it comes with the reply, however late, or
 * at the end of the connection. While the first connection is not open, and while a second one is
 * tried beside one that is silent (server/spare.h), requests wait. One that is not written within
 * the timeout is withdrawn: FAILED. Returns false if the node accepts none now: see
 * redlock_node_refusal(). A guarded node accepts no ACQUIRE before it is READY.
 */
bool redlock_node_send(struct redlock_node *node, const char *bytes, size_t size,
                       const struct redlock_inflight_entry *entry);
/* Before a request of REDLOCK_KIND_SHARED or REDLOCK_KIND_SLOTS: loads its script, in front of the
 * first on a connection that accepts it. */
void redlock_node_load(struct redlock_node *node, unsigned reply_kind);

/*
 * Subscribes to the channel on a second connection, for good: it opens while the node is READY or
 * STALLED, and closes with the first connection. It says nothing else there. Pushes count only
 * while both connections are to the same server (run_id). The name is borrowed for good.
 */
void redlock_node_listen(struct redlock_node *node, const char *channel);

/* Subscribes to these channels, too, after redlock_node_listen(). Call it again when there is a new
 * one. The list is borrowed for good. */
void redlock_node_hear(struct redlock_node *node, const struct redlock_channels *channels);
/* The channel leaves the list. It may be freed then. */
void redlock_node_leave(struct redlock_node *node, const struct redlock_channel *channel);

/* Takes over new credentials, with a password. They are used when the node has accepted them: at
 * once by AUTH if it is READY or STALLED, else by the next handshake. */
void redlock_node_offer(struct redlock_node *node, struct redlock_credentials *credentials);

/* Returns whether it has owed an answer for longer than a healthy node nearby ever does. */
bool redlock_node_is_behind(const struct redlock_node *node, int64_t now_ns);

/* Whether its answers come too late, because it is far away; redlock_node_refusal() says so. */
bool redlock_node_is_too_far(const struct redlock_node *node);
/* Whether it may get a WAIT: it is not too far away. One that is, is measured again. */
bool redlock_node_serves_waiters(struct redlock_node *node);

/* This node is the same server as `rival`: it becomes UNUSABLE in the next turn of the loop. */
void redlock_node_yield(struct redlock_node *node, const char *rival);

/* Why it refuses requests now. Borrowed until the next call. NULL without a reason. */
struct redlock_text *redlock_node_refusal(struct redlock_node *node);
const char *redlock_node_name(const struct redlock_node *node);
/* Of its connection or last try to have one, and of the try that may follow, or "". They live as
 * long as the node. */
void redlock_node_marks(const struct redlock_node *node, const char *marks[2]);
/* Whether it is connected to the server with this mark, or is READY or STALLED at the one with this
 * run_id. Not for "". */
bool redlock_node_is_at(const struct redlock_node *node, const char *id);
/* In which form it gets requests now. */
struct redlock_form redlock_node_form(const struct redlock_node *node);
/* Its connection has proven that it names holders: see redlock_env.proven(). */
void redlock_node_names_holders(struct redlock_node *node);
void redlock_node_info_get(const struct redlock_node *node, redlock_node_info *info);

#endif
