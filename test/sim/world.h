/* The simulated world: true time, an event queue, nodes, clients and the links between them. A
 * process uses one world for all its schedules. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "election/campaign.h"
#include "elections.h"
#include "fake_node.h"
#include "forger.h"
#include "group/entry.h"
#include "group/handle.h"
#include "group/observer.h"
#include "group/requests.h"
#include "lines.h"
#include "profile.h"
#include "random.h"
#include "spec.h"
#include "subscription.h"
#include "token.h"

#define SIM_NODES_MAX     7
#define SIM_CLIENTS_MAX   6
#define SIM_RESOURCES_MAX 2
#define SIM_INFLIGHT_MAX  64
#define SIM_LEASES_MAX    256
#define SIM_CALLS_MAX     512
#define SIM_FORGOTTEN_MAX 1024
#define SIM_BACKINGS_MAX  1024
#define SIM_SPANS_MAX     512
#define SIM_SETS_MAX      2048
#define SIM_ASKS_MAX      1024
#define SIM_GHOSTS_MAX    64
#define SIM_SLOTS_MAX     3
#define SIM_MS            INT64_C(1000000)
#define SIM_NEVER         INT64_MAX

enum sim_event_kind {
    SIM_ARRIVE,    /* a request's bytes reach a node */
    SIM_REPLY,     /* a reply reaches a client */
    SIM_TIMEOUT,   /* a request's node timeout */
    SIM_BROKEN,    /* a client notices that its connection is gone */
    SIM_RECONNECT, /* a client tries to connect */
    SIM_HANDSHAKE, /* a node answers the handshake */
    SIM_SPARE,     /* a second connection beside a silent one would be answered now */
    SIM_READY,     /* a client has its connection */
    SIM_UNBLOCK,   /* a socket takes bytes again */
    SIM_SUBSCRIBE, /* a node reads a client's SUBSCRIBE */
    SIM_LISTEN,    /* a client reads the answer to it */
    SIM_PUSH,      /* a push reaches a client */
    SIM_HEAR,      /* a node reads a client's SUBSCRIBE to the channel of a leader */
    SIM_HEARD,     /* a client reads the answer to it */
    SIM_LEAVE,     /* a node reads UNSUBSCRIBE */
    SIM_DEAF,      /* a client notices that its subscription is gone */
    SIM_UNHEARD,   /* a node notices that */
    SIM_RESUBSCRIBE,
    SIM_FORGE,    /* somebody says on a channel what is not his to say */
    SIM_WAKE,     /* the group's timer */
    SIM_USER,     /* the user of a client does something */
    SIM_FAULT,    /* something breaks */
    SIM_AMBUSH,   /* clocks step, and a client comes that has read none of them */
    SIM_RESTART,  /* a crashed node comes back */
    SIM_MODE,     /* a node's mode ends */
    SIM_CHECK,    /* the checkers look at a client whose step ends now */
    SIM_HEAL,     /* the last fault is over: users finish */
    SIM_STEADY,   /* somebody must lead, and be known */
    SIM_LEFTOVER, /* no key of ours may be left */
    SIM_PROBE     /* each resource can be taken again */
};

struct sim_event {
    const void *data;
    uint32_t gen, entry;
    uint32_t order; /* for ties, and the order of events that were delayed together */
    uint8_t kind, client, node;
};

/* When an event is due. Heaps move these alone: an event stays where it was written. */
struct sim_due {
    int64_t at;
    uint64_t rank; /* its order, and its index in the lower half */
};

struct sim_heap {
    struct sim_due *due; /* as many as there is room for events */
    uint32_t count;
};

/* A request's bytes, formatted once a message. */
struct sim_bytes {
    int64_t sent_ns;
    int64_t ttl_ms;             /* ACQUIRE, EXTEND, HEAL */
    char token[SIM_TOKEN_SIZE]; /* zero where there is none */
    int64_t stale_ms;           /* WAIT */
    uint8_t operation, resource;
    bool reads;                       /* its token says so, or the message */
    uint32_t round;                   /* as its sender counts */
    uint32_t ask;                     /* the round of an acquire, see sim_ask; 0: none */
    const char *forms[SIM_NODES_MAX]; /* what the node gets in place of `bytes`; NULL: these */
    uint32_t size;
    char bytes[];
};

/*
 * A client's connection to a node, as src/server/server.c behaves towards the group:
 * FRESH    never connected: requests wait, and are FAILED at their timeout
 * READY    requests are written in turn; at its timeout each is UNKNOWN, or FAILED if unwritten
 * STALLED  refuses; a PING stands behind what is in flight; any reply → READY
 * DOWN     refuses; reconnects
 */
enum sim_link_state { SIM_LINK_FRESH, SIM_LINK_READY, SIM_LINK_STALLED, SIM_LINK_DOWN };

