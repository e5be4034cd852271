/* A node's push: "id serial seconds microseconds token key" (scripts/parts/serve.lua); its
 * announcement: "PTTL token", or "" (scripts/parts/announce.lua). */
#include "wire/push.h"

#include <string.h>

#include "wire/channel.h"
#include "wire/read.h"

/* Takes the bytes up to the next space as a word, and the space. */
static bool take_word(struct redlock_reply_value *rest, struct redlock_reply_value *word) {
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

static bool take_number(struct redlock_reply_value *rest, uint32_t *number) {
    struct redlock_reply_value word;
    int64_t value;
    if (!take_word(rest, &word) || !redlock_read_digits(&word, 10, &value) || value > UINT32_MAX) {
        return false;
    }
    *number = (uint32_t)value;
    return true;
}

static bool is(const struct redlock_reply_value *value, const char *string) {
    return value->type == REDLOCK_REPLY_STRING && value->size == strlen(string) &&
           memcmp(value->bytes, string, value->size) == 0;
}

bool redlock_wire_push(const struct redlock_reply *reply, const char *channel, struct redlock_push *push) {
    const struct redlock_reply_value *element = reply->elements;
    struct redlock_reply_value key = element[2], token, time[2];
    if (reply->value.type != REDLOCK_REPLY_ARRAY || reply->element_count != 3 || !is(&element[0], "message") ||
        !is(&element[1], channel) || key.type != REDLOCK_REPLY_STRING) {
        return false;
    }
    if (!take_number(&key, &push->id) || !take_number(&key, &push->round) || !take_word(&key, &time[0]) ||
        !take_word(&key, &time[1]) || !redlock_read_server_time(time, &push->server_us) || !take_word(&key, &token)) {
        return false;
    }
    push->token = token.bytes;
    push->token_size = token.size;
    push->key = key.bytes;
    push->key_size = key.size;
    return token.size != 0 && token.size <= REDLOCK_TOKEN_SIZE_MAX && key.size != 0 &&
           key.size <= REDLOCK_RESOURCE_SIZE_MAX;
}

bool redlock_wire_announcement(const struct redlock_reply *reply, struct redlock_announcement *announcement) {
    static const size_t prefix_size = sizeof REDLOCK_LEADER_CHANNEL - 1;
    const struct redlock_reply_value *element = reply->elements, *channel = &element[1];
    struct redlock_reply_value token = element[2], ttl;
    if (reply->value.type != REDLOCK_REPLY_ARRAY || reply->element_count != 3 || !is(&element[0], "message") ||
        channel->type != REDLOCK_REPLY_STRING || token.type != REDLOCK_REPLY_STRING || channel->size <= prefix_size ||
        memcmp(channel->bytes, REDLOCK_LEADER_CHANNEL, prefix_size) != 0) {
        return false;
    }
    *announcement =
        (struct redlock_announcement){.key = channel->bytes + prefix_size, .key_size = channel->size - prefix_size};
    if (token.size == 0) {
        return true;
    }
    if (!take_word(&token, &ttl) || !redlock_read_digits(&ttl, 10, &announcement->ttl_ms)) {
        return false;
    }
    announcement->token = token.bytes;
    announcement->token_size = token.size;
    return token.size != 0 && token.size <= REDLOCK_TOKEN_SIZE_MAX;
}
