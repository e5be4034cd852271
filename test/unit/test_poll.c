/* The loop on adapters: the one of redlock/adapters/poll.h, and fakes that refuse. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <redlock/adapters/poll.h>

#include "core/time.h"
#include "loop/loop.h"

#define WATCHES 3

/* A loop of the library with watches on pipes. */
struct side {
    struct redlock_loop *loop;
    struct redlock_reactor reactor;
    struct redlock_watch watches[WATCHES], waker; /* which has a timer only */
    int ends[WATCHES][2];
    int ios[WATCHES], flushes[WATCHES];
    unsigned events;
    int wakes, lines;
    char line[256];
};

static redlock_poll *poller;
static struct side sides[2];
static void (*in_io)(int index), (*in_flush)(int index), (*in_wake)(void);

static void on_io(struct redlock_watch *watch, unsigned events) {
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < WATCHES; i++) {
            if (watch == &sides[s].watches[i]) {
                sides[s].ios[i]++;
                sides[s].events = events;
                if (in_io != NULL) {
                    in_io(i);
                }
            }
        }
    }
}

static void on_timer(struct redlock_watch *watch) {
    (void)watch;
}

static void on_flush(struct redlock_watch *watch) {
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < WATCHES; i++) {
            if (watch == &sides[s].watches[i]) {
                sides[s].flushes[i]++;
                if (in_flush != NULL) {
                    in_flush(s);
                }
            }
        }
    }
}

static void on_wake(struct redlock_watch *watch) {
    sides[watch == &sides[1].waker].wakes++;
    if (in_wake != NULL) {
        in_wake();
    }
}

static void on_log(redlock_log_level level, const char *line, void *data) {
    struct side *side = data;
    (void)level;
    side->lines++;
    (void)snprintf(side->line, sizeof side->line, "%s", line);
}

static struct redlock_loop *new_loop(struct side *side, const redlock_loop_ops *ops, void *on) {
    struct redlock_loop_hooks hooks = {.on_log = on_log, .log_level = REDLOCK_LOG_DEBUG, .log_data = side};
    return redlock_loop_new(ops, on, &hooks);
}

static void start(struct side *side) {
    memset(side, 0, sizeof *side);
    side->loop = new_loop(side, &redlock_poll_ops, poller);
    assert_non_null(side->loop);
    redlock_loop_reactor(side->loop, &side->reactor);
    side->waker.on_timer = on_wake;
    assert_int_equal(side->reactor.attach(side->reactor.ctx, &side->waker), 0);
    for (int i = 0; i < WATCHES; i++) {
        assert_int_equal(pipe(side->ends[i]), 0);
        side->watches[i] = (struct redlock_watch){.on_io = on_io, .on_timer = on_timer, .on_flush = on_flush};
        assert_int_equal(side->reactor.attach(side->reactor.ctx, &side->watches[i]), 0);
    }
}

static void close_side(struct side *side) {
    for (int i = 0; i < WATCHES; i++) {
        if (side->watches[i].loop != NULL) {
            side->reactor.detach(side->reactor.ctx, &side->watches[i]);
        }
        (void)close(side->ends[i][0]);
        (void)close(side->ends[i][1]);
    }
    side->reactor.detach(side->reactor.ctx, &side->waker);
    redlock_loop_delete(side->loop);
    side->loop = NULL;
}

static void wake_at(int side, int64_t when_ns) {
    sides[side].reactor.timer_at(sides[side].reactor.ctx, &sides[side].waker, when_ns);
}

static int setup(UNUSED void **state) {
    in_io = in_flush = NULL;
    in_wake = NULL;
    poller = redlock_poll_new();
    assert_non_null(poller);
    start(&sides[0]);
    start(&sides[1]);
    return 0;
}

static int teardown(UNUSED void **state) {
    if (poller != NULL) {
        close_side(&sides[0]);
        close_side(&sides[1]);
        return redlock_poll_free(poller);
    }
    return 0;
}

