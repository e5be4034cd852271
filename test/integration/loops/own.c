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

static struct slot {
    struct side *side;
    redlock_loop_watch *watch; /* NULL: free */
    int fd;
    unsigned events;
    unsigned turn; /* the last in which it watched something new */
} slots[SLOTS];

static struct side {
    redlock_loop *side; /* NULL: free */
    bool asked;
    int slots;
} sides[SIDES];

static unsigned turn;

static void *attach(void *context, redlock_loop *side) {
    (void)context;
    for (int i = 0; i < SIDES; i++) {
        if (sides[i].side == NULL) {
            sides[i] = (struct side){.side = side};
            return &sides[i];
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
    assert(side->side != NULL && watch != NULL);
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].watch == NULL) {
            slots[i] = (struct slot){.side = side, .watch = watch, .fd = -1, .turn = turn};
            side->slots++;
            return &slots[i];
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
        const struct slot *other = &slots[i];
        assert(fd < 0 || other == slot || other->watch == NULL || other->fd != fd);
    }
    slot->fd = fd;
    slot->events = events;
    slot->turn = turn;
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

void loop_open(void) {
    memset(slots, 0, sizeof slots);
    memset(sides, 0, sizeof sides);
}

int loop_create(const redlock_manager_options *options, redlock_manager **manager, char *error, size_t size) {
    return redlock_manager_create_on(&ops, slots, options, manager, error, size);
}

static void flush(void) {
    for (int i = 0; i < SIDES;) {
        struct side *side = &sides[i];
        if (side->side != NULL && side->asked) {
            side->asked = false;
            redlock_loop_flush(side->side);
            i = 0; /* its callbacks may have made requests of another one */
        } else {
            i++;
        }
    }
}

static void report(const struct pollfd *fds) {
    for (int i = 0; i < SLOTS; i++) {
        const struct slot *slot = &slots[i];
        const int seen = fds[i].revents;
        if (seen == 0 || slot->watch == NULL || slot->turn == turn) {
            continue;
        }
        redlock_loop_io(slot->watch,
                        ((seen & (POLLIN | POLLERR | POLLHUP)) != 0 ? (unsigned)REDLOCK_LOOP_READABLE : 0U) |
                            ((seen & (POLLOUT | POLLERR | POLLHUP)) != 0 ? (unsigned)REDLOCK_LOOP_WRITABLE : 0U));
    }
}

void loop_turn(void) {
    struct pollfd fds[SLOTS + 1];
    polled_late();
    flush();
    for (int i = 0; i < SLOTS; i++) {
        const struct slot *slot = &slots[i];
        fds[i] = (struct pollfd){.fd = slot->watch == NULL ? -1 : slot->fd,
                                 .events = (short)(((slot->events & REDLOCK_LOOP_READABLE) != 0 ? POLLIN : 0) |
                                                   ((slot->events & REDLOCK_LOOP_WRITABLE) != 0 ? POLLOUT : 0))};
    }
    turn++; /* what a slot watches from now on was not polled for */
    if (polled_wait(fds, SLOTS + 1)) {
        report(fds);
    }
}

void loop_after_fork(void) {
    /* poll() keeps nothing in the kernel. */
}

bool loop_close(void) {
    bool clean = true;
    for (int i = 0; i < SIDES; i++) {
        clean = clean && sides[i].side == NULL;
    }
    return clean;
}
