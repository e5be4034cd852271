/* What the script RELEASE does, on the fake node, and how others see the queue. */
#include "core/operation.h"
#include "core/planted.h"
#include "fake_queue.h"

#define TOLD_MAX   3
#define LOOKED_MAX 64 /* by one who gives up */

/* Both in a row, in `name`, which has room for two names. */
static struct sim_argument join(const struct sim_argument *first, const struct sim_argument *second, char *name) {
    const size_t sizes[] = {first->size < FAKE_NAME_MAX ? first->size : FAKE_NAME_MAX,
                            second->size < FAKE_NAME_MAX ? second->size : FAKE_NAME_MAX};
    const char *end = fake_bytes(fake_bytes(name, first->bytes, sizes[0]), second->bytes, sizes[1]);
    return (struct sim_argument){name, (size_t)(end - name)};
}

void fake_name_queue(struct fake_names *names, const struct sim_argument *lock, const struct sim_argument *suffix,
                     const struct sim_argument *token) {
    names->of[0] = *lock;
    names->of[1] = join(lock, suffix, names->queue);
    names->of[2] = join(&names->of[1], &(struct sim_argument){"er", 2}, names->waiters);
    names->of[3] = *token;
}

static bool is_known(const struct fake_part *const *told, unsigned count, const struct fake_part *waiter) {
    for (unsigned i = 0; i < count; i++) {
        if (told[i]->channel_size == waiter->channel_size &&
            memcmp(told[i]->channel, waiter->channel, waiter->channel_size) == 0) {
            return true;
        }
    }
    return false;
}

/* a: lock, queue, waiters. Tells the first in line of three processes that the lock is left free.
 * NOBODY of so many listens. */
static enum fake_served tell_left(struct fake_node *node, const struct sim_argument *a, unsigned looked_max) {
    const struct fake_part *told[FAKE_PARTS_MAX];
    struct fake_part *parts[FAKE_PARTS_MAX];
    struct fake_key *queue, *waiters;
    unsigned told_count = 0, heard = 0;
    if (!fake_find_set(node, &a[1], FAKE_ZSET, &queue) || !fake_find_set(node, &a[2], FAKE_HASH, &waiters)) {
        return FAKE_WRONG_TYPE;
    }
    const unsigned count = REDLOCK_PLANTED(LEFT_UNTOLD) ? 0 : fake_sort_parts(node, queue, parts);
    for (unsigned i = 0; i < count && i < looked_max && heard < TOLD_MAX; i++) {
        const struct fake_part *waiter = fake_find_part(node, waiters, parts[i]->token, parts[i]->token_size);
        if (fake_is_living(node, waiter, NULL) && !is_known(told, told_count, waiter)) {
            told[told_count++] = waiter;
            heard += fake_publish(node, &a[0], waiter, true);
        }
    }
    return heard > 0 || (REDLOCK_PLANTED(LEFT_UNTOLD) && waiters != NULL) ? FAKE_SERVED : FAKE_NOBODY;
}

/* a: lock, queue, waiters. NOBODY can be told, so the lock is not left. */
static enum fake_served leave_free(struct fake_node *node, const struct sim_argument *a, int64_t ms) {
    const enum fake_served told = ms <= REDLOCK_HAND_NOBODY ? FAKE_NOBODY : tell_left(node, a, FAKE_PARTS_MAX);
    struct fake_part *left = NULL;
    if (told == FAKE_SERVED) {
        const struct sim_argument name = {FAKE_LEFT, sizeof FAKE_LEFT - 1};
        left = fake_put_part(node, fake_find(node, &a[2]), &name);
    }
    if (left == NULL) {
        return told == FAKE_WRONG_TYPE ? FAKE_WRONG_TYPE : FAKE_NOBODY;
    }
    left->good_until_ms = node->now_ms + ms;
    fake_delete_lock(node, &a[0]);
    return FAKE_SERVED;
}

/* What a RELEASE finds of its token. */
struct found {
    int64_t result; /* 1: it had the lock */
    bool shared;    /* others read it, now that the token does not */
    bool was_held;  /* the lock is somebody's, or was the token's */
    bool read;      /* it had an entry */
};

/* False if the server refuses it, with the reply. */
static bool take_away(struct fake_node *node, const struct sim_argument *names, struct found *found,
                      struct fake_reply *reply) {
    const struct sim_argument *token = &names[3];
    struct fake_key *lock = fake_find(node, &names[0]);
    *found = (struct found){.result = lock == NULL ? 0 : -1, .was_held = lock != NULL};
    if (lock == NULL || fake_holds(lock, token)) {
        found->result = lock != NULL;
        return lock == NULL || !fake_refused(node, false, reply);
    }
    found->shared = fake_is_read(node, lock);
    struct fake_part *entry = found->shared ? fake_find_part(node, lock, token->bytes, token->size) : NULL;
    if (entry != NULL) {
        if (fake_refused(node, false, reply)) {
            return false;
        }
        found->read = true;
        found->result = entry->ticket >= node->now_ms;
        if (REDLOCK_PLANTED(SHARED_RELEASE_ALL)) {
            fake_delete(node, lock);
        } else {
            fake_end_reading(node, lock, entry);
        }
        found->shared = fake_find(node, &names[0]) != NULL;
    }
    return true;
}

