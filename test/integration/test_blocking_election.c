/* Elections for threads that block: what they read, a fork, failures of the system. */
#include "blocking_election_kit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* --- Failures on demand --- */

static atomic_int failing; /* this call fails, once */
enum { MUTEX_INIT = 1, CONDATTR_INIT, SETCLOCK, COND_INIT, CALLOC };

int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int __real_pthread_condattr_init(pthread_condattr_t *attributes);
int __real_pthread_condattr_setclock(pthread_condattr_t *attributes, clockid_t clock);
int __real_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
void *__real_calloc(size_t count, size_t size);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int __wrap_pthread_condattr_init(pthread_condattr_t *attributes);
int __wrap_pthread_condattr_setclock(pthread_condattr_t *attributes, clockid_t clock);
int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
void *__wrap_calloc(size_t count, size_t size);

static bool fails(int call) {
    return atomic_compare_exchange_strong(&failing, &call, 0);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes) {
    return fails(MUTEX_INIT) ? ENOMEM : __real_pthread_mutex_init(mutex, attributes);
}

int __wrap_pthread_condattr_init(pthread_condattr_t *attributes) {
    return fails(CONDATTR_INIT) ? ENOMEM : __real_pthread_condattr_init(attributes);
}

int __wrap_pthread_condattr_setclock(pthread_condattr_t *attributes, clockid_t clock) {
    return fails(SETCLOCK) ? EINVAL : __real_pthread_condattr_setclock(attributes, clock);
}

int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes) {
    return fails(COND_INIT) ? ENOMEM : __real_pthread_cond_init(condition, attributes);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails(CALLOC) ? NULL : __real_calloc(count, size);
}

static void delete_key(void) {
    servers_ask(&kit_servers, 0, kit_servers.count, "DEL", NAME);
}

TESTS_WITH(kit_start, kit_stop);

/* --- What is read --- */

KIT_TEST(it_leads_and_resigns) {
    redlock_client *client = kit_client(NODE_TIMEOUT_MS), *other_client = kit_client(NODE_TIMEOUT_MS);
    redlock_client_election *election = elect(client, true), *other;
    redlock_result *result = NULL;
    const uint64_t term = lead(election);
    assert_int_equal(redlock_client_election_validity_ms(election, term + 1), 0);
    other = elect(other_client, true);
    kit_until(atoi(server_ask(&kit_servers.at[0], "ZCARD", NAME ":wait")) == 1);
    assert_is(redlock_client_election_resign(election, &result), REDLOCK_OK);
    assert_non_null(result);
    assert_is(redlock_result_code(result), REDLOCK_OK);
    redlock_result_free(result);
    assert_int_equal(redlock_client_election_validity_ms(election, term), 0);
    assert_is(next_change(election, REDLOCK_ELECTION_RESIGNED).code, REDLOCK_OK);
    (void)lead(other);
    while (next_leader(election).leader->token[0] == '\0') {
    }
    /* It is out already. */
    assert_is(redlock_client_election_resign(election, &result), REDLOCK_OK);
    assert_null(result);
    assert_is(redlock_client_election_campaign(election), REDLOCK_OK);
    assert_is(redlock_client_election_end(other, NULL), REDLOCK_OK);
    assert_true(lead(election) > term);
    assert_is(redlock_client_election_end(election, &result), REDLOCK_OK);
    assert_non_null(result);
    redlock_result_free(result);
    kit_expect_no_keys();
}

/* In one of the terms after this one; says which. */
static bool leads_later(const redlock_client_election *election, uint64_t *term) {
    for (uint64_t later = *term + 1; later < *term + 100; later++) {
        if (redlock_client_election_validity_ms(election, later) > 0) {
            *term = later;
            return true;
        }
    }
    return false;
}

/* A slow reader reads of the loss first, and never of a term that is over. */
KIT_TEST(a_loss_is_read_first) {
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    redlock_election_options options;
    redlock_client_election *election;
    redlock_election_options_default(&options);
    options.ttl_ms = 900; /* each renewal looks at the key */
    assert_is(redlock_client_elect(client, NAME, &options, &election), REDLOCK_OK);
    const uint64_t first = lead(election);
    uint64_t term = first;
    for (int i = 0; i < 3; i++) { /* it is lost and won again, without a reader */
        delete_key();
        kit_until(redlock_client_election_validity_ms(election, term) == 0);
        kit_until(leads_later(election, &term));
    }
    redlock_election_event event = read_event(election, WAIT_MS);
    assert_is(event.kind, REDLOCK_ELECTION_LOST);
    assert_int_equal(event.term, first);
    assert_true(strlen(event.reason) > 10);
    assert_int_equal(redlock_client_election_validity_ms(election, first), 0);
    event = next_change(election, REDLOCK_ELECTION_LEADING);
    assert_true(event.term > first);
    assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
}

