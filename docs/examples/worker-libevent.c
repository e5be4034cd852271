/* A program on libevent that waits for a lock, works under it, and lets it go:
 *
 *     worker-libevent report 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379
 *
 * cc worker-libevent.c $(pkg-config --cflags --libs redlock libevent_core) -o worker-libevent */
#include <stdio.h>

#include <redlock/adapters/libevent.h>

#define STEPS   5
#define STEP_MS 100

static redlock_manager *manager;
static redlock_lease *lease;
static struct event *timer;
static int steps, failed;

/* The loop ends when the manager has closed. */
static void released(const redlock_result *result, void *data) {
    (void)data;
    printf("released: %s\n", redlock_strerror(redlock_result_code(result)));
    redlock_manager_close(manager, NULL, NULL);
}

static void lost(redlock_lease *lost_lease, const char *reason, void *data) {
    (void)data;
    fprintf(stderr, "lost: %s\n", reason);
    failed = 1;
    event_del(timer);
    redlock_release(lost_lease, released, NULL);
}

/* One step of the work. */
static void step(evutil_socket_t fd, short events, void *data) {
    (void)fd;
    (void)events;
    (void)data;
    if (redlock_lease_validity_ms(lease) == 0) {
        return; /* lost() comes */
    }
    printf("step %d\n", ++steps);
    fflush(stdout);
    if (steps == STEPS) {
        event_del(timer);
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
        redlock_manager_close(manager, NULL, NULL);
        return;
    }
    const struct timeval every = {.tv_usec = STEP_MS * 1000};
    event_add(timer, &every);
}

int main(int argc, char **argv) {
    struct event_base *base = event_base_new();
    char error[256];
    if (argc < 3) {
        fprintf(stderr, "usage: worker-libevent LOCK NODE…\n");
        return 64;
    }
    timer = base == NULL ? NULL : event_new(base, -1, EV_PERSIST, step, NULL);
    if (timer == NULL) {
        return 1;
    }
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    if (redlock_manager_create_libevent(base, &options, &manager, error, sizeof error) != REDLOCK_OK) {
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
    event_base_dispatch(base);
    event_free(timer);
    event_base_free(base);
    return failed;
}
