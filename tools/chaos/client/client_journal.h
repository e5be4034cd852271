/* What a client writes down, as events of README.md. */
#ifndef CHAOS_CLIENT_JOURNAL_H
#define CHAOS_CLIENT_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include <redlock/redlock.h>

#include "client/resource.h"
#include "history/history.h"
#include "history/log.h"

struct chaos_journal {
    struct chaos_log log;
    int client;     /* from 1, as in the events */
    uint32_t nodes; /* that the client asks, as bits */
    /* of the operation that was invoked last: pid × 1000000 + n, which no other process of a run
     * has */
    int64_t op;
};

/* What a claim is about; `resource` is an index from 0. */
struct chaos_held {
    size_t resource;
    char token[CHAOS_TOKEN_SIZE];
    int64_t fence;  /* 0 for none */
    int64_t ticket; /* of one that got the lock in a queue; else 0 */
    bool shared;    /* others have it, too: it is for reading */
};

/* Before the call; it must complete within so much time. Of what is held, the resource and the mode
 * count. */
void chaos_journal_invoke(struct chaos_journal *journal, enum chaos_what what, const struct chaos_held *held,
                          int64_t within_ms);
/* After it; result may be NULL, of what is held the token "". */
void chaos_journal_complete(struct chaos_journal *journal, int code, const struct chaos_held *held,
                            const redlock_result *result);
void chaos_journal_claim(struct chaos_journal *journal, int64_t at_us, const struct chaos_held *held, int64_t until_us);
void chaos_journal_end(struct chaos_journal *journal, const struct chaos_held *held, const char *how);
void chaos_journal_intent(struct chaos_journal *journal, const struct chaos_held *held, int64_t read,
                          const struct chaos_receipt *receipt);
void chaos_journal_done(struct chaos_journal *journal, int64_t at_us, const struct chaos_held *held, int64_t read,
                        int64_t until_us, const struct chaos_receipt *receipt);
/* It read this count under a shared lease, by at_us. */
void chaos_journal_read(struct chaos_journal *journal, int64_t at_us, const struct chaos_held *held, int64_t read,
                        int64_t until_us, const struct chaos_receipt *receipt);
/* read: what was to be written is the successor of it; -1 where the read itself was refused. */
void chaos_journal_refused(struct chaos_journal *journal, const struct chaos_held *held, int64_t read,
                           const struct chaos_receipt *receipt);
/* What the library has counted so far. */
void chaos_journal_tally(struct chaos_journal *journal, const redlock_statistics *statistics);

#endif
