/* Threads that block are told that a deadline is near: by on_expiring, and by the events of an
 * election. */
#include <stdatomic.h>

#include "blocking_election_kit.h"

#define TTL_MS      6000
#define EXPIRING_MS 3000

static atomic_int warnings, losses;
static _Atomic int64_t remaining_ms;

static int reset(void **state) {
    atomic_store(&warnings, 0);
    atomic_store(&losses, 0);
    return kit_set_up(state);
}

static void warn(redlock_lease *lease, int64_t left_ms, void *data) {
    (void)data;
    kit_must(redlock_lease_validity_ms(lease) <= left_ms);
    atomic_store(&remaining_ms, left_ms);
    atomic_fetch_add(&warnings, 1);
}

static void lose(redlock_lease *lease, const char *reason, void *data) {
    (void)lease, (void)reason, (void)data;
    atomic_fetch_add(&losses, 1);
}

static redlock_client_acquire_options options(void) {
    redlock_client_acquire_options made = kit_options(TTL_MS, PATIENT_MS);
    made.lock.expiring_ms = EXPIRING_MS;
    made.lock.on_expiring = warn;
    made.lock.on_lost = lose;
    return made;
}

static void hang(bool hangs) {
    servers_each(&kit_servers, 0, kit_servers.count, hangs ? server_pause : server_resume);
}

/* It stops its work when it is told, and still holds the lock. */
static int work_until_told(redlock_lease *lease, void *data) {
    (void)data;
    hang(true);
    kit_until(atomic_load(&warnings) > 0);
    const int64_t left_ms = redlock_lease_validity_ms(lease);
    hang(false);
    kit_until(redlock_lease_validity_ms(lease) > EXPIRING_MS); /* the nodes answer again */
    return left_ms > 0;
}

TESTS_WITH(kit_start, kit_stop);
#define EXPIRING_TEST(name) TEST_WITH(name, reset, kit_tear_down)

EXPIRING_TEST(work_that_is_told_stops_while_it_holds_the_lock) {
    redlock_client *client = kit_client(1000);
    const redlock_client_acquire_options made = options();
    int held = 0;
    assert_is(redlock_client_with(client, "r", &made, work_until_told, NULL, &held, NULL), REDLOCK_OK);
    assert_true(held);
    assert_in_range(atomic_load(&remaining_ms), 1, EXPIRING_MS);
    assert_int_equal(atomic_load(&warnings), 1);
    assert_int_equal(atomic_load(&losses), 0);
    kit_expect_no_keys();
}

static redlock_client_election *elect_warned(redlock_client *client) {
    redlock_election_options made;
    redlock_client_election *election;
    redlock_election_options_default(&made);
    made.ttl_ms = TTL_MS;
    made.expiring_ms = EXPIRING_MS;
    assert_is(redlock_client_elect(client, "leader", &made, &election), REDLOCK_OK);
    return election;
}

EXPIRING_TEST(a_leader_reads_that_its_end_is_near) {
    redlock_client_election *election = elect_warned(kit_client(1000));
    const uint64_t term = lead(election);
    hang(true);
    const redlock_election_event event = next_change(election, REDLOCK_ELECTION_EXPIRING);
    const int64_t left_ms = redlock_client_election_validity_ms(election, term);
    hang(false);
    /* The nodes answer again. */
    kit_until(redlock_client_election_validity_ms(election, term) > EXPIRING_MS);
    assert_int_equal(event.term, term);
    assert_in_range(event.remaining_ms, 1, EXPIRING_MS);
    assert_in_range(left_ms, 1, event.remaining_ms);
    assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
}

/* The lease was renewed before anybody read of it. */
EXPIRING_TEST(a_warning_that_is_out_of_date_is_not_read) {
    redlock_client *client = kit_client(1000);
    redlock_client_election *election = elect_warned(client);
    const uint64_t term = lead(election);
    redlock_statistics counted = {.size = sizeof counted};
    hang(true);
    kit_until(redlock_client_statistics(client, &counted) == REDLOCK_OK && counted.expiring > 0);
    hang(false);
    kit_until(redlock_client_election_validity_ms(election, term) > EXPIRING_MS);
    for (redlock_election_event_kind kind = REDLOCK_ELECTION_LEADING; kind != REDLOCK_ELECTION_NOTHING;) {
        kind = read_event(election, 0).kind;
        assert_int_not_equal(kind, REDLOCK_ELECTION_EXPIRING);
    }
    assert_is(redlock_client_election_end(election, NULL), REDLOCK_OK);
}
