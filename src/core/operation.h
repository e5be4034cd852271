/* The operations that we ask of nodes. */
#ifndef REDLOCK_CORE_OPERATION_H
#define REDLOCK_CORE_OPERATION_H

enum redlock_operation {
    REDLOCK_OP_NONE,
    REDLOCK_OP_ACQUIRE,
    REDLOCK_OP_EXTEND,
    REDLOCK_OP_RELEASE,
    REDLOCK_OP_INSPECT,
    REDLOCK_OP_FENCE, /* write a fencing token back */
    REDLOCK_OP_HEAL,  /* set the key again where it is missing; never counted */
    REDLOCK_OP_TIME,  /* read the node's clock */
    REDLOCK_OP_WAIT,  /* take the lock, or a place in its queue */
    REDLOCK_OP_LIST   /* look for locks among some of the keys */
};

/* To whom a RELEASE gives the lock, as the script has it. */
enum redlock_handing {
    REDLOCK_HAND_OVER = 0,   /* to the next in line; if nobody waits, the lock is free */
    REDLOCK_HAND_NOBODY = 1, /* the lock is free */
    REDLOCK_HAND_LATER = 50  /* if somebody waits, nobody in line gets it for so many ms */
};

#endif
