/* The same as the other workers, on a loop that no adapter knows: the program is the loop and its
 * adapter.
 *
 *     worker-own-loop report 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379
 *
 * cc worker-own-loop.c $(pkg-config --cflags --libs redlock) -o worker-own-loop */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <redlock/loop.h>

#define STEPS   5
#define STEP_MS 100

/* The loop: it polls what its slots watch. A real one has watches of other kinds, too. */
struct slot {
    struct slot *next;
    redlock_loop_watch *watch; /* NULL: removed */
    int fd;
    short events;
    int fresh; /* it watches something else than what was polled for */
};

struct loop {
    struct slot *slots;
    redlock_loop *side;
};

/* The adapter. */

static void *attach(void *loop, redlock_loop *side) {
    ((struct loop *)loop)->side = side; /* for the call before poll() */
    return loop;
}

static void detach(void *adapter) {
    ((struct loop *)adapter)->side = NULL;
}

static void *add(void *adapter, redlock_loop_watch *watch) {
    struct loop *loop = adapter;
    struct slot *slot = calloc(1, sizeof *slot);
    if (slot != NULL) {
        slot->watch = watch;
        slot->fd = -1;
        slot->next = loop->slots;
        loop->slots = slot;
    }
    return slot;
}

static bool watch_fd(void *context, int fd, unsigned events) {
    struct slot *slot = context;
    slot->fd = fd;
    slot->events =
        (short)((events & REDLOCK_LOOP_READABLE ? POLLIN : 0) | (events & REDLOCK_LOOP_WRITABLE ? POLLOUT : 0));
    slot->fresh = 1; /* report nothing that was seen before */
    return true;
}

static void remove_slot(void *context) {
    struct slot *slot = context;
    slot->watch = NULL; /* freed before the next poll(): the loop may be looking at it */
    slot->fd = -1;
}

static const redlock_loop_ops ops = {
    .size = sizeof ops, .attach = attach, .detach = detach, .add = add, .remove = remove_slot, .watch = watch_fd};

/* One turn of the loop. */
static int turn(struct loop *loop, int timeout_ms) {
    struct pollfd fds[64];
    struct slot *slots[64];
    nfds_t count = 0;
    if (loop->side != NULL) {
        redlock_loop_flush(loop->side); /* the call before poll() */
    }
    for (struct slot **link = &loop->slots; *link != NULL;) {
        struct slot *slot = *link;
        if (slot->watch == NULL) {
            *link = slot->next;
            free(slot);
            continue;
        }
        if (slot->fd >= 0 && count < 64) {
            slot->fresh = 0;
            slots[count] = slot;
            fds[count++] = (struct pollfd){.fd = slot->fd, .events = slot->events};
        }
        link = &slot->next;
    }
    const int ready = poll(fds, count, timeout_ms);
    for (nfds_t i = 0; ready > 0 && i < count; i++) {
        const int broken = POLLERR | POLLHUP;
        if (fds[i].revents != 0 && slots[i]->watch != NULL && !slots[i]->fresh) {
            redlock_loop_io(slots[i]->watch,
                            (fds[i].revents & (POLLIN | broken) ? (unsigned)REDLOCK_LOOP_READABLE : 0U) |
                                (fds[i].revents & (POLLOUT | broken) ? (unsigned)REDLOCK_LOOP_WRITABLE : 0U));
        }
    }
    return ready;
}

/* The work. */

static redlock_manager *manager;
static redlock_lease *lease;
static int steps, failed, working, done;

static void closed(void *data) {
    (void)data;
    done = 1;
}

static void released(const redlock_result *result, void *data) {
    (void)data;
    printf("released: %s\n", redlock_strerror(redlock_result_code(result)));
    redlock_manager_close(manager, closed, NULL);
}

static void lost(redlock_lease *lost_lease, const char *reason, void *data) {
    (void)data;
    fprintf(stderr, "lost: %s\n", reason);
    failed = 1;
    working = 0;
    redlock_release(lost_lease, released, NULL);
}

/* One step of the work. */
static void step(void) {
    if (redlock_lease_validity_ms(lease) == 0) {
        return; /* lost() comes */
    }
    printf("step %d\n", ++steps);
    fflush(stdout);
    if (steps == STEPS) {
        working = 0;
        redlock_release(lease, released, NULL);
    }
}

static void acquired(const redlock_result *result, void *data) {
    (void)data;
    lease = redlock_result_lease(result);
    if (lease == NULL) {
        char message[2048];
        redlock_result_message(result, message, sizeof message);
        fprintf(stderr, "%s\n", message);
        failed = 1;
        redlock_manager_close(manager, closed, NULL);
        return;
    }
    working = 1;
}

int main(int argc, char **argv) {
    char error[256];
    if (argc < 3) {
        fprintf(stderr, "usage: worker-own-loop LOCK NODE…\n");
        return 64;
    }
    struct loop loop = {0};
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    if (redlock_manager_create_on(&ops, &loop, &options, &manager, error, sizeof error) != REDLOCK_OK) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    redlock_acquire_options how;
    redlock_acquire_options_default(&how);
    how.wait_timeout_ms = 60000;
    how.auto_extend = true;
    how.on_lost = lost;
    if (redlock_acquire(manager, argv[1], &how, NULL, acquired, NULL) != REDLOCK_OK) {
        return 1;
    }
    while (!done) {
        if (turn(&loop, working ? STEP_MS : -1) == 0) {
            step();
        }
    }
    (void)turn(&loop, 0); /* frees the slots */
    return failed;
}
