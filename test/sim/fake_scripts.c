/* What the Lua scripts of the library do, on the fake node. */
#include <stdlib.h>

#include "core/fence.h"
#include "core/planted.h"
#include "fake_queue.h"

#define HOUR_S 3600
#define DAY_S  86400

static void run_inspect(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    const struct fake_key *key = fake_find(node, &a[0]);
    reply->readers = 0;
    if (fake_is_read(node, key)) {
        unsigned reading;
        const struct fake_part *lowest = fake_lowest(node, key, &reading);
        memcpy(reply->text, lowest->token, lowest->token_size);
        reply->bytes = reading > 0 ? reply->text : NULL;
        reply->size = lowest->token_size;
        reply->readers = reading;
        if (a[1].size > 0) {
            fake_name_readers(node, key, reply);
        }
    } else if (key != NULL) {
        fake_reply_value(reply, key);
    }
    fake_queue_look(node, a, reply);
    reply->type = REDLOCK_REPLY_ARRAY;
    reply->shape = reply->readers > 0 || reply->names_size > 0 ? FAKE_INSPECT_NAMED : FAKE_INSPECT;
    reply->integer = fake_ttl(node, key);
}

bool fake_holds(const struct fake_key *key, const struct sim_argument *value) {
    return key->type == FAKE_STRING && key->value_size == value->size &&
           memcmp(key->value, value->bytes, value->size) == 0;
}

/* {number, false, seconds, microseconds} in place of the number, where the time is asked for. */
static void add_time(struct fake_node *node, bool timed, struct fake_reply *reply) {
    if (timed && reply->type == REDLOCK_REPLY_INTEGER) {
        reply->type = REDLOCK_REPLY_ARRAY;
        reply->shape = FAKE_NUMBER_AND_VALUE;
        fake_reply_time(reply, node);
    }
}

static void run_extend(struct fake_node *node, bool may_shorten, const struct sim_argument *a,
                       struct fake_reply *reply) {
    struct fake_key *key = fake_find(node, &a[0]);
    int64_t ttl_ms = 0;
    if (key == NULL) {
        fake_reply_integer(reply, 0);
    } else if (!fake_holds(key, &a[1]) || (key->marked && REDLOCK_PLANTED(MARK_UNKNOWN))) {
        fake_reply_integer(reply, -1);
    } else if (!fake_integer(&a[2], &ttl_ms)) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR value is not an integer or out of range script");
    } else if (!may_shorten && fake_ttl(node, key) >= ttl_ms) {
        /* It already lives so long: nothing is written, and nothing is refused. */
        fake_reply_integer(reply, 1);
    } else if (!fake_refused(node, false, reply)) {
        fake_expire(node, key, ttl_ms);
        fake_reply_integer(reply, 1);
    }
}

/* The counter as the scripts compare it: 20 digits, "" for none. Returns false, with the reply, if
 * it is not a counter. */
static bool read_counter(struct fake_node *node, const struct sim_argument *name, struct fake_reply *reply,
                         char counter[REDLOCK_FENCE_DIGITS + 1]) {
    const struct fake_key *key = fake_find(node, name);
    counter[0] = '\0';
    if (key == NULL) {
        return true;
    }
    if (key->type != FAKE_STRING) {
        fake_reply_wrong_type(reply);
        return false;
    }
    bool good = key->value_size == REDLOCK_FENCE_DIGITS;
    for (unsigned i = 0; good && i < REDLOCK_FENCE_DIGITS; i++) {
        good = key->value[i] >= '0' && key->value[i] <= '9';
    }
    memcpy(counter, key->value, good ? REDLOCK_FENCE_DIGITS : 0);
    counter[good ? REDLOCK_FENCE_DIGITS : 0] = '\0';
    if (!good || strcmp(counter, "09223372036854775807") > 0) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR the key of the fencing counter holds something else");
        return false;
    }
    return true;
}

/* So many seconds later; in `later`, as the scripts write it. */
static void add_seconds(int64_t seconds, int64_t by_s, const char *rest, char later[REDLOCK_FENCE_DIGITS + 1]) {
    char text[48];
    char *end = fake_digits(text, (uint64_t)(seconds + by_s), 11);
    memcpy(end, rest, strnlen(rest, 16) + 1);
    memcpy(later, text, REDLOCK_FENCE_DIGITS);
    later[REDLOCK_FENCE_DIGITS] = '\0';
}

/* Not too far ahead of the clock, unless the counter is. A missing counter that may have expired
 * counts as an hour behind the clock. */
