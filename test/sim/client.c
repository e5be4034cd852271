/* The env of one simulated client: its clock, its tokens, its timer, its sends, and the steps it
 * runs in. */
#include <stdarg.h>
#include <stdio.h>

#include "faults.h"
#include "group/tell.h"
#include "parts.h"
#include "wire/wire.h"

/* The process is descheduled for a moment, anywhere: its clock goes on, its program does not. */
static void maybe_leap(struct sim_client *client, const char *where) {
    struct sim_world *world = client->world;
    if (!client->stepping || client->probing || world->phase != SIM_ACTIVE || world->now_ns == 0 ||
        !sim_random_permille(&world->random, world->profile.leap_permille)) {
        return;
    }
    const int64_t most_ms = world->profile.late_max_ms > 0 ? world->profile.late_max_ms : world->profile.ttl_max_ms;
    int64_t longest = sim_random_percent(&world->random, 50) ? 5 : most_ms;
    int64_t leap = sim_random_between(&world->random, 1, longest * SIM_MS);
    client->step_ns += leap;
    client->paused_ns += leap;
    SIM_TRACE(world, "client %u: is descheduled for %.3f ms %s", client->index, (double)leap / 1e6, where);
}

static int64_t env_now(void *ctx) {
    struct sim_client *client = ctx;
    maybe_leap(client, "before it reads the clock");
    int64_t at = client->stepping && !client->probing ? client->step_ns : client->world->now_ns;
    return sim_clock_local(&client->clock, at);
}

static int64_t env_wall_us(void *ctx) {
    struct sim_client *client = ctx;
    maybe_leap(client, "before it reads the wall clock");
    int64_t at = client->stepping ? client->step_ns : client->world->now_ns;
    return (SIM_WALL_NS + at + client->wall_off_ns) / 1000;
}

/* A token begins with c and the client's number, then counts: unique, and easy to follow in a
 * trace. */
static int env_random(void *ctx, void *buffer, size_t size) {
    struct sim_client *client = ctx;
    unsigned char *bytes = buffer;
    const struct sim_world *world = client->world;
    if (size > 0 && world->phase == SIM_ACTIVE &&
        sim_random_permille(&client->world->random, world->profile.no_random_permille)) {
        return REDLOCK_ERR_RANDOM;
    }
    if (client->group == NULL &&
        size <= sizeof(uint16_t)) { /* the low digits of fencing tokens: its group is being made */
        memset(bytes, world->profile.same_digits ? 7 : (int)client->index, size);
        return REDLOCK_OK;
    }
    client->tokens_drawn++;
    for (size_t i = 0; i < size; i++) {
        /* The upper halves of the bytes are the first digits of a token. */
        uint64_t digit = i == 0   ? 0xc
                         : i == 1 ? client->index
                         : i < 8  ? client->tokens_drawn >> (4 * (7 - i)) & 0xf
                                  : sim_random_next(&client->world->random) & 0xf;
        bytes[i] = (unsigned char)(digit << 4 | (sim_random_next(&client->world->random) & 0xf));
    }
    return REDLOCK_OK;
}

static void env_wake_at(void *ctx, int64_t when_ns) {
    struct sim_client *client = ctx;
    struct sim_world *world = client->world;
    client->wake_serial++;
    if (when_ns == INT64_MAX) {
        return;
    }
    int64_t now = sim_clock_local(&client->clock, client->step_ns);
    int64_t at = client->step_ns;
    if (when_ns > now + 4000000 * SIM_MS) {
        return; /* beyond any schedule */
    }
    if (when_ns > now) {
        at = sim_clock_true(&client->clock, when_ns);
    }
    if (sim_random_percent(&world->random, 30)) {
        at += sim_random_between(&world->random, 0, 2 * SIM_MS);
    }
    sim_push(world, at,
             (struct sim_event){.kind = SIM_WAKE, .client = (uint8_t)client->index, .entry = client->wake_serial});
}

bool sim_deletes(const struct sim_world *world) {
    /* Who deletes by a command hands over to nobody: those in line look late. */
    return world->seed % 3 == 0 && world->control != SIM_CONTROL_DEAD && !sim_is_loaded(world->control);
}

bool sim_names(const struct sim_world *world) {
    return world->seed % 2 == 0;
}

