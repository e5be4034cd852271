/* Somebody who may subscribe and publish on every channel, and nothing else: he hears what nodes
 * say, and says it again, there or elsewhere, as it was or changed. Another database, whose leaders
 * have the same channel. */
#include <stdio.h>

#include "parts.h"

#define FORGED_MAX    400 /* a schedule */
#define OTHERS        UINT32_MAX
#define SAID_SIZE_MAX 400

bool sim_has_forger(const struct sim_world *world) {
    return world->seed % 4 == 1 && !sim_is_loaded(world->control);
}

static struct sim_random *random_of(struct sim_world *world) {
    return &world->forger.random;
}

void sim_forger_begin(struct sim_world *world) {
    world->forger = (struct sim_forger){.random = {.state = ~world->seed}};
    if (sim_has_forger(world) && world->has_elections) {
        sim_push(world, world->profile.user_gap_ns, (struct sim_event){.kind = SIM_FORGE, .entry = OTHERS});
    }
}

/* Mostly at once; or when the lease may be over, or forgotten. */
static int64_t draw_delay_ns(struct sim_world *world) {
    struct sim_random *random = random_of(world);
    const unsigned dice = sim_random_below(random, 100);
    const int64_t most_ns = dice < 50   ? 2 * world->profile.delay_max_ns
                            : dice < 90 ? 2 * world->profile.ttl_max_ms * SIM_MS
                                        : 40000 * SIM_MS;
    return sim_random_between(random, world->profile.delay_min_ns, most_ns);
}

void sim_forger_hears(struct sim_node *node, const char *channel, size_t channel_size, const char *payload,
                      size_t size) {
    struct sim_world *world = node->world;
    struct sim_forger *forger = &world->forger;
    if (!sim_has_forger(world) || world->phase != SIM_ACTIVE || size > SAID_SIZE_MAX / 2) {
        return;
    }
    struct sim_heard *heard = &forger->heard[forger->heard_count % SIM_HEARD_MAX];
    char *bytes = sim_arena(world, channel_size + 1 + size);
    memcpy(bytes, channel, channel_size);
    bytes[channel_size] = '\0';
    memcpy(bytes + channel_size + 1, payload, size);
    *heard = (struct sim_heard){.channel = bytes,
                                .payload = bytes + channel_size + 1,
                                .size = size,
                                .node = (unsigned)(node - world->nodes),
                                .steps = node->stepped.steps};
    for (unsigned i = sim_random_below(&forger->random, 4); i > 0 && forger->forged < FORGED_MAX; i--) {
        forger->forged++;
        sim_push(world, world->now_ns + draw_delay_ns(world),
                 (struct sim_event){.kind = SIM_FORGE, .entry = forger->heard_count});
    }
    forger->heard_count++;
}

/* On this node and channel, to whoever is subscribed. */
static void publish(struct sim_world *world, unsigned node, const char *channel, const char *payload, size_t size,
                    const uint32_t *steps) {
    if (world->nodes[node].down) {
        return;
    }
    SIM_TRACE(world, "a forger says on node %u on '%s' '%.*s'", node, channel, (int)size, payload);
    for (unsigned i = 0; i < world->profile.clients; i++) {
        struct sim_client *client = &world->clients[i];
        const bool leads = strncmp(channel, REDLOCK_LEADER_CHANNEL, sizeof REDLOCK_LEADER_CHANNEL - 1) == 0;
        const uint8_t resource = (uint8_t)(1U << (channel[strlen(channel) - 1] == '2'));
        if (leads ? (world->nodes[node].heard_channels[i] & resource) != 0 : strcmp(channel, client->channel) == 0) {
            sim_push_forged(&world->nodes[node], client, leads ? channel : client->channel, payload, size, steps);
        }
    }
}

/* Its id has zeros in front. An announcement begins with a time to live, or is empty. */
static bool is_push(const struct sim_heard *heard) {
    return heard->size > 0 && heard->payload[0] == '0';
}

/* One that was heard, of this kind; that one, if there is none. */
static const struct sim_heard *another(struct sim_world *world, const struct sim_heard *heard) {
    const struct sim_forger *forger = &world->forger;
    const unsigned count = forger->heard_count < SIM_HEARD_MAX ? forger->heard_count : SIM_HEARD_MAX;
    const struct sim_heard *other = &forger->heard[sim_random_below(random_of(world), count)];
    return is_push(heard) == is_push(other) ? other : heard;
}

