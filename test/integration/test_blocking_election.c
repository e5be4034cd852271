/* Elections for threads that block: what they read, calls from many threads, the end and the close
 * while threads wait, a fork, failures of the system. */
#include "blocking_kit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME     "leader"
#define TTL_MS   10000
#define WAIT_MS  30000 /* for news that must come */
#define BRISK_MS 500   /* a node timeout that ends soon */

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

/* --- The kit --- */

static redlock_client_election *elect(redlock_client *client, bool campaign) {
    redlock_election_options options;
    redlock_client_election *election = NULL;
    redlock_election_options_default(&options);
    options.ttl_ms = TTL_MS;
    options.campaign = campaign;
    kit_must(redlock_client_elect(client, NAME, &options, &election) == REDLOCK_OK && election);
    return election;
}

static redlock_election_event read_event(redlock_client_election *election, int64_t timeout_ms) {
    redlock_election_event event = {.size = sizeof event};
    const int code = redlock_client_election_next(election, timeout_ms, &event);
    if (code != REDLOCK_OK) {
        support_fatal("no event: %s", redlock_error_name(code));
    }
    kit_must(event.size == sizeof event && event.election == NULL && event.lease == NULL);
    return event;
}

/* The next event that is not news of the leader or of trouble. */
static redlock_election_event next_change(redlock_client_election *election, redlock_election_event_kind kind) {
    for (;;) {
        const redlock_election_event event = read_event(election, WAIT_MS);
        if (event.kind == kind) {
            return event;
        }
        if (event.kind != REDLOCK_ELECTION_LEADER && event.kind != REDLOCK_ELECTION_TROUBLE) {
            support_fatal("%s instead of %s", redlock_election_event_name(event.kind),
                          redlock_election_event_name(kind));
        }
    }
}

/* The next news of the leader: who it is. */
static redlock_election_event next_leader(redlock_client_election *election) {
    for (;;) {
        const redlock_election_event event = read_event(election, WAIT_MS);
        if (event.kind == REDLOCK_ELECTION_LEADER) {
            return event;
        }
    }
}

static uint64_t lead(redlock_client_election *election) {
    const redlock_election_event event = next_change(election, REDLOCK_ELECTION_LEADING);
    kit_must(redlock_client_election_validity_ms(election, event.term) > 0);
    return event.term;
}

static void delete_key(void) {
    for (size_t i = 0; i < kit_servers.count; i++) {
        (void)server_ask(&kit_servers.at[i], "DEL", NAME);
    }
}

/* --- What is read --- */

