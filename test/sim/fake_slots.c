/* What the script SLOTS does, on the fake node: permits, and who stands at their gate. */
#include <stdio.h>
#include <stdlib.h>

#include "base/holder.h"
#include "fake_queue.h"

#define LOOKS_AT      64 /* in line, for one who lives */
#define NAME_SIZE     (2 * FAKE_NAME_MAX)
#define FAKE_AT_GATE  "slot"
#define TAKEN_AT_ONCE 8

struct slot_name {
    char bytes[NAME_SIZE];
    struct sim_argument name;
};

static const struct sim_argument *name_slot(struct slot_name *room, const struct sim_argument *gate, int64_t slot) {
    room->name.bytes = room->bytes;
    room->name.size =
        (size_t)snprintf(room->bytes, sizeof room->bytes, "%.*s#%d", (int)gate->size, gate->bytes, (int)slot);
    return &room->name;
}

static struct fake_key *find_slot(struct fake_node *node, const struct sim_argument *gate, int64_t slot) {
    struct slot_name room;
    return fake_find(node, name_slot(&room, gate, slot));
}

static int64_t number(const struct sim_argument *argument) {
    int64_t value = 0;
    (void)fake_integer(argument, &value);
    return value;
}

static void reply_taken(struct fake_node *node, int64_t result, struct fake_reply *reply) {
    reply->type = REDLOCK_REPLY_ARRAY;
    reply->shape = FAKE_NUMBER_AND_VALUE;
    reply->integer = result;
    fake_reply_time(reply, node);
}

/* What the hash of waiters says of the gate; NULL: nothing. */
static const struct fake_part *find_whom(struct fake_node *node, const struct sim_argument *waiters) {
    const struct fake_key *set = fake_find(node, waiters);
    return set == NULL || set->type != FAKE_HASH ? NULL
                                                 : fake_find_part(node, set, FAKE_AT_GATE, sizeof FAKE_AT_GATE - 1);
}

/* v: of a take. HSET and PEXPIRE, whose errors are ignored. */
static void note_whom(struct fake_node *node, const struct sim_argument *waiters, const struct sim_argument *v) {
    static const struct sim_argument field = {FAKE_AT_GATE, sizeof FAKE_AT_GATE - 1};
    struct fake_reply ignored;
    struct fake_key *set;
    if (!fake_find_set(node, waiters, FAKE_HASH, &set)) {
        set = NULL;
    } else if (!fake_refused(node, true, &ignored)) {
        set = set != NULL ? set : fake_add_set(node, waiters, FAKE_HASH);
        struct fake_part *part = set == NULL ? NULL : fake_put_part(node, set, &field);
        if (part != NULL) {
            const size_t id_size = strcspn(v[9].bytes, " ");
            part->id_size = (uint8_t)id_size;
            memcpy(part->id, v[9].bytes, id_size);
            part->channel_size = (uint8_t)(v[9].size - id_size - 1);
            memcpy(part->channel, v[9].bytes + id_size + 1, part->channel_size);
            part->gate_size = (uint8_t)v[8].size;
            memcpy(part->gate, v[8].bytes, v[8].size);
            part->take_size = (uint8_t)v[0].size;
            memcpy(part->take, v[0].bytes, v[0].size);
            part->ticket = number(&v[6]);
            part->good_until_ms = part->serial = part->ttl_ms = 0;
            node->wrote = true;
        }
    }
    set = set != NULL ? set : fake_find(node, waiters);
    if (fake_refused(node, false, &ignored)) {
        return;
    }
    node->wrote = true; /* after a write that needs no memory, all are allowed */
    if (set != NULL) {
        fake_expire(node, set, number(&v[10]));
    }
}

/* Of these, in the order of the look; leaves `others` free beside them. */
static void take(struct fake_node *node, const struct sim_argument *a, int64_t others, struct fake_reply *reply) {
    const struct sim_argument *v = a + 1;
    const int64_t limit = number(&v[3]), first = number(&v[4]), window = number(&v[5]), count = number(&v[6]);
    int64_t taken[TAKEN_AT_ONCE];
    unsigned number_taken = 0;
    bool failed = false;
    for (int64_t i = first; i < first + window && !(number_taken == count && others < 1) && !failed; i++) {
        struct slot_name room;
        const struct sim_argument *name = name_slot(&room, &a[0], i % limit);
        struct fake_key *key = fake_find(node, name);
        if (number_taken == count) {
            others -= key == NULL;
        } else if (fake_refused(node, !node->wrote, reply)) {
            failed = true;
        } else if (key == NULL && (key = fake_add(node, name, &v[0])) != NULL) {
            key->expires_ms = node->now_ms + number(&v[2]);
            taken[number_taken++] = i % limit;
        }
    }
    if (number_taken == count && others < 1 && !failed) {
        char *end = reply->text;
        for (unsigned i = 0; i < number_taken; i++) {
            end = fake_digits(i > 0 ? fake_bytes(end, " ", 1) : end, (uint64_t)taken[i], 1);
        }
        reply->bytes = reply->text;
        reply->size = (size_t)(end - reply->text);
        reply_taken(node, 1, reply);
        return;
    }
    for (unsigned i = 0; i < number_taken; i++) {
        fake_delete(node, find_slot(node, &a[0], taken[i]));
    }
    if (!failed) {
        reply->bytes = NULL;
        reply_taken(node, others > 0 ? -1 : 0, reply);
    }
}

