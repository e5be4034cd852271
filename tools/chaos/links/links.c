/* The links from clients to nodes, as commands to the fault proxy. */
#include "links/links.h"

#include <inttypes.h>
#include <stdio.h>

#include "values/values.h"

bool chaos_links_start(struct chaos_links *links, size_t clients, size_t nodes, const uint16_t *upstream,
                       struct chaos_error *error) {
    uint16_t targets[CHAOS_CLIENTS_MAX * CHAOS_NODES_MAX], ports[CHAOS_CLIENTS_MAX * CHAOS_NODES_MAX];
    char reason[512];
    *links = (struct chaos_links){.nodes = nodes, .clients = clients, .proxy.control = -1};
    if (clients == 0 || clients > CHAOS_CLIENTS_MAX || nodes == 0 || nodes > CHAOS_NODES_MAX) {
        return chaos_fail(
            error, "cannot start the link proxy: there must be 1 to %d clients and 1 to %d nodes, not %zu and %zu",
            CHAOS_CLIENTS_MAX, CHAOS_NODES_MAX, clients, nodes);
    }
    for (size_t i = 0; i < clients * nodes; i++) {
        targets[i] = upstream[i % nodes];
    }
    if (!proxy_child_start(&links->proxy, targets, clients * nodes, ports, reason, sizeof reason)) {
        return chaos_fail(error, "cannot start the link proxy of %zu clients and %zu nodes: %s", clients, nodes,
                          reason);
    }
    for (size_t i = 0; i < clients * nodes; i++) {
        links->ports[i / nodes][i % nodes] = ports[i];
    }
    return true;
}

/* One link's command to the proxy, behind which the link's number stands. False with a sentence. */
static bool ask(struct chaos_links *links, const char *what, size_t client, size_t node, const char *verb,
                const char *rest, struct chaos_error *error) {
    char answer[512] = "there is no such link";
    bool done =
        client < links->clients && node < links->nodes &&
        proxy_child_ask(&links->proxy, answer, sizeof answer, "%s %zu %s", verb, client * links->nodes + node, rest);
    return done ||
           chaos_fail(error, "cannot %s the link from client %zu to node %zu: %s", what, client + 1, node + 1, answer);
}

bool chaos_links_set(struct chaos_links *links, size_t client, size_t node, const struct chaos_link_rule *rule,
                     struct chaos_error *error) {
    const char *rest = TOOL_TEXT(
        160, "requests hold %d replies hold %d both delay_us %" PRId64 " jitter_us %" PRId64 " bytes_per_s %" PRId64,
        rule->hold_requests, rule->hold_replies, rule->delay_us, rule->jitter_us, rule->bytes_per_s);
    return ask(links, "change", client, node, "set", rest, error);
}

bool chaos_links_silence(struct chaos_links *links, size_t client, size_t node, bool silent,
                         struct chaos_error *error) {
    return ask(links, "silence", client, node, "treat", silent ? "freeze" : "thaw", error);
}

bool chaos_links_cut(struct chaos_links *links, size_t client, size_t node, struct chaos_error *error) {
    return ask(links, "cut", client, node, "cut", "rst rst", error);
}

void chaos_links_stop(struct chaos_links *links) {
    proxy_child_stop(&links->proxy);
}
