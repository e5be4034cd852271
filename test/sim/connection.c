/* How a client's connection to a node ends, and how it comes back (R9, R16). */
#include <stdio.h>

#include "parts.h"

#define CONNECT_TIMEOUT_NS (1000 * SIM_MS)

bool sim_is_guarded(const struct sim_world *world) {
    return world->profile.restart_guard != REDLOCK_RESTART_GUARD_OFF || world->profile.clock_guard;
}

/* The client begins to connect. */
static struct sim_greeting *new_greeting(struct sim_world *world, unsigned client) {
    struct sim_greeting *greeting = sim_arena(world, sizeof *greeting);
    *greeting = (struct sim_greeting){0};
    greeting->said.clock.sent_ns = sim_client_now(&world->clients[client]);
    return greeting;
}

/* The node answers it. */
static void fill_greeting(struct sim_world *world, const struct sim_node *node, struct sim_greeting *greeting) {
    int64_t now_us = sim_clock_local(&node->clock, world->now_ns) / 1000;
    snprintf(greeting->run_id, sizeof greeting->run_id, "run %u of %u", node->run, (unsigned)(node - world->nodes));
    greeting->stepped = node->stepped;
    greeting->run = node->run;
    greeting->said.run_id = greeting->run_id;
    greeting->said.uptime_s = now_us < node->started_us ? 0 : (now_us / 1000000 - node->started_us / 1000000);
    greeting->said.clock.server_us = now_us;
}

void sim_link_open(struct sim_world *world, unsigned client, unsigned node, int64_t from_ns) {
    struct sim_link *link = &world->clients[client].links[node];
    memset(link, 0, offsetof(struct sim_link, entries));
    link->gen = 1;
    bool later =
        from_ns > 0 || (!world->profile.calm && !world->profile.early && sim_random_percent(&world->random, 15));
    int64_t at =
        later ? from_ns + sim_random_between(&world->random, 0, 2 * world->profile.node_timeout_ms * SIM_MS) : 0;
    if (later) {
        sim_push(world, at,
                 (struct sim_event){
                     .kind = SIM_RECONNECT, .client = (uint8_t)client, .node = (uint8_t)node, .gen = link->gen});
        return;
    }
    fake_node_load_scripts(&world->nodes[node].fake);
    struct sim_greeting *greeting = new_greeting(world, client);
    fill_greeting(world, &world->nodes[node], greeting);
    sim_push(
        world, at,
        (struct sim_event){
            .kind = SIM_READY, .client = (uint8_t)client, .node = (uint8_t)node, .gen = link->gen, .data = greeting});
}

void sim_link_break_at(struct sim_world *world, unsigned client, unsigned node, int64_t at) {
    if (node >= sim_nodes_of(world, client)) {
        return;
    }
    sim_push(world, at,
             (struct sim_event){.kind = SIM_BROKEN,
                                .client = (uint8_t)client,
                                .node = (uint8_t)node,
                                .gen = world->clients[client].links[node].gen});
}

void sim_link_break(struct sim_world *world, unsigned client, unsigned node) {
    sim_link_break_at(world, client, node, world->now_ns);
}

static void reconnect_later(struct sim_world *world, unsigned client, unsigned node) {
    struct sim_link *link = &world->clients[client].links[node];
    int64_t backoff_ms = 10;
    for (unsigned i = 0; i < link->failures && backoff_ms < 2000; i++) {
        backoff_ms *= 2;
    }
    if (backoff_ms > 2000) {
        backoff_ms = 2000;
    }
    sim_push(
        world, world->now_ns + sim_random_between(&world->random, backoff_ms / 2, backoff_ms) * SIM_MS,
        (struct sim_event){.kind = SIM_RECONNECT, .client = (uint8_t)client, .node = (uint8_t)node, .gen = link->gen});
    if (link->failures < 20) {
        link->failures++;
    }
}

/* Requests that were not written are FAILED, the others UNKNOWN (R4). */
static void end_entries(struct sim_client *client, unsigned node) {
    struct sim_link *link = &client->links[node];
    uint32_t head = link->head, tail = link->tail;
    link->head = link->unwritten = link->tail;
    for (uint32_t i = head; i != tail; i++) {
        struct sim_entry entry = link->entries[i % SIM_INFLIGHT_MAX];
        if (entry.answered || entry.owner == NULL || client->group == NULL) {
            continue;
        }
        struct redlock_answer answer = {.vote = entry.written ? REDLOCK_VOTE_UNKNOWN : REDLOCK_VOTE_FAILED,
                                        .read_ns = sim_client_now(client),
                                        .text = client->text};
        sim_reason_over(client, node, entry.bytes);
        redlock_group_answer(client->group, entry.owner, entry.round, node, &answer);
    }
}

/* The next one comes after a delay; with `spare` it is there. */
static void end_connection(struct sim_world *world, struct sim_client *client, unsigned node, bool spare) {
    struct sim_link *link = &client->links[node];
    /* If the old connection cannot be killed, its bytes may be delayed anywhere (TCP allows that),
     * and come after those of the next connection. */
    if (!world->profile.may_kill && sim_random_percent(&world->random, 50)) {
        int64_t *late_ns = &world->nodes[node].late_ns[client->index];
        int64_t until =
            world->now_ns + sim_random_between(&world->random, 0, 10 * world->profile.node_timeout_ms) * SIM_MS;
        *late_ns = until > *late_ns ? until : *late_ns;
    }
    link->first_try_done = true;
    link->state = SIM_LINK_DOWN;
    link->gen++;
    link->up_ns = link->down_ns = 0;
    link->blocked_ns = 0;
    link->spare = false;
    sim_client_enter(client);
    end_entries(client, node);
    sim_subscription_end(client, node);
    if (client->group != NULL) {
        redlock_group_ready_changed(client->group, node, false);
    }
    sim_client_leave(client);
    if (spare) {
        sim_push(world, world->now_ns,
                 (struct sim_event){.kind = SIM_HANDSHAKE,
                                    .client = (uint8_t)client->index,
                                    .node = (uint8_t)node,
                                    .gen = link->gen,
                                    .data = new_greeting(world, client->index)});
    } else {
        reconnect_later(world, client->index, node);
    }
}

