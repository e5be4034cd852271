/* An ACQUIRE that asks for the holder's name: SET … NX GET, and the proof that it is understood. */
#ifndef REDLOCK_WIRE_NAMING_H
#define REDLOCK_WIRE_NAMING_H

#include "wire/message.h"
#include "wire/reply.h"

/*
 * The server answers with the value that is there, and with nil if it set the key. One that ignores
 * the GET answers nil if it did not. Who takes the one for the other lets two in. So nil counts
 * only on a connection that has proven that it understands GET. Until then, an acquire sends the
 * command twice, in one write. Both are for the same key and token, so they set it once:
 *
 * | first \ second | nil          | a value        | OK               | an error     |
 * | nil            | unclear      | set, proven    | set, ignores GET | unclear      |
 * | a value        | set, proven  | denied, proven | out of protocol  | failed       |
 * | OK             | set, ignores | out of protocol| out of protocol  | unclear      |
 * | an error       | unclear      | denied, proven | set, ignores GET | failed       |
 *
 * "A value" is also WRONGTYPE: a key of another type is there, and only GET looks at it. Anything
 * else is out of protocol. What is unclear, or out of protocol, may have set the key: UNKNOWN.
 */
enum redlock_naming_reply {
    REDLOCK_NAMING_NIL,
    REDLOCK_NAMING_VALUE,
    REDLOCK_NAMING_OK,
    REDLOCK_NAMING_ERROR,
    REDLOCK_NAMING_OTHER,
    REDLOCK_NAMING_REPLY_COUNT
};

enum redlock_naming_reply redlock_naming_reply_of(const struct redlock_reply *reply);

/* What is known of the connection after both replies. */
enum redlock_naming_proof {
    REDLOCK_NAMING_PROVEN,
    REDLOCK_NAMING_OPEN,    /* try again */
    REDLOCK_NAMING_REFUTED, /* GET is ignored, or it is not clear: ask this connection plainly */
    REDLOCK_NAMING_BROKEN   /* out of protocol: end the connection (R20) */
};

/* `answer` is what the second reply means on a proven connection. Becomes what both replies
 * mean. */
enum redlock_naming_proof redlock_naming_judge(enum redlock_naming_reply first, enum redlock_naming_reply second,
                                               struct redlock_answer *answer);

/* After redlock_read_error(): WRONGTYPE is DENIED; a server that does not have the command, or does
 * not let us read the key, is asked plainly (no_script). */
void redlock_naming_read_error(const struct redlock_reply_value *error, struct redlock_answer *answer);

#endif