static void it_leads_and_resigns(void **state) {
    (void)state;
    redlock_client *client = kit_client(NODE_TIMEOUT_MS), *other_client = kit_client(NODE_TIMEOUT_MS);
    redlock_client_election *election = elect(client, true), *other;
    redlock_result *result = NULL;
    const uint64_t term = lead(election);
    assert_int_equal(redlock_client_election_validity_ms(election, term + 1), 0);
    other = elect(other_client, true);
    kit_until(atoi(server_ask(&kit_servers.at[0], "ZCARD", NAME ":wait")) == 1);
    assert_int_equal(redlock_client_election_resign(election, &result), REDLOCK_OK);
    assert_non_null(result);
    assert_int_equal(redlock_result_code(result), REDLOCK_OK);
    redlock_result_free(result);
    assert_int_equal(redlock_client_election_validity_ms(election, term), 0);
    assert_int_equal(next_change(election, REDLOCK_ELECTION_RESIGNED).code, REDLOCK_OK);
    (void)lead(other);
    while (next_leader(election).leader->token[0] == '\0') {
    }
    /* It is out already. */
    assert_int_equal(redlock_client_election_resign(election, &result), REDLOCK_OK);
    assert_null(result);
    assert_int_equal(redlock_client_election_campaign(election), REDLOCK_OK);
    assert_int_equal(redlock_client_election_end(other, NULL), REDLOCK_OK);
    assert_true(lead(election) > term);
    assert_int_equal(redlock_client_election_end(election, &result), REDLOCK_OK);
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
static void a_loss_is_read_first(void **state) {
    (void)state;
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    redlock_election_options options;
    redlock_client_election *election;
    redlock_election_options_default(&options);
    options.ttl_ms = 900; /* each renewal looks at the key */
    assert_int_equal(redlock_client_elect(client, NAME, &options, &election), REDLOCK_OK);
    const uint64_t first = lead(election);
    uint64_t term = first;
    for (int i = 0; i < 3; i++) { /* it is lost and won again, without a reader */
        delete_key();
        kit_until(redlock_client_election_validity_ms(election, term) == 0);
        kit_until(leads_later(election, &term));
    }
    redlock_election_event event = read_event(election, WAIT_MS);
    assert_int_equal(event.kind, REDLOCK_ELECTION_LOST);
    assert_int_equal(event.term, first);
    assert_true(strlen(event.reason) > 10);
    assert_int_equal(redlock_client_election_validity_ms(election, first), 0);
    event = next_change(election, REDLOCK_ELECTION_LEADING);
    assert_true(event.term > first);
    assert_int_equal(redlock_client_election_end(election, NULL), REDLOCK_OK);
}

static void an_observer_reads_only_leaders(void **state) {
    (void)state;
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    redlock_client_election *observer = elect(client, false), *election;
    redlock_election_event event = read_event(observer, WAIT_MS);
    assert_int_equal(event.kind, REDLOCK_ELECTION_LEADER);
    assert_string_equal(event.leader->token, "");
    assert_int_equal(read_event(observer, 0).kind, REDLOCK_ELECTION_NOTHING);
    const int64_t from_ms = support_now_ms();
    assert_int_equal(read_event(observer, 50).kind, REDLOCK_ELECTION_NOTHING);
    assert_true(support_now_ms() - from_ms >= 49);
    election = elect(client, true);
    (void)lead(election);
    event = read_event(observer, WAIT_MS);
    assert_int_equal(event.kind, REDLOCK_ELECTION_LEADER);
    assert_false(event.leader->is_self);
    assert_string_equal(event.leader->token, server_ask(&kit_servers.at[0], "GET", NAME));
    assert_true(next_leader(election).leader->is_self);
    assert_int_equal(redlock_client_election_end(election, NULL), REDLOCK_OK);
    assert_string_equal(next_leader(observer).leader->token, "");
    assert_int_equal(redlock_client_election_end(observer, NULL), REDLOCK_OK);
}

static void trouble_has_a_result(void **state) {
    (void)state;
    redlock_client *client = kit_client(100);
    char message[1024];
    for (size_t i = 0; i < 3; i++) {
        server_pause(&kit_servers.at[i]);
    }
    redlock_client_election *election = elect(client, true);
    redlock_election_event event = read_event(election, WAIT_MS);
    assert_int_equal(event.kind, REDLOCK_ELECTION_TROUBLE);
    assert_int_equal(event.code, REDLOCK_ERR_NO_QUORUM);
    assert_non_null(event.result);
    assert_true(redlock_result_message(event.result, message, sizeof message) > 10);
    for (size_t i = 0; i < 3; i++) {
        server_resume(&kit_servers.at[i]);
    }
    (void)lead(election);
    assert_int_equal(redlock_client_election_end(election, NULL), REDLOCK_OK);
}

/* --- Threads --- */

struct reader {
    redlock_client_election *election;
    int code;
    redlock_election_event event;
    atomic_bool begun;
    pthread_t thread;
};

/* Reads until something ends, or the call fails. */
static void *read_on(void *data) {
    struct reader *reader = data;
    atomic_store(&reader->begun, true);
    do {
        reader->event = (redlock_election_event){.size = sizeof reader->event};
        reader->code = redlock_client_election_next(reader->election, REDLOCK_WAIT_FOREVER, &reader->event);
    } while (reader->code == REDLOCK_OK && reader->event.kind != REDLOCK_ELECTION_ENDED);
    return NULL;
}

static void start_reader(struct reader *reader, redlock_client_election *election) {
    *reader = (struct reader){.election = election};
    kit_must(pthread_create(&reader->thread, NULL, read_on, reader) == 0);
    kit_until(atomic_load(&reader->begun));
}

static void only_one_thread_may_read(void **state) {
    (void)state;
    redlock_client_election *election = elect(kit_client(NODE_TIMEOUT_MS), false);
    struct reader reader;
    redlock_election_event event = {.size = sizeof event};
    start_reader(&reader, election);
    /* Until it waits there, this call may take the news. */
    kit_until(redlock_client_election_next(election, 0, &event) == REDLOCK_ERR_BUSY);
    assert_int_equal(redlock_client_election_end(election, NULL), REDLOCK_OK);
    pthread_join(reader.thread, NULL);
    assert_int_equal(reader.code, REDLOCK_OK);
    assert_int_equal(reader.event.kind, REDLOCK_ELECTION_ENDED);
    assert_int_equal(reader.event.code, REDLOCK_OK);
}

static void the_close_wakes_a_reader(void **state) {
    (void)state;
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    struct reader readers[3];
    for (int i = 0; i < 3; i++) { /* a leader, a candidate, an observer */
        start_reader(&readers[i], elect(client, i < 2));
    }
    kit_until(server_has_key(&kit_servers.at[0], NAME));
    kit_close(client);
    for (int i = 0; i < 3; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].code, REDLOCK_OK);
        assert_int_equal(readers[i].event.kind, REDLOCK_ELECTION_ENDED);
        assert_int_equal(readers[i].event.code, REDLOCK_ERR_CLOSED);
    }
    kit_expect_no_keys();
}

