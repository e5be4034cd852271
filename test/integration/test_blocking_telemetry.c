/* The snapshot and the events of the blocking client, with threads that lock and threads that look
 * at the same time. */
#include "blocking_kit.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 8
#define CYCLES  20

/* The context of one acquire. Only the loop thread writes it, until the last event. */
struct span {
    unsigned counts[REDLOCK_TELEMETRY_EXPIRING + 1];
    uint64_t id;
};

/* The loop thread's. */
static struct {
    pthread_t loop;
    unsigned counts[REDLOCK_TELEMETRY_EXPIRING + 1];
} tale;

static void take_event(const redlock_telemetry_event *event, void *data) {
    struct span *span = event->trace;
    kit_must(data == &tale);
    kit_must(tale.loop == 0 || pthread_equal(tale.loop, pthread_self()));
    tale.loop = pthread_self();
    tale.counts[event->kind]++;
    if (span) {
        kit_must(span->id == 0 || span->id == event->id);
        span->id = event->id;
        span->counts[event->kind]++;
    }
}

static redlock_client *open_told(void) {
    redlock_manager_options options;
    redlock_client *client;
    memset(&tale, 0, sizeof tale);
    redlock_manager_options_default(&options);
    options.nodes = kit_servers.uris;
    options.node_count = kit_servers.count;
    options.node_timeout_ms = NODE_TIMEOUT_MS;
    options.connect_timeout_ms = NODE_TIMEOUT_MS;
    options.on_event = take_event;
    options.event_data = &tale;
    assert_is(redlock_client_open(&options, &client, NULL, 0), REDLOCK_OK);
    return client;
}

static uint64_t sum(const redlock_histogram *histogram) {
    uint64_t sum = 0;
    for (size_t i = 0; i < REDLOCK_HISTOGRAM_BUCKETS; i++) {
        sum += histogram->buckets[i];
    }
    return sum;
}

static redlock_telemetry snapshot(redlock_client *client) {
    redlock_telemetry now = {.size = sizeof now};
    kit_must(redlock_client_telemetry(client, &now) == REDLOCK_OK);
    kit_must(sum(&now.acquire) == now.acquire.count && sum(&now.held) == now.held.count);
    return now;
}

static atomic_bool done;

/* Each snapshot is whole, and nothing goes back. */
static void *look(void *data) {
    uint64_t acquired = 0;
    while (!atomic_load(&done)) {
        const redlock_telemetry now = snapshot(data);
        kit_must(now.acquire.count >= acquired && now.held.count <= now.acquire.count);
        acquired = now.acquire.count;
    }
    return NULL;
}

static void *lock(void *data) {
    static struct span spans[THREADS][CYCLES];
    static atomic_uint next;
    const unsigned thread = atomic_fetch_add(&next, 1) % THREADS;
    redlock_client_acquire_options options = kit_options(60000, PATIENT_MS);
    for (unsigned i = 0; i < CYCLES; i++) {
        struct span *span = &spans[thread][i];
        redlock_lease *lease;
        options.lock.trace = span;
        kit_must(redlock_client_acquire(data, "r", &options, &lease, NULL) == REDLOCK_OK);
        kit_must(redlock_client_release(data, lease, NULL) == REDLOCK_OK);
        kit_must(span->counts[REDLOCK_TELEMETRY_STARTED] == 1 && span->counts[REDLOCK_TELEMETRY_ACQUIRED] == 1 &&
                 span->counts[REDLOCK_TELEMETRY_RELEASED] == 1 && span->counts[REDLOCK_TELEMETRY_FAILED] == 0);
    }
    return NULL;
}

TESTS_WITH(kit_start, kit_stop);

KIT_TEST(threads_lock_while_others_look) {
    pthread_t lockers[THREADS], looker;
    redlock_client *client = open_told();
    atomic_store(&done, false);
    assert_int_equal(pthread_create(&looker, NULL, look, client), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&lockers[i], NULL, lock, client), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(lockers[i], NULL);
    }
    atomic_store(&done, true);
    pthread_join(looker, NULL);
    const redlock_telemetry now = snapshot(client);
    assert_int_equal(now.acquire.count, THREADS * CYCLES);
    assert_int_equal(now.held.count, THREADS * CYCLES);
    assert_true(now.wait.count > 0);
    assert_true(redlock_histogram_quantile_us(&now.acquire, 0.5) > 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(now.node_ups[i], 1);
        assert_true(now.votes[REDLOCK_VOTED_GRANTED][i] > 0);
    }
    redlock_client_close(client);
    assert_int_equal(tale.counts[REDLOCK_TELEMETRY_STARTED], THREADS * CYCLES);
    assert_int_equal(tale.counts[REDLOCK_TELEMETRY_RELEASED], THREADS * CYCLES);
    assert_int_equal(tale.counts[REDLOCK_TELEMETRY_NODE_UP], 5);
}

/* A second hold of one owner asks no node, so it is no acquire. */
KIT_TEST(a_reentrant_hold_tells_nothing) {
    struct span span = {.id = 0};
    redlock_lease *lease, *again;
    redlock_client *client = open_told();
    redlock_client_acquire_options options = kit_options(60000, 0);
    options.reentrant = true;
    options.lock.trace = &span;
    assert_is(redlock_client_acquire(client, "r", &options, &lease, NULL), REDLOCK_OK);
    assert_is(redlock_client_acquire(client, "r", &options, &again, NULL), REDLOCK_OK);
    kit_release(client, again);
    redlock_client_close(client); /* with the lease held */
    assert_int_equal(span.counts[REDLOCK_TELEMETRY_STARTED], 1);
    assert_int_equal(span.counts[REDLOCK_TELEMETRY_ACQUIRED], 1);
    assert_int_equal(span.counts[REDLOCK_TELEMETRY_RELEASED], 1);
}
