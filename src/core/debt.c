/* An owed release at each node. Its states: docs/architecture.md, "Owed releases". */
#include "core/debt.h"

#include <assert.h>

#include "core/time.h"

#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 2000

/* One retry serves all nodes that fail at about the same time. */
static void retry_later(struct redlock_debt *debt, int64_t now_ns) {
    if (debt->retry_ns > now_ns) {
        return;
    }
    if (debt->failures < UINT8_MAX) {
        debt->failures++;
    }
    uint32_t jitter = (uint32_t)debt->expires_ns ^ (uint32_t)now_ns;
    debt->retry_ns = redlock_after_ns(now_ns, redlock_backoff_ns(&jitter, debt->failures, RETRY_MIN_MS, RETRY_MAX_MS));
}

static redlock_nodes open_debts(const struct redlock_debt *debt, int64_t now_ns) {
    return now_ns < debt->expires_ns ? debt->owing : debt->owing & debt->uncertain;
}

void redlock_debt_start(struct redlock_debt *debt, redlock_nodes owing, redlock_nodes uncertain, int64_t expires_ns) {
    assert(owing != 0);
    *debt = (struct redlock_debt){.owing = owing, .uncertain = owing & uncertain, .expires_ns = expires_ns};
}

redlock_nodes redlock_debt_ask(struct redlock_debt *debt, redlock_nodes ready, int64_t now_ns) {
    redlock_nodes idle = open_debts(debt, now_ns) & ~debt->asked;
    redlock_nodes ask = idle & ready;
    debt->asked |= ask;
    if (idle != ask) {
        retry_later(debt, now_ns);
    }
    return ask;
}

void redlock_debt_vote(struct redlock_debt *debt, unsigned node, redlock_vote_kind vote, int64_t now_ns) {
    debt->asked &= ~REDLOCK_NODE(node);
    if (vote == REDLOCK_VOTE_GRANTED || vote == REDLOCK_VOTE_DENIED) {
        debt->owing &= ~REDLOCK_NODE(node);
    } else if ((debt->owing & REDLOCK_NODE(node)) != 0) {
        retry_later(debt, now_ns);
    }
}

bool redlock_debt_over(const struct redlock_debt *debt, int64_t now_ns) {
    return debt->asked == 0 && open_debts(debt, now_ns) == 0;
}

int64_t redlock_debt_next_ns(const struct redlock_debt *debt, redlock_nodes ready, int64_t now_ns) {
    const redlock_nodes idle = open_debts(debt, now_ns) & ~debt->asked;
    const int64_t retry_ns = (idle & ready) != 0 ? debt->retry_ns : REDLOCK_NEVER_NS;
    const bool clock_ends_some = now_ns < debt->expires_ns && (idle & ~debt->uncertain) != 0;
    return debt->asked == 0 && clock_ends_some && debt->expires_ns < retry_ns ? debt->expires_ns : retry_ns;
}
