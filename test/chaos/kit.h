/* Histories made by hand, for the tests of their readers. */
#ifndef CHAOS_KIT_H
#define CHAOS_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/history.h"

/* All times here are µs since the start. In the history they are absolute, as in a real run.
 * Clients, nodes and resources count from 0. */
#define KIT_START_US INT64_C(5000000000)

/* Entries have no order until kit_finish() sorts them. Functions that append return the index of
 * the new entry, valid until then. Without memory they abort. */
struct kit {
    struct chaos_history history;
    size_t operation_capacity, lease_capacity, increment_capacity, sweep_capacity, band_capacity, life_capacity,
        left_capacity, refusal_capacity, read_capacity, tally_capacity;
    int64_t last_op, last_id;
};

/* Every client is spawned at 0, with the pids 1001, 1002, …. The ttl is 1000 ms, the node timeout
 * 50 ms, the wait 2000 ms, the seed 7. */
void kit_begin(struct kit *kit, size_t nodes, size_t clients, size_t resources);
/* Frees everything. */
void kit_clear(struct kit *kit);

/* An acquire or release. Its deadline is 2 s after the invocation. For "OK" all votes are granted.
 * completed_us is CHAOS_NEVER_US if it never completed. */
size_t kit_operation(struct kit *kit, int client, int resource, enum chaos_what what, int64_t invoked_us,
                     int64_t completed_us, const char *result);
/* A lease with one claim, without an acquire. */
size_t kit_lease(struct kit *kit, int client, int resource, const char *token, int64_t from_us, int64_t until_us);
/* A lease with its acquire, which was invoked 1 ms before from_us and was OK at from_us. */
size_t kit_acquire(struct kit *kit, int client, int resource, const char *token, int64_t from_us, int64_t until_us);
/* The same for one who reads. */
size_t kit_acquire_shared(struct kit *kit, int client, int resource, const char *token, int64_t from_us,
                          int64_t until_us);
/* A read under it; fence and number are 0 without fencing. */
size_t kit_read(struct kit *kit, size_t lease, int64_t count, int64_t at_us, int64_t fence, int64_t number);
/* One more claim of a lease. */
void kit_claim(struct kit *kit, size_t lease, int64_t at_us, int64_t until_us);
/* Ends the lease without a release. */
void kit_end(struct kit *kit, size_t lease, int64_t ended_us, bool released);
/* Ends the lease and starts a release of 1 ms that is OK. */
void kit_release(struct kit *kit, size_t lease, int64_t ended_us);
/* An increment with the lease's client, resource, token and promise. done_us is CHAOS_NEVER_US if
 * it never wrote. */
size_t kit_increment(struct kit *kit, size_t lease, int64_t read, int64_t intent_us, int64_t done_us);
/* Sets token and fencing token of the last appended operation. */
void kit_fence(struct kit *kit, const char *token, int64_t fence);
/* Sets token and ticket of the last appended operation. */
void kit_ticket(struct kit *kit, const char *token, int64_t ticket);
/* Sets an increment's fencing token, and the numbers that the resource gave to its read and write;
 * 0: none. */
void kit_receipts(struct kit *kit, size_t increment, int64_t fence, int64_t read_number, int64_t write_number);
/* The resource refused the increment's write, or a read if increment is SIZE_MAX. */
void kit_refuse(struct kit *kit, size_t increment, int client, int resource, int64_t at_us, int64_t fence,
                int64_t highest);
/* For the client's last process. */
void kit_tally(struct kit *kit, int client, int64_t at_us, int64_t fenced_fast, int64_t quarantines);
/* A sweep in which every node has answered and has no key. */
size_t kit_sweep(struct kit *kit, int resource, int64_t from_us, int64_t to_us);
/* The nodes in the mask have the token for this long. */
void kit_see(struct kit *kit, size_t sweep, uint32_t nodes, const char *token, int64_t pttl_ms);
/* The token is one more of those who read on the nodes in the mask, for this long. */
void kit_see_reader(struct kit *kit, size_t sweep, uint32_t nodes, const char *token, int64_t left_ms);
/* The token is the next in the queue of the nodes in the mask. */
void kit_queue(struct kit *kit, size_t sweep, uint32_t nodes, const char *token);
/* The nodes in the mask have not answered. */
void kit_silent(struct kit *kit, size_t sweep, uint32_t nodes);
size_t kit_band(struct kit *kit, enum chaos_fault_kind kind, uint32_t nodes, uint64_t clients, int64_t from_us,
                int64_t to_us);
/* The nemesis kills the client's last process. */
void kit_kill(struct kit *kit, int client, int64_t ended_us);
size_t kit_spawn(struct kit *kit, int client, int64_t spawned_us);
void kit_leave(struct kit *kit, const char *text);

/*
 * Completes and sorts the history as chaos_history_read() does, and returns it. Running processes
 * end as they should at finish_us. The counters are the sums of the done increments. Nothing else
 * is left over.
 */
struct chaos_history *kit_finish(struct kit *kit, int64_t finish_us);
/* Sorts again after a change by hand. */
void kit_sort(struct kit *kit);

#endif
