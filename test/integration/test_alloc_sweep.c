/* Every allocation fails in turn. */
/* Fails each allocation of the library and of hiredis in turn, through create, connect, acquire,
 * extend, inspect, adopt, wait, handover, cancel, several resources, elect, observe, list, release
 * and close, with real servers. Each time there is an error or success, every completion comes
 * exactly once, nothing leaks, nothing crashes. Linked statically with --wrap. libev is not
 * included, because it aborts by design. */
#include <redlock/election.h>
#include <redlock/list.h>

#include "world.h"

#define REQUESTS   24    /* in a whole cycle */
#define LIVE_SLOTS 65536 /* a power of two */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *old);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
void __wrap_free(void *old);

static struct sweep {
    bool guarded;      /* nodes are under guards */
    bool armed;        /* allocations are counted, and may fail */
    long count;        /* since armed */
    long first, fails; /* the allocations first to first + fails - 1 fail */
    long failed;       /* how many have failed */
    size_t live;
    uintptr_t slots[LIVE_SLOTS];
} sweep;

static size_t slot_of(uintptr_t address) {
    size_t slot = (address >> 4) * 2654435761U & (LIVE_SLOTS - 1);
    while (sweep.slots[slot] && sweep.slots[slot] != address) {
        slot = (slot + 1) & (LIVE_SLOTS - 1);
    }
    return slot;
}

static void *remember(void *memory) {
    if (memory && sweep.armed) {
        if (++sweep.live > LIVE_SLOTS / 2) {
            abort();
        }
        sweep.slots[slot_of((uintptr_t)memory)] = (uintptr_t)memory;
    }
    return memory;
}

static void forget(uintptr_t address) {
    size_t slot = slot_of(address);
    if (!address || !sweep.slots[slot]) {
        return;
    }
    sweep.live--;
    sweep.slots[slot] = 0;
    /* Close the gap, since the entries after it may have been pushed past it. */
    for (size_t next = (slot + 1) & (LIVE_SLOTS - 1); sweep.slots[next]; next = (next + 1) & (LIVE_SLOTS - 1)) {
        uintptr_t moved = sweep.slots[next];
        sweep.slots[next] = 0;
        sweep.slots[slot_of(moved)] = moved;
    }
}

static bool fails_now(void) {
    if (!sweep.armed) {
        return false;
    }
    long number = ++sweep.count;
    bool fails = number >= sweep.first && number - sweep.first < sweep.fails;
    sweep.failed += fails;
    return fails;
}

