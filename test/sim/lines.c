/* The checkers of queues: who was served, in which order, and what is left of them. */
#include "parts.h"

/* Tokens are counted by env_random(): digits 2 to 7 of their name. NULL: it is not ours. */
static struct sim_line *slot_of(struct sim_world *world, const char *token) {
    const char *name = sim_name(token);
    if (name[0] != 'c' || sim_token_size(token) != SIM_TOKEN_SIZE) {
        return NULL;
    }
    return &world->lines[(unsigned)(name[1] - '0') % SIM_CLIENTS_MAX][sim_hexadecimal(name + 2, 6) % SIM_LINES_MAX];
}

static struct sim_line *line_of(struct sim_world *world, const char *token) {
    struct sim_line *line = slot_of(world, token);
    return line != NULL && sim_token_is(line->token, token) ? line : NULL;
}

static void enter_place(struct sim_client *client, const struct sim_bytes *bytes) {
    struct sim_world *world = client->world;
    const uint64_t ticket = sim_ticket(bytes->token);
    for (unsigned i = 0; i < world->place_count; i++) {
        if (world->places[i].ticket == ticket && world->places[i].client == client->index &&
            world->places[i].resource == bytes->resource) { /* a bundle has one ticket for both */
            return;
        }
    }
    if (world->place_count < SIM_PLACES_MAX) {
        world->places[world->place_count++] = (struct sim_place){.client = (uint8_t)client->index,
                                                                 .resource = bytes->resource,
                                                                 .reads = bytes->reads,
                                                                 .ticket = ticket,
                                                                 .asked_ns = client->step_ns};
    }
}

void sim_line_sent(struct sim_client *client, uint32_t nodes, const struct sim_bytes *bytes) {
    struct sim_world *world = client->world;
    struct sim_line *line = line_of(world, bytes->token);
    if (bytes->operation == REDLOCK_OP_RELEASE && line != NULL) {
        line->released |= nodes;
    }
    if (bytes->operation != REDLOCK_OP_WAIT) {
        return;
    }
    if (line == NULL && (line = slot_of(world, bytes->token)) != NULL) {
        world->has_line[client->index] = true;
        *line = (struct sim_line){.released = 0};
        memcpy(line->token, bytes->token, SIM_TOKEN_SIZE);
    }
    if (line != NULL && (line->released & nodes) != 0) {
        sim_violation(world, "queued", "client %u wants a place for %.8s, which it has released at nodes %#x",
                      client->index, sim_name(bytes->token), line->released & nodes);
    }
    if (world->profile.calm) {
        enter_place(client, bytes);
    }
}

void sim_line_served(struct sim_world *world, unsigned node, const char *token) {
    struct sim_line *line = line_of(world, token);
    sim_grant_set(world, node, token);
    if (line == NULL) {
        return;
    }
    if (line->taken_ns[node] == 0) {
        line->taken_ns[node] = world->now_ns;
    }
    const int64_t late_ms = world->nodes[node].fake.now_ms - line->good_until_ms[node];
    if (line->good_until_ms[node] != 0 && late_ms > 0) {
        sim_violation(world, "stale", "node %u serves %.8s, whose entry is stale since %lld ms", node, sim_name(token),
                      (long long)late_ms);
    }
}

/* The next member of the queue from *at onwards; NULL for none. */
static const struct fake_part *next_in(const struct fake_node *fake, const struct fake_key *queue, unsigned *at) {
    while (queue != NULL && *at < fake->part_count) {
        const struct fake_part *part = &fake->parts[(*at)++];
        if (part->set == queue->id) {
            return part;
        }
    }
    return NULL;
}

/* Whether this token is that of the place, or was. Only tokens of this size have a ticket. */
static bool is_of(const struct sim_place *place, const char *token, size_t size) {
    size -= sim_token_says(token, size);
    return size == SIM_TOKEN_SIZE && token[SIM_TICKET_SIZE + 1] == (char)('0' + place->client) &&
           sim_ticket(token) == place->ticket;
}

void sim_line_first(struct sim_world *world, unsigned node, unsigned resource, char token[SIM_TOKEN_SIZE]) {
    const struct fake_key *queue = sim_key_at(world, node, resource, ":wait");
    unsigned at = 0;
    memset(token, 0, SIM_TOKEN_SIZE);
    /* All begin with their ticket, of as many digits. */
    for (const struct fake_part *part; (part = next_in(&world->nodes[node].fake, queue, &at)) != NULL;) {
        char other[SIM_TOKEN_SIZE];
        sim_token_set(other, part->token, part->token_size);
        if (!sim_is_dead(other) && (token[0] == '\0' || memcmp(other, token, SIM_TOKEN_SIZE) < 0)) {
            memcpy(token, other, SIM_TOKEN_SIZE);
        }
    }
}