KIT_TEST(an_observer_reads_only_leaders) {
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    redlock_client_election *observer = elect(client, false), *election;
    redlock_election_event event = read_event(observer, WAIT_MS);
    assert_is(event.kind, REDLOCK_ELECTION_LEADER);
    assert_string_equal(event.leader->token, "");
    assert_is(read_event(observer, 0).kind, REDLOCK_ELECTION_NOTHING);
    const int64_t from_ms = support_now_ms();
    assert_is(read_event(observer, 50).kind, REDLOCK_ELECTION_NOTHING);
    assert_true(support_now_ms() - from_ms >= 49);
    election = elect(client, true);
    (void)lead(election);
    event = read_event(observer, WAIT_MS);
    assert_is(event.kind, REDLOCK_ELECTION_LEADER);
    assert_false(event.leader->is_self);
    assert_string_equal(event.leader->token, server_ask(&kit_servers.at[0], "GET", NAME));
    assert_true(next_leader(election).leader->is_self);
    assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
    assert_string_equal(next_leader(observer).leader->token, "");
    assert_is(redlock_client_election_end(observer, NULL), REDLOCK_OK);
}

KIT_TEST(trouble_has_a_result) {
    redlock_client *client = kit_client(100);
    char message[1024];
    servers_each(&kit_servers, 0, 3, server_pause);
    redlock_client_election *election = elect(client, true);
    redlock_election_event event = read_event(election, WAIT_MS);
    assert_is(event.kind, REDLOCK_ELECTION_TROUBLE);
    assert_is(event.code, REDLOCK_ERR_NO_QUORUM);
    assert_non_null(event.result);
    assert_true(redlock_result_message(event.result, message, sizeof message) > 10);
    servers_each(&kit_servers, 0, 3, server_resume);
    (void)lead(election);
    assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
}

/* --- A fork, and failures --- */

KIT_TEST(a_child_is_refused) {
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    redlock_client_election *election = elect(client, true), *none = NULL;
    redlock_election_event event = {.size = sizeof event};
    const uint64_t term = lead(election);
    const pid_t child = fork();
    if (child == 0) {
        const bool refused = redlock_client_election_next(election, 0, &event) == REDLOCK_ERR_FORKED &&
                             redlock_client_election_resign(election, NULL) == REDLOCK_ERR_FORKED &&
                             redlock_client_election_campaign(election) == REDLOCK_ERR_FORKED &&
                             redlock_client_election_end(election, NULL) == REDLOCK_ERR_FORKED &&
                             redlock_client_elect(client, NAME, NULL, &none) == REDLOCK_ERR_FORKED && none == NULL &&
                             redlock_client_close(client) == REDLOCK_OK;
        _exit(refused ? 0 : 1);
    }
    assert_exits(child, 0);
    assert_true(redlock_client_election_validity_ms(election, term) > 0);
    assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
}

KIT_TEST(failures_of_the_system) {
    static const int codes[] = {[MUTEX_INIT] = REDLOCK_ERR_SYSTEM,
                                [CONDATTR_INIT] = REDLOCK_ERR_SYSTEM,
                                [SETCLOCK] = REDLOCK_ERR_SYSTEM,
                                [COND_INIT] = REDLOCK_ERR_SYSTEM,
                                [CALLOC] = REDLOCK_ERR_NO_MEMORY};
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    for (int call = MUTEX_INIT; call <= CALLOC; call++) {
        redlock_client_election *election = NULL;
        atomic_store(&failing, call);
        assert_int_equal(redlock_client_elect(client, NAME, NULL, &election), codes[call]);
        assert_null(election);
        assert_int_equal(atomic_load(&failing), 0);
    }
    redlock_client_election *election = elect(client, true);
    (void)lead(election);
    assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
}