struct sim_entry {
    void *owner;
    const struct sim_bytes *bytes;
    int64_t sent_ns; /* on the client's clock */
    uint32_t round;
    uint16_t reply_kind;
    bool answered, written;
};

/* A node's clock at some moment: the sum of its steps, and how many of them went forward. */
struct sim_stepped {
    int64_t off_ns;
    uint32_t steps;
    int64_t jumped_ns; /* the last of these */
};

/* What a node did with a request of an acquire, by its data. */
enum sim_did { SIM_DID_NOTHING, SIM_DID_LEAVE_FREE, SIM_DID_GIVE, SIM_DID_DENY };

struct sim_reply {
    struct fake_reply fake;
    struct sim_stepped stepped;
    enum sim_did did;
};

/* A round of an acquire: nodes that were asked, and what became of that by the node timeout. */
struct sim_ask {
    const void *owner; /* the acquire */
    uint32_t round;
    uint8_t client, operation;
    char token[SIM_TOKEN_SIZE];
    bool given_up;                     /* released, or asked again, */
    int64_t given_up_ns;               /* then, on the client's clock */
    int64_t start_ns;                  /* likewise: of the first round of the token */
    int64_t sent_ns;                   /* true time */
    uint32_t asked, over;              /* over: no answer will come, or an error came */
    uint32_t answered, given, foreign; /* of answered: the node gave us the lock; others had it */
};

/* What a node says of itself on a new connection. */
struct sim_greeting {
    struct redlock_greeting said;
    struct sim_stepped stepped;
    char run_id[24];
    uint32_t run;
};

struct sim_link {
    enum sim_link_state state;
    uint32_t gen;        /* of the connection */
    uint32_t head, tail; /* entries in flight, by number */
    uint32_t unwritten;  /* the first entry that is not written */
    uint8_t timeouts;    /* in a row */
    uint8_t failures;    /* of connecting, in a row */
    uint32_t heard;      /* replies on this connection */
    uint32_t silent_gen; /* nothing passes on this connection any more; 0: none is so */
    bool spare;          /* a second connection is tried */
    bool first_try_done; /* the first try is over */
    bool flush_asked;    /* entries wait for the end of this turn */
    int64_t met_ns;      /* when its client first read the node's clock; 0: never */
    uint32_t run;        /* the process of the node that it is connected to */
    struct sim_subscription subscription;
    int64_t deaf_ns;                /* until then its client does not know that it is not heard */
    bool clock_read;                /* its client has read this node's clock, */
    int64_t off_ns;                 /* when steps had made this of it */
    uint32_t steps;                 /* and it had seen this number of steps forward, */
    int64_t jumped_ns;              /* the last of them made then; 0: none */
    int64_t up_ns, down_ns;         /* the last arrival each way: bytes keep their order */
    int64_t up_cut_ns, down_cut_ns; /* nothing passes until then */
    int64_t blocked_ns;             /* the socket takes no bytes until then */
    int64_t mute_ns;                /* until then no RST tells of a new process of the node */
    struct sim_entry entries[SIM_INFLIGHT_MAX];
};

/* A key that was lost in spite of its ttl, at a node that may not vote until then. */
struct sim_ghost {
    char token[SIM_TOKEN_SIZE];
    int64_t gone_ns;
};

struct sim_node {
    struct sim_world *world;
    bool has_copy; /* of its data, as of some time ago */
    struct sim_clock clock;
    struct sim_stepped stepped;
    int64_t stepped_ns;    /* the last step forward; negative: never */
    int64_t righted_ns;    /* when its clock was last set right */
    bool stepped_back;     /* keys live longer than anybody counts with */
    uint32_t run;          /* counts its processes */
    int64_t began_ns;      /* when the present one did */
    int64_t started_us;    /* by its wall clock */
    int64_t quarantine_ns; /* guards keep the present run from setting a key until then */
    struct sim_ghost ghosts[SIM_GHOSTS_MAX];
    unsigned ghost_count;
    bool monitored; /* somebody subscribes to all channels by a pattern */
    bool down;
    int64_t down_until_ns;
    int64_t hung_until_ns, strange_until_ns;
    /* Bytes of connections that were given up come no sooner. */
    int64_t late_ns[SIM_CLIENTS_MAX];
    uint32_t killed_gen[SIM_CLIENTS_MAX]; /* connections of a lower generation were killed (R9) */
    uint32_t heard_gen[SIM_CLIENTS_MAX];  /* the subscription that it believes in; 0: none */
    int64_t forbids_ns;                   /* an ACL lacks what a queue needs, until then, */
    bool refuses_queue;                   /* or for good, */
    bool refuses_observers;               /* or the channels of leaders */
    /* Bit i: on that subscription, the channel of resource i. */
    uint8_t heard_channels[SIM_CLIENTS_MAX];
    struct fake_node fake;
    struct fake_node copy; /* last: it is not read without has_copy */
};

