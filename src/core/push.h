/* Push against release: what a push of a node finds, whichever of the two comes first. */
#ifndef REDLOCK_CORE_PUSH_H
#define REDLOCK_CORE_PUSH_H

#include "core/grants.h"

/*
 * A node pushes a grant on one connection, and answers our requests on another one. So the push and
 * the answer to our release come in any order, and anybody who heard a push may say it again. Each
 * node has one of these states for the current token of a waiter. A fresh token begins anew.
 *
 * state           event                   → state           what to do
 * UNASKED         ask                     → ASKED
 * ASKED, TIMING, TOLD
 *                 came                    → TOLD            count it
 *                 came, timed             → TIMING          ask for the node's time; not twice
 *                 release                 → RELEASING_TOLD; of ASKED: RELEASING
 *                 give up                 → GIVEN_UP
 * ASKED           tell                    → TOLD
 * TIMING          no time                 → TOLD
 * TIMING, TOLD    time                    → TOLD            count the push
 * RELEASING, RELEASING_TOLD
 *                 came                    → CROSSED
 *                 taken                   → DONE; of RELEASING: EXPECTED
 *                 missing                 → GIVEN_UP
 *                 unconfirmed             → DONE
 * RELEASING       tell                    → RELEASING_TOLD
 * CROSSED         missing                 → OWING
 *                 taken, unconfirmed      → DONE
 * EXPECTED        came, tell              → DONE
 * GIVEN_UP, OWING came                    stays             give it back
 * all but UNASKED keep                    → KEPT
 *
 * What is not listed changes nothing, and asks for nothing. When the lease ends, a node that is
 * EXPECTED will push something that needs no second release. One that is OWING has a key of ours.
 */
enum redlock_push_state {
    REDLOCK_PUSH_UNASKED,        /* it has no place there */
    REDLOCK_PUSH_ASKED,          /* a grant would come by push */
    REDLOCK_PUSH_TIMING,         /* it pushed, and its clock is being read */
    REDLOCK_PUSH_TOLD,           /* no push is to come: it came, or an answer said as much */
    REDLOCK_PUSH_RELEASING,      /* the release is under way there; it was ASKED before, */
    REDLOCK_PUSH_RELEASING_TOLD, /* or TOLD */
    REDLOCK_PUSH_CROSSED,        /* a push came meanwhile */
    REDLOCK_PUSH_EXPECTED,       /* released before the push, which will come */
    REDLOCK_PUSH_DONE,           /* the release is behind the grant, or is owed */
    REDLOCK_PUSH_GIVEN_UP,       /* nobody waits: what is granted now, nobody releases */
    REDLOCK_PUSH_OWING,          /* the same, and a push came during the release */
    REDLOCK_PUSH_KEPT            /* forgotten or lost: the key may count for another owner */
};

enum redlock_push_event {
    REDLOCK_PUSH_ASK,         /* a WAIT was sent there */
    REDLOCK_PUSH_TELL,        /* it granted a WAIT by its answer, or was sent a HEAL */
    REDLOCK_PUSH_CAME,        /* a push, which proved that it is about a WAIT of this token */
    REDLOCK_PUSH_CAME_TIMED,  /* the same, under the clock guard */
    REDLOCK_PUSH_TIME,        /* the clock was read after the push, */
    REDLOCK_PUSH_NO_TIME,     /* or could not be read */
    REDLOCK_PUSH_RELEASE,     /* a RELEASE was sent there */
    REDLOCK_PUSH_TAKEN,       /* the answer: it took our key away, */
    REDLOCK_PUSH_MISSING,     /* or there was no key of ours, */
    REDLOCK_PUSH_UNCONFIRMED, /* or something else */
    REDLOCK_PUSH_GIVE_UP,     /* the attempt or the lease is over; or this node gets no RELEASE */
    REDLOCK_PUSH_KEEP         /* the lease is forgotten; or it is lost, and has a lock delay */
};

enum redlock_push_action {
    REDLOCK_PUSH_NOTHING,
    REDLOCK_PUSH_COUNT,    /* the grant is a vote */
    REDLOCK_PUSH_ASK_TIME, /* it is one as soon as TIME follows */
    REDLOCK_PUSH_GIVE_BACK /* the key is ours, and nobody wants it */
};

/* `state` is one of enum redlock_push_state. */
enum redlock_push_action redlock_push_step(uint8_t *state, enum redlock_push_event event);
/* The same of some nodes, for events that ask for nothing. */
void redlock_push_step_all(struct redlock_grants *grants, redlock_nodes nodes, enum redlock_push_event event);
/* Those of the nodes that are in this state. */
redlock_nodes redlock_push_nodes_in(const struct redlock_grants *grants, redlock_nodes nodes,
                                    enum redlock_push_state state);
/* The event that an answer to a RELEASE is. */
enum redlock_push_event redlock_push_released(redlock_vote_kind vote);

#define REDLOCK_PUSH_EXPECTED_MAX 64 /* tokens */

/* The nodes that were EXPECTED when their lease ended. Of more tokens, the newest are known. */
struct redlock_push_expected {
    struct {
        uint64_t token_id;
        int64_t until_ns;
        redlock_nodes nodes;
    } tokens[REDLOCK_PUSH_EXPECTED_MAX]; /* a ring */
    uint32_t next;
};

void redlock_push_expect(struct redlock_push_expected *expected, uint64_t token_id, redlock_nodes nodes,
                         int64_t until_ns);
/* Whether this push needs no release. True once for each node: a second push is about another
 * grant. */
bool redlock_push_is_expected(struct redlock_push_expected *expected, uint64_t token_id, unsigned node, int64_t now_ns);
/* The node's subscription has ended, and with it the pushes that had not come. */
void redlock_push_expect_none(struct redlock_push_expected *expected, unsigned node);

#endif
