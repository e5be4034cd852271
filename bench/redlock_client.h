/* What the workloads of the async contender share: a manager on its own loop. */
#ifndef BENCH_REDLOCK_CLIENT_H
#define BENCH_REDLOCK_CLIENT_H

#include <ev.h>
#include <redlock/redlock.h>

#include "contender.h"

struct redlock_client {
    struct ev_loop *loop;
    redlock_manager *manager;               /* NULL until connected */
    const redlock_acquire_options *acquire; /* for cycles; NULL: the defaults */
    redlock_order order;                    /* of those that wait */
    const char *ca_file;                    /* of who vouches for the nodes; NULL: no TLS */
};

/* Keeps the message of the first failure. */
static inline void redlock_client_failed(const redlock_result *result, char error[CONTENDER_ERROR_SIZE]) {
    if (!*error) {
        (void)redlock_result_message(result, error, CONTENDER_ERROR_SIZE);
    }
}

/* redlock_contend.c: many clients compete for one resource. */
void redlock_client_contend(void *data, struct contender_contest *contest, char error[CONTENDER_ERROR_SIZE]);

/* redlock_contend.c: `take` takes the resource and keeps it. */
bool redlock_client_take(struct redlock_client *client, const char *command, const char *arguments, FILE *json,
                         char error[CONTENDER_ERROR_SIZE]);

/* redlock_hold.c: `hold` and `churn` measure memory and time of many leases and many cycles. */
bool redlock_client_hold(void *data, const char *command, const char *arguments, FILE *json,
                         char error[CONTENDER_ERROR_SIZE]);

/* redlock_fence.c: `fenced` and `alternate` measure the cost of a fencing token, and of a shared
 * lock. */
bool redlock_client_fence(struct redlock_client *client, const char *command, const char *arguments, FILE *json,
                          char error[CONTENDER_ERROR_SIZE]);

/* redlock_readers.c: `readers` measures many who read beside some who write. */
bool redlock_client_readers(struct redlock_client *client, const char *command, const char *arguments, FILE *json,
                            char error[CONTENDER_ERROR_SIZE]);

/* redlock_async.c: runs cycles until `count` have ended or the duration is over (0: no such
 * limit). */
void redlock_client_cycles(struct redlock_client *client, struct contender_cycles *cycles, uint64_t count,
                           char error[CONTENDER_ERROR_SIZE]);

#endif
