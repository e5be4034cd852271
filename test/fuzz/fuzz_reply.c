/* Any bytes from a node, in pieces of any size, give replies, an error, or nothing. They never give
 * a vote that they do not spell out (R20). */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/holder.h"
#include "kinds.h"
#include "wire/holder_query.h"
#include "wire/page.h"
#include "wire/push.h"
#include "wire/slots.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_number(const struct redlock_reply_value *value, int64_t number) {
    return value->type == REDLOCK_REPLY_INTEGER && value->integer == number;
}

static bool is_digits(const struct redlock_reply_value *value, size_t size_min, size_t size_max) {
    bool digits = value->type == REDLOCK_REPLY_STRING && value->size >= size_min && value->size <= size_max;
    for (size_t i = 0; digits && i < value->size; i++) {
        digits = value->bytes[i] >= '0' && value->bytes[i] <= '9';
    }
    return digits;
}

static void check_array(const struct redlock_reply *reply, size_t count, int64_t number) {
    assert(reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == count);
    assert(is_number(&reply->elements[0], number));
    assert(count == 2 || (is_digits(&reply->elements[2], 1, 10) && is_digits(&reply->elements[3], 1, 6)));
}

static void check_place(const struct redlock_reply *reply, int64_t number) {
    assert(reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == 6);
    assert(is_number(&reply->elements[0], number));
    assert(is_digits(&reply->elements[4], 1, 10) && is_digits(&reply->elements[5], 1, 6));
}

/* The entries are the whole page, one behind the other. */
static void check_page(const struct redlock_answer *answer) {
    const char *at = answer->holder, *end = at + answer->holder_size;
    struct redlock_page_entry entry;
    while (at < end) {
        assert(redlock_page_next(&at, end, &entry));
        assert(entry.key_size >= 1 && entry.key_size <= REDLOCK_RESOURCE_SIZE_MAX);
        assert(entry.token_size >= 1 && entry.token_size <= REDLOCK_TOKEN_SIZE_MAX);
        assert(entry.token == entry.key + entry.key_size && entry.token + entry.token_size == at && at <= end);
        assert(entry.ttl_ms >= -2 && entry.waiters >= -1 && entry.readers >= 0);
    }
}

static void check_names(const struct redlock_answer *answer) {
    const char *at = answer->first, *end = at + answer->first_size;
    struct redlock_page_name name;
    while (at < end) {
        assert(redlock_page_next_name(&at, end, &name));
        assert(name.token_size >= 1 && name.token_size <= REDLOCK_TOKEN_SIZE_MAX && name.ms >= 0);
        assert(name.token + name.token_size == at && at <= end);
    }
}

static void check_shared(unsigned kind, const struct redlock_reply *reply) {
    const bool timed = (kind & REDLOCK_KIND_TIMED) != 0;
    if (timed || (kind & REDLOCK_KIND_FENCED)) {
        check_array(reply, timed ? 4 : 2, 1);
    } else {
        assert(is_number(&reply->value, 1));
    }
}

/* What is read of them are as many as were asked for, in the order of the look, and none twice. */
static void check_slots(const struct redlock_answer *answer) {
    const struct redlock_slots slots = {.permits = 2, .limit = 10, .first = 8, .window = 5};
    uint16_t numbers[2];
    if (redlock_slots_read(&slots, answer->holder, answer->holder_size, numbers)) {
        assert(numbers[0] < 10 && numbers[1] < 10);
        assert((numbers[0] + 2) % 10 < (numbers[1] + 2) % 10 && (numbers[1] + 2) % 10 < 5);
    }
}

static void check_acquired(unsigned kind, const struct redlock_reply *reply, const struct redlock_answer *answer) {
    const bool timed = (kind & REDLOCK_KIND_TIMED) != 0;
    if (kind & REDLOCK_KIND_HOLDER_QUERY) {
        assert(reply->value.type == REDLOCK_REPLY_NIL && !(kind & REDLOCK_KIND_TWICE));
    } else if (!timed && !(kind & REDLOCK_KIND_FENCED)) {
        assert(reply->value.type == REDLOCK_REPLY_STATUS && reply->value.size == 2);
    } else if (answer->accepted && !timed) {
        assert(is_number(&reply->value, 1));
    } else {
        check_array(reply, timed ? 4 : 2, answer->accepted || !(kind & REDLOCK_KIND_FENCED) ? 1 : 2);
    }
}

static void check_compared(unsigned kind, const struct redlock_reply *reply, const struct redlock_answer *answer) {
    if (kind & REDLOCK_KIND_TIMED) {
        check_array(reply, 4, 1);
    } else {
        assert(is_number(&reply->value, answer->handed_over ? 2 : 1));
        assert(!answer->handed_over || kind == REDLOCK_OP_RELEASE);
    }
}

