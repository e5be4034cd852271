/* The library on an event loop of any kind (kind.h): locks beside the loop's own timer and socket,
 * wake-ups, writes, ends inside callbacks, forks, and a machine that was suspended. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kind.h"
#include "world.h"

#define TTL_MS   1500
#define RENEW_MS 600
#define TICK_MS  10

static struct {
    void *loop;
    int ticks;   /* of the loop's own timer */
    int echoes;  /* over its own sockets */
    int ends[2]; /* of these */
    int closed;
} own;

/* The machine was suspended for this long: only CLOCK_BOOTTIME has gone on. */
static time_t suspended_s;
static int timer_fd = -1;
static clockid_t timer_clock = -1;
static int sends; /* of the library */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_timerfd_create(clockid_t clock, int flags);
int __wrap_timerfd_create(clockid_t clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before);
ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    const int failed = __real_clock_gettime(clock, now);
    now->tv_sec += clock == CLOCK_BOOTTIME ? suspended_s : 0;
    return failed;
}

int __wrap_timerfd_create(clockid_t clock, int flags) {
    timer_clock = clock;
    return timer_fd = __real_timerfd_create(clock, flags);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *before) {
    struct itimerspec real = *at;
    real.it_value.tv_sec -= real.it_value.tv_sec > suspended_s ? suspended_s : 0;
    return __real_timerfd_settime(fd, flags, &real, before);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags) {
    sends++;
    return __real_send(fd, bytes, size, flags);
}

static void on_tick(void *data) {
    (void)data;
    own.ticks++;
    if (write(own.ends[0], "x", 1) != 1) {
        support_fatal("the test's own socket is broken");
    }
}

static void on_echo(void *data) {
    char bytes[64];
    (void)data;
    own.echoes += (int)read(own.ends[1], bytes, sizeof bytes) > 0;
}

static void start_own(void) {
    loop_kind.start_timer(own.loop, TICK_MS, on_tick, NULL);
    loop_kind.start_reading(own.loop, own.ends[1], on_echo, NULL);
}

static void stop_own(void) {
    loop_kind.stop_timer(own.loop);
    loop_kind.stop_reading(own.loop);
}

/* Turns the loop until the condition holds. The loop's own timer ends each wait. */
#define UNTIL(condition)                                                                                               \
    do {                                                                                                               \
        const int64_t end_ms = support_now_ms() + DRIVE_TIMEOUT_MS;                                                    \
        while (!(condition)) {                                                                                         \
            if (support_now_ms() > end_ms) {                                                                           \
                fail_msg("did not happen: %s", #condition);                                                            \
            }                                                                                                          \
            loop_kind.turn(own.loop);                                                                                  \
        }                                                                                                              \
    } while (0)

static int setup(void **state) {
    if (world_setup(state) != 0) {
        return -1;
    }
    memset(&own, 0, sizeof own);
    suspended_s = 0;
    own.loop = loop_kind.open();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, own.ends), 0);
    start_own();
    return 0;
}

static int teardown(void **state) {
    const int result = world_teardown(state);
    stop_own();
    (void)close(own.ends[0]);
    (void)close(own.ends[1]);
    /* If the test failed half-way, its managers are still on the loop. */
    return loop_kind.close(own.loop) ? result : -1;
}

static redlock_manager *try_manager(redlock_manager_options *options) {
    redlock_manager *manager = NULL;
    char error[256] = "";
    options->on_log = log_collect;
    options->log_data = &world_log;
    options->log_level = REDLOCK_LOG_DEBUG;
    if (loop_kind.create(own.loop, options, &manager, error, sizeof error) != REDLOCK_OK) {
        fail_msg("creating a manager: %s", error);
    }
    return manager;
}

static redlock_manager *connected(redlock_manager_options *options) {
    redlock_manager *manager = try_manager(options);
    struct outcome *outcome = world_outcome();
    assert_int_equal(redlock_manager_connect(manager, PATIENT_MS, outcome_collect, outcome), REDLOCK_OK);
    UNTIL(outcome->runs == 1);
    return manager;
}

