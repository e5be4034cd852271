/* A request to some nodes, and one node's answer to it. */
#ifndef REDLOCK_WIRE_MESSAGE_H
#define REDLOCK_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "core/clock.h"
#include "core/operation.h"
#include "core/quorum.h"
#include "wire/target.h"

#define REDLOCK_FENCE_SUFFIX_SIZE_MAX 64
#define REDLOCK_WAIT_SUFFIX           ":wait" /* the default */
#define REDLOCK_WAIT_SUFFIX_SIZE_MAX  62
#define REDLOCK_CHANNEL_SIZE_MAX      64

/* The longest pattern of keys: a prefix with an escape before each byte, and as much again. */
#define REDLOCK_PATTERN_SIZE_MAX (3 * REDLOCK_RESOURCE_SIZE_MAX)

/* A subscription sends PING so often, and is closed if the PONG is not read in time. */
#define REDLOCK_PING_EVERY_MS 5000
#define REDLOCK_PONG_LIMIT_MS 5000

/* Room for the bytes of any message: the longest script, token, and keys. */
#define REDLOCK_WIRE_SIZE_MAX 9472

/* The keys and the expiry of fencing counters; the same for all messages. */
struct redlock_fence_keys {
    const char *suffix; /* comes after the key */
    size_t suffix_size;
    int64_t expiry_ms; /* 0: never */
};

/* Sorted sets keep numbers up to this exactly; in microseconds, the year 2255. */
#define REDLOCK_TICKET_MAX (UINT64_C(1) << 53)

/* The digits of a place's id in a WAIT and in a push: its number, then the seal. */
#define REDLOCK_ID_DIGITS   10
#define REDLOCK_SEAL_DIGITS 20

/* A place in a queue (docs/waiting.md). */
struct redlock_place {
    uint64_t ticket; /* lower is earlier; at most REDLOCK_TICKET_MAX */
    int64_t stale_ms, queue_ttl_ms;
    const char *channel;   /* for the push; terminated, 1 byte or more, without spaces */
    uint32_t id;           /* comes back with the push, */
    const uint64_t *seals; /* and so does this number, one for each node: redlock_wire_seal() */
    bool takes;            /* also take the lock if it is free, and serve the queue */
};

/* We stand at the gate of some slots, and are told what gets free. */
struct redlock_gate {
    const char *token;
    size_t token_size;
    const char *channel; /* as in a place; "" for none */
    uint32_t id;         /* comes back with what we are told */
    int64_t queue_ttl_ms;
};

/* Which keys a LIST looks at. */
struct redlock_page {
    uint64_t cursor;     /* of SCAN; 0 at first */
    const char *pattern; /* of the keys, prefix included; terminated */
    uint32_t count;      /* about how many keys to look at */
    bool others;         /* also strings with a ttl that are no tokens of ours */
};

/* How a node deletes a key under its token, if nobody has marked it. */
enum redlock_deleting {
    REDLOCK_DELETING_SCRIPT, /* it has no command for that, or refused it */
    REDLOCK_DELETING_DELEX,  /* Redis 8.4 */
    REDLOCK_DELETING_DELIFEQ /* Valkey 9.0 */
};

/* How an ACQUIRE asks a node to name the holder where it denies the lock: wire/holder_query.h. */
enum redlock_holder_query {
    REDLOCK_HOLDER_QUERY_NOT,   /* it does not */
    REDLOCK_HOLDER_QUERY_TWICE, /* until the connection has proven that it is understood */
    REDLOCK_HOLDER_QUERY_ONCE,
    REDLOCK_HOLDER_QUERY_COUNT
};

/* In which form a node gets a request, by what its server has. */
struct redlock_form {
    uint8_t holder_query; /* enum redlock_holder_query: ACQUIRE by SET */
    uint8_t deleting;     /* enum redlock_deleting: RELEASE with by_try */
};

_Static_assert(sizeof(struct redlock_form) == sizeof(uint16_t), "a form is one number, too");

