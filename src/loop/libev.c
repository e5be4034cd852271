/* The library's own adapter: libev. */
#include <assert.h>
#include <ev.h>
#include <stdlib.h>

#include "loop/loop.h"

static_assert((int)EV_READ == (int)REDLOCK_READABLE, "libev's events are the reactor's");
static_assert((int)EV_WRITE == (int)REDLOCK_WRITABLE, "libev's events are the reactor's");

struct adapter {
    struct ev_loop *ev;
    ev_prepare prepare; /* flushes before each poll (R6) */
};

struct slot {
    ev_io io;
    struct adapter *adapter;
};

static void on_prepare(struct ev_loop *ev, ev_prepare *prepare, int events) {
    (void)ev;
    (void)events;
    redlock_loop_flush(prepare->data);
}

static void on_io(struct ev_loop *ev, ev_io *io, int events) {
    (void)ev;
    redlock_loop_report(io->data, (unsigned)events);
}

static void *attach(void *loop, redlock_loop *side) {
    struct adapter *adapter = calloc(1, sizeof *adapter);
    if (adapter == NULL) {
        return NULL;
    }
    adapter->ev = loop;
    ev_prepare_init(&adapter->prepare, on_prepare);
    /* After the program's own watchers, which may queue requests. */
    ev_set_priority(&adapter->prepare, EV_MINPRI);
    adapter->prepare.data = side;
    ev_prepare_start(adapter->ev, &adapter->prepare);
    return adapter;
}

static void detach(void *context) {
    struct adapter *adapter = context;
    ev_prepare_stop(adapter->ev, &adapter->prepare);
    free(adapter);
}

static void *add(void *context, redlock_loop_watch *watch) {
    struct slot *slot = calloc(1, sizeof *slot);
    if (slot == NULL) {
        return NULL;
    }
    slot->adapter = context;
    ev_io_init(&slot->io, on_io, -1, 0);
    slot->io.data = watch;
    return slot;
}

static void remove_slot(void *context) {
    struct slot *slot = context;
    ev_io_stop(slot->adapter->ev, &slot->io);
    assert(!ev_is_active(&slot->io));
    free(slot);
}

static bool watch_fd(void *context, int fd, unsigned events) {
    struct slot *slot = context;
    ev_io_stop(slot->adapter->ev, &slot->io);
    if (fd >= 0) {
        ev_io_set(&slot->io, fd, (int)events);
        ev_io_start(slot->adapter->ev, &slot->io);
    }
    return true;
}

/* A child calls ev_loop_fork() itself. Until then, to stop a watcher changes nothing in the
 * kernel. */
const redlock_loop_ops redlock_libev_ops = {.size = sizeof redlock_libev_ops,
                                            .attach = attach,
                                            .detach = detach,
                                            .add = add,
                                            .remove = remove_slot,
                                            .watch = watch_fd};