static redlock_manager *new_manager(void) {
    redlock_manager_options options = world_options();
    return connected(&options);
}

static void on_closed(void *data) {
    (void)data;
    own.closed++;
}

static void close_manager(redlock_manager *manager) {
    const int before = own.closed;
    assert_int_equal(redlock_manager_close(manager, on_closed, NULL), REDLOCK_OK);
    assert_int_equal(own.closed, before); /* never inside the call */
    UNTIL(own.closed == before + 1);
}

static redlock_lease *acquire(redlock_manager *manager, const char *resource, redlock_acquire_options *options) {
    struct outcome *outcome = world_outcome();
    assert_int_equal(redlock_acquire(manager, resource, options, NULL, outcome_collect, outcome), REDLOCK_OK);
    UNTIL(outcome->runs == 1);
    assert_int_equal(outcome->code, REDLOCK_OK);
    return outcome->lease;
}

static int release(redlock_lease *lease) {
    struct outcome *outcome = world_outcome();
    assert_int_equal(redlock_release(lease, outcome_collect, outcome), REDLOCK_OK);
    UNTIL(outcome->runs == 1);
    return outcome->code;
}

/* One manager acquires and renews; another one on the same loop waits in the queue, and gets the
 * lock by the release; its servers die, and it is told in time. Meanwhile the loop's own timer and
 * sockets go on. */
static void a_lock_lives_beside_the_loops_own_work(void **state) {
    (void)state;
    redlock_manager *first = new_manager(), *second = new_manager();
    redlock_acquire_options options = world_acquire_options(RENEW_MS, 0);
    options.auto_extend = true;
    redlock_lease *lease = acquire(first, "job", &options);

    struct outcome *waiter = world_outcome();
    struct loss *loss = world_loss();
    redlock_acquire_options patient = world_acquire_options(TTL_MS, REDLOCK_WAIT_FOREVER);
    patient.auto_extend = true;
    patient.on_lost = loss_collect;
    patient.lost_data = loss;
    assert_int_equal(redlock_acquire(second, "job", &patient, NULL, outcome_collect, waiter), REDLOCK_OK);
    const int ticks = own.ticks, echoes = own.echoes;
    UNTIL(world_statistics(first).extends >= 5);
    assert_int_equal(waiter->runs, 0);
    assert_true(redlock_lease_validity_ms(lease) > 0);
    assert_true(own.ticks > ticks + 5 && own.echoes > echoes + 5);

    assert_int_equal(release(lease), REDLOCK_OK);
    UNTIL(waiter->runs == 1);
    assert_int_equal(waiter->code, REDLOCK_OK);
    UNTIL(world_statistics(second).extends >= 2);
    server_kill(&world_servers.at[0]);
    server_kill(&world_servers.at[2]);
    const int64_t killed_ms = support_now_ms();
    UNTIL(loss->runs == 1);
    assert_true(support_now_ms() - killed_ms <= TTL_MS + BRISK_MS);
    assert_int_equal(loss->validity_ms, 0);
    assert_int_not_equal(release(waiter->lease), REDLOCK_OK);
    close_manager(first);
    close_manager(second);
}

/* A refused connection is an error event on some loops. */
static void a_dead_node_is_told_as_such(void **state) {
    (void)state;
    redlock_manager_options options = world_options();
    options.nodes = (const char *[]){world_servers.uris[0], world_closed_uri(), world_servers.uris[1]};
    redlock_manager *manager = connected(&options);
    struct outcome *outcome = world_outcome();
    assert_int_equal(redlock_acquire(manager, "job", NULL, NULL, outcome_collect, outcome), REDLOCK_OK);
    UNTIL(outcome->runs == 1);
    assert_int_equal(outcome->code, REDLOCK_OK);
    assert_int_equal(outcome_vote(outcome, 1), REDLOCK_VOTE_FAILED);
    if (strstr(outcome_vote_error(outcome, 1), "connection refused") == NULL) {
        fail_msg("the dead node's error is: %s", outcome_vote_error(outcome, 1));
    }
    assert_int_equal(release(outcome->lease), REDLOCK_OK);
    close_manager(manager);
}

