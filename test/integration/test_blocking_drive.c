/* Who drives the loop: a caller does its own call, the client's thread does the rest. A signal
 * holds the thread up, so that what is done meanwhile is done by callers. */
#include "blocking_kit.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool held_up, may_go_on;

/* Of the client's thread, or of a caller. */
static void hold_up(int signal) {
    (void)signal;
    atomic_store(&held_up, true);
    while (!atomic_load(&may_go_on)) {
        support_pause_ms(1);
    }
    atomic_store(&held_up, false);
}

#define THREADS_MAX 64

struct threads {
    pid_t ids[THREADS_MAX];
    size_t count;
};

static struct threads threads_now(void) {
    struct threads now = {.count = 0};
    DIR *directory = opendir("/proc/self/task");
    kit_must(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) && now.count < THREADS_MAX;) {
        now.ids[now.count++] = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    (void)closedir(directory);
    return now;
}

static bool has(const struct threads *threads, pid_t id) {
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->ids[i] == id) {
            return true;
        }
    }
    return false;
}

/* The thread that has begun since. */
static pid_t thread_since(const struct threads *before) {
    const struct threads now = threads_now();
    pid_t thread = 0;
    for (size_t i = 0; i < now.count; i++) {
        thread = has(before, now.ids[i]) ? thread : now.ids[i];
    }
    kit_must(thread > 0);
    return thread;
}

/* A line of a file in /proc about a thread. */
static void read_of(pid_t thread, const char *file, const char *word, char line[256]) {
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/%s", (long)thread, file);
    FILE *stream = fopen(path, "r");
    kit_must(stream);
    do {
        kit_must(fgets(line, 256, stream));
    } while (strncmp(line, word, strlen(word)) != 0);
    (void)fclose(stream);
}

/* It has slept for longer than naps are, so it drives nothing: it waits until something comes. Who
 * only waits for a processor does not sleep. */
static bool is_idle(pid_t thread) {
    char state[2][256], switches[2][256];
    for (int i = 0; i < 2; i++) {
        support_pause_ms(i * 20);
        read_of(thread, "status", "State:", state[i]);
        read_of(thread, "status", "voluntary_ctxt_switches:", switches[i]);
    }
    return strstr(state[0], "S (") && strstr(state[1], "S (") && strcmp(switches[0], switches[1]) == 0;
}

/* The client's thread blocks all signals but those of faults. While it drives, nobody else does. */
static void stop_thread(pid_t thread) {
    const struct sigaction action = {.sa_handler = hold_up};
    kit_until(is_idle(thread));
    kit_must(sigaction(SIGTRAP, &action, NULL) == 0);
    atomic_store(&may_go_on, false);
    kit_must(syscall(SYS_tgkill, getpid(), thread, SIGTRAP) == 0);
    kit_until(atomic_load(&held_up));
}

static void continue_thread(void) {
    atomic_store(&may_go_on, true);
    kit_until(!atomic_load(&held_up));
}

/* A client that is connected, and its thread. */
static redlock_client *idle_client(pid_t *thread) {
    const struct threads before = threads_now();
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    *thread = thread_since(&before);
    kit_release(client, kit_acquire(client, "first", 0));
    return client;
}

static uint64_t acquires_of(redlock_client *client) {
    redlock_statistics statistics = {.size = sizeof statistics};
    kit_must(redlock_client_statistics(client, &statistics) == REDLOCK_OK);
    return statistics.acquires;
}

/* A thread waits for what somebody else holds, and drives. No other call meets it while it begins:
 * that would pass the drive to the client's thread. */
static void begin_waiting(struct kit_waiter *waiter, redlock_client *client, redlock_cancel *cancel) {
    kit_wait(waiter, client, "r", cancel);
    kit_until(servers_with_key(&kit_servers, "r:wait") == kit_servers.count);
}

TESTS_WITH(kit_start, kit_stop);

