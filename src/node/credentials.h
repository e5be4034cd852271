/* New credentials for a node that runs: they replace the old ones when the node accepts them. */
#ifndef REDLOCK_NODE_CREDENTIALS_H
#define REDLOCK_NODE_CREDENTIALS_H

#include <stdbool.h>

#include "base/text.h"
#include "wire/reply.h"

struct redlock_node;

/* All zero: none. Never printed; overwritten before they are freed. */
struct redlock_credentials {
    char *user; /* NULL: the default user */
    char *password;
};

/* Returns false without memory. The user may be NULL. */
bool redlock_credentials_copy(struct redlock_credentials *copy, const char *user, const char *password);
void redlock_credentials_clear(struct redlock_credentials *credentials);

/*
 * The address has what the node accepted last; at first, what its URI says. What the caller gives
 * later goes this way, and each pair of user and password is in one place only:
 *
 * where it is   event                                             it goes to
 * the caller    redlock_node_offer()                              newer; one that was there is wiped
 * newer         the node is READY or STALLED                      asked: AUTH, in order with requests
 *               a handshake begins, unless it is to `go_back`     the address; what was there: older
 * asked         AUTH accepted                                     the address; what was there is wiped
 *               AUTH refused, withdrawn; the connection ends      newer, or wiped if that is taken
 * the address,  the handshake is done                             stays; older is wiped
 * with `trying` the handshake fails                               newer, or wiped; older: the address.
 *                                                                 After a refused AUTH: go_back
 * the address,  AUTH refused, and `newer` was refused before      wiped; newer: the address
 * after going back
 *
 * A refusal is asked again only with new credentials, or by the next handshake.
 *
 * The second connection cannot be asked: a subscriber may not say AUTH. A password matters only to
 * AUTH, so that connection stays if the user is the same. If the user changes, it begins anew.
 *
 * Redis before 6 logs a connection out when AUTH fails. There the newer ones wait for the next
 * handshake.
 */
struct redlock_rotation {
    struct redlock_credentials newer, asked, older;
    bool trying;                  /* the handshake uses the newer ones */
    bool go_back;                 /* the next handshake uses the older ones */
    bool unaccepted;              /* the address has the newer ones, because the node refuses both */
    bool withdrawn;               /* AUTH was not written within the node timeout */
    struct redlock_text *refusal; /* why the node refused the newer ones; NULL if it did not */
};

void redlock_rotation_clear(struct redlock_rotation *rotation);

/* Whether the node has not accepted what was given last. */
bool redlock_rotation_is_pending(const struct redlock_rotation *rotation);

/* The steps of a connection. */
void redlock_rotation_greets(struct redlock_node *node); /* a handshake is about to begin */
void redlock_rotation_ready(struct redlock_node *node);  /* it is done */
void redlock_rotation_ends(struct redlock_node *node);   /* it failed, or the connection ends */
void redlock_rotation_was_withdrawn(struct redlock_node *node);
/* The handshake's AUTH was refused. Returns true if it is to be tried again with the old ones. */
bool redlock_rotation_goes_back(struct redlock_node *node, const char *reason);
/* The reply to AUTH on an open connection. Returns false if it is none. */
bool redlock_rotation_reply(struct redlock_node *node, const struct redlock_reply *reply);

#endif
