/* The checkers of the guards: no key is set on a run that may have forgotten a lock which still
 * stands, and no vote is asked of a node whose clock jumped (R18; docs/protocols.md). */
#include "parts.h"

/* Any client counts ttl_max and its drift from a moment after the server's start. By true time that
 * is longer than ttl_max. */
void sim_quarantine_begin(struct sim_world *world, struct sim_node *node) {
    const struct sim_profile *profile = &world->profile;
    /* Where the clock was behind, nobody can trust the uptime (docs/safety.md). */
    if (profile->trust == SIM_GUARDED && profile->forgets_at_once && node->stepped.off_ns >= 0) {
        node->quarantine_ns = world->now_ns + profile->guarded_ttl_max_ms * SIM_MS;
    }
}

void sim_quarantine_look(struct sim_world *world, unsigned node, unsigned resource, char holder[SIM_TOKEN_SIZE]) {
    const struct fake_key *lock = sim_key_at(world, node, resource, "");
    sim_token_set(holder, lock == NULL ? "" : lock->value, lock == NULL ? 0 : lock->value_size);
}

/* Whether the request asks for a vote, or for a place in line. */
static bool wants_vote(const struct sim_bytes *bytes) {
    return bytes->operation == REDLOCK_OP_ACQUIRE || bytes->operation == REDLOCK_OP_WAIT ||
           bytes->operation == REDLOCK_OP_HEAL;
}

void sim_quarantine_check(struct sim_world *world, unsigned node, const struct sim_bytes *bytes,
                          const char before[SIM_TOKEN_SIZE]) {
    char after[SIM_TOKEN_SIZE];
    const double left_ms = (double)(world->nodes[node].quarantine_ns - world->now_ns) / 1e6;
    if (left_ms <= 0) {
        return;
    }
    sim_quarantine_look(world, node, bytes->resource, after);
    if (after[0] != '\0' && !sim_token_is(after, before)) {
        sim_violation(world, "quarantine", "node %u sets '%s' to %.8s at a request of %.8s, in quarantine for %.3f ms",
                      node, sim_resource_name(bytes->resource), sim_name(after), sim_name(bytes->token), left_ms);
    } else if (wants_vote(bytes)) {
        sim_violation(world, "quarantine", "node %u is asked for '%s' by %.8s, in quarantine for %.3f ms", node,
                      sim_resource_name(bytes->resource), sim_name(bytes->token), left_ms);
    }
}

/* A client that has read a clock before and after a step knows of it. It counts ttl_max and its
 * drift from a moment after the step, by true time longer than ttl_max. */
void sim_jumped_check(const struct sim_client *client, uint32_t nodes, const struct sim_bytes *bytes,
                      enum redlock_handing handing) {
    struct sim_world *world = client->world;
    const int64_t now_ns = client->step_ns, for_ns = world->profile.guarded_ttl_max_ms * SIM_MS;
    const bool hands = bytes->operation == REDLOCK_OP_RELEASE && handing != REDLOCK_HAND_NOBODY;
    for (unsigned i = 0; i < sim_nodes_of(world, client->index); i++) {
        const int64_t jumped_ns = client->links[i].jumped_ns;
        if ((nodes & REDLOCK_NODE(i)) != 0 && jumped_ns != 0 && now_ns < jumped_ns + for_ns &&
            (hands || wants_vote(bytes))) {
            sim_violation(
                world, "jumped", "client %u %s '%s' (%.8s) of node %u, which it knows to have jumped %.3f ms ago",
                client->index, hands ? "asks for a handover of" : "asks for", sim_resource_name(bytes->resource),
                sim_name(bytes->token), i, (double)(now_ns - jumped_ns) / 1e6);
        }
    }
}