int64_t sim_line_since(const struct sim_world *world, unsigned node, const char *token) {
    for (unsigned i = 0; i < world->place_count; i++) {
        const struct sim_place *place = &world->places[i];
        if (place->ticket == sim_ticket(token) && sim_name(token)[1] == (char)('0' + place->client)) {
            return place->since_ns[node];
        }
    }
    return 0;
}

static bool is_in_line(const struct fake_node *fake, const struct fake_key *lock, const struct fake_key *queue,
                       const struct sim_place *place) {
    unsigned at = 0;
    if (lock != NULL && is_of(place, lock->value, lock->value_size)) {
        return true;
    }
    const struct fake_key *readers = lock != NULL && sim_is_read(lock) ? lock : NULL;
    for (const struct fake_part *part; (part = next_in(fake, readers, &at)) != NULL;) {
        if (is_of(place, part->token, part->token_size)) {
            return true;
        }
    }
    at = 0;
    for (const struct fake_part *part; (part = next_in(fake, queue, &at)) != NULL;) {
        if (is_of(place, part->token, part->token_size)) {
            return true;
        }
    }
    return false;
}

static void follow_places(struct sim_world *world, unsigned node, unsigned resource) {
    const struct fake_key *lock = sim_key_at(world, node, resource, "");
    const struct fake_key *queue = sim_key_at(world, node, resource, ":wait");
    for (unsigned i = 0; i < world->place_count; i++) {
        struct sim_place *place = &world->places[i];
        if (place->resource != resource) {
            continue;
        }
        if (!is_in_line(&world->nodes[node].fake, lock, queue, place)) {
            place->since_ns[node] = 0;
        } else if (place->since_ns[node] == 0) {
            place->since_ns[node] = world->now_ns;
        }
    }
}

static void check_left_queue(struct sim_world *world, unsigned node, const struct sim_bytes *bytes) {
    const struct fake_node *fake = &world->nodes[node].fake;
    const struct fake_key *queue = sim_key_at(world, node, bytes->resource, ":wait");
    unsigned at = 0;
    /* A node that takes no writes keeps it in line. It may be served until it is stale; the push is
     * answered by a release, if it comes through. */
    if (fake->mode != FAKE_NORMAL) {
        sim_forget_token(world, bytes->token);
        return;
    }
    for (const struct fake_part *part; (part = next_in(fake, queue, &at)) != NULL;) {
        char token[SIM_TOKEN_SIZE];
        sim_token_set(token, part->token, part->token_size);
        if (sim_token_is(token, bytes->token)) {
            sim_violation(world, "queued", "node %u still has %.8s in line after its release", node,
                          sim_name(bytes->token));
        }
    }
}

void sim_line_executed(struct sim_world *world, unsigned node, const struct sim_bytes *bytes,
                       const struct sim_reply *reply, bool had) {
    struct sim_line *line = line_of(world, bytes->token);
    const enum redlock_reply_type type = reply->fake.type;
    if (bytes->operation == REDLOCK_OP_WAIT && type == REDLOCK_REPLY_ARRAY) {
        if (line != NULL) {
            line->good_until_ms[node] = world->nodes[node].fake.now_ms + bytes->stale_ms;
        }
        if (reply->fake.integer == 1 && !had) {
            sim_line_served(world, node, bytes->token);
        }
    } else if (bytes->operation == REDLOCK_OP_RELEASE && type == REDLOCK_REPLY_INTEGER) {
        check_left_queue(world, node, bytes);
    }
    if (world->profile.calm && world->place_count > 0) {
        follow_places(world, node, bytes->resource);
    }
}

/* When the ticket of this place was fixed: with the first WAIT, which must wait until the clocks of
 * a quorum are known. Who breaks that rule may at least know them when it is in line. */
static int64_t fixed_ns(const struct sim_world *world, const struct sim_place *place) {
    int64_t since_ns = SIM_NEVER;
    unsigned met = 0;
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        const int64_t met_ns = world->clients[place->client].links[i].met_ns;
        met += met_ns != 0 && met_ns < place->asked_ns;
        since_ns = place->since_ns[i] != 0 && place->since_ns[i] < since_ns ? place->since_ns[i] : since_ns;
    }
    return met >= sim_quorum_of(world, place->client) ? place->asked_ns : since_ns;
}

