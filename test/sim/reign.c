/* The checkers of elections: one leader at most, one before long, the next in line, and known. */
#include "parts.h"

/* What each node says of each lock. */

static bool is_lock(const struct sim_world *world, const struct fake_key *key, unsigned resource) {
    const char *const name = sim_resource_name(resource);
    const size_t prefix = world->seed % 3 == 0 ? 5 : 0, size = strlen(name);
    return key->used && key->name_size == prefix + size && memcmp(key->name + prefix, name, size) == 0;
}

static const struct fake_key *lock_at(const struct sim_world *world, unsigned node, unsigned resource) {
    const struct fake_node *fake = &world->nodes[node].fake;
    for (unsigned k = 0; k < fake->key_count; k++) {
        if (is_lock(world, &fake->keys[k], resource) && fake->keys[k].gone_ns > world->now_ns) {
            return &fake->keys[k];
        }
    }
    return NULL;
}

/* Nobody announces that a key is set again, where it was free before. A node that is free is asked
 * so often. */
#define FREE_NS (2600 * SIM_MS)

static bool is_back(const struct sim_word *word, const char token[SIM_TOKEN_SIZE]) {
    return token[0] != '\0' && word->token[0] == '\0' && word->past_count > 0 &&
           sim_token_is(word->past[(word->past_count - 1) % SIM_PAST_MAX].token, token);
}

static void follow_words(struct sim_world *world) {
    for (unsigned r = 0; r < world->profile.resources; r++) {
        for (unsigned i = 0; i < world->profile.nodes; i++) {
            struct sim_word *word = &world->elections.offices[r].words[i];
            const struct fake_key *lock = lock_at(world, i, r);
            char token[SIM_TOKEN_SIZE] = "";
            if (lock != NULL) {
                sim_token_set(token, lock->value, lock->value_size);
            }
            if (memcmp(token, word->token, sizeof token) != 0) {
                const bool back = is_back(word, token);
                const unsigned at = word->past_count++ % SIM_PAST_MAX;
                memcpy(word->past[at].token, word->token, sizeof token);
                word->past[at].until_ns = world->now_ns;
                memcpy(word->token, token, sizeof token);
                word->since_ns = world->now_ns;
                word->since_ns += token[0] != '\0' && word->announced_ns != world->now_ns ? FREE_NS : 0;
                sim_order_follow(world, r, word, back);
            }
        }
    }
}

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Until when something keeps the client from hearing this node, or from asking it; 0: nothing. */
static int64_t disturbed_until_ns(const struct sim_world *world, unsigned client, unsigned node) {
    const struct sim_client *of = &world->clients[client];
    const struct sim_link *link = &of->links[node];
    const struct sim_node *at = &world->nodes[node];
    int64_t until_ns = later(later(at->hung_until_ns, at->strange_until_ns), later(link->up_cut_ns, link->down_cut_ns));
    until_ns = later(until_ns, later(later(link->up_ns, link->down_ns), later(link->blocked_ns, link->mute_ns)));
    until_ns = later(until_ns, later(link->subscription.down_ns, later(of->busy_until_ns, of->ahead_until_ns)));
    if (until_ns > world->now_ns + 2 * world->profile.delay_max_ns) {
        return until_ns;
    }
    return at->down || at->fake.mode != FAKE_NORMAL || link->state != SIM_LINK_READY ? world->now_ns : 0;
}

static void follow_disturbances(struct sim_world *world) {
    struct sim_elections *all = &world->elections;
    for (unsigned c = 0; c < world->profile.clients; c++) {
        for (unsigned i = 0; i < sim_nodes_of(world, c) && world->clients[c].group != NULL; i++) {
            const int64_t until_ns = disturbed_until_ns(world, c, i);
            if (until_ns != 0 || all->disturbed[c][i]) {
                all->disturbed_ns[c][i] = later(world->now_ns, until_ns);
            }
            all->disturbed[c][i] = until_ns != 0;
        }
    }
}

/* Who leads. */

