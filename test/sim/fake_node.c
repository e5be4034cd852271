/* The fake node's commands. */
#include "fake_store.h"

/* SET key value [NX] [PX ms] [GET] */
static void command_set(struct fake_node *node, const struct sim_argument *a, size_t count, struct fake_reply *reply) {
    bool only_new = false;
    int64_t ttl_ms = 0;
    bool has_ttl = false, gets = false;
    if (fake_refused(node, true, reply)) {
        return; /* before its arguments are looked at */
    }
    for (size_t i = 3; i < count; i++) {
        if (fake_is(&a[i], "NX")) {
            only_new = true;
        } else if (fake_is(&a[i], "GET") && node->names) {
            gets = true;
        } else if (fake_is(&a[i], "PX") && i + 1 < count) {
            has_ttl = true;
            if (!fake_integer(&a[++i], &ttl_ms)) {
                fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR value is not an integer or out of range");
                return;
            }
        } else {
            fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR syntax error");
            return;
        }
    }
    if (has_ttl && ttl_ms <= 0) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR invalid expire time in 'set' command");
        return;
    }
    struct fake_key *key = fake_find(node, &a[1]);
    if (gets && key != NULL && key->type != FAKE_STRING) {
        fake_reply_wrong_type(reply);
        return;
    }
    reply->type = REDLOCK_REPLY_NIL;
    if (gets && key != NULL) {
        fake_reply_raw_value(reply, key);
    }
    if (only_new && key != NULL) {
        return;
    }
    key = fake_add(node, &a[1], &a[2]);
    if (key == NULL) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR the fake node has no room");
        return;
    }
    if (has_ttl) {
        key->expires_ms = node->now_ms + ttl_ms;
    }
    if (!gets) {
        fake_reply_bytes(reply, REDLOCK_REPLY_STATUS, "OK");
    }
}

/* EVAL source 1 key …, EVALSHA sha 1 key … */
static void command_eval(struct fake_node *node, const struct sim_argument *a, size_t count, struct fake_reply *reply) {
    bool by_sha = fake_is(&a[0], "EVALSHA");
    size_t keys = count < 4 || a[2].size != 1 ? 0 : (size_t)(a[2].bytes[0] - '0');
    if (keys < 1 || keys > 3 || count < 3 + keys) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR the fake node wants one key, two or three");
        return;
    }
    for (unsigned id = 0; id < FAKE_SCRIPT_COUNT; id++) {
        const struct redlock_script *script = fake_script_get(id);
        if (by_sha ? !fake_is(&a[1], script->sha1)
                   : a[1].size != script->source_size || memcmp(a[1].bytes, script->source, a[1].size) != 0) {
            continue;
        }
        if (by_sha && (node->scripts & 1U << id) == 0) {
            break;
        }
        node->scripts |= 1U << id;
        fake_script_run(node, id, a + 3, keys, count - 3, reply);
        return;
    }
    fake_reply_bytes(reply, REDLOCK_REPLY_ERROR,
                     by_sha ? "NOSCRIPT No matching script. Please use EVAL."
                            : "ERR the fake node knows no such script");
}

static void command_script(struct fake_node *node, const struct sim_argument *a, size_t count,
                           struct fake_reply *reply) {
    if (count >= 2 && fake_is(&a[1], "FLUSH")) {
        node->scripts = 0;
        fake_reply_bytes(reply, REDLOCK_REPLY_STATUS, "OK");
        return;
    }
    for (unsigned id = 0; count == 3 && fake_is(&a[1], "LOAD") && id < FAKE_SCRIPT_COUNT; id++) {
        const struct redlock_script *script = fake_script_get(id);
        if (a[2].size != script->source_size || memcmp(a[2].bytes, script->source, a[2].size) != 0) {
            continue;
        }
        node->scripts |= 1U << id;
        fake_reply_bytes(reply, REDLOCK_REPLY_STRING, script->sha1);
        return;
    }
    fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR the fake node knows no such script");
}

static void command_push(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    struct fake_key *key = fake_find(node, &a[1]);
    if (fake_refused(node, true, reply)) {
        return;
    }
    if (key != NULL && key->type != FAKE_LIST) {
        fake_reply_wrong_type(reply);
        return;
    }
    if (key == NULL && (key = fake_add(node, &a[1], &a[2])) != NULL) {
        key->type = FAKE_LIST;
        key->value_size = 0; /* its length */
    }
    fake_reply_integer(reply, key != NULL ? ++key->value_size : 0);
}

/* DELIFEQ key value: the real one says 0 also of a missing key. */
static void command_delete_if_equal(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    struct fake_key *key = fake_find(node, &a[1]);
    if (fake_refused(node, false, reply)) {
        return;
    }
    if (key != NULL && key->type != FAKE_STRING) {
        fake_reply_wrong_type(reply);
        return;
    }
    const bool equal = key != NULL && !key->marked && fake_holds(key, &a[2]);
    fake_reply_integer(reply, equal);
    if (equal) {
        fake_delete(node, key);
    }
}

