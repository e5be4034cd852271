/* The world's event queue, its loop, and how a schedule begins. */
#include "parts.h"

#include <assert.h>
#include <stdlib.h>

#define ARENA_SIZE (64u << 20)
#define EVENTS_MAX 600000u
#define SOON_NS    (2 * SIM_MS)

struct sim_world *sim_world_new(void) {
    struct sim_world *world = calloc(1, sizeof *world);
    if (world == NULL) {
        return NULL;
    }
    world->arena = malloc(ARENA_SIZE);
    if (world->arena == NULL) {
        free(world);
        return NULL;
    }
    return world;
}

void sim_world_delete(struct sim_world *world) {
    free(world->soon.due);
    free(world->late.due);
    free(world->pending);
    free(world->vacant);
    free(world->arena);
    free(world);
}

void *sim_arena(struct sim_world *world, size_t size) {
    size_t at = world->arena_used;
    world->arena_used += (size + 15) & ~(size_t)15;
    if (world->arena_used > ARENA_SIZE) {
        sim_violation(world, "budget", "a schedule needs more than %u bytes of messages", ARENA_SIZE);
        world->arena_used = at = 0;
    }
    return world->arena + at;
}

void sim_arena_give_back(struct sim_world *world, const char *end) {
    world->arena_used = ((size_t)(end - world->arena) + 15) & ~(size_t)15;
}

int64_t sim_delay_ns(struct sim_world *world) {
    const struct sim_profile *profile = &world->profile;
    int64_t delay = sim_random_between(&world->random, profile->delay_min_ns, profile->delay_max_ns);
    if (world->phase == SIM_ACTIVE && sim_random_permille(&world->random, profile->spike_permille)) {
        delay += sim_random_between(&world->random, 0, 2 * profile->node_timeout_ms * SIM_MS);
    }
    return delay;
}

/* Without a branch: what it says is a matter of chance. */
static inline bool before(const struct sim_due *a, const struct sim_due *b) {
    return (a->at < b->at) | ((a->at == b->at) & (a->rank < b->rank));
}

static void *resized(void *items, uint32_t count, size_t size) {
    void *resized = realloc(items, count * size);
    if (resized == NULL) {
        abort();
    }
    return resized;
}

/* Twice the room. The new places are free. */
static void grow(struct sim_world *world) {
    const uint32_t old = world->pending_capacity, capacity = old == 0 ? 4096 : 2 * old;
    world->soon.due = resized(world->soon.due, capacity, sizeof world->soon.due[0]);
    world->late.due = resized(world->late.due, capacity, sizeof world->late.due[0]);
    world->pending = resized(world->pending, capacity, sizeof world->pending[0]);
    world->vacant = resized(world->vacant, capacity, sizeof world->vacant[0]);
    for (uint32_t i = old; i < capacity; i++) {
        world->vacant[world->vacant_count++] = i;
    }
    world->pending_capacity = capacity;
}

/* Puts it at i, or above. */
static inline void rise(struct sim_due *heap, uint32_t i, int64_t at, uint64_t rank) {
    for (; i > 0; i = (i - 1) / 2) {
        const struct sim_due *above = &heap[(i - 1) / 2];
        if (above->at < at || (above->at == at && above->rank < rank)) {
            break;
        }
        heap[i].at = above->at;
        heap[i].rank = above->rank;
    }
    heap[i].at = at;
    heap[i].rank = rank;
}

struct sim_event *sim_place(struct sim_world *world, int64_t at, uint32_t order) {
    if (world->vacant_count == 0) {
        grow(world);
    }
    struct sim_heap *heap = at - world->now_ns < SOON_NS ? &world->soon : &world->late;
    const uint32_t event = world->vacant[--world->vacant_count];
    rise(heap->due, heap->count++, at, (uint64_t)order << 32 | event);
    return &world->pending[event];
}

/* The gap at the top sinks to the bottom: what was last belongs near there. */
static void drop_first(struct sim_heap *heap) {
    struct sim_due *due = heap->due;
    const uint32_t count = --heap->count;
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && before(&due[child + 1], &due[child]);
        due[i].at = due[child].at;
        due[i].rank = due[child].rank;
    }
    rise(due, i, due[count].at, due[count].rank);
}

/* The next event, and when it is due. */
static struct sim_event pop(struct sim_world *world, int64_t *at) {
    struct sim_heap *soon = &world->soon, *late = &world->late;
    const bool is_soon = soon->count > 0 && (late->count == 0 || before(&soon->due[0], &late->due[0]));
    struct sim_heap *heap = is_soon ? soon : late;
    const uint32_t event = (uint32_t)heap->due[0].rank;
    *at = heap->due[0].at;
    drop_first(heap);
    world->vacant[world->vacant_count++] = event;
    return world->pending[event];
}

