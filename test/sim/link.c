/* Requests and replies between one client and one node: order, delay, node timeout, stall. */
#include <assert.h>
#include <stdio.h>

#include "core/planted.h"
#include "parts.h"
#include "wire/wire.h"

#define STALL_TIMEOUTS 3

static struct sim_entry *entry_at(struct sim_link *link, uint32_t entry) {
    return &link->entries[entry % SIM_INFLIGHT_MAX];
}

static struct sim_entry *append(struct sim_link *link) {
    struct sim_entry *entry = entry_at(link, link->tail++);
    *entry = (struct sim_entry){0};
    link->flush_asked = true;
    return entry;
}

bool sim_link_send(struct sim_client *client, unsigned node, const struct sim_bytes *bytes, unsigned reply_kind,
                   void *owner, uint32_t round) {
    struct sim_world *world = client->world;
    struct sim_link *link = &client->links[node];
    if (link->state == SIM_LINK_DOWN || link->state == SIM_LINK_STALLED ||
        link->tail - link->head >= SIM_INFLIGHT_MAX - 1) {
        return false;
    }
    /* Before its greeting a node gets no WAIT, and a guarded one nothing that sets a key. */
    const bool sets = bytes->operation == REDLOCK_OP_ACQUIRE || bytes->operation == REDLOCK_OP_HEAL;
    const bool waits = bytes->operation == REDLOCK_OP_WAIT && !REDLOCK_PLANTED(WAIT_UNGREETED) &&
                       !(REDLOCK_PLANTED(QUEUE_EARLY_TICKET) && !sim_is_guarded(world));
    if (link->state == SIM_LINK_FRESH && (waits || (sets && sim_is_guarded(world)))) {
        return false;
    }
    uint32_t number = link->tail;
    struct sim_entry *entry = append(link);
    entry->owner = owner;
    entry->round = round;
    entry->reply_kind = (uint16_t)reply_kind;
    entry->bytes = bytes;
    entry->sent_ns = sim_clock_local(&client->clock, client->step_ns);
    int64_t local = entry->sent_ns + world->profile.node_timeout_ms * SIM_MS;
    int64_t late = sim_random_percent(&world->random, 20) ? sim_random_between(&world->random, 0, SIM_MS) : 0;
    sim_push(world, sim_clock_true(&client->clock, local) + late,
             (struct sim_event){.kind = SIM_TIMEOUT,
                                .client = (uint8_t)client->index,
                                .node = (uint8_t)node,
                                .gen = link->gen,
                                .entry = number});
    return true;
}

void sim_link_flush(struct sim_client *client, unsigned node, int64_t at) {
    struct sim_link *link = &client->links[node];
    struct sim_world *world = client->world;
    link->flush_asked = false;
    if ((link->state != SIM_LINK_READY && link->state != SIM_LINK_STALLED) || link->blocked_ns > at) {
        return;
    }
    if (link->unwritten == link->tail) {
        return;
    }
    /* One write: all of it arrives together. */
    int64_t arrival = at + sim_delay_ns(world);
    if (arrival < link->up_ns) {
        arrival = link->up_ns;
    }
    link->up_ns = arrival;
    for (; link->unwritten != link->tail; link->unwritten++) {
        struct sim_entry *entry = entry_at(link, link->unwritten);
        if (entry->bytes == NULL) {
            continue; /* withdrawn */
        }
        entry->written = true;
        sim_push(world, arrival,
                 (struct sim_event){.kind = SIM_ARRIVE,
                                    .client = (uint8_t)client->index,
                                    .node = (uint8_t)node,
                                    .gen = link->gen,
                                    .entry = link->unwritten,
                                    .data = entry->bytes});
    }
}

void sim_link_unblock(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    if (client->group != NULL) {
        sim_link_flush(client, event->node, world->now_ns);
    }
}

bool sim_key_is_counter(const struct fake_key *key) {
    static const char suffix[] = ":fence";
    return key->name_size >= sizeof suffix &&
           memcmp(key->name + key->name_size - (sizeof suffix - 1), suffix, sizeof suffix - 1) == 0;
}

struct fake_key *sim_key_at(struct sim_world *world, unsigned node, unsigned resource, const char *suffix) {
    char name[FAKE_NAME_MAX], *end = name;
    if (world->seed % 3 == 0) {
        end = mempcpy(end, "lock:", 5);
    }
    end = mempcpy(end, sim_resource_name(resource), 2);
    while (*suffix != '\0') {
        *end++ = *suffix++;
    }
    return fake_node_find(&world->nodes[node].fake, name, (size_t)(end - name));
}

void sim_node_clock(const struct sim_world *world, struct sim_node *node) {
    node->fake.now_us = sim_clock_local(&node->clock, world->now_ns) / 1000;
    node->fake.now_ms = node->fake.now_us / 1000;
}

