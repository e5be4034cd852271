/* What the scripts WAIT and RELEASE share, on the fake node: places, and to hand the lock over. */
#include "fake_queue.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/planted.h"
#include "wire/channel.h"

/* So many entries at most are served at once. */
#define ENTRIES_MAX 2000

/* And so many who read come in. */
#define READERS_MAX 64

#define QUEUE_TTL_MS 15000

bool fake_is_part_of(const struct fake_part *part, const struct fake_key *set) {
    return set != NULL && set->used && part->set == set->id;
}

struct fake_part *fake_find_part(struct fake_node *node, const struct fake_key *set, const char *token, size_t size) {
    for (unsigned i = 0; i < node->part_count; i++) {
        struct fake_part *part = &node->parts[i];
        if (fake_is_part_of(part, set) && part->token_size == size && memcmp(part->token, token, size) == 0) {
            return part;
        }
    }
    return NULL;
}

static bool is_alive(const struct fake_node *node, const struct fake_part *part) {
    for (unsigned i = 0; i < node->set_count; i++) {
        if (fake_is_part_of(part, &node->sets[i])) {
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

void fake_drop_part(struct fake_node *node, struct fake_key *set, struct fake_part *part) {
    if (part == NULL) {
        return;
    }
    part->set = 0;
    node->wrote = true;
    for (unsigned i = 0; i < node->part_count; i++) {
        if (fake_is_part_of(&node->parts[i], set)) {
            return;
        }
    }
    set->used = false;
}

bool fake_is_before(const struct fake_part *a, const struct fake_part *b) {
    if (a->ticket != b->ticket) {
        return a->ticket < b->ticket;
    }
    const size_t size = a->token_size < b->token_size ? a->token_size : b->token_size;
    const int order = memcmp(a->token, b->token, size);
    return order != 0 ? order < 0 : a->token_size < b->token_size;
}

struct fake_part *fake_first_part(struct fake_node *node, const struct fake_key *set) {
    struct fake_part *first = NULL;
    for (unsigned i = 0; i < node->part_count; i++) {
        if (fake_is_part_of(&node->parts[i], set) && (first == NULL || fake_is_before(&node->parts[i], first))) {
            first = &node->parts[i];
        }
    }
    return first;
}

static int compare_parts(const void *a, const void *b) {
    const struct fake_part *const *first = a, *const *second = b;
    return fake_is_before(*first, *second) ? -1 : fake_is_before(*second, *first);
}

unsigned fake_sort_parts(struct fake_node *node, const struct fake_key *set, struct fake_part **parts) {
    unsigned count = 0;
    for (unsigned i = 0; i < node->part_count; i++) {
        if (fake_is_part_of(&node->parts[i], set)) {
            parts[count++] = &node->parts[i];
        }
    }
    qsort(parts, count, sizeof parts[0], compare_parts);
    return count;
}

bool fake_find_set(struct fake_node *node, const struct sim_argument *name, enum fake_type type,
                   struct fake_key **set) {
    *set = fake_find(node, name);
    return *set == NULL || (*set)->type == type;
}

bool fake_leave(struct fake_node *node, const struct sim_argument *name, enum fake_type type,
                const struct sim_argument *token) {
    struct fake_key *set;
    struct fake_reply ignored;
    if (fake_refused(node, false, &ignored) || !fake_find_set(node, name, type, &set)) {
        return false;
    }
    struct fake_part *part = fake_find_part(node, set, token->bytes, token->size);
    fake_drop_part(node, set, part);
    return part != NULL;
}

bool fake_publish(const struct fake_node *node, const struct sim_argument *lock, const struct fake_part *waiter,
                  bool is_left) {
    char payload[256];
    const size_t seal_size = waiter->id_size < REDLOCK_SEAL_DIGITS ? waiter->id_size : REDLOCK_SEAL_DIGITS;
    const uint64_t numbers[] = {is_left ? 0 : (uint64_t)waiter->serial, (uint64_t)(node->now_us / 1000000),
                                (uint64_t)(node->now_us % 1000000)};
    char *end = fake_bytes(payload, waiter->id, waiter->id_size - (is_left ? seal_size : 0));
    end = is_left ? fake_digits(end, 0, REDLOCK_SEAL_DIGITS) : end;
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

void fake_announce(struct fake_node *node, const struct sim_argument *lock, const struct fake_told *told) {
    char channel[FAKE_NAME_MAX + 32], payload[FAKE_VALUE_MAX + 32] = "";
    const int channel_size =
        snprintf(channel, sizeof channel, REDLOCK_LEADER_CHANNEL "%.*s", (int)lock->size, lock->bytes);
    const int size =
        told == NULL ? 0
                     : snprintf(payload, sizeof payload, "%lld %.*s", (long long)fake_ttl(node, fake_find(node, lock)),
                                told->first.token_size, told->first.token);
    if (node->publish != NULL) {
        (void)node->publish(node->publish_ctx, channel, (size_t)channel_size, payload, (size_t)size);
    }
}

bool fake_is_token(const struct fake_part *part, const struct sim_argument *token) {
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

bool fake_is_living(const struct fake_node *node, const struct fake_part *waiter, const struct sim_argument *own) {
    if (waiter == NULL || !is_channel(waiter) ||
        (node->now_ms > waiter->good_until_ms && !REDLOCK_PLANTED(QUEUE_SERVES_STALE))) {
        return false;
    }
    return (own != NULL && fake_is_token(waiter, own)) || REDLOCK_PLANTED(QUEUE_COUNTS_PATTERNS) ||
           (node->hears != NULL && node->hears(node->publish_ctx, waiter->channel, waiter->channel_size));
}

/* The first in line, who has the lock now. Returns whether it knows. */
static bool hand_over(struct fake_node *node, const struct sim_argument *lock, const struct fake_part *waiter,
                      const struct sim_argument *own, bool shared) {
    const struct sim_argument token = {waiter->token, waiter->token_size};
    const bool reads = fake_reads(waiter->token, waiter->token_size);
    if (!reads) {
        struct fake_key *key = fake_add(node, lock, &token);
        if (key != NULL) {
            key->expires_ms = node->now_ms + waiter->ttl_ms;
        }
    } else {
        if (!shared) {
            fake_delete_lock(node, lock);
        }
        fake_join(node, lock, &token, waiter->ttl_ms);
    }
    if (fake_is_token(waiter, own) || fake_publish(node, lock, waiter, false)) {
        return true;
    }
    struct fake_key *set = reads ? fake_find(node, lock) : NULL;
    if (set != NULL) {
        fake_end_reading(node, set, fake_find_part(node, set, token.bytes, token.size));
    }
    return false;
}

/* Takes the first out of the queue, and its field out of the hash, if it is dead or fits. Returns
 * whether there is one; `living` if it gets the lock. */
static bool take_first(struct fake_node *node, struct fake_key *queue, struct fake_key *waiters,
                       const struct sim_argument *own, bool shared, unsigned told, struct fake_part *waiter,
                       bool *living) {
    struct fake_part *first = fake_first_part(node, queue);
    if (first == NULL) {
        return false;
    }
    struct fake_part *part = fake_find_part(node, waiters, first->token, first->token_size);
    const bool reads = fake_reads(first->token, first->token_size);
    *living = fake_is_living(node, part, own);
    *waiter = part != NULL ? *part : (struct fake_part){.set = 0};
    const bool keeps = !reads && !REDLOCK_PLANTED(SHARED_WRITER_JOINS);
    if (shared && *living && (keeps || told >= READERS_MAX)) {
        return false;
    }
    fake_drop_part(node, queue, first);
    fake_drop_part(node, waiters, part);
    return true;
}

enum fake_served fake_serve(struct fake_node *node, const struct sim_argument *a, const struct sim_argument *own,
                            bool shared, struct fake_told *told) {
    struct fake_key *queue, *waiters;
    struct fake_part waiter;
    bool living = false;
    *told = (struct fake_told){.count = 0};
    for (unsigned i = 0; i < (REDLOCK_PLANTED(QUEUE_SERVES_FEW) ? 64 : ENTRIES_MAX); i++) {
        /* A set that is empty is gone, and the next one may have its place. */
        if (!fake_find_set(node, &a[1], FAKE_ZSET, &queue)) {
            return FAKE_WRONG_TYPE;
        }
        if (!fake_find_set(node, &a[2], FAKE_HASH, &waiters)) {
            struct fake_part *first = shared ? NULL : fake_first_part(node, queue);
            fake_drop_part(node, queue, first); /* it was popped */
            return FAKE_WRONG_TYPE;
        }
        if (!take_first(node, queue, waiters, own, shared, told->count, &waiter, &living)) {
            if (told->count >= READERS_MAX && living && fake_reads(waiter.token, waiter.token_size)) {
                (void)fake_publish(node, &a[0], &waiter, true);
            }
            break;
        }
        if (!living || !hand_over(node, &a[0], &waiter, own, shared)) {
            continue;
        }
        told->own = told->own || fake_is_token(&waiter, own);
        told->first = told->count++ == 0 ? waiter : told->first;
        if (!fake_reads(waiter.token, waiter.token_size)) {
            break;
        }
        shared = true;
    }
    return told->count > 0 ? FAKE_SERVED : FAKE_NOBODY;
}

struct fake_part *fake_put_part(struct fake_node *node, const struct fake_key *set, const struct sim_argument *token) {
    struct fake_part *part = fake_find_part(node, set, token->bytes, token->size);
    return part != NULL ? part : add_part(node, set, token, &(unsigned){0});
}

void fake_delete_lock(struct fake_node *node, const struct sim_argument *name) {
    struct fake_key *key = fake_find(node, name);
    if (key != NULL) {
        fake_delete(node, key);
    }
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
