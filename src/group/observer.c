/* Observers: asks nodes who leads, now and when a change is announced, and tells the caller. */
#include "group/observer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/leader.h"
#include "core/time.h"
#include "group/requests.h"

struct redlock_observer {
    struct redlock_oneshot oneshot; /* its requester is the first member */
    struct redlock_group *group;
    struct redlock_channel *channel;
    redlock_leader_callback cb;
    void *data;
    bool ended; /* freed when no answer is to come and no callback waits or runs */
    bool in_callback;
    struct redlock_target *target;
    struct redlock_leadership leadership;
    struct redlock_leader_node nodes[]; /* node_count of them; then the target */
};

/* The channel of this key; a new one if nobody here observes it yet. NULL if there is no memory. */
static struct redlock_channel *join_channel(struct redlock_group *group, const struct redlock_target *target) {
    static const size_t prefix_size = sizeof REDLOCK_LEADER_CHANNEL - 1;
    const char *key = redlock_target_key(target);
    const size_t key_size = redlock_target_key_size(target) + 1;
    struct redlock_channel *channel = group->channels.first;
    while (channel && strcmp(channel->name + prefix_size, key) != 0) {
        channel = channel->next;
    }
    if (!channel) {
        channel = malloc(sizeof *channel + prefix_size + key_size);
        if (!channel) {
            return NULL;
        }
        *channel = (struct redlock_channel){.next = group->channels.first};
        memcpy(channel->name, REDLOCK_LEADER_CHANNEL, prefix_size);
        memcpy(channel->name + prefix_size, key, key_size);
        group->channels.first = channel;
    }
    channel->users++;
    return channel;
}

static void leave_channel(struct redlock_group *group, struct redlock_channel *channel) {
    assert(channel->users > 0);
    struct redlock_channel **link = &group->channels.first;
    if (--channel->users > 0) {
        return;
    }
    while (*link != channel) {
        link = &(*link)->next;
    }
    *link = channel->next;
    if (!group->deleting) {
        group->env.stop_hearing(group->env.ctx, channel);
    }
    free(channel);
}

static struct redlock_observer *observer_new(struct redlock_group *group, const char *resource, size_t key_size) {
    const size_t size = sizeof(struct redlock_observer) + group->node_count * sizeof(struct redlock_leader_node);
    struct redlock_observer *observer =
        redlock_requester_new(group, REDLOCK_REQUESTER_OBSERVER, size + redlock_target_size(key_size), size);
    if (!observer) {
        return NULL;
    }
    observer->group = group;
    observer->target = redlock_group_target(group, resource, key_size, observer->nodes + group->node_count);
    observer->channel = join_channel(group, observer->target);
    if (!observer->channel) {
        redlock_requester_delist(group, &observer->oneshot.requester);
        free(observer);
        return NULL;
    }
    return observer;
}

static void observer_free(struct redlock_group *group, struct redlock_requester *requester) {
    struct redlock_observer *observer = (struct redlock_observer *)requester;
    assert(group->deleting || (observer->ended && requester->in_flight == 0));
    if (!observer->ended) {
        leave_channel(group, observer->channel);
    }
    redlock_requester_delist(group, requester);
    free(observer);
}

static void free_if_over(struct redlock_observer *observer) {
    if (observer->ended && observer->oneshot.requester.in_flight == 0 && !redlock_list_is_in(&observer->oneshot.done) &&
        !observer->in_callback) {
        observer_free(observer->group, &observer->oneshot.requester);
    }
}

/* Its callback does not run any more. */
static void end(struct redlock_observer *observer) {
    assert(!observer->ended);
    struct redlock_group *group = observer->group;
    observer->ended = true;
    leave_channel(group, observer->channel);
    observer->channel = NULL;
    redlock_schedule_set(&group->schedule, &observer->oneshot.requester.due, REDLOCK_NEVER_NS);
    free_if_over(observer);
}