bool sim_is_leading(const struct sim_candidate *candidate) {
    const struct sim_client *client = candidate->client;
    return candidate->leading && client->group != NULL && client->ahead_until_ns <= client->world->now_ns &&
           sim_lease_validity_ms(client->world, client->slots[candidate->slot].lease) > 0;
}

/* Terms end for good. */
static void check_term(const struct sim_candidate *candidate) {
    struct sim_client *client = candidate->client;
    client->probing = true;
    const uint64_t term = candidate->term - candidate->leading;
    const int64_t validity_ms = redlock_election_validity_ms(candidate->election, term);
    client->probing = false;
    if (validity_ms != 0) {
        sim_violation(client->world, "leaders", "client %u/%u: term %llu is over, but valid for %lld ms", client->index,
                      candidate->slot, (unsigned long long)term, (long long)validity_ms);
    }
}

static void check_leaders(struct sim_world *world) {
    const struct sim_candidate *leaders[SIM_RESOURCES_MAX] = {NULL};
    for (unsigned i = 0; i < world->elections.count; i++) {
        const struct sim_candidate *candidate = &world->elections.candidates[i];
        if (candidate->election != NULL && candidate->term != 0 && candidate->client->ahead_until_ns <= world->now_ns) {
            check_term(candidate);
        }
        if (!sim_is_leading(candidate)) {
            continue;
        }
        const struct sim_candidate *other = leaders[candidate->resource];
        if (other != NULL) {
            sim_violation(world, "leaders", "clients %u/%u and %u/%u both lead '%s'", other->client->index, other->slot,
                          candidate->client->index, candidate->slot, sim_resource_name(candidate->resource));
        }
        leaders[candidate->resource] = candidate;
    }
}

static unsigned count_dead(const struct sim_world *world) {
    unsigned dead = 0;
    for (unsigned i = 0; i < world->profile.clients; i++) {
        dead += world->clients[i].crashed;
    }
    return dead;
}

/* If nothing fails but candidates, each of which may have been handed the lock as it died. */
static int64_t vacancy_ns(const struct sim_world *world) {
    const struct sim_profile *profile = &world->profile;
    const int64_t term_ms = profile->ttl_max_ms * 102 / 100 + profile->lock_delay_max_ms;
    const int64_t quarantine_ms = sim_is_guarded(world) ? profile->guarded_ttl_max_ms * 102 / 100 : 0;
    return (term_ms * (1 + count_dead(world)) + quarantine_ms + 2600 + 4 * profile->node_timeout_ms) * SIM_MS;
}

static void check_vacancies(struct sim_world *world) {
    bool is_led[SIM_RESOURCES_MAX] = {false}, is_wanted[SIM_RESOURCES_MAX] = {false};
    for (unsigned i = 0; i < world->elections.count; i++) {
        const struct sim_candidate *candidate = &world->elections.candidates[i];
        is_led[candidate->resource] |= sim_is_leading(candidate);
        is_wanted[candidate->resource] |=
            sim_is_told(candidate) && candidate->wants && !candidate->resigning && candidate->wanted_ns < world->now_ns;
    }
    for (unsigned r = 0; r < world->profile.resources; r++) {
        struct sim_office *office = &world->elections.offices[r];
        if (is_led[r] || !is_wanted[r]) {
            office->led_ns = world->now_ns;
        } else if (world->now_ns - office->led_ns > vacancy_ns(world)) {
            sim_violation(world, "elected", "nobody leads '%s' since %.3f ms, though nothing failed",
                          sim_resource_name(r), (double)(world->now_ns - office->led_ns) / 1e6);
        }
    }
}

/* The next in line. */

/* One message, a look at the clock under its guard, and the rounds of a fencing token. */
static int64_t succession_ns(const struct sim_world *world) {
    const struct sim_profile *profile = &world->profile;
    return (2 + 2 * profile->clock_guard + 6 * profile->fencing) * profile->delay_max_ns + 2 * SIM_MS;
}

