/* What elections and observers tell: whether it may come now, and what their users do then. */
#include "parts.h"

static const char *name_of(const redlock_election_event *event) {
    return redlock_election_event_name(event->kind);
}

bool sim_is_told(const struct sim_candidate *candidate) {
    const struct sim_client *client = candidate->client;
    return client->group != NULL && !client->closing && !candidate->ending &&
           (candidate->election != NULL || candidate->observer != NULL);
}

void sim_check_told(struct sim_candidate *candidate, int64_t at_ns) {
    const struct sim_client *client = candidate->client;
    struct sim_world *world = client->world;
    if ((!candidate->resigning && !candidate->ending) || client->closing) {
        return;
    }
    const int64_t took =
        at_ns - candidate->called_ns - (sim_client_paused(client, at_ns) - candidate->called_paused_ns);
    const int64_t allowed = 2 * world->profile.node_timeout_ms * SIM_MS;
    if (took > allowed + allowed / 50 + 5 * SIM_MS) {
        sim_violation(world, "told", "client %u/%u waits for %s since %.3f ms; %.3f are allowed", client->index,
                      candidate->slot, candidate->ending ? "ENDED" : "RESIGNED", (double)took / 1e6,
                      (double)allowed / 1e6);
    }
}

static bool is_own(const struct sim_candidate *candidate, const char *token) {
    const struct sim_lease *lease = candidate->leading ? candidate->client->slots[candidate->slot].lease : NULL;
    return lease != NULL && strcmp(lease->token, token) == 0;
}

/* Whether this may come now. */
static bool is_next(const struct sim_candidate *candidate, const redlock_election_event *event) {
    if (candidate->ending && event->kind != REDLOCK_ELECTION_ENDED) {
        return false;
    }
    switch (event->kind) {
    case REDLOCK_ELECTION_LEADING:
        return candidate->wants && !candidate->leading && !candidate->resigning && event->term > candidate->term;
    case REDLOCK_ELECTION_EXPIRING:
        return candidate->leading && event->term == candidate->term && event->remaining_ms > 0;
    case REDLOCK_ELECTION_LOST:
        return candidate->leading && event->term == candidate->term && event->reason[0] != '\0';
    case REDLOCK_ELECTION_RESIGNED:
        return candidate->resigning && (candidate->led || (event->code == REDLOCK_OK && event->result == NULL));
    case REDLOCK_ELECTION_LEADER:
        return event->leader->is_self == is_own(candidate, event->leader->token);
    case REDLOCK_ELECTION_TROUBLE:
        return candidate->wants && !candidate->leading && !candidate->resigning && event->code != candidate->trouble;
    case REDLOCK_ELECTION_ENDED:
        return candidate->ending && (event->code == REDLOCK_ERR_CLOSED) == candidate->client->closing;
    default:
        return false;
    }
}

/* What is not of its kind is 0. */
static bool has_its_members(const redlock_election_event *event) {
    const redlock_election_event_kind kind = event->kind;
    const bool leads = kind == REDLOCK_ELECTION_LEADING, is_lost = kind == REDLOCK_ELECTION_LOST;
    const bool is_expiring = kind == REDLOCK_ELECTION_EXPIRING;
    const bool has_code =
        kind == REDLOCK_ELECTION_RESIGNED || kind == REDLOCK_ELECTION_TROUBLE || kind == REDLOCK_ELECTION_ENDED;
    return event->size == sizeof *event && leads == (event->lease != NULL) &&
           (leads || is_lost || is_expiring) == (event->term != 0) && is_expiring == (event->remaining_ms != 0) &&
           (leads || event->fence == 0) &&
           (has_code || (event->code == (is_lost ? REDLOCK_ERR_LOST : REDLOCK_OK) && event->result == NULL)) &&
           is_lost == (event->reason[0] != '\0') && (kind == REDLOCK_ELECTION_LEADER) == (event->leader != NULL);
}

static void check_event(struct sim_candidate *candidate, const redlock_election_event *event) {
    struct sim_client *client = candidate->client;
    struct sim_world *world = client->world;
    if (client->in_api) {
        sim_violation(world, "reentrant", "%s was told inside a call", name_of(event));
    }
    if (event->election != candidate->election || !has_its_members(event)) {
        sim_violation(world, "told", "client %u/%u is told %s with members that it does not have", client->index,
                      candidate->slot, name_of(event));
    } else if (!is_next(candidate, event)) {
        sim_violation(world, "told", "client %u/%u is told %s (%s), which cannot come now", client->index,
                      candidate->slot, name_of(event), redlock_error_name(event->code));
    }
}