int64_t sim_key_gone_ns(const struct sim_node *node, const struct fake_key *key) {
    return key->expires_ms == FAKE_NO_TTL ? SIM_NEVER : sim_clock_true(&node->clock, (key->expires_ms + 1) * SIM_MS);
}

static void note_expiry(struct sim_node *node) {
    for (unsigned i = 0; i < node->fake.key_count; i++) {
        struct fake_key *key = &node->fake.keys[i];
        if (!key->used) {
            continue;
        }
        key->gone_ns = sim_key_gone_ns(node, key);
    }
}

/* Of the bytes of a connection that its client has given up, all up to some point arrive. */
static bool lost_on_the_way(struct sim_world *world, const struct sim_event *event) {
    struct sim_node *node = &world->nodes[event->node];
    uint32_t *killed = &node->killed_gen[event->client];
    const struct sim_client *client = &world->clients[event->client];
    bool dying = event->gen != client->links[event->node].gen || client->group == NULL;
    if (node->down) {
        return true;
    }
    if (event->gen < *killed) {
        /* RST: the node does not know this connection. */
        if (!dying && client->links[event->node].mute_ns <= world->now_ns) {
            sim_link_break_at(world, event->client, event->node, world->now_ns + sim_delay_ns(world));
        }
        return true;
    }
    if (dying && sim_random_percent(&world->random, 30)) {
        *killed = event->gen + 1;
        return true;
    }
    return false;
}

static const char *describe(const struct fake_reply *reply) {
    static char words[64];
    switch (reply->type) {
    case REDLOCK_REPLY_ARRAY:
        (void)snprintf(words, sizeof words, "{%d, %.*s}", (int)reply->integer,
                       reply->bytes == NULL ? 3 : (int)reply->size, reply->bytes == NULL ? "nil" : reply->bytes);
        return reply->shape == FAKE_TIME ? reply->seconds : words;
    case REDLOCK_REPLY_STATUS:
    case REDLOCK_REPLY_ERROR:
        return reply->bytes;
    case REDLOCK_REPLY_NIL:
        return "nil";
    case REDLOCK_REPLY_INTEGER:
        return reply->integer == 2 ? "2" : reply->integer == 1 ? "1" : reply->integer == 0 ? "0" : "-1";
    default:
        return "a value";
    }
}

/* The parts of a request that a person wants to see. */
static void trace_request(struct sim_world *world, const struct sim_event *event, const struct sim_bytes *bytes,
                          const struct fake_reply *reply, bool dying) {
    char words[400];
    size_t at = 0;
    for (uint32_t i = 0; i < bytes->size && at < sizeof words - 1; i++) {
        char c = bytes->bytes[i];
        if (c == '\n' && i + 1 < bytes->size && (bytes->bytes[i + 1] == '$' || bytes->bytes[i + 1] == '*')) {
            while (i + 1 < bytes->size && bytes->bytes[i + 1] != '\n') {
                i++;
            }
            i++;
            c = ' ';
        }
        if (c >= ' ' && !(c == ' ' && at == 0)) {
            words[at++] = c;
        }
    }
    words[at] = '\0';
    const char *from = strncmp(words, "*", 1) == 0 ? strchr(words, ' ') : words;
    SIM_TRACE(world, "node %u ← client %u%s: %s → %s", event->node, event->client, dying ? " (old connection)" : "",
              from == NULL ? words : from, describe(reply));
}

static void refuse_queue(struct fake_reply *reply) {
    static const char text[] = "NOPERM this user has no permissions to run the 'zadd' command";
    *reply = (struct fake_reply){.type = REDLOCK_REPLY_ERROR, .bytes = text, .size = sizeof text - 1};
}

/* A lock that was given is refused, or the answer is an error, on the way to the client. */
static void misquote(const struct sim_world *world, const struct sim_bytes *bytes, struct fake_reply *reply) {
    static const char text[] = "LOADING Redis is loading the dataset in memory";
    if (bytes->operation != REDLOCK_OP_ACQUIRE) {
        return;
    }
    *reply = world->seed % 2 == 0 && reply->type == REDLOCK_REPLY_STATUS
                 ? (struct fake_reply){.type = REDLOCK_REPLY_NIL}
                 : (struct fake_reply){.type = REDLOCK_REPLY_ERROR, .bytes = text, .size = sizeof text - 1};
}

