/* What a node tells a client without being asked: subscriptions, and pushes on them. */
#include "core/planted.h"
#include "parts.h"
#include "planted_word.h"
#include "wire/push.h"

/* After so many failures in a row, those who wait do not rely on the node any more. */
#define UNCONFIRMED_MAX 3

/* A push under way. */
struct sim_pushed {
    const char *channel;
    bool is_true;   /* the node has said it, */
    uint32_t steps; /* when its clock had made so many */
    size_t size;
    char payload[];
};

static struct sim_event event_of(enum sim_event_kind kind, unsigned client, unsigned node) {
    return (struct sim_event){.kind = (uint8_t)kind, .client = (uint8_t)client, .node = (uint8_t)node};
}

static struct sim_subscription *of(struct sim_world *world, const struct sim_event *event) {
    return &world->clients[event->client].links[event->node].subscription;
}

/* Whether the event is for the client's present connection. */
static bool is_present(struct sim_world *world, const struct sim_event *event) {
    const struct sim_subscription *subscription = of(world, event);
    return world->clients[event->client].group != NULL && subscription->open && subscription->gen == event->gen;
}

static void tell(struct sim_client *client, unsigned node, enum redlock_listening listening) {
    struct sim_subscription *subscription = &client->links[node].subscription;
    static const char *const words[] = {"is deaf to", "listens to", "is refused a subscription by"};
    if (subscription->told == listening || client->group == NULL) {
        return;
    }
    subscription->told = listening;
    SIM_TRACE(client->world, "client %u %s node %u", client->index, words[listening], node);
    redlock_group_listens(client->group, node, listening, listening == REDLOCK_LISTENING ? NULL : client->text);
    sim_channels_ask(client, node);
}

bool sim_refuses_queue(const struct sim_world *world, const struct sim_node *node) {
    return node->refuses_queue || node->forbids_ns > world->now_ns;
}

void sim_listen(void *ctx, const char *channel) {
    struct sim_client *client = ctx;
    memcpy(client->channel, channel, strnlen(channel, SIM_CHANNEL_SIZE - 1));
    for (unsigned i = 0; i < client->world->profile.nodes; i++) {
        const enum sim_link_state state = client->links[i].state;
        if (state == SIM_LINK_READY || state == SIM_LINK_STALLED) {
            sim_subscription_begin(client, i);
        }
    }
}

void sim_subscription_begin(struct sim_client *client, unsigned node) {
    struct sim_world *world = client->world;
    struct sim_subscription *subscription = &client->links[node].subscription;
    if (client->channel[0] == '\0' || subscription->open) {
        return;
    }
    subscription->open = true;
    subscription->gen++;
    struct sim_event event = event_of(SIM_SUBSCRIBE, client->index, node);
    event.gen = subscription->gen;
    /* Some round trips, in each of which somebody may run late. */
    const int64_t most_late_ns = 6 * world->profile.late_max_ms * SIM_MS;
    const int64_t late_ns = most_late_ns > 0 ? sim_random_between(&world->random, 0, most_late_ns) : 0;
    sim_push(world, client->step_ns + late_ns + 2 * sim_delay_ns(world) + 2 * sim_delay_ns(world), event);
}

void sim_subscription_end(struct sim_client *client, unsigned node) {
    struct sim_world *world = client->world;
    struct sim_subscription *subscription = &client->links[node].subscription;
    if (!subscription->open) {
        return;
    }
    subscription->open = false;
    subscription->down_ns = 0;
    sim_channels_forget(client, node);
    /* The node believes in the connection until it is told, or tries to write for long enough. */
    const int64_t long_ns = sim_random_percent(&world->random, 20) ? 20 * world->profile.node_timeout_ms * SIM_MS : 0;
    struct sim_event event = event_of(SIM_UNHEARD, client->index, node);
    event.gen = subscription->gen;
    sim_push(world, client->step_ns + sim_delay_ns(world) + sim_random_between(&world->random, 0, long_ns), event);
    if (subscription->told == REDLOCK_LISTENING) {
        tell(client, node, REDLOCK_LISTENING_NOT);
    }
}