static void after_the_end_there_is_nothing_to_read(void **state) {
    (void)state;
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    redlock_client_election *election = elect(client, true);
    redlock_election_event event = {.size = sizeof event};
    struct reader reader;
    start_reader(&reader, election);
    kit_until(server_has_key(&kit_servers.at[0], NAME));
    assert_int_equal(redlock_client_election_end(election, NULL), REDLOCK_OK);
    pthread_join(reader.thread, NULL);
    assert_int_equal(reader.event.kind, REDLOCK_ELECTION_ENDED);
    assert_null(reader.event.result);
    /* Arguments. */
    election = elect(client, false);
    assert_int_equal(redlock_client_election_next(NULL, 0, &event), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_client_election_next(election, 0, NULL), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_client_election_next(election, -2, &event), REDLOCK_ERR_INVALID);
    event.size = 0;
    assert_int_equal(redlock_client_election_next(election, 0, &event), REDLOCK_ERR_INVALID);
    event.size = offsetof(redlock_election_event, election) - 1; /* no room for the kind */
    assert_int_equal(redlock_client_election_next(election, 0, &event), REDLOCK_ERR_INVALID);
    event.size = offsetof(redlock_election_event, election); /* of a program that knows less */
    assert_int_equal(redlock_client_election_next(election, WAIT_MS, &event), REDLOCK_OK);
    assert_int_equal(event.kind, REDLOCK_ELECTION_LEADER);
    assert_int_equal(event.size, offsetof(redlock_election_event, election));
    assert_int_equal(redlock_client_election_resign(NULL, NULL), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_client_election_campaign(NULL), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_client_election_end(NULL, NULL), REDLOCK_ERR_INVALID);
    assert_int_equal(redlock_client_elect(client, NAME, NULL, NULL), REDLOCK_ERR_INVALID);
    redlock_client_election *none = election;
    assert_int_equal(redlock_client_elect(client, "", NULL, &none), REDLOCK_ERR_INVALID);
    assert_null(none);
    assert_int_equal(redlock_client_elect(NULL, NAME, NULL, &none), REDLOCK_ERR_INVALID);
}

/* The loop of docs/election.md: ENDED is an event like any other. */
static void *read_while_ok(void *data) {
    struct reader *reader = data;
    redlock_election_event event = {.size = sizeof event};
    while ((reader->code = redlock_client_election_next(reader->election, REDLOCK_WAIT_FOREVER, &event)) ==
           REDLOCK_OK) {
        reader->event = event;
        atomic_store(&reader->begun, true);
    }
    return NULL;
}