/* As a number, for comparisons. */
static inline uint16_t redlock_form_bits(struct redlock_form form) {
    uint16_t bits;
    memcpy(&bits, &form, sizeof bits);
    return bits;
}

/* The kind of a request is its operation with these flags. It decides which replies it can have. */
enum redlock_kind_flags {
    REDLOCK_KIND_OPERATION = 0x0f,
    REDLOCK_KIND_FENCED = 0x10,       /* ACQUIRE: raises the counter of fencing tokens */
    REDLOCK_KIND_TIMED = 0x20,        /* ACQUIRE, EXTEND: tells the node's time */
    REDLOCK_KIND_HOLDER_QUERY = 0x40, /* ACQUIRE: with GET */
    REDLOCK_KIND_TWICE = 0x80,        /* and it has two replies: redlock_holder_query_judge() */
    REDLOCK_KIND_DELETING = 0x100,    /* RELEASE: by a command, not the script */
    REDLOCK_KIND_SHARED = 0x200,      /* ACQUIRE, EXTEND, HEAL: by SHARE */
    REDLOCK_KIND_SLOTS = 0x400        /* ACQUIRE, EXTEND, HEAL, RELEASE: by SLOTS */
};

/* One request to some nodes. The sender owns all of it. It need not outlive the call. */
struct redlock_message {
    enum redlock_operation operation;
    bool by_source;                      /* REDLOCK_AGAIN_BY_SOURCE: EVAL (R11), or a plain SET */
    bool no_timeout;                     /* only a reply or the end of the connection answers it */
    bool by_try;                         /* RELEASE: who waits has marked the key */
    bool slots;                          /* all but WAIT: the target has some */
    struct redlock_form form;            /* that of these nodes, by the env */
    const struct redlock_target *target; /* all but LIST and TIME */
    const char *token;                   /* all but INSPECT, LIST and TIME */
    size_t token_size;
    int64_t ttl_ms;                              /* ACQUIRE, EXTEND, HEAL */
    bool timed;                                  /* ACQUIRE, EXTEND: ask for the node's TIME */
    bool shared;                                 /* ACQUIRE, EXTEND, HEAL: others read it, too */
    uint64_t fence;                              /* FENCE: to write back; ACQUIRE: proposed, or 0 */
    const struct redlock_fence_keys *fence_keys; /* FENCE, LIST; ACQUIRE with a fence */
    /* WAIT, RELEASE, LIST, INSPECT: terminated; INSPECT: NULL not to count who waits. */
    const char *wait_suffix;
    union {
        const struct redlock_place *place; /* WAIT; `round` is its serial */
        const struct redlock_page *page;   /* LIST */
        const struct redlock_gate *gate;   /* ACQUIRE of slots; NULL: we do not stand there */
    };
    enum redlock_handing handing; /* RELEASE; EXTEND of a shared lock: whom it may let in */
    int64_t now_ns;               /* when it is sent; at or before now */
    void *requester;              /* returned with each answer */
    uint32_t round;               /* returned with each answer */
};

/* Which replies to an ACQUIRE with GET had values, of which the requester knows whether they are
 * its token: redlock_holder_query_compared(). */
enum redlock_named {
    REDLOCK_NAMED_NOT,
    REDLOCK_NAMED_ONCE,      /* the only one: `holder` */
    REDLOCK_NAMED_TWICE,     /* `first`, or the second: `holder` */
    REDLOCK_NAMED_AFTER_NIL, /* the second, and the first was nil */
    REDLOCK_NAMED_SLOTS      /* no holder: a take gave what `holder` names */
};

/* In which form the same node may do what it did not. */
enum redlock_again {
    REDLOCK_AGAIN_NOT,
    REDLOCK_AGAIN_BY_SOURCE, /* it does not know the script, or refuses the command in its place */
    REDLOCK_AGAIN_BY_SCRIPT  /* RELEASE: the command did not find the plain token */
};

