/* Those who read a lock together, as nodes have them: until when, and what they lose. */
#include "parts.h"

bool sim_is_read(const struct fake_key *set) {
    static const char queue[] = ":wait";
    const size_t size = sizeof queue - 1;
    return set->used && set->type == FAKE_ZSET &&
           !(set->name_size >= size && memcmp(set->name + set->name_size - size, queue, size) == 0);
}

/* The next entry of a lock that is read, from *at onwards, and its set; NULL for none. */
static struct fake_part *next_entry(struct sim_node *node, unsigned *at, struct fake_key **set) {
    struct fake_node *fake = &node->fake;
    while (*at < fake->part_count) {
        struct fake_part *part = &fake->parts[(*at)++];
        for (unsigned i = 0; i < fake->set_count; i++) {
            if (part->set == fake->sets[i].id && sim_is_read(&fake->sets[i])) {
                *set = &fake->sets[i];
                return part;
            }
        }
    }
    return NULL;
}

/* By true time. */
static int64_t gone_ns(const struct sim_node *node, const struct fake_key *set, const struct fake_part *entry) {
    const int64_t until_ms = set->expires_ms < entry->ticket ? set->expires_ms : entry->ticket;
    return sim_clock_true(&node->clock, (until_ms + 1) * SIM_MS);
}

static bool is_entry_of(const struct fake_part *entry, const char *token) {
    char other[SIM_TOKEN_SIZE];
    sim_token_set(other, entry->token, entry->token_size);
    return sim_token_is(other, token);
}

bool sim_node_has(struct sim_world *world, unsigned node, unsigned resource, const char *token) {
    const struct fake_key *lock = sim_key_at(world, node, resource, "");
    struct fake_key *set;
    unsigned at = 0;
    if (lock == NULL || lock->type == FAKE_STRING) {
        return lock != NULL && sim_key_has(lock, token);
    }
    for (const struct fake_part *entry; (entry = next_entry(&world->nodes[node], &at, &set)) != NULL;) {
        if (set == lock && is_entry_of(entry, token) && entry->ticket >= world->nodes[node].fake.now_ms) {
            return true;
        }
    }
    return false;
}

int64_t sim_reads_until(const struct sim_node *node, const char *token, int64_t until_ns) {
    struct fake_key *set;
    unsigned at = 0;
    for (const struct fake_part *entry; (entry = next_entry((struct sim_node *)(uintptr_t)node, &at, &set)) != NULL;) {
        if (is_entry_of(entry, token) && gone_ns(node, set, entry) > until_ns) {
            until_ns = gone_ns(node, set, entry);
        }
    }
    return until_ns;
}

int64_t sim_node_lose_readers(struct sim_world *world, unsigned index, bool at_once) {
    struct sim_node *node = &world->nodes[index];
    struct fake_key *set;
    unsigned at = 0;
    int64_t last_ns = 0;
    for (const struct fake_part *entry; (entry = next_entry(node, &at, &set)) != NULL;) {
        const int64_t until_ns = gone_ns(node, set, entry);
        if (at_once) {
            sim_node_haunt(world, index, entry->token, entry->token_size, until_ns);
        } else {
            last_ns = until_ns > last_ns ? until_ns : last_ns;
        }
    }
    for (unsigned i = 0; i < node->fake.set_count && at_once; i++) {
        node->fake.sets[i].used = node->fake.sets[i].used && !sim_is_read(&node->fake.sets[i]);
    }
    return last_ns;
}

void sim_haunt_readers(struct sim_world *world, unsigned index) {
    struct sim_node *node = &world->nodes[index];
    struct fake_key *set;
    unsigned at = 0;
    for (const struct fake_part *entry; (entry = next_entry(node, &at, &set)) != NULL;) {
        const int64_t until_ns = gone_ns(node, set, entry);
        if (until_ns > world->now_ns) {
            sim_node_haunt(world, index, entry->token, entry->token_size, until_ns);
        }
    }
}

int64_t sim_readers_left(struct sim_world *world, unsigned node, bool checked) {
    struct sim_node *at_node = &world->nodes[node];
    struct fake_key *set;
    unsigned at = 0;
    int64_t last_ns = 0;
    for (const struct fake_part *entry; (entry = next_entry(at_node, &at, &set)) != NULL;) {
        const int64_t until_ns = gone_ns(at_node, set, entry);
        char token[SIM_TOKEN_SIZE];
        sim_token_set(token, entry->token, entry->token_size);
        if (until_ns <= world->now_ns) {
            continue;
        }
        last_ns = until_ns > last_ns ? until_ns : last_ns;
        if (checked && !sim_may_stay(world, token)) {
            sim_violation(world, "leftover", "at node %u %.8s still reads '%.*s', for %.3f ms more", node,
                          sim_name(token), set->name_size, set->name, (double)(until_ns - world->now_ns) / 1e6);
        }
    }
    return last_ns;
}

void sim_lease_reads(struct sim_lease *lease) {
    struct sim_world *world = lease->owner->world;
    struct sim_grant *grant = sim_grant_of(world, lease->token);
    lease->reads = true;
    if (grant != NULL) {
        grant->reads = true;
    }
    for (unsigned i = 0; i < world->place_count; i++) {
        struct sim_place *place = &world->places[i];
        place->reads = place->reads || (place->ticket == sim_ticket(lease->token) &&
                                        sim_name(lease->token)[1] == (char)('0' + place->client));
    }
}
