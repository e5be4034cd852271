/* The conductor's processes: how they start, how their ends are recorded, and that they end with
 * the conductor. */
#include "client_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/crew.h"
#include "values/clock.h"

static struct chaos_crew crew;
static struct chaos_log log_;
static struct chaos_settings settings;
static const char *conductor_path, *client_path;

static int setup(void **state) {
    static uint16_t ports[KIT_NODES];
    kit_setup(state);
    settings = kit_settings();
    conductor_path = kit_path("conductor.jsonl");
    client_path = kit_path("client-1.jsonl");
    if (!chaos_log_open(&log_, conductor_path)) {
        return -1;
    }
    crew = (struct chaos_crew){.client_count = 2, .log = &log_};
    crew.client[0] = kit_client(0, &settings, client_path);
    crew.client[1] = kit_client(1, &settings, kit_path("client-2.jsonl"));
    for (size_t n = 0; n < KIT_NODES; n++) {
        ports[n] = (uint16_t)kit_servers.at[n].port;
    }
    crew.auditor_options = (struct chaos_auditor_options){.ports = ports,
                                                          .node_count = KIT_NODES,
                                                          .resources = kit_resources,
                                                          .resource_count = KIT_RESOURCES,
                                                          .interval_ms = 50,
                                                          .timeout_ms = 40,
                                                          .log_path = kit_path("auditor.jsonl")};
    return 0;
}

static void reap(pid_t pid) {
    int status;
    pid_t ended;
    kit_until((ended = waitpid(pid, &status, WNOHANG)) != 0);
    assert_int_equal(ended, pid);
    assert_true(chaos_crew_ended(&crew, pid, status));
}

static int teardown(void **state) {
    for (size_t c = 0; c < crew.client_count; c++) {
        if (crew.clients[c].pid != 0) {
            (void)kill(crew.clients[c].pid, SIGKILL);
            reap(crew.clients[c].pid);
        }
    }
    if (crew.auditor != 0) {
        (void)kill(crew.auditor, SIGKILL);
        reap(crew.auditor);
    }
    chaos_log_close(&log_);
    return kit_teardown(state);
}

/* The last event with this name. The caller frees it. */
static json_t *last(const char *name) {
    json_t *events = kit_events(conductor_path), *event, *found = NULL;
    size_t index;
    json_array_foreach(events, index, event) {
        if (kit_is(event, name)) {
            found = event;
        }
    }
    assert_non_null(found);
    json_incref(found);
    json_decref(events);
    return found;
}

static void expect_exit(pid_t pid, int64_t client, int64_t status, int64_t signal, bool expected) {
    json_t *exit_event = last("exit");
    assert_int_equal(kit_number(exit_event, "client"), client);
    assert_int_equal(kit_number(exit_event, "pid"), pid);
    assert_int_equal(kit_number(exit_event, "status"), status);
    assert_int_equal(kit_number(exit_event, "signal"), signal);
    assert_int_equal(json_is_true(json_object_get(exit_event, "expected")), expected);
    json_decref(exit_event);
}

TESTS_WITH(kit_start, kit_stop);
#define CREW_TEST(name) TEST_WITH(name, setup, teardown)

CREW_TEST(a_client_lives_once) {
    int64_t before_us = tool_now_us();
    assert_true(chaos_crew_spawn(&crew, 1));
    pid_t pid = crew.clients[1].pid;
    assert_true(chaos_crew_spawn(&crew, 1)); /* it runs already */
    assert_int_equal(crew.clients[1].pid, pid);
    assert_int_equal(chaos_crew_running(&crew), 1);
    assert_int_equal(kit_count(conductor_path, "spawn", NULL, NULL), 1);
    json_t *spawn = last("spawn");
    assert_int_equal(kit_number(spawn, "client"), 2);
    assert_int_equal(kit_number(spawn, "pid"), pid);
    assert_true(kit_number(spawn, "t") >= before_us);
    json_decref(spawn);
    kit_await(crew.client[1].log_path, "done", NULL, NULL, 1);
    crew.ending = true;
    assert_true(chaos_crew_signal(&crew, 1, SIGTERM));
    reap(pid);
    expect_exit(pid, 2, 0, 0, true);
    assert_int_equal(chaos_crew_running(&crew), 0);
    assert_int_equal(crew.crashes, 0);
    assert_false(chaos_crew_ended(&crew, pid, 0)); /* not one of ours any more */
}