void sim_subscription_kill(struct sim_world *world, unsigned client, unsigned node) {
    const struct sim_subscription *subscription = &world->clients[client].links[node].subscription;
    if (!subscription->open) {
        return;
    }
    /* Sometimes nobody tells the client, for longer than its lease may live. */
    const bool silent = !world->profile.deafens && sim_random_percent(&world->random, 30);
    const int64_t late_ns = silent ? sim_random_between(&world->random, 0, 2 * world->profile.ttl_max_ms * SIM_MS) : 0;
    SIM_TRACE(world, "node %u drops the subscription of client %u%s", node, client, silent ? ", silently" : "");
    world->nodes[node].heard_gen[client] = 0;
    world->clients[client].links[node].deaf_ns = world->now_ns + late_ns;
    struct sim_event event = event_of(SIM_DEAF, client, node);
    event.gen = subscription->gen;
    sim_push(world, world->now_ns + sim_delay_ns(world) + late_ns, event);
}

void sim_subscriptions_die(struct sim_world *world, unsigned node, bool silent) {
    for (unsigned i = 0; i < world->profile.clients; i++) {
        const struct sim_subscription *subscription = &world->clients[i].links[node].subscription;
        world->nodes[node].heard_gen[i] = 0;
        if (subscription->open && (!silent || sim_random_percent(&world->random, 40))) {
            struct sim_event event = event_of(SIM_DEAF, i, node);
            event.gen = subscription->gen;
            sim_push(world, world->now_ns + sim_delay_ns(world), event);
        }
    }
}

void sim_subscriptions_leave(struct sim_client *client) {
    for (unsigned i = 0; i < client->world->profile.nodes; i++) {
        sim_subscription_end(client, i);
    }
}

void sim_subscription_stall(struct sim_world *world, unsigned client, unsigned node, int64_t for_ns) {
    struct sim_subscription *subscription = &world->clients[client].links[node].subscription;
    if (subscription->down_ns < world->now_ns + for_ns) {
        subscription->down_ns = world->now_ns + for_ns;
        SIM_TRACE(world, "client %u: pushes of node %u are held up for %.3f ms", client, node, (double)for_ns / 1e6);
    }
}

/* Mostly for longer than a lease lives: a shorter stall shows little (docs/waiting.md). */
static int64_t draw_stall_ns(struct sim_world *world) {
    const int64_t ttl_ms = world->profile.ttl_max_ms < 2000 ? world->profile.ttl_max_ms : 2000;
    return sim_random_between(&world->random, ttl_ms * SIM_MS / 2, 5 * ttl_ms * SIM_MS / 2);
}

static struct sim_client *client_of(struct sim_world *world, const char *channel, size_t size) {
    for (unsigned i = 0; i < world->profile.clients; i++) {
        const char *own = world->clients[i].channel;
        if (strlen(own) == size && memcmp(own, channel, size) == 0) {
            return &world->clients[i];
        }
    }
    return NULL;
}

static struct redlock_reply message_of(const char *channel, const char *payload, size_t size) {
    struct redlock_reply reply = {.value = {.type = REDLOCK_REPLY_ARRAY}, .element_count = 3};
    const char *const words[] = {"message", channel, payload};
    const size_t sizes[] = {7, strlen(channel), size};
    for (unsigned i = 0; i < 3; i++) {
        reply.elements[i] =
            (struct redlock_reply_value){.type = REDLOCK_REPLY_STRING, .bytes = words[i], .size = sizes[i]};
    }
    return reply;
}