void *__wrap_malloc(size_t size) {
    return fails_now() ? NULL : remember(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails_now() ? NULL : remember(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size) {
    if (fails_now()) {
        return NULL;
    }
    uintptr_t address = (uintptr_t)old;
    void *memory = __real_realloc(old, size);
    if (memory) {
        forget(address);
        remember(memory);
    }
    return memory;
}

char *__wrap_strndup(const char *text, size_t size) {
    size_t length = strnlen(text, size);
    char *copy = __wrap_malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *__wrap_strdup(const char *text) {
    return __wrap_strndup(text, strlen(text));
}

void __wrap_free(void *old) {
    forget((uintptr_t)old);
    __real_free(old);
}

/* The requests of a cycle and their results. */
struct cycle {
    int accepted, completed, wrong, closed;
    int last_code;
    redlock_lease *lease;
    int led, troubled, ended; /* of the election */
};

static void on_done(const redlock_result *result, void *data) {
    struct cycle *cycle = data;
    char message[1024];
    cycle->completed++;
    cycle->last_code = redlock_result_code(result);
    cycle->lease = redlock_result_lease(result);
    if (redlock_result_message(result, message, sizeof message) == 0) {
        cycle->wrong++;
    }
    redlock_result *copy = redlock_result_copy(result);
    if (copy && redlock_result_code(copy) != cycle->last_code) {
        cycle->wrong++;
    }
    redlock_result_free(copy);
}

static void on_closed(void *data) {
    ((struct cycle *)data)->closed++;
}

static bool all_completed(void *data) {
    const struct cycle *cycle = data;
    return cycle->completed >= cycle->accepted;
}

static bool is_closed(void *data) {
    return ((struct cycle *)data)->closed > 0;
}

/* A call returns OK or an error that may be. Returns true if it was accepted; then it has
 * completed. */
static bool complete(struct cycle *cycle, int code) {
    if (code == REDLOCK_OK) {
        cycle->accepted++;
        assert_true(drive_until(world_loop, all_completed, cycle, DRIVE_TIMEOUT_MS));
    } else {
        assert_true(code == REDLOCK_ERR_NO_MEMORY || code == REDLOCK_ERR_LOST || code == REDLOCK_ERR_LIMIT);
    }
    return code == REDLOCK_OK;
}

static void use_a_lease(redlock_manager *manager, struct cycle *cycle) {
    redlock_acquire_options options = world_acquire_options(60000, 0);
    if (!complete(cycle, redlock_acquire(manager, "first", &options, NULL, on_done, cycle)) ||
        cycle->last_code != REDLOCK_OK) {
        return;
    }
    redlock_lease *lease = cycle->lease, *adopted = NULL;
    complete(cycle, redlock_extend(lease, 50000, on_done, cycle));
    if (redlock_adopt(manager, "first", redlock_lease_token(lease), NULL, &adopted) == REDLOCK_OK) {
        complete(cycle, redlock_extend(adopted, 40000, on_done, cycle));
        redlock_lease_forget(adopted);
    }
    options = world_acquire_options(60000, 10000);
    redlock_request *request = NULL;
    if (redlock_acquire(manager, "first", &options, &request, on_done, cycle) == REDLOCK_OK) {
        cycle->accepted++;
        drive_for(world_loop, 5);
        if (cycle->completed < cycle->accepted) {
            redlock_request_cancel(request);
        }
        assert_true(drive_until(world_loop, all_completed, cycle, DRIVE_TIMEOUT_MS));
    }
    cycle->accepted++;
    /* A release is accepted without memory. */
    assert_is(redlock_release(lease, on_done, cycle), REDLOCK_OK);
    assert_true(drive_until(world_loop, all_completed, cycle, DRIVE_TIMEOUT_MS));
}

/* A lock goes from one acquire to another that waits for it. */
static void hand_over(redlock_manager *manager, struct cycle *cycle) {
    redlock_acquire_options options = world_acquire_options(60000, 0);
    if (!complete(cycle, redlock_acquire(manager, "turn", &options, NULL, on_done, cycle)) ||
        cycle->last_code != REDLOCK_OK) {
        return;
    }
    redlock_lease *first = cycle->lease;
    options = world_acquire_options(60000, 10000);
    const int code = redlock_acquire(manager, "turn", &options, NULL, on_done, cycle);
    drive_for(world_loop, 5);
    assert_is(redlock_release(first, NULL, NULL), REDLOCK_OK);
    cycle->accepted++; /* its result is not asked for */
    cycle->completed++;
    if (complete(cycle, code) && cycle->last_code == REDLOCK_OK) {
        complete(cycle, redlock_release(cycle->lease, on_done, cycle));
    }
}

/* A writer becomes a reader, and another one reads with it. */
static void share(redlock_manager *manager, struct cycle *cycle) {
    redlock_acquire_options options = world_acquire_options(60000, 0);
    options.fencing = true;
    if (!complete(cycle, redlock_acquire(manager, "shared", &options, NULL, on_done, cycle)) ||
        cycle->last_code != REDLOCK_OK) {
        return;
    }
    redlock_lease *first = cycle->lease;
    complete(cycle, redlock_downgrade(first, on_done, cycle));
    options.mode = REDLOCK_SHARED;
    if (complete(cycle, redlock_acquire(manager, "shared", &options, NULL, on_done, cycle)) &&
        cycle->last_code == REDLOCK_OK) {
        complete(cycle, redlock_release(cycle->lease, on_done, cycle));
    }
    complete(cycle, redlock_release(first, on_done, cycle));
}

/* Two resources; then one of them is not free at first. */
static void use_a_bundle(redlock_manager *manager, struct cycle *cycle) {
    const redlock_item items[] = {{.size = sizeof(redlock_item), .resource = "two"},
                                  {.size = sizeof(redlock_item), .resource = "one"}};
    redlock_acquire_options options = world_acquire_options(60000, 0);
    redlock_lease *first = NULL;
    if (complete(cycle, redlock_acquire(manager, "two", &options, NULL, on_done, cycle)) &&
        cycle->last_code == REDLOCK_OK) {
        first = cycle->lease;
    }
    options = world_acquire_options(60000, 10000);
    const int code = redlock_acquire_all(manager, items, 2, &options, NULL, on_done, cycle);
    drive_for(world_loop, 5);
    if (first) {
        assert_is(redlock_release(first, NULL, NULL), REDLOCK_OK);
    }
    if (!complete(cycle, code) || cycle->last_code != REDLOCK_OK) {
        return;
    }
    redlock_lease *lease = cycle->lease, *adopted = NULL;
    complete(cycle, redlock_extend(lease, 50000, on_done, cycle));
    redlock_item taken[] = {items[0], items[1]};
    for (size_t i = 0; i < 2; i++) {
        taken[i].token = redlock_lease_item_token(lease, i);
    }
    if (redlock_adopt_all(manager, taken, 2, NULL, &adopted) == REDLOCK_OK) {
        complete(cycle, redlock_extend(adopted, 40000, on_done, cycle));
        redlock_lease_forget(adopted);
    }
    complete(cycle, redlock_release(lease, on_done, cycle));
}

static void on_event(const redlock_election_event *event, void *data) {
    struct cycle *cycle = data;
    cycle->led += event->kind == REDLOCK_ELECTION_LEADING;
    cycle->troubled += event->kind == REDLOCK_ELECTION_TROUBLE && event->code == REDLOCK_ERR_NO_MEMORY;
    cycle->ended += event->kind == REDLOCK_ELECTION_ENDED;
}

static bool has_campaigned(void *data) {
    const struct cycle *cycle = data;
    return cycle->led > 0 || cycle->troubled > 0;
}

static bool has_ended(void *data) {
    return ((struct cycle *)data)->ended > 0;
}

static void on_leader(const redlock_leader *leader, void *data) {
    ((struct cycle *)data)->wrong += leader->token == NULL;
}

static void use_an_election(redlock_manager *manager, struct cycle *cycle) {
    redlock_election_options options;
    redlock_election *election = NULL;
    redlock_observer *observer = NULL;
    redlock_election_options_default(&options);
    options.ttl_ms = 60000;
    options.fencing = true;
    int code = redlock_observe(manager, "leader", on_leader, cycle, &observer);
    assert_true(code == REDLOCK_OK || code == REDLOCK_ERR_NO_MEMORY);
    code = redlock_elect(manager, "leader", &options, on_event, cycle, &election);
    assert_true(code == REDLOCK_OK || code == REDLOCK_ERR_NO_MEMORY);
    if (code == REDLOCK_OK) {
        assert_true(drive_until(world_loop, has_campaigned, cycle, DRIVE_TIMEOUT_MS));
        assert_is(redlock_election_end(election), REDLOCK_OK);
        assert_true(drive_until(world_loop, has_ended, cycle, DRIVE_TIMEOUT_MS));
        assert_int_equal(cycle->ended, 1);
    }
    redlock_observer_end(observer);
}

static bool on_listed(const redlock_listed *lock, void *data) {
    ((struct cycle *)data)->wrong += strcmp(lock->resource, "held") != 0;
    return true;
}

static void use_a_manager(struct cycle *cycle, int64_t node_timeout_ms) {
    redlock_manager_options options;
    redlock_manager *manager = NULL;
    char error[256] = "";
    redlock_manager_options_default(&options);
    options.nodes = world_servers.uris;
    options.node_count = world_servers.count;
    options.key_prefix = "sweep:";
    options.client_name = "sweep";
    options.node_timeout_ms = node_timeout_ms;
    options.clock_guard = sweep.guarded;
    options.restart_guard = sweep.guarded ? REDLOCK_RESTART_GUARD_OBSERVED : REDLOCK_RESTART_GUARD_OFF;
    options.ttl_max_ms = 60000;
    int code = redlock_manager_create(world_loop, &options, &manager, error, sizeof error);
    if (code != REDLOCK_OK) {
        assert_true(code == REDLOCK_ERR_NO_MEMORY);
        assert_true(strlen(error) > 5);
        return;
    }
    complete(cycle, redlock_manager_connect(manager, 300, on_done, cycle));
    use_a_lease(manager, cycle);
    hand_over(manager, cycle);
    share(manager, cycle);
    use_a_bundle(manager, cycle);
    use_an_election(manager, cycle);
    complete(cycle, redlock_inspect(manager, "first", on_done, cycle));
    /* The nodes have no password and refuse it: their connections go on. */
    code = redlock_manager_set_credentials(manager, REDLOCK_ALL_NODES, "sweep", "secret");
    assert_true(code == REDLOCK_OK || code == REDLOCK_ERR_NO_MEMORY);
    redlock_acquire_options held = world_acquire_options(60000, 0);
    /* Released by close. */
    complete(cycle, redlock_acquire(manager, "held", &held, NULL, on_done, cycle));
    redlock_list_options list;
    redlock_list_options_default(&list);
    list.match = "hel*";
    complete(cycle, redlock_list(manager, &list, on_listed, on_done, cycle));
    if (redlock_acquire(manager, "in-flight", &held, NULL, on_done, cycle) == REDLOCK_OK) {
        cycle->accepted++;
    }
    assert_is(redlock_manager_close(manager, on_closed, cycle), REDLOCK_OK);
    assert_true(drive_until(world_loop, is_closed, cycle, DRIVE_TIMEOUT_MS));
    assert_int_equal(cycle->closed, 1);
}

/* Returns whether an allocation failed in it. */
static bool run_cycle(long first, long fails, int64_t node_timeout_ms) {
    struct cycle cycle = {0};
    servers_ask(&world_servers, 0, world_servers.count, "FLUSHALL");
    size_t live_before = sweep.live;
    sweep.first = first;
    sweep.fails = fails;
    sweep.count = sweep.failed = 0;
    sweep.armed = true;
    use_a_manager(&cycle, node_timeout_ms);
    sweep.armed = false;
    if (sweep.live != live_before || cycle.completed != cycle.accepted || cycle.wrong) {
        fail_msg("failing %ld from %ld on: %zu allocations left, %d of %d completed, %d wrong", fails, first,
                 sweep.live - live_before, cycle.completed, cycle.accepted, cycle.wrong);
    }
    if (sweep.failed == 0 && node_timeout_ms == PATIENT_MS) {
        assert_int_equal(cycle.accepted, REQUESTS); /* without a failure no call was refused */
    }
    return sweep.failed > 0;
}

static void fail_each_in_turn(bool guarded) {
    sweep.guarded = guarded;
    long allocations = 1;
    /* The first allocations of the loop itself, and a check that all is well without failures. */
    run_cycle(1, 0, PATIENT_MS);
    assert_true(sweep.count > 20);
    while (run_cycle(allocations, 1, PATIENT_MS)) {
        allocations++;
    }
    assert_true(allocations > 20);
    print_message("%ld allocations failed in turn\n", allocations - 1);
}

TESTS_WITH(world_three, world_end);

WORLD_TEST(each_allocation_fails_in_turn) {
    fail_each_in_turn(false);
}

WORLD_TEST(each_allocation_under_guards_fails_in_turn) {
    fail_each_in_turn(true);
    sweep.guarded = false;
}

WORLD_TEST(memory_runs_out_for_a_while_or_for_good) {
    for (long fails = 3; fails <= 300000; fails *= 100) {
        for (long first = 1; run_cycle(first, fails, 150); first += 1 + first / 8) {
        }
    }
}