KIT_TEST(a_lone_call_needs_no_other_thread) {
    pid_t thread;
    redlock_client *client = idle_client(&thread);
    stop_thread(thread);
    for (int i = 0; i < 20; i++) {
        redlock_lease *lease = kit_acquire(client, "r", 0);
        assert_is(redlock_client_extend(client, lease, 30000, NULL), REDLOCK_OK);
        assert_true(acquires_of(client) > 0);
        kit_release(client, lease);
    }
    continue_thread();
    kit_release(client, kit_acquire(client, "r", 0));
    kit_expect_no_keys();
}

KIT_TEST(who_drives_does_the_calls_of_others_while_it_waits) {
    pid_t thread;
    struct kit_waiter waiter;
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS), *client = idle_client(&thread);
    redlock_lease *lease = kit_acquire(rival, "r", 0);
    stop_thread(thread);
    begin_waiting(&waiter, client, NULL);
    for (int i = 0; i < 20; i++) {
        kit_release(client, kit_acquire(client, "other", 0));
    }
    kit_release(rival, lease);
    kit_until(atomic_load(&waiter.done));
    pthread_join(waiter.thread, NULL);
    assert_is(waiter.code, REDLOCK_OK);
    continue_thread();
    kit_release(client, waiter.lease);
    kit_expect_no_keys();
}

/* What is kept is renewed every two seconds. It is lost if everybody stands still for four. */
#define KEPT_TTL_MS 6000

/* The first renewal that is seen may have begun before. */
struct renewals {
    const redlock_lease *lease;
    int64_t validity_ms;
    int seen;
};

static struct renewals renewals_of(const redlock_lease *lease) {
    return (struct renewals){.lease = lease, .validity_ms = redlock_lease_validity_ms(lease)};
}

static bool is_renewed(struct renewals *renewals) {
    const int64_t validity_ms = redlock_lease_validity_ms(renewals->lease);
    assert_true(validity_ms > 0);
    renewals->seen += validity_ms > renewals->validity_ms;
    renewals->validity_ms = validity_ms;
    return renewals->seen > 1;
}

static void expect_renewed(const redlock_lease *lease) {
    for (struct renewals renewals = renewals_of(lease); !is_renewed(&renewals);) {
        support_pause_ms(5);
    }
}

KIT_TEST(leases_are_renewed_while_nobody_calls_and_while_a_caller_drives) {
    pid_t thread;
    struct kit_waiter waiter;
    redlock_lease *lease = NULL;
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS), *client = idle_client(&thread);
    redlock_lease *theirs = kit_acquire(rival, "r", 0);
    redlock_client_acquire_options options = kit_options(KEPT_TTL_MS, 0);
    options.lock.auto_extend = true;
    assert_is(redlock_client_acquire(client, "kept", &options, &lease, NULL), REDLOCK_OK);
    expect_renewed(lease);
    stop_thread(thread);
    begin_waiting(&waiter, client, NULL);
    expect_renewed(lease);
    continue_thread();
    kit_release(rival, theirs);
    pthread_join(waiter.thread, NULL);
    kit_release(client, waiter.lease);
    kit_release(client, lease);
}

struct asking {
    redlock_client *client;
    atomic_bool over;
};

static void *ask_for_node(void *data) {
    struct asking *asking = data;
    while (!atomic_load(&asking->over)) {
        redlock_node_info info = {.size = sizeof info};
        kit_must(redlock_client_node(asking->client, 0, &info) == REDLOCK_OK);
        redlock_node_info_free(&info);
    }
    return NULL;
}

static bool is_ready(redlock_client *client, size_t node) {
    redlock_node_info info = {.size = sizeof info};
    assert_is(redlock_client_node(client, node, &info), REDLOCK_OK);
    const bool ready = info.state == REDLOCK_NODE_READY;
    redlock_node_info_free(&info);
    return ready;
}

