/* A candidate in an election: when it campaigns, leads and stays out, and what its owner is told.
 * Pure: events come in, actions go out. */
#ifndef REDLOCK_CORE_CANDIDATE_H
#define REDLOCK_CORE_CANDIDATE_H

#include <stdbool.h>
#include <stdint.h>

#include <redlock/election.h>

/* While it campaigns, it looks so often whether it can win at all. After a campaign that failed, it
 * waits as long. */
#define REDLOCK_CANDIDATE_LOOK_MS 1000

/*
 * state        event                    next          actions
 * OUT          campaign                 → CAMPAIGNING acquire
 *              end                      → ENDING      done at once
 * CAMPAIGNING  won                      → LEADING     tell LEADING
 *              failed                   → PAUSED      tell TROUBLE
 *              refused                  → PAUSED      tell TROUBLE at once
 *              time to look             → CAMPAIGNING tell TROUBLE, if the code is another one
 *              resign                   → LEAVING     cancel
 *              end                      → ENDING      cancel
 * PAUSED       time to look             → CAMPAIGNING acquire
 *              resign                   → LEAVING     done at once
 *              end                      → ENDING      done at once
 * LEADING      lost                     → CAMPAIGNING release, acquire, tell LOST
 *              expiring                 → LEADING     tell EXPIRING
 *              resign                   → LEAVING     release
 *              end                      → ENDING      release
 * LEAVING      done                     → OUT         tell RESIGNED
 *              done, to campaign again  → CAMPAIGNING acquire, tell RESIGNED
 *              campaign                 → LEAVING     to campaign again
 *              resign                   → LEAVING     not to campaign again
 *              end                      → ENDING
 * ENDING       done                     → ENDED       tell ENDED
 * all of them  close                    → CLOSING     nothing more is told
 * CLOSING      close is done            → ENDED       tell ENDED with CLOSED
 *
 * - "Done" is the callback of the release, or of the acquire that was cancelled; "at once" is the
 *   next turn, because no callback runs inside the call that made the request.
 * - What is told comes last, so its callback finds the new state and may call anything.
 * - After a loss the new campaign begins before LOST is told: the callback may then resign, as at
 *   any other time.
 */
enum redlock_candidate_state {
    REDLOCK_CANDIDATE_OUT,
    REDLOCK_CANDIDATE_CAMPAIGNING,
    REDLOCK_CANDIDATE_PAUSED,
    REDLOCK_CANDIDATE_LEADING,
    REDLOCK_CANDIDATE_LEAVING,
    REDLOCK_CANDIDATE_ENDING,
    REDLOCK_CANDIDATE_CLOSING,
    REDLOCK_CANDIDATE_ENDED
};

enum redlock_candidate_input {
    /* Calls of the owner. */
    REDLOCK_CANDIDATE_DO_CAMPAIGN,
    REDLOCK_CANDIDATE_DO_RESIGN,
    REDLOCK_CANDIDATE_DO_END,
    REDLOCK_CANDIDATE_DO_CLOSE,
    /* What became of an acquire or a lease. */
    REDLOCK_CANDIDATE_WON,
    REDLOCK_CANDIDATE_FAILED,  /* code: the acquire ended without the lock */
    REDLOCK_CANDIDATE_REFUSED, /* code: there is no acquire */
    REDLOCK_CANDIDATE_EXPIRING,
    REDLOCK_CANDIDATE_LOST,
    REDLOCK_CANDIDATE_RELEASED, /* code */
    REDLOCK_CANDIDATE_TIMER,    /* code: why the acquire cannot win now, or OK */
    REDLOCK_CANDIDATE_CLOSED    /* the close is done */
};

/* In this order: cancel or release, acquire, tell. */
struct redlock_candidate_actions {
    bool cancel;  /* the acquire; its end is FAILED */
    bool release; /* the lease */
    bool report;  /* of the release: its end is RELEASED */
    bool acquire;
    redlock_election_event_kind tell;
    int code; /* of RESIGNED, TROUBLE, ENDED */
};

struct redlock_candidate {
    enum redlock_candidate_state state;
    bool again;      /* LEAVING: campaigns when that is done */
    bool untold;     /* PAUSED: the trouble was not told yet */
    int trouble;     /* the code that was told last; OK: none */
    int64_t wake_ns; /* time of the next TIMER; REDLOCK_NEVER_NS: none */
};

void redlock_candidate_init(struct redlock_candidate *candidate);

void redlock_candidate_step(struct redlock_candidate *candidate, enum redlock_candidate_input input, int code,
                            int64_t now_ns, struct redlock_candidate_actions *actions);

/* Its owner has ended it, and must not call it any more. */
static inline bool redlock_candidate_is_ending(const struct redlock_candidate *candidate) {
    return candidate->state == REDLOCK_CANDIDATE_ENDING || candidate->state == REDLOCK_CANDIDATE_ENDED;
}

#endif
