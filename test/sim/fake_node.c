/* The fake node's commands. */
#include "fake_node.h"

#include <stdio.h>
#include <string.h>

#include "command.h"
#include "script.h"

#ifdef REDLOCK_PLANTED_BUGS
#define SCRIPTS (REDLOCK_SCRIPT_PLANTED_EXTEND + 1)
#else
#define SCRIPTS REDLOCK_SCRIPT_COUNT
#endif

static bool is(const struct sim_argument *argument, const char *word) {
    size_t size = strlen(word);
    return argument->size == size && strncasecmp(argument->bytes, word, size) == 0;
}

static void reply_bytes(struct fake_reply *reply, enum redlock_reply_type type, const char *bytes) {
    reply->type = type;
    reply->bytes = bytes;
    reply->size = strlen(bytes);
}

static void reply_integer(struct fake_reply *reply, int64_t value) {
    reply->type = REDLOCK_REPLY_INTEGER;
    reply->integer = value;
}

static void reply_value(struct fake_reply *reply, const struct fake_key *key) {
    if (key->list) {
        reply_bytes(reply, REDLOCK_REPLY_STRING, "(a list)");
        return;
    }
    memcpy(reply->text, key->value, key->value_size);
    reply->type = REDLOCK_REPLY_STRING;
    reply->bytes = reply->text;
    reply->size = key->value_size;
}

