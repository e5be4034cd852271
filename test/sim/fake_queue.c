/* What the scripts WAIT and RELEASE do, on the fake node. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/holder.h"
#include "core/operation.h"
#include "core/planted.h"
#include "fake_store.h"
#include "wire/channel.h"
#include "wire/message.h"

/* So many entries at most are served, dropped or counted at once. */
#define ENTRIES_MAX 2000
/* A longer queue is also looked at somewhere within. */
#define SHORT_MAX 8

#define QUEUE_TTL_MS 15000

static bool is_part_of(const struct fake_part *part, const struct fake_key *set) {
    return set != NULL && set->used && part->set == set->id;
}

static struct fake_part *find_part(struct fake_node *node, const struct fake_key *set, const char *token, size_t size) {
    for (unsigned i = 0; i < node->part_count; i++) {
        struct fake_part *part = &node->parts[i];
        if (is_part_of(part, set) && part->token_size == size && memcmp(part->token, token, size) == 0) {
            return part;
        }
    }
    return NULL;
}

static bool is_alive(const struct fake_node *node, const struct fake_part *part) {
    for (unsigned i = 0; i < node->set_count; i++) {
        if (is_part_of(part, &node->sets[i])) {
            return true;
        }
    }
    return false;
}

/* A new part, in the first free place from *at on; moves *at behind it. NULL without room. */
static struct fake_part *add_part(struct fake_node *node, const struct fake_key *set, const struct sim_argument *token,
                                  unsigned *at) {
    while (*at < node->part_count && is_alive(node, &node->parts[*at])) {
        ++*at;
    }
    if (*at >= FAKE_PARTS_MAX || token->size > FAKE_VALUE_MAX) {
        return NULL;
    }
    struct fake_part *part = &node->parts[(*at)++];
    node->part_count = *at > node->part_count ? *at : node->part_count;
    *part = (struct fake_part){.set = set->id, .token_size = (uint8_t)token->size};
    memcpy(part->token, token->bytes, token->size);
    return part;
}

/* The part of this token, new if there is none; NULL without room. */
static struct fake_part *put_part(struct fake_node *node, const struct fake_key *set,
                                  const struct sim_argument *token) {
    struct fake_part *part = find_part(node, set, token->bytes, token->size);
    return part != NULL ? part : add_part(node, set, token, &(unsigned){0});
}

/* If there is one. A set without members is gone. */
static void drop_part(struct fake_node *node, struct fake_key *set, struct fake_part *part) {
    if (part == NULL) {
        return;
    }
    part->set = 0;
    node->wrote = true;
    for (unsigned i = 0; i < node->part_count; i++) {
        if (is_part_of(&node->parts[i], set)) {
            return;
        }
    }
    set->used = false;
}

/* As in a sorted set: by ticket, then by bytes. */
static bool is_before(const struct fake_part *a, const struct fake_part *b) {
    if (a->ticket != b->ticket) {
        return a->ticket < b->ticket;
    }
    const size_t size = a->token_size < b->token_size ? a->token_size : b->token_size;
    const int order = memcmp(a->token, b->token, size);
    return order != 0 ? order < 0 : a->token_size < b->token_size;
}

static struct fake_part *first_part(struct fake_node *node, const struct fake_key *set) {
    struct fake_part *first = NULL;
    for (unsigned i = 0; i < node->part_count; i++) {
        if (is_part_of(&node->parts[i], set) && (first == NULL || is_before(&node->parts[i], first))) {
            first = &node->parts[i];
        }
    }
    return first;
}

static int64_t rank_of(const struct fake_node *node, const struct fake_key *set, const struct fake_part *part) {
    int64_t rank = 0;
    for (unsigned i = 0; i < node->part_count; i++) {
        rank += is_part_of(&node->parts[i], set) && is_before(&node->parts[i], part);
    }
    return rank;
}

/* The set of this name. False if a key of another type has it. */
static bool find_set(struct fake_node *node, const struct sim_argument *name, enum fake_type type,
                     struct fake_key **set) {
    *set = fake_find(node, name);
    return *set == NULL || (*set)->type == type;
}

