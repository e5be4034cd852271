/* The adapter for loops of any kind: one epoll descriptor that the caller watches. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <redlock/adapters/poll.h>

#include "base/list.h"
#include "base/random.h"
#include "loop/loop.h"

#define BATCH 32

struct slot {
    redlock_poll *poll;
    redlock_loop_watch *watch;
    int fd; /* -1: none */
};

struct adapter {
    redlock_poll *poll;
    redlock_loop *side;
    bool asked; /* for a flush */
    struct redlock_list_entry entry;
};

struct redlock_poll {
    int fd;
    /* An eventfd that is always readable. Watching it for one event makes `fd` readable. */
    int wake_up;
    bool is_woken; /* the event has not come yet */
    bool asked;    /* one of the adapters is */
    bool dispatching, freed;
    bool parted; /* its flush needs no wake-up */
    struct redlock_random *fork_mark;
    struct redlock_list adapters;
    /* Their data are slots, or this struct for the wake-up; NULL once the slot watches anew. */
    struct epoll_event batch[BATCH];
    int batch_count;
};

static bool control(const redlock_poll *poll, int operation, int fd, uint32_t events, void *data) {
    struct epoll_event event = {.events = events, .data.ptr = data};
    return epoll_ctl(poll->fd, operation, fd, &event) == 0;
}

void redlock_poll_wake(const redlock_poll *poll) {
    const bool woken = control(poll, EPOLL_CTL_MOD, poll->wake_up, EPOLLIN | EPOLLONESHOT, (void *)(uintptr_t)poll);
    assert(woken);
    (void)woken;
}

static void *attach(void *loop, redlock_loop *side) {
    struct adapter *adapter = calloc(1, sizeof *adapter);
    if (adapter == NULL) {
        return NULL;
    }
    adapter->poll = loop;
    assert(!adapter->poll->freed);
    adapter->side = side;
    redlock_list_prepend(&adapter->poll->adapters, &adapter->entry);
    return adapter;
}

static void detach(void *context) {
    struct adapter *adapter = context;
    redlock_list_remove(&adapter->entry);
    free(adapter);
}

static void *add(void *context, redlock_loop_watch *watch) {
    struct adapter *adapter = context;
    struct slot *slot = malloc(sizeof *slot);
    if (slot != NULL) {
        *slot = (struct slot){.poll = adapter->poll, .watch = watch, .fd = -1};
    }
    return slot;
}

static bool watch_fd(void *context, int fd, unsigned events) {
    struct slot *slot = context;
    redlock_poll *poll = slot->poll;
    const int before = slot->fd;
    for (int i = 0; i < poll->batch_count; i++) {
        if (poll->batch[i].data.ptr == slot) {
            poll->batch[i].data.ptr = NULL;
        }
    }
    slot->fd = fd;
    if (redlock_random_forked(poll->fork_mark)) {
        return true; /* what epoll watches is the parent's business */
    }
    if (before >= 0 && before != fd) {
        (void)control(poll, EPOLL_CTL_DEL, before, 0, NULL);
    }
    uint32_t wanted = ((events & REDLOCK_READABLE) != 0 ? (uint32_t)EPOLLIN : 0U) |
                      ((events & REDLOCK_WRITABLE) != 0 ? (uint32_t)EPOLLOUT : 0U);
    if (fd >= 0 && !control(poll, before == fd ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, wanted, slot)) {
        slot->fd = -1;
        return false;
    }
    return true;
}

static void remove_slot(void *slot) {
    (void)watch_fd(slot, -1, 0);
    assert(((const struct slot *)slot)->fd == -1);
    free(slot);
}

static void flush_soon(void *context) {
    struct adapter *adapter = context;
    redlock_poll *poll = adapter->poll;
    adapter->asked = poll->asked = true;
    if (!poll->dispatching && !poll->parted && !poll->is_woken) {
        redlock_poll_wake(poll);
        poll->is_woken = true;
    }
}

const redlock_loop_ops redlock_poll_ops = {.size = sizeof redlock_poll_ops,
                                           .attach = attach,
                                           .detach = detach,
                                           .add = add,
                                           .remove = remove_slot,
                                           .watch = watch_fd,
                                           .flush_soon = flush_soon};

