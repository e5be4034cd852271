/**
 * @file libevent.h
 * Managers on a libevent base. Needs libevent 2.0 or newer; link it yourself (`-levent_core`). With
 * the static library of redlock name it before libev, which has functions of the same names.
 *
 * libevent 2.1 has no call before it polls (2.2 has evwatch_prepare_new()). The adapter activates
 * an event of its own: it runs behind the callbacks that are ready in this turn, and writes their
 * requests, with one write for each node. A program that gives its events priorities
 * (event_base_priority_init()) must do so before it creates a manager. Requests of callbacks of a
 * lower priority than the middle one then go out in the next turn. event_base_dispatch() returns
 * when the manager has closed and no other event is left.
 */
#ifndef REDLOCK_ADAPTERS_LIBEVENT_H
#define REDLOCK_ADAPTERS_LIBEVENT_H

#include <event2/event.h>
#include <redlock/loop.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @cond */
typedef struct redlock_libevent_adapter {
    struct event_base *base;
    struct event *flush;
    redlock_loop *side;
} redlock_libevent_adapter;

typedef struct redlock_libevent_slot {
    struct event_base *base;
    struct event *event;
    redlock_loop_watch *watch;
} redlock_libevent_slot;

static inline void redlock_libevent_on_flush(evutil_socket_t fd, short events, void *adapter) {
    (void)fd;
    (void)events;
    redlock_loop_flush(((redlock_libevent_adapter *)adapter)->side);
}

static inline void redlock_libevent_on_io(evutil_socket_t fd, short events, void *slot) {
    (void)fd;
    redlock_loop_io(((redlock_libevent_slot *)slot)->watch,
                    ((events & EV_READ) != 0 ? (unsigned)REDLOCK_LOOP_READABLE : 0U) |
                        ((events & EV_WRITE) != 0 ? (unsigned)REDLOCK_LOOP_WRITABLE : 0U));
}

static inline void *redlock_libevent_attach(void *base, redlock_loop *side) {
    redlock_libevent_adapter *adapter = (redlock_libevent_adapter *)malloc(sizeof *adapter);
    if (adapter == NULL) {
        return NULL;
    }
    adapter->base = (struct event_base *)base;
    adapter->side = side;
    adapter->flush = event_new(adapter->base, -1, 0, redlock_libevent_on_flush, adapter);
    if (adapter->flush == NULL) {
        free(adapter);
        return NULL;
    }
    return adapter;
}

static inline void redlock_libevent_detach(void *context) {
    redlock_libevent_adapter *adapter = (redlock_libevent_adapter *)context;
    event_free(adapter->flush);
    free(adapter);
}

static inline void *redlock_libevent_add(void *adapter, redlock_loop_watch *watch) {
    redlock_libevent_slot *slot = (redlock_libevent_slot *)malloc(sizeof *slot);
    if (slot == NULL) {
        return NULL;
    }
    slot->base = ((redlock_libevent_adapter *)adapter)->base;
    slot->watch = watch;
    slot->event = event_new(slot->base, -1, 0, redlock_libevent_on_io, slot);
    if (slot->event == NULL) {
        free(slot);
        return NULL;
    }
    return slot;
}

static inline void redlock_libevent_remove(void *context) {
    redlock_libevent_slot *slot = (redlock_libevent_slot *)context;
    event_free(slot->event);
    free(slot);
}

static inline bool redlock_libevent_watch(void *context, int fd, unsigned events) {
    redlock_libevent_slot *slot = (redlock_libevent_slot *)context;
    const int wanted = EV_PERSIST | ((events & REDLOCK_LOOP_READABLE) != 0 ? EV_READ : 0) |
                       ((events & REDLOCK_LOOP_WRITABLE) != 0 ? EV_WRITE : 0);
    (void)event_del(slot->event);
    return fd < 0 || (event_assign(slot->event, slot->base, fd, (short)wanted, redlock_libevent_on_io, slot) == 0 &&
                      event_add(slot->event, NULL) == 0);
}

static inline void redlock_libevent_flush_soon(void *adapter) {
    event_active(((redlock_libevent_adapter *)adapter)->flush, EV_TIMEOUT, 0);
}

static inline void redlock_libevent_after_fork(void *adapter) {
    (void)event_reinit(((redlock_libevent_adapter *)adapter)->base);
}
/** @endcond */

/**
 * As redlock_manager_create(), on a libevent base, which must outlive the manager. In a child
 * process redlock_manager_abandon() calls event_reinit().
 */
static inline int redlock_manager_create_libevent(struct event_base *base, const redlock_manager_options *options,
                                                  redlock_manager **manager, char *error, size_t error_size) {
    const redlock_loop_ops ops = {sizeof ops,
                                  redlock_libevent_attach,
                                  redlock_libevent_detach,
                                  redlock_libevent_add,
                                  redlock_libevent_remove,
                                  redlock_libevent_watch,
                                  redlock_libevent_flush_soon,
                                  redlock_libevent_after_fork};
    return redlock_manager_create_on(&ops, base, options, manager, error, error_size);
}

#ifdef __cplusplus
}
#endif

#endif
