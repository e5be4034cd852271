/* Seals: a push to a waiter is believed only if it proves which WAIT of ours to that node it is
 * about. */
#ifndef REDLOCK_GROUP_SEAL_H
#define REDLOCK_GROUP_SEAL_H

#include <stdbool.h>

#include "core/quorum.h"
#include "wire/message.h"

/*
 * Whoever may subscribe to the channels hears each push, and whoever may publish can say it again,
 * on any node, with other words. So a WAIT carries a seal for each node, which the node gives back
 * with its push: a keyed hash of the node, of all that the push says but its time, and of the
 * period in which the WAIT was sent. What is heard from one node proves nothing for another one,
 * for another WAIT or another key (docs/protocols.md, "What channels say").
 *
 * A seal fits until the period after that of its WAIT is over: for one to two of them.
 */
#define REDLOCK_SEAL_PERIOD_MS 15000
/* No seal of a WAIT that was sent until now fits after this. */
#define REDLOCK_SEAL_MS_MAX (2 * REDLOCK_SEAL_PERIOD_MS)

/* The seals of a WAIT for each of these nodes. `push` is what a node would say. */
void redlock_seal_make(const uint64_t secret[2], redlock_nodes nodes, const struct redlock_push *push, int64_t now_ns,
                       uint64_t *seals);
/* Whether this node was sent such a WAIT, not long ago. */
bool redlock_seal_fits(const uint64_t secret[2], unsigned node, const struct redlock_push *push, int64_t now_ns);

#endif
