/* The library on an event loop of any kind (kind.h): locks beside the loop's own timer and socket,
 * wake-ups, writes, ends inside callbacks, forks, and a machine that was suspended. */
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

#define TTL_MS 2400 /* long enough for a machine under load */

TESTS_WITH(world_three, world_end);

/* One manager acquires and renews; another one on the same loop waits in the queue, and gets the
 * lock by the release; its servers die, and it is told in time. Meanwhile the loop's own timer and
 * sockets go on. */
LOOP_TEST(a_lock_lives_beside_the_loops_own_work) {
    redlock_manager *first = kit_new_manager(), *second = kit_new_manager();
    redlock_acquire_options options = world_acquire_options(TTL_MS, 0);
    options.auto_extend = true;
    redlock_lease *lease = kit_acquire(first, "job", &options);

    struct outcome *waiter = world_outcome();
    struct loss *loss = world_loss();
    redlock_acquire_options patient = world_loss_options(TTL_MS, REDLOCK_WAIT_FOREVER, loss);
    patient.auto_extend = true;
    assert_is(redlock_acquire(second, "job", &patient, NULL, outcome_collect, waiter), REDLOCK_OK);
    const int ticks = own.ticks, echoes = own.echoes;
    UNTIL(world_statistics(first).extends >= 3);
    assert_int_equal(waiter->runs, 0);
    assert_true(redlock_lease_validity_ms(lease) > 0);
    assert_true(own.ticks > ticks + 5 && own.echoes > echoes + 5);

    assert_is(kit_release(lease), REDLOCK_OK);
    UNTIL(waiter->runs == 1);
    assert_is(waiter->code, REDLOCK_OK);
    UNTIL(world_statistics(second).extends >= 2);
    server_kill(&world_servers.at[0]);
    server_kill(&world_servers.at[2]);
    const int64_t killed_ms = support_now_ms();
    UNTIL(loss->runs == 1);
    assert_true(support_now_ms() - killed_ms <= TTL_MS + PATIENT_MS);
    assert_int_equal(loss->validity_ms, 0);
    assert_int_not_equal(kit_release(waiter->lease), REDLOCK_OK);
    kit_close_manager(first);
    kit_close_manager(second);
}

/* A refused connection is an error event on some loops. */
LOOP_TEST(a_dead_node_is_told_as_such) {
    redlock_manager_options options = kit_options();
    options.nodes = (const char *[]){world_servers.uris[0], world_closed_uri(), world_servers.uris[1]};
    redlock_manager *manager = kit_connected(&options);
    struct outcome *outcome = world_outcome();
    assert_is(redlock_acquire(manager, "job", NULL, NULL, outcome_collect, outcome), REDLOCK_OK);
    UNTIL(outcome->runs == 1);
    assert_is(outcome->code, REDLOCK_OK);
    assert_is(outcome_vote(outcome, 1), REDLOCK_VOTE_FAILED);
    assert_contains(outcome_vote_error(outcome, 1), "connection refused");
    assert_is(kit_release(outcome->lease), REDLOCK_OK);
    kit_close_manager(manager);
}

/* The connections that the server closes come back. */
LOOP_TEST(a_node_that_restarts_is_connected_again) {
    redlock_manager *manager = kit_new_manager();
    server_kill(&world_servers.at[1]);
    UNTIL(world_node_info(manager, 1).state != REDLOCK_NODE_READY);
    server_restart(&world_servers.at[1]);
    UNTIL(world_node_info(manager, 1).state == REDLOCK_NODE_READY);
    assert_int_equal(world_node_info(manager, 1).connects, 2);
    kit_close_manager(manager);
}

/* Turns until the loop's own timer, its only one, has run once. Returns how often the loop woke. */
static int wake_ups_in(int ms) {
    int turns = 0;
    kit_stop_own();
    own.ticks = 0;
    loop_start_timer(ms, kit_on_tick);
    while (own.ticks == 0) {
        loop_turn();
        turns++;
    }
    kit_stop_own();
    kit_start_own();
    return turns;
}

