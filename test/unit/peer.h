/* A node over a real loop, and the server's end of its connection in the test's own hands. */
#ifndef TEST_UNIT_PEER_H
#define TEST_UNIT_PEER_H

#include "loop/loop.h"
#include "node/node.h"

#define PEER_ANSWERS_MAX 256
#define PEER_TIMEOUT_MS  400 /* the node's, for one request */
#define PEER_LIMIT_MS    20000
#define PEER_TOKEN       "0123456789abcdef0123456789abcdef@a" /* of each request */

struct peer_answer {
    void *owner;
    uint32_t round;
    redlock_vote_kind vote;
    struct redlock_clock_sample clock;
    char text[256];
    enum redlock_cause cause;
};

#define PEER_OTHER_MARK "s0123456789abcdef0123456789abcdef" /* of another node */

struct peer {
    struct ev_loop *ev;
    struct redlock_loop *loop;
    struct redlock_node *node;
    int listener, connection; /* -1 for none */
    uint16_t port;
    char heard[65536]; /* by the server and not yet expected */
    size_t heard_size;
    bool heard_end, heard_reset;
    struct peer_answer answers[PEER_ANSWERS_MAX];
    size_t answer_count;
    int became_ready, became_unready;
    int greeted;                      /* so often */
    int settled_when_greeted;         /* became_ready then */
    bool listens_when_greeted;        /* who is told begins to wait */
    struct redlock_greeting greeting; /* the last; its run_id is below */
    char greeted_run_id[64];
    int pushes;
    struct redlock_push push; /* the last; its texts are below */
    char push_token[64], push_key[64];
    int told_listening; /* so often */
    enum redlock_listening listening;
    char why_not[256];
    int hints;
    char hinted[128]; /* the key of the last */
    int told_hears;   /* so often */
    const struct redlock_channel *hears;
    const char *version; /* what it says of itself in INFO; NULL: redis_version:7.0.15 */
    char mark[64];       /* that the last probe of a server without a run_id has said */
    bool finds_other;    /* the marker has PEER_OTHER_MARK */
    const char *rival;   /* what same_server says */
    bool rival_yields;
    int rival_asked; /* how often */
    void (*in_answer)(struct peer *peer);
    char log[8192];
};

/* A node that is to connect to us at 127.0.0.1. */
void peer_start(struct peer *peer);
void peer_start_guarded(struct peer *peer);
void peer_start_marked(struct peer *peer);                        /* one of several nodes */
void peer_start_with(struct peer *peer, const char *credentials); /* "user:password@" */
void peer_stop(struct peer *peer);

/* One turn of the loop, without waiting, and what came of it for the server. */
void peer_turn(struct peer *peer);
/* Turns until the condition holds; a failure of the test at the limit. */
#define PEER_UNTIL(peer, condition)                                                                                    \
    for (int64_t end_ns = redlock_loop_now_ns(NULL) + PEER_LIMIT_MS * INT64_C(1000000); !(condition);) {               \
        if (redlock_loop_now_ns(NULL) > end_ns)                                                                        \
            fail_msg("did not happen: %s", #condition);                                                                \
        peer_turn(peer);                                                                                               \
    }
void peer_accept(struct peer *peer);
/* Turns until the server has heard these bytes, which are taken, or its connection has ended. */
void peer_expect(struct peer *peer, const char *bytes);
void peer_expect_end(struct peer *peer, bool reset);
void peer_say(struct peer *peer, const char *bytes);
/* Hears these bytes, and answers. */
void peer_serve(struct peer *peer, const char *heard, const char *answer);
/* Leaves the connection open, for the test to close; the next peer_accept() takes another. */
int peer_put_aside(struct peer *peer);
/* The server ends the connection. */
void peer_close(struct peer *peer);
#define PEER_SERVER_US INT64_C(1763791726050413) /* what a node is told by the server */
/* Accepts, and answers the handshake as server `run_id`; `kills`: the id to be killed, or 0. */
void peer_greet(struct peer *peer, const char *run_id, int id, int kills);

/* The first command of a handshake without a password. */
void peer_ping(struct peer *peer);

/* The first part of that, on a connection that is accepted. */
void peer_hello(struct peer *peer, const char *run_id, int id, int kills);

/* The second part: hears the name and the scripts, and answers. */
void peer_introduced(struct peer *peer);

/* Sends `bytes` as a request; peer_send_as() now, peer_send() as an ACQUIRE. Returns what
 * redlock_node_send() did. */
bool peer_queue(struct peer *peer, const char *bytes, unsigned reply_kind, uint32_t round, int64_t now_ns);
bool peer_send_as(struct peer *peer, const char *bytes, unsigned reply_kind, uint32_t round);
bool peer_send(struct peer *peer, const char *bytes, uint32_t round);
/* It is sent, and the server hears it. */
void peer_sends(struct peer *peer, const char *bytes, uint32_t round);
/* Each letter is a request, in rounds 1, 2, 3, …. */
void peer_sends_each(struct peer *peer, const char *letters);
void peer_until_answers(struct peer *peer, size_t count);
void peer_until_state(struct peer *peer, redlock_node_state state);
void peer_assert_answer(const struct peer *peer, size_t index, uint32_t round, redlock_vote_kind vote,
                        const char *words);
/* Until this answer, the last. */
void peer_until_answer(struct peer *peer, size_t index, uint32_t round, redlock_vote_kind vote, const char *words);
redlock_node_info peer_info(const struct peer *peer);
/* How often the log has these words. */
unsigned peer_times_logged(const struct peer *peer, const char *words);

#endif
