/* How requests, leases and managers end: close, cancel, calls inside callbacks, fork, a broken
 * pipe. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

static void count_closed(void *data) {
    ++*(int *)data;
}

static bool is_positive(void *data) {
    return *(int *)data > 0;
}

TESTS_WITH(world_five, world_end);

WORLD_TEST(close_with_requests_in_flight) {
    static int closed;
    closed = 0;
    redlock_manager *manager = world_manager_all(BRISK_MS);
    struct outcome *outcomes[40];
    char resource[16] = "flight-??";
    for (int i = 0; i < 40; i++) {
        resource[7] = (char)('0' + i / 10);
        resource[8] = (char)('0' + i % 10);
        outcomes[i] = world_outcome();
        assert_is(redlock_acquire(manager, resource, NULL, NULL, outcome_collect, outcomes[i]), REDLOCK_OK);
        if (i == 19) {
            /* Twenty requests are on their way, twenty are not written yet. */
            ev_run(world_loop, EVRUN_NOWAIT);
        }
    }
    world_disown(manager);
    assert_is(redlock_manager_close(manager, count_closed, &closed), REDLOCK_OK);
    assert_is(redlock_manager_close(manager, count_closed, &closed), REDLOCK_ERR_CLOSED);
    struct outcome *refused = world_outcome();
    assert_is(redlock_acquire(manager, "x", NULL, NULL, outcome_collect, refused), REDLOCK_ERR_CLOSED);
    assert_is(redlock_inspect(manager, "x", outcome_collect, refused), REDLOCK_ERR_CLOSED);
    assert_is(redlock_manager_connect(manager, 0, outcome_collect, refused), REDLOCK_ERR_CLOSED);
    assert_int_equal(closed, 0);
    assert_true(drive_until(world_loop, is_positive, &closed, DRIVE_TIMEOUT_MS));
    drive_for(world_loop, 20);
    assert_int_equal(closed, 1);
    assert_int_equal(refused->runs, 0);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(outcomes[i]->runs, 1);
        if (i >= 20 || outcomes[i]->code != REDLOCK_OK) {
            assert_is(outcomes[i]->code, REDLOCK_ERR_CLOSED);
        }
    }
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

WORLD_TEST(close_while_every_node_hangs) {
    redlock_manager *manager = world_manager_all(BRISK_MS);
    redlock_lease *lease = world_acquire(manager, "held", 600000);
    struct outcome *extended = world_outcome(), *acquired = world_outcome();
    servers_each(&world_servers, 0, 5, server_pause);
    assert_is(redlock_extend(lease, 600000, outcome_collect, extended), REDLOCK_OK);
    assert_is(redlock_acquire(manager, "other", NULL, NULL, outcome_collect, acquired), REDLOCK_OK);
    drive_for(world_loop, 20);
    world_close(manager);
    assert_int_equal(extended->runs, 1);
    assert_int_equal(acquired->runs, 1);
    assert_int_not_equal(extended->code, REDLOCK_OK);
    assert_is(acquired->code, REDLOCK_ERR_CLOSED);
    servers_each(&world_servers, 0, 5, server_resume);
    /* What was written before the end runs now, in order: the releases come last. */
    assert_true(world_wait_without_key(NULL, DRIVE_TIMEOUT_MS));
}

WORLD_TEST(forget_leaves_the_key_and_adopt_takes_it_up) {
    redlock_manager *first = world_manager_all(PATIENT_MS), *second = world_manager_all(PATIENT_MS);
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    redlock_lease *lease = world_acquire(first, "handed-over", 60000), *adopted = NULL;
    assert_true(world_wait_with_key("handed-over", 5, DRIVE_TIMEOUT_MS));
    strcpy(token, redlock_lease_token(lease));
    redlock_lease_forget(lease);
    world_close(first);
    assert_int_equal(servers_with_key(&world_servers, "handed-over"), 5);
    assert_is(redlock_adopt(second, "handed-over", token, NULL, &adopted), REDLOCK_OK);
    assert_int_equal(redlock_lease_validity_ms(adopted), 0);
    assert_string_equal(redlock_lease_token(adopted), token);
    assert_is(drive_extend(world_loop, adopted, 30000, outcome), REDLOCK_OK);
    assert_in_range(redlock_lease_validity_ms(adopted), 1, 30000);
    world_release_all(adopted, NULL);

    lease = world_acquire(second, "not-yours", 60000);
    assert_is(redlock_adopt(second, "not-yours", "stranger", NULL, &adopted), REDLOCK_OK);
    assert_is(drive_extend(world_loop, adopted, 30000, outcome), REDLOCK_ERR_LOST);
    assert_is(drive_release(world_loop, adopted, outcome), REDLOCK_ERR_LOST);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
}