static bool somebody_lives(struct fake_node *node, const struct fake_names *names, const struct sim_argument *own) {
    struct fake_part *parts[FAKE_PARTS_MAX];
    const struct fake_key *queue = fake_find(node, &names->of[1]), *waiters = fake_find(node, &names->of[2]);
    if (queue == NULL || queue->type != FAKE_ZSET || waiters == NULL || waiters->type != FAKE_HASH) {
        return false;
    }
    const unsigned count = fake_sort_parts(node, queue, parts);
    for (unsigned i = 0; i < count && i < LOOKS_AT; i++) {
        if (fake_is_living(node, fake_find_part(node, waiters, parts[i]->token, parts[i]->token_size), own)) {
            return true;
        }
    }
    return false;
}

static int64_t in_line(struct fake_node *node, const struct fake_names *names) {
    struct fake_part *parts[FAKE_PARTS_MAX];
    const struct fake_key *queue = fake_find(node, &names->of[1]);
    return queue == NULL || queue->type != FAKE_ZSET ? 0 : fake_sort_parts(node, queue, parts);
}

/* How many slots to leave free; -1: none may be taken. */
static int64_t for_others(struct fake_node *node, const struct sim_argument *a, const struct fake_names *names,
                          const struct fake_key *lock) {
    const struct sim_argument *v = a + 1;
    const int64_t limit = number(&v[3]), window = number(&v[5]);
    int64_t others = 0;
    if (lock != NULL) {
        const struct fake_part *whom = find_whom(node, &names->of[2]);
        if (lock->type != FAKE_STRING || lock->value_size == 0 ||
            !redlock_holder_is_gate(lock->value, lock->value_size)) {
            return -1;
        }
        const bool known = whom != NULL && whom->gate_size == lock->value_size &&
                           memcmp(whom->gate, lock->value, lock->value_size) == 0;
        others = known ? whom->ticket : 1;
    } else if (!somebody_lives(node, names, &v[0])) {
        return 0;
    }
    return ((others + in_line(node, names)) * window + limit - 1) / limit;
}

/* a: gate, then v: token, what, ttl, limit, first, window, permits, suffix, token at the gate, whom
 * to tell, for how long */
static void run_take(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    const struct sim_argument *v = a + 1;
    struct fake_names names;
    const struct fake_key *lock = fake_find(node, &a[0]);
    fake_name_queue(&names, &a[0], &v[7], &v[0]);
    if (v[8].size > 0 && (lock == NULL || fake_holds(lock, &v[8]))) {
        note_whom(node, &names.of[2], v);
        take(node, a, 0, reply);
        return;
    }
    const int64_t others = v[8].size > 0 ? -1 : for_others(node, a, &names, lock);
    if (others >= 0) {
        take(node, a, others, reply);
        return;
    }
    reply->bytes = NULL;
    if (lock != NULL) {
        fake_reply_value(reply, lock);
    }
    reply_taken(node, -1, reply);
}

/* 1, or what EXTEND says. */
static int64_t compare(struct fake_node *node, const struct sim_argument *a, int64_t slot) {
    const struct fake_key *key = find_slot(node, &a[0], slot);
    return key == NULL ? 0 : fake_holds(key, &a[1]) ? 1 : -1;
}

/* The slots of a list, one after the other; -1 after the last. */
static int64_t next_slot(const char **at, const char *end) {
    char *stop;
    if (*at >= end) {
        return -1;
    }
    const int64_t slot = strtoll(*at, &stop, 10);
    *at = stop + 1;
    return slot;
}

static bool is_listed(const struct sim_argument *list, int64_t slot) {
    const char *at = list->bytes, *end = at + list->size;
    for (int64_t listed; (listed = next_slot(&at, end)) >= 0;) {
        if (listed == slot) {
            return true;
        }
    }
    return false;
}

