/* redlock_manager_create_on() and _poll(): what they refuse, and how they say so. */
#include <redlock/adapters/poll.h>
#include <redlock/loop.h>

#include "world.h"

static int attached, slots, watches_left;

static void *attach(void *loop, redlock_loop *side) {
    (void)side;
    attached++;
    return loop;
}

static void detach(void *adapter) {
    (void)adapter;
    attached--;
}

static void *add(void *adapter, redlock_loop_watch *watch) {
    (void)watch;
    slots++;
    return adapter;
}

static void remove_slot(void *slot) {
    (void)slot;
    slots--;
}

static bool watch_fd(void *slot, int fd, unsigned events) {
    (void)slot, (void)events;
    return fd < 0 || watches_left-- > 0;
}

static const redlock_loop_ops good = {
    .size = sizeof good, .attach = attach, .detach = detach, .add = add, .remove = remove_slot, .watch = watch_fd};
static const char *const nodes[] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};

static redlock_manager_options options(void) {
    redlock_manager_options made;
    redlock_manager_options_default(&made);
    made.nodes = nodes;
    made.node_count = 3;
    return made;
}

/* Creates on a loop of these functions, which must fail with the code and the words. */
static void refuse(const redlock_loop_ops *ops, const redlock_manager_options *how, int code, const char *words) {
    static int loop;
    redlock_manager *manager = NULL;
    char error[256] = "";
    assert_int_equal(redlock_manager_create_on(ops, &loop, how, &manager, error, sizeof error), code);
    assert_null(manager);
    assert_contains(error, words);
    assert_int_equal(redlock_manager_create_on(ops, &loop, how, &manager, NULL, 0), code);
    assert_int_equal(attached, 0);
    assert_int_equal(slots, 0);
}

TEST(bad_functions_are_refused) {
    const redlock_manager_options how = options();
    refuse(NULL, &how, REDLOCK_ERR_INVALID, "ops is NULL");
    refuse(&good, NULL, REDLOCK_ERR_INVALID, "options is NULL");
    assert_is(redlock_manager_create_on(&good, NULL, &how, NULL, NULL, 0), REDLOCK_ERR_INVALID);
    redlock_loop_ops ops = good;
    ops.size = 0;
    refuse(&ops, &how, REDLOCK_ERR_INVALID, "ops.size is 0");
    ops.size = sizeof ops + 1;
    refuse(&ops, &how, REDLOCK_ERR_INVALID, "ops.size is");
    ops.size = offsetof(redlock_loop_ops, watch); /* as of a program that is too old */
    refuse(&ops, &how, REDLOCK_ERR_INVALID, "ops.watch is NULL");
    static const char *const missing[] = {"ops.attach is NULL", "ops.detach is NULL", "ops.add is NULL",
                                          "ops.remove is NULL", "ops.watch is NULL"};
    for (int i = 0; i < 5; i++) {
        ops = good;
        ops.attach = i == 0 ? NULL : ops.attach;
        ops.detach = i == 1 ? NULL : ops.detach;
        ops.add = i == 2 ? NULL : ops.add;
        ops.remove = i == 3 ? NULL : ops.remove;
        ops.watch = i == 4 ? NULL : ops.watch;
        refuse(&ops, &how, REDLOCK_ERR_INVALID, missing[i]);
    }
}

TEST(a_loop_that_refuses_the_timer_is_named) {
    const redlock_manager_options how = options();
    watches_left = 0;
    refuse(&good, &how, REDLOCK_ERR_SYSTEM, "cannot create a timer: the event loop refused its descriptor");
}

/* What was begun on the loop ends, too. */
TEST(bad_options_leave_nothing_on_the_loop) {
    redlock_manager_options how = options();
    watches_left = 100;
    how.nodes = (const char *[]){"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:1"};
    refuse(&good, &how, REDLOCK_ERR_INVALID, "nodes 1 and 3 are both");
    how.nodes = (const char *[]){"[::1]:1", "127.0.0.1:1", "[0:0:0:0:0:0:0:1]:1"};
    refuse(&good, &how, REDLOCK_ERR_INVALID, "nodes 1 and 3 are both '[0:0:0:0:0:0:0:1]:1'");
    how.nodes = (const char *[]){"unix:///run/a", "unix:///run/b", "unix:///run//a"};
    refuse(&good, &how, REDLOCK_ERR_INVALID, "nodes 1 and 3 are both '/run//a'");
    how.node_timeout_ms = 0;
    refuse(&good, &how, REDLOCK_ERR_INVALID, "node_timeout_ms is 0");
}

TEST(a_poll_is_needed) {
    const redlock_manager_options how = options();
    redlock_manager *manager = NULL;
    char error[256] = "";
    assert_is(redlock_manager_create_poll(NULL, &how, &manager, error, sizeof error), REDLOCK_ERR_INVALID);
    assert_string_equal(error, "poll is NULL");
    redlock_poll *poll = redlock_poll_new();
    assert_non_null(poll);
    assert_is(redlock_manager_create_poll(poll, NULL, &manager, NULL, 0), REDLOCK_ERR_INVALID);
    assert_is(redlock_manager_create_poll(poll, &how, NULL, NULL, 0), REDLOCK_ERR_INVALID);
    assert_is(redlock_manager_create_poll(poll, &how, &manager, NULL, 0), REDLOCK_OK);
    assert_is(redlock_poll_free(poll), REDLOCK_ERR_BUSY);
    redlock_manager_abandon(manager);
    assert_is(redlock_poll_free(poll), REDLOCK_OK);
}
