/* Histories made by hand, for the tests of what reads them. */
#ifndef CHAOS_KIT_H
#define CHAOS_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/history.h"

/* All times that are given here are µs since the start; in the history they are absolute, as those of a run. Clients, nodes and resources are from 0. */
#define KIT_START_US INT64_C(5000000000)

/*
 * What is appended is in no order until kit_finish() sorts it. Functions that append return the new one's index, which stands until then. Without
 * memory they abort.
 */
struct kit {
    struct chaos_history history;
    size_t operation_capacity, lease_capacity, increment_capacity, sweep_capacity, band_capacity, life_capacity,
        left_capacity, refusal_capacity, tally_capacity;
    int64_t last_op, last_id;
};

/* Every client has been spawned at 0 with the pid 1001, 1002, …; ttl 1000 ms, node timeout 50 ms, wait 2000 ms, seed 7. */
void kit_begin(struct kit *kit, size_t nodes, size_t clients, size_t resources);
/* Frees everything. */
void kit_clear(struct kit *kit);

/* An acquire or release; its deadline is 2 s after the invocation, its votes are all granted if it is "OK". completed_us: CHAOS_NEVER_US for never. */
size_t kit_operation(struct kit *kit, int client, int resource, enum chaos_what what, int64_t invoked_us,
                     int64_t completed_us, const char *result);
/* A lease with one claim; no acquire with it. */
size_t kit_lease(struct kit *kit, int client, int resource, const char *token, int64_t from_us, int64_t until_us);
/* An acquire that was invoked 1 ms before from_us and was OK then, and its lease. */
size_t kit_acquire(struct kit *kit, int client, int resource, const char *token, int64_t from_us, int64_t until_us);
/* One more claim of a lease. */
void kit_claim(struct kit *kit, size_t lease, int64_t at_us, int64_t until_us);
/* The lease ends; no release with it. */
void kit_end(struct kit *kit, size_t lease, int64_t ended_us, bool released);
/* The lease ends, and a release of 1 ms that was OK begins. */
void kit_release(struct kit *kit, size_t lease, int64_t ended_us);
/* done_us: CHAOS_NEVER_US if it never wrote. Of the lease's client, resource, token and promise. */
size_t kit_increment(struct kit *kit, size_t lease, int64_t read, int64_t intent_us, int64_t done_us);
/* The token of the operation that was appended last, and its fencing token. */
void kit_fence(struct kit *kit, const char *token, int64_t fence);
/* With what fencing token an increment was made, and the numbers that the resource gave to its read and write; 0: none. */
void kit_receipts(struct kit *kit, size_t increment, int64_t fence, int64_t read_number, int64_t write_number);
/* The increment's write was refused, or, where it is none (SIZE_MAX), a read. */
void kit_refuse(struct kit *kit, size_t increment, int client, int resource, int64_t at_us, int64_t fence,
                int64_t highest);
/* Of the client's last process. */
void kit_tally(struct kit *kit, int client, int64_t at_us, int64_t fenced_fast, int64_t quarantines);
/* Every node has answered, and has no key. */
size_t kit_sweep(struct kit *kit, int resource, int64_t from_us, int64_t to_us);
/* Nodes of the mask have the token for so long. */
void kit_see(struct kit *kit, size_t sweep, uint32_t nodes, const char *token, int64_t pttl_ms);
/* Nodes of the mask have not answered. */
void kit_silent(struct kit *kit, size_t sweep, uint32_t nodes);
size_t kit_band(struct kit *kit, enum chaos_fault_kind kind, uint32_t nodes, uint64_t clients, int64_t from_us,
                int64_t to_us);
/* The client's last process ends: killed by the nemesis. */
void kit_kill(struct kit *kit, int client, int64_t ended_us);
size_t kit_spawn(struct kit *kit, int client, int64_t spawned_us);
void kit_leave(struct kit *kit, const char *text);

/*
 * Processes that still run end as they should at finish_us, the counters are what the increments that are done make, nothing else was left, and all is sorted
 * as chaos_history_read() sorts it. Returns the history.
 */
struct chaos_history *kit_finish(struct kit *kit, int64_t finish_us);
/* Sorts again, after a change by hand. */
void kit_sort(struct kit *kit);

#endif