static bool check_clock(const struct fake_node *node, const struct sim_argument *number,
                        const struct sim_argument *expiry, struct fake_reply *reply,
                        char counter[REDLOCK_FENCE_DIGITS + 1]) {
    char limit[REDLOCK_FENCE_DIGITS + 1], rest[16];
    const bool expires = !fake_is(expiry, "0");
    const int64_t seconds = node->now_us / 1000000;
    *fake_bytes(fake_digits(rest, (uint64_t)(node->now_us % 1000000), 6), "000", 3) = '\0';
    add_seconds(seconds, expires ? HOUR_S : DAY_S, rest, limit);
    if (expires && counter[0] == '\0') {
        add_seconds(seconds, -HOUR_S, rest, counter);
    } else if (!expires && strcmp(counter, limit) > 0) {
        char of_counter[12] = "";
        memcpy(of_counter, counter, 11);
        add_seconds(strtoll(of_counter, NULL, 10), DAY_S, counter + 11, limit);
    }
    if (strncmp(number->bytes, limit, number->size) > 0) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR,
                         expires ? "ERR the fencing token is over an hour ahead of the clock of the node"
                                 : "ERR the fencing token is over a day ahead of the clock of the node");
        return false;
    }
    return true;
}

/* {number, counter or false} */
static void reply_counted(struct fake_reply *reply, int64_t number, const char *counter) {
    reply->type = REDLOCK_REPLY_ARRAY;
    reply->shape = FAKE_NUMBER_AND_VALUE;
    reply->integer = number;
    reply->size = strlen(counter);
    memcpy(reply->text, counter, reply->size + 1);
    reply->bytes = reply->size == 0 ? NULL : reply->text;
}

static void set_counter(struct fake_node *node, const struct sim_argument *name, const struct sim_argument *number,
                        const struct sim_argument *expiry) {
    struct fake_key *key = fake_add(node, name, number);
    int64_t expiry_ms = 0;
    if (key != NULL && fake_integer(expiry, &expiry_ms) && expiry_ms > 0) {
        key->expires_ms = node->now_ms + expiry_ms;
    }
}

static bool is_beaten(const char *counter, const struct sim_argument *number, bool equal_passes) {
    int order = strncmp(counter, number->bytes, REDLOCK_FENCE_DIGITS);
    return counter[0] != '\0' && (equal_passes ? order > 0 : order >= 0);
}

static bool is_readers(const char *counter) {
    return counter[0] != '\0' && strcmp(counter + REDLOCK_FENCE_DIGITS - 3, "999") == 0;
}

/* Raises the counter to the next number of those who read, or to the given one if that is higher.
 * False if the server refuses it. */
static bool raise_for_reader(struct fake_node *node, const struct sim_argument *name, const struct sim_argument *v,
                             char counter[REDLOCK_FENCE_DIGITS + 1], struct fake_reply *reply) {
    char up[REDLOCK_FENCE_DIGITS + 1] = "";
    memcpy(up, v[5].bytes, REDLOCK_FENCE_DIGITS);
    if (counter[0] != '\0') {
        char next[REDLOCK_FENCE_DIGITS + 1];
        memcpy(next, counter, sizeof next);
        memcpy(next + REDLOCK_FENCE_DIGITS - 3, "999", 3);
        memcpy(up, strcmp(next, up) > 0 ? next : up, sizeof up);
    }
    if (strcmp(up, counter) == 0 || strcmp(up, "09223372036854775807") > 0) {
        return true;
    }
    if (fake_refused(node, !node->wrote, reply)) {
        return false;
    }
    set_counter(node, name, &(struct sim_argument){up, REDLOCK_FENCE_DIGITS}, &v[6]);
    memcpy(counter, up, sizeof up);
    return true;
}

/* a: key[, counter], then v: token, ttl, what, suffix, timed[, number, expiry] */
static void run_share(struct fake_node *node, const struct sim_argument *a, size_t keys, struct fake_reply *reply) {
    const struct sim_argument *v = a + keys;
    char counter[REDLOCK_FENCE_DIGITS + 1] = "";
    int64_t ttl_ms = 0;
    const int64_t result = fake_may_read(node, a, v);
    if (keys == 2 && (!read_counter(node, &a[1], reply, counter) || !check_clock(node, &v[5], &v[6], reply, counter) ||
                      (result == 1 && !raise_for_reader(node, &a[1], v, counter, reply)))) {
        return;
    }
    if (!fake_integer(&v[1], &ttl_ms)) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR arguments that the fake node does not expect");
        return;
    }
    if (result == 1 && !fake_read(node, a, v, ttl_ms, reply)) {
        return;
    }
    if (keys == 2) {
        reply_counted(reply, result, counter);
    } else {
        fake_reply_integer(reply, result);
    }
    if (fake_is(&v[4], "1")) {
        add_time(node, true, reply);
        fake_reply_time(reply, node);
    }
}

