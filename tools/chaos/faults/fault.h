/* The kinds of faults, and one fault as a line of text. Pure. */
#ifndef CHAOS_FAULT_H
#define CHAOS_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/error.h"

enum { CHAOS_NODES_MAX = 31, CHAOS_CLIENTS_MAX = 64, CHAOS_RESOURCES_MAX = 32, CHAOS_FAULT_LINE_MAX = 512 };

/* What a fault hits. LINKS: every pair of its clients and nodes. */
enum chaos_target { CHAOS_TARGET_NODES, CHAOS_TARGET_CLIENTS, CHAOS_TARGET_LINKS };

/* What amount= says. */
enum chaos_amount {
    CHAOS_AMOUNT_NONE,
    CHAOS_AMOUNT_TIME,
    CHAOS_AMOUNT_PPM,
    CHAOS_AMOUNT_BYTES_PER_S,
    CHAOS_AMOUNT_NODES
};

extern const struct chaos_amount_about {
    const char *unit, *words; /* in a line, and for people; a time has several */
    int64_t most;
    const char *example, *expected;
} chaos_amounts[];

/*
 * X(constant, name, target, amount, lasts, exclusive, breaks, help, phrase, several)
 * lasts: it has an end; otherwise it is over at once.
 * exclusive: not while another exclusive fault is on the same node or client.
 * breaks: Redlock does not promise safety under it (a node forgets keys, or its clock is off by
 * more than the drift).
 * phrase: what one node (or client) suffers; several: what more of them do, NULL: the same words.
 * '@' stands for the nodes, '&' for the clients, '#' for the amount without its sign, '<' and '>'
 * for a word that depends on it.
 */
#define CHAOS_FAULT_MAP(X)                                                                                             \
    X(KILL, "kill", NODES, NONE, true, true, false, "SIGKILL; at the end started again, with what its AOF has",        \
      "@ killed", NULL)                                                                                                \
    X(RESTART_EMPTY, "restart-empty", NODES, NONE, true, true, true, "SIGKILL; at the end started again without keys", \
      "@ killed, without keys afterwards", NULL)                                                                       \
    X(PAUSE, "pause", NODES, NONE, true, true, false,                                                                  \
      "SIGSTOP, or docker pause; the kernel goes on taking connections", "@ paused", NULL)                             \
    X(DROP, "drop", NODES, NONE, true, true, false, "all its packets are lost; for containers, root and iptables",     \
      "packets from and to @ lost", NULL)                                                                              \
    X(SLOW, "slow", NODES, TIME, false, false, false, "DEBUG SLEEP for amount: everybody waits", "@ asleep for #",     \
      NULL)                                                                                                            \
    X(BUSY, "busy", NODES, TIME, false, false, false, "a script that runs for amount", "@ busy with a script for #",   \
      NULL)                                                                                                            \
    X(SCRIPT_FLUSH, "script-flush", NODES, NONE, false, false, false, "SCRIPT FLUSH: EVALSHA is answered by NOSCRIPT", \
      "@ without its scripts", "@ without their scripts")                                                              \
    X(FLUSHALL, "flushall", NODES, NONE, false, false, true, "FLUSHALL: the node forgets every lock",                  \
      "@ flushed: all keys gone", NULL)                                                                                \
    X(DISCONNECT, "disconnect", NODES, NONE, false, false, false, "CLIENT KILL of every client's connection",          \
      "@ closed all connections", NULL)                                                                                \
    X(UNSUBSCRIBE, "unsubscribe", NODES, NONE, false, false, false,                                                    \
      "CLIENT KILL TYPE pubsub: the node cannot tell who waits", "@ closed all subscriptions", NULL)                   \
    X(MAXCLIENTS, "maxclients", NODES, NONE, true, false, false,                                                       \
      "CONFIG SET maxclients 1: no new connections; those that stand go on", "@ taking no new connections", NULL)      \
    X(OOM, "oom", NODES, NONE, true, false, false, "CONFIG SET maxmemory 1: every SET is answered by OOM",             \
      "@ out of memory", NULL)                                                                                         \
    X(PASSWORD, "password", NODES, NONE, true, false, false,                                                           \
      "another password, and CLIENT KILL: nobody gets in again", "@ with another password", NULL)                      \
    X(CLOCK_JUMP, "clock-jump", NODES, TIME, false, false, true, "the node's wall clock steps by amount, for good",    \
      "@'s clock steps <by #", "the clocks of @ step <by #")                                                           \
    X(CLOCK_SKEW, "clock-skew", NODES, PPM, true, true, true, "the node's wall clock runs amount ppm fast (or slow)",  \
      "@'s clock runs # >", "the clocks of @ run # >")                                                                 \
    X(PARTITION, "partition", LINKS, NONE, true, false, false, "nothing passes; what was sent arrives afterwards",     \
      "& cut off from @", NULL)                                                                                        \
    X(LOSE_REQUESTS, "lose-requests", LINKS, NONE, true, false, false, "replies pass, requests wait until the end",    \
      "requests of & to @ held back", NULL)                                                                            \
    X(LOSE_REPLIES, "lose-replies", LINKS, NONE, true, false, false, "requests pass, replies wait until the end",      \
      "replies of @ to & held back", NULL)                                                                             \
    X(DELAY, "delay", LINKS, TIME, true, false, false, "each way takes amount longer",                                 \
      "# more each way between & and @", NULL)                                                                         \
    X(JITTER, "jitter", LINKS, TIME, true, false, false, "each piece of bytes takes up to amount longer, in order",    \
      "up to # more each way between & and @", NULL)                                                                   \
    X(BANDWIDTH, "bandwidth", LINKS, BYTES_PER_S, true, false, false, "amount bytes a second each way",                \
      "# each way between & and @", NULL)                                                                              \
    X(CUT, "cut", LINKS, NONE, false, false, false, "the connections are reset; what was under way is gone",           \
      "connections of & to @ reset", NULL)                                                                             \
    X(SILENT, "silent", LINKS, NONE, true, false, false,                                                               \
      "the connections of this moment pass nothing until the end; new ones work", "connections of & to @ silent",      \
      NULL)                                                                                                            \
    X(CLIENT_PAUSE, "client-pause", CLIENTS, NONE, true, true, false, "SIGSTOP to the client", "& paused", NULL)       \
    X(CLIENT_KILL, "client-kill", CLIENTS, NONE, true, true, false, "SIGKILL to the client; a new one at the end",     \
      "& killed", NULL)                                                                                                \
    X(CONFIGURE, "configure", LINKS, NODES, false, false, false,                                                       \
      "no fault: clients end in order, and begin anew with these nodes and a quorum of amount",                        \
      "& begin anew with @ and a quorum of #", NULL)

