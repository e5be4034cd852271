/* Dead waiters beside living ones: who counts as listening, and what the dead cost the living. */
#include "crowd.h"

#define LONG_MS 60000
/* Far below the ttl, for which a lock that goes to the dead is lost, and below what it took to find
 * a thousand of them. Far above what a loaded machine needs. */
#define SOON_MS 10000
#define NODES   5

static const char queue[] = CROWD_RESOURCE ":wait", waiters[] = CROWD_RESOURCE ":waiter";

static struct member *start(enum crowd_kind kind, int64_t hold_ms) {
    return crowd_start(&crowd_servers, &(struct crowd_options){.kind = kind, .ttl_ms = LONG_MS, .hold_ms = hold_ms});
}

static struct member *start_holder(void) {
    struct member *holder = start(CROWD_QUEUES, 0);
    atomic_store(&holder->keeps, true);
    atomic_store(&holder->wanted, 1);
    crowd_until(crowd_holds(holder));
    return holder;
}

/* The member of this number in line, which each node can tell. */
static struct member *start_waiter(int number) {
    struct member *member = start(CROWD_QUEUES, 0);
    atomic_store(&member->wanted, 1);
    crowd_until(crowd_is_long(&crowd_servers, queue, number, NODES) &&
                crowd_is_subscribed(&crowd_servers, number, NODES));
    return member;
}

/* Before all others, at each node. */
static void add_dead(int count) {
    const char *script = "local now=redis.call('TIME')[1]*1000 for i=1,ARGV[1] do local t=('%016x%032x'):format(i,i) "
                         "redis.call('ZADD',KEYS[1],i,t) redis.call('HSET',KEYS[2],t,('%.0f 60000 1 1 "
                         "redlock:dead%d'):format(now+600000,i)) end redis.call('PEXPIRE',KEYS[1],600000) "
                         "redis.call('PEXPIRE',KEYS[2],600000) return 'OK'";
    char number[12];
    (void)snprintf(number, sizeof number, "%d", count);
    servers_say(&crowd_servers, 0, crowd_servers.count, "OK", "EVAL", script, "2", queue, waiters, number);
}

TESTS_WITH(crowd_five, crowd_end);

CROWD_TEST(a_thousand_dead_cost_no_time) {
    static const int counts[] = {1, 64, 200, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        assert_int_equal(crowd_setup(NULL), 0);
        struct member *holder = start_holder();
        (void)start_waiter(1);
        add_dead(counts[i]);
        atomic_store(&holder->keeps, false);
        const int64_t from_ms = support_now_ms();
        crowd_until_within(SOON_MS, crowd_served() == 2);
        /* It does not wait for a refresh: that comes after 2.25 s at least. */
        assert_in_range(support_now_ms() - from_ms, 0, 2000);
        crowd_finish();
        crowd_until(crowd_has_no_key(&crowd_servers));
    }
}

/* fork() copies the connections. */
CROWD_TEST(a_forked_child_makes_no_waiter_alive) {
    struct member *holder = start_holder(), *first = start_waiter(1), *second = start_waiter(2);
    atomic_store(&first->forks, true);
    atomic_store(&second->forks, true);
    crowd_until(atomic_load(&first->child) > 0 && atomic_load(&second->child) > 0);
    crowd_kill(first);
    /* Each node has noticed the death, and the second is alive after its fork. */
    crowd_until_within(SOON_MS, crowd_is_subscribed(&crowd_servers, 1, NODES));
    atomic_store(&holder->keeps, false);
    crowd_until_within(SOON_MS, crowd_served() == 2);
    assert_int_equal(atomic_load(&second->served), 1);
    crowd_finish();
}

CROWD_TEST(a_monitor_makes_no_waiter_alive) {
    struct raw monitors[NODES];
    struct member *holder = start_holder(), *first = start_waiter(1), *second = start_waiter(2);
    for (size_t i = 0; i < NODES; i++) {
        assert_true(raw_open_tcp(&monitors[i], "127.0.0.1", crowd_servers.at[i].port));
        assert_string_equal(raw_ask(&monitors[i], "PSUBSCRIBE", "*"), "psubscribe\n*\n1\n");
    }
    crowd_kill(first);
    crowd_until(crowd_is_subscribed(&crowd_servers, 1, NODES));
    atomic_store(&holder->keeps, false);
    crowd_until_within(SOON_MS, crowd_served() == 2);
    assert_int_equal(atomic_load(&second->served), 1);
    crowd_finish();
    for (size_t i = 0; i < NODES; i++) {
        raw_close(&monitors[i]);
    }
}

/* Another library holds the lock for 200 ms and frees it for some ms. Who is first among the living
 * polls. */
CROWD_TEST(behind_the_dead_a_waiter_does_not_starve) {
    struct member *stranger = start(CROWD_STRANGER, 200);
    add_dead(3);
    atomic_store(&stranger->wanted, 1000);
    crowd_until(crowd_holds(stranger));
    struct member *waiter = start(CROWD_QUEUES, 0);
    atomic_store(&waiter->wanted, 1);
    crowd_until_within(SOON_MS, atomic_load(&waiter->served) == 1);
    atomic_store(&stranger->wanted, 0);
    crowd_finish();
}