/* What a user knows of a lease. */
struct sim_lease {
    redlock_lease *handle; /* NULL once the user ended it */
    struct sim_client *owner;
    const struct sim_candidate *candidate; /* who leads by it; NULL: a lock */
    uint64_t term;                         /* likewise */
    uint8_t client, resource;
    uint8_t item;            /* of its handle */
    struct sim_lease *other; /* the other item of a bundle, which no slot has; NULL: none */
    bool adopted;
    bool held;    /* its callback said so: of acquire, or of an extend of an adopted lease */
    bool lost;    /* on_lost ran */
    bool expired; /* it was held, and its deadline is surely over by its owner's clock */
    bool has_on_lost, auto_extend, capped;
    bool extending; /* a caller's extend is pending */
    /* Another client has a handle for the same token: what that one does is no bug. */
    bool shared;
    bool reads;     /* others who read may hold the lock, too; */
    bool says;      /* and its token says so */
    uint32_t slots; /* bit i: of permits, it has slot i */
    int64_t lock_delay_ms;
    /* When that was seen, and what its client had been paused for by then. */
    int64_t expired_ns, expired_paused_ns;
    /* Its deadline is before this, on its owner's clock; 0: not known. */
    int64_t ends_ns;
    int64_t ttl_ms; /* the least that was ever asked */
    int64_t expiring_ms;
    /* Until when it is backed, by its owner's clock, as of these changes (see sim_world). */
    int64_t backed_until_ns;
    uint64_t backed_changes;
    int64_t told_deadline_ns; /* its owner was told that this deadline is near; 0: of none */
    /* When this deadline was first seen to be near, and what its client had been paused for. */
    int64_t due_deadline_ns, due_ns, due_paused_ns;
    char token[SIM_TOKEN_SIZE + 1];
};

enum sim_call_kind { SIM_CALL_ACQUIRE, SIM_CALL_EXTEND, SIM_CALL_RELEASE, SIM_CALL_INSPECT, SIM_CALL_CONNECT };

/* One accepted request of a user. */
struct sim_call {
    struct sim_client *client;
    struct sim_lease *lease; /* EXTEND, RELEASE */
    redlock_request *request;
    enum sim_call_kind kind;
    uint8_t slot, resource;
    bool done, cancelled, probe;
    bool auto_extend, has_on_lost, capped, fencing, fair, reads;
    bool both, other_reads; /* a bundle of this resource and the other one */
    uint8_t permits;        /* so many; 0: a lock */
    int64_t ttl_ms, lock_delay_ms, expiring_ms;
    int64_t since_ns, since_paused_ns; /* true time */
    int64_t asked_ns;                  /* likewise, whatever came later */
    int64_t asked_local_ns, wait_ms;   /* on the client's clock; 0: it tries once */
    /* It must complete so soon, pauses aside; SIM_NEVER until it is cancelled. */
    int64_t within_ns;
};

/* A lease that was granted, with what other leases must respect. */
struct sim_grant {
    char token[SIM_TOKEN_SIZE];
    uint8_t client, resource;
    bool fenced, ended; /* ended: released by somebody */
    bool reads;
    uint32_t slots;
    uint64_t fence;
    int64_t asked_ns, answered_ns; /* true time */
    /* With its lock delay, nobody else may be granted it until then. */
    int64_t promised_ns;
};

/* When each node set the key under a token, by an acquire or to heal it: the first and the last
 * time; 0: never. */
struct sim_sets {
    char token[SIM_TOKEN_SIZE];
    int64_t first_ns[SIM_NODES_MAX], last_ns[SIM_NODES_MAX];
};

/* The nodes that back a client's token, and the votes that are void: granted before the last step
 * of the node's clock that the client has seen. */
struct sim_backing {
    char token[SIM_TOKEN_SIZE];
    uint8_t client;
    uint32_t granted, voided; /* bit i: node i */
    uint32_t steps[SIM_NODES_MAX];
};

/* An acquire or a lease whose end was not told yet. */
struct sim_span {
    uint64_t id;
    uint8_t client, state;
    bool queued;
};

/* The state of one thread of a user's program. */
struct sim_slot {
    struct sim_call *acquiring;
    struct sim_lease *lease;
    struct sim_candidate *candidate;
};

