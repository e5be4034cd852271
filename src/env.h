/* The doors out of manager and core (env) and out of the nodes (reactor). The real ones are libev and sockets, the
 * simulator's are virtual. */
#ifndef REDLOCK_ENV_H
#define REDLOCK_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/guard.h"
#include "core/lease.h"
#include "core/quorum.h"
#include "text.h"

#define REDLOCK_FENCE_SUFFIX_SIZE_MAX 64

/* Where the counters of fencing tokens are, and for how long; the same for all of a manager's messages. */
struct redlock_fence_keys {
    const char *suffix; /* behind the key */
    size_t suffix_size;
    int64_t expiry_ms; /* 0: never */
};

/* One request to some nodes. All of it is the sender's and need not outlive the call. */
struct redlock_message {
    enum redlock_operation operation;
    bool by_source;  /* EVAL with the script's source, after a node answered NOSCRIPT to its SHA (R11) */
    bool patient;    /* nobody waits: no timeout answers it, only the node's reply or the end of the connection */
    const char *key; /* prefix included */
    size_t key_size;
    const char *token; /* all but INSPECT and TIME */
    size_t token_size;
    int64_t ttl_ms;                              /* ACQUIRE, EXTEND, HEAL */
    bool timed;                                  /* ACQUIRE, EXTEND: the answer tells the node's TIME */
    uint64_t fence;                              /* FENCE: to be written back; ACQUIRE: proposed, 0 for none */
    const struct redlock_fence_keys *fence_keys; /* FENCE; ACQUIRE with a fence */
    int64_t now_ns;                              /* when it is sent; at or before now */
    void *owner;                                 /* handed back with each answer */
    uint32_t round;                              /* likewise */
};

/* What became of a message at one node: exactly one for each node that `send` accepted, unless the env is closed. */
struct redlock_answer {
    redlock_vote_kind vote;    /* GRANTED, DENIED, FAILED or UNKNOWN */
    bool no_script;            /* FAILED only because the node does not know the script: send it again by source */
    bool fenced;               /* ACQUIRE with a fence, FENCE: the node told of its counter */
    bool accepted;             /* of these: it raised its counter to the message's fence */
    uint64_t counter;          /* of these: its counter, where it did not; 0 for none */
    int64_t read_ns;           /* when it was read, or found to be missing: at or before now */
    struct redlock_text *text; /* what the node said or what went wrong; the receiver keeps it if it wants it */
    struct redlock_clock_sample
        clock; /* timed, TIME: the node's clock; server_us 0: not told, and the times are unset */
    const char
        *holder; /* INSPECT, GRANTED: the value at the key, not terminated; valid during the call; elsewhere unset */
    size_t holder_size;    /* likewise */
    int64_t holder_ttl_ms; /* PTTL, likewise */
};

struct redlock_env {
    void *ctx;
    /* CLOCK_BOOTTIME (R2). */
    int64_t (*now_ns)(void *ctx);
    /* CLOCK_REALTIME, for fencing tokens alone: nothing is decided by it (R2). */
    int64_t (*wall_us)(void *ctx);
    /* From the kernel (R10). Returns 0, REDLOCK_ERR_RANDOM, or REDLOCK_ERR_FORKED in a child process of the creator. */
    int (*random)(void *ctx, void *buffer, size_t size);
    /* Calls redlock_manager_wake() at or soon after when_ns, never inside this call; replaces the time asked before. */
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

enum redlock_reactor_events { REDLOCK_READABLE = 1, REDLOCK_WRITABLE = 2 };

/* One descriptor to watch and one timer for a node; embed it, fill in the callbacks, hand it to the reactor. */
struct redlock_watch {
    void (*on_io)(struct redlock_watch *watch, unsigned events);
    void (*on_timer)(struct redlock_watch *watch);
    /* Once before the loop polls, after redlock_reactor.flush_soon() was asked for: write out what is queued (R6). */
    void (*on_flush)(struct redlock_watch *watch);
    void *impl; /* the reactor's */
    bool flush_asked;
    struct redlock_watch *next_flush; /* the reactor's */
};

/* What a node's connection needs of the loop. All times are the env's. */
struct redlock_reactor {
    void *ctx;
    int64_t (*now_ns)(void *ctx);
    int (*random)(void *ctx, void *buffer, size_t size);
    int (*attach)(void *ctx, struct redlock_watch *watch); /* 0 or REDLOCK_ERR_NO_MEMORY */
    void (*detach)(void *ctx, struct redlock_watch *watch);
    void (*watch)(void *ctx, struct redlock_watch *watch, int fd,
                  unsigned events); /* fd -1: none; replaces what was watched */
    void (*timer_at)(void *ctx, struct redlock_watch *watch,
                     int64_t when_ns); /* REDLOCK_NEVER_NS: none; may fire early */
    void (*flush_soon)(void *ctx, struct redlock_watch *watch);
    void (*log)(void *ctx, redlock_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
};

#endif