/* What a callback does to its own manager. */
enum inside { INSIDE_RELEASE, INSIDE_ACQUIRE, INSIDE_CANCEL, INSIDE_CLOSE, INSIDE_FORGET, INSIDE_EXTEND };

struct nest {
    redlock_manager *manager;
    redlock_request *other;
    enum inside what;
    int runs, code, closed, inside_ran;
    struct outcome *second;
};

static void on_nested(const redlock_result *result, void *data) {
    struct nest *nest = data;
    struct outcome *second = nest->second;
    nest->runs++;
    nest->code = redlock_result_code(result);
    if (nest->code != REDLOCK_OK) {
        return;
    }
    int code = REDLOCK_OK, second_runs = second->runs, closed = nest->closed;
    switch (nest->what) {
    case INSIDE_RELEASE:
        code = redlock_release(redlock_result_lease(result), outcome_collect, second);
        break;
    case INSIDE_ACQUIRE:
        code = redlock_acquire(nest->manager, "nested", NULL, NULL, outcome_collect, second);
        break;
    case INSIDE_CANCEL:
        redlock_request_cancel(nest->other);
        redlock_request_cancel(nest->other);
        break;
    case INSIDE_CLOSE:
        code = redlock_manager_close(nest->manager, count_closed, &nest->closed);
        break;
    case INSIDE_FORGET:
        redlock_lease_forget(redlock_result_lease(result));
        second->runs++;
        second_runs++;
        break;
    case INSIDE_EXTEND:
        code = redlock_extend(redlock_result_lease(result), 30000, outcome_collect, second);
        break;
    }
    if (code != REDLOCK_OK) {
        nest->code = code;
    }
    if (second->runs != second_runs || nest->closed != closed) {
        nest->inside_ran++; /* R14: never inside the call */
    }
}

static bool nest_done(void *data) {
    const struct nest *nest = data;
    return nest->runs > 0 && (nest->second->runs > 0 || nest->closed > 0);
}

WORLD_TEST(everything_may_be_called_inside_a_callback) {
    for (int what = INSIDE_RELEASE; what <= INSIDE_EXTEND; what++) {
        static struct nest nest;
        redlock_manager *manager = world_manager_all(PATIENT_MS);
        nest = (struct nest){.manager = manager, .what = (enum inside)what, .second = world_outcome()};
        redlock_acquire_options wait = world_acquire_options(60000, REDLOCK_WAIT_FOREVER);
        if (what == INSIDE_CANCEL) {
            servers_ask(&world_servers, 0, 5, "SET", "never", "foreign");
            assert_is(redlock_acquire(manager, "never", &wait, &nest.other, outcome_collect, nest.second), REDLOCK_OK);
        }
        assert_is(redlock_acquire(manager, "outer", NULL, NULL, on_nested, &nest), REDLOCK_OK);
        assert_int_equal(nest.runs, 0);
        if (what == INSIDE_CLOSE) {
            world_disown(manager);
        }
        assert_true(drive_until(world_loop, nest_done, &nest, DRIVE_TIMEOUT_MS));
        assert_int_equal(nest.runs, 1);
        assert_is(nest.code, REDLOCK_OK);
        assert_int_equal(nest.inside_ran, 0);
        if (what != INSIDE_CLOSE) {
            assert_int_equal(nest.second->runs, 1);
            assert_int_equal(nest.second->code, what == INSIDE_CANCEL ? REDLOCK_ERR_CANCELLED : REDLOCK_OK);
            world_close(manager);
        }
        if (what == INSIDE_FORGET) {
            assert_int_equal(servers_with_key(&world_servers, "outer") >= 3, 1);
            servers_ask(&world_servers, 0, 5, "DEL", "outer");
        }
        assert_int_equal(servers_with_key(&world_servers, "outer"), 0);
        assert_int_equal(servers_with_key(&world_servers, "nested"), 0);
    }
}

