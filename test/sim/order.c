/* The checker of the order of news: what an observer is told is not older than what it was told
 * before (docs/waiting.md, "Observers"). */
#include <string.h>

#include "parts.h"
#include "wire/push.h"

void sim_order_heard(struct sim_client *client, unsigned node, const struct redlock_announcement *announcement,
                     int64_t said_ns) {
    const unsigned resource = announcement->key[announcement->key_size - 1] == '2';
    struct sim_ear *ear = &client->world->elections.ears[client->index][node][resource];
    if (said_ns < ear->said_ns) {
        return; /* one connection keeps the order */
    }
    struct sim_heard *heard = &ear->heard[ear->count++ % SIM_HEARD_MAX];
    sim_token_set(heard->token, announcement->token_size == 0 ? "" : announcement->token, announcement->token_size);
    heard->at_ns = client->world->now_ns;
    ear->said_ns = said_ns;
}

/* An announcement that came since then, however late. Nobody can know that it is old. */
static bool was_heard(const struct sim_ear *ear, const char *token, int64_t since_ns) {
    bool heard = false;
    for (unsigned i = 0; i < SIM_HEARD_MAX && !heard; i++) {
        heard = i < ear->count && ear->heard[i].at_ns >= since_ns &&
                memcmp(ear->heard[i].token, token, SIM_TOKEN_SIZE) == 0;
    }
    /* More came than are kept. */
    return heard || (ear->count >= SIM_HEARD_MAX && ear->heard[ear->count % SIM_HEARD_MAX].at_ns >= since_ns);
}

void sim_order_told(struct sim_candidate *candidate, bool is_self) {
    struct sim_world *world = candidate->client->world;
    const unsigned client = candidate->client->index, resource = candidate->resource;
    unsigned count = 0;
    if (is_self) {
        return; /* LEADING was told before */
    }
    for (unsigned i = 0; i < sim_nodes_of(world, client); i++) {
        count += sim_has_said(world, i, resource, candidate->known, candidate->told_ns) ||
                 was_heard(&world->elections.ears[client][i][resource], candidate->known, candidate->told_ns);
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