static bool is_standing(const struct sim_world *world, unsigned client, unsigned resource) {
    for (unsigned i = 0; i < world->elections.count; i++) {
        const struct sim_candidate *candidate = &world->elections.candidates[i];
        if (candidate->client->index == client && candidate->resource == resource && sim_is_told(candidate) &&
            candidate->wants && !candidate->resigning && !candidate->leading) {
            return true;
        }
    }
    return false;
}

/* Whether the candidate has this node, and whoever is first in line there can be told. */
static bool is_ready(struct sim_world *world, const struct sim_candidate *candidate, unsigned node,
                     const char first[SIM_TOKEN_SIZE]) {
    const struct fake_key *lock = lock_at(world, node, candidate->resource);
    const unsigned client = (unsigned)(sim_name(first)[1] - '0');
    const struct sim_link *link = &world->clients[client].links[node];
    return lock != NULL && sim_key_has(lock, candidate->client->slots[candidate->slot].lease->token) &&
           link->subscription.told == REDLOCK_LISTENING && world->nodes[node].heard_gen[client] != 0 &&
           sim_line_since(world, node, first) != 0 &&
           sim_line_since(world, node, first) + 4 * world->profile.delay_max_ns < world->now_ns;
}

void sim_reign_ends(const struct sim_candidate *candidate) {
    struct sim_world *world = candidate->client->world;
    struct sim_office *office = &world->elections.offices[candidate->resource];
    const struct sim_lease *lease = candidate->client->slots[candidate->slot].lease;
    char first[SIM_TOKEN_SIZE] = "", other[SIM_TOKEN_SIZE];
    office->filled_ns = 0;
    if (!sim_is_calm(world) || count_dead(world) > 0 ||
        world->now_ns - office->left_ns < 4 * world->profile.delay_max_ns ||
        sim_lease_validity_ms(world, lease) * SIM_MS < 2 * succession_ns(world)) {
        return;
    }
    for (unsigned i = world->profile.one_hung; i < world->profile.nodes; i++) {
        sim_line_first(world, i, candidate->resource, other);
        if (other[0] == '\0' || (first[0] != '\0' && memcmp(first, other, sizeof first) != 0) ||
            !is_ready(world, candidate, i, other)) {
            return;
        }
        memcpy(first, other, sizeof first);
    }
    if (is_standing(world, (unsigned)(sim_name(first)[1] - '0'), candidate->resource)) {
        office->filled_ns = candidate->client->step_ns + succession_ns(world);
    }
}

void sim_reign_begins(struct sim_world *world, unsigned resource) {
    world->elections.offices[resource].filled_ns = 0;
    world->elections.offices[resource].left_ns = world->now_ns;
}

static void check_succession(struct sim_world *world) {
    for (unsigned r = 0; r < world->profile.resources; r++) {
        const struct sim_office *office = &world->elections.offices[r];
        if (office->filled_ns != 0 && world->now_ns > office->filled_ns) {
            sim_violation(
                world, "succession", "the leader of '%s' left %.3f ms ago, and the first in line does not lead",
                sim_resource_name(r), (double)(world->now_ns - office->filled_ns + succession_ns(world)) / 1e6);
        }
    }
}

/* What observers know. */

int64_t sim_news_ns(const struct sim_world *world) {
    const struct sim_profile *profile = &world->profile;
    /* 20 ms until the next question, where hints come fast. */
    return sim_is_calm(world) ? profile->ttl_max_ms * SIM_MS / 100 + 40 * SIM_MS + 8 * profile->delay_max_ns
                              : (10100 + 4 * profile->node_timeout_ms + 50) * SIM_MS;
}

bool sim_has_said(const struct sim_world *world, unsigned node, unsigned resource, const char *token,
                  int64_t since_ns) {
    const struct sim_word *word = &world->elections.offices[resource].words[node];
    bool said = sim_token_is(word->token, token);
    for (unsigned i = 0; i < SIM_PAST_MAX && !said; i++) {
        said = word->past[i].until_ns >= since_ns && sim_token_is(word->past[i].token, token);
    }
    /* It said more than is kept. */
    return said ||
           (word->past_count >= SIM_PAST_MAX && word->past[word->past_count % SIM_PAST_MAX].until_ns >= since_ns);
}