static void reply_wrong_type(struct fake_reply *reply) {
    reply_bytes(reply, REDLOCK_REPLY_ERROR, "WRONGTYPE Operation against a key holding the wrong kind of value");
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

static bool refused(const struct fake_node *node, bool grows, struct fake_reply *reply) {
    const char *refusal = write_refusal(node, grows);
    if (refusal != NULL) {
        reply_bytes(reply, REDLOCK_REPLY_ERROR, refusal);
    }
    return refusal != NULL;
}

struct fake_key *fake_node_find(struct fake_node *node, const char *name, size_t size) {
    for (unsigned i = 0; i < node->key_count; i++) {
        struct fake_key *key = &node->keys[i];
        if (!key->used || key->name_size != size || memcmp(key->name, name, size) != 0) {
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

static struct fake_key *find(struct fake_node *node, const struct sim_argument *name) {
    return fake_node_find(node, name->bytes, name->size);
}

static struct fake_key *add(struct fake_node *node, const struct sim_argument *name, const struct sim_argument *value) {
    struct fake_key *key = find(node, name);
    for (unsigned i = 0; key == NULL && i < FAKE_KEYS_MAX; i++) {
        if (!node->keys[i].used) {
            key = &node->keys[i];
        }
    }
    if (key == NULL || name->size > FAKE_NAME_MAX || value->size > FAKE_VALUE_MAX) {
        return NULL;
    }
    if (key >= node->keys + node->key_count) {
        node->key_count = (unsigned)(key - node->keys) + 1;
    }
    key->used = true;
    key->list = false;
    key->name_size = (uint8_t)name->size;
    memcpy(key->name, name->bytes, name->size);
    key->value_size = (uint8_t)value->size;
    memcpy(key->value, value->bytes, value->size);
    key->expires_ms = FAKE_NO_TTL;
    node->wrote = true;
    return key;
}

static bool integer(const struct sim_argument *argument, int64_t *value) {
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

/* SET key value [NX] [PX ms] */
static void command_set(struct fake_node *node, const struct sim_argument *a, size_t count, struct fake_reply *reply) {
    bool only_new = false;
    int64_t ttl_ms = 0;
    bool has_ttl = false;
    if (refused(node, true, reply)) {
        return; /* before its arguments are looked at */
    }
    for (size_t i = 3; i < count; i++) {
        if (is(&a[i], "NX")) {
            only_new = true;
        } else if (is(&a[i], "PX") && i + 1 < count) {
            has_ttl = true;
            if (!integer(&a[++i], &ttl_ms)) {
                reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR value is not an integer or out of range");
                return;
            }
        } else {
            reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR syntax error");
            return;
        }
    }
    if (has_ttl && ttl_ms <= 0) {
        reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR invalid expire time in 'set' command");
        return;
    }
    if (only_new && find(node, &a[1]) != NULL) {
        reply->type = REDLOCK_REPLY_NIL;
        return;
    }
    struct fake_key *key = add(node, &a[1], &a[2]);
    if (key == NULL) {
        reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR the fake node has no room");
        return;
    }
    if (has_ttl) {
        key->expires_ms = node->now_ms + ttl_ms;
    }
    reply_bytes(reply, REDLOCK_REPLY_STATUS, "OK");
}

static void delete_key(struct fake_node *node, struct fake_key *key) {
    key->used = false;
    node->wrote = true;
}

static void expire(struct fake_node *node, struct fake_key *key, int64_t ttl_ms) {
    node->wrote = true;
    if (ttl_ms <= 0) {
        key->used = false;
    } else {
        key->expires_ms = node->now_ms + ttl_ms;
    }
}

static int64_t ttl(const struct fake_node *node, const struct fake_key *key) {
    if (key == NULL) {
        return -2;
    }
    return key->expires_ms == FAKE_NO_TTL ? -1 : key->expires_ms - node->now_ms;
}

static void run_inspect(struct fake_node *node, const struct sim_argument *name, struct fake_reply *reply) {
    const struct fake_key *key = find(node, name);
    if (key != NULL) {
        reply_value(reply, key);
    }
    reply->type = REDLOCK_REPLY_ARRAY;
    reply->integer = ttl(node, key);
}

/* The two scripts that compare, in one step. */
static void run_compared(struct fake_node *node, bool extend, bool may_shorten, const struct sim_argument *a,
                         struct fake_reply *reply) {
    struct fake_key *key = find(node, &a[0]);
    int64_t ttl_ms = 0;
    if (key == NULL) {
        reply_integer(reply, 0);
    } else if (key->list || key->value_size != a[1].size || memcmp(key->value, a[1].bytes, a[1].size) != 0) {
        reply_integer(reply, -1);
    } else if (extend && !integer(&a[2], &ttl_ms)) {
        reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR value is not an integer or out of range script");
    } else if (extend && !may_shorten && ttl(node, key) >= ttl_ms) {
        reply_integer(reply, 1); /* it lives so long: nothing is written, and nothing refused */
    } else if (!refused(node, false, reply)) {
        if (extend) {
            expire(node, key, ttl_ms);
        } else {
            delete_key(node, key);
        }
        reply_integer(reply, 1);
    }
}

static void run_script(struct fake_node *node, unsigned id, const struct sim_argument *a, size_t count,
                       struct fake_reply *reply) {
    static const size_t need[] = {
        [REDLOCK_SCRIPT_RELEASE] = 2, [REDLOCK_SCRIPT_EXTEND] = 3, [REDLOCK_SCRIPT_INSPECT] = 1};
    if (id < REDLOCK_SCRIPT_COUNT && count < need[id]) {
        reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR too few arguments for the fake node");
        return;
    }
    switch (id) {
    case REDLOCK_SCRIPT_RELEASE:
    case REDLOCK_SCRIPT_EXTEND:
        run_compared(node, id == REDLOCK_SCRIPT_EXTEND, false, a, reply);
        break;
#ifdef REDLOCK_PLANTED_BUGS
    case REDLOCK_SCRIPT_PLANTED_EXTEND:
        run_compared(node, true, true, a, reply);
        break;
#endif
    case REDLOCK_SCRIPT_INSPECT:
        run_inspect(node, &a[0], reply);
        break;
    default: { /* the planted release, which does not compare */
        struct fake_key *key = find(node, &a[0]);
        if (refused(node, false, reply)) {
            break;
        }
        reply_integer(reply, key != NULL);
        if (key != NULL) {
            delete_key(node, key);
        }
    }
    }
}

/* EVAL source 1 key …, EVALSHA sha 1 key … */
static void command_eval(struct fake_node *node, const struct sim_argument *a, size_t count, struct fake_reply *reply) {
    bool by_sha = is(&a[0], "EVALSHA");
    if (count < 4 || !is(&a[2], "1")) {
        reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR the fake node wants one key");
        return;
    }
    for (unsigned id = 0; id < SCRIPTS; id++) {
        const struct redlock_script *script = redlock_script_get((enum redlock_script_id)id);
        if (by_sha ? !is(&a[1], script->sha1)
                   : a[1].size != script->source_size || memcmp(a[1].bytes, script->source, a[1].size) != 0) {
            continue;
        }
        if (by_sha && (node->scripts & 1U << id) == 0) {
            break;
        }
        node->scripts |= 1U << id;
        run_script(node, id, a + 3, count - 3, reply);
        return;
    }
    reply_bytes(reply, REDLOCK_REPLY_ERROR,
                by_sha ? "NOSCRIPT No matching script. Please use EVAL." : "ERR the fake node knows no such script");
}

static void command_script(struct fake_node *node, const struct sim_argument *a, size_t count,
                           struct fake_reply *reply) {
    if (count >= 2 && is(&a[1], "FLUSH")) {
        node->scripts = 0;
        reply_bytes(reply, REDLOCK_REPLY_STATUS, "OK");
        return;
    }
    for (unsigned id = 0; count == 3 && is(&a[1], "LOAD") && id < SCRIPTS; id++) {
        const struct redlock_script *script = redlock_script_get((enum redlock_script_id)id);
        if (a[2].size != script->source_size || memcmp(a[2].bytes, script->source, a[2].size) != 0) {
            continue;
        }
        node->scripts |= 1U << id;
        reply_bytes(reply, REDLOCK_REPLY_STRING, script->sha1);
        return;
    }
    reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR the fake node knows no such script");
}

static void command_push(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    struct fake_key *key = find(node, &a[1]);
    if (refused(node, true, reply)) {
        return;
    }
    if (key != NULL && !key->list) {
        reply_wrong_type(reply);
        return;
    }
    if (key == NULL && (key = add(node, &a[1], &a[2])) != NULL) {
        key->list = true;
        key->value_size = 0; /* its length */
    }
    reply_integer(reply, key != NULL ? ++key->value_size : 0);
}

/* The commands on one key but SET; returns false for none of them. */
static bool key_command(struct fake_node *node, const struct sim_argument *a, size_t count, struct fake_reply *reply) {
    int64_t number;
    struct fake_key *key;
    if (count == 2 && is(&a[0], "GET")) {
        key = find(node, &a[1]);
        if (key == NULL) {
            reply->type = REDLOCK_REPLY_NIL;
        } else if (key->list) {
            reply_wrong_type(reply);
        } else {
            reply_value(reply, key);
        }
    } else if (count == 2 && is(&a[0], "PTTL")) {
        reply_integer(reply, ttl(node, find(node, &a[1])));
    } else if (count == 2 && is(&a[0], "DEL")) {
        if (refused(node, false, reply)) {
            return true;
        }
        key = find(node, &a[1]);
        reply_integer(reply, key != NULL);
        if (key != NULL) {
            delete_key(node, key);
        }
    } else if (count == 3 && is(&a[0], "PEXPIRE") && integer(&a[2], &number)) {
        if (refused(node, false, reply)) {
            return true;
        }
        key = find(node, &a[1]);
        reply_integer(reply, key != NULL);
        if (key != NULL) {
            expire(node, key, number);
        }
    } else {
        return false;
    }
    return true;
}

void fake_node_command(struct fake_node *node, const char *bytes, size_t size, struct fake_reply *reply) {
    struct sim_argument a[SIM_ARGUMENTS_MAX];
    size_t count = sim_command_parse(bytes, size, a);
    reply->type = REDLOCK_REPLY_NONE;
    reply->integer = 0;
    reply->bytes = NULL;
    reply->size = 0;
    node->wrote = false;
    if (count == 0) {
        reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR Protocol error");
    } else if (node->mode == FAKE_LOADING) {
        reply_bytes(reply, REDLOCK_REPLY_ERROR, "LOADING Redis is loading the dataset in memory");
    } else if (is(&a[0], "SET") && count >= 3) {
        command_set(node, a, count, reply);
    } else if (is(&a[0], "EVALSHA") || is(&a[0], "EVAL")) {
        command_eval(node, a, count, reply);
    } else if (is(&a[0], "SCRIPT")) {
        command_script(node, a, count, reply);
    } else if (is(&a[0], "PING") && count == 1 && node->mode != FAKE_MISCONF) {
        reply_bytes(reply, REDLOCK_REPLY_STATUS, "PONG");
    } else if (is(&a[0], "PING") && count == 1) {
        (void)refused(node, false, reply);
    } else if (is(&a[0], "RPUSH") && count == 3) {
        command_push(node, a, reply);
    } else if (is(&a[0], "FLUSHALL") && !refused(node, false, reply)) {
        node->key_count = 0;
        memset(node->keys, 0, sizeof node->keys);
        node->wrote = true;
        reply_bytes(reply, REDLOCK_REPLY_STATUS, "OK");
    } else if (reply->type == REDLOCK_REPLY_NONE && !key_command(node, a, count, reply)) {
        reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR unknown command");
    }
}

void fake_node_load_scripts(struct fake_node *node) {
    node->scripts = (1U << SCRIPTS) - 1;
}

void fake_reply_flatten(const struct fake_reply *reply, struct redlock_reply *flat) {
    *flat = (struct redlock_reply){.value = {.type = reply->type}};
    if (reply->type != REDLOCK_REPLY_ARRAY) {
        flat->value.integer = reply->integer;
        flat->value.bytes = reply->bytes;
        flat->value.size = reply->size;
        return;
    }
    flat->element_count = 2;
    flat->elements[0].type = reply->bytes == NULL ? REDLOCK_REPLY_NIL : REDLOCK_REPLY_STRING;
    flat->elements[0].bytes = reply->bytes;
    flat->elements[0].size = reply->size;
    flat->elements[1].type = REDLOCK_REPLY_INTEGER;
    flat->elements[1].integer = reply->integer;
}
