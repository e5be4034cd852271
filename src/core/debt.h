/* Which nodes still owe us a release, when to ask again, and what ends the debt: an answer, or the key's ttl (R8, R9). */
#ifndef REDLOCK_CORE_DEBT_H
#define REDLOCK_CORE_DEBT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/quorum.h"

/*
 * A node that answered the request which set the key has started the key's ttl by then, and the clock ends its debt. A node
 * that did not is uncertain: the request may wait in its buffers or in the network for longer than any ttl, and set the key
 * when it lands. Only an answer ends that debt: a release is answered behind the request on the same connection, or on a new
 * one, before which CLIENT KILL has ended the old one.
 */
struct redlock_debt {
    redlock_nodes owing;     /* nodes that have not confirmed that the key is not ours any more */
    redlock_nodes asked;     /* of these, the ones with a request under way */
    redlock_nodes uncertain; /* of these, the ones whose debt the clock does not end */
    int64_t expires_ns;      /* by then the ttl has removed the key from all others */
    int64_t retry_ns;        /* ask the idle ones again */
    uint8_t failures;
};

void redlock_debt_start(struct redlock_debt *debt, redlock_nodes owing, redlock_nodes uncertain, int64_t expires_ns);

/*
 * The nodes to ask now: those of `ready` that owe and are not being asked; they count as asked from here on, until their
 * vote (FAILED for one that refused). Does not look at retry_ns: a node that became ready is asked at once. Past the
 * expiry only the uncertain are asked.
 */
redlock_nodes redlock_debt_ask(struct redlock_debt *debt, redlock_nodes ready, int64_t now_ns);

/* A node answered a release. GRANTED and DENIED both say that our key is gone; anything else leaves the debt. */
void redlock_debt_vote(struct redlock_debt *debt, unsigned node, redlock_vote_kind vote, int64_t now_ns);

/* Paid, or past its expiry and nobody uncertain (with the rest still in `owing`); never while a request is under way. */
bool redlock_debt_over(const struct redlock_debt *debt, int64_t now_ns);

/*
 * When to look again; REDLOCK_NEVER_NS while every owing node is being asked, or only their votes are missing. Nodes that are
 * not ready are not asked by the clock: thousands of debts of a hung node would else wake us for nothing. They are asked when
 * they become ready.
 */
int64_t redlock_debt_next_ns(const struct redlock_debt *debt, redlock_nodes ready, int64_t now_ns);

#endif