/* Such a call is done before its caller looks at the loop. */
KIT_TEST(calls_that_ask_no_node_do_not_keep_the_loop_from_its_work) {
    redlock_lease *lease = NULL;
    pthread_t thread;
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    struct asking asking = {.client = client};
    redlock_client_acquire_options options = kit_options(KEPT_TTL_MS, 0);
    options.lock.auto_extend = true;
    assert_is(redlock_client_acquire(client, "kept", &options, &lease, NULL), REDLOCK_OK);
    for (int threads = 1; threads <= 2; threads++) {
        if (threads > 1) {
            assert_int_equal(pthread_create(&thread, NULL, ask_for_node, &asking), 0);
        }
        for (struct renewals renewals = renewals_of(lease); !is_renewed(&renewals);) {
            assert_true(acquires_of(client) == 1);
        }
    }
    atomic_store(&asking.over, true);
    pthread_join(thread, NULL);
    server_stop(&kit_servers.at[0]);
    for (const int64_t until_ms = support_now_ms() + PATIENT_MS; is_ready(client, 0);) {
        assert_true(support_now_ms() < until_ms);
    }
    server_restart(&kit_servers.at[0]);
    for (const int64_t until_ms = support_now_ms() + PATIENT_MS; !is_ready(client, 0);) {
        assert_true(support_now_ms() < until_ms);
    }
    kit_release(client, lease);
}

static void *release_other(void *data) {
    struct kit_waiter *other = data;
    kit_release(other->client, kit_acquire(other->client, "other", 0));
    atomic_store(&other->done, true);
    return NULL;
}

/* It waits for a wake-up, and not for the loop. */
static bool is_woken_by_others(pid_t thread) {
    char line[256];
    read_of(thread, "syscall", "", line);
    return strtol(line, NULL, 10) == SYS_futex;
}

/* A caller whose own call waits has passed the drive, so it may stop where it is. */
KIT_TEST(a_caller_that_waits_for_long_and_stops_holds_up_nobody) {
    pid_t thread;
    struct kit_waiter waiter;
    redlock_lease *lease = NULL;
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS), *client = idle_client(&thread);
    struct kit_waiter other = {.client = client};
    redlock_lease *theirs = kit_acquire(rival, "r", 0);
    redlock_client_acquire_options options = kit_options(KEPT_TTL_MS, 0);
    options.lock.auto_extend = true;
    assert_is(redlock_client_acquire(client, "kept", &options, &lease, NULL), REDLOCK_OK);
    kit_until(is_idle(thread));
    const struct threads before = threads_now();
    begin_waiting(&waiter, client, NULL);
    kit_until(is_woken_by_others(thread_since(&before)));
    const struct sigaction action = {.sa_handler = hold_up};
    kit_must(sigaction(SIGTRAP, &action, NULL) == 0);
    atomic_store(&may_go_on, false);
    assert_int_equal(pthread_kill(waiter.thread, SIGTRAP), 0);
    kit_until(atomic_load(&held_up));
    expect_renewed(lease);
    assert_int_equal(pthread_create(&other.thread, NULL, release_other, &other), 0);
    kit_until(atomic_load(&other.done));
    pthread_join(other.thread, NULL);
    continue_thread();
    kit_release(rival, theirs);
    pthread_join(waiter.thread, NULL);
    kit_release(client, waiter.lease);
    kit_release(client, lease);
}

struct busy {
    redlock_client *client;
    char resource[8];
    atomic_bool *over;
    atomic_uint cycles;
};

static void *cycle(void *data) {
    struct busy *busy = data;
    while (!atomic_load(busy->over)) {
        kit_release(busy->client, kit_acquire(busy->client, busy->resource, 0));
        atomic_fetch_add(&busy->cycles, 1);
    }
    return NULL;
}

