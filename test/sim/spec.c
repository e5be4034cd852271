/* The steps of a schedule as a trace for spec/Trace.tla, and the schedules that have no others:
 * --spec. spec/README.md, "Traces of the simulator", says what each step stands for. */
#include "spec.h"

#include <stdio.h>
#include <stdlib.h>

#include "parts.h"

#define TTL_MS     100
#define TTL_MAX_MS 300

/* What a client has under way or holds, as the steps show it. */
struct attempt {
    bool is_open, extends;
    uint32_t round; /* of the extension */
    char token[SIM_TOKEN_SIZE];
};

void sim_spec_draw(struct sim_profile *profile, struct sim_random *random) {
    profile->nodes = SIM_SPEC_NODES;
    profile->clients = 2 + sim_random_below(random, SIM_SPEC_CLIENTS - 1);
    profile->resources = profile->slots = 1;
    profile->crowd = false;
    profile->old_clients = (1U << profile->clients) - 1;
    profile->ttl_min_ms = profile->ttl_max_ms = TTL_MS;
    profile->node_timeout_ms = profile->node_timeout_ms > TTL_MS / 4 ? TTL_MS / 4 : profile->node_timeout_ms;
}

void sim_spec_pace(struct sim_world *world) {
    struct sim_profile *profile = &world->profile;
    const int64_t users = profile->clients;
    profile->lock_delay_max_ms = 0;
    profile->guarded_ttl_max_ms = TTL_MAX_MS;
    profile->steps_at_boot = false;
    profile->active_ns = sim_random_between(&world->random, 5, 9) * TTL_MS * SIM_MS;
    profile->user_gap_ns = profile->active_ns * users / sim_random_between(&world->random, 30, 80);
    profile->fault_gap_ns = profile->active_ns / sim_random_between(&world->random, 4, 40);
}

static struct sim_spec_step *add(struct sim_world *world, enum sim_spec_kind kind, int64_t at_ns) {
    struct sim_spec *spec = &world->spec;
    if (!spec->is_on || world->phase != SIM_ACTIVE) {
        return NULL;
    }
    if (spec->count == SIM_SPEC_STEPS_MAX) {
        sim_violation(world, "budget", "a schedule needs more than %u steps of the specification", SIM_SPEC_STEPS_MAX);
        return NULL;
    }
    struct sim_spec_step *step = &spec->steps[spec->count];
    *step = (struct sim_spec_step){.at_ns = at_ns, .order = spec->count++, .kind = (uint8_t)kind};
    return step;
}

/* A client decides by the time that it has read last, and may be descheduled before it acts. */
static struct sim_spec_step *add_of(struct sim_client *client, enum sim_spec_kind kind, int64_t at_ns) {
    if (!client->world->spec.is_on) { /* other schedules have more clients */
        return NULL;
    }
    int64_t *last_ns = &client->world->spec.last_ns[client->index];
    struct sim_spec_step *step = add(client->world, kind, at_ns > *last_ns ? at_ns : *last_ns);
    if (step != NULL) {
        step->client = (uint8_t)client->index;
        *last_ns = step->at_ns;
    }
    return step;
}

void sim_spec_begin(struct sim_world *world) {
    world->spec.count = 0;
    memset(world->spec.last_ns, 0, sizeof world->spec.last_ns);
}

static bool kind_of(const struct sim_bytes *bytes, enum sim_spec_kind *kind) {
    switch (bytes->operation) {
    case REDLOCK_OP_ACQUIRE:
        *kind = SIM_SPEC_BEGIN;
        return true;
    case REDLOCK_OP_EXTEND:
        *kind = SIM_SPEC_EXTEND;
        return true;
    case REDLOCK_OP_HEAL:
        *kind = SIM_SPEC_HEAL;
        return true;
    case REDLOCK_OP_RELEASE:
        *kind = SIM_SPEC_GIVE_UP;
        return true;
    default:
        return false;
    }
}

void sim_spec_sent(struct sim_client *client, redlock_nodes nodes, const struct sim_bytes *bytes, int64_t now_ns) {
    enum sim_spec_kind kind;
    if (!client->world->spec.is_on || !kind_of(bytes, &kind)) {
        return;
    }
    /* What is healed was decided when this step of the client began. */
    const int64_t read_ns = kind == SIM_SPEC_HEAL ? client->world->now_ns : sim_clock_true(&client->clock, now_ns);
    struct sim_spec_step *step = add_of(client, kind, read_ns < client->step_ns ? read_ns : client->step_ns);
    if (step != NULL) {
        step->nodes = nodes;
        step->round = bytes->round;
        memcpy(step->token, bytes->token, SIM_TOKEN_SIZE);
    }
}

void sim_spec_executed(struct sim_world *world, unsigned client, unsigned node, const struct sim_bytes *bytes,
                       const char before[SIM_TOKEN_SIZE], const struct fake_reply *reply) {
    char after[SIM_TOKEN_SIZE];
    if (!world->spec.is_on) {
        return;
    }
    sim_quarantine_look(world, node, bytes->resource, after);
    const bool has = bytes->token[0] != '\0' && sim_token_is(after, bytes->token);
    const bool sets = bytes->operation == REDLOCK_OP_ACQUIRE || bytes->operation == REDLOCK_OP_HEAL;
    const bool extends = bytes->operation == REDLOCK_OP_EXTEND && reply->integer == 1;
    if (!has || !(extends || (sets && !sim_token_is(before, after)))) {
        return;
    }
    struct sim_spec_step *step = add(world, extends ? SIM_SPEC_EXTENDED : SIM_SPEC_SET, world->now_ns);
    if (step != NULL) {
        step->client = (uint8_t)client;
        step->nodes = REDLOCK_NODE(node);
        step->round = bytes->round;
        step->heals = bytes->operation == REDLOCK_OP_HEAL;
        memcpy(step->token, bytes->token, SIM_TOKEN_SIZE);
    }
}

