/* What the script SHARE does, on the fake node: those who read a lock together. The ticket of an
 * entry is the time when it ends. */
#include <stdlib.h>

#include "base/holder.h"
#include "core/planted.h"
#include "fake_queue.h"

const struct redlock_script *fake_script_get(unsigned id) {
    return id == FAKE_SCRIPT_SHARE   ? &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_SHARE]
           : id == FAKE_SCRIPT_SLOTS ? &redlock_rare_scripts[REDLOCK_RARE_SCRIPT_SLOTS]
                                     : redlock_script_get((enum redlock_script_id)id);
}

bool fake_reads(const char *token, size_t size) {
    size_t digits = 0;
    while (digits < size && ((token[digits] >= '0' && token[digits] <= '9') ||
                             ((token[digits] | 0x20) >= 'a' && (token[digits] | 0x20) <= 'f'))) {
        digits++;
    }
    return digits > 0 && digits < size && token[digits] == REDLOCK_HOLDER_READS;
}

bool fake_is_read(const struct fake_node *node, const struct fake_key *lock) {
    return lock != NULL && lock->type == FAKE_ZSET && fake_ttl(node, lock) >= 0;
}

void fake_join(struct fake_node *node, const struct sim_argument *lock, const struct sim_argument *token,
               int64_t ttl_ms) {
    struct fake_key *set = fake_find(node, lock);
    set = set != NULL ? set : fake_add_set(node, lock, FAKE_ZSET);
    struct fake_part *entry = set == NULL ? NULL : fake_put_part(node, set, token);
    if (entry == NULL) {
        return;
    }
    node->wrote = true;
    entry->ticket = entry->ticket > node->now_ms + ttl_ms ? entry->ticket : node->now_ms + ttl_ms;
    if (fake_ttl(node, set) < (REDLOCK_PLANTED(SHARED_ONE_LIFE) ? 0 : ttl_ms)) {
        fake_expire(node, set, ttl_ms);
    }
}

void fake_end_reading(struct fake_node *node, struct fake_key *lock, struct fake_part *part) {
    int64_t last_ms = INT64_MIN;
    fake_drop_part(node, lock, part);
    for (unsigned i = 0; i < node->part_count; i++) {
        if (fake_is_part_of(&node->parts[i], lock) && node->parts[i].ticket > last_ms) {
            last_ms = node->parts[i].ticket;
        }
    }
    if (lock->used) {
        fake_expire(node, lock, last_ms - node->now_ms + 1);
    }
}

const struct fake_part *fake_lowest(const struct fake_node *node, const struct fake_key *lock, unsigned *reading) {
    static const struct fake_part nobody = {.token = "~", .token_size = 1};
    const struct fake_part *lowest = &nobody;
    *reading = 0;
    for (unsigned i = 0; i < node->part_count; i++) {
        const struct fake_part *part = &node->parts[i];
        if (fake_is_part_of(part, lock) && part->ticket >= node->now_ms) {
            const size_t size = part->token_size < lowest->token_size ? part->token_size : lowest->token_size;
            const int order = memcmp(part->token, lowest->token, size);
            lowest = order < 0 || (order == 0 && part->token_size < lowest->token_size) ? part : lowest;
            ++*reading;
        }
    }
    return lowest;
}

static int compare_tokens(const void *left, const void *right) {
    const struct fake_part *a = *(const struct fake_part *const *)left, *b = *(const struct fake_part *const *)right;
    const int order = memcmp(a->token, b->token, a->token_size < b->token_size ? a->token_size : b->token_size);
    return order != 0 ? order : (int)a->token_size - (int)b->token_size;
}

