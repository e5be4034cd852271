/* A loop that is all its own, with functions of its own for the library, for the tests of loops. It
 * checks that the library keeps what redlock/loop.h says of its calls. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <redlock/loop.h>

#include "kind.h"

#define SLOTS 64
#define SIDES 8

struct slot {
    struct test_loop *loop;
    struct side *side;
    redlock_loop_watch *watch; /* NULL: free */
    int fd;
    unsigned events;
    unsigned turn; /* the last in which it watched something new */
};

struct side {
    struct test_loop *loop;
    redlock_loop *side; /* NULL: free */
    bool asked;
    int slots;
};

struct test_loop {
    struct slot slots[SLOTS];
    struct side sides[SIDES];
    unsigned turn;
    int fd; /* of the test's */
    int64_t timer_ms, every_ms;
    loop_callback on_timer, on_io, late; /* late: NULL, or before the next poll() */
    void *timer_data, *io_data, *late_data;
};

static void *attach(void *context, redlock_loop *side) {
    struct test_loop *loop = context;
    for (int i = 0; i < SIDES; i++) {
        if (loop->sides[i].side == NULL) {
            loop->sides[i] = (struct side){.loop = loop, .side = side};
            return &loop->sides[i];
        }
    }
    return NULL;
}

static void detach(void *context) {
    struct side *side = context;
    assert(side->side != NULL && side->slots == 0);
    memset(side, 0, sizeof *side);
}

static void *add(void *context, redlock_loop_watch *watch) {
    struct side *side = context;
    struct test_loop *loop = side->loop;
    assert(side->side != NULL && watch != NULL);
    for (int i = 0; i < SLOTS; i++) {
        if (loop->slots[i].watch == NULL) {
            loop->slots[i] = (struct slot){.loop = loop, .side = side, .watch = watch, .fd = -1, .turn = loop->turn};
            side->slots++;
            return &loop->slots[i];
        }
    }
    return NULL;
}

static void remove_slot(void *context) {
    struct slot *slot = context;
    assert(slot->watch != NULL);
    slot->side->slots--;
    slot->watch = NULL;
}

static bool watch_fd(void *context, int fd, unsigned events) {
    struct slot *slot = context;
    assert(slot->watch != NULL && slot->side->side != NULL);
    /* What is watched no more is still open. */
    assert(slot->fd < 0 || fcntl(slot->fd, F_GETFD) >= 0);
    assert(fd < 0 ? events == 0 : events >= 1 && events <= 3);
    assert(fd < 0 || (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    for (int i = 0; i < SLOTS; i++) {
        const struct slot *other = &slot->loop->slots[i];
        assert(fd < 0 || other == slot || other->watch == NULL || other->fd != fd);
    }
    slot->fd = fd;
    slot->events = events;
    slot->turn = slot->loop->turn;
    return true;
}

static void flush_soon(void *context) {
    struct side *side = context;
    assert(side->side != NULL);
    side->asked = true;
}

static const redlock_loop_ops ops = {.size = sizeof ops,
                                     .attach = attach,
                                     .detach = detach,
                                     .add = add,
                                     .remove = remove_slot,
                                     .watch = watch_fd,
                                     .flush_soon = flush_soon};

static int64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *open_loop(void) {
    struct test_loop *loop = calloc(1, sizeof *loop);
    loop->fd = -1;
    return loop;
}

static int create(void *loop, const redlock_manager_options *options, redlock_manager **manager, char *error,
                  size_t error_size) {
    return redlock_manager_create_on(&ops, loop, options, manager, error, error_size);
}

static void flush(struct test_loop *loop) {
    for (int i = 0; i < SIDES;) {
        struct side *side = &loop->sides[i];
        if (side->side != NULL && side->asked) {
            side->asked = false;
            redlock_loop_flush(side->side);
            i = 0; /* its callbacks may have made requests of another one */
        } else {
            i++;
        }
    }
}

static void report(struct test_loop *loop, const struct pollfd *fds) {
    for (int i = 0; i < SLOTS; i++) {
        const struct slot *slot = &loop->slots[i];
        const int seen = fds[i].revents;
        if (seen == 0 || slot->watch == NULL || slot->turn == loop->turn) {
            continue;
        }
        redlock_loop_io(slot->watch,
                        ((seen & (POLLIN | POLLERR | POLLHUP)) != 0 ? (unsigned)REDLOCK_LOOP_READABLE : 0U) |
                            ((seen & (POLLOUT | POLLERR | POLLHUP)) != 0 ? (unsigned)REDLOCK_LOOP_WRITABLE : 0U));
    }
}

static void run_late(struct test_loop *loop) {
    const loop_callback late = loop->late;
    loop->late = NULL;
    if (late != NULL) {
        late(loop->late_data);
    }
}

static void turn(void *context) {
    struct test_loop *loop = context;
    struct pollfd fds[SLOTS + 1];
    run_late(loop);
    flush(loop);
    for (int i = 0; i < SLOTS; i++) {
        const struct slot *slot = &loop->slots[i];
        fds[i] = (struct pollfd){.fd = slot->watch == NULL ? -1 : slot->fd,
                                 .events = (short)(((slot->events & REDLOCK_LOOP_READABLE) != 0 ? POLLIN : 0) |
                                                   ((slot->events & REDLOCK_LOOP_WRITABLE) != 0 ? POLLOUT : 0))};
    }
    fds[SLOTS] = (struct pollfd){.fd = loop->fd, .events = POLLIN};
    int64_t left_ms = loop->every_ms == 0 ? -1 : loop->timer_ms - now_ms();
    loop->turn++; /* what a slot watches from now on was not polled for */
    const int ready = poll(fds, SLOTS + 1, (int)(loop->every_ms != 0 && left_ms < 0 ? 0 : left_ms));
    if (ready < 0) {
        assert(errno == EINTR);
        return;
    }
    if (loop->every_ms != 0 && loop->timer_ms <= now_ms()) {
        loop->timer_ms = now_ms() + loop->every_ms;
        loop->on_timer(loop->timer_data);
    }
    if (fds[SLOTS].revents != 0 && loop->fd >= 0) {
        loop->on_io(loop->io_data);
    }
    report(loop, fds);
}

static void start_timer(void *context, int ms, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_timer = callback;
    loop->timer_data = data;
    loop->every_ms = ms;
    loop->timer_ms = now_ms() + ms;
}

static void stop_timer(void *context) {
    struct test_loop *loop = context;
    loop->every_ms = 0;
}

static void start_reading(void *context, int fd, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_io = callback;
    loop->io_data = data;
    loop->fd = fd;
}

static void stop_reading(void *context) {
    struct test_loop *loop = context;
    loop->fd = -1;
}

static void before_wait(void *context, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->late = callback;
    loop->late_data = data;
}

static void after_fork(void *context) {
    (void)context; /* poll() keeps nothing in the kernel */
}

static bool close_loop(void *context) {
    struct test_loop *loop = context;
    bool clean = true;
    for (int i = 0; i < SIDES; i++) {
        clean = clean && loop->sides[i].side == NULL;
    }
    free(loop);
    return clean;
}

const struct loop_kind loop_kind = {.open = open_loop,
                                    .create = create,
                                    .turn = turn,
                                    .start_timer = start_timer,
                                    .stop_timer = stop_timer,
                                    .start_reading = start_reading,
                                    .stop_reading = stop_reading,
                                    .before_wait = before_wait,
                                    .after_fork = after_fork,
                                    .close = close_loop};