CREW_TEST(who_is_killed_on_purpose_is_expected) {
    assert_true(chaos_crew_spawn(&crew, 0));
    pid_t pid = crew.clients[0].pid;
    kit_await(client_path, "invoke", NULL, NULL, 1);
    assert_true(chaos_crew_signal(&crew, 0, SIGSTOP));
    assert_true(chaos_crew_signal(&crew, 0, SIGKILL));
    reap(pid);
    expect_exit(pid, 1, -1, SIGKILL, true);
    assert_int_equal(crew.crashes, 0);
    /* The end of the pause finds no process, which is fine. */
    assert_true(chaos_crew_signal(&crew, 0, SIGCONT));
    assert_false(chaos_crew_signal(&crew, 0, SIGTERM));
    /* A new process starts with a clean record. */
    assert_true(chaos_crew_spawn(&crew, 0));
    assert_false(crew.clients[0].expected);
}

CREW_TEST(who_ends_by_itself_is_a_crash) {
    assert_true(chaos_crew_spawn(&crew, 0));
    pid_t pid = crew.clients[0].pid;
    assert_int_equal(kill(pid, SIGKILL), 0); /* not the conductor's kill */
    reap(pid);
    expect_exit(pid, 1, -1, SIGKILL, false);
    assert_int_equal(crew.crashes, 1);
    assert_true(chaos_crew_spawn(&crew, 0));
    pid = crew.clients[0].pid;
    assert_int_equal(kill(pid, SIGTERM), 0); /* the conductor did not ask for it */
    reap(pid);
    expect_exit(pid, 1, 0, 0, false);
    assert_int_equal(crew.crashes, 2);
    crew.client[0].counters_path = "/not/there";
    crew.ending = true;
    assert_true(chaos_crew_spawn(&crew, 0));
    pid = crew.clients[0].pid;
    reap(pid);
    expect_exit(pid, 1, 70, 0, false);
    assert_int_equal(crew.crashes, 3);
}

/* A process that is asked to end before it has done anything ends cleanly too. */
CREW_TEST(an_end_right_after_the_start_is_clean) {
    crew.ending = true;
    for (int round = 0; round < 100; round++) {
        assert_true(chaos_crew_spawn(&crew, 0));
        pid_t pid = crew.clients[0].pid;
        struct timespec pause = {0, round * 100000};
        nanosleep(&pause, NULL);
        assert_true(chaos_crew_signal(&crew, 0, SIGTERM));
        reap(pid);
        expect_exit(pid, 1, 0, 0, true);
        assert_true(chaos_crew_spawn_auditor(&crew));
        pid = crew.auditor;
        nanosleep(&pause, NULL);
        assert_int_equal(kill(pid, SIGTERM), 0);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_exited(status, 0);
        assert_true(chaos_crew_ended(&crew, pid, status));
        assert_int_equal(crew.auditor, 0);
    }
    assert_int_equal(crew.crashes, 0);
}

/* It ends in order, and its next process asks other nodes. */
CREW_TEST(a_client_begins_anew_with_other_nodes) {
    const struct chaos_setup one = {0x01, 1};
    assert_true(chaos_crew_spawn(&crew, 0));
    pid_t pid = crew.clients[0].pid;
    kit_await(client_path, "done", NULL, NULL, 1);
    assert_true(chaos_crew_configure(&crew, 0, &one));
    reap(pid);
    expect_exit(pid, 1, 0, 0, true);
    assert_int_equal(crew.crashes, 0);
    assert_true(chaos_crew_configure(&crew, 0, &one)); /* while it does not run */
    assert_true(chaos_crew_spawn(&crew, 0));
    json_t *spawn = last("spawn");
    assert_int_equal(kit_number(spawn, "quorum"), 1);
    assert_int_equal(json_array_size(json_object_get(spawn, "nodes")), 1);
    json_decref(spawn);
    kit_await(client_path, "complete", "votes", "G", 1);
    pid = crew.clients[0].pid;
    assert_int_equal(kill(pid, SIGTERM), 0); /* nobody asked for this end */
    reap(pid);
    expect_exit(pid, 1, 0, 0, false);
}

