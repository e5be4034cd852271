/* What the handshake proves on the server itself: that a lease can be renewed and released there,
 * that it is a primary, and that it is the server of no other node (R18). */
#ifndef REDLOCK_SERVER_PROOF_H
#define REDLOCK_SERVER_PROOF_H

#include "server/handshake_state.h"

/* Appends EVALSHA of the probe, or EVAL. Returns false without memory. */
bool redlock_proof_say(struct redlock_handshake *handshake, struct redlock_outbox *outbox, bool by_source);

/* Its reply. Sets probe_again if it must be sent by source: the server has not kept the script.
 * Sets probe_renewal if it was refused, and it is not known why. */
enum redlock_handshake_state redlock_proof_reply(struct redlock_handshake *handshake, const struct redlock_reply *reply,
                                                 bool by_source);

/* Some servers refuse the probe because it names no key, and run the other scripts. So a renewal of
 * a lease that nobody has must tell; it changes nothing. Returns false without memory. */
bool redlock_proof_say_renewal(struct redlock_handshake *handshake, struct redlock_outbox *outbox);
enum redlock_handshake_state redlock_proof_renewal(struct redlock_handshake *handshake,
                                                   const struct redlock_reply *reply);

/* HELLO and ROLE, where INFO has not told the role. An error tells nothing. */
void redlock_proof_hello(struct redlock_info *info, const struct redlock_reply *reply);
void redlock_proof_role(struct redlock_info *info, const struct redlock_reply *reply);

/* Warns of what could not be proven. */
void redlock_proof_warn(struct redlock_handshake *handshake);

#endif
