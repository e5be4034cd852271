/* The checker of the order of news: what an observer is told is not older than what it was told
 * before (docs/waiting.md, "Observers"). */
#include "parts.h"

static bool has_quorum(const struct sim_candidate *candidate) {
    const struct sim_world *world = candidate->client->world;
    const unsigned client = candidate->client->index;
    unsigned count = 0;
    for (unsigned i = 0; i < sim_nodes_of(world, client); i++) {
        const struct sim_word *word = &world->elections.offices[candidate->resource].words[i];
        count += sim_token_is(candidate->known, word->token);
    }
    return candidate->known[0] != '\0' && count >= sim_quorum_of(world, client);
}

void sim_order_follow(struct sim_world *world, unsigned resource, const struct sim_word *word, bool is_back) {
    for (unsigned i = 0; i < world->elections.count; i++) {
        struct sim_candidate *candidate = &world->elections.candidates[i];
        if (candidate->resource == resource && candidate->reigns) {
            candidate->reigns = has_quorum(candidate) && !(is_back && sim_token_is(candidate->known, word->token));
        }
    }
}

void sim_order_told(struct sim_candidate *candidate, bool is_self) {
    struct sim_world *world = candidate->client->world;
    const unsigned client = candidate->client->index, resource = candidate->resource;
    unsigned count = 0;
    const bool reigned = candidate->reigns;
    candidate->reigns = has_quorum(candidate);
    if (is_self) {
        return; /* LEADING was told before */
    }
    if (candidate->known[0] == '\0' && reigned && world->profile.trust == SIM_TRUSTED) {
        sim_violation(world, "reigns",
                      "client %u/%u is told that nobody leads '%s', but whom it was told of %.3f ms ago has had a "
                      "quorum of nodes since",
                      client, candidate->slot, sim_resource_name(resource),
                      (double)(world->now_ns - candidate->told_ns) / 1e6);
    }
    for (unsigned i = 0; i < sim_nodes_of(world, client); i++) {
        count += sim_has_said(world, i, resource, candidate->known, candidate->told_ns);
    }
    if (candidate->told_ns >= 0 && count < sim_quorum_of(world, client)) {
        sim_violation(world, "backward",
                      "client %u/%u is told that %.8s leads '%s', but since the last news, %.3f ms ago, only %u nodes "
                      "have said so",
                      client, candidate->slot, candidate->known[0] == '\0' ? "nobody" : sim_name(candidate->known),
                      sim_resource_name(resource), (double)(world->now_ns - candidate->told_ns) / 1e6, count);
    }
    candidate->told_ns = world->now_ns;
}
