/* The env: the nodes, the clock and the random bytes of a group. The simulator has its own. */
#ifndef REDLOCK_GROUP_ENV_H
#define REDLOCK_GROUP_ENV_H

#include "core/quorum.h"
#include "wire/channel.h"
#include "wire/message.h"

struct redlock_env {
    void *ctx;
    /* CLOCK_BOOTTIME (R2). */
    int64_t (*now_ns)(void *ctx);
    /* CLOCK_REALTIME, only for fencing tokens. Nothing else may depend on it (R2). */
    int64_t (*wall_us)(void *ctx);
    /* Random bytes from the kernel (R10). Returns 0, REDLOCK_ERR_RANDOM, or REDLOCK_ERR_FORKED in a
     * child process of the creator. */
    int (*random)(void *ctx, void *buffer, size_t size);
    /* Asks for a call of redlock_group_wake() at when_ns or soon after, but never inside this call.
     * Replaces the time of the last call. */
    void (*wake_at)(void *ctx, int64_t when_ns);
    /*
     * Queues the message for each of the nodes. It is written in this turn of the loop, in one
     * write for each node (R6). Returns the nodes that took it. Each of these gets exactly one
     * answer, never inside this call. Nothing is sent to the others: FAILED. Sets the form.
     */
    redlock_nodes (*send)(void *ctx, redlock_nodes nodes, struct redlock_message *message);
    /* Subscribes to this channel on every node, for as long as the env lives. Once. Each node then
     * says whether it listens: redlock_group_listens(). The name is borrowed for good. */
    void (*listen)(void *ctx, const char *channel);
    /* Subscribes to these channels, too, after listen(): there is a new one. Each node then says
     * whether it hears it: redlock_group_hears(). The list is borrowed for good. */
    void (*hear)(void *ctx, const struct redlock_channels *channels);
    /* The channel has left the list. It is freed after this. */
    void (*stop_hearing)(void *ctx, const struct redlock_channel *channel);
    /* Why the node refuses now. Borrowed until the next call of any function here. NULL for no
     * reason. */
    struct redlock_text *(*refusal)(void *ctx, unsigned node);
    /* Whether a node that is ready is so far away that its answers come too late; refusal() says
     * so. */
    bool (*is_too_far)(void *ctx, unsigned node);
    /* The node has answered with our own token after it granted the lock (wire/holder_query.h): it
     * names holders as we understand it. Only inside redlock_group_answer(). */
    void (*proven)(void *ctx, unsigned node);
    void (*log)(void *ctx, redlock_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
};

#endif