/* If nothing fails, news is not old. */
void sim_check_news(const struct sim_candidate *candidate) {
    struct sim_world *world = candidate->client->world;
    const unsigned client = candidate->client->index;
    const int64_t since_ns = world->now_ns - sim_news_ns(world) - (candidate->known[0] == '\0' ? FREE_NS : 0);
    unsigned count = 0;
    for (unsigned i = 0; i < sim_nodes_of(world, client); i++) {
        count += sim_has_said(world, i, candidate->resource, candidate->known, since_ns);
    }
    if (sim_is_calm(world) && count < sim_quorum_of(world, client)) {
        sim_violation(world, "rumour", "client %u/%u is told that %.8s leads '%s', but only %u nodes say so", client,
                      candidate->slot, candidate->known[0] == '\0' ? "nobody" : sim_name(candidate->known),
                      sim_resource_name(candidate->resource), count);
    }
}

/* The candidate could have heard it from this node by now. */
static bool is_hearable(const struct sim_world *world, const struct sim_candidate *candidate, unsigned node) {
    const unsigned client = candidate->client->index;
    const int64_t before_ns = world->now_ns - sim_news_ns(world);
    return world->elections.offices[candidate->resource].words[node].since_ns < before_ns &&
           world->elections.disturbed_ns[client][node] < before_ns && candidate->begun_ns < before_ns;
}

static unsigned count_hearable(const struct sim_world *world, const struct sim_candidate *candidate,
                               const char token[SIM_TOKEN_SIZE]) {
    unsigned count = 0;
    for (unsigned i = 0; i < sim_nodes_of(world, candidate->client->index); i++) {
        count += sim_token_is(world->elections.offices[candidate->resource].words[i].token, token) &&
                 is_hearable(world, candidate, i);
    }
    return count;
}

static void check_observed(struct sim_world *world, const struct sim_candidate *candidate) {
    const unsigned client = candidate->client->index, quorum = sim_quorum_of(world, client);
    const struct sim_word *words = world->elections.offices[candidate->resource].words;
    for (unsigned i = 0; i < sim_nodes_of(world, client); i++) {
        const char *token = words[i].token;
        const bool is_known = candidate->knows && sim_token_is(candidate->known, token);
        /* News of a campaign that is not won yet is kept back until LEADING. */
        const bool is_ours = !candidate->leading && token[0] != '\0' && sim_name(token)[1] == (char)('0' + client);
        if (is_known || is_ours || count_hearable(world, candidate, token) < quorum) {
            continue;
        }
        sim_violation(world, "observed", "client %u/%u was told that %.8s leads '%s', but that is %.8s since %.3f ms",
                      client, candidate->slot, candidate->known[0] == '\0' ? "nobody" : sim_name(candidate->known),
                      sim_resource_name(candidate->resource), token[0] == '\0' ? "nobody" : sim_name(token),
                      (double)(world->now_ns - words[i].since_ns) / 1e6);
        return;
    }
}

void sim_check_elections(struct sim_world *world) {
    follow_words(world);
    follow_disturbances(world);
    if (world->profile.trust != SIM_RECKLESS) {
        check_leaders(world);
    }
    if (sim_is_calm(world)) {
        check_vacancies(world);
        check_succession(world);
    }
    for (unsigned i = 0; i < world->elections.count; i++) {
        struct sim_candidate *candidate = &world->elections.candidates[i];
        const struct sim_client *client = candidate->client;
        if (client->group == NULL || client->busy_until_ns > world->now_ns || client->ahead_until_ns > world->now_ns) {
            continue;
        }
        sim_check_told(candidate, world->now_ns);
        if (sim_is_told(candidate)) {
            check_observed(world, candidate);
        }
    }
}
