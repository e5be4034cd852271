/* Commands to a node, as the user "chaos": for faults, and for looking. Synchronous, with a short
 * timeout. */
#ifndef CHAOS_ADMIN_H
#define CHAOS_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/fault.h"

/*
 * Each opens a connection of its own to 127.0.0.1:port, waits 500 ms at most for each answer, and
 * closes. False with a sentence. The process ignores SIGPIPE.
 */

bool chaos_admin_ping(uint16_t port, struct chaos_error *error);
/*
 * Does what the fault's kind says: SLOW, BUSY (sent, and taken by the node's kernel, without
 * waiting for the answer), SCRIPT_FLUSH, FLUSHALL, DISCONNECT (all but the user chaos),
 * UNSUBSCRIBE, MAXCLIENTS, OOM, PASSWORD.
 *
 * Under MAXCLIENTS a node takes no new connection, ours included. So the one that began it is kept
 * in *held until chaos_admin_end() has undone it, and what is asked of the node meanwhile is asked
 * there. `held`: one int a node, of the caller, 0 for none; to be closed where it never comes to
 * the end.
 */
bool chaos_admin_begin(uint16_t port, const struct chaos_fault *fault, int *held, struct chaos_error *error);
/*
 * Undoes MAXCLIENTS, OOM, PASSWORD; ends a BUSY script. Nothing is to be done for the others. A
 * node that was restarted meanwhile is well already: that is no error.
 */
bool chaos_admin_end(uint16_t port, const struct chaos_fault *fault, int *held, struct chaos_error *error);
/* How many keys of locks there are, and of queues if asked for; -1 with a sentence. */
int64_t chaos_admin_key_count(uint16_t port, bool queues, struct chaos_error *error);
/* The node's wall clock in seconds; -1 if it does not tell. */
int64_t chaos_admin_time_s(uint16_t port);
/* "redis 7.0.15" into version. */
bool chaos_admin_version(uint16_t port, char *version, size_t version_size, struct chaos_error *error);

#endif