/* A SUBSCRIBE waits for the node, and for the way to it. */
static bool is_held_up(struct sim_world *world, const struct sim_event *event) {
    const struct sim_node *node = &world->nodes[event->node];
    const int64_t cut_ns = world->clients[event->client].links[event->node].up_cut_ns;
    const int64_t until_ns = node->hung_until_ns > cut_ns ? node->hung_until_ns : cut_ns;
    if (until_ns <= world->now_ns) {
        return false;
    }
    sim_put_off(world, *event, until_ns);
    return true;
}

/* Whether the event must wait for a process that does not run now. If so, delays it. */
static bool waits(struct sim_world *world, const struct sim_event *event) {
    struct sim_client *client = &world->clients[event->client];
    bool keeps_order;
    switch ((enum sim_event_kind)event->kind) {
    case SIM_REPLY:
    case SIM_TIMEOUT:
    case SIM_BROKEN:
    case SIM_RECONNECT:
    case SIM_SPARE:
    case SIM_READY:
    case SIM_UNBLOCK:
    case SIM_WAKE:
    case SIM_USER:
    case SIM_LISTEN:
    case SIM_PUSH:
    case SIM_HEARD:
    case SIM_DEAF:
    case SIM_RESUBSCRIBE:
        if (client->busy_until_ns <= world->now_ns) {
            return false;
        }
        /* Replies keep their order. After a pause, chance decides whether a timer or a socket comes
         * first. */
        keeps_order = event->kind == SIM_REPLY || event->kind == SIM_LISTEN || event->kind == SIM_PUSH ||
                      event->kind == SIM_HEARD;
        if (world->profile.late_max_ms > 0) { /* what has come is read before a timeout */
            sim_put_off(world, *event, client->busy_until_ns + !keeps_order);
            return true;
        }
        sim_put_off(world, *event, client->busy_until_ns + (keeps_order ? 0 : sim_random_below(&world->random, 2)));
        return true;
    case SIM_SUBSCRIBE:
    case SIM_HEAR:
    case SIM_LEAVE:
        return is_held_up(world, event);
    case SIM_ARRIVE:
    case SIM_HANDSHAKE: {
        struct sim_node *node = &world->nodes[event->node];
        const struct sim_link *link = &client->links[event->node];
        int64_t until = node->hung_until_ns > link->up_cut_ns ? node->hung_until_ns : link->up_cut_ns;
        if (event->gen != link->gen && node->late_ns[event->client] > until) {
            until = node->late_ns[event->client];
        }
        if (until <= world->now_ns) {
            return false;
        }
        /* RST at our end: if all goes well, the network never delivers what it has not delivered
         * yet (R9). */
        if (link->up_cut_ns > world->now_ns && event->gen != link->gen && world->profile.may_kill) {
            if (node->killed_gen[event->client] <= event->gen) {
                node->killed_gen[event->client] = event->gen + 1;
            }
            return true;
        }
        sim_put_off(world, *event, until);
        return true;
    }
    default:
        return false;
    }
}

static void handle(struct sim_world *world, const struct sim_event *event) {
    switch ((enum sim_event_kind)event->kind) {
    case SIM_ARRIVE:
        sim_link_arrive(world, event);
        break;
    case SIM_REPLY:
        sim_link_reply(world, event);
        break;
    case SIM_TIMEOUT:
        sim_link_timeout(world, event);
        break;
    case SIM_BROKEN:
        sim_link_broken(world, event);
        break;
    case SIM_RECONNECT:
        sim_link_reconnect(world, event);
        break;
    case SIM_HANDSHAKE:
        sim_link_handshake(world, event);
        break;
    case SIM_SPARE:
        sim_link_spare(world, event);
        break;
    case SIM_READY:
        sim_link_ready(world, event);
        break;
    case SIM_UNBLOCK:
        sim_link_unblock(world, event);
        break;
    case SIM_SUBSCRIBE:
        sim_subscribe_event(world, event);
        break;
    case SIM_LISTEN:
        sim_listening_event(world, event);
        break;
    case SIM_PUSH:
        sim_push_event(world, event);
        break;
    case SIM_HEAR:
        sim_hear_event(world, event);
        break;
    case SIM_HEARD:
        sim_heard_event(world, event);
        break;
    case SIM_LEAVE:
        sim_leave_event(world, event);
        break;
    case SIM_DEAF:
        sim_deaf_event(world, event);
        break;
    case SIM_UNHEARD:
        sim_unheard_event(world, event);
        break;
    case SIM_RESUBSCRIBE:
        sim_resubscribe_event(world, event);
        break;
    case SIM_FORGE:
        sim_forge_event(world, event);
        break;
    case SIM_WAKE:
        sim_client_wake(world, event);
        break;
    case SIM_USER:
        sim_user_event(world, event);
        break;
    case SIM_AMBUSH:
        sim_ambush_event(world);
        break;
    case SIM_FAULT:
        sim_fault_event(world);
        break;
    case SIM_RESTART:
        sim_restart_event(world, event);
        break;
    case SIM_MODE:
        sim_mode_event(world, event);
        break;
    case SIM_CHECK:
        break;
    case SIM_HEAL:
        sim_heal_event(world);
        break;
    case SIM_STEADY:
        sim_steady_event(world);
        break;
    case SIM_LEFTOVER:
        sim_leftover_event(world);
        break;
    case SIM_PROBE:
        sim_probe_event(world);
        break;
    }
}

