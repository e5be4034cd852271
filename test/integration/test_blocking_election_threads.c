/* Elections for threads that block: calls from many threads, the end and the close while threads
 * wait. */
#include "blocking_election_kit.h"

#include <pthread.h>
#include <stdatomic.h>

#define BRISK_MS 500 /* a node timeout that ends soon */

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

TESTS_WITH(kit_start, kit_stop);

KIT_TEST(only_one_thread_may_read) {
    redlock_client_election *election = elect(kit_client(NODE_TIMEOUT_MS), false);
    struct reader reader;
    redlock_election_event event = {.size = sizeof event};
    start_reader(&reader, election);
    /* Until it waits there, this call may take the news. */
    kit_until(redlock_client_election_next(election, 0, &event) == REDLOCK_ERR_BUSY);
    assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
    pthread_join(reader.thread, NULL);
    assert_is(reader.code, REDLOCK_OK);
    assert_is(reader.event.kind, REDLOCK_ELECTION_ENDED);
    assert_is(reader.event.code, REDLOCK_OK);
}

KIT_TEST(the_close_wakes_a_reader) {
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    struct reader readers[3];
    for (int i = 0; i < 3; i++) { /* a leader, a candidate, an observer */
        start_reader(&readers[i], elect(client, i < 2));
    }
    kit_until(server_has_key(&kit_servers.at[0], NAME));
    kit_close(client);
    for (int i = 0; i < 3; i++) {
        pthread_join(readers[i].thread, NULL);
        assert_is(readers[i].code, REDLOCK_OK);
        assert_is(readers[i].event.kind, REDLOCK_ELECTION_ENDED);
        assert_is(readers[i].event.code, REDLOCK_ERR_CLOSED);
    }
    kit_expect_no_keys();
}

KIT_TEST(after_the_end_there_is_nothing_to_read) {
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    redlock_client_election *election = elect(client, true);
    redlock_election_event event = {.size = sizeof event};
    struct reader reader;
    start_reader(&reader, election);
    kit_until(server_has_key(&kit_servers.at[0], NAME));
    assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
    pthread_join(reader.thread, NULL);
    assert_is(reader.event.kind, REDLOCK_ELECTION_ENDED);
    assert_null(reader.event.result);
    /* Arguments. */
    election = elect(client, false);
    assert_is(redlock_client_election_next(NULL, 0, &event), REDLOCK_ERR_INVALID);
    assert_is(redlock_client_election_next(election, 0, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_client_election_next(election, -2, &event), REDLOCK_ERR_INVALID);
    event.size = 0;
    assert_is(redlock_client_election_next(election, 0, &event), REDLOCK_ERR_INVALID);
    event.size = offsetof(redlock_election_event, election) - 1; /* no room for the kind */
    assert_is(redlock_client_election_next(election, 0, &event), REDLOCK_ERR_INVALID);
    event.size = offsetof(redlock_election_event, election); /* of a program that knows less */
    assert_is(redlock_client_election_next(election, WAIT_MS, &event), REDLOCK_OK);
    assert_is(event.kind, REDLOCK_ELECTION_LEADER);
    assert_int_equal(event.size, offsetof(redlock_election_event, election));
    assert_is(redlock_client_election_resign(NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_client_election_campaign(NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_client_election_end(NULL, NULL), REDLOCK_ERR_INVALID);
    assert_is(redlock_client_elect(client, NAME, NULL, NULL), REDLOCK_ERR_INVALID);
    redlock_client_election *none = election;
    assert_is(redlock_client_elect(client, "", NULL, &none), REDLOCK_ERR_INVALID);
    assert_null(none);
    assert_is(redlock_client_elect(NULL, NAME, NULL, &none), REDLOCK_ERR_INVALID);
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
KIT_TEST(threads_may_outlive_an_election) {
    redlock_client *client = kit_client(NODE_TIMEOUT_MS);
    for (int round = 0; round < 20; round++) {
        redlock_client_election *election = elect(client, true);
        struct reader reader = {.election = election}, worker = {.election = election};
        redlock_election_event event = {.size = sizeof event};
        atomic_store(&workers_stop, false);
        kit_must(pthread_create(&reader.thread, NULL, read_while_ok, &reader) == 0);
        kit_must(pthread_create(&worker.thread, NULL, work_in_term_1, &worker) == 0);
        kit_until(atomic_load(&reader.begun) && atomic_load(&worker.begun));
        assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
        pthread_join(reader.thread, NULL);
        assert_is(reader.event.kind, REDLOCK_ELECTION_ENDED);
        assert_is(reader.code, REDLOCK_ERR_CLOSED);
        assert_int_equal(redlock_client_election_validity_ms(election, 1), 0);
        atomic_store(&workers_stop, true);
        pthread_join(worker.thread, NULL);
        assert_is(redlock_client_election_next(election, 0, &event), REDLOCK_ERR_CLOSED);
        assert_is(redlock_client_election_resign(election, NULL), REDLOCK_ERR_INVALID);
        assert_is(redlock_client_election_campaign(election), REDLOCK_ERR_INVALID);
        assert_is(redlock_client_election_end(election, NULL), REDLOCK_ERR_INVALID);
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
KIT_TEST(many_threads_resign) {
    redlock_client_election *election = elect(kit_client(NODE_TIMEOUT_MS), true);
    struct resigner resigners[8];
    (void)lead(election);
    for (int i = 0; i < 8; i++) {
        resigners[i] = (struct resigner){.election = election};
        kit_must(pthread_create(&resigners[i].thread, NULL, resign, &resigners[i]) == 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(resigners[i].thread, NULL);
        assert_is(resigners[i].code, REDLOCK_OK);
    }
    next_change(election, REDLOCK_ELECTION_RESIGNED);
    kit_expect_no_keys();
}

/* Nobody answers the release. */
KIT_TEST(the_close_ends_a_resignation) {
    redlock_client *client = kit_client(BRISK_MS);
    struct resigner resigner = {.election = elect(client, true)};
    (void)lead(resigner.election);
    servers_each(&kit_servers, 0, kit_servers.count, server_pause);
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

KIT_TEST(never_two_have_validity) {
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
        assert_is(redlock_client_election_end(members[i].election, NULL), REDLOCK_OK);
        pthread_join(members[i].reader, NULL);
    }
    kit_expect_no_keys();
}