/* The commands on one key but SET; returns false for none of them. */
static bool key_command(struct fake_node *node, const struct sim_argument *a, size_t count, struct fake_reply *reply) {
    int64_t number;
    struct fake_key *key;
    if (count == 2 && fake_is(&a[0], "GET")) {
        key = fake_find(node, &a[1]);
        if (key == NULL) {
            reply->type = REDLOCK_REPLY_NIL;
        } else if (key->type != FAKE_STRING) {
            fake_reply_wrong_type(reply);
        } else {
            fake_reply_raw_value(reply, key);
        }
    } else if (count == 2 && fake_is(&a[0], "PTTL")) {
        fake_reply_integer(reply, fake_ttl(node, fake_find(node, &a[1])));
    } else if (count == 2 && fake_is(&a[0], "DEL")) {
        if (fake_refused(node, false, reply)) {
            return true;
        }
        key = fake_find(node, &a[1]);
        fake_reply_integer(reply, key != NULL);
        if (key != NULL) {
            fake_delete(node, key);
        }
    } else if (count == 3 && fake_is(&a[0], "DELIFEQ") && node->deletes) {
        command_delete_if_equal(node, a, reply);
    } else if (count == 3 && fake_is(&a[0], "PEXPIRE") && fake_integer(&a[2], &number)) {
        if (fake_refused(node, false, reply)) {
            return true;
        }
        key = fake_find(node, &a[1]);
        fake_reply_integer(reply, key != NULL);
        if (key != NULL) {
            fake_expire(node, key, number);
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
    reply->size = reply->names_size = 0;
    reply->names = "";
    reply->shape = FAKE_INSPECT;
    reply->seconds[0] = reply->micros[0] = '\0';
    node->wrote = false;
    node->now_ms = node->now_us / 1000;
    if (count == 0) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR Protocol error");
    } else if (node->mode == FAKE_LOADING) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "LOADING Redis is loading the dataset in memory");
    } else if (fake_is(&a[0], "SET") && count >= 3) {
        command_set(node, a, count, reply);
    } else if (fake_is(&a[0], "EVALSHA") || fake_is(&a[0], "EVAL")) {
        command_eval(node, a, count, reply);
    } else if (fake_is(&a[0], "SCRIPT")) {
        command_script(node, a, count, reply);
    } else if (fake_is(&a[0], "TIME") && count == 1) {
        reply->type = REDLOCK_REPLY_ARRAY;
        reply->shape = FAKE_TIME;
        fake_reply_time(reply, node);
    } else if (fake_is(&a[0], "PING") && count == 1 && node->mode != FAKE_MISCONF) {
        fake_reply_bytes(reply, REDLOCK_REPLY_STATUS, "PONG");
    } else if (fake_is(&a[0], "PING") && count == 1) {
        (void)fake_refused(node, false, reply);
    } else if (fake_is(&a[0], "RPUSH") && count == 3) {
        command_push(node, a, reply);
    } else if (fake_is(&a[0], "FLUSHALL") && !fake_refused(node, false, reply)) {
        fake_node_clear(node);
        node->wrote = true;
        fake_reply_bytes(reply, REDLOCK_REPLY_STATUS, "OK");
    } else if (reply->type == REDLOCK_REPLY_NONE && !key_command(node, a, count, reply)) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR unknown command");
    }
}

void fake_node_clear(struct fake_node *node) {
    node->key_count = node->set_count = node->part_count = 0;
    memset(node->keys, 0, sizeof node->keys);
    memset(node->sets, 0, sizeof node->sets);
}

void fake_node_load_scripts(struct fake_node *node) {
    node->scripts = (1U << REDLOCK_SCRIPT_COUNT) - 1;
}

static void put(struct redlock_reply *flat, enum redlock_reply_type type, const char *bytes, size_t size) {
    flat->elements[flat->element_count++] =
        (struct redlock_reply_value){.type = bytes == NULL ? REDLOCK_REPLY_NIL : type, .bytes = bytes, .size = size};
}

static void put_integer(struct redlock_reply *flat, int64_t integer) {
    flat->elements[flat->element_count++] =
        (struct redlock_reply_value){.type = REDLOCK_REPLY_INTEGER, .integer = integer};
}

void fake_reply_flatten(const struct fake_reply *reply, struct redlock_reply *flat) {
    flat->value = (struct redlock_reply_value){.type = reply->type};
    flat->element_count = 0; /* beyond it nobody reads: all of it is much to clear */
    if (reply->type != REDLOCK_REPLY_ARRAY) {
        flat->value.integer = reply->integer;
        flat->value.bytes = reply->bytes;
        flat->value.size = reply->size;
        return;
    }
    switch (reply->shape) {
    case FAKE_INSPECT:
        put(flat, REDLOCK_REPLY_STRING, reply->bytes, reply->size);
        put_integer(flat, reply->integer);
        put_integer(flat, reply->rank);
        put_integer(flat, reply->ttl_ms);
        break;
    case FAKE_INSPECT_NAMED:
        put(flat, REDLOCK_REPLY_STRING, reply->bytes, reply->size);
        put_integer(flat, reply->integer);
        put_integer(flat, reply->rank);
        put_integer(flat, reply->ttl_ms);
        put_integer(flat, reply->readers);
        put(flat, REDLOCK_REPLY_STRING, reply->names, reply->names_size);
        break;
    case FAKE_NUMBER_AND_VALUE:
        put_integer(flat, reply->integer);
        put(flat, REDLOCK_REPLY_STRING, reply->bytes, reply->size);
        break;
    case FAKE_WAIT:
        put_integer(flat, reply->integer);
        put(flat, REDLOCK_REPLY_STRING, reply->bytes, reply->size);
        put_integer(flat, reply->ttl_ms);
        put_integer(flat, reply->rank);
        break;
    case FAKE_TIME:
        break;
    }
    if (reply->seconds[0] != '\0') {
        put(flat, REDLOCK_REPLY_STRING, reply->seconds, strlen(reply->seconds));
        put(flat, REDLOCK_REPLY_STRING, reply->micros, strlen(reply->micros));
    }
}
