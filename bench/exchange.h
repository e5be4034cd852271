/* The least that takes and releases locks: bytes made beforehand, and votes counted. What floor and hiredis_libev share. */
#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "contender.h"

/* The script that our releases run, so that the nodes do the same work for all. */
extern const char exchange_release_script[];

struct exchange_request {
    uint32_t size;
    char bytes[156];
};

/* What a node's reply belongs to: a later sequence of the worker makes it a late vote. */
struct exchange_tag {
    uint32_t worker, sequence;
};

struct exchange_worker {
    uint32_t sequence; /* rises with each phase: acquire, release, acquire, … */
    uint8_t granted, refused, name;
    bool releasing;
    int64_t began_ns;
    struct exchange_request acquire[CONTENDER_NAMES], release[CONTENDER_NAMES];
};

struct exchange {
    unsigned node_count, quorum;
    struct contender_cycles *cycles; /* of the run under way */
    bool ending;                     /* no new cycle begins */
    unsigned outstanding;
    struct exchange_worker *workers; /* CONTENDER_WORKERS_MAX of them */
    /* Queues the request to every node. */
    void (*send)(void *data, const struct exchange_request *request, struct exchange_tag tag);
    void *data;
};

/* Makes all requests: no formatting later. */
void exchange_make(struct exchange *exchange);
void exchange_free(struct exchange *exchange);

/* The first cycle of each worker. */
void exchange_begin(struct exchange *exchange, struct contender_cycles *cycles);

/* One node's vote: at the quorum the worker's next phase begins. */
void exchange_vote(struct exchange *exchange, struct exchange_tag tag, bool granted);

/* The reply to SCRIPT LOAD is the SHA1 that the releases name: false where it is another. */
bool exchange_sha1_matches(const char *sha1, size_t size);

#endif