/* ZREM, HDEL, whose errors are ignored. Returns whether it was there. */
static bool leave(struct fake_node *node, const struct sim_argument *name, enum fake_type type,
                  const struct sim_argument *token) {
    struct fake_key *set;
    struct fake_reply ignored;
    if (fake_refused(node, false, &ignored) || !find_set(node, name, type, &set)) {
        return false;
    }
    struct fake_part *part = find_part(node, set, token->bytes, token->size);
    drop_part(node, set, part);
    return part != NULL;
}

static bool publish(const struct fake_node *node, const struct sim_argument *lock, const struct fake_part *waiter) {
    char payload[256];
    const uint64_t numbers[] = {(uint64_t)waiter->serial, (uint64_t)(node->now_us / 1000000),
                                (uint64_t)(node->now_us % 1000000)};
    char *end = fake_bytes(payload, waiter->id, waiter->id_size);
    *end++ = ' ';
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        end = fake_digits(end, numbers[i], 1);
        *end++ = ' ';
    }
    end = fake_bytes(end, waiter->token, waiter->token_size);
    *end++ = ' ';
    end = fake_bytes(end, lock->bytes, lock->size);
    return node->publish != NULL &&
           node->publish(node->publish_ctx, waiter->channel, waiter->channel_size, payload, (size_t)(end - payload));
}

/* For observers: who has the lock now, or "". Whether anybody listens does not matter. */
static void announce(struct fake_node *node, const struct sim_argument *lock) {
    char channel[FAKE_NAME_MAX + 32], payload[FAKE_VALUE_MAX + 32] = "";
    const struct fake_key *key = fake_find(node, lock);
    const int channel_size =
        snprintf(channel, sizeof channel, REDLOCK_LEADER_CHANNEL "%.*s", (int)lock->size, lock->bytes);
    const int size = key == NULL ? 0
                                 : snprintf(payload, sizeof payload, "%lld %.*s", (long long)fake_ttl(node, key),
                                            key->value_size, key->value);
    if (node->publish != NULL) {
        (void)node->publish(node->publish_ctx, channel, (size_t)channel_size, payload, (size_t)size);
    }
}

enum served { NOBODY, SERVED, WRONG_TYPE };

static bool is_token(const struct fake_part *part, const struct sim_argument *token) {
    return part->token_size == token->size && memcmp(part->token, token->bytes, token->size) == 0;
}

/* The own channel of a manager: no entry makes a script speak on those of others. */
static bool is_channel(const struct fake_part *waiter) {
    static const char prefix[] = "redlock:";
    const size_t skip = sizeof prefix - 1;
    bool good = waiter->channel_size > skip && memcmp(waiter->channel, prefix, skip) == 0;
    for (size_t i = skip; good && i < waiter->channel_size; i++) {
        good = isalnum((unsigned char)waiter->channel[i]);
    }
    return good;
}

/* Whether this field of the hash, NULL for none, is that of a waiter who can be served. `own` needs
 * no push. */
static bool is_living(const struct fake_node *node, const struct fake_part *waiter, const struct sim_argument *own) {
    if (waiter == NULL || !is_channel(waiter) ||
        (node->now_ms > waiter->good_until_ms && !REDLOCK_PLANTED(QUEUE_SERVES_STALE))) {
        return false;
    }
    return (own != NULL && is_token(waiter, own)) || REDLOCK_PLANTED(QUEUE_COUNTS_PATTERNS) ||
           (node->hears != NULL && node->hears(node->publish_ctx, waiter->channel, waiter->channel_size));
}

/* a: lock, queue, waiters. The lock is NOBODY's: anybody's, to be deleted. */
static enum served serve(struct fake_node *node, const struct sim_argument *a, const struct sim_argument *own) {
    struct fake_key *queue, *waiters;
    if (!find_set(node, &a[1], FAKE_ZSET, &queue)) {
        return WRONG_TYPE;
    }
    for (unsigned i = 0; i < (REDLOCK_PLANTED(QUEUE_SERVES_FEW) ? 64 : ENTRIES_MAX); i++) {
        struct fake_part *first = first_part(node, queue);
        if (first == NULL) {
            return NOBODY;
        }
        const struct fake_part popped = *first;
        const struct sim_argument token = {popped.token, popped.token_size};
        drop_part(node, queue, first);
        if (!find_set(node, &a[2], FAKE_HASH, &waiters)) {
            return WRONG_TYPE;
        }
        struct fake_part *part = find_part(node, waiters, token.bytes, token.size);
        const bool living = is_living(node, part, own);
        const struct fake_part waiter = part != NULL ? *part : (struct fake_part){.set = 0};
        drop_part(node, waiters, part);
        if (!living) {
            continue;
        }
        struct fake_key *key = fake_add(node, &a[0], &token);
        if (key != NULL) {
            key->expires_ms = node->now_ms + waiter.ttl_ms;
        }
        if (is_token(&waiter, own) || publish(node, &a[0], &waiter)) {
            return SERVED;
        }
    }
    return NOBODY;
}