void sim_spec_holds(struct sim_client *client, int64_t validity_ms) {
    const struct sim_world *world = client->world;
    struct sim_spec_step *step = validity_ms == 0 ? NULL : add_of(client, SIM_SPEC_HOLDS, world->now_ns);
    if (step != NULL) {
        const int64_t local_ns = sim_clock_local(&client->clock, world->now_ns) + validity_ms * SIM_MS;
        step->until_ns = sim_clock_true(&client->clock, local_ns);
    }
}

void sim_spec_gave_up(struct sim_client *client) {
    (void)add_of(client, SIM_SPEC_GIVE_UP, client->stepping ? client->step_ns : client->world->now_ns);
}

void sim_spec_restarted(struct sim_world *world, unsigned node) {
    struct sim_spec_step *step =
        world->profile.trust == SIM_TRUSTED ? NULL : add(world, SIM_SPEC_RESTART, world->now_ns);
    if (step != NULL) {
        step->nodes = REDLOCK_NODE(node);
    }
}

static int by_time(const void *left, const void *right) {
    const struct sim_spec_step *a = left, *b = right;
    return a->at_ns != b->at_ns ? (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns)
                                : (a->order > b->order) - (a->order < b->order);
}

/* <<tick, what, client, node or tick>> */
static void print(const struct sim_spec_step *step, const char *what, unsigned client, int64_t number) {
    printf("<<%lld,\"%s\",\"%c\",%lld>>,\n", (long long)(step->at_ns / SIM_MS), what, 'A' + (int)client,
           (long long)number);
}

/* Whether the heal sets the key of this node. */
static bool is_set(const struct sim_spec *spec, unsigned from, unsigned node) {
    const struct sim_spec_step *heal = &spec->steps[from];
    for (unsigned i = from + 1; i < spec->count; i++) {
        const struct sim_spec_step *step = &spec->steps[i];
        if (step->kind == SIM_SPEC_SET && step->heals && step->nodes == REDLOCK_NODE(node) &&
            step->round == heal->round && sim_token_is(step->token, heal->token)) {
            return true;
        }
    }
    return false;
}

/* What happens under a token that its client has given up is no step of the specification. */
static void write_step(const struct sim_spec *spec, unsigned index, struct attempt *attempt) {
    const struct sim_spec_step *step = &spec->steps[index];
    const bool is_own = attempt->is_open && sim_token_is(step->token, attempt->token);
    const bool is_round = is_own && attempt->extends && step->round == attempt->round;
    const int node = step->nodes == 0 ? 0 : __builtin_ctz(step->nodes);
    switch (step->kind) {
    case SIM_SPEC_BEGIN:
        if (!is_own) {
            *attempt = (struct attempt){.is_open = true};
            memcpy(attempt->token, step->token, SIM_TOKEN_SIZE);
            print(step, "begin", step->client, 0);
        }
        break;
    case SIM_SPEC_SET:
        if (is_own) {
            print(step, "set", step->client, node);
        }
        break;
    case SIM_SPEC_EXTEND:
        if (is_own && !is_round) {
            attempt->extends = true;
            attempt->round = step->round;
            print(step, "extend", step->client, 0);
        }
        break;
    case SIM_SPEC_EXTENDED:
        if (is_round) {
            print(step, "extended", step->client, node);
        }
        break;
    case SIM_SPEC_HEAL:
        for (unsigned i = 0; is_own && i < SIM_SPEC_NODES; i++) {
            if ((step->nodes & REDLOCK_NODE(i)) != 0 && is_set(spec, index, i)) {
                print(step, "heal", step->client, i);
            }
        }
        break;
    case SIM_SPEC_HOLDS:
        print(step, "holds", step->client, (step->until_ns - 1) / SIM_MS);
        break;
    case SIM_SPEC_GIVE_UP:
        if (is_own || (attempt->is_open && step->token[0] == '\0')) {
            attempt->is_open = false;
            print(step, "give up", step->client, 0);
        }
        break;
    case SIM_SPEC_RESTART:
        print(step, "restart", 0, node);
        for (unsigned i = 0; i < SIM_SPEC_CLIENTS; i++) {
            print(step, "connect", i, node);
        }
        break;
    }
}

void sim_spec_write(struct sim_world *world) {
    struct sim_spec *spec = &world->spec;
    struct attempt attempts[SIM_CLIENTS_MAX] = {0};
    qsort(spec->steps, spec->count, sizeof spec->steps[0], by_time);
    printf("[seed |-> %llu, steps |-> <<\n", (unsigned long long)world->seed);
    /* A client that was descheduled may have done something later. */
    for (unsigned i = 0; i < spec->count && spec->steps[i].at_ns <= world->profile.active_ns; i++) {
        write_step(spec, i, &attempts[spec->steps[i].client]);
    }
    printf("<<%lld,\"end\",\"A\",0>> >>],\n", (long long)(world->profile.active_ns / SIM_MS));
}