/* The connections that the server closes come back. */
static void a_node_that_restarts_is_connected_again(void **state) {
    (void)state;
    redlock_manager *manager = new_manager();
    server_kill(&world_servers.at[1]);
    UNTIL(world_node_info(manager, 1).state != REDLOCK_NODE_READY);
    server_restart(&world_servers.at[1]);
    UNTIL(world_node_info(manager, 1).state == REDLOCK_NODE_READY);
    assert_int_equal(world_node_info(manager, 1).connects, 2);
    close_manager(manager);
}

/* Turns until the loop's own timer, its only one, has run once. Returns how often the loop woke. */
static int wake_ups_in(int ms) {
    int turns = 0;
    stop_own();
    own.ticks = 0;
    loop_kind.start_timer(own.loop, ms, on_tick, NULL);
    while (own.ticks == 0) {
        loop_kind.turn(own.loop);
        turns++;
    }
    stop_own();
    start_own();
    return turns;
}

/* Nothing else wakes the loop than the timer of the test: an idle manager has none. */
static void an_idle_manager_wakes_nobody(void **state) {
    (void)state;
    redlock_manager_options options = world_options();
    redlock_manager *first = connected(&options), *second = connected(&options);
    redlock_acquire_options lasting = world_acquire_options(600000, 0);
    redlock_lease *lease = acquire(first, "idle", &lasting);
    UNTIL(servers_with_key(&world_servers, "idle") == 3 && world_statistics(first).requests_pending == 0);
    (void)wake_ups_in(50); /* what is still under way */
    assert_in_range(wake_ups_in(1200), 1, 2);
    assert_int_equal(release(lease), REDLOCK_OK);
    close_manager(second);
    close_manager(first);
}

/* The control of the test above: a manager with a timer of its own, the clock guard's second. */
static void a_timer_of_a_manager_wakes_the_loop(void **state) {
    (void)state;
    redlock_manager_options options = world_options();
    options.clock_guard = true;
    options.ttl_max_ms = 10000;
    redlock_manager *manager = connected(&options);
    (void)wake_ups_in(50);
    assert_true(wake_ups_in(2500) > 4);
    close_manager(manager);
}

#define CROWD 40

static struct {
    redlock_manager *managers[2];
    struct outcome outcomes[CROWD];
    int asked;
} crowd;

static int crowd_runs(void) {
    int runs = 0;
    for (int i = 0; i < CROWD; i++) {
        runs += crowd.outcomes[i].runs;
    }
    return runs;
}

static void ask_for_many(void *data) {
    char resource[32];
    (void)data;
    if (crowd.asked > 0) {
        return;
    }
    for (; crowd.asked < CROWD; crowd.asked++) {
        (void)snprintf(resource, sizeof resource, "crowd-%d", crowd.asked);
        if (redlock_acquire(crowd.managers[crowd.asked % 2], resource, NULL, NULL, outcome_collect,
                            &crowd.outcomes[crowd.asked]) != REDLOCK_OK) {
            support_fatal("an acquire was refused");
        }
    }
}

static void collect_and_ask(const redlock_result *result, void *data) {
    outcome_collect(result, data);
    ask_for_many(NULL);
}

/* Counts the writes until all requests of the crowd are answered: one for each node of each
 * manager. */
static void assert_one_write_a_node(void) {
    UNTIL(crowd_runs() == CROWD);
    assert_int_equal(sends, 6);
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(crowd.outcomes[i].code, REDLOCK_OK);
        assert_int_equal(release(crowd.outcomes[i].lease), REDLOCK_OK);
        outcome_clear(&crowd.outcomes[i]);
    }
    memset(crowd.outcomes, 0, sizeof crowd.outcomes);
    crowd.asked = 0;
}