static struct sim_bytes *bytes_of(struct sim_client *client, redlock_nodes nodes, const struct redlock_message *message,
                                  unsigned *kind) {
    struct sim_bytes *bytes = sim_arena(client->world, sizeof *bytes + REDLOCK_WIRE_SIZE_MAX);
    memset(bytes, 0, sizeof *bytes);
    const size_t size = redlock_wire_format(message, bytes->bytes, kind);
    sim_arena_give_back(client->world, bytes->bytes + size);
    bytes->operation = (uint8_t)message->operation;
    if (message->token != NULL) {
        sim_token_set(bytes->token, message->token, message->token_size);
        bytes->reads = message->shared || sim_token_reads(message->token, message->token_size);
    }
    bytes->round = message->round;
    bytes->sent_ns = client->step_ns;
    bytes->ttl_ms = message->ttl_ms;
    bytes->stale_ms = message->operation == REDLOCK_OP_WAIT ? message->place->stale_ms : 0;
    bytes->resource = message->target != NULL &&
                      redlock_target_key(message->target)[redlock_target_key_size(message->target) - 1] == '2';
    bytes->size = (uint32_t)size;
    for (unsigned i = 0; message->operation == REDLOCK_OP_WAIT && i < client->world->profile.nodes; i++) {
        if ((nodes & REDLOCK_NODE(i)) == 0) {
            continue;
        }
        char *form = sim_arena(client->world, size);
        memcpy(form, bytes->bytes, size);
        redlock_wire_seal(message, i, form, size);
        bytes->forms[i] = form;
    }
    return bytes;
}

static redlock_nodes env_send(void *ctx, redlock_nodes nodes, struct redlock_message *message) {
    struct sim_client *client = ctx;
    struct sim_world *world = client->world;
    struct redlock_message form = *message;
    unsigned kind;
    form.form.holder_query = sim_names(world) ? REDLOCK_HOLDER_QUERY_ONCE : REDLOCK_HOLDER_QUERY_NOT;
    if (message->by_try && sim_deletes(world)) {
        form.form.deleting = REDLOCK_DELETING_DELIFEQ; /* some nodes refuse it */
    }
    struct sim_bytes *bytes = bytes_of(client, nodes, &form, &kind);
    redlock_nodes taken = 0;
    /* An env may write at once or at the end of the turn. The start must be read before either. */
    bool at_once = sim_random_percent(&world->random, 30);
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        if ((nodes & REDLOCK_NODE(i)) == 0 ||
            !sim_link_send(client, i, bytes, kind, message->requester, message->round)) {
            continue;
        }
        taken |= REDLOCK_NODE(i);
        if (at_once) {
            sim_link_flush(client, i, client->step_ns);
        }
    }
    sim_spec_sent(client, taken, bytes, message->now_ns);
    sim_line_sent(client, taken, bytes);
    sim_reason_sent(client, message, nodes, taken, bytes);
    sim_jumped_check(client, taken, bytes, message->handing);
    SIM_TRACE(world, "client %u: %s%s '%s' %.8s round %u to nodes %#x, refused by %#x", client->index,
              redlock_tell_operation_name(message->operation), message->by_source ? " (by source)" : "",
              message->target != NULL ? redlock_target_key(message->target) : "", sim_name(bytes->token),
              message->round, taken, nodes & ~taken);
    maybe_leap(client, "after it sent");
    return taken;
}

static struct redlock_text *env_refusal(void *ctx, unsigned node) {
    (void)node;
    return ((struct sim_client *)ctx)->text;
}

static bool env_is_too_far(void *ctx, unsigned node) {
    (void)ctx, (void)node;
    return false;
}

static void env_log(void *ctx, redlock_log_level level, const char *format, ...) {
    struct sim_client *client = ctx;
    char line[400];
    va_list arguments;
    (void)level;
    if (!client->world->tracing) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    SIM_TRACE(client->world, "client %u says: %s", client->index, line);
}

void sim_client_enter(struct sim_client *client) {
    client->stepping = true;
    client->step_ns = client->world->now_ns;
}

void sim_client_leave(struct sim_client *client) {
    struct sim_world *world = client->world;
    maybe_leap(client, "before it writes");
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        if (client->links[i].flush_asked && client->group != NULL) {
            sim_link_flush(client, i, client->step_ns);
        }
    }
    client->stepping = false;
    if (client->step_ns > client->busy_until_ns) {
        client->busy_until_ns = client->step_ns;
    }
    client->ahead_until_ns = client->step_ns;
    if (client->step_ns > world->now_ns) {
        sim_push(world, client->step_ns, (struct sim_event){.kind = SIM_CHECK, .client = (uint8_t)client->index});
    }
}

void sim_client_pause(struct sim_client *client, int64_t for_ns) {
    struct sim_world *world = client->world;
    int64_t from = client->stepping ? client->step_ns : world->now_ns;
    if (client->busy_until_ns > from) {
        from = client->busy_until_ns;
    }
    client->busy_until_ns = from + for_ns;
    client->paused_ns += for_ns;
    SIM_TRACE(world, "client %u: does not run for %.3f ms", client->index, (double)for_ns / 1e6);
}

int64_t sim_client_paused(const struct sim_client *client, int64_t at) {
    return client->paused_ns - (client->busy_until_ns > at ? client->busy_until_ns - at : 0);
}

void sim_client_wake(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    if (client->group == NULL || event->entry != client->wake_serial) {
        return;
    }
    sim_client_enter(client);
    redlock_group_wake(client->group);
    sim_client_leave(client);
}

int64_t sim_client_now(const struct sim_client *client) {
    return sim_clock_local(&client->clock, client->stepping ? client->step_ns : client->world->now_ns);
}

