/* Several resources in one lease: which of them is asked for, kept, waited for and given back.
 * Pure: events come in, actions go out. Each of them is a lease of its own. */
#ifndef REDLOCK_CORE_BUNDLE_H
#define REDLOCK_CORE_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>

#define REDLOCK_BUNDLE_MAX 64

/* A set of items, by their order. */
typedef uint64_t redlock_items;

#define REDLOCK_ITEM(i) ((redlock_items)1 << (i))

/*
 * The items are in the order of their resources. An item is *missing* unless it is held, and the
 * *first* missing one is what matters. An event that is not listed changes nothing.
 *
 * state       event                       next         actions
 * IDLE        begin                       → TRYING     ask for all
 *             adopt                       → HELD
 * TRYING      an answer, not the last     → TRYING
 *             the last; none is missing   → HELD       settle, tell acquired OK
 *             the last; a wait may help, and time is left
 *                                         → WAITING    release what comes after the first missing
 *                                                      one, wait for that
 *             the last, otherwise         → ENDED      release all, tell acquired with the code of
 *                                                      the first missing one
 *             one is lost                 → TRYING     end it; it is missing: NO_QUORUM
 *             cancel                      → LEAVING    cancel what is asked for, release all
 * WAITING     won, none is missing        → HELD       settle, tell acquired OK
 *             won                         → TRYING     ask for all that are missing
 *             failed                      → ENDED      release all, tell acquired with its code
 *             one is lost                 → RETREATING cancel the wait, end the lost one, release
 *                                                      what comes after it
 *             cancel                      → LEAVING    cancel the wait, release all
 * RETREATING  the wait has ended          as TRYING    the last answer
 *             one is lost                 → RETREATING end it, release what comes after it
 *             cancel                      → LEAVING    release all
 * LEAVING     the last answer             → ENDED      tell acquired with the code of the cancel
 * HELD        extend                      → HELD       extend all
 *             the last answer to that     → HELD       tell extended with the worst code
 *             one is lost                 → LOST       end it, drop the others; tell extended LOST,
 *                                                      if that is under way, and lost
 *             release                     → RELEASING  release all
 *             forget                      → ENDED      forget all
 * LOST        release                     → RELEASING  in a later turn: released LOST
 *             forget                      → ENDED
 * RELEASING   the last answer             → ENDED      tell released with the worst code
 * ENDED
 * HELD, LOST  close                       → ENDED      the leases end by themselves
 * TRYING, WAITING, RETREATING
 *             close                       → LEAVING    likewise
 * RELEASING, ENDED
 *             the last answer to an extension          tell extended with the worst code
 *
 * - An answer is the end of a request for an item: won or failed. Each that is asked for has one,
 *   also if it is cancelled.
 * - A wait may help after CONTENDED, NO_QUORUM and TOO_SLOW.
 * - What is released before the bundle is held, nobody waits for.
 * - "Drop" is to release. With a lock delay it is to forget: the delay keeps others out of all the
 *   resources, because the work on them was one.
 * - "Settle": leases that were kept while we waited were renewed by us. From now on they are
 *   renewed as their owner wants it.
 * - The worst code: LOST before CLOSED, CANCELLED, NO_QUORUM, TOO_SLOW and OK.
 * - A lease that was adopted and was never held since is not `lost`. So an adopted bundle can stay
 *   HELD after an extension that was LOST.
 */
enum redlock_bundle_state {
    REDLOCK_BUNDLE_IDLE,
    REDLOCK_BUNDLE_TRYING,
    REDLOCK_BUNDLE_WAITING,
    REDLOCK_BUNDLE_RETREATING,
    REDLOCK_BUNDLE_LEAVING,
    REDLOCK_BUNDLE_HELD,
    REDLOCK_BUNDLE_LOST,
    REDLOCK_BUNDLE_RELEASING,
    REDLOCK_BUNDLE_ENDED
};

enum redlock_bundle_event_type {
    /* Calls. */
    REDLOCK_BUNDLE_BEGIN,
    REDLOCK_BUNDLE_ADOPT,
    REDLOCK_BUNDLE_CANCEL,
    REDLOCK_BUNDLE_EXTEND,
    REDLOCK_BUNDLE_RELEASE,
    REDLOCK_BUNDLE_FORGET,
    REDLOCK_BUNDLE_CLOSE,
    /* Of an item. */
    REDLOCK_BUNDLE_WON,
    REDLOCK_BUNDLE_FAILED,   /* code; the code of a cancel, too */
    REDLOCK_BUNDLE_EXTENDED, /* code */
    REDLOCK_BUNDLE_ITEM_LOST,
    REDLOCK_BUNDLE_RELEASED, /* code */
    REDLOCK_BUNDLE_TIMER     /* a later turn */
};

struct redlock_bundle_event {
    enum redlock_bundle_event_type type;
    unsigned item;
    int code;
    int64_t now_ns;
};

/* In this order. */
struct redlock_bundle_actions {
    redlock_items cancel;  /* the requests for these */
    redlock_items end;     /* the leases of these: lost, or given back; nobody waits for that */
    redlock_items forget;  /* the leases of these */
    redlock_items release; /* the leases of these; each answers */
    redlock_items extend;  /* likewise */
    redlock_items ask;     /* for these, once */
    redlock_items wait;    /* for this one, in line */
    bool settle;           /* the leases of all */
    bool later;            /* a TIMER in a later turn */
    bool keep;             /* this answer: it is told if it is not the last */
    bool tell_kept;        /* what is told is the answer that was kept, not this one */
    bool tell_acquired, tell_extended, tell_lost, tell_released;
    int acquired_code, extended_code, released_code;
};

struct redlock_bundle_core {
    enum redlock_bundle_state state;
    bool extending : 1;   /* an extension is not told yet */
    bool lock_delay : 1;  /* the leases have one */
    uint8_t count;        /* of items */
    uint8_t failed;       /* the first that is missing, as far as it is known; `count`: none */
    int8_t failed_code;   /* of it */
    int8_t extended_code; /* the worst so far */
    int8_t code;          /* LEAVING: of the cancel; RELEASING: the worst so far */
    redlock_items held;
    redlock_items asked;     /* these have not answered... */
    redlock_items extended;  /* ...or not to the extension... */
    redlock_items releasing; /* ...or not to the release */
    int64_t wait_until_ns;   /* 0: it tries once; REDLOCK_NEVER_NS: for ever */
    uint64_t attempts;       /* how often items were asked for, all at once or one in line */
};

void redlock_bundle_init(struct redlock_bundle_core *bundle, unsigned count, int64_t wait_until_ns, bool lock_delay);
void redlock_bundle_step(struct redlock_bundle_core *bundle, const struct redlock_bundle_event *event,
                         struct redlock_bundle_actions *actions);

/* Its owner has it. */
static inline bool redlock_bundle_is_out(const struct redlock_bundle_core *bundle) {
    return bundle->state == REDLOCK_BUNDLE_HELD || bundle->state == REDLOCK_BUNDLE_LOST;
}

/* Nothing more comes of it. */
static inline bool redlock_bundle_is_over(const struct redlock_bundle_core *bundle) {
    return bundle->state == REDLOCK_BUNDLE_ENDED && (bundle->asked | bundle->extended | bundle->releasing) == 0;
}

#endif
