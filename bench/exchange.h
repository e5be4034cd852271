/* The minimal lock exchange, shared by floor and hiredis_libev: it sends prepared bytes and counts
 * votes. */
#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "contender.h"

/* Our releases run the same script as the other contenders, so nodes do the same work for all. */
extern const char exchange_release_script[];

struct exchange_request {
    uint32_t size;
    char bytes[156];
};

/* Names the request of a reply. If the worker has a later sequence by then, the vote is late. */
struct exchange_tag {
    uint32_t worker, sequence;
};

struct exchange_worker {
    uint32_t sequence; /* grows with each phase: acquire, release, acquire, … */
    uint8_t granted, refused, name;
    bool releasing;
    int64_t began_ns;
    struct exchange_request acquire[CONTENDER_NAMES], release[CONTENDER_NAMES];
};

struct exchange {
    unsigned node_count, quorum;
    struct contender_cycles *cycles; /* of the current run */
    bool ending;                     /* start no new cycle */
    unsigned outstanding;
    struct exchange_worker *workers; /* CONTENDER_WORKERS_MAX workers */
    /* Queues the request to every node. */
    void (*send)(void *data, const struct exchange_request *request, struct exchange_tag tag);
    /* NULL: the worker's next phase begins at once. Else this is called, and begins it. */
    void (*decided)(void *data, struct exchange_worker *worker, bool granted);
    void *data;
};

/* Formats all requests in advance. */
void exchange_make(struct exchange *exchange);
void exchange_free(struct exchange *exchange);

/* Sends what the worker asks the nodes for: its lock, or the release. */
void exchange_begin_phase(struct exchange *exchange, struct exchange_worker *worker, bool releasing);

/* Starts the first cycle of each worker. */
void exchange_begin(struct exchange *exchange, struct contender_cycles *cycles);

/* Counts one node's vote. At the quorum, the worker starts its next phase. */
void exchange_vote(struct exchange *exchange, struct exchange_tag tag, bool granted);

/* Checks the reply to SCRIPT LOAD: returns false unless it is the SHA1 that our releases use. */
bool exchange_sha1_matches(const char *sha1, size_t size);

#endif
