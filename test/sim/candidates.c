/* What users do with elections: they stand or observe, campaign, resign and end. */
#include "parts.h"

static struct sim_candidate *new_candidate(struct sim_client *client, unsigned slot, bool stands) {
    struct sim_world *world = client->world;
    struct sim_elections *all = &world->elections;
    if (all->count == SIM_CANDIDATES_MAX) {
        return NULL;
    }
    struct sim_candidate *candidate = &all->candidates[all->count++];
    *candidate = (struct sim_candidate){.client = client,
                                        .slot = (uint8_t)slot,
                                        .resource = (uint8_t)sim_random_below(&world->random, world->profile.resources),
                                        .stands = stands,
                                        .begun_ns = client->step_ns,
                                        .asked_ns = client->step_ns,
                                        .wanted_ns = client->step_ns,
                                        .told_ns = -1};
    return candidate;
}

static void draw_options(struct sim_candidate *candidate, redlock_election_options *options) {
    struct sim_world *world = candidate->client->world;
    const struct sim_profile *profile = &world->profile;
    redlock_election_options_default(options);
    options->ttl_ms = sim_random_between(&world->random, profile->ttl_min_ms, profile->ttl_max_ms);
    options->campaign = sim_random_percent(&world->random, 85);
    options->fencing = profile->fencing && sim_random_percent(&world->random, 85);
    options->heal = profile->heal;
    if (profile->lock_delay_max_ms > 0) {
        options->lock_delay_ms = sim_random_between(&world->random, 0, profile->lock_delay_max_ms);
    }
    options->expiring_ms = sim_draw_expiring_ms(world, options->ttl_ms);
    candidate->ttl_ms = options->ttl_ms;
    candidate->fencing = options->fencing;
    candidate->lock_delay_ms = options->lock_delay_ms;
    candidate->wants = options->campaign;
}

static int stand(struct sim_candidate *candidate) {
    struct sim_client *client = candidate->client;
    redlock_election_options options;
    draw_options(candidate, &options);
    SIM_TRACE(client->world, "client %u/%u stands for '%s', ttl %lld ms%s", client->index, candidate->slot,
              sim_resource_name(candidate->resource), (long long)options.ttl_ms,
              options.campaign ? ", and campaigns" : "");
    sim_api_enter(client);
    const int code = redlock_elections_add(&client->elections, sim_resource_name(candidate->resource), &options,
                                           sim_on_elected, candidate, NULL, &candidate->election);
    sim_api_leave(client);
    return code;
}

static int observe(struct sim_candidate *candidate) {
    struct sim_client *client = candidate->client;
    SIM_TRACE(client->world, "client %u/%u observes '%s'", client->index, candidate->slot,
              sim_resource_name(candidate->resource));
    sim_api_enter(client);
    const int code = redlock_group_observe(client->group, sim_resource_name(candidate->resource), sim_on_leader,
                                           candidate, &candidate->observer);
    sim_api_leave(client);
    return code;
}

static void begin(struct sim_client *client, unsigned slot) {
    struct sim_world *world = client->world;
    struct sim_candidate *candidate = new_candidate(client, slot, sim_random_percent(&world->random, 80));
    if (candidate == NULL) {
        return;
    }
    const int code = candidate->stands ? stand(candidate) : observe(candidate);
    if (code == REDLOCK_OK) {
        client->slots[slot].candidate = candidate;
        return;
    }
    world->elections.count--;
    if (code != REDLOCK_ERR_RANDOM || world->profile.no_random_permille == 0) {
        sim_violation(world, "refused", "client %u cannot %s: %s", client->index,
                      candidate->stands ? "stand" : "observe", redlock_error_name(code));
    }
}

static void check_code(struct sim_candidate *candidate, const char *name, int code) {
    if (code != REDLOCK_OK) {
        sim_violation(candidate->client->world, "refused", "%s() of client %u returned %s", name,
                      candidate->client->index, redlock_error_name(code));
    }
}

static void call_begins(struct sim_candidate *candidate) {
    struct sim_client *client = candidate->client;
    candidate->called_ns = client->step_ns;
    candidate->called_paused_ns = sim_client_paused(client, client->step_ns);
    candidate->wants = false;
}

/* Returns for how long its lease is valid, if it leads. */
static int64_t stop_to_lead(struct sim_candidate *candidate, struct sim_lease **lease) {
    *lease = candidate->leading ? candidate->client->slots[candidate->slot].lease : NULL;
    candidate->leading = false;
    return *lease != NULL ? sim_lease_give_up(*lease) : 0;
}

void sim_candidate_resign(struct sim_candidate *candidate) {
    struct sim_client *client = candidate->client;
    struct sim_lease *lease;
    SIM_TRACE(client->world, "client %u/%u resigns%s", client->index, candidate->slot,
              candidate->leading ? ", and led" : "");
    if (candidate->leading) {
        sim_reign_ends(candidate);
    } else {
        sim_reign_begins(client->world, candidate->resource);
    }
    if (candidate->wants && !candidate->resigning) {
        candidate->led = candidate->leading;
        candidate->resigning = true;
        call_begins(candidate);
    }
    candidate->wants = false;
    const int64_t left_ms = stop_to_lead(candidate, &lease);
    sim_api_enter(client);
    check_code(candidate, "redlock_election_resign", redlock_election_resign(candidate->election));
    sim_api_leave(client);
    if (lease != NULL) {
        sim_lease_given_up(lease, left_ms);
    }
}

