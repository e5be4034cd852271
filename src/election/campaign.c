/* Does what a candidate's state machine says, with leases of the group, and tells its events. */
#include "election/campaign.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/candidate.h"
#include "core/time.h"
#include "group/driver.h"
#include "group/entry.h"
#include "group/observer.h"
#include "group/requests.h"

struct redlock_election {
    struct redlock_timer timer; /* first member */
    struct redlock_candidate candidate;
    struct redlock_elections *all;
    struct redlock_list_entry entry;
    redlock_election_callback cb;
    void *data;
    redlock_acquire_options options;
    redlock_observer *observer; /* until the end or the close */
    redlock_lease *pending;     /* of the acquire that is under way */
    redlock_lease *lease;       /* while it leads */
    struct redlock_standing own, *standing;
    /* An event of ourselves came before the lease was held. */
    bool leader_waits;
    bool knows_leader; /* a leader was told: */
    char leader_token[REDLOCK_TOKEN_SIZE_MAX + 1];
    char name[]; /* terminated */
};

static void feed(redlock_election *election, enum redlock_candidate_input input, int code,
                 const redlock_election_event *details);

/* What an event says besides its kind. */
static redlock_election_event details_of(const redlock_election *election) {
    return (redlock_election_event){.term = atomic_load_explicit(&election->standing->term, memory_order_relaxed)};
}

static redlock_election *election_of(struct redlock_list_entry *entry) {
    return REDLOCK_CONTAINER(entry, redlock_election, entry);
}

static void free_election(redlock_election *election) {
    if (redlock_list_is_in(&election->entry)) {
        redlock_list_remove(&election->entry);
    }
    redlock_timer_close(election->all->group, &election->timer);
    free(election);
}

static void tell(redlock_election *election, redlock_election_event_kind kind, redlock_election_event event) {
    assert(kind != REDLOCK_ELECTION_NOTHING);
    event.size = sizeof event;
    event.kind = kind;
    event.election = election;
    event.reason = event.reason ? event.reason : "";
    election->cb(&event, election->data);
}

/* The leader. */

/* The observer may not know what was told: an event that waited is of the token that the lease has
 * now. And what it knows may not have been told. */
static void tell_leader(redlock_election *election, const redlock_leader *leader) {
    assert(leader->token);
    if (election->knows_leader && strcmp(election->leader_token, leader->token) == 0) {
        return;
    }
    election->knows_leader = true;
    strncpy(election->leader_token, leader->token, REDLOCK_TOKEN_SIZE_MAX);
    redlock_election_event event = {.leader = leader};
    tell(election, REDLOCK_ELECTION_LEADER, event);
}

static void on_leader(const redlock_leader *leader, void *data) {
    redlock_election *election = data;
    const redlock_lease *own = election->lease ? election->lease : election->pending;
    assert(leader->token && !(election->lease && election->pending));
    redlock_leader told = *leader;
    told.is_self = own && leader->token[0] != '\0' && strcmp(leader->token, redlock_lease_token(own)) == 0;
    election->leader_waits = told.is_self && !election->lease;
    if (!election->leader_waits) { /* else LEADING comes first */
        tell_leader(election, &told);
    }
}

/* An event of ourselves that came before LEADING. */
static void tell_leader_late(redlock_election *election) {
    if (!election->leader_waits || !election->lease) {
        return; /* or the callback of LEADING has resigned */
    }
    election->leader_waits = false;
    const char *token = redlock_lease_token(election->lease);
    const redlock_leader leader = {
        .size = sizeof leader, .token = token, .holder = redlock_token_holder(token), .is_self = true};
    tell_leader(election, &leader);
}

/* Leases. */