/* One node's answer to a message. Each node that `send` accepted gives exactly one, unless the env
 * is closed. */
struct redlock_answer {
    redlock_vote_kind vote;    /* GRANTED, DENIED, FAILED or UNKNOWN */
    uint8_t again;             /* enum redlock_again: FAILED */
    bool fenced;               /* ACQUIRE with a fence, FENCE: the node sent its counter */
    bool accepted;             /* if so: it raised its counter to the message's fence */
    bool handed_over;          /* RELEASE, GRANTED: to a waiter */
    uint8_t named;             /* enum redlock_named: ACQUIRE */
    uint64_t counter;          /* if it did not raise it: its counter; 0 for none */
    int64_t read_ns;           /* when the reply was read or found missing: at or before now */
    struct redlock_text *text; /* the node's error, or what went wrong; the receiver may keep it */
    /* With `timed`, and TIME: the node's clock. server_us 0: the node did not say, and the times
     * are unset. */
    struct redlock_clock_sample clock;
    uint32_t rank; /* WAIT, DENIED: waiters before this one */
    bool ahead;    /* WAIT, DENIED: `holder` has no lock there, but is in line before us who read */
    /* INSPECT, GRANTED, WAIT, DENIED, and `named`: the value at the key, or one of those who read,
     * not terminated, valid during the call; WAIT: NULL if nobody keeps us out. LIST, GRANTED: the
     * entries, for redlock_page_next(). ACQUIRE of slots, GRANTED: for redlock_slots_read().
     * Otherwise unset. */
    const char *holder;
    size_t holder_size;
    /* NAMED_TWICE: likewise, in the first reply. INSPECT, GRANTED or DENIED: who reads or waits,
     * for redlock_page_next_name(). */
    const char *first;
    size_t first_size;     /* 0 for none that is a token, or for nobody */
    int64_t holder_ttl_ms; /* PTTL */
    /* INSPECT, GRANTED or DENIED: how many wait, and since when the first does by the node's clock;
     * -1 for what it cannot tell. */
    int64_t waiters, waited_ms;
    int64_t readers; /* INSPECT, GRANTED: how many read the lock; 0: `holder` has it alone */
    /* LIST, GRANTED: where the next page begins, 0 after the last; keys that could not be read. */
    uint64_t cursor, unread;
};

/* The vote, and nothing else. Sets only what every caller reads, but for read_ns: this runs for
 * many votes, and gcc would zero the whole by "rep stos", which takes longer than all else. */
static inline void redlock_answer_begin(struct redlock_answer *answer, redlock_vote_kind vote) {
    answer->vote = vote;
    answer->again = REDLOCK_AGAIN_NOT;
    answer->fenced = answer->accepted = answer->handed_over = false;
    answer->named = REDLOCK_NAMED_NOT;
    answer->counter = 0;
    answer->text = NULL;
    answer->clock.server_us = 0;
}

/* Somebody says who has a lock now, as WAIT and RELEASE of an announced target do. Anybody may say
 * it, also of another database. So it is only a reason to ask. The bytes are valid during the
 * call. */
struct redlock_hint {
    const char *key; /* of the lock */
    size_t key_size;
};

/* What became of a subscription. A server that refuses it refuses the next, too. */
enum redlock_listening { REDLOCK_LISTENING_NOT, REDLOCK_LISTENING, REDLOCK_LISTENING_REFUSED };

/* A node handed the lock to a waiter, or left it free; or somebody who may publish says so. The
 * bytes are valid during the call. */
struct redlock_push {
    uint32_t id;   /* as given with the WAIT, */
    uint64_t seal; /* likewise, to this node */
    /* The serial of the last WAIT that the node executed for this token; 0: the lock is free,
     * and the seal is 0. */
    uint32_t round;
    const char *token;
    size_t token_size;
    const char *key; /* of the lock */
    size_t key_size;
};

#endif
