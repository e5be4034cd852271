/* A program around poll() that waits for a lock, works under it, and lets it go:
 *
 *     worker-poll report 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379
 *
 * cc worker-poll.c $(pkg-config --cflags --libs redlock) -o worker-poll */
#include <poll.h>
#include <stdio.h>

#include <redlock/adapters/poll.h>

#define STEPS   5
#define STEP_MS 100

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
        fprintf(stderr, "usage: worker-poll LOCK NODE…\n");
        return 64;
    }
    redlock_poll *library = redlock_poll_new();
    if (library == NULL) {
        return 1;
    }
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    if (redlock_manager_create_poll(library, &options, &manager, error, sizeof error) != REDLOCK_OK) {
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
        /* The program's own descriptors would stand here, too. */
        struct pollfd fds[] = {{.fd = redlock_poll_fd(library), .events = POLLIN}};
        const int ready = poll(fds, 1, working ? STEP_MS : -1);
        if (ready > 0 && redlock_poll_dispatch(library) == REDLOCK_ERR_SYSTEM) {
            perror("redlock_poll_dispatch");
            return 1;
        }
        if (ready == 0) {
            step();
        }
    }
    redlock_poll_free(library);
    return failed;
}
