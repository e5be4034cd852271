/* The fake node's keys, and the words of its replies. */
#include "fake_store.h"

#include <ctype.h>

#include "base/holder.h"

char *fake_bytes(char *at, const char *bytes, size_t size) {
    memcpy(at, bytes, size);
    return at + size;
}

/* snprintf() would take a tenth of a schedule. */
char *fake_digits(char *at, uint64_t value, unsigned least) {
    char digits[24];
    char *const end = digits + sizeof digits, *from = end;
    for (const char *latest = end - least; value != 0 || from > latest; value /= 10) {
        *--from = (char)('0' + value % 10);
    }
    return fake_bytes(at, from, (size_t)(end - from));
}

void fake_reply_bytes(struct fake_reply *reply, enum redlock_reply_type type, const char *bytes) {
    reply->type = type;
    reply->bytes = bytes;
    reply->size = strlen(bytes);
}

void fake_reply_integer(struct fake_reply *reply, int64_t value) {
    reply->type = REDLOCK_REPLY_INTEGER;
    reply->integer = value;
}

void fake_reply_value(struct fake_reply *reply, const struct fake_key *key) {
    static const char *const types[] = {[FAKE_LIST] = "(a list)", [FAKE_ZSET] = "(a zset)", [FAKE_HASH] = "(a hash)"};
    if (key->type != FAKE_STRING) {
        fake_reply_bytes(reply, REDLOCK_REPLY_STRING, types[key->type]);
        return;
    }
    memcpy(reply->text, key->value, key->value_size);
    reply->type = REDLOCK_REPLY_STRING;
    reply->bytes = reply->text;
    reply->size = key->value_size;
}

void fake_reply_raw_value(struct fake_reply *reply, const struct fake_key *key) {
    fake_reply_value(reply, key);
    if (key->marked) {
        reply->text[0] = (char)toupper((unsigned char)reply->text[0]);
    }
}

void fake_reply_wrong_type(struct fake_reply *reply) {
    fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

void fake_reply_time(struct fake_reply *reply, struct fake_node *node) {
    const int64_t now_s = node->now_us / 1000000;
    if (now_s != node->told_s || node->seconds[0] == '\0') {
        *fake_digits(node->seconds, (uint64_t)now_s % 100000000000, 1) = '\0';
        node->told_s = now_s;
    }
    memcpy(reply->seconds, node->seconds, sizeof reply->seconds);
    *fake_digits(reply->micros, (uint64_t)(node->now_us % 1000000), 1) = '\0';
}

/* Why a writing command is refused in this mode; NULL if it is not. */
static const char *write_refusal(const struct fake_node *node, bool grows) {
    switch (node->mode) {
    case FAKE_READONLY:
        return "READONLY You can't write against a read only replica.";
    case FAKE_MISCONF:
        return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.";
    case FAKE_OOM:
        return grows ? "OOM command not allowed when used memory > 'maxmemory'." : NULL;
    case FAKE_LOADING:
    case FAKE_NORMAL:
        break;
    }
    return NULL;
}

bool fake_refused(const struct fake_node *node, bool grows, struct fake_reply *reply) {
    const char *refusal = write_refusal(node, grows);
    if (refusal != NULL) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, refusal);
    }
    return refusal != NULL;
}

static struct fake_key *find_in(struct fake_node *node, struct fake_key *keys, unsigned count, const char *name,
                                size_t size) {
    for (unsigned i = 0; i < count; i++) {
        struct fake_key *key = &keys[i];
        /* Most names of a size differ in their last letter, if at all. */
        if (!key->used || key->name_size != size || key->name[size - 1] != name[size - 1] ||
            memcmp(key->name, name, size) != 0) {
            continue;
        }
        if (key->expires_ms == FAKE_NO_TTL || node->now_ms <= key->expires_ms) {
            return key;
        }
        key->used = false;
        return NULL;
    }
    return NULL;
}

struct fake_key *fake_node_find(struct fake_node *node, const char *name, size_t size) {
    struct fake_key *key = find_in(node, node->keys, node->key_count, name, size);
    return key != NULL ? key : find_in(node, node->sets, node->set_count, name, size);
}

/* Sets the key in this array, with an empty value and without a ttl. */
static struct fake_key *set_in(struct fake_key *keys, unsigned max, unsigned *count, const struct sim_argument *name) {
    for (unsigned i = 0; i < max && name->size <= FAKE_NAME_MAX; i++) {
        struct fake_key *key = &keys[i];
        if (!key->used) {
            *count = i >= *count ? i + 1 : *count;
            *key = (struct fake_key){.used = true, .name_size = (uint8_t)name->size, .expires_ms = FAKE_NO_TTL};
            memcpy(key->name, name->bytes, name->size);
            return key;
        }
    }
    return NULL;
}

struct fake_key *fake_add_set(struct fake_node *node, const struct sim_argument *name, enum fake_type type) {
    struct fake_key *set = set_in(node->sets, FAKE_SETS_MAX, &node->set_count, name);
    if (set != NULL) {
        set->type = type;
        set->id = ++node->last_id;
    }
    return set;
}

struct fake_key *fake_find(struct fake_node *node, const struct sim_argument *name) {
    return fake_node_find(node, name->bytes, name->size);
}

struct fake_key *fake_add(struct fake_node *node, const struct sim_argument *name, const struct sim_argument *value) {
    struct fake_key *key = fake_find(node, name);
    if (key != NULL && (key->type == FAKE_ZSET || key->type == FAKE_HASH)) {
        key->used = false;
        key = NULL;
    }
    if (value->size > FAKE_VALUE_MAX ||
        (key == NULL && (key = set_in(node->keys, FAKE_KEYS_MAX, &node->key_count, name)) == NULL)) {
        return NULL;
    }
    key->type = FAKE_STRING;
    key->marked = false;
    key->value_size = (uint8_t)value->size;
    memcpy(key->value, value->bytes, value->size);
    if (redlock_holder_is_try(key->value, value->size) && !redlock_holder_reads(key->value, value->size)) {
        key->marked = isupper((unsigned char)key->value[0]);
        key->value[0] = (char)tolower((unsigned char)key->value[0]);
    }
    key->expires_ms = FAKE_NO_TTL;
    node->wrote = true;
    return key;
}

bool fake_integer(const struct sim_argument *argument, int64_t *value) {
    bool negative = argument->size > 0 && argument->bytes[0] == '-';
    *value = 0;
    if (argument->size == (negative ? 1U : 0U) || argument->size > 18) {
        return false;
    }
    for (size_t i = negative ? 1 : 0; i < argument->size; i++) {
        if (argument->bytes[i] < '0' || argument->bytes[i] > '9') {
            return false;
        }
        *value = *value * 10 + (argument->bytes[i] - '0');
    }
    if (negative) {
        *value = -*value;
    }
    return true;
}

void fake_delete(struct fake_node *node, struct fake_key *key) {
    key->used = false;
    node->wrote = true;
}

void fake_expire(struct fake_node *node, struct fake_key *key, int64_t ttl_ms) {
    node->wrote = true;
    if (ttl_ms <= 0) {
        key->used = false;
    } else {
        key->expires_ms = node->now_ms + ttl_ms;
    }
}

int64_t fake_ttl(const struct fake_node *node, const struct fake_key *key) {
    if (key == NULL) {
        return -2;
    }
    return key->expires_ms == FAKE_NO_TTL ? -1 : key->expires_ms - node->now_ms;
}
