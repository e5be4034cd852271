/**
 * @file poll.h
 * For a program with a loop of its own (poll(), select(), epoll), and for loops of other languages
 * such as Python's asyncio: everything that managers wait for, behind one descriptor.
 *
 * @code
 * redlock_poll *poll = redlock_poll_new();
 * redlock_manager_create_poll(poll, &options, &manager, error, sizeof error);
 * struct pollfd fds[] = {{.fd = redlock_poll_fd(poll), .events = POLLIN}, …};
 * for (;;) {
 *     poll(fds, n, -1);
 *     if (fds[0].revents)
 *         redlock_poll_dispatch(poll);
 *     …
 * }
 * @endcode
 *
 * Watch the descriptor for reading, nothing else: it is readable when an answer, a timer or a
 * request of yours is due. There is no timeout to ask for. The timers count the time while the
 * machine is suspended, which a timeout of poll() does not.
 *
 * These are functions of the library, so bindings can load them by name. All of them belong to the
 * thread that runs the loop.
 */
#ifndef REDLOCK_ADAPTERS_POLL_H
#define REDLOCK_ADAPTERS_POLL_H

#include <redlock/redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One descriptor for any number of managers. */
typedef struct redlock_poll redlock_poll;

/** @return NULL if there is no memory or no descriptor; errno says which */
REDLOCK_API redlock_poll *redlock_poll_new(void);

/** The descriptor to watch for reading: level-triggered, and the same until redlock_poll_free(). Do
 * not read from it and do not close it. */
REDLOCK_API int redlock_poll_fd(const redlock_poll *poll);

/**
 * Does what is due, and writes the requests that were made since the last call: one write for each
 * node. Runs callbacks. Never blocks. Call it when the descriptor is readable; any other call does
 * no harm.
 * @return #REDLOCK_OK; #REDLOCK_ERR_BUSY inside a callback of the library, which it must not be
 *         called from; #REDLOCK_ERR_FORKED in a child process, where it does nothing;
 *         #REDLOCK_ERR_SYSTEM if the kernel refused, and errno says why
 */
REDLOCK_API int redlock_poll_dispatch(redlock_poll *poll);

/**
 * Closes the descriptor; stop watching it first. All managers on it must have ended: the callback
 * of redlock_manager_close() runs, or redlock_manager_abandon() has returned. It may be called
 * inside that callback.
 * @param poll  NULL is allowed.
 * @return #REDLOCK_OK, or #REDLOCK_ERR_BUSY if there is a manager left; nothing is done then
 */
REDLOCK_API int redlock_poll_free(redlock_poll *poll);

/** As redlock_manager_create(), on a redlock_poll, which must outlive the manager. */
REDLOCK_API int redlock_manager_create_poll(redlock_poll *poll, const redlock_manager_options *options,
                                            redlock_manager **manager, char *error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
