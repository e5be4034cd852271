/* Any bytes from a node, in pieces of any size, make replies, an error, or nothing; and never a vote that the bytes do not
 * spell out (R20). */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "reply.h"
#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_granted(enum redlock_operation operation, const struct redlock_reply *reply) {
    if (operation == REDLOCK_OP_ACQUIRE) {
        assert(reply->value.type == REDLOCK_REPLY_STATUS && reply->value.size == 2);
    } else if (operation == REDLOCK_OP_INSPECT) {
        assert(reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == 2);
    } else {
        assert(reply->value.type == REDLOCK_REPLY_INTEGER && reply->value.integer == 1);
    }
}

static volatile unsigned sink;

/* Reads every byte that the reply claims to have. */
static void touch(const struct redlock_reply_value *value) {
    if (value->type == REDLOCK_REPLY_STATUS || value->type == REDLOCK_REPLY_ERROR ||
        value->type == REDLOCK_REPLY_STRING) {
        for (size_t i = 0; i < value->size; i++) {
            sink = (unsigned char)value->bytes[i];
        }
    }
}

static void vote(const struct redlock_reply *reply) {
    touch(&reply->value);
    for (size_t i = 0; i < REDLOCK_REPLY_ELEMENTS_MAX; i++) {
        if (reply->value.type == REDLOCK_REPLY_ARRAY && i < reply->element_count) {
            touch(&reply->elements[i]);
        }
    }
    for (int operation = REDLOCK_OP_NONE; operation <= REDLOCK_OP_INSPECT; operation++) {
        struct redlock_answer answer;
        redlock_wire_answer((enum redlock_operation)operation, reply, &answer);
        assert(answer.vote >= REDLOCK_VOTE_GRANTED && answer.vote <= REDLOCK_VOTE_UNKNOWN);
        assert(strlen(redlock_text_string(answer.text)) < 512);
        if (answer.vote == REDLOCK_VOTE_GRANTED) {
            check_granted((enum redlock_operation)operation, reply);
        }
        redlock_text_drop(answer.text);
    }
}

/* The first byte chooses how large the pieces are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t piece = size == 0 ? 1 : (size_t)data[0] * data[0] / 16 + 1;
    struct redlock_reader *reader = redlock_reader_new();
    if (reader == NULL) {
        return 0;
    }
    for (size_t at = size == 0 ? 0 : 1; at < size; at += piece) {
        const struct redlock_reply *reply;
        enum redlock_read read;
        if (!redlock_reader_feed(reader, (const char *)data + at, size - at < piece ? size - at : piece)) {
            break;
        }
        while ((read = redlock_reader_next(reader, &reply)) == REDLOCK_READ_REPLY) {
            vote(reply);
        }
        if (read == REDLOCK_READ_PROTOCOL) {
            assert(redlock_reader_error(reader) != NULL);
        }
        if (read != REDLOCK_READ_MORE) {
            break;
        }
    }
    redlock_reader_delete(reader);
    return 0;
}
