/* What can break. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

enum sim_fault {
    SIM_FAULT_HANG,  /* a node does nothing for a while, then everything */
    SIM_FAULT_CRASH, /* a node's process ends and comes back with its data */
    /* The same without its data. Where the lock needs that, it stays away until all its keys would
     * have expired. */
    SIM_FAULT_FORGET,
    /* The same; another host takes the place of the node, with its queues. Some clients do not
     * notice on their first connections. */
    SIM_FAULT_REPLACE,
    SIM_FAULT_BREAK,   /* a connection is lost, with what is under way */
    SIM_FAULT_CUT,     /* nothing passes between a client and a node, one way or both */
    SIM_FAULT_ISOLATE, /* nothing passes between a client and all nodes */
    SIM_FAULT_PAUSE,   /* a client does not run */
    SIM_FAULT_SCRIPTS, /* a node's scripts are flushed */
    SIM_FAULT_MODE,    /* a node is LOADING, out of memory, a replica, or cannot persist */
    SIM_FAULT_BLOCK,   /* a socket takes no bytes for a while */
    SIM_FAULT_STRANGE, /* a node does what it is asked and answers what no such request can have */
    SIM_FAULT_SLOW,    /* bytes between a client and a node take longer than the node timeout */
    SIM_FAULT_STEP,    /* a node's clock is set */
    SIM_FAULT_WALL,    /* a client's wall clock is set */
    SIM_FAULT_EVICT,   /* a node drops a key */
    SIM_FAULT_LIE,     /* the last node has a counter that no client made */
    SIM_FAULT_STALL,   /* pushes of a node to a client are held up */
    SIM_FAULT_DEAFEN,  /* a node drops a client's subscription */
    SIM_FAULT_PEER,    /* a client of another library takes a lock */
    SIM_FAULT_ACL,     /* nodes permit no queue for a while */
    /* A client's subscriptions end, and it can open no others for a while. */
    SIM_FAULT_UNOPENED,
    SIM_FAULT_DEAD,   /* hundreds who wait for a lock die, before others who wait for it */
    SIM_FAULT_SILENT, /* connections of a client pass nothing any more; new ones work */
    SIM_FAULTS
};

#endif
