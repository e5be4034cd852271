/* The table of reentrant holds, state by state, with fake leases and allocations that fail on
 * demand. */
#include "test.h"
#include <time.h>
#include <unistd.h>

#include "blocking/reentrant.h"

#define NEVER_NS INT64_MAX

struct redlock_lease {
    const char *resource;
    int64_t validity_ms;
};

int64_t redlock_lease_validity_ms(const redlock_lease *lease) {
    return lease->validity_ms;
}

const char *redlock_lease_resource(const redlock_lease *lease) {
    return lease->resource;
}

static bool out_of_memory;
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_malloc(size_t size) {
    return out_of_memory ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return out_of_memory ? NULL : __real_calloc(count, size);
}

/* The machine was suspended for this long: only CLOCK_BOOTTIME has gone on. */
static time_t suspended_s;
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = __real_clock_gettime(clock, now);
    now->tv_sec += clock == CLOCK_BOOTTIME ? suspended_s : 0;
    return failed;
}

static struct redlock_reentrant table;

static int set_up(UNUSED void **state) {
    return redlock_reentrant_init(&table, UINT32_MAX);
}

static int tear_down(UNUSED void **state) {
    redlock_reentrant_destroy(&table);
    return 0;
}

static struct redlock_hold_owner id(uint64_t number) {
    return redlock_hold_owner_of(number);
}

static int64_t from_now_ns(int64_t ms) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec + ms * 1000000;
}

/* One call of redlock_reentrant_enter(), and what came of it. */
struct entrant {
    pthread_t thread;
    const char *resource;
    struct redlock_hold_owner owner;
    bool reads;
    int64_t deadline_ns;
    struct redlock_cancellable call;
    struct redlock_hold *hold;
    redlock_lease *lease;
    int code;
};

static void *enter(void *data) {
    struct entrant *entrant = data;
    entrant->code = redlock_reentrant_enter(&table, entrant->resource, entrant->owner, entrant->reads,
                                            entrant->deadline_ns, &entrant->call, &entrant->hold, &entrant->lease);
    return NULL;
}

/* It must acquire itself. */
static void assert_takes(const struct entrant *entrant) {
    assert_is(entrant->code, REDLOCK_OK);
    assert_non_null(entrant->hold);
    assert_null(entrant->lease);
}

/* It got the lease of its owner. */
static void assert_shares(const struct entrant *entrant) {
    assert_is(entrant->code, REDLOCK_OK);
    assert_null(entrant->hold);
    assert_non_null(entrant->lease);
}

static struct redlock_hold *take(const char *resource, struct redlock_hold_owner owner, redlock_lease *lease) {
    struct entrant entrant = {.resource = resource, .owner = owner, .deadline_ns = NEVER_NS};
    enter(&entrant);
    assert_takes(&entrant);
    if (lease) {
        redlock_reentrant_acquire_done(&table, entrant.hold, lease);
    }
    return entrant.hold;
}

static redlock_lease *share(const char *resource, struct redlock_hold_owner owner) {
    struct entrant entrant = {.resource = resource, .owner = owner, .deadline_ns = NEVER_NS};
    enter(&entrant);
    assert_shares(&entrant);
    return entrant.lease;
}

static int refused(const char *resource, struct redlock_hold_owner owner, int64_t deadline_ns) {
    struct entrant entrant = {.resource = resource, .owner = owner, .deadline_ns = deadline_ns};
    enter(&entrant);
    assert_null(entrant.hold);
    assert_null(entrant.lease);
    return entrant.code;
}

static void give(redlock_lease *lease, struct redlock_hold_owner owner) {
    struct redlock_hold *hold = NULL;
    assert_is(redlock_reentrant_exit(&table, lease, owner, false, &hold), REDLOCK_EXIT_LAST);
    redlock_reentrant_release_done(&table, hold, true);
}

#define FRESH_TEST(name)                                                                                               \
    TEST_HAS(name, set_up, tear_down, NULL, ((redlock_lease){.resource = "r", .validity_ms = 9}),                      \
             UNUSED redlock_lease lease)

