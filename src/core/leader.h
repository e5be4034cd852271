/* Who leads, as an observer knows it: what each node said last, and whom a quorum names. Pure. */
#ifndef REDLOCK_CORE_LEADER_H
#define REDLOCK_CORE_LEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/quorum.h"

/*
 * what a node said   event                                                   → it said
 * nothing            it answers                                              → free, or a token
 * free, a token      it answers                                              → free, or a token
 *                    it cannot answer                                        → nothing
 * any                its address leads to another server, or its server has
 *                    become another node (R18)                               → nothing
 *                    an answer to a question from before that                → the same
 *
 * who leads          event                                                   → who leads
 * not known          a quorum says free                                      → nobody: event
 *                    a quorum names one token                                → the token: event
 * nobody             a quorum names one token                                → the token: event
 * a token            a quorum names another one                              → that: event
 *                    a quorum says free that has named the token before      → nobody: event
 *                    a quorum says free, with others                         → the same: these are
 *                                                                              asked again
 *                    they say free again                                     → nobody: event
 * any                we lead ourselves                                       → that: event
 * any                anything else                                           → the same
 *
 * The words of nodes are of different ages. When a leader is found, the words that do not name it
 * are old, and so is the answer to a question from before. Old words make no other leader: if they
 * are needed for a quorum, these nodes are asked again. A question that is under way is enough. A
 * node that was free when the leader was found may be the leader's by now: so it is asked again
 * when a quorum says free. By then the leader has resigned, and takes no other node.
 *
 * A node is asked at the start, when it is heard from now on, when its key has ended, when it could
 * not answer, when it is another server, when a message on its channel hints at a change, and from
 * time to time: often if it may change without such a hint. Anybody may say anything on a channel,
 * so a hint changes nothing else.
 *
 * One question a node is under way at any time. A hint that comes meanwhile makes one more, and no
 * number of hints makes more than 50 a second, after the first 16.
 */

/* Room for a token, cut off if it is longer. */
struct redlock_leader_token {
    uint8_t size; /* 0: nobody */
    char bytes[REDLOCK_TOKEN_SIZE_MAX + 1];
};

/* What one node says. */
struct redlock_leader_word {
    const char *token; /* NULL or size 0: the lock is free */
    size_t token_size;
    int64_t ttl_ms; /* how long the key lives; -1: not known */
};

struct redlock_leader_node {
    int64_t ask_ns; /* when to ask it next, without a hint */
    /* Each question after a hint moves this on: it may run ahead of the time only so far. */
    int64_t spent_ns;
    bool knows;    /* it said something */
    bool asked;    /* the answer is to come */
    bool outdated; /* that answer is of another server */
    bool again;    /* ask once more after the answer */
    bool hinted;   /* something may have changed since it was asked */
    bool old;      /* said before the leader was found, and not that one */
    bool late;     /* so will be the answer that is to come */
    bool left;     /* it named the leader, and is free since */
    bool heard;    /* its hints come */
    struct redlock_leader_token token;
};

struct redlock_leadership {
    unsigned node_count, quorum;
    uint32_t random;
    bool known;    /* `leader` was found once */
    bool was_told; /* `told` is set */
    bool checked;  /* a quorum said free, and those that may be the leader's are asked again */
    struct redlock_leader_token leader, told;
    struct redlock_leader_node *nodes; /* node_count of them; the caller's */
};

/* The memory is all zero but for `nodes`, node_count and quorum. Every node is to be asked now. */
void redlock_leadership_init(struct redlock_leadership *leadership, uint32_t seed, int64_t now_ns);

/* The nodes to ask now. They count as asked: each gives one answer. */
redlock_nodes redlock_leadership_ask(struct redlock_leadership *leadership, int64_t now_ns);
/* When to call that next; REDLOCK_NEVER_NS if only answers can change it. */
int64_t redlock_leadership_next_ns(const struct redlock_leadership *leadership);

/* A node's answer; NULL if it could not answer. */
void redlock_leadership_answer(struct redlock_leadership *leadership, unsigned node,
                               const struct redlock_leader_word *word, int64_t now_ns);
/* Somebody says that something has changed there. */
void redlock_leadership_hint(struct redlock_leadership *leadership, unsigned node);
/* From now on the node's hints come, or come no more. */
void redlock_leadership_hear(struct redlock_leadership *leadership, unsigned node, bool heard, int64_t now_ns);
/* It is another server now, or its server has become another node: what it said counts no more. */
void redlock_leadership_forget(struct redlock_leadership *leadership, unsigned node, int64_t now_ns);

/* We lead under this token. So whatever the nodes have said until now is old if it is not that. */
void redlock_leadership_lead(struct redlock_leadership *leadership, const char *token, size_t size);

/* Whether the leader differs from whom the observer was told of. */
bool redlock_leadership_has_event(const struct redlock_leadership *leadership);
/* The leader, for the observer: no event any more. Call it if there is one. */
const struct redlock_leader_token *redlock_leadership_tell(struct redlock_leadership *leadership);

#endif
