/* Waiting in a queue, by separate processes that are killed or stopped, on nodes that fail, beside
 * programs that know of no queue. */
#include "crowd.h"

#define LONG_MS 60000
/* Long enough for a loaded machine, short enough to wait for its end. */
#define SHORT_MS  5000
#define THOUSAND  1000
#define PROCESSES 10

static const char queue[] = CROWD_RESOURCE ":wait";

static struct member *start(int64_t ttl_ms) {
    return crowd_start(&crowd_servers, &(struct crowd_options){.ttl_ms = ttl_ms});
}

static struct member *start_holder(int64_t ttl_ms, bool auto_extend) {
    struct member *holder =
        crowd_start(&crowd_servers, &(struct crowd_options){.ttl_ms = ttl_ms, .auto_extend = auto_extend});
    atomic_store(&holder->keeps, true);
    atomic_store(&holder->wanted, 1);
    crowd_until(crowd_holds(holder));
    return holder;
}

/* Until each of `count` waiters can be told at each node. */
static void wait_for_line(int count) {
    crowd_until(crowd_is_long(&crowd_servers, queue, count, 5) && crowd_is_subscribed(&crowd_servers, count, 5));
}

#define TOKEN_SIZE 48

/* Starts waiters, each when those before it are in the queue and can be told. They are sorted as in
 * the queue: on a loaded machine, two processes may find the fleet's clock to differ by more than
 * the time between their starts. */
static void line_up(struct member **waiters, int count, int64_t ttl_ms) {
    char before[CROWD_MAX * (TOKEN_SIZE + 1) + 1] = "";
    for (int i = 0; i < count; i++) {
        struct member *member = start(ttl_ms);
        atomic_store(&member->wanted, 1);
        wait_for_line(i + 1);
        const char *tokens = server_ask(&crowd_servers.at[0], "ZRANGE", queue, "0", "-1");
        size_t place = 0, bytes = 0;
        while (place < (size_t)i && strncmp(tokens + bytes, before + bytes, TOKEN_SIZE) == 0) {
            place++;
            bytes += TOKEN_SIZE + 1;
        }
        memmove(&waiters[place + 1], &waiters[place], ((size_t)i - place) * sizeof *waiters);
        waiters[place] = member;
        (void)snprintf(before, sizeof before, "%s", tokens);
    }
}

static void assert_turns(struct member *const *members, int count) {
    assert_int_equal(atomic_load(&crowd->turns), count);
    for (int i = 0; i < count; i++) {
        assert_ptr_equal(&crowd->member[crowd->turn[i].member], members[i]);
    }
}

static void finish_without_keys(void) {
    crowd_finish();
    crowd_until(crowd_has_no_key(&crowd_servers));
}

TESTS_WITH(crowd_five, crowd_end);

CROWD_TEST(the_first_in_line_is_killed) {
    struct member *waiters[4], *holder = start_holder(LONG_MS, false);
    line_up(waiters, 4, LONG_MS);
    crowd_kill(waiters[0]);
    crowd_until(crowd_is_subscribed(&crowd_servers, 3, 5)); /* each node has noticed the death */
    atomic_store(&holder->keeps, false);
    crowd_until(crowd_served() == 4);
    assert_turns((struct member *const[]){holder, waiters[1], waiters[2], waiters[3]}, 4);
    finish_without_keys();
}

CROWD_TEST(the_holder_is_killed) {
    struct member *members[5];
    members[0] = start_holder(SHORT_MS, true);
    line_up(members + 1, 4, LONG_MS);
    crowd_kill(members[0]);
    crowd_until(crowd_served() == 5);
    assert_turns(members, 5);
    finish_without_keys();
}

/* Nobody will hand over, and nobody is first in line who could ask. */
CROWD_TEST(the_holder_and_the_first_in_line_are_killed) {
    struct member *waiters[4], *holder = start_holder(SHORT_MS, true);
    line_up(waiters, 4, LONG_MS);
    crowd_kill(waiters[0]);
    crowd_until(crowd_is_subscribed(&crowd_servers, 3, 5));
    crowd_kill(holder);
    crowd_until(crowd_served() == 4);
    assert_turns((struct member *const[]){holder, waiters[1], waiters[2], waiters[3]}, 4);
    finish_without_keys();
}