FRESH_TEST(only_the_last_leave_releases) {
    struct redlock_hold *hold = NULL;
    take("r", id(0), &lease);
    assert_ptr_equal(share("r", id(0)), &lease);
    assert_ptr_equal(share("r", id(0)), &lease);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_RETAINED);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_RETAINED);
    assert_ptr_equal(share("r", id(0)), &lease);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_RETAINED);
    give(&lease, id(0));
    assert_int_equal(atomic_load(&table.holds), 0);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_STRANGE);
    take("r", id(0), &lease);
    give(&lease, id(0));
}

FRESH_TEST(another_owner_is_a_stranger) {
    struct redlock_hold *hold = NULL;
    take("r", id(7), &lease);
    redlock_reentrant_acquire_done(&table, take("r", id(8), NULL), NULL);
    redlock_reentrant_acquire_done(&table, take("r", id(0), NULL), NULL);
    redlock_reentrant_acquire_done(&table, take("other", id(7), NULL), NULL);
    assert_is(redlock_reentrant_exit(&table, &lease, id(8), false, &hold), REDLOCK_EXIT_REFUSED);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_REFUSED);
    give(&lease, id(7));
}

FRESH_TEST(a_lease_that_is_not_reentrant_is_not_in_the_table) {
    redlock_lease other = {.resource = "r", .validity_ms = 9};
    struct redlock_hold *hold = NULL;
    assert_is(redlock_reentrant_exit(&table, &other, id(0), false, &hold), REDLOCK_EXIT_STRANGE);
    take("r", id(0), &lease);
    assert_is(redlock_reentrant_exit(&table, &other, id(0), false, &hold), REDLOCK_EXIT_STRANGE);
    assert_is(redlock_reentrant_exit(&table, &other, id(0), true, &hold), REDLOCK_EXIT_STRANGE);
    give(&lease, id(0));
}

FRESH_TEST(an_id_and_a_thread_of_the_same_number_are_two) {
    struct redlock_hold_owner thread = id(0), named = id(thread.id);
    assert_true(thread.is_thread);
    assert_false(named.is_thread);
    assert_int_equal(thread.id, named.id);
    take("r", thread, &lease);
    redlock_reentrant_acquire_done(&table, take("r", named, NULL), NULL);
    give(&lease, thread);
}

static void *thread_id(void *data) {
    *(struct redlock_hold_owner *)data = id(0);
    return NULL;
}

/* In this pattern the system uses pthread_t and thread ids again at once. */
FRESH_TEST(a_new_thread_never_has_a_dead_ones_id) {
    struct redlock_hold_owner seen[64];
    for (size_t i = 0; i < 64; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, thread_id, &seen[i]), 0);
        pthread_join(thread, NULL);
        assert_int_not_equal(seen[i].id, id(0).id);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(seen[i].id, seen[j].id);
        }
    }
    assert_int_equal(id(0).id, id(0).id);
}

FRESH_TEST(a_lost_lease_is_not_shared) {
    struct redlock_hold *hold = NULL;
    take("r", id(0), &lease);
    (void)share("r", id(0));
    lease.validity_ms = 0;
    assert_is(refused("r", id(0), NEVER_NS), REDLOCK_ERR_LOST);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_RETAINED);
    assert_is(refused("r", id(0), NEVER_NS), REDLOCK_ERR_LOST);
    give(&lease, id(0));
    redlock_reentrant_acquire_done(&table, take("r", id(0), NULL), NULL);
}

static int enter_to(bool read, struct redlock_hold **hold) {
    struct entrant entrant = {.resource = "r", .owner = id(0), .reads = read, .deadline_ns = NEVER_NS};
    enter(&entrant);
    *hold = entrant.hold;
    return entrant.code;
}

FRESH_TEST(who_reads_may_read_again_but_not_write) {
    struct redlock_hold *hold = NULL;
    assert_is(enter_to(true, &hold), REDLOCK_OK);
    redlock_reentrant_acquire_done(&table, hold, &lease);
    assert_is(enter_to(true, &hold), REDLOCK_OK);
    assert_null(hold);
    lease.validity_ms = 0; /* it is no less wrong then */
    assert_is(enter_to(false, &hold), REDLOCK_ERR_UPGRADE);
    assert_is(enter_to(true, &hold), REDLOCK_ERR_LOST);
    assert_is(redlock_reentrant_downgrade(&table, &lease, &hold), REDLOCK_OK);
    assert_null(hold); /* it reads already */
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_RETAINED);
    give(&lease, id(0));
    assert_is(enter_to(false, &hold), REDLOCK_OK);
    redlock_reentrant_acquire_done(&table, hold, NULL);
}

