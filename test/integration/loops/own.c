/* A loop that is all its own, with functions of its own for the library, for the tests of loops. It
 * checks that the library keeps what redlock/loop.h says of its calls. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <redlock/loop.h>

#include "polled.h"

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
    struct polled polled; /* must be first */
    struct slot slots[SLOTS];
    struct side sides[SIDES];
    unsigned turn;
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

static void *open_loop(void) {
    struct test_loop *loop = calloc(1, sizeof *loop);
    loop->polled.fd = -1;
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

static void turn(void *context) {
    struct test_loop *loop = context;
    struct pollfd fds[SLOTS + 1];
    polled_late(&loop->polled);
    flush(loop);
    for (int i = 0; i < SLOTS; i++) {
        const struct slot *slot = &loop->slots[i];
        fds[i] = (struct pollfd){.fd = slot->watch == NULL ? -1 : slot->fd,
                                 .events = (short)(((slot->events & REDLOCK_LOOP_READABLE) != 0 ? POLLIN : 0) |
                                                   ((slot->events & REDLOCK_LOOP_WRITABLE) != 0 ? POLLOUT : 0))};
    }
    loop->turn++; /* what a slot watches from now on was not polled for */
    if (polled_wait(&loop->polled, fds, SLOTS + 1)) {
        report(loop, fds);
    }
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
                                    .start_timer = polled_start_timer,
                                    .stop_timer = polled_stop_timer,
                                    .start_reading = polled_start_reading,
                                    .stop_reading = polled_stop_reading,
                                    .before_wait = polled_before_wait,
                                    .after_fork = after_fork,
                                    .close = close_loop};