static void check_granted(unsigned kind, const struct redlock_reply *reply, const struct redlock_answer *answer) {
    if (kind & REDLOCK_KIND_SHARED) {
        check_shared(kind, reply);
        return;
    }
    if (kind == TAKE) {
        check_array(reply, 4, 1);
        check_slots(answer);
        return;
    }
    if (kind & REDLOCK_KIND_SLOTS) {
        check_compared(kind, reply, answer);
        return;
    }
    switch (redlock_wire_operation(kind)) {
    case REDLOCK_OP_ACQUIRE:
    case REDLOCK_OP_HEAL:
        check_acquired(kind, reply, answer);
        break;
    case REDLOCK_OP_INSPECT:
        assert(reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == (answer->first != NULL ? 6 : 4));
        assert(answer->readers == 0 || answer->first != NULL);
        assert(answer->readers >= 0);
        check_names(answer);
        assert(answer->waiters >= -1 && answer->waited_ms >= -1 && answer->waited_ms <= INT64_MAX / 1000);
        assert(answer->holder_ttl_ms >= -1 && answer->holder_ttl_ms <= INT64_MAX / 1000);
        break;
    case REDLOCK_OP_LIST:
        assert(reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == 3);
        check_page(answer);
        break;
    case REDLOCK_OP_TIME:
        assert(reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == 2);
        assert(is_digits(&reply->elements[0], 1, 10) && is_digits(&reply->elements[1], 1, 6));
        break;
    case REDLOCK_OP_WAIT:
        check_place(reply, 1);
        break;
    default:
        check_compared(kind, reply, answer);
    }
}

/* An answer has a counter or a clock only if the reply has it and the request asked for it. */
static void check_told(unsigned kind, const struct redlock_reply *reply, const struct redlock_answer *answer) {
    const bool timed =
        (kind & REDLOCK_KIND_TIMED) || kind == REDLOCK_OP_TIME || kind == REDLOCK_OP_WAIT || kind == TAKE;
    const bool fencing = (kind & REDLOCK_KIND_FENCED) || kind == REDLOCK_OP_FENCE;
    const bool known = answer->vote == REDLOCK_VOTE_GRANTED || answer->vote == REDLOCK_VOTE_DENIED;
    assert((answer->clock.server_us > 0) == (timed && known) && answer->clock.server_us >= 0);
    assert(!answer->fenced || (fencing && known));
    assert(!answer->accepted || (answer->fenced && answer->counter == 0 && answer->vote == REDLOCK_VOTE_GRANTED));
    if (answer->counter != 0) {
        assert(answer->fenced && answer->counter <= INT64_MAX);
        assert(reply->value.type == REDLOCK_REPLY_ARRAY && is_digits(&reply->elements[1], 20, 20));
    }
    if (fencing && answer->vote == REDLOCK_VOTE_GRANTED) {
        assert(answer->fenced && (answer->accepted || answer->counter != 0 || (kind & REDLOCK_KIND_SHARED)));
    }
}