static bool is_readable(void) {
    struct pollfd fd = {.fd = redlock_poll_fd(poller), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

static void await(void) {
    struct pollfd fd = {.fd = redlock_poll_fd(poller), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 20000), 1);
    assert_is(redlock_poll_dispatch(poller), REDLOCK_OK);
}

static void fill(int side, int index) {
    assert_int_equal(write(sides[side].ends[index][1], "x", 1), 1);
}

static void watch(int side, int index, unsigned events) {
    struct redlock_reactor *reactor = &sides[side].reactor;
    const int fd = sides[side].ends[index][(events & REDLOCK_WRITABLE) != 0];
    reactor->watch(reactor->ctx, &sides[side].watches[index], events == 0 ? -1 : fd, events);
}

static void ask(int side, int index) {
    sides[side].reactor.flush_soon(sides[side].reactor.ctx, &sides[side].watches[index]);
}

#define FRESH_TEST(name) TEST_WITH(name, setup, teardown)

FRESH_TEST(the_descriptor_is_readable_while_something_is_due) {
    assert_false(is_readable());
    assert_is(redlock_poll_dispatch(poller), REDLOCK_OK); /* does no harm */

    ask(0, 0);
    ask(0, 1);
    ask(1, 0);
    assert_true(is_readable());
    assert_int_equal(sides[0].flushes[0], 0);
    await();
    assert_int_equal(sides[0].flushes[0] + sides[0].flushes[1] + sides[1].flushes[0], 3);
    assert_false(is_readable());

    const int64_t when_ns = redlock_loop_now_ns(NULL) + 20 * REDLOCK_NS_PER_MS;
    wake_at(1, when_ns);
    assert_false(is_readable() && redlock_loop_now_ns(NULL) < when_ns);
    await();
    assert_int_equal(sides[1].wakes, 1);
    assert_true(redlock_loop_now_ns(NULL) >= when_ns);
    wake_at(0, 0);
    await();
    assert_int_equal(sides[0].wakes, 1);
    assert_false(is_readable());

    watch(0, 2, REDLOCK_READABLE);
    assert_false(is_readable());
    fill(0, 2);
    await();
    await(); /* nobody has read it: level-triggered */
    assert_int_equal(sides[0].ios[2], 2);
    watch(0, 2, 0);
    assert_false(is_readable());
}

/* The watch says what it wants, and gets no more. */
FRESH_TEST(only_the_events_asked_for_are_reported) {
    watch(0, 0, REDLOCK_WRITABLE);
    await();
    assert_is(sides[0].events, REDLOCK_WRITABLE);
    watch(0, 0, 0);
    watch(0, 1, REDLOCK_READABLE);
    (void)close(sides[0].ends[1][1]); /* a hang-up: both events */
    sides[0].ends[1][1] = -1;
    await();
    assert_is(sides[0].events, REDLOCK_READABLE);
    watch(0, 1, 0);
}

static void stop_the_others(int index) {
    for (int i = 0; i < WATCHES; i++) {
        if (i != index) {
            sides[0].reactor.detach(sides[0].reactor.ctx, &sides[0].watches[i]);
        }
    }
    watch(0, index, 0);
    in_io = NULL;
}

/* Three are ready at once. The first callback ends the others. */
FRESH_TEST(what_is_watched_no_more_is_not_reported) {
    for (int i = 0; i < WATCHES; i++) {
        watch(0, i, REDLOCK_READABLE);
        fill(0, i);
    }
    in_io = stop_the_others;
    await();
    assert_int_equal(sides[0].ios[0] + sides[0].ios[1] + sides[0].ios[2], 1);
    assert_false(is_readable());
}

static void ask_the_other(int side) {
    if (sides[1 - side].flushes[2] == 0) {
        ask(1 - side, 2);
    }
}

/* Whichever of the two has its flush first. */
FRESH_TEST(a_flush_may_ask_for_the_flush_of_another_manager) {
    in_flush = ask_the_other;
    ask(0, 0);
    await();
    assert_int_equal(sides[1].flushes[2], 1);
    assert_int_equal(sides[0].flushes[2], 1);
    assert_false(is_readable());
}

static void dispatch_again(void) {
    assert_is(redlock_poll_dispatch(poller), REDLOCK_ERR_BUSY);
    assert_is(redlock_poll_free(poller), REDLOCK_ERR_BUSY);
}

FRESH_TEST(calls_inside_a_callback_are_refused) {
    in_wake = dispatch_again;
    wake_at(0, 0);
    await();
    assert_int_equal(sides[0].wakes, 1);
}

static void end_everything(void) {
    close_side(&sides[0]);
    close_side(&sides[1]);
    assert_is(redlock_poll_free(poller), REDLOCK_OK);
}

FRESH_TEST(everything_may_end_inside_a_callback) {
    const int fd = redlock_poll_fd(poller);
    in_wake = end_everything;
    wake_at(1, 0);
    await();
    assert_int_equal(sides[1].wakes, 1);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed */
    poller = NULL;
    assert_is(redlock_poll_free(NULL), REDLOCK_OK);
}

FRESH_TEST(a_child_leaves_the_parents_descriptors_watched) {
    watch(0, 0, REDLOCK_READABLE);
    fill(0, 0);
    ask(0, 1);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const bool refused = redlock_poll_dispatch(poller) == REDLOCK_ERR_FORKED;
        close_side(&sides[0]);
        close_side(&sides[1]);
        _exit(refused && redlock_poll_free(poller) == REDLOCK_OK && sides[0].ios[0] == 0 ? 0 : 1);
    }
    assert_exits(child, 0);
    await();
    assert_int_equal(sides[0].ios[0], 1);
    assert_int_equal(sides[0].flushes[1], 1);
    watch(0, 0, 0);
}

