/* Merges the events of an election. */
#include "blocking/events.h"

#include <assert.h>
#include <stdio.h>

#define BIT(kind) (1U << (kind))

static void forget(struct redlock_events *events, redlock_election_event_kind kind) {
    assert(kind <= REDLOCK_ELECTION_EXPIRING);
    events->waiting &= ~BIT(kind);
    redlock_result_free((redlock_result *)(uintptr_t)events->event[kind].result);
    events->event[kind].result = NULL;
}

static void copy(char *to, size_t size, const char *from) {
    assert(size > 0 && from);
    (void)snprintf(to, size, "%s", from);
}

static void keep_leader(struct redlock_events *events, const redlock_leader *leader) {
    assert(leader && leader->token && leader->holder);
    events->leader = *leader;
    copy(events->texts.token, sizeof events->texts.token, leader->token);
    copy(events->texts.holder, sizeof events->texts.holder, leader->holder);
}

void redlock_events_add(struct redlock_events *events, const redlock_election_event *event) {
    assert(event->kind != REDLOCK_ELECTION_NOTHING && event->kind <= REDLOCK_ELECTION_EXPIRING);
    const bool unread_term = events->waiting & BIT(REDLOCK_ELECTION_LEADING);
    switch (event->kind) {
    case REDLOCK_ELECTION_LOST:
    case REDLOCK_ELECTION_RESIGNED:
    case REDLOCK_ELECTION_ENDED:
        forget(events, REDLOCK_ELECTION_LEADING);
        forget(events, REDLOCK_ELECTION_EXPIRING);
        forget(events, REDLOCK_ELECTION_TROUBLE);
        if (event->kind == REDLOCK_ELECTION_LOST && unread_term) {
            return; /* nobody has begun any work in that term */
        }
        break;
    case REDLOCK_ELECTION_LEADING:
        forget(events, REDLOCK_ELECTION_TROUBLE);
        break;
    case REDLOCK_ELECTION_LEADER:
        keep_leader(events, event->leader);
        break;
    case REDLOCK_ELECTION_TROUBLE:
    case REDLOCK_ELECTION_EXPIRING:
    case REDLOCK_ELECTION_NOTHING:
        break;
    }
    forget(events, event->kind);
    redlock_election_event *kept = &events->event[event->kind];
    *kept = *event;
    kept->election = NULL;
    kept->lease = NULL;
    kept->leader = NULL;
    /* That of ENDED goes to the caller of the end. */
    const bool has_result = event->result && event->kind != REDLOCK_ELECTION_ENDED;
    kept->result = has_result ? redlock_result_copy(event->result) : NULL;
    kept->reason = "";
    if (event->kind == REDLOCK_ELECTION_LOST) {
        copy(events->texts.reason, sizeof events->texts.reason, event->reason);
    }
    events->waiting |= BIT(event->kind);
}

static void drop_told(struct redlock_events *events) {
    redlock_result_free((redlock_result *)(uintptr_t)events->told.result);
    events->told.result = NULL;
}

const redlock_election_event *redlock_events_take(struct redlock_events *events) {
    /* What ends a term comes before what begins one. */
    static const redlock_election_event_kind order[] = {
        REDLOCK_ELECTION_LOST,    REDLOCK_ELECTION_RESIGNED, REDLOCK_ELECTION_LEADING, REDLOCK_ELECTION_EXPIRING,
        REDLOCK_ELECTION_TROUBLE, REDLOCK_ELECTION_LEADER,   REDLOCK_ELECTION_ENDED};
    drop_told(events);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const redlock_election_event_kind kind = order[i];
        if ((events->waiting & BIT(kind)) == 0) {
            continue;
        }
        events->waiting &= ~BIT(kind);
        events->told = events->event[kind];
        assert(events->told.kind == kind);
        events->event[kind].result = NULL;
        events->told_texts = events->texts;
        if (kind == REDLOCK_ELECTION_LOST) {
            events->told.reason = events->told_texts.reason;
        }
        if (kind == REDLOCK_ELECTION_LEADER) {
            events->told_leader = events->leader;
            events->told_leader.token = events->told_texts.token;
            events->told_leader.holder = events->told_texts.holder;
            events->told.leader = &events->told_leader;
        }
        return &events->told;
    }
    return NULL;
}

void redlock_events_clear(struct redlock_events *events) {
    for (redlock_election_event_kind kind = REDLOCK_ELECTION_NOTHING; kind <= REDLOCK_ELECTION_EXPIRING; kind++) {
        forget(events, kind);
    }
    drop_told(events);
}
