/* The checkers of locks that lie idle: the dead in line keep no lock from the living, and nobody
 * who waits is woken by a refresh alone. */
#include "parts.h"

/* A lock may be left free for 50 ms. Then those who are not the first look within 80 ms. What they
 * find costs round trips, and so does the place of who comes meanwhile. */
#define BOUND_NS      (150 * SIM_MS)
#define BOUND_TRAVELS 20
/* Who dies while it leaves the lock free tells nobody: a refresh finds it. */
#define LEFT_NS    (50 * SIM_MS)
#define REFRESH_NS (2500 * SIM_MS)
/* Of the time in which nobody runs late: a retry delay, and a node timeout. */
#define HICCUP_NS (250 * SIM_MS)

/* Whether somebody is in line at the node who is alive, and whom it can tell. */
static bool has_living(struct sim_world *world, unsigned node, unsigned resource) {
    const struct sim_node *at = &world->nodes[node];
    const struct fake_key *queue = sim_key_at(world, node, resource, ":wait");
    for (unsigned i = 0; queue != NULL && i < at->fake.part_count; i++) {
        char token[SIM_TOKEN_SIZE];
        sim_token_set(token, at->fake.parts[i].token, at->fake.parts[i].token_size);
        if (at->fake.parts[i].set == queue->id && sim_name(token)[0] == 'c' &&
            at->heard_gen[sim_name(token)[1] - '0'] != 0) {
            return true;
        }
    }
    return false;
}

/* For how long the lock may lie idle. */
static int64_t bound_ns(const struct sim_world *world, unsigned resource) {
    const int64_t travels_ns = BOUND_TRAVELS * world->profile.delay_max_ns;
    const int64_t crashed_after_ns = world->crashed_ns - world->idle_ns[resource];
    const bool nobody_tells = crashed_after_ns >= 0 && crashed_after_ns <= LEFT_NS + travels_ns;
    return BOUND_NS + travels_ns + (nobody_tells ? REFRESH_NS : 0);
}

void sim_check_free(struct sim_world *world) {
    for (unsigned r = 0; r < world->profile.resources; r++) {
        unsigned idle = 0;
        for (unsigned i = 0; i < world->profile.nodes; i++) {
            sim_node_clock(world, &world->nodes[i]);
            const struct fake_key *lock = sim_key_at(world, i, r, "");
            idle += lock == NULL && has_living(world, i, r);
        }
        if (idle <= world->profile.nodes / 2 || world->phase != SIM_ACTIVE) {
            world->idle_ns[r] = 0;
        } else if (world->idle_ns[r] == 0) {
            world->idle_ns[r] = world->now_ns;
        } else if (world->now_ns - world->idle_ns[r] > bound_ns(world, r)) {
            sim_violation(world, "idle", "'%s' is free for %.3f ms at %u nodes beside somebody who waits for it",
                          sim_resource_name(r), (double)(world->now_ns - world->idle_ns[r]) / 1e6, idle);
        }
    }
}

/* Who has the lock and knows, and who wants it: to read, or alone. */
struct users {
    bool read, alone, want_to_read, want_it_alone;
};

static struct users users_of(const struct sim_world *world) {
    struct users users = {0};
    for (unsigned i = 0; i < world->profile.clients; i++) {
        for (unsigned k = 0; k < world->profile.slots; k++) {
            const struct sim_slot *slot = &world->clients[i].slots[k];
            users.read |= slot->lease != NULL && slot->lease->reads;
            users.alone |= slot->lease != NULL && !slot->lease->reads;
            users.want_to_read |= slot->acquiring != NULL && slot->acquiring->reads;
            users.want_it_alone |= slot->acquiring != NULL && !slot->acquiring->reads;
        }
    }
    return users;
}

/* Whether somebody could have it now who has not. Behind others who read, only those who read, and
 * only if nobody waits who may be before them. */
static bool is_idle(const struct users *users) {
    return !users->alone &&
           (users->read ? users->want_to_read && !users->want_it_alone : users->want_to_read || users->want_it_alone);
}

static void trace_waiter(struct sim_world *world, const struct sim_client *client, const struct redlock_lease *lease) {
    const struct redlock_grants *grants = lease->core.grants;
    const int64_t now_ns = sim_clock_local(&client->clock, world->now_ns);
    const bool looks = grants->look_ns < grants->refresh_ns, asks = grants->ask_ns < grants->refresh_ns;
    SIM_TRACE(world, "client %u, %.8s, %s: granted by %#x, answered by %#x of %#x%s; waits for %s, %.3f ms more",
              client->index, sim_name(redlock_lease_token(lease)),
              lease->core.state == REDLOCK_LEASE_QUEUED ? "queued" : "not queued", grants->granted, grants->fresh,
              lease->core.votes.asked, grants->behind ? ", behind" : "",
              looks  ? "a look"
              : asks ? "its time to ask"
                     : "a refresh",
              (double)(lease->core.next_try_ns - now_ns) / 1e6);
}

/* Who waits for what. */
static void trace_line(struct sim_world *world) {
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        const struct fake_key *lock = sim_key_at(world, i, 0, "");
        SIM_TRACE(world, "node %u: %.8s has the lock", i, lock == NULL ? "nobody" : sim_key_name(lock));
    }
    for (unsigned i = 0; i < world->profile.clients; i++) {
        const struct sim_client *client = &world->clients[i];
        REDLOCK_REQUESTERS(owner, client->group, REDLOCK_REQUESTER_LEASE) {
            const struct redlock_lease *lease = (const struct redlock_lease *)owner;
            if (lease->waiting != NULL) {
                trace_waiter(world, client, lease);
            }
        }
    }
}

/* Whether all clients run that anybody may need, and a quorum of nodes: the others may be what
 * everybody waits for. */
static bool runs(const struct sim_world *world) {
    unsigned nodes = 0;
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        nodes += world->nodes[i].hung_until_ns <= world->now_ns;
    }
    for (unsigned i = 0; i < world->profile.clients; i++) {
        const struct sim_client *client = &world->clients[i];
        if (client->busy_until_ns > world->now_ns && client->blocked_ns <= world->now_ns) {
            return false;
        }
    }
    return nodes > world->profile.nodes / 2;
}

void sim_check_hiccup(struct sim_world *world) {
    const int64_t since_ns = world->now_ns - world->checked_ns;
    const struct users users = users_of(world);
    world->checked_ns = world->now_ns;
    if (!is_idle(&users) || world->phase != SIM_ACTIVE) {
        world->idle_ns[0] = 0;
    } else if (runs(world)) {
        world->idle_ns[0] += since_ns;
    }
    if (world->idle_ns[0] > HICCUP_NS) {
        trace_line(world);
        sim_violation(world, "hiccup", "nobody has had '%s' for %.3f ms, though somebody waits for it",
                      sim_resource_name(0), (double)world->idle_ns[0] / 1e6);
    }
}
