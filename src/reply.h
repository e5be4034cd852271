/* A reply of a node, flat: parsed by hiredis' redisReader into one reused object, with bounds on size and nesting
 * (R20). */
#ifndef REDLOCK_REPLY_H
#define REDLOCK_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum redlock_reply_type {
    REDLOCK_REPLY_NONE,
    REDLOCK_REPLY_STATUS,
    REDLOCK_REPLY_ERROR,
    REDLOCK_REPLY_INTEGER,
    REDLOCK_REPLY_STRING,
    REDLOCK_REPLY_NIL,
    REDLOCK_REPLY_ARRAY, /* the first elements are kept, if they are not arrays themselves */
    REDLOCK_REPLY_OTHER  /* anything else a server may say (RESP3, nested arrays): never a vote */
};

#define REDLOCK_REPLY_ELEMENTS_MAX 4

struct redlock_reply_value {
    enum redlock_reply_type type;
    int64_t integer;
    const char *bytes; /* STATUS, ERROR, STRING: not terminated, valid until the next reply is read */
    size_t size;
};

struct redlock_reply {
    struct redlock_reply_value value;
    struct redlock_reply_value elements[REDLOCK_REPLY_ELEMENTS_MAX]; /* of an ARRAY */
    size_t element_count;                                            /* as the node said; more than are kept, perhaps */
};

#endif