/* An adapter that refuses what it is told to. */
static struct {
    int attached, slots;
    int adds_left, watches_left;
} fake;

static void *fake_attach(void *loop, redlock_loop *side) {
    (void)side;
    fake.attached += loop != NULL;
    return loop;
}

static void fake_detach(void *adapter) {
    (void)adapter;
    fake.attached--;
}

static void *fake_add(void *adapter, redlock_loop_watch *watch) {
    (void)watch;
    if (fake.adds_left-- == 0) {
        return NULL;
    }
    fake.slots++;
    return adapter;
}

static void fake_remove(void *slot) {
    (void)slot;
    fake.slots--;
}

static bool fake_watch(void *slot, int fd, unsigned events) {
    (void)slot, (void)events;
    return fd < 0 || fake.watches_left-- > 0;
}

static const redlock_loop_ops fake_ops = {.size = sizeof fake_ops,
                                          .attach = fake_attach,
                                          .detach = fake_detach,
                                          .add = fake_add,
                                          .remove = fake_remove,
                                          .watch = fake_watch};

TEST(a_loop_that_refuses_the_timer_gets_no_manager) {
    int on = 0;
    memset(&fake, 0, sizeof fake);
    assert_null(new_loop(&sides[0], &fake_ops, NULL)); /* attach() has no memory */
    assert_int_equal(errno, ENOMEM);
    assert_null(new_loop(&sides[0], &fake_ops, &on)); /* add() has none */
    assert_int_equal(errno, ENOMEM);
    fake.adds_left = 1;
    assert_null(new_loop(&sides[0], &fake_ops, &on)); /* watch() refuses */
    assert_int_equal(errno, 0);
    assert_int_equal(fake.attached, 0);
    assert_int_equal(fake.slots, 0);
}

TEST(a_descriptor_that_the_loop_refuses_is_logged) {
    struct side *side = &sides[0];
    struct redlock_watch one = {.on_io = on_io}, two = one;
    struct redlock_reactor reactor;
    int on = 0;
    memset(side, 0, sizeof *side);
    memset(&fake, 0, sizeof fake);
    fake.adds_left = 2;
    fake.watches_left = 1; /* the timer */
    side->loop = new_loop(side, &fake_ops, &on);
    assert_non_null(side->loop);
    redlock_loop_reactor(side->loop, &reactor);
    assert_int_equal(reactor.attach(reactor.ctx, &one), 0);
    assert_is(reactor.attach(reactor.ctx, &two), REDLOCK_ERR_NO_MEMORY);
    reactor.watch(reactor.ctx, &one, 77, REDLOCK_READABLE);
    assert_int_equal(side->lines, 1);
    assert_contains(side->line, "refused to watch descriptor 77");
    reactor.detach(reactor.ctx, &one);
    redlock_loop_delete(side->loop);
    assert_int_equal(fake.attached, 0);
    assert_int_equal(fake.slots, 0);
}