/* a: key[, counter], then v: token, ttl, number, expiry, timed */
static void run_acquire(struct fake_node *node, const struct sim_argument *a, size_t keys, bool equal_passes,
                        struct fake_reply *reply) {
    const struct sim_argument *v = a + keys;
    char counter[REDLOCK_FENCE_DIGITS + 1] = "";
    int64_t ttl_ms = 0;
    if (keys == 2 && (!read_counter(node, &a[1], reply, counter) || !check_clock(node, &v[2], &v[3], reply, counter))) {
        return;
    }
    if (fake_refused(node, true, reply)) {
        return;
    }
    if (fake_find(node, &a[0]) != NULL) {
        reply_counted(reply, 0, counter);
    } else {
        struct fake_key *key = fake_add(node, &a[0], &v[0]);
        if (key != NULL && fake_integer(&v[1], &ttl_ms)) {
            key->expires_ms = node->now_ms + ttl_ms;
        }
        if (keys == 2 && is_beaten(counter, &v[2], equal_passes)) {
            reply_counted(reply, 2, counter);
        } else {
            if (keys == 2) {
                set_counter(node, &a[1], &v[2], &v[3]);
            }
            fake_reply_integer(reply, 1);
        }
    }
    if (fake_is(&v[4], "1")) {
        add_time(node, true, reply);
        fake_reply_time(reply, node);
    }
}

/* a: key, counter, token, number, expiry */
static void run_fence(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    char counter[REDLOCK_FENCE_DIGITS + 1];
    const struct fake_key *key = fake_find(node, &a[0]);
    if (key == NULL) {
        fake_reply_integer(reply, 0);
        return;
    }
    if (!fake_holds(key, &a[2])) {
        const struct fake_part *entry =
            fake_is_read(node, key) ? fake_find_part(node, key, a[2].bytes, a[2].size) : NULL;
        if (entry == NULL || entry->ticket < node->now_ms) {
            fake_reply_integer(reply, entry == NULL ? -1 : 0);
            return;
        }
    }
    if (!read_counter(node, &a[1], reply, counter) || !check_clock(node, &a[3], &a[4], reply, counter)) {
        return;
    }
    if (is_beaten(counter, &a[3], false)) {
        if (is_readers(counter) && strncmp(counter, a[3].bytes, REDLOCK_FENCE_DIGITS) == 0) {
            fake_reply_integer(reply, 1);
        } else {
            reply_counted(reply, 2, counter);
        }
    } else if (!fake_refused(node, true, reply)) {
        set_counter(node, &a[1], &a[3], &a[4]);
        fake_reply_integer(reply, 1);
    }
}

/* RELEASE_ANY_TOKEN: the release that does not compare. */
static void run_planted_release(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    struct fake_key *key = fake_find(node, &a[0]);
    if (fake_refused(node, false, reply)) {
        return;
    }
    fake_reply_integer(reply, key != NULL);
    if (key != NULL) {
        fake_delete(node, key);
    }
}

/* FENCE_INCR: this node's own count, for any proposal. */
static void run_planted_incr(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    const struct sim_argument *v = a + 2;
    char digits[REDLOCK_FENCE_DIGITS + 1];
    int64_t ttl_ms = 0;
    uint64_t count = 0;
    if (fake_refused(node, true, reply) || !read_counter(node, &a[1], reply, digits)) {
        return;
    }
    if (fake_find(node, &a[0]) != NULL) {
        reply_counted(reply, 0, digits);
    } else {
        struct fake_key *key = fake_add(node, &a[0], &v[0]);
        if (key != NULL && fake_integer(&v[1], &ttl_ms)) {
            key->expires_ms = node->now_ms + ttl_ms;
        }
        (void)redlock_fence_parse(digits, strlen(digits), &count);
        redlock_fence_format(count + 1, digits);
        digits[REDLOCK_FENCE_DIGITS] = '\0';
        (void)fake_add(node, &a[1], &(struct sim_argument){digits, REDLOCK_FENCE_DIGITS});
        reply_counted(reply, 2, digits);
    }
    if (fake_is(&v[4], "1")) {
        fake_reply_time(reply, node);
    }
}