static void on_acquired(const redlock_result *result, void *data) {
    redlock_election *election = data;
    const int code = redlock_result_code(result);
    redlock_lease *lease = election->pending;
    assert(lease && !election->lease);
    election->pending = NULL;
    if (code != REDLOCK_OK) {
        /* The end of an acquire that was cancelled is not told. */
        const bool is_trouble = election->candidate.state == REDLOCK_CANDIDATE_CAMPAIGNING;
        const redlock_election_event failed = {.result = is_trouble ? result : NULL};
        lease->watch = NULL;
        feed(election, REDLOCK_CANDIDATE_FAILED, code, &failed);
        return;
    }
    redlock_election_event details = details_of(election);
    election->lease = details.lease = lease;
    details.fence = redlock_lease_fence(lease);
    char token[REDLOCK_TOKEN_SIZE_MAX + 1];
    strcpy(token, redlock_lease_token(lease));
    feed(election, REDLOCK_CANDIDATE_WON, code, &details);
    tell_leader_late(election);
    if (election->observer) { /* no older event comes after LEADING */
        redlock_observer_lead(election->observer, token, election->lease != NULL);
    }
}

static void on_expiring(redlock_lease *lease, int64_t remaining_ms, void *data) {
    redlock_election *election = data;
    redlock_election_event details = details_of(election);
    assert(lease == election->lease);
    (void)lease;
    details.remaining_ms = remaining_ms;
    feed(election, REDLOCK_CANDIDATE_EXPIRING, REDLOCK_OK, &details);
}

static void on_lost(redlock_lease *lease, const char *reason, void *data) {
    redlock_election *election = data;
    redlock_election_event details = details_of(election);
    assert(lease == election->lease);
    (void)lease;
    details.reason = reason;
    feed(election, REDLOCK_CANDIDATE_LOST, REDLOCK_ERR_LOST, &details);
}

static void on_released(const redlock_result *result, void *data) {
    redlock_election_event details = {.result = result};
    feed(data, REDLOCK_CANDIDATE_RELEASED, redlock_result_code(result), &details);
}

/* From here on, no thread sees that it leads, whatever becomes of the lease. */
static void stop_watching(redlock_election *election, redlock_lease *lease) {
    lease->watch = NULL;
    atomic_store_explicit(&election->standing->held_until_ns, 0, memory_order_release);
}

static void release(redlock_election *election, bool report) {
    redlock_lease *lease = election->lease;
    assert(lease);
    election->lease = NULL;
    stop_watching(election, lease);
    const int code = redlock_release(lease, report ? on_released : NULL, election);
    assert(code == REDLOCK_OK); /* not in a child process: every caller has checked that */
    (void)code;
}

static void acquire(redlock_election *election) {
    redlock_request *request;
    assert(!election->pending && !election->lease);
    atomic_fetch_add_explicit(&election->standing->term, 1, memory_order_release);
    election->leader_waits = false;
    const int code = redlock_group_campaign(election->all->group, election->name, &election->options, &request,
                                            on_acquired, election);
    if (code == REDLOCK_OK) {
        election->pending = (redlock_lease *)request;
        election->pending->watch = &election->standing->held_until_ns;
        return;
    }
    feed(election, REDLOCK_CANDIDATE_REFUSED, code, NULL); /* tells nothing yet */
}

/* The machine. */

/* What the election has in each state. A campaign that was cancelled has its acquire until that
 * ends. */
static void check(const redlock_election *election) {
    const enum redlock_candidate_state state = election->candidate.state;
    assert((election->lease != NULL) == (state == REDLOCK_CANDIDATE_LEADING));
    assert(election->pending || state != REDLOCK_CANDIDATE_CAMPAIGNING);
    assert(!election->pending || (state != REDLOCK_CANDIDATE_OUT && state != REDLOCK_CANDIDATE_PAUSED));
}

static void feed(redlock_election *election, enum redlock_candidate_input input, int code,
                 const redlock_election_event *details) {
    struct redlock_group *group = election->all->group;
    struct redlock_candidate_actions actions;
    redlock_candidate_step(&election->candidate, input, code, redlock_group_now_ns(group), &actions);
    if (actions.cancel) {
        assert(election->pending);
        redlock_request_cancel((redlock_request *)election->pending);
    }
    if (actions.release) {
        release(election, actions.report);
    }
    if (actions.acquire) {
        acquire(election);
    }
    check(election);
    redlock_timer_set(group, &election->timer, election->candidate.wake_ns);
    if (actions.tell == REDLOCK_ELECTION_NOTHING) {
        return;
    }
    const bool ends = election->candidate.state == REDLOCK_CANDIDATE_ENDED;
    redlock_election_event event = details ? *details : (redlock_election_event){0};
    event.code = actions.code;
    if (ends) {
        redlock_list_remove(&election->entry); /* the callback may close the manager */
    }
    tell(election, actions.tell, event);
    if (ends) {
        free_election(election);
    }
}