void fake_name(struct fake_node *node, struct fake_reply *reply, char kind, const struct fake_part *part, int64_t ms) {
    char *at = node->named + reply->names_size;
    if (reply->names_size > FAKE_NAMES_MAX - FAKE_VALUE_MAX - 32) {
        return;
    }
    at = fake_bytes(at, &kind, 1);
    at = fake_bytes(fake_digits(fake_bytes(at, " ", 1), part->token_size, 1), " ", 1);
    at = fake_bytes(fake_digits(at, (uint64_t)ms, 1), " ", 1);
    at = fake_bytes(at, part->token, part->token_size);
    reply->names_size = (size_t)(at - node->named);
    reply->names = node->named;
}

void fake_name_readers(struct fake_node *node, const struct fake_key *lock, struct fake_reply *reply) {
    const struct fake_part *reading[FAKE_PARTS_MAX];
    size_t count = 0;
    for (unsigned i = 0; i < node->part_count; i++) {
        if (fake_is_part_of(&node->parts[i], lock) && node->parts[i].ticket >= node->now_ms) {
            reading[count++] = &node->parts[i];
        }
    }
    qsort(reading, count, sizeof reading[0], compare_tokens);
    for (size_t i = 0; i < count; i++) {
        fake_name(node, reply, 'r', reading[i], reading[i]->ticket - node->now_ms);
    }
}

static struct fake_part *entry_of(struct fake_node *node, const struct fake_key *lock,
                                  const struct sim_argument *token) {
    return fake_is_read(node, lock) ? fake_find_part(node, lock, token->bytes, token->size) : NULL;
}

int64_t fake_may_read(struct fake_node *node, const struct sim_argument *a, const struct sim_argument *v) {
    const struct fake_key *lock = fake_find(node, &a[0]);
    const struct fake_part *entry = entry_of(node, lock, &v[0]);
    struct fake_names names;
    if ((lock != NULL && fake_holds(lock, &v[0])) || (entry != NULL && entry->ticket >= node->now_ms)) {
        return 1;
    }
    if (lock != NULL && !fake_is_read(node, lock)) {
        return -1;
    }
    if (fake_is(&v[2], "k") || fake_is(&v[2], "c")) {
        return REDLOCK_PLANTED(SHARED_KEEP_JOINS);
    }
    fake_name_queue(&names, &a[0], &v[3], &v[0]);
    if (!fake_is(&v[2], "t") || fake_find(node, &names.of[1]) == NULL) {
        return 1;
    }
    fake_drop_dead(node, names.of);
    return fake_find(node, &names.of[1]) == NULL;
}

/* Entries that have ended by now. */
static void purge(struct fake_node *node, struct fake_key *lock) {
    for (unsigned i = 0; i < node->part_count; i++) {
        if (fake_is_part_of(&node->parts[i], lock) && node->parts[i].ticket < node->now_ms) {
            fake_drop_part(node, lock, &node->parts[i]);
        }
    }
}

bool fake_read(struct fake_node *node, const struct sim_argument *a, const struct sim_argument *v, int64_t ttl_ms,
               struct fake_reply *reply) {
    struct fake_key *lock = fake_find(node, &a[0]);
    const bool alone = lock != NULL && fake_holds(lock, &v[0]), mine = entry_of(node, lock, &v[0]) != NULL;
    const bool shared = fake_is_read(node, lock);
    struct fake_names names;
    struct fake_told told;
    /* Behind a write that is allowed without memory, all are. */
    if (fake_refused(node, !alone && !mine && !node->wrote, reply)) {
        return false;
    }
    if (alone) {
        ttl_ms = fake_ttl(node, lock) > ttl_ms ? fake_ttl(node, lock) : ttl_ms;
        fake_delete_lock(node, &a[0]);
    } else if (mine) {
        purge(node, lock);
    }
    fake_join(node, &a[0], &v[0], ttl_ms);
    if (shared && !mine) {
        purge(node, lock);
    }
    fake_name_queue(&names, &a[0], &v[3], &v[0]);
    if (alone && !fake_is(&v[2], "c") && fake_find(node, &names.of[1]) != NULL) {
        (void)fake_serve(node, names.of, &v[0], true, &told);
    }
    return true;
}
