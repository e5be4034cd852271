/* Where a server's new credentials are until the server has accepted them. */
#ifndef REDLOCK_SERVER_ROTATION_STATE_H
#define REDLOCK_SERVER_ROTATION_STATE_H

#include "base/text.h"
#include "server/credentials.h"

/*
 * The address has what the server accepted last; at first, what its URI says. What the caller gives
 * later goes this way, and each pair of user and password is in one place only:
 *
 * in          event                                         it goes to
 * the caller  redlock_node_offer()                          newer; one that was there is wiped
 * newer       the server is READY or STALLED                asked: AUTH, in order with requests
 *             a handshake begins, unless it is to go_back   the address; what was there: older
 * asked       AUTH accepted                                 the address; what was there is wiped
 *             AUTH refused, withdrawn; the connection ends  newer, or wiped if that is taken
 *             a spare replaces the connection, and AUTH is
 *             kept for it (spare.h)                         stays
 * the address, with `trying`:
 *             the handshake is done                         stays; older is wiped
 *             it fails (a refused AUTH sets go_back)        newer, or wiped; older: the address
 * the address, after going back:
 *             AUTH refused                                  wiped; newer: the address
 *
 * A spare has a copy, because the connection beside it may still answer an AUTH:
 *
 * the newest of newer and asked
 *             a spare greets, with it in turn               also: spare
 * spare       AUTH refused                                  wiped; the next spare has its turn with
 *                                                           the address
 *             the spare is the connection                   the address; in newer it is wiped
 *             the spare fails otherwise                     wiped
 *
 * The first turn is that of the new ones, unless they were refused already. A spare with the
 * address that is refused gives the turn to them.
 *
 * A refusal is asked again only with new credentials, or by the next handshake. A server that is
 * UNUSABLE, perhaps for want of the right ones, begins that at once.
 *
 * The second connection cannot be asked: a subscriber may not say AUTH. A password matters only to
 * AUTH, so that connection stays if the user is the same. If the user changes, it begins anew.
 *
 * From Redis 7.2 on, and in Valkey, a refused AUTH has no reply at all while the client has not
 * got all earlier ones. Then each later reply would count for the request before its own. So a PING
 * with a word of ours follows each AUTH, as a part of the same request:
 *
 * reply to AUTH's place   what it means       the next reply
 * +OK                     accepted            our word, or an error: no right to PING
 * an error                refused             our word; else we are out of step
 * our word                refused in silence  belongs to the next request
 *
 * Redis before 6 logs a connection out when AUTH fails. There the newer ones wait for the next
 * handshake.
 */
struct redlock_rotation {
    struct redlock_credentials newer, asked, older, spare;
    bool trying;                  /* the handshake uses the newer ones */
    bool go_back;                 /* the next handshake uses the older ones */
    bool unaccepted;              /* the address has the newer ones; the server refuses both */
    bool spare_turns;             /* the next spare has the other pair */
    bool withdrawn;               /* AUTH was not written within the node timeout */
    struct redlock_text *refusal; /* why the server refused the newer ones; NULL if it did not */
};

#endif