/* R6: the requests of one turn leave together, wherever they are made. */
static void requests_of_one_turn_go_out_in_one_write(void **state) {
    (void)state;
    crowd.managers[0] = new_manager();
    crowd.managers[1] = new_manager();

    sends = 0; /* outside of the loop */
    ask_for_many(NULL);
    assert_int_equal(sends, 0);
    assert_one_write_a_node();

    stop_own(); /* in a callback of the loop's own timer */
    sends = 0;
    loop_kind.start_timer(own.loop, 1, ask_for_many, NULL);
    UNTIL(crowd.asked > 0);
    loop_kind.stop_timer(own.loop);
    start_own();
    assert_one_write_a_node();

    sends = 0; /* in a callback of the library */
    struct outcome *outcome = world_outcome();
    assert_int_equal(redlock_inspect(crowd.managers[0], "crowd", collect_and_ask, outcome), REDLOCK_OK);
    UNTIL(crowd.asked > 0);
    assert_int_equal(outcome->runs, 1);
    sends -= 3; /* of the inspection */
    assert_one_write_a_node();
    close_manager(crowd.managers[0]);
    close_manager(crowd.managers[1]);
}

static void count_tick(void *data) {
    (void)data;
    own.ticks++;
}

static void ask_late(void *data) {
    own.ticks = 0;
    ask_for_many(data);
}

/* As late as it may be: the loop still does not wait before the request is written. */
static void a_request_just_before_the_loop_waits_is_not_left_behind(void **state) {
    (void)state;
    if (loop_kind.before_wait == NULL) {
        skip(); /* the loop has no such moment */
    }
    crowd.managers[0] = new_manager();
    crowd.managers[1] = new_manager();
    stop_own();
    loop_kind.start_timer(own.loop, BRISK_MS, count_tick, NULL);
    sends = 0;
    loop_kind.before_wait(own.loop, ask_late, NULL);
    UNTIL(sends > 0);
    assert_int_equal(own.ticks, 0); /* nothing else woke it */
    loop_kind.stop_timer(own.loop);
    start_own();
    assert_one_write_a_node();
    close_manager(crowd.managers[0]);
    close_manager(crowd.managers[1]);
}

static struct {
    redlock_manager *manager;
    int generation, acquired;
} chain;

static void begin_chain(void);

static void chain_closed(void *data) {
    on_closed(data);
    if (chain.generation < 4) {
        begin_chain();
    }
}

static void chain_acquired(const redlock_result *result, void *data) {
    (void)data;
    chain.acquired += redlock_result_code(result) == REDLOCK_OK;
    if (redlock_manager_close(chain.manager, chain_closed, NULL) != REDLOCK_OK) {
        support_fatal("a manager could not be closed");
    }
}

/* Inside a callback, all but for the first time. */
static void begin_chain(void) {
    redlock_manager_options options = world_options();
    chain.generation++;
    chain.manager = try_manager(&options);
    if (redlock_acquire(chain.manager, "chain", NULL, NULL, chain_acquired, NULL) != REDLOCK_OK) {
        support_fatal("an acquire was refused");
    }
}

static void managers_begin_and_end_inside_callbacks(void **state) {
    (void)state;
    redlock_manager *other = new_manager();
    memset(&chain, 0, sizeof chain);
    begin_chain();
    UNTIL(own.closed == 4);
    assert_int_equal(chain.acquired, 4);
    UNTIL(servers_key_count(&world_servers) == 0);
    close_manager(other);
}

static void a_manager_that_cannot_be_made_leaves_nothing(void **state) {
    (void)state;
    redlock_manager_options options = world_options();
    redlock_manager *manager = NULL;
    char error[256] = "";
    options.nodes = (const char *[]){world_servers.uris[0], world_servers.uris[1], world_servers.uris[0]};
    assert_int_equal(loop_kind.create(own.loop, &options, &manager, error, sizeof error), REDLOCK_ERR_INVALID);
    assert_null(manager);
    assert_non_null(strstr(error, "nodes 1 and 3 are both"));
}

