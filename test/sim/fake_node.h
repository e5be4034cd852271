/* A node without a server: the few commands that the library sends, with their real bytes, and
 * expiry by the node's own clock. test_conformance compares it with a real redis-server. */
#ifndef SIM_FAKE_NODE_H
#define SIM_FAKE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/reply.h"

#define FAKE_KEYS_MAX  32
#define FAKE_SETS_MAX  16  /* two for each queue */
#define FAKE_PARTS_MAX 512 /* of all sets: two for each waiter */
#define FAKE_NAME_MAX  32
#define FAKE_VALUE_MAX 64
#define FAKE_TEXT_MAX  96
#define FAKE_NAMES_MAX 8192
#define FAKE_ID_MAX    40
#define FAKE_NO_TTL    INT64_C(-1)

/* What a server may answer instead of doing its work. */
enum fake_mode { FAKE_NORMAL, FAKE_LOADING, FAKE_OOM, FAKE_READONLY, FAKE_MISCONF };

enum fake_type { FAKE_STRING, FAKE_LIST, FAKE_ZSET, FAKE_HASH };

struct fake_key {
    bool used;
    bool marked; /* the first digit of its value is a capital: somebody waits behind this try */
    enum fake_type type;
    uint32_t id; /* of a set; no other set had it */
    uint8_t name_size, value_size;
    char name[FAKE_NAME_MAX];
    char value[FAKE_VALUE_MAX];
    /* On the node's clock; gone when the clock shows more (as in Redis); FAKE_NO_TTL for never. */
    int64_t expires_ms;
    int64_t gone_ns; /* for the simulator: the true time of that */
};

/* A member of a queue's sorted set, or a field of the hash of its waiters. */
struct fake_part {
    uint32_t set; /* the id of the set; that set may be gone */
    uint8_t token_size, id_size, channel_size;
    char token[FAKE_VALUE_MAX];
    int64_t ticket;
    int64_t good_until_ms, ttl_ms, serial;
    char id[FAKE_ID_MAX]; /* digits */
    char channel[FAKE_VALUE_MAX];
    /* Of who stands at a gate: `ticket` is how many slots he wants, `take` the token of that. */
    uint8_t gate_size, take_size;
    char gate[FAKE_VALUE_MAX], take[FAKE_VALUE_MAX];
};

struct fake_node {
    int64_t now_us; /* its wall clock; set it before each command */
    int64_t now_ms; /* the same, as of the last command */
    int64_t told_s; /* and in seconds, as the last reply told them: `seconds` */
    char seconds[16];
    enum fake_mode mode;
    bool deletes;       /* has DELIFEQ, as Valkey from 9.0 on */
    bool names;         /* has SET with NX and GET, as Redis from 7.0 on */
    uint32_t scripts;   /* bit i: script i is cached */
    bool wrote;         /* a key was set, changed or deleted by the last command */
    unsigned key_count; /* high-water mark in keys */
    struct fake_key keys[FAKE_KEYS_MAX];
    /* The sorted sets and hashes of the queues. */
    unsigned set_count, part_count; /* high-water marks */
    uint32_t last_id;
    struct fake_key sets[FAKE_SETS_MAX];
    /* PUBLISH: returns whether somebody listens, be it by a pattern. It runs inside the command.
     * NULL: nobody. */
    bool (*publish)(void *ctx, const char *channel, size_t channel_size, const char *payload, size_t payload_size);
    /* PUBSUB NUMSUB: whether somebody subscribes to this channel. */
    bool (*hears)(void *ctx, const char *channel, size_t channel_size);
    void *publish_ctx;
    struct fake_part parts[FAKE_PARTS_MAX]; /* those from part_count on are never read */
    char named[FAKE_NAMES_MAX];             /* what the last reply's point to */
};

/* The elements of an array. The seconds and microseconds of TIME may follow all but the last
 * kind. */
enum fake_shape {
    FAKE_INSPECT,          /* STRING or NIL (in bytes), integer, rank, ttl_ms */
    FAKE_INSPECT_NAMED,    /* the same, then readers and names */
    FAKE_NUMBER_AND_VALUE, /* ACQUIRE, FENCE, EXTEND: integer, STRING or NIL */
    FAKE_WAIT,             /* the same, then ttl_ms and rank */
    FAKE_TIME
};

/* A reply; `text` backs what the values point to. */
struct fake_reply {
    enum redlock_reply_type type;
    int64_t integer;
    const char *bytes; /* STATUS, ERROR, STRING; a literal or text */
    size_t size;
    enum fake_shape shape; /* of an ARRAY */
    int64_t ttl_ms, rank, readers;
    const char *names; /* in the node, until its next command */
    size_t names_size;
    char seconds[16], micros[8]; /* "": without a time */
    char text[FAKE_TEXT_MAX];
};

/* Handles one whole command of `size` bytes. */
void fake_node_command(struct fake_node *node, const char *bytes, size_t size, struct fake_reply *reply);

/* Does what SCRIPT LOAD of every script of the library does. */
void fake_node_load_scripts(struct fake_node *node);

/* Deletes all keys. */
void fake_node_clear(struct fake_node *node);

/* The key if it is there and not expired; of any type. */
struct fake_key *fake_node_find(struct fake_node *node, const char *name, size_t size);

/* The reply as the library's reader returns it; it points into `reply`. */
void fake_reply_flatten(const struct fake_reply *reply, struct redlock_reply *flat);

#endif