/* It arrives behind whatever the node has said before. */
static void deliver(struct sim_node *node, struct sim_client *client, const struct sim_pushed *pushed, int64_t at_ns) {
    struct sim_world *world = node->world;
    const unsigned index = (unsigned)(node - world->nodes);
    struct sim_subscription *subscription = &client->links[index].subscription;
    subscription->down_ns = at_ns > subscription->down_ns ? at_ns : subscription->down_ns;
    struct sim_event event = event_of(SIM_PUSH, client->index, index);
    event.gen = node->heard_gen[client->index];
    event.data = pushed;
    sim_push(world, subscription->down_ns, event);
}

static struct sim_pushed *pushed_of(struct sim_node *node, const char *channel, const char *payload, size_t size) {
    struct sim_pushed *pushed = sim_arena(node->world, sizeof *pushed + size);
    memcpy(pushed->payload, payload, size);
    pushed->channel = channel;
    pushed->size = size;
    pushed->steps = node->stepped.steps;
    pushed->is_true = true;
    return pushed;
}

/* The push reaches the client, if its connection is still there then. */
void sim_push_to(struct sim_node *node, struct sim_client *client, const char *channel, const char *payload,
                 size_t size) {
    const struct sim_pushed *pushed = pushed_of(node, channel, payload, size);
    deliver(node, client, pushed, node->world->now_ns + sim_delay_ns(node->world));
}

void sim_push_forged(struct sim_node *node, struct sim_client *client, const char *channel, const char *payload,
                     size_t size, const uint32_t *steps) {
    struct sim_pushed *pushed = pushed_of(node, channel, payload, size);
    pushed->is_true = steps != NULL;
    pushed->steps = steps != NULL ? *steps : 0;
    if (node->heard_gen[client->index] != 0) {
        deliver(node, client, pushed, node->world->now_ns + node->world->profile.delay_min_ns);
    }
}

/* The node hands the lock to a waiter of this client. */
static void hand(struct sim_node *node, struct sim_client *client, const char *payload, size_t size) {
    struct sim_world *world = node->world;
    const unsigned index = (unsigned)(node - world->nodes);
    const struct redlock_reply reply = message_of(client->channel, payload, size);
    struct redlock_push read;
    char token[SIM_TOKEN_SIZE];
    if (!redlock_wire_push(&reply, client->channel, &read)) {
        sim_violation(world, "push", "node %u pushes '%.*s'", index, (int)size, payload);
        return;
    }
    sim_token_set(token, read.token, read.token_size);
    if (read.round != 0 || read.seal == 0) { /* else who stands at a gate is told of a slot */
        sim_line_served(world, index, token);
    }
    SIM_TRACE(world, "node %u → client %u: '%.*s' is handed to %.8s, round %u", index, client->index,
              (int)read.key_size, read.key, sim_name(token), read.round);
    if (world->phase == SIM_ACTIVE && sim_random_permille(&world->random, world->profile.stall_permille)) {
        const int64_t for_ns = draw_stall_ns(world) / (world->profile.overtakes ? 4 : 1);
        sim_subscription_stall(world, client->index, index, for_ns);
        if (!world->profile.prompt && sim_random_percent(&world->random, world->profile.overtakes ? 60 : 10)) {
            sim_overtake(world, client->index, index, for_ns);
        }
    }
    sim_push_to(node, client, client->channel, payload, size);
}

static bool is_of_the_dead(const char *channel, size_t size) {
    return size == sizeof SIM_DEAD_CHANNEL - 1 && memcmp(channel, SIM_DEAD_CHANNEL, size) == 0;
}

bool sim_hears(void *ctx, const char *channel, size_t channel_size) {
    const struct sim_node *node = ctx;
    if (is_of_the_dead(channel, channel_size)) {
        return node->world->now_ns < node->world->dead_ns;
    }
    const struct sim_client *client = client_of(node->world, channel, channel_size);
    return client != NULL && node->heard_gen[client->index] != 0;
}