static void lead(struct sim_candidate *candidate, const redlock_election_event *event) {
    struct sim_client *client = candidate->client;
    struct sim_world *world = client->world;
    struct sim_lease *lease = sim_lease_new(client, candidate->resource, event->lease, 0);
    if (lease == NULL) {
        sim_violation(world, "budget", "a schedule needs more than %u leases", SIM_LEASES_MAX);
        return;
    }
    const int64_t validity_ms = sim_lease_validity_ms(world, lease);
    candidate->leading = true;
    candidate->told_ns = world->now_ns; /* that is news of a leader, too */
    candidate->term = event->term;
    candidate->trouble = REDLOCK_OK;
    lease->candidate = candidate;
    lease->term = event->term;
    lease->held = lease->has_on_lost = lease->auto_extend = true;
    lease->ttl_ms = candidate->ttl_ms;
    lease->lock_delay_ms = candidate->lock_delay_ms;
    lease->expiring_ms = sim_draw_expiring_ms(world, candidate->ttl_ms);
    client->slots[candidate->slot].lease = lease;
    SIM_TRACE(world, "client %u LEADS '%s' (%.8s) in term %llu for %lld ms, fencing token %llu", client->index,
              sim_resource_name(candidate->resource), sim_name(lease->token), (unsigned long long)event->term,
              (long long)validity_ms, (unsigned long long)event->fence);
    if (sim_lease_validity_ms(world, lease) != validity_ms || event->fence != redlock_lease_fence(event->lease)) {
        sim_violation(world, "told", "client %u/%u: the event and its lease differ", client->index, candidate->slot);
    }
    struct sim_call call = {.client = client,
                            .kind = SIM_CALL_ACQUIRE,
                            .resource = candidate->resource,
                            .fencing = candidate->fencing,
                            .asked_ns = candidate->asked_ns};
    sim_grant_acquired(&call, lease);
    sim_line_acquired(&call, lease->token);
    world->holds++;
    world->totals.terms++;
    world->totals.successions += world->elections.offices[candidate->resource].filled_ns != 0;
    sim_reign_begins(world, candidate->resource);
}

static void lose(struct sim_candidate *candidate) {
    struct sim_client *client = candidate->client;
    struct sim_lease *lease = client->slots[candidate->slot].lease;
    struct sim_world *world = client->world;
    if (sim_lease_validity_ms(world, lease) != 0) {
        sim_violation(world, "loss", "LOST was told while the term was valid");
    }
    sim_check_lost(lease);
    lease->lost = true;
    candidate->leading = false;
    candidate->asked_ns = client->step_ns;
    (void)sim_lease_give_up(lease);
    sim_lease_given_up(lease, 0);
}

static void note_leader(struct sim_candidate *candidate, const redlock_leader *leader) {
    struct sim_client *client = candidate->client;
    struct sim_world *world = client->world;
    char token[SIM_TOKEN_SIZE + 1] = "";
    sim_token_set(token, leader->token, strlen(leader->token));
    SIM_TRACE(world, "client %u/%u is told that %.8s leads '%s'", client->index, candidate->slot,
              token[0] == '\0' ? "nobody" : sim_name(token), sim_resource_name(candidate->resource));
    if (candidate->knows && strcmp(token, candidate->known) == 0) {
        sim_violation(world, "told", "client %u/%u is told the same leader twice", client->index, candidate->slot);
    }
    candidate->knows = true;
    memcpy(candidate->known, token, sizeof token);
    world->totals.news++;
    sim_check_news(candidate);
    sim_order_told(candidate, leader->is_self);
}

/* A user may act at any point, also inside callbacks. */
static void react(struct sim_candidate *candidate) {
    struct sim_client *client = candidate->client;
    struct sim_world *world = client->world;
    const unsigned dice = sim_random_below(&world->random, 100);
    const struct sim_lease *lease = client->slots[candidate->slot].lease;
    if (world->phase != SIM_ACTIVE || client->closing) {
        return;
    }
    if (dice < 12 && client->slots[candidate->slot].candidate == candidate) {
        sim_candidate_act(client, candidate->slot);
    } else if (dice < 18 && lease != NULL && !world->profile.calm && !world->profile.prompt) {
        const int64_t left_ms = sim_lease_validity_ms(world, lease);
        sim_client_pause(client, sim_random_between(&world->random, left_ms * 9 / 10, left_ms + 6) * SIM_MS);
    }
}

void sim_on_elected(const redlock_election_event *event, void *data) {
    struct sim_candidate *candidate = data;
    struct sim_client *client = candidate->client;
    SIM_TRACE(client->world, "client %u/%u is told %s (%s) %s", client->index, candidate->slot, name_of(event),
              redlock_error_name(event->code), event->reason);
    check_event(candidate, event);
    switch (event->kind) {
    case REDLOCK_ELECTION_LEADING:
        lead(candidate, event);
        break;
    case REDLOCK_ELECTION_EXPIRING:
        sim_check_expiring_told(client->slots[candidate->slot].lease, event->remaining_ms);
        break;
    case REDLOCK_ELECTION_LOST:
        if (candidate->leading) {
            lose(candidate);
        }
        break;
    case REDLOCK_ELECTION_LEADER:
        note_leader(candidate, event->leader);
        break;
    case REDLOCK_ELECTION_TROUBLE:
        candidate->trouble = event->code;
        break;
    case REDLOCK_ELECTION_RESIGNED:
        sim_check_told(candidate, client->step_ns);
        candidate->resigning = false;
        candidate->trouble = REDLOCK_OK;
        candidate->asked_ns = client->step_ns;
        break;
    default:
        sim_check_told(candidate, client->step_ns);
        candidate->election = NULL;
        candidate->ending = false;
        if (client->slots[candidate->slot].candidate == candidate) {
            client->slots[candidate->slot].candidate = NULL;
        }
        return;
    }
    react(candidate);
}

void sim_on_leader(const redlock_leader *leader, void *data) {
    struct sim_candidate *candidate = data;
    struct sim_client *client = candidate->client;
    if (client->in_api || candidate->observer == NULL || leader->is_self || leader->size != sizeof *leader) {
        sim_violation(client->world, "told", "client %u/%u: an observer is told what it cannot be", client->index,
                      candidate->slot);
    }
    note_leader(candidate, leader);
    react(candidate);
}