/* Works in term 1 until it is told to stop, also after the end. */
static atomic_bool workers_stop;

static void *work_in_term_1(void *data) {
    struct reader *worker = data;
    while (!atomic_load(&workers_stop)) {
        worker->code = redlock_client_election_validity_ms(worker->election, 1) > 0;
        if (worker->code) {
            atomic_store(&worker->begun, true);
        }
    }
    return NULL;
}

/* Another thread ends it, and nobody else knows. */
static void threads_may_outlive_an_election(void **state) {
    (void)state;
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    for (int round = 0; round < 20; round++) {
        redlock_client_election *election = elect(client, true);
        struct reader reader = {.election = election}, worker = {.election = election};
        redlock_election_event event = {.size = sizeof event};
        atomic_store(&workers_stop, false);
        kit_must(pthread_create(&reader.thread, NULL, read_while_ok, &reader) == 0);
        kit_must(pthread_create(&worker.thread, NULL, work_in_term_1, &worker) == 0);
        kit_until(atomic_load(&reader.begun) && atomic_load(&worker.begun));
        assert_int_equal(redlock_client_election_end(election, NULL), REDLOCK_OK);
        pthread_join(reader.thread, NULL);
        assert_int_equal(reader.event.kind, REDLOCK_ELECTION_ENDED);
        assert_int_equal(reader.code, REDLOCK_ERR_CLOSED);
        assert_int_equal(redlock_client_election_validity_ms(election, 1), 0);
        atomic_store(&workers_stop, true);
        pthread_join(worker.thread, NULL);
        assert_int_equal(redlock_client_election_next(election, 0, &event), REDLOCK_ERR_CLOSED);
        assert_int_equal(redlock_client_election_resign(election, NULL), REDLOCK_ERR_INVALID);
        assert_int_equal(redlock_client_election_campaign(election), REDLOCK_ERR_INVALID);
        assert_int_equal(redlock_client_election_end(election, NULL), REDLOCK_ERR_INVALID);
    }
    kit_expect_no_keys();
}

struct resigner {
    redlock_client_election *election;
    int code;
    pthread_t thread;
};

static void *resign(void *data) {
    struct resigner *resigner = data;
    resigner->code = redlock_client_election_resign(resigner->election, NULL);
    return NULL;
}

