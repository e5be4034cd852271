/* GLib, for the tests of loops. */
#include <glib-unix.h>
#include <redlock/adapters/glib.h>

#include "kind.h"

static GMainContext *context;
static GSource *timer, *io, *late;
static int late_turns;
static loop_callback on_timer, on_io, on_late;

static gboolean timer_cb(gpointer data) {
    (void)data;
    on_timer();
    return G_SOURCE_CONTINUE;
}

static gboolean io_cb(gint fd, GIOCondition condition, gpointer data) {
    (void)fd, (void)condition, (void)data;
    on_io();
    return G_SOURCE_CONTINUE;
}

void loop_open(void) {
    context = g_main_context_new();
}

int loop_create(const redlock_manager_options *options, redlock_manager **manager, char *error, size_t size) {
    return redlock_manager_create_glib(context, options, manager, error, size);
}

void loop_turn(void) {
    g_main_context_iteration(context, TRUE);
}

static void stop(GSource **source) {
    if (*source != NULL) {
        g_source_destroy(*source);
        g_source_unref(*source);
        *source = NULL;
    }
}

void loop_start_timer(int ms, loop_callback callback) {
    on_timer = callback;
    timer = g_timeout_source_new((guint)ms);
    g_source_set_callback(timer, timer_cb, NULL, NULL);
    g_source_attach(timer, context);
}

void loop_stop_timer(void) {
    stop(&timer);
}

void loop_start_reading(int fd, loop_callback callback) {
    on_io = callback;
    io = g_unix_fd_source_new(fd, G_IO_IN);
    g_source_set_callback(io, G_SOURCE_FUNC(io_cb), NULL, NULL);
    g_source_attach(io, context);
}

void loop_stop_reading(void) {
    stop(&io);
}

static gboolean late_prepare(GSource *source, gint *timeout_ms) {
    (void)source;
    *timeout_ms = -1;
    if (++late_turns < 3) {
        return FALSE; /* the new source itself has woken the context, which then would not wait */
    }
    stop(&late);
    on_late();
    return FALSE;
}

static gboolean late_dispatch(GSource *source, GSourceFunc callback, gpointer data) {
    (void)source, (void)callback, (void)data;
    return G_SOURCE_CONTINUE;
}

/* A source whose prepare function runs behind those of the library, which are older. */
bool loop_before_wait(loop_callback callback) {
    static GSourceFuncs functions = {.prepare = late_prepare, .dispatch = late_dispatch};
    on_late = callback;
    late_turns = 0;
    late = g_source_new(&functions, sizeof(GSource));
    g_source_attach(late, context);
    return true;
}

void loop_after_fork(void) {
    /* GLib keeps nothing in the kernel. */
}

bool loop_close(void) {
    gint timeout_ms = 0, priority = 0;
    GPollFD fds[4];
    /* The first turn forgets what was destroyed. Then only the wake-up of the context is left. */
    while (g_main_context_iteration(context, FALSE)) {
    }
    const bool clean = g_main_context_acquire(context) && !g_main_context_prepare(context, &priority) &&
                       g_main_context_query(context, G_MAXINT, &timeout_ms, fds, 4) == 1 && timeout_ms == -1;
    g_main_context_release(context);
    g_main_context_unref(context);
    return clean;
}