/* Whether this is a step of a client alone. */
static bool is_of_client(const struct sim_event *event) {
    return event->kind == SIM_REPLY || event->kind == SIM_TIMEOUT || event->kind == SIM_WAKE ||
           event->kind == SIM_CHECK;
}

static void reset(struct sim_world *world, uint64_t seed) {
    world->seed = seed;
    world->random.state = seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
    world->now_ns = 0;
    world->phase = SIM_ACTIVE;
    world->order = 0;
    world->soon.count = world->late.count = world->vacant_count = 0;
    for (uint32_t i = 0; i < world->pending_capacity; i++) {
        world->vacant[world->vacant_count++] = i;
    }
    world->arena_used = 0;
    world->lease_count = world->call_count = world->span_count = 0;
    world->probed = world->probes = world->users = world->forgotten_count = 0;
    world->place_count = 0;
    world->dead_ns = world->crashed_ns = 0;
    memset(world->idle_ns, 0, sizeof world->idle_ns);
    world->checked_ns = 0;
    for (unsigned i = 0; i < SIM_CLIENTS_MAX; i++) {
        if (world->has_line[i]) {
            memset(world->lines[i], 0, sizeof world->lines[i]);
            world->has_line[i] = false;
        }
    }
    world->elections = (struct sim_elections){.count = 0};
    world->grant_count = world->set_count = world->backing_count = 0;
    world->ask_count = 0;
    sim_spec_begin(world);
    world->events = 0;
    world->changes++;
    world->checker = NULL;
    world->trace_hash = UINT64_C(0xcbf29ce484222325);
}

/* Half of the clocks run at the limit of the drift allowance between a client and a node: 1 %. */
static void set_clock(struct sim_world *world, struct sim_clock *clock) {
    /* A guard allows for 1 % of the time that the client measured; 1.005 over 0.995 is more. */
    int64_t edge = world->control == SIM_CONTROL_SKEW ? 30000 : world->profile.clock_guard ? 4900 : 5000;
    clock->offset_ns = sim_random_between(&world->random, 1, 1000 * 1000 * SIM_MS);
    const int64_t ppm = sim_random_between(&world->random, -edge, edge);
    const bool is_extreme = sim_random_percent(&world->random, 50);
    sim_clock_set_ppm(clock, is_extreme ? (ppm < 0 ? -edge : edge) : ppm);
}

static void begin_node(struct sim_world *world, struct sim_node *node) {
    const struct sim_profile *profile = &world->profile;
    int64_t off_ms = profile->trust == SIM_GUARDED ? 100 : 500000;
    memset(node, 0, offsetof(struct sim_node, fake.parts));
    node->world = world;
    node->fake.publish = sim_publish;
    node->fake.hears = sim_hears;
    node->monitored = (world->seed / 5 >> (node - world->nodes) & 1) != 0;
    node->fake.publish_ctx = node;
    /* What a node refuses takes a round trip more. */
    node->fake.names = sim_names(world) && (profile->calm || (world->seed / 2 >> (node - world->nodes) & 1) == 0);
    node->fake.deletes = sim_deletes(world) && (profile->calm || (world->seed / 3 >> (node - world->nodes) & 1) == 0);
    node->refuses_queue = (profile->refusing >> (node - world->nodes) & 1) != 0;
    node->refuses_observers = (profile->silent >> (node - world->nodes) & 1) != 0;
    set_clock(world, &node->clock);
    node->clock.offset_ns = SIM_WALL_NS + sim_random_between(&world->random, -off_ms, off_ms) * SIM_MS;
    node->stepped_ns = node->righted_ns = -SIM_NEVER / 2;
    node->run = 1;
    node->started_us = (sim_clock_local(&node->clock, 0) - profile->uptime_ns) / 1000;
    if (profile->restart_guard == REDLOCK_RESTART_GUARD_STRICT && !profile->first_boot && profile->uptime_ns == 0) {
        sim_quarantine_begin(world, node); /* it may have restarted just now */
    }
}

/* If no counter is lost, any wall clock will do. Else the clock alone must put a token above all
 * tokens returned before its request, so the clocks of two clients may differ by less than the
 * shortest round trip. */