bool sim_publish(void *ctx, const char *channel, size_t channel_size, const char *payload, size_t size) {
    struct sim_node *node = ctx;
    if (is_of_the_dead(channel, channel_size)) {
        const bool heard = sim_hears(ctx, channel, channel_size);
        if (!heard && node->monitored) {
            sim_violation(node->world, "idle", "node %u hands a lock to somebody who is dead",
                          (unsigned)(node - node->world->nodes));
        }
        return heard || node->monitored;
    }
    struct sim_client *client = client_of(node->world, channel, channel_size);
    if (client != NULL && node->heard_gen[client->index] == 0) {
        return node->monitored;
    }
    sim_forger_hears(node, channel, channel_size, payload, size);
    if (client == NULL) {
        return sim_announce(node, channel, channel_size, payload, size);
    }
    hand(node, client, payload, size);
    return true;
}

/* The node reads SUBSCRIBE. */
void sim_subscribe_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_node *node = &world->nodes[event->node];
    struct sim_subscription *subscription = of(world, event);
    if (!is_present(world, event)) {
        return;
    }
    struct sim_event reply = *event;
    const bool opens = world->clients[event->client].unopened_ns <= world->now_ns;
    const bool fails = !opens || node->down || node->fake.mode == FAKE_LOADING;
    const bool refuses = sim_refuses_queue(world, node);
    reply.kind = fails ? SIM_DEAF : SIM_LISTEN;
    reply.entry = refuses ? 0 : node->run;
    if (!fails && !refuses) {
        node->heard_gen[event->client] = event->gen;
        node->heard_channels[event->client] = 0;
    }
    const int64_t at_ns = world->now_ns + sim_delay_ns(world);
    subscription->down_ns = at_ns > subscription->down_ns ? at_ns : subscription->down_ns;
    sim_push(world, subscription->down_ns, reply);
}

/* The node permits no subscription. It is asked again: an ACL may change. */
static void refused(struct sim_client *client, unsigned node) {
    struct sim_world *world = client->world;
    struct sim_subscription *subscription = &client->links[node].subscription;
    int64_t most_ms = INT64_C(1000) << (subscription->refusals < 4 ? subscription->refusals++ : 4);
    most_ms = most_ms > 10000 ? 10000 : most_ms;
    subscription->open = false;
    struct sim_event again = event_of(SIM_RESUBSCRIBE, client->index, node);
    again.gen = subscription->gen;
    sim_push(world, world->now_ns + sim_random_between(&world->random, most_ms / 2, most_ms) * SIM_MS, again);
    tell(client, node, REDLOCK_LISTENING_REFUSED);
}

/* The client reads the answer to SUBSCRIBE. entry: the run of the server; 0: refused */
void sim_listening_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    const struct sim_link *link = &client->links[event->node];
    if (!is_present(world, event)) {
        return;
    }
    if (link->down_cut_ns > world->now_ns) {
        sim_put_off(world, *event, link->down_cut_ns);
        return;
    }
    if (event->entry != 0 && event->entry != link->run && !REDLOCK_PLANTED(QUEUE_ANY_SERVER)) {
        sim_deaf_event(world, event); /* another server than that of the first connection */
        return;
    }
    sim_client_enter(client);
    of(world, event)->failures = 0;
    if (event->entry == 0) {
        refused(client, event->node);
    } else {
        of(world, event)->refusals = 0;
        tell(client, event->node, REDLOCK_LISTENING);
    }
    sim_client_leave(client);
}

/* Whether its users hold the lock under this token. */
static bool holds(const struct sim_client *client, const char *token) {
    for (unsigned i = 0; i < client->world->profile.slots; i++) {
        const struct sim_lease *lease = client->slots[i].lease;
        if (lease != NULL && lease->held &&
            (sim_token_is(lease->token, token) || (lease->other != NULL && sim_token_is(lease->other->token, token)))) {
            return true;
        }
    }
    return false;
}

