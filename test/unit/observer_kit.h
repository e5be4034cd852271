/* What the tests of observers begin with: what callbacks saw, what nodes answer and announce. */
#ifndef REDLOCK_TEST_OBSERVER_KIT_H
#define REDLOCK_TEST_OBSERVER_KIT_H

#include "group_kit.h"

#define ALICE "00000000000000aa0123456789abcdef0123456789abcdef"
#define BOB   "00000000000000bb0123456789abcdef0123456789abcdef"

struct watch {
    unsigned count;
    char token[REDLOCK_TOKEN_SIZE_MAX + 1], holder[REDLOCK_HOLDER_SIZE_MAX + 1]; /* the last */
    redlock_observer *observer;
    redlock_observer *ends; /* in the callback */
    bool closes;            /* in the callback */
};

/* Of an observer: `data` is a struct watch. */
void on_leader(const redlock_leader *leader, void *data);

/* Observes "r". */
void observe(struct watch *watch);
/* An observer that all nodes tell: nobody leads. */
void observe_all(struct watch *watch);

/* How many nodes are being asked. */
unsigned count_asked(void);
/* The answer of a node to INSPECT. "" for nobody. */
void answer(unsigned node, const char *token);
void answer_all(const char *token);

/* Somebody says on this node that who has the key has changed. */
void hint_on(unsigned node, const char *key);
/* Nodes `first` to `last` announce that "r" has a new owner, and say so when they are asked. */
void announce(unsigned first, unsigned last, const char *token);
/* Nodes `first` to `last` confirm the first channel. */
void hear(unsigned first, unsigned last);

#endif
