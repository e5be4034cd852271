/* What the script WAIT does, on the fake node. */
#include "base/holder.h"
#include "core/planted.h"
#include "fake_queue.h"

/* A longer queue is also looked at somewhere within. */
#define SHORT_MAX 8

static int64_t rank_of(const struct fake_node *node, const struct fake_key *set, const struct fake_part *part) {
    int64_t rank = 0;
    for (unsigned i = 0; i < node->part_count; i++) {
        rank += fake_is_part_of(&node->parts[i], set) && fake_is_before(&node->parts[i], part);
    }
    return rank;
}

/* Whether this member of the queue was dead, and is gone. */
static bool drop_dead(struct fake_node *node, struct fake_key *queue, struct fake_key *waiters, struct fake_part *part,
                      const struct sim_argument *own) {
    struct fake_part *waiter = fake_find_part(node, waiters, part->token, part->token_size);
    if (fake_is_token(part, own) || fake_is_living(node, waiter, own)) {
        return false;
    }
    fake_drop_part(node, queue, part);
    fake_drop_part(node, waiters, waiter);
    return true;
}

/* In a longer queue, the dead in a row from somewhere on. */
static void drop_within(struct fake_node *node, struct fake_key *queue, struct fake_key *waiters,
                        const struct sim_argument *own) {
    struct fake_part *parts[FAKE_PARTS_MAX];
    const unsigned count = fake_sort_parts(node, queue, parts);
    if (count <= SHORT_MAX) {
        return;
    }
    unsigned rank = (unsigned)(node->now_us % 1000000 % count);
    while (rank < count && drop_dead(node, queue, waiters, parts[rank], own)) {
        rank++;
    }
}

void fake_drop_dead(struct fake_node *node, const struct sim_argument *a) {
    struct fake_key *queue, *waiters;
    struct fake_reply ignored;
    if (REDLOCK_PLANTED(QUEUE_SERVES_FEW) || fake_refused(node, false, &ignored) ||
        !fake_find_set(node, &a[1], FAKE_ZSET, &queue) || !fake_find_set(node, &a[2], FAKE_HASH, &waiters)) {
        return;
    }
    /* Mostly the first is alive: the others need no order. */
    struct fake_part *first = fake_first_part(node, queue);
    while (first != NULL && drop_dead(node, queue, waiters, first, &a[3])) {
        first = fake_first_part(node, queue);
    }
    drop_within(node, queue, waiters, &a[3]);
}

/* v: token, ticket, serial, ttl, stale, queue ttl, channel, id, takes. Returns false, with the
 * reply, if the place cannot be taken. */
static bool enter(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    const struct sim_argument *v = a + 3;
    struct fake_key *queue, *waiters;
    int64_t stale_ms = 0, queue_ttl_ms = 0;
    struct fake_part entry = {.set = 0};
    const bool refused = fake_refused(node, true, reply);
    if (refused || !fake_find_set(node, &a[1], FAKE_ZSET, &queue) || !fake_find_set(node, &a[2], FAKE_HASH, &waiters)) {
        (void)fake_leave(node, &a[1], FAKE_ZSET, &v[0]);
        (void)fake_leave(node, &a[2], FAKE_HASH, &v[0]);
        if (!refused) {
            fake_reply_wrong_type(reply);
        }
        return false;
    }
    queue = queue != NULL ? queue : fake_add_set(node, &a[1], FAKE_ZSET);
    waiters = waiters != NULL ? waiters : fake_add_set(node, &a[2], FAKE_HASH);
    struct fake_part *place = queue == NULL ? NULL : fake_put_part(node, queue, &v[0]);
    struct fake_part *waiter = waiters == NULL ? NULL : fake_put_part(node, waiters, &v[0]);
    if (place == NULL || waiter == NULL || v[6].size > sizeof entry.channel || v[7].size > sizeof entry.id ||
        !fake_integer(&v[1], &place->ticket) || !fake_integer(&v[2], &waiter->serial) ||
        !fake_integer(&v[3], &waiter->ttl_ms) || !fake_integer(&v[4], &stale_ms) ||
        !fake_integer(&v[5], &queue_ttl_ms)) {
        fake_reply_bytes(reply, REDLOCK_REPLY_ERROR, "ERR the fake node has no room, or expected numbers");
        return false;
    }
    waiter->good_until_ms = node->now_ms + stale_ms;
    waiter->channel_size = (uint8_t)v[6].size;
    memcpy(waiter->channel, v[6].bytes, v[6].size);
    waiter->id_size = (uint8_t)v[7].size;
    memcpy(waiter->id, v[7].bytes, v[7].size);
    if (!REDLOCK_PLANTED(QUEUE_NO_EXPIRY)) {
        fake_expire(node, queue, queue_ttl_ms);
        fake_expire(node, waiters, queue_ttl_ms);
    }
    return true;
}