CREW_TEST(the_parent_keeps_its_signals) {
    sigset_t before, after;
    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &before), 0);
    assert_true(chaos_crew_spawn(&crew, 0));
    assert_true(chaos_crew_spawn_auditor(&crew));
    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &after), 0);
    for (int number = 1; number < SIGRTMAX; number++) {
        assert_int_equal(sigismember(&before, number), sigismember(&after, number));
    }
}

/* Both ends of a pipe of the conductor. When it closes its own end, no child holds one. */
CREW_TEST(children_keep_nothing_of_the_conductor_open) {
    int ends[2];
    char byte;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0); /* without O_CLOEXEC, since there is no exec */
    assert_true(chaos_crew_spawn(&crew, 0));
    assert_true(chaos_crew_spawn_auditor(&crew));
    close(ends[1]);
    ssize_t got;
    kit_until((got = read(ends[0], &byte, 1)) >= 0 || errno != EAGAIN);
    assert_int_equal(got, 0);
    assert_int_equal(kill(crew.clients[0].pid, 0), 0);
    assert_int_equal(kill(crew.auditor, 0), 0);
    close(ends[0]);
}

/* Two lives of one client make different choices. */
CREW_TEST(each_process_has_random_numbers_of_its_own) {
    int64_t chosen[2][20];
    crew.ending = true;
    for (size_t life = 0; life < 2; life++) {
        char name[16];
        snprintf(name, sizeof name, "life-%zu", life);
        crew.client[0].log_path = kit_path(name);
        assert_true(chaos_crew_spawn(&crew, 0));
        kit_await(crew.client[0].log_path, "invoke", "what", "acquire", 20);
        assert_true(chaos_crew_signal(&crew, 0, SIGTERM));
        reap(crew.clients[0].pid);
        json_t *events = kit_events(crew.client[0].log_path), *event;
        size_t index, count = 0;
        json_array_foreach(events, index, event) {
            if (count < 20 && kit_is(event, "invoke") && strcmp(kit_string(event, "what"), "acquire") == 0) {
                chosen[life][count++] = kit_number(event, "resource");
            }
        }
        json_decref(events);
    }
    assert_memory_not_equal(chosen[0], chosen[1], sizeof chosen[0]);
}

static int conduct(const void *options) {
    const int *out = options;
    if (!chaos_crew_spawn(&crew, 0) || !chaos_crew_spawn_auditor(&crew)) {
        return 1;
    }
    pid_t pids[2] = {crew.clients[0].pid, crew.auditor};
    return write(*out, pids, sizeof pids) == (ssize_t)sizeof pids ? pause() : 1;
}

/* The conductor's orphans become children of this process, which sees how they died. */
CREW_TEST(they_die_with_the_conductor) {
    int ends[2];
    pid_t pids[2];
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(ends), 0);
    pid_t conductor = kit_run(conduct, &ends[1]);
    assert_int_equal(read(ends[0], pids, sizeof pids), sizeof pids);
    kit_await(client_path, "done", NULL, NULL, 1);
    assert_int_equal(kill(conductor, SIGKILL), 0);
    (void)kit_wait(conductor);
    for (size_t i = 0; i < 2; i++) {
        int status = 0;
        int64_t deadline_ms = support_now_ms() + KIT_TIMEOUT_MS;
        pid_t ended;
        while ((ended = waitpid(pids[i], &status, WNOHANG)) == 0 && support_now_ms() < deadline_ms) {
            support_pause_ms(5);
        }
        if (ended == 0) {
            (void)kill(pids[0], SIGKILL); /* nothing else would */
            (void)kill(pids[1], SIGKILL);
        }
        assert_int_equal(ended, pids[i]);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);
    }
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}