static void campaign(struct sim_candidate *candidate) {
    struct sim_client *client = candidate->client;
    SIM_TRACE(client->world, "client %u/%u campaigns", client->index, candidate->slot);
    if (!candidate->wants) {
        candidate->asked_ns = candidate->wanted_ns = client->step_ns;
    }
    candidate->wants = true;
    sim_api_enter(client);
    check_code(candidate, "redlock_election_campaign", redlock_election_campaign(candidate->election));
    sim_api_leave(client);
}

static void end_observer(struct sim_candidate *candidate) {
    struct sim_client *client = candidate->client;
    SIM_TRACE(client->world, "client %u/%u observes no more", client->index, candidate->slot);
    redlock_observer *observer = candidate->observer;
    candidate->observer = NULL;
    client->slots[candidate->slot].candidate = NULL;
    sim_api_enter(client);
    redlock_observer_end(observer);
    sim_api_leave(client);
}

void sim_candidate_end(struct sim_candidate *candidate) {
    struct sim_client *client = candidate->client;
    struct sim_lease *lease;
    if (!candidate->stands) {
        end_observer(candidate);
        return;
    }
    if (candidate->ending) {
        return;
    }
    SIM_TRACE(client->world, "client %u/%u ends its election", client->index, candidate->slot);
    if (candidate->leading) {
        sim_reign_ends(candidate);
    } else {
        sim_reign_begins(client->world, candidate->resource);
    }
    call_begins(candidate);
    candidate->ending = true;
    candidate->resigning = false;
    const int64_t left_ms = stop_to_lead(candidate, &lease);
    sim_api_enter(client);
    check_code(candidate, "redlock_election_end", redlock_election_end(candidate->election));
    if (redlock_election_resign(candidate->election) != REDLOCK_ERR_INVALID) {
        sim_violation(client->world, "refused", "an election that has ended took a call");
    }
    sim_api_leave(client);
    if (lease != NULL) {
        sim_lease_given_up(lease, left_ms);
    }
}

static void act_leading(struct sim_candidate *candidate, unsigned dice) {
    struct sim_client *client = candidate->client;
    struct sim_world *world = client->world;
    const struct sim_lease *lease = client->slots[candidate->slot].lease;
    if (dice < 30) {
        sim_candidate_resign(candidate);
    } else if (dice < 38) {
        sim_candidate_end(candidate);
    } else if (dice < 42) {
        campaign(candidate); /* changes nothing */
    } else if (dice < 50 && lease != NULL && !world->profile.calm && !world->profile.prompt) {
        sim_client_pause(client,
                         sim_random_between(&world->random, 0, (sim_lease_validity_ms(world, lease) + 5) * SIM_MS));
    }
}

void sim_candidate_act(struct sim_client *client, unsigned slot) {
    struct sim_candidate *candidate = client->slots[slot].candidate;
    const unsigned dice = sim_random_below(&client->world->random, 100);
    if (candidate == NULL) {
        begin(client, slot);
    } else if (!candidate->stands) {
        if (dice < 15) {
            end_observer(candidate);
        }
    } else if (candidate->ending) {
        /* ENDED is to come */
    } else if (candidate->leading) {
        act_leading(candidate, dice);
    } else if (candidate->wants) {
        if (dice < 12) {
            sim_candidate_resign(candidate);
        } else if (dice < 18) {
            sim_candidate_end(candidate);
        } else if (dice < 22) {
            campaign(candidate); /* changes nothing */
        }
    } else if (dice < 60) {
        campaign(candidate);
    } else if (dice < 68) {
        sim_candidate_end(candidate);
    } else if (dice < 74) {
        sim_candidate_resign(candidate); /* changes nothing */
    }
}

void sim_candidates_close(struct sim_client *client) {
    struct sim_elections *all = &client->world->elections;
    for (unsigned i = 0; i < all->count; i++) {
        struct sim_candidate *candidate = &all->candidates[i];
        if (candidate->client != client) {
            continue;
        }
        sim_reign_begins(client->world, candidate->resource);
        candidate->observer = NULL;
        candidate->leading = candidate->resigning = candidate->wants = false;
        candidate->ending = true;
        client->slots[candidate->slot].candidate = NULL;
    }
}

void sim_candidates_gone(struct sim_client *client) {
    struct sim_world *world = client->world;
    for (unsigned i = 0; i < world->elections.count; i++) {
        struct sim_candidate *candidate = &world->elections.candidates[i];
        if (candidate->client != client) {
            continue;
        }
        sim_reign_begins(world, candidate->resource);
        if (candidate->election != NULL && !client->crashed) {
            sim_violation(world, "told", "client %u/%u is closed, but ENDED was not told", client->index,
                          candidate->slot);
        }
        candidate->election = NULL;
        candidate->observer = NULL;
        candidate->leading = candidate->resigning = candidate->wants = candidate->ending = false;
    }
}
