/* What the tests need of an event loop, so that one test runs on each. */
#ifndef TEST_INTEGRATION_LOOPS_KIND_H
#define TEST_INTEGRATION_LOOPS_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include <redlock/redlock.h>

typedef void (*loop_callback)(void *data);

struct loop_kind {
    void *(*open)(void);
    int (*create)(void *loop, const redlock_manager_options *options, redlock_manager **manager, char *error,
                  size_t error_size);
    /* Waits for at least one event and handles what came: one wake-up. */
    void (*turn)(void *loop);
    /* The loop's own repeating timer, of which there is one at a time. */
    void (*start_timer)(void *loop, int ms, loop_callback callback, void *data);
    void (*stop_timer)(void *loop);
    /* The loop's own watch of a descriptor for reading, of which there is one at a time. */
    void (*start_reading)(void *loop, int fd, loop_callback callback, void *data);
    void (*stop_reading)(void *loop);
    /* Calls back once, in one of the next turns, at the last moment that the loop offers before it
     * waits. NULL: it offers none. */
    void (*before_wait)(void *loop, loop_callback callback, void *data);
    /* In a child process that goes on with the loop. */
    void (*after_fork)(void *loop);
    /* Returns whether nothing of the library was left on the loop, where the loop can tell. */
    bool (*close)(void *loop);
};

extern const struct loop_kind loop_kind;

#endif
