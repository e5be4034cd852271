/**
 * @file election.h
 * Leader election on the asynchronous API: candidates of one name, of which at most one leads, and
 * observers who are told who leads. docs/election.md explains when to use it.
 *
 * An election is a lock: its leader is whoever holds the resource of that name, by a lease that the
 * library renews. Everything that redlock.h says of leases holds for the leader, too: leading ends
 * at a deadline, and only a fencing token keeps a late writer out.
 *
 * The rules of redlock.h for threads and callbacks hold here: call every function only on the
 * thread that runs the manager's loop, except those marked "any thread"; no callback runs inside
 * the call that caused it. blocking.h has an election for threads that block.
 */
#ifndef REDLOCK_ELECTION_H
#define REDLOCK_ELECTION_H

#include <redlock/redlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @name Observing
 * @{ */

/** Is told who leads. The handle ends with the call of redlock_observer_end(), or with that of
 * redlock_manager_close(). */
typedef struct redlock_observer redlock_observer;

/** Who leads. The strings are valid only during the callback. */
typedef struct redlock_leader {
    size_t size;        /**< sizeof this struct, set by the library. */
    const char *token;  /**< The token of the leader's lease; "" if nobody leads. */
    const char *holder; /**< Who the leader says it is; "" if nobody leads or it is not known. */
    /** It was the lease of the election that tells it, when this event came: it may be lost since.
     * Always false from redlock_observe(). */
    bool is_self;
} redlock_leader;

/**
 * Runs when the leader has changed: a quorum of nodes names another one than was told last, or
 * nobody. This is an event, not a lock: when it arrives, the next leader may lead already. Never
 * decide by it who may write.
 * @param leader  valid only during the call.
 * @param data    the pointer given with the request.
 */
typedef void (*redlock_leader_callback)(const redlock_leader *leader, void *data);

/**
 * Tells who leads the resource, from now on: first who leads already, as soon as a quorum of nodes
 * has said it (also if that is nobody), then each change, with the newest state. A quorum of nodes
 * must name the same leader, or say that the resource is free; while they do neither, or cannot be
 * reached, the last event stands. If changes come faster than they can be told, leaders in between
 * are left out, but never the newest one. If a node has lost the key of a leader, or is slow, one
 * that was told before may be told again after nobody, also one that has just resigned; the next
 * change follows.
 *
 * A node tells its observers when a leader is elected, hands over or resigns. A leader that dies is
 * noticed when its keys end. Where a node does not let the observer subscribe, or the lock is held
 * by somebody without an election, the observer asks instead, every 2.5 s or more often.
 *
 * @param resource  as for redlock_acquire(); copied.
 * @param cb        not NULL. It may call every function that a redlock_callback may, and
 *                  redlock_observer_end().
 * @param observer  set on success; end it with redlock_observer_end(). The call of
 *                  redlock_manager_close() ends it, too, without a callback: do not use it after
 *                  that call.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID, #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_CLOSED,
 *         #REDLOCK_ERR_FORKED, #REDLOCK_ERR_RANDOM, #REDLOCK_ERR_LIMIT (1024 observers)
 */
REDLOCK_API int redlock_observe(redlock_manager *manager, const char *resource, redlock_leader_callback cb, void *data,
                                redlock_observer **observer);

/** Ends the observer; no callback runs after this call. NULL is allowed. */
REDLOCK_API void redlock_observer_end(redlock_observer *observer);

/** @} */
/** @name Election
 * @{ */

/** A candidate. Ends after its event #REDLOCK_ELECTION_ENDED. */
typedef struct redlock_election redlock_election;

/** What an election tells. Each change is told once. */
typedef enum redlock_election_event_kind {
    /** Nothing; only redlock_client_election_next() says it, when its time is over. */
    REDLOCK_ELECTION_NOTHING = 0,
    /** We lead from now on: `lease`, `term`, `fence`. */
    REDLOCK_ELECTION_LEADING,
    /**
     * We do not lead any more: `term`, `reason`. Stop the work of this term. The election campaigns
     * again already, at the end of the queue; redlock_election_resign() in this callback keeps it
     * out.
     */
    REDLOCK_ELECTION_LOST,
    /**
     * What redlock_election_resign() asked for is done, and the election stays out: `code`,
     * `result`. If it led, `code` is that of the release: #REDLOCK_OK means that it led until the
     * call, so no other leader began before. If it did not lead, `code` is #REDLOCK_OK, and
     * `result` is NULL.
     */
    REDLOCK_ELECTION_RESIGNED,
    /** The leader has changed: `leader`. If that is us, LEADING was told before. */
    REDLOCK_ELECTION_LEADER,
    /**
     * We cannot win now, because of `code`: #REDLOCK_ERR_NO_QUORUM, #REDLOCK_ERR_TOO_SLOW,
     * #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_RANDOM, or #REDLOCK_ERR_LIMIT. The campaign goes on. It
     * is told once for each code; the code #REDLOCK_OK says that the trouble is over. `result`, if
     * not NULL, has what the nodes said.
     */
    REDLOCK_ELECTION_TROUBLE,
    /**
     * The last event: `code`, `result`. If it led, `code` is that of the release;
     * #REDLOCK_ERR_CLOSED if the manager was closed; else #REDLOCK_OK. The handle ends when the
     * callback returns.
     */
    REDLOCK_ELECTION_ENDED,
    /**
     * We still lead, but `remaining_ms` from now the leadership will end unless a renewal succeeds:
     * `term`. Bring the work to a point where it can stop. Only with the option `expiring_ms`; once
     * for each deadline, as redlock_expiring_callback.
     */
    REDLOCK_ELECTION_EXPIRING
} redlock_election_event_kind;

/** An event. What it points to is valid only during the callback. Members it does not use are 0. */
typedef struct redlock_election_event {
    size_t size;                      /**< sizeof this struct. The library sets it, but the caller
                                           of redlock_client_election_next() does. */
    redlock_election_event_kind kind; /**< What happened. */
    redlock_election *election;       /**< The election that tells it; NULL in the blocking API. */
    /**
     * LEADING: the lease, for redlock_lease_token() and the other functions that only read it. It
     * stays valid until LOST was told, or until the call that resigns, ends or closes. Use no other
     * function on it: the election renews and ends it. NULL in the blocking API.
     */
    redlock_lease *lease;
    uint64_t term;                /**< LEADING, EXPIRING, LOST: how often we began to campaign; it
                                       names this leadership. */
    uint64_t fence;               /**< LEADING, with the option `fencing`: the fencing token
                                       (docs/fencing.md). */
    int code;                     /**< RESIGNED, TROUBLE, ENDED: #REDLOCK_OK or a redlock_error;
                                       LOST: #REDLOCK_ERR_LOST. */
    const redlock_result *result; /**< RESIGNED, TROUBLE, ENDED: votes and a sentence, or NULL. */
    const char *reason;           /**< LOST: one sentence; else "". */
    const redlock_leader *leader; /**< LEADER: who leads; else NULL. */
    int64_t remaining_ms;         /**< EXPIRING: redlock_election_validity_ms() now. */
} redlock_election_event;

/**
 * Runs for each event, on the loop's thread, with no mutex held. It may call any function that a
 * redlock_callback may, and those of this election; after ENDED, no function of it. It must not run
 * the loop.
 * @param event  valid only during the call.
 * @param data   the pointer given to redlock_elect().
 */
typedef void (*redlock_election_callback)(const redlock_election_event *event, void *data);

/** Options of an election. */
typedef struct redlock_election_options {
    size_t size; /**< sizeof this struct; set by the _default function. */
    /**
     * How long the others wait for a leader that died, in ms: 1 to #REDLOCK_TTL_MS_MAX; default
     * 10000. The lease is renewed at a third of it or earlier.
     */
    int64_t ttl_ms;
    /** Campaign at once. Otherwise it only observes until redlock_election_campaign(). Default
     * true. */
    bool campaign;
    bool fencing;          /**< As redlock_acquire_options.fencing. Default false. */
    bool heal;             /**< As redlock_acquire_options.heal. Default true. */
    int64_t lock_delay_ms; /**< As redlock_acquire_options.lock_delay_ms. Default 0. */
    void *trace;           /**< As redlock_acquire_options.trace, for each term. Default NULL. */
    /** How long before its deadline a leader is told #REDLOCK_ELECTION_EXPIRING. As
     * redlock_acquire_options.expiring_ms: 2 to ttl_ms / 2; default 0, never. */
    int64_t expiring_ms;
} redlock_election_options;

/** Fills in the defaults. Call it first, then set what you need. Any thread. */
REDLOCK_API void redlock_election_options_default(redlock_election_options *options);

/**
 * Becomes a candidate. It waits in the queue (docs/waiting.md) for as long as it takes, and leads
 * when it holds the lock. After a loss it campaigns again by itself.
 *
 * The close of the manager ends it: ENDED with #REDLOCK_ERR_CLOSED comes before the callback of the
 * close. A leader is not told LOST then; its validity is 0 from the call of the close.
 *
 * @param name      of the election: a resource, as for redlock_acquire(); copied. All candidates
 *                  need the same. Do not lock it in other ways.
 * @param options   NULL for the defaults; copied.
 * @param cb        not NULL.
 * @param election  set on success; not NULL. End it with redlock_election_end().
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID (redlock_manager_invalid() says why),
 *         #REDLOCK_ERR_NO_MEMORY, #REDLOCK_ERR_CLOSED, #REDLOCK_ERR_FORKED,
 *         #REDLOCK_ERR_RANDOM, #REDLOCK_ERR_LIMIT
 */
REDLOCK_API int redlock_elect(redlock_manager *manager, const char *name, const redlock_election_options *options,
                              redlock_election_callback cb, void *data, redlock_election **election);

/**
 * Stops to lead, or gives up the campaign, and stays out until redlock_election_campaign(). The
 * next in the queue leads one message later. Stop the work first: from this call on the validity
 * is 0. RESIGNED follows; one RESIGNED answers all calls before it. An election that is out already
 * does nothing, and tells nothing.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID after redlock_election_end(), #REDLOCK_ERR_CLOSED,
 *         #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_election_resign(redlock_election *election);

/**
 * Campaigns, at the end of the queue; after a resign whose RESIGNED is still to come, as soon as
 * that was told. An election that campaigns or leads already does nothing. Lack of memory is no
 * error here: the election tells TROUBLE and tries again.
 * @return as redlock_election_resign()
 */
REDLOCK_API int redlock_election_campaign(redlock_election *election);

/**
 * Resigns, if it is not out, and ends. ENDED follows as the last event. No other event comes after
 * this call.
 * @return #REDLOCK_OK, #REDLOCK_ERR_INVALID if it was called before, #REDLOCK_ERR_CLOSED,
 *         #REDLOCK_ERR_FORKED
 */
REDLOCK_API int redlock_election_end(redlock_election *election);

/**
 * How much longer we lead in this term, in ms rounded down; 0 means stop work, as for
 * redlock_lease_validity_ms(). The term keeps a thread that was slow in one term from taking the
 * next one for it: others may have led in between. Any thread, while the handle is valid.
 * @param term  of the event LEADING.
 */
REDLOCK_API int64_t redlock_election_validity_ms(const redlock_election *election, uint64_t term);

/** @} */
/** @name Names
 * @{ */

/** "LEADING", "LOST", …; never NULL. Any thread. */
REDLOCK_API const char *redlock_election_event_name(redlock_election_event_kind kind);

/** @} */

#ifdef __cplusplus
}
#endif

#endif
