/* What the group tells of itself: histograms, counts of votes, events and probes, and the log
 * messages about a lease. */
#ifndef REDLOCK_GROUP_TELL_H
#define REDLOCK_GROUP_TELL_H

#include "base/probe.h"
#include "core/histogram.h"
#include "group/handle.h"

/* The probes with semaphores: those of the events, by their kind. */
#define REDLOCK_PROBE_MAP(X)                                                                                           \
    X(started)                                                                                                         \
    X(denied)                                                                                                          \
    X(queued)                                                                                                          \
    X(acquired)                                                                                                        \
    X(failed)                                                                                                          \
    X(adopted)                                                                                                         \
    X(extended)                                                                                                        \
    X(lost)                                                                                                            \
    X(released)                                                                                                        \
    X(forgotten)                                                                                                       \
    X(node_up)                                                                                                         \
    X(node_down)                                                                                                       \
    X(expiring)

REDLOCK_PROBE_MAP(REDLOCK_PROBE_DECLARE)

/* Whether anybody wants to know of an event. */
#define REDLOCK_TELL_WANTED(group, probe) ((group)->on_event != NULL || REDLOCK_PROBE_IS_ON(probe))

/* Tells an event of a lease to on_event and to its probe. The caller has checked that somebody
 * wants it. */
void redlock_tell_event(const struct redlock_lease *lease, redlock_telemetry_kind kind, int code, int64_t elapsed_ns)
    __attribute__((cold));

#define REDLOCK_TELL(lease, probe, kind, code, elapsed_ns)                                                             \
    do {                                                                                                               \
        if (REDLOCK_TELL_WANTED((lease)->group, probe)) {                                                              \
            redlock_tell_event(lease, REDLOCK_TELEMETRY_##kind, code, elapsed_ns);                                     \
        }                                                                                                              \
    } while (0)

/* An acquire was accepted. */
static inline void redlock_tell_started(struct redlock_lease *lease, int64_t now_ns) {
    lease->span_ns = now_ns;
    REDLOCK_TELL(lease, started, STARTED, REDLOCK_OK, 0);
}

void redlock_tell_adopted(struct redlock_lease *lease);
/* The acquire has ended, and its callback is next. */
void redlock_tell_acquire_ended(struct redlock_lease *lease);
void redlock_tell_queued(struct redlock_lease *lease);

/* With actions->round_over: counts a failed extension, which calls no callback while the lease
 * lives, and tells of the try or the extension. */
void redlock_tell_round_over(struct redlock_lease *lease, const struct redlock_actions *actions, int64_t now_ns);

/* A renewal began that was planned for this time. */
void redlock_tell_renewed(struct redlock_lease *lease, int64_t planned_ns, int64_t now_ns);
/* The lease was held until now. One that ends before anybody was told of it was held by nobody. */
static inline void redlock_tell_held(struct redlock_lease *lease, int64_t until_ns) {
    if (redlock_handle_has_span(lease)) {
        lease->span_ns = until_ns - lease->core.begun_ns;
        redlock_histogram_add(&lease->group->telemetry.held, lease->span_ns);
    }
}

/* on_expiring is next. */
void redlock_tell_expiring(const struct redlock_lease *lease, int64_t remaining_ms);
/* The callback of the loss, or of the release, is next. */
void redlock_tell_lost(const struct redlock_lease *lease);
void redlock_tell_released(struct redlock_lease *lease);

/* What became of a vote that was not GRANTED. */
redlock_voted redlock_tell_cause(redlock_vote_kind vote, const struct redlock_text *text);
static inline void redlock_tell_voted(struct redlock_group *group, unsigned node, redlock_vote_kind vote,
                                      const struct redlock_text *text) {
    if (vote == REDLOCK_VOTE_GRANTED) {
        group->telemetry.votes[REDLOCK_VOTED_GRANTED][node]++;
    } else {
        group->telemetry.votes[redlock_tell_cause(vote, text)][node]++;
    }
}

/* A node became ready, or is not ready any more. */
void redlock_tell_node(struct redlock_group *group, unsigned node, bool ready);

/* See redlock_manager_telemetry(). */
int redlock_group_telemetry(struct redlock_group *group, redlock_telemetry *telemetry);

/* "acquire"; "" for NONE. */
const char *redlock_tell_operation_name(enum redlock_operation operation);
/* An acquire may ask again and again, so the log leaves out a vote that is like the node's last
 * one. Only the vote of a waiter needs the answer. */
void redlock_tell_log_vote(struct redlock_lease *lease, unsigned node, const struct redlock_answer *answer);
/* A push of the node is a vote. */
void redlock_tell_log_push(const struct redlock_lease *lease, unsigned node);
/* Logs what a step of the core has changed. */
void redlock_tell_log_step(struct redlock_lease *lease, enum redlock_lease_state before,
                           const struct redlock_actions *actions, int64_t now_ns);

#endif