/* A child gives up its copies, and may go on with its loop; the parent's connections and timer stay
 * watched. */
static void child(redlock_manager *first, redlock_manager *second, bool goes_on) {
    if (goes_on) {
        loop_kind.after_fork(own.loop);
        const size_t before = world_log.lines;
        own.ticks = 0;
        while (own.ticks < 5) {
            loop_kind.turn(own.loop);
        }
        if (world_log.lines != before) {
            _exit(2);
        }
    }
    redlock_manager_abandon(first);
    redlock_manager_abandon(second);
    if (goes_on) {
        own.ticks = 0;
        while (own.ticks < 5) {
            loop_kind.turn(own.loop);
        }
    }
    _exit(0);
}

static void a_fork_leaves_the_parents_locks_alone(void **state) {
    (void)state;
    redlock_manager *first = new_manager(), *second = new_manager();
    redlock_acquire_options options = world_acquire_options(RENEW_MS, 0);
    struct loss *loss = world_loss();
    options.auto_extend = true;
    options.on_lost = loss_collect;
    options.lost_data = loss;
    redlock_lease *lease = acquire(first, "forked", &options);
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        int status;
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            child(first, second, goes_on == 1);
        }
        const uint64_t extends = world_statistics(first).extends;
        UNTIL(waitpid(pid, &status, WNOHANG) == pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        UNTIL(world_statistics(first).extends >= extends + 4);
    }
    assert_int_equal(release(lease), REDLOCK_OK);
    assert_int_equal(loss->runs, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(world_node_info(first, i).connects, 1);
        assert_int_equal(world_node_info(second, i).connects, 1);
    }
    close_manager(first);
    close_manager(second);
}

/* R2: a lease ends while the machine is suspended. The kernel's timer fires at the resume, since it
 * counts that time; the loop's own timers do not. */
static void a_lease_is_lost_while_the_machine_is_suspended(void **state) {
    (void)state;
    redlock_manager *manager = new_manager();
    struct loss *loss = world_loss();
    redlock_acquire_options options = world_acquire_options(600000, 0);
    options.on_lost = loss_collect;
    options.lost_data = loss;
    redlock_lease *lease = acquire(manager, "suspended", &options);
    assert_int_equal(timer_clock, CLOCK_BOOTTIME);
    assert_true(redlock_lease_validity_ms(lease) > 0);
    (void)wake_ups_in(50);
    stop_own();
    suspended_s = 3600;
    const struct itimerspec now = {.it_value.tv_nsec = 1};
    assert_int_equal(__real_timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &now, NULL), 0);
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    assert_int_equal(loss->runs, 0);
    for (int turns = 0; turns < 3 && loss->runs == 0; turns++) {
        loop_kind.turn(own.loop); /* nothing but the library's timer can wake it */
    }
    assert_int_equal(loss->runs, 1);
    start_own();
    (void)release(lease);
    close_manager(manager);
}

#define loop_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        loop_test(a_lock_lives_beside_the_loops_own_work),
        loop_test(a_dead_node_is_told_as_such),
        loop_test(a_node_that_restarts_is_connected_again),
        loop_test(an_idle_manager_wakes_nobody),
        loop_test(a_timer_of_a_manager_wakes_the_loop),
        loop_test(requests_of_one_turn_go_out_in_one_write),
        loop_test(a_request_just_before_the_loop_waits_is_not_left_behind),
        loop_test(managers_begin_and_end_inside_callbacks),
        loop_test(a_manager_that_cannot_be_made_leaves_nothing),
        loop_test(a_fork_leaves_the_parents_locks_alone),
        loop_test(a_lease_is_lost_while_the_machine_is_suspended),
    };
    return cmocka_run_group_tests(tests, world_three, world_end);
}
