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
    REDLOCK_OP_WAIT   /* take the lock, or a place in its queue */
};

#endif
