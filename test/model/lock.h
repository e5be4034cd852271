/* The model of the lock on nodes that forget: docs/protocols.md, "Restart guard" and "Healing". */
#ifndef MODEL_LOCK_H
#define MODEL_LOCK_H

#include "search.h"
#include "setup.h"

/* The bugs that the model can have. */
enum lock_bug {
    LOCK_RIGHT,
    LOCK_UNGUARDED, /* a restarted node votes at once */
    LOCK_SHORT,     /* its quarantine is one tick shorter than ttl_max */
    /* Its quarantine ends by its uptime, and its clock may be stepped once. */
    LOCK_UPTIME,
    LOCK_HEAL_COUNTS,      /* an extension sets a missing key again, and counts that as a vote */
    LOCK_HEAL_QUARANTINED, /* a node in quarantine is healed */
    /* A SET waits for a connection, reaches a node in quarantine, and helps later extensions. */
    LOCK_SET_QUEUED,
    /* Nodes are healed at any time of a lease, whether or not a quorum has matched. */
    LOCK_HEAL_UNPROVEN,
    LOCK_HEAL_LATE, /* nodes are healed until the new deadline, not the old one */
    /* A run votes at once if its data have a marker set ttl_max ago; a restart loses all data. */
    LOCK_MARKER,
    /* The same, and a restart may find an old copy of the data: with the marker, without the
     * present keys. */
    LOCK_MARKER_OLD_COPY
};

struct lock_config {
    unsigned nodes;
    unsigned ttl, ttl_max; /* ticks */
    unsigned restarts;     /* in all */
    /* Ticks from the start of a round in which it is decided and nodes are healed; 0: no bound. */
    unsigned patience;
    struct setups setups; /* of clients A and B */
    enum lock_bug bug;
};

/* The limits of the model. */
enum { LOCK_NODES_MAX = 6, LOCK_TICKS_MAX = 6, LOCK_RESTARTS_MAX = 7 };

extern const struct model lock_model;

#endif