/* Nothing else wakes the loop than the timer of the test: an idle manager has none. */
LOOP_TEST(an_idle_manager_wakes_nobody) {
    redlock_manager_options options = kit_options();
    redlock_manager *first = kit_connected(&options), *second = kit_connected(&options);
    redlock_acquire_options lasting = world_acquire_options(600000, 0);
    redlock_lease *lease = kit_acquire(first, "idle", &lasting);
    UNTIL(servers_with_key(&world_servers, "idle") == 3 && world_statistics(first).requests_pending == 0);
    (void)wake_ups_in(50); /* what is still under way */
    assert_in_range(wake_ups_in(1200), 1, 2);
    assert_is(kit_release(lease), REDLOCK_OK);
    kit_close_manager(second);
    kit_close_manager(first);
}

/* The control of the test above: a manager with a timer of its own, the clock guard's second. */
LOOP_TEST(a_timer_of_a_manager_wakes_the_loop) {
    redlock_manager_options options = kit_options();
    options.clock_guard = true;
    options.ttl_max_ms = 10000;
    redlock_manager *manager = kit_connected(&options);
    (void)wake_ups_in(50);
    assert_true(wake_ups_in(2500) > 4);
    kit_close_manager(manager);
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

static void ask_for_many(void) {
    char resource[32];
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
    ask_for_many();
}

/* Counts the writes until all requests of the crowd are answered: one for each node of each
 * manager. */
static void assert_one_write_a_node(void) {
    UNTIL(crowd_runs() == CROWD);
    assert_int_equal(kit_sends, 6);
    for (int i = 0; i < CROWD; i++) {
        assert_is(crowd.outcomes[i].code, REDLOCK_OK);
        assert_is(kit_release(crowd.outcomes[i].lease), REDLOCK_OK);
        outcome_clear(&crowd.outcomes[i]);
    }
    memset(crowd.outcomes, 0, sizeof crowd.outcomes);
    crowd.asked = 0;
}

/* R6: the requests of one turn leave together, wherever they are made. */
LOOP_TEST(requests_of_one_turn_go_out_in_one_write) {
    crowd.managers[0] = kit_new_manager();
    crowd.managers[1] = kit_new_manager();

    kit_sends = 0; /* outside of the loop */
    ask_for_many();
    assert_int_equal(kit_sends, 0);
    assert_one_write_a_node();

    kit_stop_own(); /* in a callback of the loop's own timer */
    kit_sends = 0;
    loop_start_timer(1, ask_for_many);
    UNTIL(crowd.asked > 0);
    loop_stop_timer();
    kit_start_own();
    assert_one_write_a_node();

    kit_sends = 0; /* in a callback of the library */
    struct outcome *outcome = world_outcome();
    assert_is(redlock_inspect(crowd.managers[0], "crowd", collect_and_ask, outcome), REDLOCK_OK);
    UNTIL(crowd.asked > 0);
    assert_int_equal(outcome->runs, 1);
    kit_sends -= 3; /* of the inspection */
    assert_one_write_a_node();
    kit_close_manager(crowd.managers[0]);
    kit_close_manager(crowd.managers[1]);
}

static void count_tick(void) {
    own.ticks++;
}

static void ask_late(void) {
    own.ticks = 0;
    ask_for_many();
}

/* As late as it may be: the loop still does not wait before the request is written. */
LOOP_TEST(a_request_just_before_the_loop_waits_is_not_left_behind) {
    crowd.managers[0] = kit_new_manager();
    crowd.managers[1] = kit_new_manager();
    kit_stop_own();
    loop_start_timer(BRISK_MS, count_tick);
    kit_sends = 0;
    const bool is_offered = loop_before_wait(ask_late);
    UNTIL(kit_sends > 0 || !is_offered);
    assert_true(!is_offered || own.ticks == 0); /* nothing else woke it */
    loop_stop_timer();
    kit_start_own();
    if (is_offered) {
        assert_one_write_a_node();
    }
    kit_close_manager(crowd.managers[0]);
    kit_close_manager(crowd.managers[1]);
    if (!is_offered) {
        skip();
    }
}

static struct {
    redlock_manager *manager;
    int generation, acquired;
} chain;

static void begin_chain(void);

static void chain_closed(void *data) {
    kit_on_closed(data);
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
    redlock_manager_options options = kit_options();
    chain.generation++;
    chain.manager = kit_try_manager(&options);
    if (redlock_acquire(chain.manager, "chain", NULL, NULL, chain_acquired, NULL) != REDLOCK_OK) {
        support_fatal("an acquire was refused");
    }
}

LOOP_TEST(managers_begin_and_end_inside_callbacks) {
    redlock_manager *other = kit_new_manager();
    memset(&chain, 0, sizeof chain);
    begin_chain();
    UNTIL(own.closed == 4);
    assert_int_equal(chain.acquired, 4);
    UNTIL(servers_key_count(&world_servers) == 0);
    kit_close_manager(other);
}

LOOP_TEST(a_manager_that_cannot_be_made_leaves_nothing) {
    redlock_manager_options options = kit_options();
    redlock_manager *manager = NULL;
    char error[256] = "";
    options.nodes = (const char *[]){world_servers.uris[0], world_servers.uris[1], world_servers.uris[0]};
    assert_is(loop_create(&options, &manager, error, sizeof error), REDLOCK_ERR_INVALID);
    assert_null(manager);
    assert_contains(error, "nodes 1 and 3 are both");
}

/* A child gives up its copies, and may go on with its loop; the parent's connections and timer stay
 * watched. */
static void child(redlock_manager *first, redlock_manager *second, bool goes_on) {
    if (goes_on) {
        loop_after_fork();
        const size_t before = world_log.lines;
        own.ticks = 0;
        while (own.ticks < 5) {
            loop_turn();
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
            loop_turn();
        }
    }
    _exit(0);
}

LOOP_TEST(a_fork_leaves_the_parents_locks_alone) {
    redlock_manager *first = kit_new_manager(), *second = kit_new_manager();
    struct loss *loss = world_loss();
    redlock_acquire_options options = world_loss_options(TTL_MS, 0, loss);
    options.auto_extend = true;
    redlock_lease *lease = kit_acquire(first, "forked", &options);
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        int status;
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            child(first, second, goes_on == 1);
        }
        const uint64_t extends = world_statistics(first).extends;
        UNTIL(waitpid(pid, &status, WNOHANG) == pid);
        assert_exited(status, 0);
        UNTIL(world_statistics(first).extends >= extends + 2);
    }
    assert_is(kit_release(lease), REDLOCK_OK);
    assert_int_equal(loss->runs, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(world_node_info(first, i).connects, 1);
        assert_int_equal(world_node_info(second, i).connects, 1);
    }
    kit_close_manager(first);
    kit_close_manager(second);
}

