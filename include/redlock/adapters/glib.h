/**
 * @file glib.h
 * Managers on a GLib main context: GTK, GStreamer, libsoup and others. Needs GLib 2.36 or newer;
 * link it yourself (`pkg-config --libs glib-2.0`).
 *
 * Requests go out before the context polls next: with those of all callbacks of the turn, in one
 * write for each node. All sources have the default priority. Call everything on the thread that
 * iterates the context. A manager does not end a GMainLoop, and does not keep it running.
 */
#ifndef REDLOCK_ADAPTERS_GLIB_H
#define REDLOCK_ADAPTERS_GLIB_H

#include <glib.h>
#include <redlock/loop.h>
#include <stdlib.h>

/** @cond */
/* Flushes. */
typedef struct redlock_glib_adapter {
    GSource source;
    GMainContext *context;
    redlock_loop *side;
    gboolean prepared; /* the context is about to poll, or polls */
} redlock_glib_adapter;

typedef struct redlock_glib_source {
    GSource source;
    redlock_loop_watch *watch;
    gpointer tag;
} redlock_glib_source;

typedef struct redlock_glib_slot {
    GMainContext *context;
    redlock_loop_watch *watch;
    redlock_glib_source *source; /* NULL: watches nothing */
    int fd;
} redlock_glib_slot;

static inline gboolean redlock_glib_flush_prepare(GSource *source, gint *timeout_ms) {
    redlock_glib_adapter *adapter = (redlock_glib_adapter *)source;
    *timeout_ms = -1;
    redlock_loop_flush(adapter->side);
    adapter->prepared = TRUE;
    return FALSE;
}

static inline gboolean redlock_glib_flush_check(GSource *source) {
    ((redlock_glib_adapter *)source)->prepared = FALSE;
    return FALSE;
}

static inline gboolean redlock_glib_flush_dispatch(GSource *source, GSourceFunc callback, gpointer data) {
    (void)callback;
    (void)data;
    ((redlock_glib_adapter *)source)->prepared = FALSE;
    g_source_set_ready_time(source, -1);
    redlock_loop_flush(((redlock_glib_adapter *)source)->side);
    return G_SOURCE_CONTINUE;
}

static inline gboolean redlock_glib_io_dispatch(GSource *source, GSourceFunc callback, gpointer data) {
    redlock_glib_source *io = (redlock_glib_source *)source;
    const unsigned ready = (unsigned)g_source_query_unix_fd(source, io->tag);
    const unsigned broken = (unsigned)G_IO_ERR | (unsigned)G_IO_HUP | (unsigned)G_IO_NVAL;
    (void)callback;
    (void)data;
    redlock_loop_io(io->watch, ((ready & (G_IO_IN | broken)) != 0 ? (unsigned)REDLOCK_LOOP_READABLE : 0U) |
                                   ((ready & (G_IO_OUT | broken)) != 0 ? (unsigned)REDLOCK_LOOP_WRITABLE : 0U));
    return G_SOURCE_CONTINUE;
}

static inline void *redlock_glib_attach(void *context, redlock_loop *side) {
    static GSourceFuncs functions = {
        redlock_glib_flush_prepare, redlock_glib_flush_check, redlock_glib_flush_dispatch, NULL, NULL, NULL};
    GSource *source = g_source_new(&functions, sizeof(redlock_glib_adapter));
    redlock_glib_adapter *adapter = (redlock_glib_adapter *)source;
    adapter->context = (GMainContext *)context;
    adapter->side = side;
    adapter->prepared = FALSE;
    g_source_attach(source, adapter->context);
    return adapter;
}

static inline void redlock_glib_detach(void *adapter) {
    g_source_destroy((GSource *)adapter);
    g_source_unref((GSource *)adapter);
}

static inline void *redlock_glib_add(void *adapter, redlock_loop_watch *watch) {
    redlock_glib_slot *slot = (redlock_glib_slot *)malloc(sizeof *slot);
    if (slot != NULL) {
        slot->context = ((redlock_glib_adapter *)adapter)->context;
        slot->watch = watch;
        slot->source = NULL;
        slot->fd = -1;
    }
    return slot;
}

static inline void redlock_glib_open(redlock_glib_slot *slot, int fd, GIOCondition wanted) {
    static GSourceFuncs functions = {NULL, NULL, redlock_glib_io_dispatch, NULL, NULL, NULL};
    GSource *source = g_source_new(&functions, sizeof(redlock_glib_source));
    slot->source = (redlock_glib_source *)source;
    slot->source->watch = slot->watch;
    slot->source->tag = g_source_add_unix_fd(source, fd, wanted);
    slot->fd = fd;
    g_source_attach(source, slot->context);
}

static inline bool redlock_glib_watch(void *context, int fd, unsigned events) {
    redlock_glib_slot *slot = (redlock_glib_slot *)context;
    const GIOCondition wanted = (GIOCondition)(((events & REDLOCK_LOOP_READABLE) != 0 ? G_IO_IN : 0) |
                                               ((events & REDLOCK_LOOP_WRITABLE) != 0 ? G_IO_OUT : 0));
    if (slot->source != NULL && fd == slot->fd) {
        g_source_modify_unix_fd((GSource *)slot->source, slot->source->tag, wanted);
        return true;
    }
    if (slot->source != NULL) {
        g_source_destroy((GSource *)slot->source);
        g_source_unref((GSource *)slot->source);
        slot->source = NULL;
    }
    if (fd >= 0) {
        redlock_glib_open(slot, fd, wanted);
    }
    return true;
}

static inline void redlock_glib_remove(void *slot) {
    (void)redlock_glib_watch(slot, -1, 0);
    free(slot);
}

/* The next preparation flushes. It is over already where another source's asks. */
static inline void redlock_glib_flush_soon(void *context) {
    redlock_glib_adapter *adapter = (redlock_glib_adapter *)context;
    if (adapter->prepared) {
        g_source_set_ready_time((GSource *)adapter, 0);
    }
}
/** @endcond */

/**
 * As redlock_manager_create(), on a GLib main context, which must outlive the manager.
 * @param context  NULL for the global default context.
 */
static inline int redlock_manager_create_glib(GMainContext *context, const redlock_manager_options *options,
                                              redlock_manager **manager, char *error, size_t error_size) {
    const redlock_loop_ops ops = {sizeof ops,          redlock_glib_attach, redlock_glib_detach,     redlock_glib_add,
                                  redlock_glib_remove, redlock_glib_watch,  redlock_glib_flush_soon, NULL};
    return redlock_manager_create_on(&ops, context, options, manager, error, error_size);
}

#endif
