/* Releases that are the library's own duty (R8): sent at once, asked again until every node has
 * confirmed or the ttl has ended the key. */
#ifndef REDLOCK_GROUP_OWED_H
#define REDLOCK_GROUP_OWED_H

#include "core/debt.h"
#include "group/owner.h"

#define REDLOCK_OWED_MAX (1u << 16)

/* A release that is the library's duty (R8): after a lost attempt, a lost lease, or for nodes that did not confirm a
 * caller's release. */
struct redlock_owed {
    struct redlock_owner owner;
    struct redlock_debt debt;
    uint16_t key_size;
    uint8_t token_size;
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    char key[];
};

/* Sends releases now and owns them until they are confirmed or over. Of `nodes`, those that are `uncertain` never answered a
 * request that sets the key: it may still land (R8). Without memory the keys live until their ttl (counted as dropped). */
void redlock_owed_add(struct redlock_group *group, const char *key, size_t key_size, const char *token,
                      size_t token_size, redlock_nodes nodes, redlock_nodes uncertain, int64_t ttl_ms);
void redlock_owed_answer(struct redlock_group *group, struct redlock_owed *owed, unsigned node,
                         const struct redlock_answer *answer);
void redlock_owed_due(struct redlock_group *group, struct redlock_owed *owed, int64_t now_ns);
/* Asks what the node owes, a part of it in each turn. */
void redlock_owed_node_ready(struct redlock_group *group, unsigned node);
/* The next part; while owed_next is not NULL. */
void redlock_owed_go_on(struct redlock_group *group);
void redlock_owed_free(struct redlock_group *group, struct redlock_owed *owed);

#endif