/* All of them wait for one release. */
static void many_threads_resign(void **state) {
    (void)state;
    redlock_client_election *election = elect(kit_client(NODE_TIMEOUT_MS), true);
    struct resigner resigners[8];
    (void)lead(election);
    for (int i = 0; i < 8; i++) {
        resigners[i] = (struct resigner){.election = election};
        kit_must(pthread_create(&resigners[i].thread, NULL, resign, &resigners[i]) == 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(resigners[i].thread, NULL);
        assert_int_equal(resigners[i].code, REDLOCK_OK);
    }
    next_change(election, REDLOCK_ELECTION_RESIGNED);
    kit_expect_no_keys();
}

/* Nobody answers the release. */
static void the_close_ends_a_resignation(void **state) {
    (void)state;
    redlock_client *client = kit_client(BRISK_MS);
    struct resigner resigner = {.election = elect(client, true)};
    (void)lead(resigner.election);
    for (size_t i = 0; i < kit_servers.count; i++) {
        server_pause(&kit_servers.at[i]);
    }
    const uint64_t one = 1;
    kit_must(pthread_create(&resigner.thread, NULL, resign, &resigner) == 0);
    kit_until(redlock_client_election_validity_ms(resigner.election, one) == 0);
    kit_close(client);
    pthread_join(resigner.thread, NULL);
    assert_true(resigner.code == REDLOCK_ERR_NO_QUORUM || resigner.code == REDLOCK_ERR_CLOSED);
}

/* Threads do what they like; at no time do two candidates have validity. */
struct crowd_member {
    redlock_client_election *election;
    atomic_uint_least64_t term;
    pthread_t reader, caller;
};
#define MEMBERS 3
static struct crowd_member members[MEMBERS];
static atomic_bool crowd_ends;
static atomic_int terms_led;

static bool leads(struct crowd_member *member) {
    const uint64_t term = atomic_load(&member->term);
    return term != 0 && redlock_client_election_validity_ms(member->election, term) > 0;
}

static void *read_terms(void *data) {
    struct crowd_member *member = data;
    for (;;) {
        redlock_election_event event = {.size = sizeof event};
        kit_must(redlock_client_election_next(member->election, REDLOCK_WAIT_FOREVER, &event) == REDLOCK_OK);
        if (event.kind == REDLOCK_ELECTION_LEADING) {
            atomic_store(&member->term, event.term);
            atomic_fetch_add(&terms_led, 1);
        } else if (event.kind == REDLOCK_ELECTION_ENDED) {
            return NULL;
        } else {
            kit_must(event.kind == REDLOCK_ELECTION_RESIGNED || event.kind == REDLOCK_ELECTION_LEADER ||
                     event.kind == REDLOCK_ELECTION_TROUBLE);
        }
    }
}

static void *come_and_go(void *data) {
    struct crowd_member *member = data;
    for (unsigned turn = 0; !atomic_load(&crowd_ends); turn++) {
        for (int i = 0; i < MEMBERS; i++) {
            const bool we_lead = leads(member), they_lead = &members[i] != member && leads(&members[i]);
            kit_must(!(we_lead && they_lead && leads(member)));
        }
        if (leads(member)) {
            kit_must(redlock_client_election_resign(member->election, NULL) == REDLOCK_OK);
            kit_must(redlock_client_election_campaign(member->election) == REDLOCK_OK);
        } else if (turn % 64 == 63) {
            kit_must(redlock_client_election_resign(member->election, NULL) == REDLOCK_OK);
            kit_must(redlock_client_election_campaign(member->election) == REDLOCK_OK);
        }
        support_pause_ms(1);
    }
    return NULL;
}

static void never_two_have_validity(void **state) {
    (void)state;
    atomic_store(&crowd_ends, false);
    atomic_store(&terms_led, 0);
    for (int i = 0; i < MEMBERS; i++) {
        members[i].election = elect(kit_client(NODE_TIMEOUT_MS), true);
        atomic_store(&members[i].term, 0);
    }
    for (int i = 0; i < MEMBERS; i++) {
        kit_must(pthread_create(&members[i].reader, NULL, read_terms, &members[i]) == 0);
        kit_must(pthread_create(&members[i].caller, NULL, come_and_go, &members[i]) == 0);
    }
    kit_until(atomic_load(&terms_led) >= 100);
    atomic_store(&crowd_ends, true);
    for (int i = 0; i < MEMBERS; i++) {
        pthread_join(members[i].caller, NULL);
    }
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(redlock_client_election_end(members[i].election, NULL), REDLOCK_OK);
        pthread_join(members[i].reader, NULL);
    }
    kit_expect_no_keys();
}

/* --- A fork, and failures --- */

static void a_child_is_refused(void **state) {
    (void)state;
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
    int status = 1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(redlock_client_election_validity_ms(election, term) > 0);
    assert_int_equal(redlock_client_election_end(election, NULL), REDLOCK_OK);
}

static void failures_of_the_system(void **state) {
    (void)state;
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
    assert_int_equal(redlock_client_election_end(election, NULL), REDLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        kit_test(it_leads_and_resigns),
        kit_test(a_loss_is_read_first),
        kit_test(an_observer_reads_only_leaders),
        kit_test(trouble_has_a_result),
        kit_test(only_one_thread_may_read),
        kit_test(the_close_wakes_a_reader),
        kit_test(after_the_end_there_is_nothing_to_read),
        kit_test(threads_may_outlive_an_election),
        kit_test(many_threads_resign),
        kit_test(the_close_ends_a_resignation),
        kit_test(never_two_have_validity),
        kit_test(a_child_is_refused),
        kit_test(failures_of_the_system),
    };
    return cmocka_run_group_tests(tests, kit_start, kit_stop);
}