FRESH_TEST(who_writes_may_read_and_downgrade_at_the_last_count) {
    struct redlock_hold *hold = NULL, *none = NULL;
    assert_is(redlock_reentrant_downgrade(&table, &lease, &hold), REDLOCK_OK);
    assert_null(hold); /* the lease is not reentrant */
    take("r", id(0), &lease);
    assert_is(enter_to(true, &hold), REDLOCK_OK);
    assert_null(hold);
    assert_is(enter_to(false, &hold), REDLOCK_OK); /* its lease has the lock alone */
    assert_is(redlock_reentrant_downgrade(&table, &lease, &hold), REDLOCK_ERR_BUSY);
    assert_null(hold);
    for (int i = 0; i < 2; i++) {
        assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_RETAINED);
    }
    for (int refused = 1; refused >= 0; refused--) {
        assert_is(redlock_reentrant_downgrade(&table, &lease, &hold), REDLOCK_OK);
        assert_non_null(hold);
        assert_is(enter_to(false, &none), REDLOCK_ERR_UPGRADE);
        if (refused) {
            redlock_reentrant_downgrade_refused(&table, hold);
            assert_is(enter_to(false, &none), REDLOCK_OK);
            assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &none), REDLOCK_EXIT_RETAINED);
        }
    }
    give(&lease, id(0));
}

FRESH_TEST(the_count_has_a_limit) {
    struct redlock_hold *hold = NULL;
    table.count_max = 2;
    take("r", id(0), &lease);
    (void)share("r", id(0));
    assert_is(refused("r", id(0), NEVER_NS), REDLOCK_ERR_LIMIT);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_RETAINED);
    give(&lease, id(0));
}

FRESH_TEST(a_release_that_did_not_end_the_handle_leaves_it_held) {
    struct redlock_hold *hold = NULL;
    take("r", id(0), &lease);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_LAST);
    redlock_reentrant_release_done(&table, hold, false);
    assert_ptr_equal(share("r", id(0)), &lease);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_RETAINED);
    give(&lease, id(0));
}

/* A lease may be freed before the thread that released it runs again. The next lease may have the
 * same address. */
FRESH_TEST(the_address_of_a_lease_given_back_may_be_anothers) {
    struct redlock_hold *hold = NULL, *none = NULL;
    take("r", id(1), &lease);
    assert_is(redlock_reentrant_exit(&table, &lease, id(1), false, &hold), REDLOCK_EXIT_LAST);
    assert_is(redlock_reentrant_exit(&table, &lease, id(2), false, &none), REDLOCK_EXIT_STRANGE);
    take("r", id(2), &lease);
    redlock_reentrant_release_done(&table, hold, true);
    give(&lease, id(2));
}

FRESH_TEST(forgetting_needs_the_last_count_and_the_owner) {
    struct redlock_hold *hold = NULL;
    pthread_t thread;
    struct redlock_hold_owner other;
    assert_int_equal(pthread_create(&thread, NULL, thread_id, &other), 0);
    pthread_join(thread, NULL);
    take("r", id(0), &lease);
    (void)share("r", id(0));
    assert_is(redlock_reentrant_exit(&table, &lease, other, true, &hold), REDLOCK_EXIT_REFUSED);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), true, &hold), REDLOCK_EXIT_RETAINED);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), false, &hold), REDLOCK_EXIT_RETAINED);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), true, &hold), REDLOCK_EXIT_LAST);
    redlock_reentrant_release_done(&table, hold, true);
    take("r", id(5), &lease);
    assert_is(redlock_reentrant_exit(&table, &lease, id(0), true, &hold), REDLOCK_EXIT_LAST);
    redlock_reentrant_release_done(&table, hold, true);
}

