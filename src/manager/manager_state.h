/* The state of a manager. */
#ifndef REDLOCK_MANAGER_MANAGER_STATE_H
#define REDLOCK_MANAGER_MANAGER_STATE_H

#include "election/campaign.h"
#include "manager/fleet.h"

struct redlock_manager {
    struct redlock_loop *loop;
    struct redlock_fleet fleet;
    struct redlock_elections elections;
    bool closing;
    redlock_closed_callback closed;
    void *closed_data;
};

#endif