/* R2: a lease ends while the machine is suspended. The kernel's timer fires at the resume, since it
 * counts that time; the loop's own timers do not. */
LOOP_TEST(a_lease_is_lost_while_the_machine_is_suspended) {
    redlock_manager *manager = kit_new_manager();
    struct loss *loss = world_loss();
    redlock_acquire_options options = world_loss_options(600000, 0, loss);
    redlock_lease *lease = kit_acquire(manager, "suspended", &options);
    assert_int_equal(kit_timer_clock, CLOCK_BOOTTIME);
    assert_true(redlock_lease_validity_ms(lease) > 0);
    (void)wake_ups_in(50);
    kit_stop_own();
    kit_suspended_s = 3600;
    const struct itimerspec now = {.it_value.tv_nsec = 1};
    assert_int_equal(__real_timerfd_settime(kit_timer_fd, TFD_TIMER_ABSTIME, &now, NULL), 0);
    assert_int_equal(redlock_lease_validity_ms(lease), 0);
    assert_int_equal(loss->runs, 0);
    for (int turns = 0; turns < 3 && loss->runs == 0; turns++) {
        loop_turn(); /* nothing but the library's timer can wake it */
    }
    assert_int_equal(loss->runs, 1);
    kit_start_own();
    (void)kit_release(lease);
    kit_close_manager(manager);
}