FRESH_TEST(many_holds_are_all_found) {
    static redlock_lease leases[3000];
    static char names[3000][16];
    for (size_t i = 0; i < 3000; i++) {
        (void)snprintf(names[i], sizeof names[i], "r%zu", i);
        leases[i] = (redlock_lease){.resource = names[i], .validity_ms = 9};
        take(names[i], id(1 + i % 3), &leases[i]);
    }
    assert_true(table.bucket_count > REDLOCK_HOLD_BUCKETS_FIRST);
    for (size_t i = 0; i < 3000; i++) {
        assert_ptr_equal(share(names[i], id(1 + i % 3)), &leases[i]);
    }
    for (size_t i = 0; i < 3000; i++) {
        struct redlock_hold *hold = NULL;
        assert_is(redlock_reentrant_exit(&table, &leases[i], id(1 + i % 3), false, &hold), REDLOCK_EXIT_RETAINED);
        give(&leases[i], id(1 + i % 3));
    }
    assert_int_equal(atomic_load(&table.holds), 0);
}

FRESH_TEST(without_memory_the_answer_is_an_error_and_growth_waits) {
    struct redlock_reentrant failing;
    redlock_lease leases[REDLOCK_HOLD_BUCKETS_FIRST + 2];
    char names[REDLOCK_HOLD_BUCKETS_FIRST + 2][16];
    out_of_memory = true;
    int refused_code = refused("r", id(0), NEVER_NS);
    int init_code = redlock_reentrant_init(&failing, 1);
    out_of_memory = false;
    assert_is(refused_code, REDLOCK_ERR_NO_MEMORY);
    assert_is(init_code, REDLOCK_ERR_NO_MEMORY);
    assert_int_equal(atomic_load(&table.holds), 0);
    for (size_t i = 0; i < REDLOCK_HOLD_BUCKETS_FIRST + 2; i++) {
        (void)snprintf(names[i], sizeof names[i], "r%zu", i);
        leases[i] = (redlock_lease){.resource = names[i], .validity_ms = 9};
        take(names[i], id(0), &leases[i]);
        assert_int_equal(table.bucket_count, (i < REDLOCK_HOLD_BUCKETS_FIRST ? 1 : 2) * REDLOCK_HOLD_BUCKETS_FIRST);
    }
    for (size_t i = 0; i < REDLOCK_HOLD_BUCKETS_FIRST + 2; i++) {
        give(&leases[i], id(0));
    }
}

/* --- Two threads of one owner --- */

static void begin_cancellable(struct entrant *entrant, size_t waiting, const redlock_cancel *cancel) {
    *entrant = (struct entrant){.resource = "r", .owner = id(5), .deadline_ns = NEVER_NS};
    entrant->call = redlock_cancellable_of(cancel);
    assert_int_equal(pthread_create(&entrant->thread, NULL, enter, entrant), 0);
    for (int64_t until_ns = from_now_ns(60000);;) {
        pthread_mutex_lock(&table.monitor.mutex);
        size_t now_waiting = table.waiting;
        pthread_mutex_unlock(&table.monitor.mutex);
        if (now_waiting == waiting) {
            return;
        }
        assert_true(from_now_ns(0) < until_ns);
    }
}

static void begin(struct entrant *entrant, size_t waiting) {
    begin_cancellable(entrant, waiting, NULL);
}

/* A wake-up ends the wait of those that are cancelled, and of nobody else. */
FRESH_TEST(a_cancelled_thread_does_not_wait) {
    redlock_cancel cancel = {.turns = 0}, other = {.turns = 0};
    struct entrant second, third, fourth;
    struct redlock_hold *first = take("r", id(5), NULL);
    begin_cancellable(&second, 1, &cancel);
    begin_cancellable(&third, 2, &other);
    redlock_reentrant_wake(&table);
    atomic_fetch_add(&cancel.turns, 1);
    redlock_reentrant_wake(&table);
    pthread_join(second.thread, NULL);
    assert_is(second.code, REDLOCK_ERR_CANCELLED);
    begin_cancellable(&fourth, 1, &cancel); /* it is set already */
    pthread_join(fourth.thread, NULL);
    assert_is(fourth.code, REDLOCK_ERR_CANCELLED);
    redlock_reentrant_acquire_done(&table, first, NULL);
    pthread_join(third.thread, NULL);
    assert_takes(&third);
    redlock_reentrant_acquire_done(&table, third.hold, NULL);
}