/* For how long nobody in line gets the lock; 0: they may. */
static int64_t left_ms(struct fake_node *node, const struct sim_argument *waiters) {
    struct fake_key *set;
    const struct fake_part *left = fake_find_set(node, waiters, FAKE_HASH, &set)
                                       ? fake_find_part(node, set, FAKE_LEFT, sizeof FAKE_LEFT - 1)
                                       : NULL;
    const int64_t ms = left == NULL ? 0 : left->good_until_ms - node->now_ms;
    return ms > 0 && ms < 60000 ? ms : 0;
}

/* The lock of a try keeps its time to live. */
static void mark(struct fake_node *node, struct fake_key *lock) {
    const bool is_try = lock->type == FAKE_STRING && redlock_holder_is_try(lock->value, lock->value_size) &&
                        !redlock_holder_reads(lock->value, lock->value_size);
    const bool is_marked = is_try || (lock->type == FAKE_STRING && REDLOCK_PLANTED(MARK_ANY));
    if (fake_ttl(node, lock) > 0 && is_marked && !lock->marked && !REDLOCK_PLANTED(MARK_NEVER)) {
        lock->marked = node->wrote = true;
        lock->expires_ms = REDLOCK_PLANTED(MARK_ENDLESS) ? FAKE_NO_TTL : lock->expires_ms;
        lock->value[0] = is_try ? lock->value[0] : '*';
    }
}

static void reply_granted(struct fake_node *node, struct fake_reply *reply) {
    *reply = (struct fake_reply){.type = REDLOCK_REPLY_ARRAY, .shape = FAKE_WAIT, .integer = 1};
    fake_reply_time(reply, node);
}

/* What the answer "queued" says. */
static void reply_queued(struct fake_node *node, const struct sim_argument *a, const struct fake_key *lock,
                         int64_t left, struct fake_reply *reply) {
    const struct sim_argument *token = &a[3];
    struct fake_key *queue = fake_find(node, &a[1]);
    const struct fake_part *named = NULL;
    unsigned reading = 0;
    *reply = (struct fake_reply){.type = REDLOCK_REPLY_ARRAY};
    if (fake_is_read(node, lock)) {
        const bool reads = fake_reads(token->bytes, token->size);
        named = reads ? fake_first_part(node, queue) : fake_lowest(node, lock, &reading);
        const bool nobody = reads ? fake_reads(named->token, named->token_size) : reading == 0;
        reply->integer = reads && !nobody ? 3 : 2;
        if (!nobody) {
            memcpy(reply->text, named->token, named->token_size);
            reply->bytes = reply->text;
            reply->size = named->token_size;
        }
    } else if (lock != NULL) {
        fake_reply_value(reply, lock);
    }
    reply->type = REDLOCK_REPLY_ARRAY;
    reply->shape = FAKE_WAIT;
    reply->ttl_ms = left > 0 ? left : fake_ttl(node, lock);
    reply->rank = rank_of(node, queue, fake_find_part(node, queue, token->bytes, token->size));
    fake_reply_time(reply, node);
}

/* Who has the lock, alone or among others, is told so. Returns false for anybody else. */
static bool grant_again(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    const struct sim_argument *token = &a[3];
    struct fake_key *lock = fake_find(node, &a[0]);
    int64_t ttl_ms = 0;
    if (lock == NULL || !fake_integer(&a[6], &ttl_ms)) {
        return false;
    }
    if (fake_holds(lock, token)) {
        if (fake_ttl(node, lock) < ttl_ms) {
            if (fake_refused(node, false, reply)) {
                return true;
            }
            fake_expire(node, lock, ttl_ms);
        }
        reply_granted(node, reply);
        return true;
    }
    const struct fake_part *mine =
        fake_is_read(node, lock) ? fake_find_part(node, lock, token->bytes, token->size) : NULL;
    if (mine == NULL || mine->ticket < node->now_ms) {
        return false;
    }
    if (!fake_refused(node, false, reply)) {
        fake_join(node, &a[0], token, ttl_ms);
        reply_granted(node, reply);
    }
    return true;
}

void fake_queue_wait(struct fake_node *node, const struct sim_argument *a, bool announces, struct fake_reply *reply) {
    if (grant_again(node, a, reply)) {
        return;
    }
    struct fake_key *lock = fake_find(node, &a[0]);
    if (!enter(node, a, reply)) {
        return;
    }
    const bool shared = fake_is_read(node, lock), takes = (lock == NULL || shared) && fake_is(&a[11], "1");
    const int64_t left = takes && !shared ? left_ms(node, &a[2]) : 0;
    if (takes && left == 0) {
        struct fake_told told;
        if (fake_serve(node, a, &a[3], shared, &told) == FAKE_SERVED) {
            if (announces) {
                fake_announce(node, &a[0], &told);
            }
        } else if (!shared) {
            fake_delete_lock(node, &a[0]);
        }
        if (told.own) {
            reply_granted(node, reply);
            return;
        }
        lock = fake_find(node, &a[0]);
    } else if (!takes) {
        if (lock != NULL) {
            mark(node, lock);
        }
        fake_drop_dead(node, a);
    }
    reply_queued(node, a, lock, left, reply);
}