static int64_t draw_wall_off_ns(struct sim_world *world) {
    const struct sim_profile *profile = &world->profile;
    const int64_t hour_ns = 3600 * 1000 * SIM_MS;
    if (profile->waking) { /* nobody asks for a fencing token */
        return sim_random_between(&world->random, -hour_ns, hour_ns);
    }
    bool right = profile->counters_die && world->control != SIM_CONTROL_WRONG_AND_LOST;
    int64_t most_ns = right                                    ? profile->delay_min_ns / 4
                      : sim_random_percent(&world->random, 50) ? SIM_MS
                                                               : 5000 * SIM_MS;
    most_ns = profile->storm ? 100000 * SIM_MS : most_ns;
    return sim_random_between(&world->random, -most_ns, most_ns);
}

static void begin(struct sim_world *world) {
    const struct sim_profile *profile = &world->profile;
    static const char *const restarts[] = {"", ", restart guard observed", ", restart guard strict"};
    SIM_TRACE(world, "seed %llu: %u nodes, %u clients, %u resources%s; node timeout %lld ms, ttl %lld to %lld ms",
              (unsigned long long)world->seed, profile->nodes, profile->clients, profile->resources,
              profile->one_hung ? ", node 0 hangs"
              : profile->calm   ? ", calm"
                                : "",
              (long long)profile->node_timeout_ms, (long long)profile->ttl_min_ms, (long long)profile->ttl_max_ms);
    SIM_TRACE(world, "%s%s%s%s, ttl_max %lld ms; %s%s, lock delay up to %lld ms",
              profile->trust == SIM_TRUSTED   ? "nodes are trusted"
              : profile->trust == SIM_GUARDED ? "nodes are guarded"
                                              : "nodes do as they like",
              restarts[profile->restart_guard], profile->first_boot ? ", first boot" : "",
              profile->clock_guard ? ", clock guard" : "", (long long)profile->guarded_ttl_max_ms,
              profile->fencing ? "fencing" : "no fencing", profile->counters_die ? "" : ", wall clocks are wrong",
              (long long)profile->lock_delay_max_ms);
    for (unsigned i = 0; i < profile->nodes; i++) {
        begin_node(world, &world->nodes[i]);
    }
    for (unsigned i = 0; i < profile->clients; i++) {
        set_clock(world, &world->clients[i].clock);
        world->clients[i].wall_off_ns = draw_wall_off_ns(world);
        world->clients[i].unopened_ns = (profile->unopened >> i & 1) != 0 ? SIM_NEVER : 0;
        world->clients[i].is_old = (profile->old_clients >> i & 1) != 0;
        if (!sim_client_open(world, i)) {
            sim_violation(world, "memory", "client %u could not be made", i);
            return;
        }
        for (unsigned slot = 0; slot < profile->slots; slot++) {
            sim_push(world, sim_random_between(&world->random, 0, profile->user_gap_ns),
                     (struct sim_event){.kind = SIM_USER, .client = (uint8_t)i, .entry = slot});
        }
    }
    if (profile->one_hung) {
        world->nodes[0].hung_until_ns = profile->active_ns;
    }
    if (profile->faults != 0) {
        sim_push(world, sim_random_between(&world->random, 0, profile->fault_gap_ns),
                 (struct sim_event){.kind = SIM_FAULT});
    }
    sim_push(world, profile->active_ns, (struct sim_event){.kind = SIM_HEAL});
    sim_forger_begin(world);
}

static bool all_gone(const struct sim_world *world) {
    for (unsigned i = 0; i < world->profile.clients; i++) {
        if (world->clients[i].group != NULL) {
            return false;
        }
    }
    return true;
}

bool sim_world_run(struct sim_world *world, uint64_t seed) {
    reset(world, seed);
    sim_profile_draw(world);
    for (unsigned i = 0; i < world->profile.clients; i++) {
        world->clients[i].group = NULL;
    }
    begin(world);
    while (world->checker == NULL && world->soon.count + world->late.count > 0 && !all_gone(world)) {
        int64_t at;
        const struct sim_event event = pop(world, &at);
        assert(at >= world->now_ns);
        world->now_ns = at;
        if (waits(world, &event)) {
            continue;
        }
        world->changes += !is_of_client(&event);
        handle(world, &event);
        if (world->checker == NULL) {
            sim_check(world);
        }
        if (++world->events > EVENTS_MAX) {
            sim_violation(world, "budget", "more than %u events: something spins", EVENTS_MAX);
        }
    }
    if (world->checker == NULL) {
        sim_check_end(world);
    }
    world->total_events += world->events;
    for (unsigned i = 0; i < world->profile.clients; i++) {
        sim_client_close(&world->clients[i]);
    }
    return world->checker == NULL;
}
