/* A node's reply, flat: hiredis' redisReader parses it into one reused object, with bounds on size
 * and nesting (R20). */
#ifndef REDLOCK_WIRE_REPLY_H
#define REDLOCK_WIRE_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum redlock_reply_type {
    REDLOCK_REPLY_NONE,
    REDLOCK_REPLY_STATUS,
    REDLOCK_REPLY_ERROR,
    REDLOCK_REPLY_INTEGER,
    REDLOCK_REPLY_STRING,
    REDLOCK_REPLY_NIL,
    REDLOCK_REPLY_ARRAY, /* keeps the first elements, except arrays */
    REDLOCK_REPLY_OTHER  /* anything else (RESP3, nested arrays): never a vote */
};

#define REDLOCK_REPLY_ELEMENTS_MAX 12 /* HELLO has the role there */

struct redlock_reply_value {
    enum redlock_reply_type type;
    int64_t integer;
    const char *bytes; /* STATUS, ERROR, STRING: not terminated, valid until the next read */
    size_t size;
};

static inline bool redlock_reply_is_ok(const struct redlock_reply_value *value) {
    return value->type == REDLOCK_REPLY_STATUS && value->size == 2 && memcmp(value->bytes, "OK", 2) == 0;
}

/* Whether it is this string. */
static inline bool redlock_reply_is(const struct redlock_reply_value *value, const char *word) {
    return value->type == REDLOCK_REPLY_STRING && value->size == strlen(word) &&
           memcmp(value->bytes, word, value->size) == 0;
}

struct redlock_reply {
    struct redlock_reply_value value;
    /* Valid for an ARRAY only; otherwise they are left from an earlier reply. */
    struct redlock_reply_value elements[REDLOCK_REPLY_ELEMENTS_MAX];
    size_t element_count; /* as the node announced it */
};

static inline bool redlock_reply_is_array(const struct redlock_reply *reply, size_t count) {
    return reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == count;
}

/* The most bytes that one reply may have. */
#define REDLOCK_REPLY_SIZE_MAX (1024 * 1024)

enum redlock_read {
    REDLOCK_READ_REPLY,    /* one more reply */
    REDLOCK_READ_MORE,     /* not a whole reply yet */
    REDLOCK_READ_PROTOCOL, /* not RESP, or a reply over the limit: close the connection */
    REDLOCK_READ_NO_MEMORY
};

struct redlock_reader;

/* NULL without memory. */
struct redlock_reader *redlock_reader_new(void);
void redlock_reader_delete(struct redlock_reader *reader); /* NULL is allowed */

/* Takes the bytes that came from the node. It borrows them until redlock_reader_next() returns MORE
 * or the next call of this function. Returns false without memory. */
bool redlock_reader_feed(struct redlock_reader *reader, const char *bytes, size_t size);

/* Reads the next reply of these bytes. The next call overwrites it. */
enum redlock_read redlock_reader_next(struct redlock_reader *reader, const struct redlock_reply **reply);

/* After REDLOCK_READ_PROTOCOL: what was wrong. */
const char *redlock_reader_error(const struct redlock_reader *reader);
bool redlock_reader_is_full(const struct redlock_reader *reader); /* a reply over the limit */

#endif
