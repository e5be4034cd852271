/* Replies, parsed by hiredis' redisReader. Our object functions fill one reused flat reply. */
#include "wire/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

/* A busy reader keeps its buffer; a reader gives a larger one back. */
#define IDLE_BUFFER_SIZE_MAX ((size_t)256 * 1024)

struct redlock_reader {
    redisReader *parser;
    redisReplyObjectFunctions functions;
    struct redlock_reply reply;
    /* Our own copy of the reply's strings, because the parser moves its buffer before a reply is
     * complete. Values hold offsets until place_string(). */
    char *strings;
    size_t strings_size, strings_room;
    const char *rest; /* borrowed: bytes that came and are not read yet */
    size_t rest_size;
    size_t fed; /* bytes of an incomplete reply that the parser holds */
    bool no_memory;
    bool taken; /* the reply was returned: the next call starts a new one */
    const char *error;
};

/* The parser's "object". It only must not be NULL. */
static void *object(struct redlock_reader *reader) {
    return reader;
}

/* Returns where the value of this task goes, or NULL to drop it. */
static struct redlock_reply_value *place(struct redlock_reader *reader, const redisReadTask *task) {
    struct redlock_reply *reply = &reader->reply;
    if (task->parent == NULL) {
        return &reply->value;
    }
    if (task->parent->parent != NULL || task->idx >= REDLOCK_REPLY_ELEMENTS_MAX) {
        return NULL;
    }
    return &reply->elements[task->idx];
}

static bool keep_string(struct redlock_reader *reader, struct redlock_reply_value *value, const char *bytes,
                        size_t size) {
    assert(reader->strings_size <= reader->strings_room);
    size_t needed = reader->strings_size + size;
    if (needed > reader->strings_room || reader->strings == NULL) {
        size_t room = needed < 256 ? 256 : needed * 2;
        char *strings = realloc(reader->strings, room);
        if (strings == NULL) {
            reader->no_memory = true;
            return false;
        }
        reader->strings = strings;
        reader->strings_room = room;
    }
    memcpy(reader->strings + reader->strings_size, bytes, size);
    value->integer = (int64_t)reader->strings_size; /* an offset, until place_string() */
    value->size = size;
    reader->strings_size = needed;
    return true;
}

static void *on_string(const redisReadTask *task, char *bytes, size_t size) {
    struct redlock_reader *reader = task->privdata;
    struct redlock_reply_value *value = place(reader, task);
    if (value == NULL) {
        return object(reader);
    }
    switch (task->type) {
    case REDIS_REPLY_STATUS:
        value->type = REDLOCK_REPLY_STATUS;
        break;
    case REDIS_REPLY_ERROR:
        value->type = REDLOCK_REPLY_ERROR;
        break;
    case REDIS_REPLY_STRING:
        value->type = REDLOCK_REPLY_STRING;
        break;
    default: /* RESP3: a verbatim string or a big number */
        value->type = REDLOCK_REPLY_OTHER;
        return object(reader);
    }
    return keep_string(reader, value, bytes, size) ? object(reader) : NULL;
}

#ifdef REDLOCK_HIREDIS_ARRAY_SIZE_T
static void *on_array(const redisReadTask *task, size_t count) {
#else
static void *on_array(const redisReadTask *task, int count) {
#endif
    struct redlock_reader *reader = task->privdata;
    struct redlock_reply_value *value = place(reader, task);
    if (value == NULL) {
        return object(reader);
    }
    bool top = task->parent == NULL && task->type == REDIS_REPLY_ARRAY;
    value->type = top ? REDLOCK_REPLY_ARRAY : REDLOCK_REPLY_OTHER;
    if (top) {
        memset(reader->reply.elements, 0, sizeof reader->reply.elements);
        reader->reply.element_count = (size_t)count;
    }
    return object(reader);
}

static void *on_integer(const redisReadTask *task, long long integer) {
    struct redlock_reader *reader = task->privdata;
    struct redlock_reply_value *value = place(reader, task);
    if (value != NULL) {
        value->type = REDLOCK_REPLY_INTEGER;
        value->integer = integer;
    }
    return object(reader);
}

static void *on_nil(const redisReadTask *task) {
    struct redlock_reader *reader = task->privdata;
    struct redlock_reply_value *value = place(reader, task);
    if (value != NULL) {
        value->type = REDLOCK_REPLY_NIL;
    }
    return object(reader);
}

struct redlock_reader *redlock_reader_new(void) {
    struct redlock_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return NULL;
    }
    /* Later versions of hiredis have more functions (doubles, booleans of RESP3). These stay NULL.
     * hiredis then makes a dummy object, and our reply stays NONE, which becomes OTHER. */
    reader->functions.createString = on_string;
    reader->functions.createArray = on_array;
    reader->functions.createInteger = on_integer;
    reader->functions.createNil = on_nil;
    reader->parser = redisReaderCreateWithFunctions(&reader->functions);
    if (reader->parser == NULL) {
        free(reader);
        return NULL;
    }
    reader->parser->privdata = reader;
    reader->parser->maxbuf = IDLE_BUFFER_SIZE_MAX;
    return reader;
}

void redlock_reader_delete(struct redlock_reader *reader) {
    if (reader == NULL) {
        return;
    }
    redisReaderFree(reader->parser);
    free(reader->strings);
    free(reader);
}

static bool hand_over(struct redlock_reader *reader) {
    const size_t size = reader->rest_size;
    reader->rest_size = 0;
    reader->fed += size;
    return size == 0 || redisReaderFeed(reader->parser, reader->rest, size) == REDIS_OK;
}

bool redlock_reader_feed(struct redlock_reader *reader, const char *bytes, size_t size) {
    const bool kept = hand_over(reader);
    reader->rest = bytes;
    reader->rest_size = size;
    return kept;
}