enum chaos_fault_kind {
#define CHAOS_X(constant, ...) CHAOS_FAULT_##constant,
    CHAOS_FAULT_MAP(CHAOS_X)
#undef CHAOS_X
        CHAOS_FAULT_KINDS
};

struct chaos_fault_about {
    const char *name;
    const char *help;
    enum chaos_target target;
    enum chaos_amount amount;
    bool lasts;
    bool exclusive;
    bool breaks;
    const char *phrase, *several;
};

struct chaos_fault {
    enum chaos_fault_kind kind;
    uint32_t nodes;   /* bit i: node i + 1; 0 where the target is CLIENTS */
    uint64_t clients; /* bit i: client i + 1; 0 where the target is NODES */
    int64_t at_ms;    /* since the start; 0 by hand */
    int64_t for_ms;   /* 0 for what does not last */
    /* ms (may be negative for clock-jump), ppm (may be negative), bytes a second, or nodes */
    int64_t amount;
};

static inline bool chaos_fault_is_of_clock(enum chaos_fault_kind kind) {
    return kind == CHAOS_FAULT_CLOCK_JUMP || kind == CHAOS_FAULT_CLOCK_SKEW;
}

/* Whether Redlock promises no safety under it; `forgets`: nodes that are killed lose their keys. */
bool chaos_fault_breaks(const struct chaos_fault *fault, bool forgets);

/* SLOW and BUSY last for their amount. */
static inline int64_t chaos_fault_length_ms(const struct chaos_fault *fault) {
    return fault->kind == CHAOS_FAULT_SLOW || fault->kind == CHAOS_FAULT_BUSY ? fault->amount : fault->for_ms;
}

static inline bool chaos_hits_node(const struct chaos_fault *fault, size_t node) {
    return (fault->nodes >> node & 1) != 0;
}

static inline bool chaos_hits_client(const struct chaos_fault *fault, size_t client) {
    return (fault->clients >> client & 1) != 0;
}

/* The bits of all, from 1 to count. */
static inline uint64_t chaos_all(size_t count) {
    return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static inline size_t chaos_count_bits(uint64_t set) {
    size_t count = 0;
    for (; set != 0; set &= set - 1) {
        count++;
    }
    return count;
}

const struct chaos_fault_about *chaos_fault_about(enum chaos_fault_kind kind);
/* Whether it has nodes and clients as far as its target needs them. */
bool chaos_fault_hits_somebody(const struct chaos_fault *fault);
/* The bits of all kinds, but DROP, which not every machine can do, so that it must be named,
 * CONFIGURE, which is none, and those that break the assumptions unless `breaking`. */
uint32_t chaos_fault_kinds(bool breaking);
/* By name; false if there is none. */
bool chaos_fault_kind_find(const char *name, enum chaos_fault_kind *kind);

/*
 * "at=2s for=3s fault=pause nodes=1,2,3", in any order. nodes= and clients= take numbers from 1,
 * ranges (2-4), or "all" (their default where the target needs them); times are 500ms, 10s, 2m, and
 * may be negative in amount=-3s; amount= is 20ms, 50000ppm, 2000B/s or 4. at= may be missing (0).
 * for= and amount= must be there where the kind has one, and must not where it has none. False with
 * a sentence in error that says what is wrong and what is expected.
 */
bool chaos_fault_parse(const char *line, size_t node_count, size_t client_count, struct chaos_fault *fault,
                       struct chaos_error *error);
/* The line that chaos_fault_parse() reads back to the same fault. Without at= if with_at is false.
 * Returns buffer. */
char *chaos_fault_format(const struct chaos_fault *fault, size_t node_count, size_t client_count, bool with_at,
                         char *buffer, size_t size);
/* A phrase for people: "nodes 1, 2 and 3 paused", "clients 4 to 9 cut off from node 2", "node 3's
 * clock steps by 5 s". Returns buffer. */
char *chaos_fault_describe(const struct chaos_fault *fault, size_t node_count, size_t client_count, char *buffer,
                           size_t size);

/*
 * "kill,pause": sets a bit a kind; "all" (but those that are named only), "safe" (of these, all
 * that do not break the assumptions), "none". False with a sentence that lists what there is.
 */
bool chaos_fault_kinds_parse(const char *list, uint32_t *kinds, struct chaos_error *error);

/* "500ms", "10s", "2m", "1h", "0"; no sign. Shared by the command line. */
bool chaos_time_parse(const char *text, int64_t *ms);

#endif
