/* Releases that the library owns (R8): it sends them, and asks again until they are confirmed or
 * the key's ttl has ended the debt. */
#ifndef REDLOCK_GROUP_OWED_H
#define REDLOCK_GROUP_OWED_H

#include "core/debt.h"
#include "group/group.h"

#define REDLOCK_OWED_MAX (1u << 16)

/* A release that the library owns (R8): after a lost attempt, after a lost lease, or for nodes that
 * did not confirm a caller's release. */
struct redlock_owed {
    struct redlock_requester requester;
    struct redlock_debt debt;
    struct redlock_target *target;
    uint8_t token_size;
    uint8_t handing; /* enum redlock_handing */
    uint16_t room[]; /* the target, then the token */
};

/* A release to make. The target and the token are copied. */
struct redlock_owed_release {
    const struct redlock_target *target;
    const char *token;
    size_t token_size;
    redlock_nodes nodes;
    redlock_nodes uncertain; /* never answered a request that sets the key: it may yet run there */
    int64_t ttl_ms;          /* then the key is gone from the other nodes */
    enum redlock_handing handing;
};

/* Sends a release, and owns it until it is confirmed or over (R8). Without memory, returns false:
 * the keys live until their ttl, and the release counts as dropped. */
bool redlock_owed_add(struct redlock_group *group, const struct redlock_owed_release *release);
/* Asks a node that came back for the releases that it owes, some in each turn. */
void redlock_owed_node_ready(struct redlock_group *group, unsigned node);
/* Asks for some more of them. Call it in each turn while owed_next is not NULL. */
void redlock_owed_go_on(struct redlock_group *group);

#endif
