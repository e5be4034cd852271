/* Merges the events of an election. */
#include "blocking/news.h"

#include <stdio.h>

#define BIT(kind) (1U << (kind))

static void forget(struct redlock_news *news, redlock_election_event_kind kind) {
    news->waiting &= ~BIT(kind);
    redlock_result_free((redlock_result *)(uintptr_t)news->event[kind].result);
    news->event[kind].result = NULL;
}

static void copy(char *to, size_t size, const char *from) {
    (void)snprintf(to, size, "%s", from);
}

static void keep_leader(struct redlock_news *news, const redlock_leader *leader) {
    news->leader = *leader;
    copy(news->texts.token, sizeof news->texts.token, leader->token);
    copy(news->texts.holder, sizeof news->texts.holder, leader->holder);
}

void redlock_news_add(struct redlock_news *news, const redlock_election_event *event) {
    const bool unread_term = news->waiting & BIT(REDLOCK_ELECTION_LEADING);
    switch (event->kind) {
    case REDLOCK_ELECTION_LOST:
    case REDLOCK_ELECTION_RESIGNED:
    case REDLOCK_ELECTION_ENDED:
        forget(news, REDLOCK_ELECTION_LEADING);
        forget(news, REDLOCK_ELECTION_EXPIRING);
        forget(news, REDLOCK_ELECTION_TROUBLE);
        if (event->kind == REDLOCK_ELECTION_LOST && unread_term) {
            return; /* nobody has begun any work in that term */
        }
        break;
    case REDLOCK_ELECTION_LEADING:
        forget(news, REDLOCK_ELECTION_TROUBLE);
        break;
    case REDLOCK_ELECTION_LEADER:
        keep_leader(news, event->leader);
        break;
    case REDLOCK_ELECTION_TROUBLE:
    case REDLOCK_ELECTION_EXPIRING:
    case REDLOCK_ELECTION_NOTHING:
        break;
    }
    forget(news, event->kind);
    redlock_election_event *kept = &news->event[event->kind];
    *kept = *event;
    kept->election = NULL;
    kept->lease = NULL;
    kept->leader = NULL;
    /* That of ENDED goes to the caller of the end. */
    const bool has_result = event->result && event->kind != REDLOCK_ELECTION_ENDED;
    kept->result = has_result ? redlock_result_copy(event->result) : NULL;
    kept->reason = "";
    if (event->kind == REDLOCK_ELECTION_LOST) {
        copy(news->texts.reason, sizeof news->texts.reason, event->reason);
    }
    news->waiting |= BIT(event->kind);
}

static void drop_told(struct redlock_news *news) {
    redlock_result_free((redlock_result *)(uintptr_t)news->told.result);
    news->told.result = NULL;
}

const redlock_election_event *redlock_news_take(struct redlock_news *news) {
    /* What ends a term comes before what begins one. */
    static const redlock_election_event_kind order[] = {
        REDLOCK_ELECTION_LOST,    REDLOCK_ELECTION_RESIGNED, REDLOCK_ELECTION_LEADING, REDLOCK_ELECTION_EXPIRING,
        REDLOCK_ELECTION_TROUBLE, REDLOCK_ELECTION_LEADER,   REDLOCK_ELECTION_ENDED};
    drop_told(news);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const redlock_election_event_kind kind = order[i];
        if ((news->waiting & BIT(kind)) == 0) {
            continue;
        }
        news->waiting &= ~BIT(kind);
        news->told = news->event[kind];
        news->event[kind].result = NULL;
        news->told_texts = news->texts;
        if (kind == REDLOCK_ELECTION_LOST) {
            news->told.reason = news->told_texts.reason;
        }
        if (kind == REDLOCK_ELECTION_LEADER) {
            news->told_leader = news->leader;
            news->told_leader.token = news->told_texts.token;
            news->told_leader.holder = news->told_texts.holder;
            news->told.leader = &news->told_leader;
        }
        return &news->told;
    }
    return NULL;
}

void redlock_news_clear(struct redlock_news *news) {
    for (redlock_election_event_kind kind = REDLOCK_ELECTION_NOTHING; kind <= REDLOCK_ELECTION_EXPIRING; kind++) {
        forget(news, kind);
    }
    drop_told(news);
}
