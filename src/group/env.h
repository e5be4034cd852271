/* The world of a group: its nodes, the clock, random bytes. The simulator's is virtual. */
#ifndef REDLOCK_GROUP_ENV_H
#define REDLOCK_GROUP_ENV_H

#include "core/quorum.h"
#include "wire/message.h"

struct redlock_env {
    void *ctx;
    /* CLOCK_BOOTTIME (R2). */
    int64_t (*now_ns)(void *ctx);
    /* CLOCK_REALTIME, for fencing tokens alone: nothing is decided by it (R2). */
    int64_t (*wall_us)(void *ctx);
    /* From the kernel (R10). Returns 0, REDLOCK_ERR_RANDOM, or REDLOCK_ERR_FORKED in a child process of the creator. */
    int (*random)(void *ctx, void *buffer, size_t size);
    /* Calls redlock_group_wake() at or soon after when_ns, never inside this call; replaces the time asked before. */
    void (*wake_at)(void *ctx, int64_t when_ns);
    /*
     * Queues the message to each of the nodes, to be written in this turn of the loop, in one write a node with all
     * else (R6). Returns the nodes that took it: each of these gets one answer, never inside this call. The others got
     * nothing: FAILED.
     */
    redlock_nodes (*send)(void *ctx, redlock_nodes nodes, const struct redlock_message *message);
    /* Why a node refuses now; borrowed until the next call of anything here. NULL where there is nothing to say. */
    struct redlock_text *(*refusal)(void *ctx, unsigned node);
    void (*log)(void *ctx, redlock_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
};

#endif