static bool begins_with(const struct redlock_reader *reader, const char *bytes, size_t size) {
    return reader->rest_size >= size && memcmp(reader->rest, bytes, size) == 0;
}

/* "$32\r\n…\r\n": 10 to 99 bytes, all of which are here. Returns the size of the reply; 0: it is
 * something else. */
static size_t look_at_string(const struct redlock_reader *reader, struct redlock_reply_value *value) {
    const char *rest = reader->rest;
    if (reader->rest_size < 5 || rest[1] < '1' || rest[1] > '9' || rest[2] < '0' || rest[2] > '9' || rest[3] != '\r' ||
        rest[4] != '\n') {
        return 0;
    }
    const size_t size = (size_t)(10 * (rest[1] - '0') + (rest[2] - '0'));
    if (reader->rest_size < size + 7 || memcmp(rest + 5 + size, "\r\n", 2) != 0) {
        return 0;
    }
    *value = (struct redlock_reply_value){.type = REDLOCK_REPLY_STRING, .bytes = rest + 5, .size = size};
    return size + 7;
}

/* Nearly every reply is one of these, so compare bytes first. The parser reads the rest. */
static bool take_known(struct redlock_reader *reader) {
    static const char nil[] = "$-1\r\n", ok[] = "+OK\r\n", one[] = ":1\r\n", zero[] = ":0\r\n", minus_one[] = ":-1\r\n",
                      two[] = ":2\r\n";
    struct redlock_reply_value *value = &reader->reply.value;
    size_t size;
    if (reader->rest_size > 0 && reader->rest[0] == '$') {
        if (begins_with(reader, nil, sizeof nil - 1)) {
            *value = (struct redlock_reply_value){.type = REDLOCK_REPLY_NIL};
            size = sizeof nil - 1;
        } else {
            size = look_at_string(reader, value);
        }
    } else if (begins_with(reader, one, sizeof one - 1)) {
        *value = (struct redlock_reply_value){.type = REDLOCK_REPLY_INTEGER, .integer = 1};
        size = sizeof one - 1;
    } else if (begins_with(reader, ok, sizeof ok - 1)) {
        *value = (struct redlock_reply_value){.type = REDLOCK_REPLY_STATUS, .bytes = ok + 1, .size = 2};
        size = sizeof ok - 1;
    } else if (begins_with(reader, zero, sizeof zero - 1)) {
        *value = (struct redlock_reply_value){.type = REDLOCK_REPLY_INTEGER, .integer = 0};
        size = sizeof zero - 1;
    } else if (begins_with(reader, minus_one, sizeof minus_one - 1)) {
        *value = (struct redlock_reply_value){.type = REDLOCK_REPLY_INTEGER, .integer = -1};
        size = sizeof minus_one - 1;
    } else if (begins_with(reader, two, sizeof two - 1)) {
        *value = (struct redlock_reply_value){.type = REDLOCK_REPLY_INTEGER, .integer = 2};
        size = sizeof two - 1;
    } else {
        return false;
    }
    reader->rest += size;
    reader->rest_size -= size;
    return size != 0;
}

static void place_string(const struct redlock_reader *reader, struct redlock_reply_value *value) {
    if (value->type == REDLOCK_REPLY_STATUS || value->type == REDLOCK_REPLY_ERROR ||
        value->type == REDLOCK_REPLY_STRING) {
        assert(value->integer >= 0 && (size_t)value->integer + value->size <= reader->strings_size);
        value->bytes = reader->strings + value->integer;
        value->integer = 0;
    }
}

static const char too_large[] = "a reply of more than 1 MiB";

__attribute__((noinline)) static enum redlock_read parse(struct redlock_reader *reader) {
    redisReader *parser = reader->parser;
    struct redlock_reply *reply = &reader->reply;
    void *got = NULL;
    if (reader->taken || reader->fed == 0) {
        reply->value = (struct redlock_reply_value){.type = REDLOCK_REPLY_NONE};
        reader->strings_size = 0;
        reader->taken = false;
    }
    if (!hand_over(reader)) {
        return REDLOCK_READ_NO_MEMORY;
    }
    if (redisReaderGetReply(parser, &got) != REDIS_OK) {
        reader->error = parser->errstr;
        return reader->no_memory || parser->err == REDIS_ERR_OOM ? REDLOCK_READ_NO_MEMORY : REDLOCK_READ_PROTOCOL;
    }
    if (got == NULL) {
        if (reader->fed <= REDLOCK_REPLY_SIZE_MAX) {
            return REDLOCK_READ_MORE;
        }
        reader->error = too_large;
        return REDLOCK_READ_PROTOCOL;
    }
    reader->fed = parser->len - parser->pos;
    reader->taken = true;
    place_string(reader, &reply->value);
    for (size_t i = 0; reply->value.type == REDLOCK_REPLY_ARRAY && i < REDLOCK_REPLY_ELEMENTS_MAX; i++) {
        place_string(reader, &reply->elements[i]);
    }
    if (reply->value.type == REDLOCK_REPLY_NONE) {
        reply->value.type = REDLOCK_REPLY_OTHER;
    }
    return REDLOCK_READ_REPLY;
}

enum redlock_read redlock_reader_next(struct redlock_reader *reader, const struct redlock_reply **reply) {
    *reply = &reader->reply;
    if (reader->fed == 0 && reader->rest_size == 0) {
        return REDLOCK_READ_MORE;
    }
    return reader->fed == 0 && take_known(reader) ? REDLOCK_READ_REPLY : parse(reader);
}

const char *redlock_reader_error(const struct redlock_reader *reader) {
    assert(reader->error != NULL);
    return reader->error;
}

bool redlock_reader_is_full(const struct redlock_reader *reader) {
    return reader->error == too_large;
}