static int compare_parts(const void *a, const void *b) {
    const struct fake_part *const *first = a, *const *second = b;
    return is_before(*first, *second) ? -1 : is_before(*second, *first);
}

/* Whether this member of the queue was dead, and is gone. */
static bool drop_dead(struct fake_node *node, struct fake_key *queue, struct fake_key *waiters, struct fake_part *part,
                      const struct sim_argument *own) {
    struct fake_part *waiter = find_part(node, waiters, part->token, part->token_size);
    if (is_token(part, own) || is_living(node, waiter, own)) {
        return false;
    }
    drop_part(node, queue, part);
    drop_part(node, waiters, waiter);
    return true;
}

/* In a longer queue, the dead in a row from somewhere on. */
static void drop_within(struct fake_node *node, struct fake_key *queue, struct fake_key *waiters,
                        const struct sim_argument *own) {
    struct fake_part *parts[FAKE_PARTS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < node->part_count; i++) {
        if (is_part_of(&node->parts[i], queue)) {
            parts[count++] = &node->parts[i];
        }
    }
    if (count <= SHORT_MAX) {
        return;
    }
    qsort(parts, count, sizeof parts[0], compare_parts);
    unsigned rank = (unsigned)(node->now_us % 1000000 % count);
    while (rank < count && drop_dead(node, queue, waiters, parts[rank], own)) {
        rank++;
    }
}

/* a: lock, queue, waiters, own token */
static void drop(struct fake_node *node, const struct sim_argument *a) {
    struct fake_key *queue = fake_find(node, &a[1]), *waiters = fake_find(node, &a[2]);
    if (REDLOCK_PLANTED(QUEUE_SERVES_FEW)) {
        return;
    }
    /* Mostly the first is alive: the others need no order. */
    struct fake_part *first = first_part(node, queue);
    while (first != NULL && drop_dead(node, queue, waiters, first, &a[3])) {
        first = first_part(node, queue);
    }
    drop_within(node, queue, waiters, &a[3]);
}

static void delete_lock(struct fake_node *node, const struct sim_argument *name) {
    struct fake_key *key = fake_find(node, name);
    if (key != NULL) {
        fake_delete(node, key);
    }
}

/* v: token, ticket, serial, ttl, stale, queue ttl, channel, id, takes. Returns false, with the
 * reply, if the place cannot be taken. */