static void take_push(struct sim_client *client, unsigned node, const struct sim_pushed *pushed,
                      const struct redlock_push *push) {
    struct sim_world *world = client->world;
    char token[SIM_TOKEN_SIZE];
    sim_token_set(token, push->token, push->token_size);
    SIM_TRACE(world, "client %u reads that node %u has handed the lock to %.8s, round %u%s", client->index, node,
              sim_name(token), push->round, pushed->is_true ? "" : ", which is not true");
    const bool was_held = holds(client, token) && pushed->is_true;
    sim_client_enter(client);
    if (world->profile.clock_guard && pushed->is_true) {
        sim_backing_granted(client, node, token, pushed->steps);
    }
    redlock_group_pushed(client->group, node, push);
    sim_client_leave(client);
    if (world->profile.overtakes && was_held) {
        sim_step_another(world, node);
    }
}

/* "PTTL token", or "". For the bug that believes it. */
static void set_planted_word(const struct sim_pushed *pushed) {
    const char *space = memchr(pushed->payload, ' ', pushed->size);
    redlock_planted_word = (struct redlock_leader_word){.ttl_ms = -1};
    if (space != NULL) {
        redlock_planted_word.token = space + 1;
        redlock_planted_word.token_size = pushed->size - (size_t)(space + 1 - pushed->payload);
        redlock_planted_word.ttl_ms = 600000;
    }
}

void sim_push_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    const struct sim_link *link = &client->links[event->node];
    const struct sim_pushed *pushed = event->data;
    struct redlock_push push;
    struct redlock_hint hint;
    if (!is_present(world, event) || link->subscription.told != REDLOCK_LISTENING) {
        return;
    }
    if (link->down_cut_ns > world->now_ns) {
        sim_put_off(world, *event, link->down_cut_ns);
        return;
    }
    const struct redlock_reply reply = message_of(pushed->channel, pushed->payload, pushed->size);
    if (redlock_wire_push(&reply, client->channel, &push)) {
        take_push(client, event->node, pushed, &push);
    } else if (redlock_wire_hint(&reply, &hint)) {
        sim_client_enter(client);
        set_planted_word(pushed);
        redlock_group_hinted(client->group, event->node, &hint);
        sim_client_leave(client);
    }
}

/* The client learns that its connection is gone. */
void sim_deaf_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    struct sim_subscription *subscription = of(world, event);
    if (!is_present(world, event)) {
        return;
    }
    int64_t backoff_ms = INT64_C(10) << (subscription->failures < 8 ? subscription->failures : 8);
    if (subscription->failures < 8) {
        subscription->failures++;
    }
    if (backoff_ms > 2000) {
        backoff_ms = 2000;
    }
    sim_client_enter(client);
    sim_subscription_end(client, event->node);
    if (subscription->failures >= UNCONFIRMED_MAX && client->links[event->node].state == SIM_LINK_READY &&
        !REDLOCK_PLANTED(QUEUE_DEAF)) {
        tell(client, event->node, REDLOCK_LISTENING_REFUSED);
    }
    sim_client_leave(client);
    struct sim_event again = event_of(SIM_RESUBSCRIBE, event->client, event->node);
    again.gen = event->gen;
    sim_push(world, world->now_ns + sim_random_between(&world->random, backoff_ms / 2, backoff_ms) * SIM_MS, again);
}

void sim_unheard_event(struct sim_world *world, const struct sim_event *event) {
    uint32_t *heard_gen = &world->nodes[event->node].heard_gen[event->client];
    if (*heard_gen == event->gen) {
        *heard_gen = 0;
    }
}

void sim_resubscribe_event(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    const struct sim_link *link = &client->links[event->node];
    const bool up = link->state == SIM_LINK_READY || link->state == SIM_LINK_STALLED;
    if (client->group == NULL || link->subscription.gen != event->gen || !up) {
        return;
    }
    sim_client_enter(client);
    sim_subscription_begin(client, event->node);
    sim_client_leave(client);
}
