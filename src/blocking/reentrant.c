/* The table of reentrant holds: a hash table under one mutex. Threads of one owner wait for each
 * other. */
#include "blocking/reentrant.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"

#define NS_PER_S INT64_C(1000000000)

struct redlock_hold_owner redlock_hold_owner_of(uint64_t id) {
    /*
     * An id that no other thread of this process ever had. The system reuses pthread_self() and
     * gettid(), so a new thread would own the holds of a dead one. All clients share this counter;
     * only its uniqueness matters.
     */
    static atomic_uint_least64_t last;
    static _Thread_local uint64_t own;
    if (id) {
        return (struct redlock_hold_owner){.is_thread = false, .id = id};
    }
    if (!own) {
        own = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    }
    return (struct redlock_hold_owner){.is_thread = true, .id = own};
}

static bool same_owner(struct redlock_hold_owner a, struct redlock_hold_owner b) {
    return a.is_thread == b.is_thread && a.id == b.id;
}

/* Nobody attacks their own client with chosen names. */
static uint64_t hash_of(const char *resource) {
    const uint64_t hash = redlock_hash(resource, strlen(resource));
    return hash ^ hash >> 32;
}

int redlock_reentrant_init(struct redlock_reentrant *table, uint32_t count_max) {
    pthread_condattr_t attributes;
    *table = (struct redlock_reentrant){.count_max = count_max, .bucket_count = REDLOCK_HOLD_BUCKETS_FIRST};
    atomic_init(&table->holds, 0);
    table->buckets = calloc(table->bucket_count, sizeof *table->buckets);
    if (!table->buckets) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    if (pthread_condattr_init(&attributes) != 0) {
        goto free_buckets;
    }
    if (pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) != 0 ||
        pthread_cond_init(&table->decided, &attributes) != 0) {
        goto destroy_attributes;
    }
    if (pthread_mutex_init(&table->mutex, NULL) != 0) {
        goto destroy_condition;
    }
    pthread_condattr_destroy(&attributes);
    return REDLOCK_OK;
destroy_condition:
    pthread_cond_destroy(&table->decided);
destroy_attributes:
    pthread_condattr_destroy(&attributes);
free_buckets:
    free(table->buckets);
    return REDLOCK_ERR_SYSTEM;
}

static void free_holds(struct redlock_reentrant *table) {
    for (size_t i = 0; i < table->bucket_count; i++) {
        while (table->buckets[i]) {
            struct redlock_hold *hold = table->buckets[i];
            table->buckets[i] = hold->next;
            free(hold);
        }
    }
    free(table->buckets);
}

void redlock_reentrant_destroy(struct redlock_reentrant *table) {
    free_holds(table);
    pthread_cond_destroy(&table->decided);
    pthread_mutex_destroy(&table->mutex);
}

void redlock_reentrant_abandon(struct redlock_reentrant *table) {
    if (pthread_mutex_trylock(&table->mutex) != 0) {
        return;
    }
    free_holds(table);
    pthread_mutex_unlock(&table->mutex);
}

static void lock(struct redlock_reentrant *table) {
    int failed = pthread_mutex_lock(&table->mutex);
    assert(failed == 0);
    (void)failed;
}

static void unlock(struct redlock_reentrant *table) {
    int failed = pthread_mutex_unlock(&table->mutex);
    assert(failed == 0);
    (void)failed;
}

static struct redlock_hold **bucket_of(const struct redlock_reentrant *table, uint64_t hash) {
    assert((table->bucket_count & (table->bucket_count - 1)) == 0);
    return &table->buckets[hash & (table->bucket_count - 1)];
}

static struct redlock_hold *find(const struct redlock_reentrant *table, const char *resource, uint64_t hash,
                                 struct redlock_hold_owner owner) {
    struct redlock_hold *hold = *bucket_of(table, hash);
    while (hold && !(hold->hash == hash && same_owner(hold->owner, owner) && strcmp(hold->resource, resource) == 0)) {
        hold = hold->next;
    }
    return hold;
}

