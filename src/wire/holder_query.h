/* An ACQUIRE that asks for the holder's name: SET … NX GET, and the proof that it is understood. */
#ifndef REDLOCK_WIRE_HOLDER_QUERY_H
#define REDLOCK_WIRE_HOLDER_QUERY_H

#include "wire/message.h"
#include "wire/reply.h"

/*
 * The server answers with the value that is there, and with nil if it set the key. One that ignores
 * the GET answers nil if it did not set it. Who takes the one for the other lets two in. So nil
 * counts only on a connection that has proven that it understands GET: nil, and then our own token.
 * Until then, an acquire sends the command twice. Both are for the same key and token, so they set
 * it once:
 *
 * | first \ second | nil           | our token       | another value | OK            | an error |
 * | nil            | unclear; not  | GRANTED; proven | unclear       | GRANTED; not  | unclear  |
 * | our token      | unclear       | the same server | unclear       | broken        | unclear  |
 * | a value        | unclear       | unclear         | DENIED        | broken        | DENIED   |
 * | OK             | GRANTED; not  | broken          | broken        | broken        | unclear  |
 * | an error       | unclear       | unclear         | DENIED        | GRANTED; not  | FAILED   |
 *
 * "Not": the connection is asked without GET from then on, as after a refusal of the command by
 * NOPERM or ERR. A user who may not read the key gets no vote: no script could renew or release it.
 * Each acquire has a fresh token (R10). So who has it before the node is asked got it from another
 * node's address: it is the same server (R18), and its vote is UNKNOWN.
 * "A value" is also WRONGTYPE: a key of another type is there, and only GET looks at it. Unclear is
 * UNKNOWN: the key may be ours. Broken is out of protocol, as anything else is (R20).
 */
enum redlock_holder_query_reply {
    REDLOCK_HOLDER_QUERY_NIL,
    REDLOCK_HOLDER_QUERY_VALUE, /* our token, or another value */
    REDLOCK_HOLDER_QUERY_OK,
    REDLOCK_HOLDER_QUERY_ERROR,
    REDLOCK_HOLDER_QUERY_OTHER,
    REDLOCK_HOLDER_QUERY_REPLY_COUNT
};

enum redlock_holder_query_reply redlock_holder_query_reply_of(const struct redlock_reply *reply);

/* What is known of the connection after both replies, before any value is compared. */
enum redlock_holder_query_proof {
    REDLOCK_HOLDER_QUERY_OPEN,    /* send the next acquire twice, too, unless a value is ours */
    REDLOCK_HOLDER_QUERY_REFUTED, /* GET is ignored, refused, or perhaps ignored: ask no more */
    REDLOCK_HOLDER_QUERY_BROKEN   /* out of protocol: end the connection (R20) */
};

/* `answer` is what redlock_wire_answer() says of the second reply. Becomes what both replies mean
 * if no value is our token. */
enum redlock_holder_query_proof redlock_holder_query_judge(enum redlock_holder_query_reply first,
                                                           enum redlock_holder_query_reply second,
                                                           struct redlock_answer *answer);

/* With answer->named: whether `first` and `holder` are our token. Becomes what that means. Returns
 * whether the connection is proven. */
bool redlock_holder_query_compared(struct redlock_answer *answer, bool is_first_ours, bool is_ours);

/* After an error was read: WRONGTYPE is DENIED; a server that does not have the command, or does
 * not let us run it so, is asked plainly (REDLOCK_AGAIN_BY_SOURCE). Where the key is refused, the
 * text says what the user needs. */
void redlock_holder_query_read_error(const struct redlock_reply_value *error, struct redlock_answer *answer);

#endif
