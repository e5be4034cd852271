/* Whether acquires ask a server for the holder where it denies the lock: wire/holder_query.h. */
#ifndef REDLOCK_SERVER_HOLDER_QUERY_H
#define REDLOCK_SERVER_HOLDER_QUERY_H

#include "server/server_state.h"

/*
 * | state | an acquire sends   | becomes                                                     |
 * | ---   | ---                | ---                                                         |
 * | any   |                    | with a new connection: TWICE if the server's version has it |
 * |       |                    | and it is not barred, else NOT                              |
 * | NOT   | SET                | stays                                                       |
 * | TWICE | SET with GET twice | ONCE when proven; NOT when refused or refuted               |
 * | ONCE  | SET with GET       | NOT when refused                                            |
 *
 * A reply that ends the connection bars the server: NOT on every connection. Otherwise a value of
 * more than REDLOCK_REPLY_SIZE_MAX at the key would end one connection after the other.
 */

/* A new connection is about to be READY. */
void redlock_holder_query_begin(struct redlock_server *server);

/* Takes the first of two replies: the request goes back into its queue. Returns false if this is
 * the second. */
bool redlock_holder_query_first(struct redlock_server *server, const struct redlock_inflight_entry *entry, bool in_time,
                                const struct redlock_reply *reply);

/* The second, as redlock_wire_answer() has it: corrects the answer. Returns false for two replies
 * that cannot be. */
bool redlock_holder_query_second(struct redlock_server *server, const struct redlock_reply *reply,
                                 struct redlock_answer *answer);

/* What such a request answered proves that the server understands it: see redlock_env.proven(). */
void redlock_holder_query_proven(struct redlock_server *server);

/* The only reply to such a request is a refusal (REDLOCK_AGAIN_BY_SOURCE), or one that it cannot
 * have. */
void redlock_holder_query_refused(struct redlock_server *server, const struct redlock_answer *answer);

/* What the server says next is no reply: if it is to such a request, bars the server. */
void redlock_holder_query_protocol(struct redlock_server *server);

#endif
