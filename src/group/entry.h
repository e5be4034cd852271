/* The group as the env sees it: answers, wake-ups and changes of nodes come in here. */
#ifndef REDLOCK_GROUP_ENTRY_H
#define REDLOCK_GROUP_ENTRY_H

#include "core/guard.h"
#include "group/group.h"
#include "group/requests.h"

#define REDLOCK_FENCE_SUFFIX ":fence"

/* Copies the env. Its ctx must outlive the group, and so must the names of its nodes, for results.
 * Of the options, which are checked, it takes what is not about connections, and copies it. NULL if
 * there is no memory. */
struct redlock_group *redlock_group_new(const struct redlock_env *env, const redlock_manager_options *options,
                                        const char *const *node_names);

/* Frees everything. Runs no callback and sends nothing. No answer may come after this. */
void redlock_group_delete(struct redlock_group *group);

/* Takes the answer of one node to a SET, an EXTEND or a RELEASE: a grant and nothing else. The
 * requester is that of the message, and so is the round. */
void redlock_group_granted(struct redlock_group *group, struct redlock_requester *requester, uint32_t round,
                           unsigned node, int64_t read_ns);
/* The same for any other answer, which it changes to what it means to the requester. */
void redlock_group_answer(struct redlock_group *group, struct redlock_requester *requester, uint32_t round,
                          unsigned node, struct redlock_answer *answer);

/* Makes the channel of pushes now, not when somebody first waits. Returns OK or the code of
 * env.random(). */
int redlock_group_listen(struct redlock_group *group);

/* A push on the channel of env.listen(), which that node has sent us. Anybody may have said it. */
void redlock_group_pushed(struct redlock_group *group, unsigned node, const struct redlock_push *push);

/* The node's subscription is confirmed, was lost, or is refused for good: then the node cannot keep
 * a queue, and `why` says so. */
void redlock_group_listens(struct redlock_group *group, unsigned node, enum redlock_listening listening,
                           struct redlock_text *why);

/* The same for the channels of env.hear(). The node has confirmed the channel, or refuses it. */
void redlock_group_hinted(struct redlock_group *group, unsigned node, const struct redlock_hint *hint);
void redlock_group_hears(struct redlock_group *group, unsigned node, const struct redlock_channel *channel);

/* Call it at the time of wake_at(). A call that is too early does no harm. */
void redlock_group_wake(struct redlock_group *group);

/* What a node said on a new connection. With a guard, call it before redlock_group_ready_changed();
 * without a guard it is not needed. */
void redlock_group_node_greeted(struct redlock_group *group, unsigned node, const struct redlock_greeting *greeting);

/* What the node granted to waiters and said to observers does not count any more: it is another
 * server now, or its server has become another node. Call it before
 * redlock_group_ready_changed(). */
void redlock_group_moved(struct redlock_group *group, unsigned node);

/* For how long a guard keeps the node from voting (0: it may vote), and why ("" if it may vote).
 * `why` is borrowed until the next call of any function here. */
int64_t redlock_group_node_quarantine_ms(const struct redlock_group *group, unsigned node, const char **why);

/* A node became ready (again), or is not ready any more, or its first try has failed. A node that
 * becomes ready is asked at once for the releases that it owes. */
void redlock_group_ready_changed(struct redlock_group *group, unsigned node, bool ready);

/* Closes the group and calls `drained` once when that is done. `drained` tears down the env,
 * deletes the group, and then calls the user's callback. */
void redlock_group_drain(struct redlock_group *group, redlock_group_drained drained, void *ctx);

/* See redlock_manager_statistics(). */
int redlock_group_statistics(struct redlock_group *group, redlock_statistics *statistics);

#endif