static void destroy(redlock_poll *poll) {
    assert(!poll->dispatching && redlock_list_is_empty(&poll->adapters));
    if (poll->fd >= 0) {
        (void)close(poll->fd);
    }
    if (poll->wake_up >= 0) {
        (void)close(poll->wake_up);
    }
    redlock_random_delete(poll->fork_mark);
    free(poll);
}

redlock_poll *redlock_poll_new(void) {
    redlock_poll *poll = calloc(1, sizeof *poll);
    if (poll == NULL) {
        return NULL;
    }
    redlock_list_init(&poll->adapters);
    poll->fd = epoll_create1(EPOLL_CLOEXEC);
    poll->wake_up = poll->fd < 0 ? -1 : eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
    if (poll->wake_up >= 0 && control(poll, EPOLL_CTL_ADD, poll->wake_up, 0, poll)) {
        poll->fork_mark = redlock_random_new();
        errno = poll->fork_mark == NULL ? ENOMEM : 0;
    }
    if (poll->fork_mark == NULL) {
        int error = errno;
        destroy(poll);
        errno = error;
        return NULL;
    }
    return poll;
}

redlock_poll *redlock_poll_new_parted(void) {
    redlock_poll *poll = redlock_poll_new();
    if (poll != NULL) {
        poll->parted = true;
    }
    return poll;
}

int redlock_poll_fd(const redlock_poll *poll) {
    return poll->fd;
}

void redlock_poll_report(redlock_poll *poll) {
    assert((poll->dispatching || poll->parted) && poll->batch_count <= BATCH);
    for (int i = 0; i < poll->batch_count; i++) {
        const uint32_t events = poll->batch[i].events, broken = EPOLLERR | EPOLLHUP;
        const struct slot *slot = poll->batch[i].data.ptr;
        if ((const void *)slot == poll) {
            poll->is_woken = false;
        } else if (slot != NULL) {
            redlock_loop_report(slot->watch, ((events & (EPOLLIN | broken)) != 0 ? REDLOCK_READABLE : 0U) |
                                                 ((events & (EPOLLOUT | broken)) != 0 ? REDLOCK_WRITABLE : 0U));
        }
    }
    poll->batch_count = 0;
}

/* A callback may make requests of another manager, which had its flush already. */
void redlock_poll_flush(redlock_poll *poll) {
    assert((poll->dispatching || poll->parted) && poll->batch_count == 0);
    while (poll->asked) {
        poll->asked = false;
        REDLOCK_LIST_EACH(at, &poll->adapters) {
            struct adapter *adapter = REDLOCK_CONTAINER(at, struct adapter, entry);
            if (adapter->asked) {
                adapter->asked = false;
                redlock_loop_flush(adapter->side);
            }
        }
    }
}

int redlock_poll_wait(redlock_poll *poll, int timeout_ms) {
    assert(poll->batch_count == 0);
    const int count = epoll_wait(poll->fd, poll->batch, BATCH, timeout_ms);
    assert(count >= 0 || errno == EINTR);
    poll->batch_count = count < 0 ? 0 : count;
    return poll->batch_count;
}

int redlock_poll_dispatch(redlock_poll *poll) {
    if (redlock_random_forked(poll->fork_mark)) {
        return REDLOCK_ERR_FORKED;
    }
    if (poll->dispatching) {
        return REDLOCK_ERR_BUSY;
    }
    const int count = epoll_wait(poll->fd, poll->batch, BATCH, 0);
    if (count < 0) {
        return errno == EINTR ? REDLOCK_OK : REDLOCK_ERR_SYSTEM;
    }
    poll->dispatching = true;
    poll->batch_count = count;
    redlock_poll_report(poll);
    redlock_poll_flush(poll);
    poll->dispatching = false;
    if (poll->freed) {
        destroy(poll);
    }
    return REDLOCK_OK;
}

int redlock_poll_free(redlock_poll *poll) {
    if (poll == NULL) {
        return REDLOCK_OK;
    }
    if (!redlock_list_is_empty(&poll->adapters)) {
        return REDLOCK_ERR_BUSY;
    }
    if (poll->dispatching) {
        poll->freed = true;
    } else {
        destroy(poll);
    }
    return REDLOCK_OK;
}