static bool enter(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    const struct sim_argument *v = a + 3;
    struct fake_key *queue, *waiters;
    int64_t stale_ms = 0, queue_ttl_ms = 0;
    struct fake_part entry = {.set = 0};
    const bool refused = fake_refused(node, true, reply);
    if (refused || !find_set(node, &a[1], FAKE_ZSET, &queue) || !find_set(node, &a[2], FAKE_HASH, &waiters)) {
        (void)leave(node, &a[1], FAKE_ZSET, &v[0]);
        (void)leave(node, &a[2], FAKE_HASH, &v[0]);
        if (!refused) {
            fake_reply_wrong_type(reply);
        }
        return false;
    }
    queue = queue != NULL ? queue : fake_add_set(node, &a[1], FAKE_ZSET);
    waiters = waiters != NULL ? waiters : fake_add_set(node, &a[2], FAKE_HASH);
    struct fake_part *place = queue == NULL ? NULL : put_part(node, queue, &v[0]);
    struct fake_part *waiter = waiters == NULL ? NULL : put_part(node, waiters, &v[0]);
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

#define LEFT "left"

/* For how long nobody in line gets the lock; 0: they may. */
static int64_t left_ms(struct fake_node *node, const struct sim_argument *waiters) {
    struct fake_key *set;
    const struct fake_part *left =
        find_set(node, waiters, FAKE_HASH, &set) ? find_part(node, set, LEFT, sizeof LEFT - 1) : NULL;
    const int64_t ms = left == NULL ? 0 : left->good_until_ms - node->now_ms;
    return ms > 0 && ms < 60000 ? ms : 0;
}

/* The lock of a try keeps its time to live. */
static void mark(struct fake_node *node, struct fake_key *lock) {
    const bool is_try = lock->type == FAKE_STRING && redlock_holder_is_try(lock->value, lock->value_size);
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

void fake_queue_wait(struct fake_node *node, const struct sim_argument *a, bool announces, struct fake_reply *reply) {
    const struct sim_argument *token = &a[3];
    struct fake_key *lock = fake_find(node, &a[0]);
    int64_t ttl_ms = 0;
    if (lock != NULL && fake_holds(lock, token)) {
        if (fake_integer(&a[6], &ttl_ms) && fake_ttl(node, lock) < ttl_ms) {
            if (fake_refused(node, false, reply)) {
                return;
            }
            fake_expire(node, lock, ttl_ms);
        }
        reply_granted(node, reply);
        return;
    }
    if (!enter(node, a, reply)) {
        return;
    }
    const bool takes = lock == NULL && fake_is(&a[11], "1");
    const int64_t left = takes ? left_ms(node, &a[2]) : 0;
    if (takes && left == 0) {
        if (serve(node, a, token) != SERVED) {
            delete_lock(node, &a[0]);
        } else if (announces) {
            announce(node, &a[0]);
        }
        lock = fake_find(node, &a[0]);
        if (lock != NULL && fake_holds(lock, token)) {
            reply_granted(node, reply);
            return;
        }
    } else if (!takes) {
        if (lock != NULL) {
            mark(node, lock);
        }
        drop(node, a);
    }
    const struct fake_key *queue = fake_find(node, &a[1]);
    if (lock != NULL) {
        fake_reply_value(reply, lock);
    }
    reply->type = REDLOCK_REPLY_ARRAY;
    reply->shape = FAKE_WAIT;
    reply->integer = 0;
    reply->ttl_ms = left > 0 ? left : fake_ttl(node, lock);
    reply->rank = rank_of(node, queue, find_part(node, queue, token->bytes, token->size));
    fake_reply_time(reply, node);
}

unsigned fake_queue_room(const struct fake_node *node) {
    unsigned room = FAKE_PARTS_MAX - node->part_count;
    for (unsigned i = 0; i < node->part_count; i++) {
        room += !is_alive(node, &node->parts[i]);
    }
    return room;
}

void fake_queue_add(struct fake_node *node, struct fake_key *const sets[2], int64_t ttl_ms, const char *token,
                    const char *channel, const int64_t when[2], unsigned *at) {
    const struct sim_argument name = {token, strlen(token)};
    for (unsigned i = 0; i < 2; i++) {
        struct fake_part *part = add_part(node, sets[i], &name, at);
        if (part == NULL) {
            return;
        }
        part->ticket = when[0];
        part->ttl_ms = ttl_ms;
        part->good_until_ms = node->now_ms + when[1];
        part->channel_size = (uint8_t)strlen(channel);
        memcpy(part->channel, channel, part->channel_size);
        fake_expire(node, sets[i], QUEUE_TTL_MS);
    }
}

/* The name of a queue: both in a row, in `name`, which has room for two names. */
static struct sim_argument join(const struct sim_argument *first, const struct sim_argument *second, char *name) {
    const size_t sizes[] = {first->size < FAKE_NAME_MAX ? first->size : FAKE_NAME_MAX,
                            second->size < FAKE_NAME_MAX ? second->size : FAKE_NAME_MAX};
    const char *end = fake_bytes(fake_bytes(name, first->bytes, sizes[0]), second->bytes, sizes[1]);
    return (struct sim_argument){name, (size_t)(end - name)};
}

/* a: lock, queue, waiters. NOBODY: nobody waits, so the lock is not left. */
static enum served leave_free(struct fake_node *node, const struct sim_argument *a, int64_t ms) {
    struct fake_key *queue, *waiters;
    if (ms <= REDLOCK_HAND_FREE || fake_find(node, &a[2]) == NULL) {
        return NOBODY;
    }
    if (!find_set(node, &a[1], FAKE_ZSET, &queue) || !find_set(node, &a[2], FAKE_HASH, &waiters)) {
        return WRONG_TYPE;
    }
    struct fake_part *left = put_part(node, waiters, &(struct sim_argument){LEFT, sizeof LEFT - 1});
    if (left != NULL) {
        left->good_until_ms = node->now_ms + ms;
        delete_lock(node, &a[0]);
    }
    return left != NULL ? SERVED : NOBODY;
}

void fake_queue_release(struct fake_node *node, const struct sim_argument *a, int64_t handing, size_t count,
                        struct fake_reply *reply) {
    const bool looks = count > 3, announces = count > 4;
    char queue[2 * FAKE_NAME_MAX], waiters[2 * FAKE_NAME_MAX + 2];
    const struct sim_argument plain = {REDLOCK_WAIT_SUFFIX, sizeof REDLOCK_WAIT_SUFFIX - 1};
    const struct sim_argument of_queue = join(&a[0], count > 2 ? &a[2] : &plain, queue);
    const struct sim_argument names[] = {a[0], of_queue, join(&of_queue, &(struct sim_argument){"er", 2}, waiters)};
    struct fake_key *lock = fake_find(node, &a[0]);
    struct fake_reply ignored;
    if (!looks && lock != NULL && (!lock->marked || REDLOCK_PLANTED(MARK_DELETED)) && fake_holds(lock, &a[1])) {
        if (!fake_refused(node, false, reply)) {
            fake_reply_integer(reply, 1);
            delete_lock(node, &a[0]);
        }
        return;
    }
    if (lock == NULL || !fake_holds(lock, &a[1])) {
        if (!REDLOCK_PLANTED(QUEUE_RELEASE_STAYS) && leave(node, &names[1], FAKE_ZSET, &a[1])) {
            (void)leave(node, &names[2], FAKE_HASH, &a[1]);
        }
        if (handing == REDLOCK_HAND_FREE) {
            (void)leave(node, &names[2], FAKE_HASH, &(struct sim_argument){LEFT, sizeof LEFT - 1});
            if (lock != NULL && fake_find(node, &names[1]) != NULL && !fake_refused(node, true, &ignored)) {
                mark(node, lock);
            }
        }
        if (lock != NULL || handing != REDLOCK_HAND_FREE) {
            fake_reply_integer(reply, lock == NULL ? 0 : -1);
            return;
        }
    }
    if (fake_refused(node, false, reply)) {
        return;
    }
    if (fake_find(node, &names[1]) != NULL) {
        if (leave(node, &names[1], FAKE_ZSET, &a[1])) {
            (void)leave(node, &names[2], FAKE_HASH, &a[1]);
        }
        enum served served = leave_free(node, names, handing);
        served = served == NOBODY && handing != REDLOCK_HAND_NOBODY ? serve(node, names, &a[1]) : served;
        if (served == SERVED) {
            fake_reply_integer(reply, 2);
            if (announces) {
                announce(node, &a[0]);
            }
            return;
        }
    }
    fake_reply_integer(reply, announces || fake_find(node, &a[0]) != NULL);
    delete_lock(node, &a[0]);
    if (announces) {
        announce(node, &a[0]);
    }
}

void fake_queue_look(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    char name[2 * FAKE_NAME_MAX], hash[2 * FAKE_NAME_MAX + 2];
    const struct sim_argument queue = join(&a[0], &a[1], name);
    const struct sim_argument waiters = join(&queue, &(struct sim_argument){"er", 2}, hash);
    const struct fake_part *first = NULL;
    struct fake_key *set, *fields;
    reply->rank = reply->ttl_ms = -1;
    if (a[1].size == 0 || !find_set(node, &queue, FAKE_ZSET, &set)) {
        return;
    }
    const bool readable = find_set(node, &waiters, FAKE_HASH, &fields);
    reply->rank = 0;
    for (unsigned i = 0; i < node->part_count; i++) {
        const struct fake_part *part = &node->parts[i];
        if (!is_part_of(part, set)) {
            continue;
        }
        if (!readable) {
            reply->rank++;
        } else if (is_living(node, find_part(node, fields, part->token, part->token_size), NULL)) {
            reply->rank++;
            first = first == NULL || is_before(part, first) ? part : first;
        }
    }
    if (first != NULL) {
        const int64_t waited_us = node->now_us - first->ticket;
        reply->ttl_ms = waited_us < 0 ? 0 : waited_us / 1000;
    }
}