static redlock_nodes send(struct redlock_observer *observer, redlock_nodes nodes, bool by_source) {
    struct redlock_group *group = observer->group;
    struct redlock_message message = {.operation = REDLOCK_OP_INSPECT,
                                      .by_source = by_source,
                                      .target = observer->target,
                                      .now_ns = redlock_group_now_ns(group)};
    return redlock_requester_send(group, &observer->oneshot.requester, nodes, &message);
}

/* Asks the nodes that are due, and sets the next time. */
static void ask(struct redlock_observer *observer, int64_t now_ns) {
    const redlock_nodes nodes = redlock_leadership_ask(&observer->leadership, now_ns);
    const redlock_nodes refused = nodes & ~send(observer, nodes, false);
    for (unsigned i = 0; refused >> i != 0; i++) {
        if (refused & REDLOCK_NODE(i)) {
            redlock_leadership_answer(&observer->leadership, i, NULL, now_ns);
        }
    }
}

/* After each event: asks, schedules, and queues the callback. */
static void go_on(struct redlock_observer *observer) {
    struct redlock_group *group = observer->group;
    ask(observer, redlock_group_now_ns(group));
    redlock_schedule_set(&group->schedule, &observer->oneshot.requester.due,
                         redlock_leadership_next_ns(&observer->leadership));
    if (!redlock_list_is_in(&observer->oneshot.done) && redlock_leadership_has_event(&observer->leadership)) {
        redlock_requester_queue_oneshot(group, &observer->oneshot);
    }
}

