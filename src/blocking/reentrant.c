/* The table of reentrant holds: a hash table under one mutex. Threads of one owner wait for each
 * other. */
#include "blocking/reentrant.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

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
    assert(count_max > 0);
    *table = (struct redlock_reentrant){.count_max = count_max, .bucket_count = REDLOCK_HOLD_BUCKETS_FIRST};
    atomic_init(&table->holds, 0);
    table->buckets = calloc(table->bucket_count, sizeof *table->buckets);
    const int code = table->buckets ? redlock_monitor_init(&table->monitor) : REDLOCK_ERR_NO_MEMORY;
    if (code != REDLOCK_OK) {
        free(table->buckets);
    }
    return code;
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
    assert(table->waiting == 0);
    redlock_monitor_destroy(&table->monitor);
}

void redlock_reentrant_abandon(struct redlock_reentrant *table) {
    if (pthread_mutex_trylock(&table->monitor.mutex) == 0) {
        free_holds(table);
        redlock_monitor_unlock(&table->monitor);
    }
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
                                struct redlock_hold_owner owner, bool reads) {
    size_t size = strlen(resource) + 1;
    struct redlock_hold *hold = malloc(sizeof *hold + size);
    if (!hold) {
        return NULL;
    }
    if (atomic_fetch_add_explicit(&table->holds, 1, memory_order_relaxed) >= table->bucket_count) {
        grow(table);
    }
    struct redlock_hold **bucket = bucket_of(table, hash);
    *hold = (struct redlock_hold){
        .next = *bucket, .state = REDLOCK_HOLD_TAKING, .reads = reads, .owner = owner, .hash = hash};
    memcpy(hold->resource, resource, size);
    *bucket = hold;
    return hold;
}

static void drop(struct redlock_reentrant *table, struct redlock_hold *hold) {
    assert(hold->state != REDLOCK_HOLD_HELD);
    struct redlock_hold **link = bucket_of(table, hold->hash);
    while (*link != hold) {
        assert(*link); /* it is in its bucket */
        link = &(*link)->next;
    }
    *link = hold->next;
    const size_t before = atomic_fetch_sub_explicit(&table->holds, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    free(hold);
}

static int share(const struct redlock_reentrant *table, struct redlock_hold *hold, bool reads, redlock_lease **lease) {
    assert(hold->state == REDLOCK_HOLD_HELD && hold->count > 0 && hold->lease);
    if (hold->reads && !reads) {
        return REDLOCK_ERR_UPGRADE;
    }
    if (redlock_lease_validity_ms(hold->lease) == 0) {
        return REDLOCK_ERR_LOST;
    }
    if (hold->count >= table->count_max) {
        return REDLOCK_ERR_LIMIT;
    }
    hold->count++;
    *lease = hold->lease;
    return REDLOCK_OK;
}

/* By CLOCK_BOOTTIME (R2). False when the deadline has passed. */
static bool wait_until(struct redlock_reentrant *table, int64_t deadline_ns) {
    table->waiting++;
    const bool waited = redlock_monitor_wait(&table->monitor, CLOCK_BOOTTIME, deadline_ns);
    table->waiting--;
    return waited;
}

int redlock_reentrant_enter(struct redlock_reentrant *table, const char *resource, struct redlock_hold_owner owner,
                            bool reads, int64_t deadline_ns, const struct redlock_cancellable *call,
                            struct redlock_hold **hold, redlock_lease **lease) {
    const uint64_t hash = hash_of(resource);
    struct redlock_hold *found;
    int code = REDLOCK_OK;
    *hold = NULL;
    redlock_monitor_lock(&table->monitor);
    while ((found = find(table, resource, hash, owner)) && found->state != REDLOCK_HOLD_HELD && code == REDLOCK_OK) {
        if (redlock_cancellable_is_cancelled(call)) {
            code = REDLOCK_ERR_CANCELLED;
        } else if (!wait_until(table, deadline_ns)) {
            code = REDLOCK_ERR_CONTENDED;
        }
    }
    if (code == REDLOCK_OK && found) {
        code = share(table, found, reads, lease);
    } else if (code == REDLOCK_OK) {
        *hold = add(table, resource, hash, owner, reads);
        code = *hold ? REDLOCK_OK : REDLOCK_ERR_NO_MEMORY;
    }
    redlock_monitor_unlock(&table->monitor);
    return code;
}

/* Wakes all: they wait for different holds, and they are few. */
static void wake_waiting(struct redlock_reentrant *table) {
    if (table->waiting > 0) {
        redlock_monitor_notify(&table->monitor);
    }
}

void redlock_reentrant_wake(struct redlock_reentrant *table) {
    redlock_monitor_lock(&table->monitor);
    wake_waiting(table);
    redlock_monitor_unlock(&table->monitor);
}

void redlock_reentrant_acquire_done(struct redlock_reentrant *table, struct redlock_hold *hold, redlock_lease *lease) {
    redlock_monitor_lock(&table->monitor);
    assert(hold->state == REDLOCK_HOLD_TAKING && !hold->lease && hold->count == 0);
    if (lease) {
        hold->state = REDLOCK_HOLD_HELD;
        hold->lease = lease;
        hold->count = 1;
    } else {
        drop(table, hold);
    }
    wake_waiting(table);
    redlock_monitor_unlock(&table->monitor);
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

int redlock_reentrant_downgrade(struct redlock_reentrant *table, const redlock_lease *lease,
                                struct redlock_hold **hold) {
    int code = REDLOCK_OK;
    *hold = NULL;
    /* As for the exit: who asks for its lease has seen it added. */
    if (atomic_load_explicit(&table->holds, memory_order_relaxed) == 0) {
        return code;
    }
    redlock_monitor_lock(&table->monitor);
    struct redlock_hold *found = find_lease(table, lease);
    if (found && !found->reads && found->count > 1) {
        code = REDLOCK_ERR_BUSY;
    } else if (found && !found->reads) {
        found->reads = true;
        *hold = found;
    }
    redlock_monitor_unlock(&table->monitor);
    return code;
}

void redlock_reentrant_downgrade_refused(struct redlock_reentrant *table, struct redlock_hold *hold) {
    redlock_monitor_lock(&table->monitor);
    assert(hold->reads);
    hold->reads = false;
    redlock_monitor_unlock(&table->monitor);
}

enum redlock_exit redlock_reentrant_exit(struct redlock_reentrant *table, redlock_lease *lease,
                                         struct redlock_hold_owner owner, bool forget, struct redlock_hold **hold) {
    enum redlock_exit exited = REDLOCK_EXIT_STRANGE;
    /* The owner of a reentrant lease has seen its hold added, so its thread cannot read 0 here. */
    if (atomic_load_explicit(&table->holds, memory_order_relaxed) == 0) {
        return exited;
    }
    redlock_monitor_lock(&table->monitor);
    struct redlock_hold *found = find_lease(table, lease);
    if (found) {
        exited = exit_hold(found, owner, forget);
        assert(exited != REDLOCK_EXIT_STRANGE);
        *hold = exited == REDLOCK_EXIT_LAST ? found : NULL;
    }
    redlock_monitor_unlock(&table->monitor);
    return exited;
}

void redlock_reentrant_release_done(struct redlock_reentrant *table, struct redlock_hold *hold, bool ended) {
    redlock_monitor_lock(&table->monitor);
    assert(hold->state == REDLOCK_HOLD_GIVING);
    assert(hold->lease && hold->count == 1);
    if (ended) {
        drop(table, hold);
    } else {
        hold->state = REDLOCK_HOLD_HELD;
    }
    wake_waiting(table);
    redlock_monitor_unlock(&table->monitor);
}