int64_t sim_lease_validity_ms(struct sim_world *world, const struct sim_lease *lease) {
    struct sim_client *client = &world->clients[lease->client];
    client->probing = true;
    const int64_t validity_ms = lease->candidate != NULL
                                    ? redlock_election_validity_ms(lease->candidate->election, lease->term)
                                    : redlock_lease_validity_ms(lease->handle);
    client->probing = false;
    return validity_ms;
}

void sim_api_enter(struct sim_client *client) {
    client->in_api = true;
}

void sim_api_leave(struct sim_client *client) {
    client->in_api = false;
}

/* Some clients meet all nodes when much has already happened. Their guards know nothing of it. */
static int64_t draw_first_meeting_ns(struct sim_world *world, unsigned client) {
    const struct sim_profile *profile = &world->profile;
    bool cold = profile->trust == SIM_GUARDED && !profile->early && !profile->calm && client > 0 &&
                (sim_random_percent(&world->random, 40) || world->control == SIM_CONTROL_LATE);
    if (profile->waking) { /* it acquires before it is connected, and pays its debts in the end */
        const int64_t gap_ns = profile->user_gap_ns, active_ns = profile->active_ns;
        return sim_random_between(&world->random, 1, gap_ns < active_ns ? gap_ns : active_ns);
    }
    return cold ? sim_random_between(&world->random, 1, profile->active_ns) : 0;
}

bool sim_client_open(struct sim_world *world, unsigned index) {
    static const char *const names[SIM_NODES_MAX] = {"node0", "node1", "node2", "node3", "node4", "node5", "node6"};
    struct sim_client *client = &world->clients[index];
    struct sim_clock clock = client->clock;
    const int64_t wall_off_ns = client->wall_off_ns;
    const int64_t unopened_ns = client->unopened_ns;
    const bool is_old = client->is_old;
    const struct sim_profile *profile = &world->profile;
    memset(client, 0, offsetof(struct sim_client, links));
    client->world = world;
    client->index = index;
    client->clock = clock;
    client->wall_off_ns = wall_off_ns;
    client->unopened_ns = unopened_ns;
    client->is_old = is_old;
    client->text = redlock_text_new(REDLOCK_CAUSE_NONE, "simulated");
    struct redlock_env env = {.ctx = client,
                              .now_ns = env_now,
                              .wall_us = env_wall_us,
                              .random = env_random,
                              .wake_at = env_wake_at,
                              .send = env_send,
                              .listen = sim_listen,
                              .hear = sim_hear,
                              .stop_hearing = sim_stop_hearing,
                              .refusal = env_refusal,
                              .is_too_far = env_is_too_far,
                              .log = env_log};
    redlock_manager_options config = {.node_count = sim_nodes_of(world, index),
                                      .quorum = profile->own_quorum[index],
                                      .key_prefix = world->seed % 3 == 0 ? "lock:" : NULL,
                                      .node_timeout_ms = profile->node_timeout_ms,
                                      .log_level = world->tracing ? REDLOCK_LOG_WARNING : REDLOCK_LOG_ERROR,
                                      .restart_guard = profile->restart_guard,
                                      .clock_guard = profile->clock_guard,
                                      .first_boot = profile->first_boot,
                                      .ttl_max_ms = sim_is_guarded(world) ? profile->guarded_ttl_max_ms : 0,
                                      .fence_expiry_ms = profile->fence_expiry_ms,
                                      .on_event = sim_on_event,
                                      .event_data = client};
    client->group = redlock_group_new(&env, &config, names);
    redlock_elections_init(&client->elections, client->group);
    const int64_t from_ns = draw_first_meeting_ns(world, index);
    if (from_ns > 0 && (profile->faults & 1u << SIM_FAULT_STEP) != 0 &&
        (sim_random_percent(&world->random, 50) || world->control == SIM_CONTROL_LATE)) {
        sim_ambush(world, from_ns);
    }
    for (unsigned i = 0; i < sim_nodes_of(world, index); i++) {
        sim_link_open(world, index, i, from_ns);
    }
    for (unsigned i = sim_nodes_of(world, index); i < world->profile.nodes; i++) {
        memset(&client->links[i], 0, offsetof(struct sim_link, entries));
    }
    return client->group != NULL;
}

void sim_client_count(struct sim_client *client) {
    struct sim_totals *totals = &client->world->totals;
    redlock_statistics counted = {.size = sizeof counted};
    (void)redlock_group_statistics(client->group, &counted);
    totals->fenced_fast += counted.fenced_fast;
    totals->fenced_slow += counted.fenced_slow;
    totals->healed += counted.healed;
    totals->quarantines += counted.quarantines;
    totals->clock_jumps += counted.clock_jumps;
    totals->lost += counted.lost;
}

void sim_client_close(struct sim_client *client) {
    if (client->group != NULL) {
        sim_client_count(client);
        redlock_elections_free(&client->elections);
        redlock_group_delete(client->group);
    }
    client->group = NULL;
    redlock_text_drop(client->text);
    client->text = NULL;
}