/* The holder's text stands in the reply, and needs no escape. */
static void check_holder(const struct redlock_answer *answer, const char *holder, size_t holder_size) {
    const char *text = redlock_holder_of_text(answer->text);
    const size_t size = strlen(text);
    assert(size <= REDLOCK_HOLDER_SIZE_MAX);
    if (size > 0) {
        assert(holder_size > size + 1);
        assert(memcmp(holder + holder_size - size, text, size) == 0);
        assert(holder[holder_size - size - 1] == REDLOCK_HOLDER_AT);
    }
    for (size_t i = 0; i < size; i++) {
        assert(text[i] > ' ' && text[i] <= '~');
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

/* A push points into the payload, and no further. */
static void push(const struct redlock_reply *reply) {
    const struct redlock_reply_value *payload = &reply->elements[2];
    struct redlock_push got;
    if (redlock_wire_push(reply, "redlock:0123", &got)) {
        assert(reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == 3);
        assert(got.token_size >= 1 && got.token_size <= REDLOCK_TOKEN_SIZE_MAX && got.token > payload->bytes);
        assert(got.key_size >= 1 && got.key_size <= REDLOCK_RESOURCE_SIZE_MAX);
        assert(got.token[got.token_size] == ' ' && got.key == got.token + got.token_size + 1);
        assert(got.key + got.key_size == payload->bytes + payload->size);
    }
}

/* A hint points into the channel. */
static void hint(const struct redlock_reply *reply) {
    const struct redlock_reply_value *channel = &reply->elements[1];
    struct redlock_hint got;
    if (redlock_wire_hint(reply, &got)) {
        assert(reply->value.type == REDLOCK_REPLY_ARRAY && reply->element_count == 3);
        assert(got.key_size >= 1 && got.key + got.key_size == channel->bytes + channel->size);
    }
}

static void vote(const struct redlock_reply *reply) {
    touch(&reply->value);
    for (size_t i = 0; i < REDLOCK_REPLY_ELEMENTS_MAX; i++) {
        if (reply->value.type == REDLOCK_REPLY_ARRAY && i < reply->element_count) {
            touch(&reply->elements[i]);
        }
    }
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const unsigned kind = kinds[i];
        struct redlock_answer answer;
        redlock_wire_answer(kind, reply, "geheim", &answer);
        assert(answer.vote >= REDLOCK_VOTE_GRANTED && answer.vote <= REDLOCK_VOTE_UNKNOWN);
        assert(strlen(redlock_text_string(answer.text)) < 512);
        if (answer.vote == REDLOCK_VOTE_GRANTED) {
            check_granted(kind, reply, &answer);
        }
        if (kind == REDLOCK_OP_WAIT && answer.vote == REDLOCK_VOTE_DENIED) {
            const int64_t number = reply->elements[0].integer;
            assert(number == 0 || number == 2 || number == 3);
            check_place(reply, number);
            assert(answer.ahead == (number == 3) && (number != 3 || answer.holder != NULL));
            assert(is_number(&reply->elements[3], answer.rank));
            /* A lock without a holder may be left free for some time. */
            assert(number != 0             ? answer.holder_ttl_ms >= 0
                   : answer.holder == NULL ? answer.holder_ttl_ms == -2 || answer.holder_ttl_ms > 0
                                           : answer.holder_ttl_ms >= -1);
            assert(answer.holder == NULL || answer.holder == reply->elements[1].bytes);
            check_holder(&answer, answer.holder, answer.holder_size);
        }
        if ((kind & REDLOCK_KIND_HOLDER_QUERY) && answer.vote == REDLOCK_VOTE_DENIED) {
            assert(reply->value.type == REDLOCK_REPLY_STRING || reply->value.type == REDLOCK_REPLY_ERROR);
            check_holder(&answer, reply->value.bytes, reply->value.size);
        }
        check_told(kind, reply, &answer);
        redlock_text_drop(answer.text);
    }
}

/* The sum of a stream of replies. It must not depend on the pieces. */
struct outcome {
    enum redlock_read end;
    uint64_t sum;
};

static void add(uint64_t *sum, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        *sum = (*sum ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
}

static void add_value(uint64_t *sum, const struct redlock_reply_value *value) {
    add(sum, &value->type, sizeof value->type);
    add(sum, &value->integer, sizeof value->integer);
    add(sum, &value->size, sizeof value->size);
    add(sum, value->bytes, value->bytes == NULL ? 0 : value->size);
}

static void add_reply(uint64_t *sum, const struct redlock_reply *reply) {
    add_value(sum, &reply->value);
    for (size_t i = 0; i < REDLOCK_REPLY_ELEMENTS_MAX; i++) {
        if (reply->value.type == REDLOCK_REPLY_ARRAY && i < reply->element_count) {
            add_value(sum, &reply->elements[i]);
        }
    }
}

static bool read_in_pieces(const char *bytes, size_t size, size_t piece, struct outcome *outcome) {
    struct redlock_reader *reader = redlock_reader_new();
    *outcome = (struct outcome){.end = REDLOCK_READ_MORE};
    if (reader == NULL) {
        return false;
    }
    for (size_t at = 0; at < size && outcome->end == REDLOCK_READ_MORE; at += piece) {
        const struct redlock_reply *reply;
        if (!redlock_reader_feed(reader, bytes + at, size - at < piece ? size - at : piece)) {
            outcome->end = REDLOCK_READ_NO_MEMORY;
            break;
        }
        while ((outcome->end = redlock_reader_next(reader, &reply)) == REDLOCK_READ_REPLY) {
            vote(reply);
            push(reply);
            hint(reply);
            add_reply(&outcome->sum, reply);
        }
        if (outcome->end == REDLOCK_READ_PROTOCOL) {
            assert(redlock_reader_error(reader) != NULL);
        }
    }
    redlock_reader_delete(reader);
    return outcome->end != REDLOCK_READ_NO_MEMORY;
}

/*
 * The first byte chooses the size of the pieces. In pieces of one byte, the parser reads every
 * reply, and no reply is known by its bytes. Both ways must give the same result, unless a reply is
 * over the size limit: where that cut falls depends on the pieces.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct outcome in_pieces, by_bytes;
    if (size < 1) {
        return 0;
    }
    const char *bytes = (const char *)data + 1;
    bool read = read_in_pieces(bytes, size - 1, (size_t)data[0] * data[0] / 16 + 1, &in_pieces);
    if (read && size < REDLOCK_REPLY_SIZE_MAX && read_in_pieces(bytes, size - 1, 1, &by_bytes)) {
        assert(in_pieces.end == by_bytes.end && in_pieces.sum == by_bytes.sum);
    }
    return 0;
}