static void on_described(const redlock_result *result, void *data) {
    redlock_election_event details = {.result = result};
    feed(data, REDLOCK_CANDIDATE_TIMER, redlock_result_code(result), &details);
}

static void on_timer(struct redlock_timer *timer) {
    redlock_election *election = (redlock_election *)timer;
    assert(election->candidate.state != REDLOCK_CANDIDATE_ENDED);
    const int code = election->pending ? redlock_driver_trouble(election->pending) : REDLOCK_OK;
    if (code == REDLOCK_OK) {
        feed(election, REDLOCK_CANDIDATE_TIMER, code, NULL);
    } else {
        redlock_driver_describe(election->pending, REDLOCK_RESULT_ACQUIRE, code, on_described, election);
    }
}

/* The calls. */

void redlock_election_options_default(redlock_election_options *options) {
    *options = (redlock_election_options){.size = sizeof *options, .ttl_ms = 10000, .campaign = true, .heal = true};
}

static redlock_acquire_options lock_options(const redlock_election_options *options, redlock_election *election) {
    redlock_acquire_options lock;
    redlock_acquire_options_default(&lock);
    lock.ttl_ms = options->ttl_ms;
    lock.wait_timeout_ms = REDLOCK_WAIT_FOREVER;
    lock.auto_extend = true;
    lock.on_lost = on_lost;
    lock.lost_data = election;
    lock.fencing = options->fencing;
    lock.heal = options->heal;
    lock.lock_delay_ms = options->lock_delay_ms;
    lock.trace = options->trace;
    lock.expiring_ms = options->expiring_ms;
    lock.on_expiring = options->expiring_ms != 0 ? on_expiring : NULL;
    lock.expiring_data = election;
    return lock;
}

static int open_election(redlock_election *election, const redlock_election_options *options) {
    struct redlock_group *group = election->all->group;
    redlock_acquire_options checked;
    election->options = lock_options(options, election);
    int code = redlock_group_refuse(group, redlock_group_check_options(group, &election->options, &checked));
    if (code != REDLOCK_OK) {
        return code;
    }
    if (!redlock_timer_open(group, &election->timer, on_timer)) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    code = redlock_group_observe(group, election->name, on_leader, election, &election->observer);
    if (code != REDLOCK_OK) {
        redlock_timer_close(group, &election->timer);
    }
    return code;
}

static int check_arguments(struct redlock_group *group, const char *name, const redlock_election_options *given,
                           bool has_cb, bool has_place, redlock_election_options *options) {
    struct redlock_error_text *failure = &group->failure;
    size_t key_size;
    redlock_election_options_default(options);
    int code = redlock_check_given(failure, "cb", has_cb);
    if (code == REDLOCK_OK) {
        code = redlock_check_given(failure, "election", has_place);
    }
    if (code == REDLOCK_OK) {
        code = redlock_check_options(failure, "redlock_election_options", options, sizeof *options, given);
    }
    if (code == REDLOCK_OK) {
        code = redlock_group_check_resource(group, "name", name, &key_size);
    }
    return redlock_group_refuse(group, code);
}

void redlock_elections_init(struct redlock_elections *elections, struct redlock_group *group) {
    elections->group = group;
    redlock_list_init(&elections->list);
}

