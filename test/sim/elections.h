/* Elections in the simulation: who stands, who observes, and what the checkers know of them. */
#ifndef SIM_ELECTIONS_H
#define SIM_ELECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <redlock/election.h>

#include "token.h"

#define SIM_CANDIDATES_MAX 256
#define SIM_VOTERS_MAX     7
#define SIM_WATCHERS_MAX   6
#define SIM_OFFICES_MAX    2

struct sim_world;
struct sim_client;
struct sim_event;
struct sim_lease;

/* What one slot of a client does. Its user calls; the library tells. */
struct sim_candidate {
    struct sim_client *client;
    uint8_t slot, resource;
    bool stands;                /* redlock_elect(); else redlock_observe() */
    redlock_election *election; /* NULL: ENDED was told */
    redlock_observer *observer; /* NULL: ended */
    bool fencing;
    int64_t ttl_ms, lock_delay_ms;
    /* By the calls of its user. */
    bool wants; /* to lead */
    bool resigning, ending;
    bool led;                              /* when it resigned */
    int64_t called_ns, called_paused_ns;   /* resigning, ending: since then */
    int64_t asked_ns, begun_ns, wanted_ns; /* its campaign, the handle, wants */
    /* By the events. */
    bool leading;
    uint64_t term;
    int trouble;
    bool knows; /* who leads */
    char known[SIM_TOKEN_SIZE + 1];
    int64_t told_ns; /* when it was told so; negative: never */
    /* Whom it was told of has had a quorum of nodes ever since, and has lost no key that it got
     * again. */
    bool reigns;
};

#define SIM_PAST_MAX 6

/* What a node says of a lock: who has it, since when, and what it said last. */
struct sim_word {
    char token[SIM_TOKEN_SIZE]; /* zero: it is free */
    int64_t since_ns;
    int64_t announced_ns; /* its last announcement */
    struct {
        char token[SIM_TOKEN_SIZE];
        int64_t until_ns;
    } past[SIM_PAST_MAX];
    unsigned past_count; /* modulo SIM_PAST_MAX: the oldest */
};

/* One lock that candidates want. */
struct sim_office {
    int64_t led_ns;    /* when somebody led last, or nobody wanted to; true time */
    int64_t filled_ns; /* somebody must lead by then; 0: not known */
    int64_t left_ns;   /* when the line last changed */
    struct sim_word words[SIM_VOTERS_MAX];
};

/* What the checkers of elections remember. */
struct sim_elections {
    struct sim_candidate candidates[SIM_CANDIDATES_MAX];
    unsigned count;
    struct sim_office offices[SIM_OFFICES_MAX];
    /* When something last kept a client from hearing a node, or from asking it. */
    int64_t disturbed_ns[SIM_WATCHERS_MAX][SIM_VOTERS_MAX];
    bool disturbed[SIM_WATCHERS_MAX][SIM_VOTERS_MAX];
    /* The quiet end: how many leaders have resigned, and by when the next must be known. */
    unsigned round;
    bool settled; /* all have had the time to take a place */
    int64_t steady_by_ns;
};

/* --- candidates.c: what users do with elections --- */
void sim_candidate_act(struct sim_client *client, unsigned slot);
void sim_candidate_resign(struct sim_candidate *candidate);
void sim_candidate_end(struct sim_candidate *candidate);
/* Its client closes. */
void sim_candidates_close(struct sim_client *client);
/* Its client has closed, or has crashed: nothing more is told. */
void sim_candidates_gone(struct sim_client *client);

/* --- news.c: what elections tell --- */
void sim_on_elected(const redlock_election_event *event, void *data);
void sim_on_leader(const redlock_leader *leader, void *data);
/* Whether RESIGNED or ENDED should have come by then. */
void sim_check_told(struct sim_candidate *candidate, int64_t at_ns);

/* --- steady.c: the quiet end of a schedule with elections --- */
/* The faults have healed. */
void sim_steady_begin(struct sim_world *world);
void sim_steady_event(struct sim_world *world);

/* --- places.c: who is in line then --- */
/* How long until all who can have a place have one. */
int64_t sim_places_ns(const struct sim_world *world);
void sim_places_check(struct sim_world *world);

/* --- reign.c: the checkers --- */
/* After every step. */
void sim_check_elections(struct sim_world *world);
/* The candidate leads, and its user is about to resign. */
void sim_reign_ends(const struct sim_candidate *candidate);
/* Somebody leads, or somebody who might have led does not want to any more. */
void sim_reign_begins(struct sim_world *world, unsigned resource);
bool sim_is_leading(const struct sim_candidate *candidate);
/* It was told whom it knows now. */
void sim_check_news(const struct sim_candidate *candidate);
/* Whether its user can still be told anything. */
bool sim_is_told(const struct sim_candidate *candidate);
/* How long an observer may need, if nothing keeps it from asking. */
int64_t sim_news_ns(const struct sim_world *world);

/* Whether the node has said this since then. */
bool sim_has_said(const struct sim_world *world, unsigned node, unsigned resource, const char *token, int64_t since_ns);

/* --- order.c: the order of news --- */
/* The candidate was told whom it knows now. */
void sim_order_told(struct sim_candidate *candidate, bool is_self);
/* A node says something else of this lock: what it said before it was free, if `is_back`. */
void sim_order_follow(struct sim_world *world, unsigned resource, const struct sim_word *word, bool is_back);

/* --- channels.c: the channels of leaders --- */
struct redlock_channel;
struct redlock_channels;
struct sim_node;
/* env.hear(), env.stop_hearing() */
void sim_hear(void *ctx, const struct redlock_channels *channels);
void sim_stop_hearing(void *ctx, const struct redlock_channel *channel);
/* Subscribes to the next channel, if the client may. */
void sim_channels_ask(struct sim_client *client, unsigned node);
/* The subscription is lost. */
void sim_channels_forget(struct sim_client *client, unsigned node);
/* What PUBLISH does on such a channel. Returns whether somebody is subscribed. */
bool sim_announce(struct sim_node *node, const char *channel, size_t channel_size, const char *payload, size_t size);
void sim_hear_event(struct sim_world *world, const struct sim_event *event);
void sim_heard_event(struct sim_world *world, const struct sim_event *event);
void sim_leave_event(struct sim_world *world, const struct sim_event *event);

#endif