static bool is_reachable(const struct sim_world *world, const struct sim_event *event, int64_t within_ns) {
    const struct sim_node *node = &world->nodes[event->node];
    const struct sim_link *link = &world->clients[event->client].links[event->node];
    const bool cut = link->up_cut_ns > world->now_ns || link->down_cut_ns > world->now_ns;
    return !node->down && !cut && node->hung_until_ns <= world->now_ns + within_ns;
}

/* The node has said on a second connection who it is, unless it cannot be reached there either. */
void sim_link_spare(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    struct sim_link *link = &client->links[event->node];
    if (client->group == NULL || event->gen != link->gen || !link->spare) {
        return;
    }
    const enum fake_mode mode = world->nodes[event->node].fake.mode;
    if (event->entry != link->heard) {
        link->spare = false; /* the old connection answers */
    } else if (!is_reachable(world, event, 0) || mode == FAKE_READONLY || mode == FAKE_LOADING) {
        sim_put_off(world, *event,
                    world->now_ns + sim_random_between(&world->random, 1, 4 * world->profile.node_timeout_ms) * SIM_MS);
    } else {
        SIM_TRACE(world, "client %u: a new connection to node %u replaces a silent one", event->client, event->node);
        end_connection(world, client, event->node, true);
    }
}

void sim_link_broken(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    struct sim_link *link = &client->links[event->node];
    bool stall_limit = event->entry == 1;
    if (client->group == NULL || event->gen != link->gen || (stall_limit && link->state != SIM_LINK_STALLED)) {
        return;
    }
    SIM_TRACE(world, "client %u: connection to node %u is lost%s", event->client, event->node,
              stall_limit ? " (stalled too long)" : "");
    end_connection(world, client, event->node, false);
}

void sim_link_reconnect(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    struct sim_link *link = &client->links[event->node];
    if (client->group == NULL || event->gen != link->gen) {
        return;
    }
    if (link->first_try_done) {
        link->gen++; /* requests that wait for the first connection keep their number */
    }
    if (is_reachable(world, event, CONNECT_TIMEOUT_NS)) {
        sim_push(world, world->now_ns + 2 * sim_delay_ns(world),
                 (struct sim_event){.kind = SIM_HANDSHAKE,
                                    .client = event->client,
                                    .node = event->node,
                                    .gen = link->gen,
                                    .data = new_greeting(world, event->client)});
        return;
    }
    if (link->first_try_done) {
        reconnect_later(world, event->client, event->node);
    } else {
        end_connection(world, client, event->node, false);
    }
}

void sim_link_handshake(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    struct sim_link *link = &client->links[event->node];
    struct sim_node *node = &world->nodes[event->node];
    if (client->group == NULL || event->gen != link->gen) {
        return;
    }
    if (node->down || event->gen < node->killed_gen[event->client] || node->fake.mode == FAKE_READONLY) {
        if (link->first_try_done) {
            reconnect_later(world, event->client, event->node);
        } else {
            sim_link_break(world, event->client, event->node);
        }
        return;
    }
    /* The old connection is killed first, so bytes that are still on their way on it are never read
     * (R9). */
    if (world->profile.may_kill && node->killed_gen[event->client] < event->gen) {
        node->killed_gen[event->client] = event->gen;
    }
    if (node->fake.mode != FAKE_LOADING) {
        fake_node_load_scripts(&node->fake);
    }
    struct sim_greeting *greeting = sim_arena(world, sizeof *greeting);
    *greeting = *(const struct sim_greeting *)event->data;
    fill_greeting(world, node, greeting);
    sim_push(world, world->now_ns + sim_delay_ns(world),
             (struct sim_event){
                 .kind = SIM_READY, .client = event->client, .node = event->node, .gen = event->gen, .data = greeting});
}

static void greet(struct sim_client *client, unsigned node, const struct sim_greeting *greeting) {
    struct redlock_greeting said = greeting->said;
    client->links[node].run = greeting->run;
    said.clock.read_ns = sim_client_now(client);
    if (client->world->profile.clock_guard) {
        sim_backing_clock(client, node, &greeting->stepped);
    }
    SIM_TRACE(client->world, "client %u: node %u says %s, up for %lld s", client->index, node, said.run_id,
              (long long)said.uptime_s);
    redlock_group_node_greeted(client->group, node, &said);
}

void sim_link_ready(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    struct sim_link *link = &client->links[event->node];
    if (client->group == NULL || event->gen != link->gen) {
        return;
    }
    link->state = SIM_LINK_READY;
    link->timeouts = link->failures = 0;
    link->first_try_done = true;
    link->met_ns = link->met_ns != 0 ? link->met_ns : world->now_ns;
    link->flush_asked = true;
    SIM_TRACE(world, "client %u: node %u is ready", event->client, event->node);
    sim_client_enter(client);
    greet(client, event->node, event->data);
    sim_subscription_begin(client, event->node);
    if (client->group != NULL) {
        redlock_group_ready_changed(client->group, event->node, true);
    }
    sim_client_leave(client);
}
