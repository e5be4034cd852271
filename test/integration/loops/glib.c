/* GLib, for the tests of loops. */
#include <glib-unix.h>
#include <redlock/adapters/glib.h>

#include "kind.h"

struct test_loop {
    GMainContext *context;
    GSource *timer, *io, *late;
    loop_callback on_timer, on_io, on_late;
    void *timer_data, *io_data, *late_data;
};

static gboolean on_timer(gpointer data) {
    struct test_loop *loop = data;
    loop->on_timer(loop->timer_data);
    return G_SOURCE_CONTINUE;
}

static gboolean on_io(gint fd, GIOCondition condition, gpointer data) {
    struct test_loop *loop = data;
    (void)fd, (void)condition;
    loop->on_io(loop->io_data);
    return G_SOURCE_CONTINUE;
}

static void *open_loop(void) {
    struct test_loop *loop = calloc(1, sizeof *loop);
    loop->context = g_main_context_new();
    return loop;
}

static int create(void *context, const redlock_manager_options *options, redlock_manager **manager, char *error,
                  size_t error_size) {
    struct test_loop *loop = context;
    return redlock_manager_create_glib(loop->context, options, manager, error, error_size);
}

static void turn(void *context) {
    struct test_loop *loop = context;
    g_main_context_iteration(loop->context, TRUE);
}

static void stop(GSource **source) {
    if (*source != NULL) {
        g_source_destroy(*source);
        g_source_unref(*source);
        *source = NULL;
    }
}

static void start_timer(void *context, int ms, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_timer = callback;
    loop->timer_data = data;
    loop->timer = g_timeout_source_new((guint)ms);
    g_source_set_callback(loop->timer, on_timer, loop, NULL);
    g_source_attach(loop->timer, loop->context);
}

static void stop_timer(void *context) {
    struct test_loop *loop = context;
    stop(&loop->timer);
}

static void start_reading(void *context, int fd, loop_callback callback, void *data) {
    struct test_loop *loop = context;
    loop->on_io = callback;
    loop->io_data = data;
    loop->io = g_unix_fd_source_new(fd, G_IO_IN);
    g_source_set_callback(loop->io, G_SOURCE_FUNC(on_io), loop, NULL);
    g_source_attach(loop->io, loop->context);
}

static void stop_reading(void *context) {
    struct test_loop *loop = context;
    stop(&loop->io);
}

/* A source whose prepare function runs behind those of the library, which are older. */
struct late_source {
    GSource source;
    struct test_loop *loop;
    int turns;
};

static gboolean late_prepare(GSource *source, gint *timeout_ms) {
    struct late_source *late = (struct late_source *)source;
    struct test_loop *loop = late->loop;
    *timeout_ms = -1;
    if (++late->turns < 3) {
        return FALSE; /* the new source itself has woken the context, which then would not wait */
    }
    stop(&loop->late);
    loop->on_late(loop->late_data);
    return FALSE;
}

static gboolean late_dispatch(GSource *source, GSourceFunc callback, gpointer data) {
    (void)source, (void)callback, (void)data;
    return G_SOURCE_CONTINUE;
}

static void before_wait(void *context, loop_callback callback, void *data) {
    static GSourceFuncs functions = {.prepare = late_prepare, .dispatch = late_dispatch};
    struct test_loop *loop = context;
    loop->on_late = callback;
    loop->late_data = data;
    loop->late = g_source_new(&functions, sizeof(struct late_source));
    ((struct late_source *)loop->late)->loop = loop;
    ((struct late_source *)loop->late)->turns = 0;
    g_source_attach(loop->late, loop->context);
}

static void after_fork(void *context) {
    (void)context; /* GLib keeps nothing in the kernel */
}

static bool close_loop(void *context) {
    struct test_loop *loop = context;
    gint timeout_ms = 0, priority = 0;
    GPollFD fds[4];
    /* The first turn forgets what was destroyed. Then only the wake-up of the context is left. */
    while (g_main_context_iteration(loop->context, FALSE)) {
    }
    const bool clean = g_main_context_acquire(loop->context) && !g_main_context_prepare(loop->context, &priority) &&
                       g_main_context_query(loop->context, G_MAXINT, &timeout_ms, fds, 4) == 1 && timeout_ms == -1;
    g_main_context_release(loop->context);
    g_main_context_unref(loop->context);
    free(loop);
    return clean;
}

const struct loop_kind loop_kind = {.open = open_loop,
                                    .create = create,
                                    .turn = turn,
                                    .start_timer = start_timer,
                                    .stop_timer = stop_timer,
                                    .start_reading = start_reading,
                                    .stop_reading = stop_reading,
                                    .before_wait = before_wait,
                                    .after_fork = after_fork,
                                    .close = close_loop};