/* Whether both had the clocks of the same nodes when the ticket of this place was fixed, and have
 * no more since. The median of other clocks makes other tickets. */
static bool know_the_same(const struct sim_world *world, const struct sim_place *place, unsigned other) {
    bool same = sim_nodes_of(world, place->client) == sim_nodes_of(world, other);
    const int64_t since_ns = fixed_ns(world, place);
    for (unsigned i = 0; i < world->profile.nodes && world->profile.waking; i++) {
        const int64_t one_ns = world->clients[place->client].links[i].met_ns;
        const int64_t other_ns = world->clients[other].links[i].met_ns;
        same = same && (one_ns != 0) == (other_ns != 0) && one_ns < since_ns && other_ns < since_ns;
    }
    return same;
}

/* An acquire that began earlier, and was in line at a quorum before the first node gave the lock to
 * this one, comes first. A ticket is as wrong as the clock that it comes from: rates, and a round
 * trip. */
void sim_line_acquired(const struct sim_call *call, const char *token) {
    struct sim_world *world = call->client->world;
    const struct sim_line *line = line_of(world, token);
    const int64_t margin_ns = world->now_ns / 50 + 4 * world->profile.delay_max_ns + 2 * SIM_MS;
    int64_t taken_ns = SIM_NEVER;
    if (line == NULL || sim_ticket(token) == 0 || !world->profile.calm) {
        return;
    }
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        taken_ns = line->taken_ns[i] != 0 && line->taken_ns[i] < taken_ns ? line->taken_ns[i] : taken_ns;
    }
    for (unsigned k = 0; k < world->place_count; k++) {
        const struct sim_place *place = &world->places[k];
        unsigned count = 0;
        for (unsigned i = 0; i < world->profile.nodes; i++) {
            count += place->since_ns[i] != 0 && place->since_ns[i] < taken_ns;
        }
        /* Those who read get it together, and learn of it one after the other. */
        if (know_the_same(world, place, call->client->index) && !(place->reads && call->reads) &&
            place->resource == call->resource && place->asked_ns + margin_ns < call->asked_ns &&
            count >= sim_quorum_of(world, place->client)) {
            sim_violation(world, "bypass",
                          "client %u (%.8s) gets '%s' before client %u, which asked %.3f ms earlier and is in line",
                          call->client->index, sim_name(token), sim_resource_name(call->resource), place->client,
                          (double)(call->asked_ns - place->asked_ns) / 1e6);
        }
    }
}

/* The lease was forgotten before all nodes had granted it: these places end by themselves. */
static bool is_forgotten(const struct sim_world *world, const char *token) {
    for (unsigned i = 0; i < world->forgotten_count; i++) {
        if (sim_token_is(world->forgotten[i], token)) {
            return true;
        }
    }
    return false;
}

void sim_lines_left(struct sim_world *world, unsigned node) {
    const struct fake_node *fake = &world->nodes[node].fake;
    for (unsigned r = 0; r < world->profile.resources; r++) {
        const struct fake_key *queue = sim_key_at(world, node, r, ":wait");
        unsigned at = 0;
        for (const struct fake_part *part; (part = next_in(fake, queue, &at)) != NULL;) {
            char token[SIM_TOKEN_SIZE];
            sim_token_set(token, part->token, part->token_size);
            const struct sim_line *line = line_of(world, token);
            if (line != NULL && !world->clients[sim_name(token)[1] - '0'].closing && !is_forgotten(world, token) &&
                line->good_until_ms[node] >= fake->now_ms) {
                sim_violation(world, "queued", "node %u has %.8s in line, though all users have finished", node,
                              sim_name(token));
            }
        }
    }
}

void sim_lines_end(struct sim_world *world, unsigned node) {
    const struct fake_node *fake = &world->nodes[node].fake;
    for (unsigned i = 0; i < fake->set_count; i++) {
        const struct fake_key *key = &fake->sets[i];
        if (!key->used || world->nodes[node].stepped_back || sim_is_read(key)) {
            continue;
        }
        if (key->expires_ms == FAKE_NO_TTL || key->expires_ms > fake->now_ms + SIM_QUEUE_TTL_MAX) {
            sim_violation(world, "queue-end", "node %u: '%.*s' does not end by itself", node, key->name_size,
                          key->name);
        }
    }
}
