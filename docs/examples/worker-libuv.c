/* A program on libuv that waits for a lock, works under it, and lets it go:
 *
 *     worker-libuv report 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379
 *
 * cc worker-libuv.c $(pkg-config --cflags --libs redlock libuv) -o worker-libuv */
#include <stdio.h>

#include <redlock/adapters/libuv.h>

#define STEPS   5
#define STEP_MS 100

static redlock_manager *manager;
static redlock_lease *lease;
static uv_timer_t timer;
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
    uv_timer_stop(&timer);
    redlock_release(lost_lease, released, NULL);
}

/* One step of the work. */
static void step(uv_timer_t *handle) {
    if (redlock_lease_validity_ms(lease) == 0) {
        return; /* lost() comes */
    }
    printf("step %d\n", ++steps);
    fflush(stdout);
    if (steps == STEPS) {
        uv_timer_stop(handle);
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
    uv_timer_start(&timer, step, 0, STEP_MS);
}

int main(int argc, char **argv) {
    uv_loop_t *loop = uv_default_loop();
    char error[256];
    if (argc < 3) {
        fprintf(stderr, "usage: worker-libuv LOCK NODE…\n");
        return 64;
    }
    uv_timer_init(loop, &timer);
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    if (redlock_manager_create_libuv(loop, &options, &manager, error, sizeof error) != REDLOCK_OK) {
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
    uv_run(loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) != 0 || failed;
}