/* In the child: 0 if all checks pass, else the number of the check that fails. */
static int in_the_child(redlock_manager *parents, redlock_lease *lease, int report) {
    struct outcome outcome = {0};
    if (redlock_acquire(parents, "x", NULL, NULL, outcome_collect, &outcome) != REDLOCK_ERR_FORKED) {
        return 1;
    }
    if (redlock_extend(lease, 1000, outcome_collect, &outcome) != REDLOCK_ERR_FORKED) {
        return 2;
    }
    if (redlock_release(lease, outcome_collect, &outcome) != REDLOCK_ERR_FORKED) {
        return 3;
    }
    if (redlock_inspect(parents, "x", outcome_collect, &outcome) != REDLOCK_ERR_FORKED) {
        return 4;
    }
    if (redlock_manager_connect(parents, 0, outcome_collect, &outcome) != REDLOCK_ERR_FORKED) {
        return 5;
    }
    redlock_lease *adopted;
    if (redlock_adopt(parents, "x", "token", NULL, &adopted) != REDLOCK_ERR_FORKED) {
        return 6;
    }
    redlock_manager_abandon(parents);
    ev_loop_fork(world_loop);
    redlock_manager_options options = world_options();
    redlock_manager *own;
    if (redlock_manager_create(world_loop, &options, &own, NULL, 0) != REDLOCK_OK) {
        return 7;
    }
    if (drive_acquire(world_loop, own, "child", NULL, &outcome) != REDLOCK_OK) {
        return 8;
    }
    const char *token = redlock_lease_token(outcome.lease);
    if (write(report, token, strlen(token) + 1) != (ssize_t)strlen(token) + 1) {
        return 9;
    }
    if (drive_release(world_loop, outcome.lease, &outcome) != REDLOCK_OK) {
        return 10;
    }
    if (!drive_close(world_loop, own)) {
        return 11;
    }
    outcome_clear(&outcome);
    return 0;
}

MANAGER_TEST(a_child_process_has_tokens_of_its_own) {
    redlock_lease *lease = world_acquire(manager, "parent", 60000);
    int report[2];
    char childs[REDLOCK_TOKEN_SIZE_MAX + 1] = "";
    assert_int_equal(pipe(report), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(in_the_child(manager, lease, report[1]));
    }
    close(report[1]);
    redlock_lease *parents = world_acquire(manager, "parent-2", 60000);
    assert_exits(child, 0);
    assert_true(read(report[0], childs, sizeof childs) > 32);
    close(report[0]);
    assert_string_not_equal(childs, redlock_lease_token(parents));
    assert_string_not_equal(childs, redlock_lease_token(lease));
    assert_string_not_equal(redlock_lease_token(parents), redlock_lease_token(lease));
    /* The copy in the child changed nothing here: our connections stand and our leases are held. */
    for (size_t i = 0; i < 5; i++) {
        redlock_node_info info = world_node_info(manager, i);
        assert_int_equal(info.connects, 1);
        assert_is(info.state, REDLOCK_NODE_READY);
    }
    assert_is(drive_extend(world_loop, lease, 60000, outcome), REDLOCK_OK);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_OK);
    assert_is(drive_release(world_loop, parents, outcome), REDLOCK_OK);
}

WORLD_TEST(a_broken_pipe_does_not_kill_and_changes_no_disposition) {
    struct sigaction original, before = {.sa_handler = SIG_DFL}, after;
    assert_int_equal(sigaction(SIGPIPE, &before, &original), 0);
    /* A write to a unix socket whose other end is gone raises SIGPIPE at once. */
    const char *uris[5];
    for (size_t i = 0; i < 5; i++) {
        uris[i] = world_servers.at[i].socket_uri;
    }
    redlock_manager *manager = world_manager(uris, 5, PATIENT_MS);
    server_kill(&world_servers.at[0]);
    server_kill(&world_servers.at[3]);
    /* No turn of the loop in between. */
    redlock_lease *lease = world_acquire(manager, "pipe", 60000);
    server_kill(&world_servers.at[1]);
    drive_extend(world_loop, lease, 60000, outcome);
    drive_release(world_loop, lease, outcome);
    assert_is(outcome->code, REDLOCK_ERR_NO_QUORUM);
    assert_int_equal(sigaction(SIGPIPE, NULL, &after), 0);
    assert_true(after.sa_handler == SIG_DFL);
    sigset_t mask;
    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
    assert_false(sigismember(&mask, SIGPIPE));
    world_close(manager);
    sigaction(SIGPIPE, &original, NULL);
}
