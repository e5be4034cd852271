/* The inside of a server: its connection, and why and when to open, end or spare it. */
#ifndef REDLOCK_SERVER_SERVER_STATE_H
#define REDLOCK_SERVER_SERVER_STATE_H

#include "server/handshake.h"
#include "server/link.h"
#include "server/rotation_state.h"
#include "server/subscription.h"
#include "wire/holder_query.h"
#include "wire/wire.h"

/* The states of architecture.md. The first three are CONNECTING. */
enum redlock_server_phase {
    REDLOCK_PHASE_NEW,         /* until the first turn of the loop */
    REDLOCK_PHASE_DIALING,     /* see dial.link.state */
    REDLOCK_PHASE_INTRODUCING, /* the second part of the handshake: the server is known */
    REDLOCK_PHASE_READY,
    REDLOCK_PHASE_STALLED,
    REDLOCK_PHASE_WAITING, /* for the next try */
    REDLOCK_PHASE_UNUSABLE /* likewise */
};

/* A try for a connection, until the server has said who it is. Then that takes the connection over.
 * While the server is READY or STALLED, this is a spare: its connection is silent. */
struct redlock_dial {
    struct redlock_link link; /* the first member, so a link pointer is a dial pointer */
    struct redlock_server *server;
    int64_t begun_ns;
    int64_t again_ns;              /* OFF: no spare before that time */
    unsigned failures;             /* spares in vain in a row, for the backoff (R16) */
    struct redlock_lookup *lookup; /* one at a time; outlives the try that started it */
    struct redlock_endpoints endpoints;
    struct redlock_handshake handshake;
    char mark[REDLOCK_SERVER_MARK_SIZE]; /* of this try */
    struct redlock_clock_sample clock;   /* from the handshake */
    int64_t round_trip_ns;               /* of its first reply; 0: none yet */
};

struct redlock_server {
    /* The watch is the first member of the connection, so a watch pointer is a server pointer. */
    struct redlock_connection connection;
    struct redlock_reactor reactor;
    struct redlock_server_callbacks callbacks;
    struct redlock_server_options options;
    int64_t timeout_ns; /* options.node_timeout_ms */
    struct redlock_address address;
    struct redlock_rotation rotation; /* of its user and password */
    unsigned index;
    uint32_t jitter;

    enum redlock_server_phase phase;
    bool first_try_done; /* ready_changed was called at least once */
    bool resumes;        /* INTRODUCING, in place of a silent connection to the same server */
    bool succeeds;       /* INTRODUCING, and all is known: a later node has the same server still */

    int64_t timer_ns;   /* when the reactor's timer fires; it may be too early (R7) */
    int64_t due_ns;     /* INTRODUCING, STALLED: give up; WAITING, UNUSABLE: dial; else NEVER */
    int64_t hello_ns;   /* when the last part of the handshake was queued; 0: answered */
    int64_t up_ns;      /* READY since then */
    int64_t heard_ns;   /* READY, STALLED: when the last reply was read; before that, up_ns */
    int64_t scripts_ns; /* when scripts were last sent */
    unsigned failures;  /* failed tries in a row, for the backoff (R16) */
    unsigned timeouts;  /* timeouts in a row, without any reply (R17) */

    struct redlock_dial dial;
    struct redlock_endpoint endpoint; /* of the connection */
    struct redlock_handshake handshake;
    /* The last connection that was READY: its server, and its id there (R9). */
    char known_run_id[REDLOCK_INFO_WORD_SIZE];
    int64_t known_client_id;
    char mark[REDLOCK_SERVER_MARK_SIZE]; /* of the last try to know its server: it tells where */
    struct redlock_subscription subscription;

    struct redlock_text *why;                   /* why it is not READY; NULL if it is */
    uint32_t changes;                           /* of the phase and of `why` */
    struct redlock_text *yields;                /* why it must give way to another node */
    struct redlock_text *timed_out, *withdrawn; /* the texts of votes at their timeout */
    struct redlock_text *far;                   /* `timed_out` while it is far; NULL until it is */

    struct redlock_form form;                           /* what the server has and did not refuse */
    enum redlock_holder_query_reply holder_query_first; /* of two replies, the one that has come: */
    char holder_query_value[REDLOCK_TOKEN_SIZE_MAX];
    uint8_t holder_query_value_size; /* 0: none, or it is no token */
    bool holder_query_barred;        /* never ask this server again */
    uint16_t loaded;                 /* kinds of requests whose scripts it got on this connection */
    struct redlock_info info;        /* from the last handshake that got so far */
    char warning[REDLOCK_HANDSHAKE_TEXT_SIZE];
    int64_t round_trip_ns; /* of the last reply; -1 for none */
    int64_t shortest_ns;   /* of this connection; INT64_MAX for none */
    uint64_t connects;
};

static inline bool redlock_server_is_up(const struct redlock_server *server) {
    return server->phase == REDLOCK_PHASE_READY || server->phase == REDLOCK_PHASE_STALLED;
}

/*
 * How far away the server is, by the shortest round trip of this connection: of both parts of the
 * handshake, and of each reply since.
 *
 * state    event                                          → state
 * unknown  READY, and a round trip was short enough       → near
 *          READY, and none was                            → far: PING, so that it is measured again
 * far      a reply within the node timeout                → near; the group is told, as if it was
 *                                                           READY again
 *          a WAIT is asked for                            → far: refused; PING, if no answer is
 *                                                           under way
 * any      the connection ends                            → unknown
 *
 * No answer of a far server comes in time, also where the loop runs so late that it reads the
 * answer before it looks at the timeout. Such a server gets requests all the same: it may be near
 * and have been slow, and releases must get there. But it gets no WAIT: a grant of that would
 * count, however late it comes, and the lease could not be renewed.
 */
static inline bool redlock_server_is_far(const struct redlock_server *server) {
    return server->shortest_ns > server->timeout_ns && redlock_server_is_up(server);
}

/* Connected to a server that has said who it is. */
static inline bool redlock_server_is_known(const struct redlock_server *server) {
    return server->phase == REDLOCK_PHASE_INTRODUCING || redlock_server_is_up(server);
}

static inline bool redlock_server_is_connecting(const struct redlock_server *server) {
    return server->phase <= REDLOCK_PHASE_INTRODUCING;
}

/* Returns whether a second connection is tried beside the one that is silent. */
static inline bool redlock_server_has_spare(const struct redlock_server *server) {
    return redlock_server_is_up(server) && server->dial.link.state != REDLOCK_LINK_OFF;
}

static inline int64_t redlock_server_now_ns(const struct redlock_server *server) {
    return server->reactor.now_ns(server->reactor.ctx);
}

/* Sets the timer if the next due time is earlier than the timer's. */
static inline void redlock_server_rearm(struct redlock_server *server, int64_t due_ns) {
    if (due_ns < server->timer_ns) {
        server->timer_ns = due_ns;
        server->reactor.timer_at(server->reactor.ctx, &server->connection.watch, due_ns);
    }
}

#endif
