/* Which nodes still owe us a release, when to ask them again, and when the debt ends: with an
 * answer, or with the key's ttl (R8, R9). */
#ifndef REDLOCK_CORE_DEBT_H
#define REDLOCK_CORE_DEBT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/quorum.h"

/*
 * A node that answered the request which set the key has started the key's ttl. Its debt ends with
 * that ttl. A node that did not answer is uncertain: the request may wait in the node's buffers or
 * in the network for longer than any ttl, and set the key when it arrives. Its debt ends only with
 * an answer. The release is answered after the request on the same connection, or on a new
 * connection, before which CLIENT KILL has ended the old one.
 */
struct redlock_debt {
    redlock_nodes owing;     /* nodes that have not confirmed that our key is gone */
    redlock_nodes asked;     /* of these, the nodes with a request under way */
    redlock_nodes uncertain; /* of these, the nodes whose debt does not end with the ttl */
    int64_t expires_ns;      /* then the ttl has removed the key from all other nodes */
    int64_t retry_ns;        /* when to ask the idle nodes again */
    uint8_t failures;
};

void redlock_debt_start(struct redlock_debt *debt, redlock_nodes owing, redlock_nodes uncertain, int64_t expires_ns);

/*
 * Returns the nodes to ask now: nodes of `ready` that owe and are not being asked. They count as
 * asked until their vote; for a node that refused the request, the vote is FAILED. Ignores
 * retry_ns: a node that became ready is asked at once. After the expiry, only uncertain nodes are
 * asked.
 */
redlock_nodes redlock_debt_ask(struct redlock_debt *debt, redlock_nodes ready, int64_t now_ns);

/* A node answered a release. GRANTED and DENIED both say that our key is gone. Any other vote
 * leaves the debt. */
void redlock_debt_vote(struct redlock_debt *debt, unsigned node, redlock_vote_kind vote, int64_t now_ns);

/* All nodes have paid, or the expiry has passed and no uncertain node owes. Then `owing` has the
 * nodes that did not pay. Never true while a request is under way. */
bool redlock_debt_over(const struct redlock_debt *debt, int64_t now_ns);

/*
 * When to look again. REDLOCK_NEVER_NS while we only wait for answers. The clock does not ask nodes
 * that are not ready, else thousands of debts of a hung node would wake us for nothing. Those nodes
 * are asked when they become ready.
 */
int64_t redlock_debt_next_ns(const struct redlock_debt *debt, redlock_nodes ready, int64_t now_ns);

#endif
