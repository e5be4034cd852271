/**
 * @file loop.h
 * A manager on any event loop, not only on libev. redlock/adapters/ has libuv.h, libevent.h and
 * glib.h, and poll.h for a loop of your own or of another language. Include one of those. This
 * header is for those who write an adapter for one more loop; docs/event-loops.md shows a whole
 * one.
 *
 * An adapter does two things: it watches descriptors, and it calls redlock_loop_flush() before the
 * loop waits. It needs no timer. The library's one timer is a descriptor too (a timerfd on
 * CLOCK_BOOTTIME), because the timers of most loops stand still while the machine is suspended, and
 * a lease does not.
 *
 * Everything here belongs to the thread that runs the loop.
 */
#ifndef REDLOCK_LOOP_H
#define REDLOCK_LOOP_H

#include <redlock/redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The library's side of an adapter: one manager on one loop. */
typedef struct redlock_loop redlock_loop;
/** The library's side of a slot. */
typedef struct redlock_loop_watch redlock_loop_watch;

/** What may be watched for and reported. */
enum redlock_loop_events { REDLOCK_LOOP_READABLE = 1, REDLOCK_LOOP_WRITABLE = 2 };

/**
 * What the library asks of a loop. The library calls attach() first, then add(), watch() and
 * remove() as often as it needs, and detach() last, when all slots are removed.
 *
 * It may call each of them, except after_fork(), inside redlock_loop_io() and redlock_loop_flush():
 * also remove() for the slot of that call, and detach(). So when one of these two has returned,
 * touch neither the slot nor the adapter any more.
 *
 * No function of the struct may call redlock_loop_io() or redlock_loop_flush().
 */
typedef struct redlock_loop_ops {
    size_t size; /**< sizeof this struct. */

    /**
     * Begins: makes what the adapter keeps for one manager.
     * @param loop  what redlock_manager_create_on() was given.
     * @param side  for redlock_loop_flush(); valid until detach().
     * @return what the other functions get as `adapter`; NULL if there is no memory
     */
    void *(*attach)(void *loop, redlock_loop *side);

    /** Ends: frees what attach() made. */
    void (*detach)(void *adapter);

    /**
     * Makes a slot, which watches one descriptor at a time, and none yet. There is a slot for the
     * timer, and two for each node.
     * @param watch  for redlock_loop_io(); valid until remove().
     * @return the slot; NULL if there is no memory
     */
    void *(*add)(void *adapter, redlock_loop_watch *watch);

    /** Frees a slot. It may still watch a descriptor: stop that first. */
    void (*remove)(void *slot);

    /**
     * From now on the slot watches this descriptor for these events, and nothing else. Report them
     * as long as they last (level-triggered). Report no more what was seen of the slot's descriptor
     * before this call, even if the loop has collected it already.
     * @param fd      non-blocking, and watched by no other slot; or -1: watch nothing. The library
     *                always says -1 before it closes a descriptor. The same fd as before is the
     *                same file: only the events change.
     * @param events  enum redlock_loop_events; 0 with an fd of -1.
     * @return false if the loop cannot; the slot then watches nothing. The connection times out and
     *         is tried again.
     */
    bool (*watch)(void *slot, int fd, unsigned events);

    /**
     * Asks for one call of redlock_loop_flush(): before the loop waits next, and better after the
     * callbacks that the loop still runs in this turn, so that their requests go out in the same
     * write. NULL if the adapter calls it before each wait anyway.
     */
    void (*flush_soon)(void *adapter);

    /**
     * In a child process, at the start of redlock_manager_abandon(): makes the loop the child's
     * own, so that what the child stops watching is still watched in the parent (uv_loop_fork(),
     * event_reinit()). NULL if the loop needs no such call.
     */
    void (*after_fork)(void *adapter);
} redlock_loop_ops;

/**
 * As redlock_manager_create(), on a loop that these functions work on. A loop may have any number
 * of managers.
 * @param ops   copied. Only flush_soon and after_fork may be NULL.
 * @param loop  given to ops->attach(); may be NULL if that needs none.
 * @return as redlock_manager_create(); #REDLOCK_ERR_SYSTEM also if the loop cannot watch the timer
 */
REDLOCK_API int redlock_manager_create_on(const redlock_loop_ops *ops, void *loop,
                                          const redlock_manager_options *options, redlock_manager **manager,
                                          char *error, size_t error_size);

/**
 * Reports that a slot's descriptor is ready. Runs callbacks. Report an error or a hang-up as both
 * events; those that are not asked for do not count. Never report what has not happened: a
 * connection that is being made would seem complete.
 */
REDLOCK_API void redlock_loop_io(redlock_loop_watch *watch, unsigned events);

/** Writes what is queued, with one write for each node. May run callbacks. Without anything queued
 * it does nothing. */
REDLOCK_API void redlock_loop_flush(redlock_loop *side);

#ifdef __cplusplus
}
#endif

#endif
