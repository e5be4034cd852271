/* No descriptors are left: nothing crashes, errors say so, and all goes on when there are some. */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include <redlock/blocking.h>

#include "world.h"

/* Some for a loop and a timer, and two connections to each of three nodes. */
#define ENOUGH 16

static struct rlimit limit_before;
static int taken[256];
static size_t taken_count;

/* Takes all descriptors but this many. */
static void leave(size_t count) {
    const int highest = dup(STDERR_FILENO);
    assert_true(highest >= 0);
    assert_int_equal(close(highest), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit_before), 0);
    const struct rlimit low = {.rlim_cur = (rlim_t)highest + 64, .rlim_max = limit_before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int fd; (fd = dup(STDERR_FILENO)) >= 0;) {
        assert_true(taken_count < sizeof taken / sizeof *taken);
        taken[taken_count++] = fd;
    }
    assert_int_equal(errno, EMFILE);
    for (; count > 0; count--) {
        assert_int_equal(close(taken[--taken_count]), 0);
    }
}

static void give_back(void) {
    while (taken_count > 0) {
        assert_int_equal(close(taken[--taken_count]), 0);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit_before), 0);
}

static int tear_down(void **state) {
    if (taken_count > 0) {
        give_back();
    }
    return world_teardown(state);
}

static void says_why(int code, const char *error) {
    assert_is(code, REDLOCK_ERR_SYSTEM);
    assert_contains(error, strerror(EMFILE));
}

/* Returns the code of one acquire; a lock is released. */
static int try_once(redlock_manager *manager, struct outcome *outcome) {
    const int code = drive_acquire(world_loop, manager, "r", TIMES(60000, 0), outcome);
    if (code == REDLOCK_OK) {
        struct outcome *released = world_outcome();
        assert_is(drive_release(world_loop, outcome->lease, released), REDLOCK_OK);
    }
    return code;
}

static bool is_locked(void *data) {
    return try_once(data, world_outcome()) == REDLOCK_OK;
}

TESTS_WITH(world_three, world_end);
#define FRESH_TEST(name) TEST_WITH(name, world_setup, tear_down)

/* Each number of descriptors is too few, until one is enough. */
FRESH_TEST(a_manager_without_descriptors) {
    size_t free = 0;
    for (int code = REDLOCK_ERR_SYSTEM; code != REDLOCK_OK; free++) {
        redlock_manager_options options = world_options();
        redlock_manager *manager = NULL;
        char error[256] = "";
        assert_true(free < ENOUGH);
        leave(free);
        code = redlock_manager_create(world_loop, &options, &manager, error, sizeof error);
        if (code != REDLOCK_OK) {
            says_why(code, error);
            give_back();
            continue;
        }
        struct outcome *outcome = world_outcome();
        (void)drive_connect(world_loop, manager, outcome);
        code = try_once(manager, outcome);
        if (code != REDLOCK_OK) {
            assert_is(code, REDLOCK_ERR_NO_QUORUM);
            assert_non_null(strcasestr(outcome->message, strerror(EMFILE)));
            assert_contains(outcome->message, "ulimit -n");
        }
        give_back();
        if (code != REDLOCK_OK) {
            assert_true(drive_until(world_loop, is_locked, manager, DRIVE_TIMEOUT_MS));
        }
        world_close(manager);
    }
    assert_true(free > 3); /* the timer, and a quorum of connections */
}

FRESH_TEST(a_client_without_descriptors) {
    size_t free = 0;
    for (int code = REDLOCK_ERR_SYSTEM; code != REDLOCK_OK; free++) {
        redlock_manager_options options = world_options();
        redlock_client *client = NULL;
        char error[256] = "";
        assert_true(free < ENOUGH);
        leave(free);
        code = redlock_client_open(&options, &client, error, sizeof error);
        if (code != REDLOCK_OK) {
            says_why(code, error);
            assert_null(client);
            give_back();
            continue;
        }
        redlock_lease *lease = NULL;
        code = redlock_client_acquire(client, "r", NULL, &lease, NULL);
        if (code == REDLOCK_OK) {
            assert_is(redlock_client_release(client, lease, NULL), REDLOCK_OK);
        } else {
            assert_is(code, REDLOCK_ERR_NO_QUORUM);
        }
        give_back();
        assert_is(redlock_client_close(client), REDLOCK_OK);
    }
    assert_true(free > 4);
}
