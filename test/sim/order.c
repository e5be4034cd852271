/* The checker of the order of news: what an observer is told is not older than what it was told
 * before (docs/waiting.md, "Observers"). */
#include "parts.h"

void sim_order_told(struct sim_candidate *candidate, bool is_self) {
    struct sim_world *world = candidate->client->world;
    const unsigned client = candidate->client->index, resource = candidate->resource;
    unsigned count = 0;
    if (is_self) {
        return; /* LEADING was told before */
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