void sim_link_arrive(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    struct sim_link *link = &client->links[event->node];
    struct sim_node *node = &world->nodes[event->node];
    if (event->gen == link->silent_gen || lost_on_the_way(world, event)) {
        return;
    }
    const struct sim_bytes *bytes = event->data;
    struct sim_reply *reply = sim_arena(world, sizeof *reply);
    reply->stepped = node->stepped;
    sim_node_clock(world, node);
    const bool waits = bytes->operation == REDLOCK_OP_WAIT;
    char holder[SIM_TOKEN_SIZE];
    sim_quarantine_look(world, event->node, bytes->resource, holder);
    const bool had = waits && sim_node_has(world, event->node, bytes->resource, bytes->token);
    const bool starves = world->control == SIM_CONTROL_STARVED && world->phase == SIM_PROBING &&
                         event->client + 1U == world->profile.clients && bytes->operation != REDLOCK_OP_RELEASE;
    if ((waits && sim_refuses_queue(world, node)) || starves) {
        refuse_queue(&reply->fake);
    } else {
        const char *form = bytes->forms[event->node];
        fake_node_command(&node->fake, form != NULL ? form : bytes->bytes, bytes->size, &reply->fake);
        if (reply->fake.names_size > 0) { /* the node's next command writes there */
            reply->fake.names =
                memcpy(sim_arena(world, reply->fake.names_size), reply->fake.names, reply->fake.names_size);
        }
    }
    sim_spec_executed(world, event->client, event->node, bytes, holder, &reply->fake);
    sim_quarantine_check(world, event->node, bytes, holder);
    sim_reason_executed(world, event->node, bytes, reply);
    if (world->control == SIM_CONTROL_MISQUOTED) {
        misquote(world, bytes, &reply->fake);
    }
    if (waits || bytes->operation == REDLOCK_OP_RELEASE) {
        sim_line_executed(world, event->node, bytes, reply, had);
    }
    if (node->fake.wrote) {
        note_expiry(node);
        sim_check_life(world, event->node, bytes->resource);
        sim_node_back_up(world, node);
        if (bytes->operation == REDLOCK_OP_ACQUIRE || bytes->operation == REDLOCK_OP_HEAL) {
            sim_grant_set(world, event->node, bytes->token);
        }
    }
    if (node->strange_until_ns > world->now_ns) {
        reply->fake = (struct fake_reply){.type = REDLOCK_REPLY_OTHER};
        reply->did = SIM_DID_NOTHING;
    }
    bool dying = event->gen != link->gen || client->group == NULL;
    if (world->tracing) {
        trace_request(world, event, bytes, &reply->fake, dying);
    }
    if (dying) {
        return;
    }
    int64_t arrival = world->now_ns + sim_delay_ns(world);
    link->down_ns = arrival > link->down_ns ? arrival : link->down_ns;
    sim_push(world, link->down_ns,
             (struct sim_event){.kind = SIM_REPLY,
                                .client = event->client,
                                .node = event->node,
                                .gen = event->gen,
                                .entry = event->entry,
                                .data = reply});
}

/* Notes what the library is about to learn of a node's clock and vote. */
static void note_backing(struct sim_client *client, unsigned node, const struct sim_entry *entry,
                         const struct sim_stepped *stepped, const struct redlock_answer *answer) {
    uint8_t operation = entry->bytes->operation;
    if (answer->clock.server_us != 0) {
        sim_backing_clock(client, node, stepped);
    }
    if (answer->vote == REDLOCK_VOTE_GRANTED &&
        (operation == REDLOCK_OP_ACQUIRE || operation == REDLOCK_OP_EXTEND || operation == REDLOCK_OP_WAIT)) {
        sim_backing_granted(client, node, entry->bytes->token, stepped->steps);
    }
}

static void answer(struct sim_client *client, unsigned node, const struct sim_entry *entry,
                   const struct sim_reply *reply) {
    struct redlock_reply flat;
    struct redlock_answer answer;
    fake_reply_flatten(&reply->fake, &flat);
    redlock_wire_answer(entry->reply_kind, &flat, NULL, &answer);
    answer.read_ns = sim_client_now(client);
    answer.clock.sent_ns = entry->sent_ns;
    answer.clock.read_ns = answer.read_ns;
    if (client->world->control == SIM_CONTROL_NO_CLOCK_GUARD) {
        sim_backing_clock(client, node, &reply->stepped); /* as if it had asked */
    }
    if (client->world->profile.clock_guard) {
        note_backing(client, node, entry, &reply->stepped, &answer);
    }
    sim_reason_answered(client, node, entry->bytes, reply);
    if (redlock_wire_grants(entry->reply_kind, &flat.value)) {
        redlock_group_granted(client->group, entry->owner, entry->round, node, answer.read_ns);
    } else {
        redlock_group_answer(client->group, entry->owner, entry->round, node, &answer);
    }
    redlock_text_drop(answer.text);
}

static void drop_withdrawn(struct sim_link *link) {
    while (link->head != link->tail && entry_at(link, link->head)->bytes == NULL) {
        if (link->unwritten == link->head) {
            link->unwritten++;
        }
        link->head++;
    }
}

