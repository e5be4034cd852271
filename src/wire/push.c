/* A node's push: "id serial seconds microseconds token key" (scripts/parts/serve.lua; with the
 * serial 0, leave.lua). What it announces (announce.lua) is not read: anybody may say it. */
#include "wire/push.h"

#include <assert.h>
#include <string.h>

#include "core/number.h"
#include "wire/channel.h"

/* Takes the bytes up to the next space as a word, and the space. */
static bool take_word(struct redlock_reply_value *rest, struct redlock_reply_value *word) {
    assert(rest->bytes || rest->size == 0);
    const char *space = memchr(rest->bytes, ' ', rest->size);
    if (space == NULL) {
        return false;
    }
    *word = *rest;
    word->size = (size_t)(space - rest->bytes);
    rest->bytes = space + 1;
    rest->size -= word->size + 1;
    return true;
}

static bool read_number(const char *digits, size_t size, uint32_t *number) {
    uint64_t value;
    if (size > REDLOCK_ID_DIGITS || !redlock_number_read(digits, size, UINT32_MAX, &value)) {
        return false;
    }
    *number = (uint32_t)value;
    return true;
}

/* An id has all its digits, and so has its seal. */
static bool take_id(struct redlock_reply_value *rest, struct redlock_push *push) {
    struct redlock_reply_value word;
    return take_word(rest, &word) && word.size == REDLOCK_ID_DIGITS + REDLOCK_SEAL_DIGITS &&
           read_number(word.bytes, REDLOCK_ID_DIGITS, &push->id) &&
           redlock_number_read(word.bytes + REDLOCK_ID_DIGITS, REDLOCK_SEAL_DIGITS, UINT64_MAX, &push->seal);
}

/* What a channel says. The reply to a SUBSCRIBE has three elements, too. */
static bool is_message(const struct redlock_reply *reply) {
    return redlock_reply_is_array(reply, 3) && redlock_reply_is(&reply->elements[0], "message");
}

bool redlock_wire_push(const struct redlock_reply *reply, const char *channel, struct redlock_push *push) {
    assert(channel != NULL && channel[0] != '\0');
    const struct redlock_reply_value *element = reply->elements;
    struct redlock_reply_value key = element[2], round, seconds, microseconds, token;
    if (!is_message(reply) || !redlock_reply_is(&element[1], channel) || key.type != REDLOCK_REPLY_STRING) {
        return false;
    }
    /* Nobody vouches for the time, so it is not read. */
    if (!take_id(&key, push) || !take_word(&key, &round) || !read_number(round.bytes, round.size, &push->round) ||
        !take_word(&key, &seconds) || !take_word(&key, &microseconds) || !take_word(&key, &token)) {
        return false;
    }
    push->token = token.bytes;
    push->token_size = token.size;
    push->key = key.bytes;
    push->key_size = key.size;
    return token.size != 0 && token.size <= REDLOCK_TOKEN_SIZE_MAX && key.size != 0 &&
           key.size <= REDLOCK_RESOURCE_SIZE_MAX;
}

bool redlock_wire_hint(const struct redlock_reply *reply, struct redlock_hint *hint) {
    static const size_t prefix_size = sizeof REDLOCK_LEADER_CHANNEL - 1;
    const struct redlock_reply_value *channel = &reply->elements[1];
    if (!is_message(reply) || channel->type != REDLOCK_REPLY_STRING || channel->size <= prefix_size ||
        memcmp(channel->bytes, REDLOCK_LEADER_CHANNEL, prefix_size) != 0) {
        return false;
    }
    *hint = (struct redlock_hint){.key = channel->bytes + prefix_size, .key_size = channel->size - prefix_size};
    return true;
}