static size_t nodes_that_gave(const char *token) {
    size_t count = 0;
    for (size_t i = 0; i < crowd_servers.count; i++) {
        count += strcmp(server_ask(&crowd_servers.at[i], "GET", CROWD_RESOURCE), token) == 0;
    }
    return count;
}

/* Nodes grant it the lock, because its connections are open. It learns of that after the ttl. */
CROWD_TEST(the_first_in_line_is_stopped) {
    const int64_t ttl_ms = 8000; /* its place stays good for half of this time at least */
    char token[TOKEN_SIZE + 1];
    struct member *waiters[3], *holder = start_holder(LONG_MS, false);
    line_up(waiters, 3, ttl_ms);
    (void)snprintf(token, sizeof token, "%s", server_ask(&crowd_servers.at[0], "ZRANGE", queue, "0", "0"));
    crowd_stop(waiters[0]);
    atomic_store(&holder->keeps, false);
    crowd_until(nodes_that_gave(token) == 5);
    crowd_until(crowd_served() == 3);
    assert_turns((struct member *const[]){holder, waiters[1], waiters[2]}, 3);
    crowd_continue(waiters[0]);
    crowd_until(crowd_served() == 4);
    finish_without_keys();
}

CROWD_TEST(the_holder_is_stopped) {
    struct member *waiters[3], *holder = start_holder(SHORT_MS, true);
    line_up(waiters, 3, LONG_MS);
    atomic_store(&waiters[0]->keeps, true);
    crowd_stop(holder);
    crowd_until(crowd_holds(waiters[0]));
    crowd_continue(holder);
    crowd_until(atomic_load(&holder->lost) == 1);
    assert_true(crowd_holds(waiters[0]));
    atomic_store(&holder->keeps, false);
    atomic_store(&waiters[0]->keeps, false);
    crowd_until(crowd_served() == 4);
    finish_without_keys();
}

/* Until each process has been served so many times more. */
static void serve_each_within(int64_t timeout_ms, int more) {
    int before[CROWD_MAX];
    for (size_t i = 0; i < crowd->count; i++) {
        before[i] = atomic_load(&crowd->member[i].served);
    }
    for (size_t i = 0; i < crowd->count; i++) {
        crowd_until_within(timeout_ms, atomic_load(&crowd->member[i].served) >= before[i] + more);
    }
}

static void serve_each(int more) {
    serve_each_within(CROWD_TIMEOUT_MS, more);
}

static void start_loops(int count, const struct crowd_options *options) {
    const size_t first = crowd->count;
    for (int i = 0; i < count; i++) {
        (void)crowd_start(&crowd_servers, options);
    }
    for (size_t i = first; i < crowd->count; i++) {
        atomic_store(&crowd->member[i].wanted, 1000000000);
    }
}

static void ask_all(const char *const *argv) {
    for (size_t i = 0; i < crowd_servers.count; i++) {
        if (crowd_servers.at[i].pid != 0 && !crowd_servers.at[i].paused) {
            (void)server_ask_argv(&crowd_servers.at[i], argv);
        }
    }
}

/* The queues and the scripts: a node that forgets a lock needs a guard. */
static void nodes_forget(void) {
    ask_all((const char *const[]){"DEL", CROWD_RESOURCE ":wait", CROWD_RESOURCE ":waiter", NULL});
    ask_all((const char *const[]){"SCRIPT", "FLUSH", NULL});
}

static void kill_subscriptions(void) {
    ask_all((const char *const[]){"CLIENT", "KILL", "TYPE", "pubsub", NULL});
}

/* Nobody may take a restarted node's word for a ttl: the restart guard sees to that. */
CROWD_TEST(nodes_fail_under_eight_processes) {
    start_loops(8,
                &(struct crowd_options){.ttl_ms = 2000, .node_timeout_ms = 1000, .restart_guard = true, .hold_ms = 1});
    serve_each(5);
    for (int i = 0; i < 3; i++) {
        nodes_forget();
        serve_each(2);
        kill_subscriptions();
        serve_each(2);
    }
    for (size_t i = 0; i < 2; i++) {
        server_kill(&crowd_servers.at[2 * i]);
        server_restart(&crowd_servers.at[2 * i]);
    }
    kill_subscriptions();
    serve_each(3);
    for (size_t i = 0; i < 2; i++) {
        server_pause(&crowd_servers.at[2 * i + 1]);
    }
    kill_subscriptions();
    serve_each(3);
    for (size_t i = 0; i < 2; i++) {
        server_resume(&crowd_servers.at[2 * i + 1]);
    }
    serve_each(5);
    finish_without_keys();
}