static void tell(struct fake_node *node, const struct sim_argument *a, const struct sim_argument *suffix,
                 int64_t freed) {
    struct fake_names names;
    char payload[256];
    const struct fake_key *lock = fake_find(node, &a[0]);
    fake_name_queue(&names, &a[0], suffix, &a[1]);
    const struct fake_part *whom = find_whom(node, &names.of[2]);
    if (lock == NULL || whom == NULL || lock->type != FAKE_STRING || lock->value_size != whom->gate_size ||
        memcmp(lock->value, whom->gate, whom->gate_size) != 0 ||
        (whom->take_size == a[1].size && memcmp(whom->take, a[1].bytes, a[1].size) == 0)) {
        return;
    }
    const int size = snprintf(payload, sizeof payload, "%.*s%020d 0 0 0 %.*s %.*s", whom->id_size, whom->id,
                              (int)freed + 1, whom->gate_size, whom->gate, (int)a[0].size, a[0].bytes);
    if (node->publish != NULL) {
        (void)node->publish(node->publish_ctx, whom->channel, whom->channel_size, payload, (size_t)size);
    }
}

static bool give(struct fake_node *node, const struct sim_argument *a, int64_t slot, int64_t *freed) {
    if (compare(node, a, slot) != 1) {
        return false;
    }
    fake_delete(node, find_slot(node, &a[0], slot));
    *freed = slot;
    return true;
}

/* a: gate, token, what, slots, suffix[, limit, first, window] */
static void run_give(struct fake_node *node, const struct sim_argument *a, size_t count, struct fake_reply *reply) {
    const char *at = a[3].bytes, *end = at + a[3].size;
    int64_t result = 1, freed = -1;
    bool owns = false;
    for (int64_t slot; count < 6 && (slot = next_slot(&at, end)) >= 0;) {
        owns = owns || compare(node, a, slot) == 1;
    }
    for (int64_t i = count < 6 ? 0 : number(&a[6]); count >= 6 && i < number(&a[6]) + number(&a[7]); i++) {
        owns = owns || (compare(node, a, i % number(&a[5])) == 1 && !is_listed(&a[3], i % number(&a[5])));
    }
    if (owns && fake_refused(node, false, reply)) {
        return;
    }
    at = a[3].bytes;
    for (int64_t slot; count < 6 && (slot = next_slot(&at, end)) >= 0;) {
        const int64_t is = compare(node, a, slot);
        (void)give(node, a, slot, &freed);
        result = is < result ? is : result;
    }
    for (int64_t i = count < 6 ? 0 : number(&a[6]); count >= 6 && i < number(&a[6]) + number(&a[7]); i++) {
        const int64_t slot = i % number(&a[5]);
        if (!is_listed(&a[3], slot)) {
            (void)give(node, a, slot, &freed);
        }
    }
    if (freed >= 0) {
        tell(node, a, &a[4], freed);
    }
    fake_reply_integer(reply, count < 6 ? result : freed >= 0);
}

/* a: gate, token, what, ttl, slots[, timed] */
static void run_keep(struct fake_node *node, const struct sim_argument *a, size_t count, bool heals,
                     struct fake_reply *reply) {
    const char *at = a[4].bytes, *end = at + a[4].size;
    int64_t result = 1;
    for (int64_t slot; (slot = next_slot(&at, end)) >= 0;) {
        int64_t is = compare(node, a, slot);
        if (heals && fake_refused(node, !node->wrote, reply)) {
            return;
        }
        if (heals && is == 0) {
            struct slot_name room;
            struct fake_key *key = fake_add(node, name_slot(&room, &a[0], slot), &a[1]);
            if (key != NULL) {
                key->expires_ms = node->now_ms + number(&a[3]);
            }
            is = 1;
        }
        result = is < result ? is : result;
    }
    at = a[4].bytes;
    for (int64_t slot; !heals && result == 1 && (slot = next_slot(&at, end)) >= 0;) {
        struct fake_key *key = find_slot(node, &a[0], slot);
        if (fake_ttl(node, key) < number(&a[3])) {
            if (fake_refused(node, false, reply)) {
                return;
            }
            fake_expire(node, key, number(&a[3]));
        }
    }
    if (count > 5) {
        reply->bytes = NULL;
        reply_taken(node, result, reply);
    } else {
        fake_reply_integer(reply, result);
    }
}

void fake_slots_run(struct fake_node *node, const struct sim_argument *a, size_t count, struct fake_reply *reply) {
    if (fake_is(&a[2], "t") && count == 12) {
        run_take(node, a, reply);
    } else if (fake_is(&a[2], "g")) {
        run_give(node, a, count, reply);
    } else {
        run_keep(node, a, count, fake_is(&a[2], "h"), reply);
    }
}
