/**
 * @file libuv.h
 * Managers on a libuv loop. Needs libuv 1.12 or newer; link it yourself (`-luv`).
 *
 * Requests go out before the loop polls next: with those of all callbacks of the turn, in one write
 * for each node. The loop stays alive until the manager has closed. Then it needs one more turn to
 * free its handles, which uv_run() in its default mode does by itself; uv_loop_close() before that
 * is UV_EBUSY. The handles belong to the adapter: a program that closes all handles that uv_walk()
 * finds must close its managers first.
 */
#ifndef REDLOCK_ADAPTERS_LIBUV_H
#define REDLOCK_ADAPTERS_LIBUV_H

#include <redlock/loop.h>
#include <stdlib.h>
#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @cond */
typedef struct redlock_libuv_adapter {
    uv_idle_t flush; /* runs before the loop polls, and keeps the poll from waiting */
    redlock_loop *side;
} redlock_libuv_adapter;

typedef struct redlock_libuv_slot {
    uv_loop_t *loop;
    redlock_loop_watch *watch;
    uv_poll_t *poll; /* NULL: watches nothing */
    int fd;
    int events; /* as libuv names them */
} redlock_libuv_slot;

static inline void redlock_libuv_free(uv_handle_t *handle) {
    free(handle);
}

static inline void redlock_libuv_on_idle(uv_idle_t *idle) {
    (void)uv_idle_stop(idle);
    redlock_loop_flush(((redlock_libuv_adapter *)idle)->side);
}

static inline void redlock_libuv_on_poll(uv_poll_t *poll, int status, int events) {
    const redlock_libuv_slot *slot = (const redlock_libuv_slot *)poll->data;
    unsigned ready = ((events & UV_READABLE) != 0 ? (unsigned)REDLOCK_LOOP_READABLE : 0U) |
                     ((events & UV_WRITABLE) != 0 ? (unsigned)REDLOCK_LOOP_WRITABLE : 0U);
    if (status < 0) {
        /* libuv stops watching a descriptor with an error: the error must be reported again. */
        (void)uv_poll_start(poll, slot->events, redlock_libuv_on_poll);
        ready = (unsigned)REDLOCK_LOOP_READABLE | (unsigned)REDLOCK_LOOP_WRITABLE;
    }
    redlock_loop_io(slot->watch, ready);
}

static inline void *redlock_libuv_attach(void *loop, redlock_loop *side) {
    redlock_libuv_adapter *adapter = (redlock_libuv_adapter *)malloc(sizeof *adapter);
    if (adapter != NULL) {
        (void)uv_idle_init((uv_loop_t *)loop, &adapter->flush); /* cannot fail */
        adapter->side = side;
    }
    return adapter;
}

static inline void redlock_libuv_detach(void *adapter) {
    uv_close((uv_handle_t *)adapter, redlock_libuv_free);
}

static inline void *redlock_libuv_add(void *adapter, redlock_loop_watch *watch) {
    redlock_libuv_slot *slot = (redlock_libuv_slot *)malloc(sizeof *slot);
    if (slot != NULL) {
        slot->loop = ((redlock_libuv_adapter *)adapter)->flush.loop;
        slot->watch = watch;
        slot->poll = NULL;
        slot->fd = -1;
        slot->events = 0;
    }
    return slot;
}

static inline bool redlock_libuv_open(redlock_libuv_slot *slot, int fd) {
    uv_poll_t *poll = (uv_poll_t *)malloc(sizeof *poll);
    if (poll == NULL || uv_poll_init(slot->loop, poll, fd) != 0) {
        free(poll);
        return false;
    }
    poll->data = slot;
    slot->poll = poll;
    slot->fd = fd;
    return true;
}

static inline bool redlock_libuv_watch(void *context, int fd, unsigned events) {
    redlock_libuv_slot *slot = (redlock_libuv_slot *)context;
    if (slot->poll != NULL && fd != slot->fd) {
        uv_close((uv_handle_t *)slot->poll, redlock_libuv_free);
        slot->poll = NULL;
    }
    if (fd < 0) {
        return true;
    }
    if (slot->poll == NULL && !redlock_libuv_open(slot, fd)) {
        return false;
    }
    slot->events = ((events & REDLOCK_LOOP_READABLE) != 0 ? UV_READABLE : 0) |
                   ((events & REDLOCK_LOOP_WRITABLE) != 0 ? UV_WRITABLE : 0);
    return uv_poll_start(slot->poll, slot->events, redlock_libuv_on_poll) == 0;
}

static inline void redlock_libuv_remove(void *slot) {
    (void)redlock_libuv_watch(slot, -1, 0);
    free(slot);
}

static inline void redlock_libuv_flush_soon(void *adapter) {
    (void)uv_idle_start((uv_idle_t *)adapter, redlock_libuv_on_idle);
}

static inline void redlock_libuv_after_fork(void *adapter) {
    (void)uv_loop_fork(((redlock_libuv_adapter *)adapter)->flush.loop);
}
/** @endcond */

/**
 * As redlock_manager_create(), on a libuv loop, which must outlive the manager. In a child process
 * redlock_manager_abandon() calls uv_loop_fork().
 */
static inline int redlock_manager_create_libuv(uv_loop_t *loop, const redlock_manager_options *options,
                                               redlock_manager **manager, char *error, size_t error_size) {
    const redlock_loop_ops ops = {
        sizeof ops,           redlock_libuv_attach, redlock_libuv_detach,     redlock_libuv_add,
        redlock_libuv_remove, redlock_libuv_watch,  redlock_libuv_flush_soon, redlock_libuv_after_fork};
    return redlock_manager_create_on(&ops, loop, options, manager, error, error_size);
}

#ifdef __cplusplus
}
#endif

#endif