/* Finds HELD holds only: after the release, another lease may have this address. */
static struct redlock_hold *find_lease(const struct redlock_reentrant *table, const redlock_lease *lease) {
    struct redlock_hold *hold = *bucket_of(table, hash_of(redlock_lease_resource(lease)));
    while (hold && !(hold->state == REDLOCK_HOLD_HELD && hold->lease == lease)) {
        hold = hold->next;
    }
    return hold;
}

/* Doubles the buckets. Without memory, the chains grow longer instead. */
static void grow(struct redlock_reentrant *table) {
    size_t old_count = table->bucket_count;
    struct redlock_hold **old = table->buckets;
    struct redlock_hold **buckets = calloc(old_count * 2, sizeof *buckets);
    if (!buckets) {
        return;
    }
    table->buckets = buckets;
    table->bucket_count = old_count * 2;
    for (size_t i = 0; i < old_count; i++) {
        while (old[i]) {
            struct redlock_hold *hold = old[i];
            old[i] = hold->next;
            struct redlock_hold **bucket = bucket_of(table, hold->hash);
            hold->next = *bucket;
            *bucket = hold;
        }
    }
    free(old);
}

static struct redlock_hold *add(struct redlock_reentrant *table, const char *resource, uint64_t hash,
                                struct redlock_hold_owner owner) {
    size_t size = strlen(resource) + 1;
    struct redlock_hold *hold = malloc(sizeof *hold + size);
    if (!hold) {
        return NULL;
    }
    if (atomic_fetch_add_explicit(&table->holds, 1, memory_order_relaxed) >= table->bucket_count) {
        grow(table);
    }
    struct redlock_hold **bucket = bucket_of(table, hash);
    *hold = (struct redlock_hold){.next = *bucket, .state = REDLOCK_HOLD_TAKING, .owner = owner, .hash = hash};
    memcpy(hold->resource, resource, size);
    *bucket = hold;
    return hold;
}

static void drop(struct redlock_reentrant *table, struct redlock_hold *hold) {
    assert(hold->state != REDLOCK_HOLD_HELD);
    struct redlock_hold **link = bucket_of(table, hold->hash);
    while (*link != hold) {
        link = &(*link)->next;
    }
    *link = hold->next;
    atomic_fetch_sub_explicit(&table->holds, 1, memory_order_relaxed);
    free(hold);
}

static int64_t read_ns(clockid_t clock) {
    struct timespec now;
    int failed = clock_gettime(clock, &now);
    assert(failed == 0);
    (void)failed;
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* False when the deadline has passed. The deadline is CLOCK_BOOTTIME (R2). A condition variable
 * cannot wait by that clock, so it only wakes us. */
static bool wait_until(struct redlock_reentrant *table, int64_t deadline_ns) {
    int failed;
    if (deadline_ns == INT64_MAX) {
        table->waiting++;
        failed = pthread_cond_wait(&table->decided, &table->mutex);
    } else {
        int64_t left_ns = deadline_ns - read_ns(CLOCK_BOOTTIME);
        if (left_ns <= 0) {
            return false;
        }
        int64_t until_ns = read_ns(CLOCK_MONOTONIC) + left_ns;
        struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S)};
        table->waiting++;
        failed = pthread_cond_timedwait(&table->decided, &table->mutex, &until);
    }
    table->waiting--;
    assert(failed == 0 || failed == ETIMEDOUT);
    (void)failed;
    return true;
}

static enum redlock_enter share(const struct redlock_reentrant *table, struct redlock_hold *hold, redlock_lease **lease,
                                int *code) {
    assert(hold->state == REDLOCK_HOLD_HELD && hold->count > 0 && hold->lease);
    if (redlock_lease_validity_ms(hold->lease) == 0) {
        *code = REDLOCK_ERR_LOST;
    } else if (hold->count >= table->count_max) {
        *code = REDLOCK_ERR_LIMIT;
    } else {
        hold->count++;
        *lease = hold->lease;
        return REDLOCK_ENTER_SHARED;
    }
    return REDLOCK_ENTER_ERROR;
}