/* FENCE_ACKS_ANY: checks neither that the lock is ours nor that the number is new. */
static void run_planted_fence(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    char counter[REDLOCK_FENCE_DIGITS + 1];
    if (!read_counter(node, &a[1], reply, counter)) {
        return;
    }
    if (is_beaten(counter, &a[3], true)) {
        reply_counted(reply, 2, counter);
    } else if (!fake_refused(node, true, reply)) {
        set_counter(node, &a[1], &a[3], &a[4]);
        fake_reply_integer(reply, 1);
    }
}

/* HEAL_COUNTS: a missing key is set, and counts. */
static void run_planted_heal(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    int64_t ttl_ms = 0;
    if (fake_find(node, &a[0]) != NULL) {
        run_extend(node, false, a, reply);
        return;
    }
    if (fake_refused(node, true, reply)) {
        return;
    }
    struct fake_key *key = fake_add(node, &a[0], &a[1]);
    if (key != NULL && fake_integer(&a[2], &ttl_ms)) {
        key->expires_ms = node->now_ms + ttl_ms;
    }
    fake_reply_integer(reply, 1);
}

static bool is_too_short(unsigned id, size_t keys, size_t count) {
    static const size_t need[] = {
        [REDLOCK_SCRIPT_RELEASE] = 2, [REDLOCK_SCRIPT_EXTEND] = 3, [REDLOCK_SCRIPT_INSPECT] = 2,
        [REDLOCK_SCRIPT_ACQUIRE] = 6, [REDLOCK_SCRIPT_FENCE] = 5,  [REDLOCK_SCRIPT_WAIT] = 12,
        [FAKE_SCRIPT_SHARE] = 6,      [FAKE_SCRIPT_SLOTS] = 5};
    const bool counts = id == REDLOCK_SCRIPT_ACQUIRE || id == FAKE_SCRIPT_SHARE;
    bool one_key = !counts && id != REDLOCK_SCRIPT_FENCE && id != REDLOCK_SCRIPT_WAIT;
    return count < need[id] || (one_key && keys != 1) || (id == REDLOCK_SCRIPT_FENCE && keys != 2) ||
           (id == REDLOCK_SCRIPT_WAIT && keys != 3) || (id == REDLOCK_SCRIPT_ACQUIRE && count != keys + 5) ||
           (id == FAKE_SCRIPT_SHARE && count != (keys == 2 ? 9 : 6));
}

void fake_script_run(struct fake_node *node, unsigned id, const struct sim_argument *a, size_t keys, size_t count,
                     struct fake_reply *reply) {
    if (is_too_short(id, keys, count)) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR arguments that the fake node does not expect");
        return;
    }
    switch (id) {
    case REDLOCK_SCRIPT_RELEASE:
        if (REDLOCK_PLANTED(RELEASE_ANY_TOKEN)) {
            run_planted_release(node, a, reply);
        } else {
            int64_t handing = 0;
            (void)(count > 3 && fake_integer(&a[3], &handing));
            fake_queue_release(node, a, handing, count, reply);
        }
        break;
    case REDLOCK_SCRIPT_EXTEND:
        if (REDLOCK_PLANTED(HEAL_COUNTS)) {
            run_planted_heal(node, a, reply);
        } else {
            run_extend(node, REDLOCK_PLANTED(EXTEND_SHORTENS), a, reply);
        }
        add_time(node, count > 3, reply);
        break;
    case REDLOCK_SCRIPT_INSPECT:
        run_inspect(node, a, reply);
        break;
    case REDLOCK_SCRIPT_ACQUIRE:
        if (REDLOCK_PLANTED(FENCE_INCR) && keys == 2) {
            run_planted_incr(node, a, reply);
        } else {
            run_acquire(node, a, keys, REDLOCK_PLANTED(FENCE_ACCEPTS_EQUAL), reply);
        }
        break;
    case REDLOCK_SCRIPT_FENCE:
        if (REDLOCK_PLANTED(FENCE_ACKS_ANY)) {
            run_planted_fence(node, a, reply);
        } else {
            run_fence(node, a, reply);
        }
        break;
    case FAKE_SCRIPT_SHARE:
        run_share(node, a, keys, reply);
        break;
    case FAKE_SCRIPT_SLOTS:
        fake_slots_run(node, a, count, reply);
        break;
    case REDLOCK_SCRIPT_WAIT:
        fake_queue_wait(node, a, count > 12, reply);
        break;
    default:
        break;
    }
}
