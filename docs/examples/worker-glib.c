/* A program on GLib's main loop that waits for a lock, works under it, and lets it go:
 *
 *     worker-glib report 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379
 *
 * cc worker-glib.c $(pkg-config --cflags --libs redlock glib-2.0) -o worker-glib */
#include <stdio.h>

#include <redlock/adapters/glib.h>

#define STEPS   5
#define STEP_MS 100

static redlock_manager *manager;
static redlock_lease *lease;
static GMainLoop *loop;
static guint timer; /* 0: off */
static int steps, failed;

static void closed(void *data) {
    (void)data;
    g_main_loop_quit(loop);
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
    if (timer != 0) {
        g_source_remove(timer);
    }
    redlock_release(lost_lease, released, NULL);
}

/* One step of the work. */
static gboolean step(gpointer data) {
    (void)data;
    if (redlock_lease_validity_ms(lease) == 0) {
        return G_SOURCE_CONTINUE; /* lost() comes */
    }
    printf("step %d\n", ++steps);
    fflush(stdout);
    if (steps == STEPS) {
        timer = 0;
        redlock_release(lease, released, NULL);
        return G_SOURCE_REMOVE;
    }
    return G_SOURCE_CONTINUE;
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
    timer = g_timeout_add(STEP_MS, step, NULL);
}

int main(int argc, char **argv) {
    char error[256];
    if (argc < 3) {
        fprintf(stderr, "usage: worker-glib LOCK NODE…\n");
        return 64;
    }
    loop = g_main_loop_new(NULL, FALSE);
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = (const char *const *)argv + 2;
    options.node_count = (size_t)argc - 2;
    if (redlock_manager_create_glib(NULL, &options, &manager, error, sizeof error) != REDLOCK_OK) {
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
    g_main_loop_run(loop);
    g_main_loop_unref(loop);
    return failed;
}