int redlock_group_observe(struct redlock_group *group, const char *resource, redlock_leader_callback cb, void *data,
                          redlock_observer **created) {
    size_t key_size = 0;
    int code = redlock_check_given(&group->failure, "cb", cb != NULL);
    if (code == REDLOCK_OK) {
        code = redlock_check_given(&group->failure, "observer", created != NULL);
    }
    if (code == REDLOCK_OK) {
        code = redlock_group_check_resource(group, "resource", resource, &key_size);
    }
    code = redlock_group_admit(group, code);
    if (code == REDLOCK_OK) {
        code = group->requesters[REDLOCK_REQUESTER_OBSERVER].count >= REDLOCK_OBSERVERS_MAX
                   ? REDLOCK_ERR_LIMIT
                   : redlock_line_open(&group->line, &group->env);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    struct redlock_observer *observer = observer_new(group, resource, key_size);
    if (!observer) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    uint32_t seed = 0; /* the delays only have to differ between clients */
    (void)group->env.random(group->env.ctx, &seed, sizeof seed);
    observer->cb = cb;
    observer->data = data;
    observer->leadership.node_count = group->node_count;
    observer->leadership.quorum = group->quorum;
    observer->leadership.nodes = observer->nodes;
    const int64_t now_ns = redlock_group_now_ns(group);
    redlock_leadership_init(&observer->leadership, seed, now_ns);
    group->env.hear(group->env.ctx, &group->channels);
    for (unsigned i = 0; observer->channel->heard >> i != 0; i++) {
        if (observer->channel->heard & REDLOCK_NODE(i)) {
            redlock_leadership_hear(&observer->leadership, i, true, now_ns);
        }
    }
    go_on(observer);
    redlock_group_rearm(group);
    *created = observer;
    return REDLOCK_OK;
}

void redlock_observer_end(redlock_observer *observer) {
    if (observer && !observer->ended && redlock_group_check_open(observer->group) != REDLOCK_ERR_FORKED) {
        struct redlock_group *group = observer->group;
        end(observer);
        redlock_group_rearm(group);
    }
}

void redlock_observer_lead(struct redlock_observer *observer, const char *token, bool leads_still) {
    redlock_leadership_lead(&observer->leadership, token, strlen(token));
    if (!leads_still && redlock_leadership_has_event(&observer->leadership)) {
        (void)redlock_leadership_tell(&observer->leadership);
    }
    go_on(observer);
}

/* The observer's callback gets a string, and "" means nobody. So a key whose value would be ""
 * names no leader, but it is not free, either. */
static bool has_name(const char *token, size_t size) {
    return size > 0 && token[0] != '\0';
}

static void observer_answer(struct redlock_group *group, struct redlock_requester *requester, unsigned node,
                            const struct redlock_answer *answer) {
    struct redlock_observer *observer = (struct redlock_observer *)requester;
    if (observer->ended) {
        free_if_over(observer);
        return;
    }
    if (answer->again && redlock_requester_may_ask_by_source(requester, node) &&
        send(observer, REDLOCK_NODE(node), true)) {
        return;
    }
    const bool held = answer->vote == REDLOCK_VOTE_GRANTED;
    const bool is_clear = held ? has_name(answer->holder, answer->holder_size) : answer->vote == REDLOCK_VOTE_DENIED;
    const struct redlock_leader_word word = {.token = held ? answer->holder : NULL,
                                             .token_size = held ? answer->holder_size : 0,
                                             .ttl_ms = held ? answer->holder_ttl_ms : -1};
    redlock_leadership_answer(&observer->leadership, node, is_clear ? &word : NULL, redlock_group_now_ns(group));
    go_on(observer);
}

static void observer_due(struct redlock_group *group, struct redlock_requester *requester, int64_t now_ns) {
    (void)group, (void)now_ns;
    go_on((struct redlock_observer *)requester);
}

/* Each that has not ended. */
#define OBSERVERS(observer, group)                                                                                     \
    REDLOCK_REQUESTERS(requester, group, REDLOCK_REQUESTER_OBSERVER)                                                   \
    for (struct redlock_observer *observer = (struct redlock_observer *)requester; observer && !observer->ended;       \
         observer = NULL)

void redlock_observers_hinted(struct redlock_group *group, unsigned node, const struct redlock_hint *hint) {
    OBSERVERS(observer, group) {
        if (redlock_target_is(observer->target, hint->key, hint->key_size)) {
            redlock_leadership_hint(&observer->leadership, node);
            go_on(observer);
        }
    }
}

void redlock_observers_hear(struct redlock_group *group, unsigned node, const struct redlock_channel *channel) {
    const bool heard = channel && (channel->heard & REDLOCK_NODE(node));
    OBSERVERS(observer, group) {
        if (!channel || observer->channel == channel) {
            redlock_leadership_hear(&observer->leadership, node, heard, redlock_group_now_ns(group));
            go_on(observer);
        }
    }
}

void redlock_observers_moved(struct redlock_group *group, unsigned node) {
    OBSERVERS(observer, group) {
        redlock_leadership_forget(&observer->leadership, node, redlock_group_now_ns(group));
        go_on(observer);
    }
}

static void observer_callback(struct redlock_group *group, struct redlock_requester *requester) {
    (void)group;
    struct redlock_observer *observer = (struct redlock_observer *)requester;
    assert(!observer->in_callback);
    if (!observer->ended && redlock_leadership_has_event(&observer->leadership)) {
        const char *token = redlock_leadership_tell(&observer->leadership)->bytes;
        const struct redlock_leader leader = {
            .size = sizeof leader, .token = token, .holder = redlock_token_holder(token)};
        observer->in_callback = true;
        observer->cb(&leader, observer->data);
        observer->in_callback = false;
    }
    free_if_over(observer);
}

static void observer_close(struct redlock_group *group, struct redlock_requester *requester) {
    assert(group->closing);
    if (!((struct redlock_observer *)requester)->ended) {
        end((struct redlock_observer *)requester);
    }
}

const struct redlock_requester_ops redlock_observer_ops = {.answer = observer_answer,
                                                           .due = observer_due,
                                                           .callback = observer_callback,
                                                           .close = observer_close,
                                                           .free = observer_free};