struct sim_client {
    struct sim_world *world;
    unsigned index;
    struct redlock_group *group; /* NULL: not any more */
    struct redlock_elections elections;
    const struct redlock_channels *channels; /* NULL: it has not observed yet */
    struct sim_clock clock;
    bool closing, drained, crashed;
    bool in_api;   /* a call into the library is under way: no callback may run */
    bool stepping; /* the library runs */
    bool probing;  /* a checker reads the clock: no leap */
    /* True time inside a step; leaps ahead of the world's when the process is descheduled. */
    int64_t step_ns;
    int64_t busy_until_ns;  /* paused, or still in its last step */
    int64_t ahead_until_ns; /* its state is of this future moment: not to be judged before */
    int64_t blocked_ns;     /* paused until then, with nothing to do */
    uint64_t left_free;     /* so often until it last was */
    int64_t paused_ns;      /* in total, with what is left of a pause */
    int64_t wall_off_ns;    /* its wall clock beside the true one */
    int64_t unopened_ns;    /* its second connections cannot open until then */
    int64_t closed_ns, closed_paused_ns;
    uint32_t wake_serial;
    uint64_t tokens_drawn;
    uint32_t nodes_up, nodes_told;  /* by events */
    struct redlock_text *text;      /* one error text for all */
    bool is_old;                    /* its program never queues */
    char channel[SIM_CHANNEL_SIZE]; /* "": it does not listen */
    struct sim_slot slots[SIM_SLOTS_MAX];
    struct sim_link links[SIM_NODES_MAX];
};

/* What the managers counted, over all schedules. */
struct sim_totals {
    uint64_t fenced_fast, fenced_slow, healed, quarantines, clock_jumps, lost;
    uint64_t expiring;                 /* warnings of a deadline */
    uint64_t terms, successions, news; /* of elections; changes that had to come in time */
};

enum sim_phase { SIM_ACTIVE, SIM_SETTLING, SIM_PROBING, SIM_CLOSING };

struct sim_world {
    struct sim_profile profile;
    struct sim_random random;
    enum sim_control control;
    bool has_elections; /* instead of users who lock */
    uint64_t seed;
    int64_t now_ns;
    enum sim_phase phase;
    uint32_t order;
    /* Of what is due soon, and later. Most events are the former, most that are pending the latter:
     * timeouts. */
    struct sim_heap soon, late;
    struct sim_event *pending;
    uint32_t *vacant; /* the free places there */
    uint32_t pending_capacity, vacant_count;
    char *arena; /* bytes of a schedule's messages and replies */
    size_t arena_used;
    struct sim_node nodes[SIM_NODES_MAX];
    struct sim_client clients[SIM_CLIENTS_MAX];
    struct sim_lease leases[SIM_LEASES_MAX];
    unsigned lease_count;
    struct sim_call calls[SIM_CALLS_MAX];
    unsigned call_count;
    unsigned probed; /* resources that were taken again after the faults healed */
    unsigned probes; /* clients that want the next of them */
    unsigned users;  /* things that users did */
    struct sim_grant grants[SIM_LEASES_MAX];
    unsigned grant_count;
    struct sim_sets sets[SIM_SETS_MAX];
    unsigned set_count;
    struct sim_backing backings[SIM_BACKINGS_MAX];
    unsigned backing_count;
    struct sim_ask asks[SIM_ASKS_MAX];
    uint32_t ask_count;
    struct sim_span spans[SIM_SPANS_MAX];
    unsigned span_count;
    struct sim_line lines[SIM_CLIENTS_MAX][SIM_LINES_MAX];
    bool has_line[SIM_CLIENTS_MAX]; /* else its lines are all zero */
    struct sim_place places[SIM_PLACES_MAX];
    struct sim_elections elections;
    struct sim_forger forger;
    unsigned place_count;
    int64_t dead_ns;    /* when the process of SIM_FAULT_DEAD dies */
    int64_t crashed_ns; /* when a client crashed last */
    /* A quorum of nodes is idle since then; 0: it is not. With --control loaded: for so long. */
    int64_t idle_ns[SIM_RESOURCES_MAX];
    int64_t checked_ns; /* with --control loaded, the last time */
    /* Tokens whose keys may stay until their ttl. */
    char forgotten[SIM_FORGOTTEN_MAX][SIM_TOKEN_SIZE + 1];
    unsigned forgotten_count;
    const char *only_checker; /* all others are silent; NULL for none */
    /* the first violation */
    const char *checker;
    char violation[512];
    uint64_t changes; /* counts what may have changed keys at nodes, or what clients know of them */
    uint64_t events, total_events, holds;
    struct sim_totals totals;
    struct sim_spec spec;
    /* the trace */
    bool tracing, printing;
    uint64_t trace_hash;
};

/* The nodes that the client asks are the first so many; its quorum. */
static inline unsigned sim_nodes_of(const struct sim_world *world, unsigned client) {
    const unsigned own = world->profile.own_nodes[client];
    return own != 0 ? own : world->profile.nodes;
}

static inline unsigned sim_quorum_of(const struct sim_world *world, unsigned client) {
    const unsigned own = world->profile.own_quorum[client];
    return own != 0 ? own : world->profile.nodes / 2 + 1;
}

#endif