/* Whoever drove for others as long as they call would not return. */
KIT_TEST(nobody_works_for_others_without_an_end) {
    atomic_bool over = false;
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    struct busy busy[4];
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++) {
        busy[i] = (struct busy){.client = client, .over = &over};
        (void)snprintf(busy[i].resource, sizeof busy[i].resource, "r%u", i);
        assert_int_equal(pthread_create(&threads[i], NULL, cycle, &busy[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        for (int round = 0; round < 5; round++) {
            const unsigned seen = atomic_load(&busy[i].cycles);
            kit_until(atomic_load(&busy[i].cycles) > seen + 20);
        }
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    kit_expect_no_keys();
}

struct loss {
    pid_t thread;
    int64_t at_ms;
    atomic_bool told;
};

static void on_lost(redlock_lease *lease, const char *reason, void *data) {
    struct loss *loss = data;
    (void)lease;
    (void)reason;
    loss->thread = (pid_t)syscall(SYS_gettid);
    loss->at_ms = support_now_ms();
    atomic_store(&loss->told, true);
}

/* Also while others call all the time. */
KIT_TEST(a_loss_is_told_in_time_and_on_the_clients_thread) {
    pid_t thread;
    atomic_bool over = false;
    struct loss loss = {0};
    redlock_lease *lease = NULL;
    redlock_client *client = idle_client(&thread);
    struct busy busy = {.client = client, .resource = "busy", .over = &over};
    pthread_t calling;
    redlock_client_acquire_options options = kit_options(800, 0);
    options.lock.on_lost = on_lost;
    options.lock.lost_data = &loss;
    for (int calls = 0; calls < 2; calls++) {
        atomic_store(&loss.told, false);
        if (calls) {
            assert_int_equal(pthread_create(&calling, NULL, cycle, &busy), 0);
            kit_until(atomic_load(&busy.cycles) > 20);
        }
        int64_t until_ms;
        int code;
        do {
            until_ms = support_now_ms() + 800;
            code = redlock_client_acquire(client, "r", &options, &lease, NULL);
        } while (code == REDLOCK_ERR_TOO_SLOW);
        assert_is(code, REDLOCK_OK);
        kit_until(atomic_load(&loss.told));
        assert_int_equal(loss.thread, thread);
        assert_true(loss.at_ms < until_ms + NODE_TIMEOUT_MS); /* the machine may be slow */
        assert_is(redlock_client_release(client, lease, NULL), REDLOCK_ERR_LOST);
    }
    atomic_store(&over, true);
    pthread_join(calling, NULL);
    stop_thread(thread); /* no lease with callbacks is left, so callers drive again */
    kit_release(client, kit_acquire(client, "r", 0));
    continue_thread();
}

static void *release_it(void *data) {
    struct kit_waiter *releasing = data;
    releasing->code = redlock_client_release(releasing->client, releasing->lease, NULL);
    return NULL;
}

/* The release alone ends the lease's callbacks. */
KIT_TEST(a_lease_that_is_being_released_is_not_forgotten) {
    pid_t thread;
    struct loss loss = {0};
    redlock_client *client = idle_client(&thread);
    struct kit_waiter releasing = {.client = client};
    redlock_client_acquire_options options = kit_options(60000, 0);
    options.lock.on_lost = on_lost;
    options.lock.lost_data = &loss;
    assert_is(redlock_client_acquire(client, "r", &options, &releasing.lease, NULL), REDLOCK_OK);
    servers_each(&kit_servers, 0, kit_servers.count, server_pause);
    const struct threads before = threads_now();
    assert_int_equal(pthread_create(&releasing.thread, NULL, release_it, &releasing), 0);
    kit_until(is_woken_by_others(thread_since(&before)));
    assert_is(redlock_client_forget(client, releasing.lease), REDLOCK_OK);
    servers_each(&kit_servers, 0, kit_servers.count, server_resume);
    pthread_join(releasing.thread, NULL);
    assert_is(releasing.code, REDLOCK_OK);
    assert_false(atomic_load(&loss.told));
    stop_thread(thread); /* no lease with callbacks is left, so callers drive again */
    kit_release(client, kit_acquire(client, "r", 0));
    continue_thread();
    kit_expect_no_keys();
}

static void *acquire_once(void *data) {
    struct kit_waiter *waiter = data;
    waiter->options = kit_options(60000, 0);
    waiter->code = redlock_client_acquire(waiter->client, "r", &waiter->options, &waiter->lease, NULL);
    atomic_store(&waiter->done, true);
    return NULL;
}

/* Answers to a renewal must not wait for a nap. */
KIT_TEST(the_thread_alone_drives_where_the_node_timeout_is_short) {
    const struct threads before = threads_now();
    struct kit_waiter waiter = {.client = kit_client(5)};
    stop_thread(thread_since(&before));
    assert_int_equal(pthread_create(&waiter.thread, NULL, acquire_once, &waiter), 0);
    support_pause_ms(100);
    assert_false(atomic_load(&waiter.done));
    continue_thread();
    pthread_join(waiter.thread, NULL); /* with or without the lock */
}

static bool note_thread(const redlock_listed *lock, void *data) {
    pid_t *thread = data;
    (void)lock;
    *thread = (pid_t)syscall(SYS_gettid);
    return true;
}

KIT_TEST(a_listing_runs_on_the_clients_thread) {
    pid_t thread, told = 0;
    redlock_client *client = idle_client(&thread);
    redlock_lease *lease = kit_acquire(client, "r", 0);
    assert_is(redlock_client_list(client, NULL, note_thread, &told, NULL), REDLOCK_OK);
    assert_int_equal(told, thread);
    kit_release(client, lease);
}

KIT_TEST(a_cancel_reaches_a_call_that_drives) {
    pid_t thread;
    struct kit_waiter waiter;
    redlock_cancel *cancel = NULL;
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS), *client = idle_client(&thread);
    redlock_lease *lease = kit_acquire(rival, "r", 0);
    assert_is(redlock_cancel_new(client, &cancel), REDLOCK_OK);
    stop_thread(thread);
    begin_waiting(&waiter, client, cancel);
    redlock_cancel_set(cancel);
    kit_until(atomic_load(&waiter.done));
    continue_thread();
    pthread_join(waiter.thread, NULL);
    assert_is(waiter.code, REDLOCK_ERR_CANCELLED);
    kit_release(rival, lease);
    kit_expect_no_keys();
    redlock_cancel_free(cancel);
}

KIT_TEST(a_client_closes_while_a_call_drives) {
    pid_t thread;
    struct kit_waiter waiter;
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS), *client = idle_client(&thread);
    redlock_lease *lease = kit_acquire(rival, "r", 0);
    begin_waiting(&waiter, client, NULL);
    kit_close(client);
    pthread_join(waiter.thread, NULL);
    assert_is(waiter.code, REDLOCK_ERR_CLOSED);
    kit_release(rival, lease);
    kit_expect_no_keys();
}

KIT_TEST(a_fork_while_a_call_drives_harms_neither_side) {
    pid_t thread;
    struct kit_waiter waiter;
    redlock_client *rival = kit_client(NODE_TIMEOUT_MS), *client = idle_client(&thread);
    redlock_lease *lease = kit_acquire(rival, "r", 0);
    begin_waiting(&waiter, client, NULL);
    for (int i = 0; i < 20; i++) {
        const pid_t child = fork();
        if (child == 0) {
            redlock_lease *none = NULL;
            alarm(60);
            const int code = redlock_client_acquire(client, "x", NULL, &none, NULL);
            _exit(code == REDLOCK_ERR_FORKED && redlock_client_close(client) == REDLOCK_OK ? 0 : 1);
        }
        assert_exits(child, 0);
    }
    kit_release(rival, lease);
    pthread_join(waiter.thread, NULL);
    assert_is(waiter.code, REDLOCK_OK);
    kit_release(client, waiter.lease);
    kit_expect_no_keys();
}