int redlock_elections_add(struct redlock_elections *elections, const char *name, const redlock_election_options *given,
                          redlock_election_callback cb, void *data, struct redlock_standing *standing,
                          redlock_election **added) {
    redlock_election_options options;
    int code = check_arguments(elections->group, name, given, cb != NULL, added != NULL, &options);
    if (code == REDLOCK_OK) {
        code = redlock_group_check_open(elections->group);
    }
    if (code != REDLOCK_OK) {
        return code;
    }
    redlock_election *election = calloc(1, sizeof *election + strlen(name) + 1);
    if (!election) {
        return REDLOCK_ERR_NO_MEMORY;
    }
    election->all = elections;
    election->cb = cb;
    election->data = data;
    election->standing = standing ? standing : &election->own;
    memcpy(election->name, name, strlen(name));
    redlock_candidate_init(&election->candidate);
    code = open_election(election, &options);
    if (code != REDLOCK_OK) {
        free(election);
        return code;
    }
    redlock_list_prepend(&elections->list, &election->entry);
    if (options.campaign) {
        feed(election, REDLOCK_CANDIDATE_DO_CAMPAIGN, REDLOCK_OK, NULL);
    }
    *added = election;
    return REDLOCK_OK;
}

static int check_call(const redlock_election *election) {
    if (!election) {
        return REDLOCK_ERR_INVALID;
    }
    struct redlock_group *group = election->all->group;
    struct redlock_error_text *failure = &group->failure;
    const int code = redlock_group_check_open(group);
    return code == REDLOCK_OK && redlock_candidate_is_ending(&election->candidate)
               ? redlock_group_refuse(group, redlock_fail(failure, REDLOCK_ERR_INVALID,
                                                          "election: redlock_election_end() was called before"))
               : code;
}

static int call(redlock_election *election, enum redlock_candidate_input input) {
    const int code = check_call(election);
    if (code == REDLOCK_OK) {
        feed(election, input, REDLOCK_OK, NULL);
    }
    return code;
}

int redlock_election_resign(redlock_election *election) {
    return call(election, REDLOCK_CANDIDATE_DO_RESIGN);
}

int redlock_election_campaign(redlock_election *election) {
    return call(election, REDLOCK_CANDIDATE_DO_CAMPAIGN);
}

bool redlock_election_is_out(const redlock_election *election) {
    return election->candidate.state == REDLOCK_CANDIDATE_OUT;
}

static void stop_observing(redlock_election *election) {
    redlock_observer_end(election->observer);
    election->observer = NULL;
}

int redlock_election_end(redlock_election *election) {
    const int code = check_call(election);
    if (code == REDLOCK_OK) {
        stop_observing(election);
        feed(election, REDLOCK_CANDIDATE_DO_END, REDLOCK_OK, NULL);
    }
    return code;
}

int64_t redlock_standing_validity_ms(const struct redlock_standing *standing, uint64_t term, int64_t now_ns) {
    const int64_t until_ns = atomic_load_explicit(&standing->held_until_ns, memory_order_acquire);
    if (until_ns == 0 || atomic_load_explicit(&standing->term, memory_order_acquire) != term) {
        return 0;
    }
    return redlock_validity_ms(until_ns, now_ns);
}

int64_t redlock_election_validity_ms(const redlock_election *election, uint64_t term) {
    return redlock_standing_validity_ms(election->standing, term, redlock_group_now_ns(election->all->group));
}

/* The close of the manager. */

void redlock_elections_close(struct redlock_elections *elections) {
    REDLOCK_LIST_EACH(at, &elections->list) {
        redlock_election *election = election_of(at);
        redlock_lease *lease = election->lease ? election->lease : election->pending;
        if (lease) {
            stop_watching(election, lease); /* the group ends it */
        }
        election->lease = NULL;
        stop_observing(election);
        feed(election, REDLOCK_CANDIDATE_DO_CLOSE, REDLOCK_OK, NULL);
    }
}

void redlock_elections_closed(struct redlock_elections *elections) {
    for (struct redlock_list_entry *first; (first = redlock_list_first(&elections->list));) {
        feed(election_of(first), REDLOCK_CANDIDATE_CLOSED, REDLOCK_OK, NULL);
    }
}

void redlock_elections_free(struct redlock_elections *elections) {
    for (struct redlock_list_entry *first; (first = redlock_list_first(&elections->list));) {
        free_election(election_of(first));
    }
}