/* Somebody is always in line, so the lock is free only when it is left free: about every 10 s. */
#define LEFT_TIMEOUT_MS 300000

CROWD_TEST(old_versions_and_strangers_get_the_lock_too) {
    start_loops(3, &(struct crowd_options){.ttl_ms = LONG_MS, .hold_ms = 1});
    start_loops(1, &(struct crowd_options){.kind = CROWD_POLLS, .ttl_ms = LONG_MS, .hold_ms = 1, .rest_ms = 50});
    start_loops(1, &(struct crowd_options){.kind = CROWD_IS_OLD, .ttl_ms = LONG_MS, .hold_ms = 1});
    start_loops(1, &(struct crowd_options){.kind = CROWD_STRANGER, .ttl_ms = LONG_MS, .hold_ms = 1});
    serve_each_within(LEFT_TIMEOUT_MS, 1);
    finish_without_keys();
}

CROWD_TEST(a_thousand_wait_in_ten_processes) {
    int inversions = 0;
    struct member *holder = start_holder(LONG_MS, false);
    for (int i = 0; i < PROCESSES; i++) {
        struct member *member =
            crowd_start(&crowd_servers, &(struct crowd_options){.ttl_ms = LONG_MS, .at_once = THOUSAND / PROCESSES});
        atomic_store(&member->wanted, THOUSAND / PROCESSES);
    }
    crowd_until(crowd_is_subscribed(&crowd_servers, PROCESSES, 5));
    crowd_until(crowd_is_long(&crowd_servers, queue, THOUSAND, 5));
    atomic_store(&holder->keeps, false);
    crowd_until(crowd_served() == THOUSAND + 1);
    for (int i = 2; i <= THOUSAND; i++) {
        inversions += strcmp(crowd->turn[i - 1].ticket, crowd->turn[i].ticket) > 0;
    }
    assert_int_equal(inversions, 0);
    finish_without_keys();
}

/* The servers with this configuration keep no queue, for so many reasons. Each is warned of once.
 * Whichever is found first may keep the other from being found. */
static void wait_without_queue(const char *config, int reasons) {
    static struct servers servers; /* exit() stops them if the test fails */
    struct member *members[3];
    servers_start(&servers, 3, &(struct server_options){.config = config});
    for (int i = 0; i < 3; i++) {
        members[i] = crowd_start(&servers, &(struct crowd_options){.ttl_ms = LONG_MS});
    }
    atomic_store(&members[0]->keeps, true);
    atomic_store(&members[0]->wanted, 1);
    crowd_until(crowd_holds(members[0]));
    for (int i = 1; i < 3; i++) {
        atomic_store(&members[i]->wanted, 3);
        crowd_until(atomic_load(&members[i]->warnings) >= 1);
    }
    atomic_store(&members[0]->keeps, false);
    crowd_until(crowd_served() == 7);
    crowd_finish();
    crowd_until(crowd_has_no_key(&servers));
    for (int i = 1; i < 3; i++) {
        assert_in_range(atomic_load(&members[i]->warnings), 1, reasons);
    }
    servers_stop(&servers);
}

CROWD_TEST(an_acl_that_forbids_the_queue_makes_them_poll) {
    wait_without_queue("user default on nopass ~* &* +@all -zadd -publish -subscribe\n", 2);
}

CROWD_TEST(a_server_without_subscribe_makes_them_poll) {
    wait_without_queue("rename-command SUBSCRIBE \"\"\n", 1);
}

/* The control: two who take different locks hold them at once, and the page shows it. */
CROWD_TEST(the_page_shows_two_holders) {
    for (int i = 0; i < 2; i++) {
        struct member *member = crowd_start(
            &crowd_servers, &(struct crowd_options){.ttl_ms = LONG_MS, .key_prefix = i == 0 ? "one:" : "two:"});
        atomic_store(&member->keeps, true);
        atomic_store(&member->wanted, 1);
        crowd_until(crowd_holds(member));
    }
    crowd_until(atomic_load(&crowd->overlaps) > 0);
    crowd_leave();
}