/* Whether it stood in line. */
static bool leave_line(struct fake_node *node, const struct sim_argument *names) {
    const bool was_queued = fake_leave(node, &names[1], FAKE_ZSET, &names[3]);
    if (was_queued) {
        (void)fake_leave(node, &names[2], FAKE_HASH, &names[3]);
    }
    return was_queued;
}

/* To whom the lock goes. */
static enum fake_served hand_on(struct fake_node *node, const struct sim_argument *names, const struct found *found,
                                int64_t handing, struct fake_told *told) {
    *told = (struct fake_told){.count = 0};
    if (!found->was_held) {
        (void)tell_left(node, names, LOOKED_MAX);
        return FAKE_NOBODY;
    }
    const enum fake_served left = found->shared ? FAKE_NOBODY : leave_free(node, names, handing);
    return left == FAKE_NOBODY && handing != REDLOCK_HAND_NOBODY
               ? fake_serve(node, names, &names[3], found->shared, told)
               : left;
}

void fake_queue_release(struct fake_node *node, const struct sim_argument *a, int64_t handing, size_t count,
                        struct fake_reply *reply) {
    const bool looks = count > 3, announces = count > 4;
    const struct sim_argument plain = {REDLOCK_WAIT_SUFFIX, sizeof REDLOCK_WAIT_SUFFIX - 1};
    struct fake_names all;
    struct found found;
    fake_name_queue(&all, &a[0], count > 2 ? &a[2] : &plain, &a[1]);
    const struct sim_argument *names = all.of;
    struct fake_key *lock = fake_find(node, &a[0]);
    const bool is_string = lock != NULL && fake_holds(lock, &a[1]);
    if (!looks && is_string && (!lock->marked || REDLOCK_PLANTED(MARK_DELETED))) {
        if (!fake_refused(node, false, reply)) {
            fake_reply_integer(reply, 1);
            fake_delete_lock(node, &a[0]);
        }
        return;
    }
    if (!take_away(node, names, &found, reply)) {
        return;
    }
    fake_reply_integer(reply, found.result);
    if (!is_string) {
        const bool was_queued = !REDLOCK_PLANTED(QUEUE_RELEASE_STAYS) && leave_line(node, names);
        const bool quiet = found.shared && REDLOCK_PLANTED(SHARED_LEAVES_QUIETLY);
        if (quiet || (!found.read && !(was_queued && (found.shared || !found.was_held)))) {
            return;
        }
    }
    const bool waits = fake_find(node, &names[1]) != NULL;
    if (waits) {
        struct fake_told told;
        (void)leave_line(node, names);
        if (hand_on(node, names, &found, handing, &told) == FAKE_SERVED || told.count > 0) {
            reply->integer = found.result == 1 ? 2 : found.result;
            if (announces) {
                fake_announce(node, &a[0], told.count > 0 ? &told : NULL);
            }
            return;
        }
    }
    if (!is_string && (!waits || !found.was_held || found.shared)) {
        return;
    }
    fake_delete_lock(node, &a[0]);
    if (announces) {
        fake_announce(node, &a[0], NULL);
    }
}

static int64_t waited_ms(const struct fake_node *node, const struct fake_part *part) {
    const int64_t waited_us = node->now_us - part->ticket;
    return waited_us < 0 ? 0 : waited_us / 1000;
}

void fake_queue_look(struct fake_node *node, const struct sim_argument *a, struct fake_reply *reply) {
    char name[2 * FAKE_NAME_MAX], hash[2 * FAKE_NAME_MAX + 2];
    const struct sim_argument queue = join(&a[0], &a[1], name);
    const struct sim_argument waiters = join(&queue, &(struct sim_argument){"er", 2}, hash);
    struct fake_part *parts[FAKE_PARTS_MAX];
    struct fake_key *set, *fields;
    reply->rank = reply->ttl_ms = -1;
    if (a[1].size == 0 || !fake_find_set(node, &queue, FAKE_ZSET, &set)) {
        return;
    }
    const bool readable = fake_find_set(node, &waiters, FAKE_HASH, &fields);
    const unsigned count = fake_sort_parts(node, set, parts);
    reply->rank = readable ? 0 : count;
    for (unsigned i = 0; readable && i < count; i++) {
        if (fake_is_living(node, fake_find_part(node, fields, parts[i]->token, parts[i]->token_size), NULL)) {
            reply->ttl_ms = reply->rank++ == 0 ? waited_ms(node, parts[i]) : reply->ttl_ms;
            if (i < 64) {
                fake_name(node, reply, 'w', parts[i], waited_ms(node, parts[i]));
            }
        }
    }
}