FRESH_TEST(the_second_thread_of_an_owner_shares_what_the_first_gets) {
    struct redlock_hold *hold = NULL;
    struct entrant second, third;
    struct redlock_hold *first = take("r", id(5), NULL);
    begin(&second, 1);
    begin(&third, 2);
    redlock_reentrant_acquire_done(&table, first, &lease);
    pthread_join(second.thread, NULL);
    pthread_join(third.thread, NULL);
    assert_shares(&second);
    assert_shares(&third);
    assert_ptr_equal(second.lease, &lease);
    assert_ptr_equal(third.lease, &lease);
    assert_is(redlock_reentrant_exit(&table, &lease, id(5), false, &hold), REDLOCK_EXIT_RETAINED);
    assert_is(redlock_reentrant_exit(&table, &lease, id(5), false, &hold), REDLOCK_EXIT_RETAINED);
    give(&lease, id(5));
}

FRESH_TEST(the_second_thread_tries_itself_when_the_first_got_nothing) {
    struct entrant second;
    struct redlock_hold *first = take("r", id(5), NULL);
    begin(&second, 1);
    redlock_reentrant_acquire_done(&table, first, NULL);
    pthread_join(second.thread, NULL);
    assert_takes(&second);
    redlock_reentrant_acquire_done(&table, second.hold, &lease);
    give(&lease, id(5));
}

FRESH_TEST(a_thread_that_comes_during_the_last_release_acquires_after_it) {
    struct redlock_hold *hold = NULL;
    struct entrant second;
    take("r", id(5), &lease);
    assert_is(redlock_reentrant_exit(&table, &lease, id(5), false, &hold), REDLOCK_EXIT_LAST);
    begin(&second, 1);
    redlock_reentrant_release_done(&table, hold, true);
    pthread_join(second.thread, NULL);
    assert_takes(&second);
    redlock_reentrant_acquire_done(&table, second.hold, NULL);
}

FRESH_TEST(the_wait_for_another_thread_of_the_owner_is_bounded) {
    struct redlock_hold *first = take("r", id(5), NULL);
    assert_is(refused("r", id(5), from_now_ns(0)), REDLOCK_ERR_CONTENDED);
    int64_t deadline_ns = from_now_ns(30);
    assert_is(refused("r", id(5), deadline_ns), REDLOCK_ERR_CONTENDED);
    assert_true(from_now_ns(0) >= deadline_ns);
    assert_int_equal(table.waiting, 0);
    redlock_reentrant_acquire_done(&table, first, NULL);
}

/* R2: the deadline is on CLOCK_BOOTTIME. By another clock the wait would last longer by the time of
 * the suspension. */
FRESH_TEST(the_wait_is_no_longer_after_a_suspension) {
    struct redlock_hold *first = take("r", id(5), NULL);
    suspended_s = 3600;
    alarm(60);
    int64_t deadline_ns = from_now_ns(30);
    assert_is(refused("r", id(5), deadline_ns), REDLOCK_ERR_CONTENDED);
    assert_true(from_now_ns(0) >= deadline_ns);
    alarm(0);
    suspended_s = 0;
    redlock_reentrant_acquire_done(&table, first, NULL);
}

FRESH_TEST(a_child_does_not_wait_for_a_mutex_that_nobody_unlocks) {
    take("r", id(5), &lease);
    for (int locked = 0; locked < 2; locked++) {
        if (locked) {
            pthread_mutex_lock(&table.monitor.mutex);
        }
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            redlock_reentrant_abandon(&table);
            _exit(0);
        }
        if (locked) {
            pthread_mutex_unlock(&table.monitor.mutex);
        }
        assert_exits(child, 0);
    }
    give(&lease, id(5));
}

FRESH_TEST(what_is_held_at_the_end_is_freed) {
    take("r", id(5), &lease); /* tear_down() must free it; the leak checker checks that */
}