enum redlock_enter redlock_reentrant_enter(struct redlock_reentrant *table, const char *resource,
                                           struct redlock_hold_owner owner, int64_t deadline_ns,
                                           const struct redlock_cancellable *call, struct redlock_hold **hold,
                                           redlock_lease **lease, int *code) {
    uint64_t hash = hash_of(resource);
    enum redlock_enter entered = REDLOCK_ENTER_ERROR;
    lock(table);
    for (;;) {
        struct redlock_hold *found = find(table, resource, hash, owner);
        if (!found) {
            *hold = add(table, resource, hash, owner);
            if (*hold) {
                entered = REDLOCK_ENTER_TAKE;
            } else {
                *code = REDLOCK_ERR_NO_MEMORY;
            }
            break;
        }
        if (found->state == REDLOCK_HOLD_HELD) {
            entered = share(table, found, lease, code);
            break;
        }
        if (redlock_cancellable_is_cancelled(call)) {
            *code = REDLOCK_ERR_CANCELLED;
            break;
        }
        if (!wait_until(table, deadline_ns)) {
            *code = REDLOCK_ERR_CONTENDED;
            break;
        }
    }
    unlock(table);
    return entered;
}

/* Wakes all: they wait for different holds, and they are few. */
static void wake_waiting(struct redlock_reentrant *table) {
    if (table->waiting > 0) {
        pthread_cond_broadcast(&table->decided);
    }
}

void redlock_reentrant_wake(struct redlock_reentrant *table) {
    lock(table);
    wake_waiting(table);
    unlock(table);
}

void redlock_reentrant_acquire_done(struct redlock_reentrant *table, struct redlock_hold *hold, redlock_lease *lease) {
    lock(table);
    assert(hold->state == REDLOCK_HOLD_TAKING);
    if (lease) {
        hold->state = REDLOCK_HOLD_HELD;
        hold->lease = lease;
        hold->count = 1;
    } else {
        drop(table, hold);
    }
    wake_waiting(table);
    unlock(table);
}

static enum redlock_exit exit_hold(struct redlock_hold *hold, struct redlock_hold_owner owner, bool forget) {
    assert(hold->state == REDLOCK_HOLD_HELD && hold->count > 0);
    if (!same_owner(hold->owner, owner) && !(forget && !hold->owner.is_thread)) {
        return REDLOCK_EXIT_REFUSED;
    }
    if (hold->count == 1) {
        hold->state = REDLOCK_HOLD_GIVING;
        return REDLOCK_EXIT_LAST;
    }
    if (!forget) {
        hold->count--;
    }
    return REDLOCK_EXIT_RETAINED;
}

static enum redlock_exit find_and_exit(struct redlock_reentrant *table, redlock_lease *lease,
                                       struct redlock_hold_owner owner, bool forget, struct redlock_hold **hold) {
    enum redlock_exit exited = REDLOCK_EXIT_STRANGE;
    /* The owner of a reentrant lease has seen its hold added, so its thread cannot read 0 here. */
    if (atomic_load_explicit(&table->holds, memory_order_relaxed) == 0) {
        return exited;
    }
    lock(table);
    *hold = find_lease(table, lease);
    if (*hold) {
        exited = exit_hold(*hold, owner, forget);
    }
    unlock(table);
    return exited;
}

enum redlock_exit redlock_reentrant_exit(struct redlock_reentrant *table, redlock_lease *lease,
                                         struct redlock_hold_owner owner, struct redlock_hold **hold) {
    return find_and_exit(table, lease, owner, false, hold);
}

enum redlock_exit redlock_reentrant_forget(struct redlock_reentrant *table, redlock_lease *lease,
                                           struct redlock_hold_owner thread, struct redlock_hold **hold) {
    return find_and_exit(table, lease, thread, true, hold);
}

void redlock_reentrant_release_done(struct redlock_reentrant *table, struct redlock_hold *hold, bool ended) {
    lock(table);
    assert(hold->state == REDLOCK_HOLD_GIVING);
    if (ended) {
        drop(table, hold);
    } else {
        hold->state = REDLOCK_HOLD_HELD;
    }
    wake_waiting(table);
    unlock(table);
}