struct words {
    char word[6][160]; /* of a push: id, serial, seconds, microseconds, token, key */
};

static bool read_words(const struct sim_heard *heard, struct words *words) {
    char text[SAID_SIZE_MAX];
    (void)snprintf(text, sizeof text, "%.*s", (int)heard->size, heard->payload);
    return sscanf(text, "%159s %159s %159s %159s %159s %159s", words->word[0], words->word[1], words->word[2],
                  words->word[3], words->word[4], words->word[5]) == 6;
}

/* Changes one of the words. */
static void change(struct sim_world *world, const struct sim_heard *heard, struct words *words) {
    struct sim_random *random = random_of(world);
    struct words others;
    unsigned long serial = 0;
    if (!read_words(another(world, heard), &others)) {
        return;
    }
    switch (sim_random_below(random, 5)) {
    case 0: /* newer than any answer */
        (void)sscanf(words->word[1], "%lu", &serial);
        (void)snprintf(words->word[1], sizeof words->word[1], "%lu", serial + 1 + sim_random_below(random, 3));
        break;
    case 1:
        memcpy(words->word[0], others.word[0], sizeof others.word[0]);
        break;
    case 2: /* the clock has stepped; or it has not */
        words->word[2][sim_random_below(random, 9)] = (char)('0' + sim_random_below(random, 10));
        break;
    case 3:
        memcpy(words->word[4], others.word[4], sizeof others.word[4]);
        break;
    default:
        memcpy(words->word[5], others.word[5], sizeof others.word[5]);
        break;
    }
}

static void forge_push(struct sim_world *world, const struct sim_heard *heard, struct words *words) {
    struct sim_random *random = random_of(world);
    const bool there = sim_random_percent(random, 50), as_it_was = sim_random_percent(random, 60);
    const unsigned node = there ? heard->node : sim_random_below(random, world->profile.nodes);
    const char *channel = sim_random_percent(random, 75) ? heard->channel : another(world, heard)->channel;
    char payload[6 * 160];
    if (!as_it_was) {
        change(world, heard, words);
    }
    const int size = snprintf(payload, sizeof payload, "%s %s %s %s %s %s", words->word[0], words->word[1],
                              words->word[2], words->word[3], words->word[4], words->word[5]);
    publish(world, node, channel, payload, (size_t)size, as_it_was && node == heard->node ? &heard->steps : NULL);
}

/* Whatever was said of any lock, on any node. */
static void forge_announcement(struct sim_world *world, const struct sim_heard *heard) {
    const struct sim_heard *other = another(world, heard);
    const unsigned node = sim_random_below(random_of(world), world->profile.nodes);
    publish(world, node, heard->channel, other->payload, other->size, NULL);
}

/* There a leader comes or goes, on all nodes. */
static void follow_others(struct sim_world *world, const struct sim_event *event) {
    static const char token[] = "600000 00000000000000aa5555555555555555aaaaaaaaaaaaaaaa";
    char channel[64];
    const unsigned resource = sim_random_below(random_of(world), world->profile.resources);
    const size_t size = sim_random_percent(random_of(world), 70) ? sizeof token - 1 : 0;
    (void)snprintf(channel, sizeof channel, REDLOCK_LEADER_CHANNEL "%s%s", world->seed % 3 == 0 ? "lock:" : "",
                   sim_resource_name(resource));
    char *copy = sim_arena(world, sizeof channel);
    memcpy(copy, channel, sizeof channel);
    for (unsigned i = 0; i < world->profile.nodes; i++) {
        publish(world, i, copy, token, size, NULL);
    }
    sim_push(world, world->now_ns + sim_random_between(random_of(world), 1, 2 * world->profile.user_gap_ns), *event);
}

void sim_forge_event(struct sim_world *world, const struct sim_event *event) {
    struct words words;
    if (world->phase != SIM_ACTIVE) {
        return;
    }
    if (event->entry == OTHERS) {
        follow_others(world, event);
        return;
    }
    const struct sim_heard *heard = &world->forger.heard[event->entry % SIM_HEARD_MAX];
    if (read_words(heard, &words)) {
        forge_push(world, heard, &words);
    } else {
        forge_announcement(world, heard);
    }
}