void sim_link_reply(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    struct sim_link *link = &client->links[event->node];
    if (client->group == NULL || event->gen != link->gen || event->gen == link->silent_gen) {
        return;
    }
    if (link->down_cut_ns > world->now_ns) {
        sim_put_off(world, *event, link->down_cut_ns);
        return;
    }
    drop_withdrawn(link);
    assert(link->head == event->entry); /* replies come in the order of the requests */
    struct sim_entry entry = *entry_at(link, link->head++);
    link->timeouts = 0;
    link->heard++;
    drop_withdrawn(link);
    /* The PONG is the last. */
    bool returns = link->state == SIM_LINK_STALLED && link->head == link->tail;
    if (returns) {
        link->state = SIM_LINK_READY;
        SIM_TRACE(world, "client %u: node %u answers again", event->client, event->node);
    }
    if (entry.answered && !returns) {
        return; /* too late: UNKNOWN was said at its timeout */
    }
    sim_client_enter(client);
    if (!entry.answered && entry.owner != NULL) {
        answer(client, event->node, &entry, event->data);
    }
    const struct sim_reply *reply = event->data;
    if (reply->fake.type == REDLOCK_REPLY_OTHER) {
        /* Who knows what comes next on this connection. */
        sim_link_break(world, event->client, event->node);
    }
    if (returns && client->group != NULL) {
        redlock_group_ready_changed(client->group, event->node, true);
    }
    sim_client_leave(client);
}

static void stall(struct sim_client *client, unsigned node) {
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct sim_world *world = client->world;
    struct sim_link *link = &client->links[node];
    link->state = SIM_LINK_STALLED;
    SIM_TRACE(world, "client %u: node %u is stalled", client->index, node);
    struct sim_entry *entry = append(link);
    entry->answered = true;
    struct sim_bytes *bytes = sim_arena(world, sizeof *bytes + sizeof ping);
    memset(bytes, 0, sizeof *bytes);
    bytes->size = sizeof ping - 1;
    memcpy(bytes->bytes, ping, sizeof ping);
    entry->bytes = bytes;
    sim_link_flush(client, node, world->now_ns);
    /* In the node 5 s; here mostly less, so that it matters in a short schedule. */
    const int64_t limit_ms = world->control == SIM_CONTROL_SILENT ? 5000 : 20 * world->profile.node_timeout_ms;
    sim_push(
        world, world->now_ns + limit_ms * SIM_MS,
        (struct sim_event){
            .kind = SIM_BROKEN, .client = (uint8_t)client->index, .node = (uint8_t)node, .gen = link->gen, .entry = 1});
}

/* It connects, and asks the node who it is. */
static void try_spare(struct sim_client *client, unsigned node) {
    struct sim_world *world = client->world;
    struct sim_link *link = &client->links[node];
    const bool is_up = link->state == SIM_LINK_READY || link->state == SIM_LINK_STALLED;
    if (link->spare || !is_up || REDLOCK_PLANTED(SILENT_WAITS)) {
        return;
    }
    link->spare = true;
    sim_push(world, world->now_ns + 4 * sim_delay_ns(world),
             (struct sim_event){.kind = SIM_SPARE,
                                .client = (uint8_t)client->index,
                                .node = (uint8_t)node,
                                .gen = link->gen,
                                .entry = link->heard});
}

void sim_link_timeout(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    struct sim_link *link = &client->links[event->node];
    if (client->group == NULL || event->gen != link->gen || event->entry - link->head >= link->tail - link->head) {
        return;
    }
    struct sim_entry *entry = entry_at(link, event->entry);
    if (entry->answered) {
        return;
    }
    entry->answered = true;
    void *owner = entry->owner;
    uint32_t round = entry->round;
    sim_reason_over(client, event->node, entry->bytes);
    /* A request that was not written is withdrawn. Half of it may be written; then the rest follows
     * later. */
    bool withdrawn = !entry->written && (link->state == SIM_LINK_FRESH || sim_random_percent(&world->random, 70));
    bool stalls = false;
    if (withdrawn) {
        entry->bytes = NULL;
        drop_withdrawn(link);
    } else {
        stalls = ++link->timeouts >= STALL_TIMEOUTS && link->state == SIM_LINK_READY;
        try_spare(client, event->node);
    }
    SIM_TRACE(world, "client %u: node %u timed out (%s)", event->client, event->node, withdrawn ? "FAILED" : "UNKNOWN");
    if (stalls) {
        stall(client, event->node);
    }
    struct redlock_answer timeout = {.vote = withdrawn ? REDLOCK_VOTE_FAILED : REDLOCK_VOTE_UNKNOWN,
                                     .read_ns = sim_client_now(client),
                                     .text = client->text};
    sim_client_enter(client);
    redlock_group_answer(client->group, owner, round, event->node, &timeout);
    if (stalls && client->group != NULL) {
        redlock_group_ready_changed(client->group, event->node, false);
    }
    sim_client_leave(client);
}
