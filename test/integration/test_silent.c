/* Flows that die without a sound: all connections of a moment freeze, and new ones work. */
#include "world.h"

#define NODES   3
#define HOUR_MS 3600000

/* With TEST_SILENT_LOSSES=10 it measures so many losses, with the default timeouts and with short
 * ttls: for an idle machine. The simulation has those in virtual time (--control silent). */
static bool measures(void) {
    return getenv("TEST_SILENT_LOSSES") != NULL;
}

static int losses_wanted(void) {
    return measures() ? atoi(getenv("TEST_SILENT_LOSSES")) : 2;
}

/* A manager whose nodes are behind proxies of its own. */
struct party {
    struct proxy *proxies[NODES];
    redlock_manager *manager;
};

static redlock_manager_options party_options(struct party *party, const char *uris[NODES]) {
    redlock_manager_options options = world_options();
    for (size_t i = 0; i < NODES; i++) {
        party->proxies[i] = world_proxy(world_servers.at[i].port);
        uris[i] = proxy_uri(party->proxies[i]);
    }
    options.nodes = uris;
    options.node_count = NODES;
    options.node_timeout_ms = measures() ? 50 : BRISK_MS;
    options.connect_timeout_ms = 1000; /* the default */
    return options;
}

static struct party begin(void) {
    struct party party;
    const char *uris[NODES];
    redlock_manager_options options = party_options(&party, uris);
    party.manager = world_manager_with(&options);
    assert_true(drive_nodes(world_loop, party.manager, REDLOCK_NODE_READY, NODES));
    return party;
}

static void lose_flows(const struct party *party) {
    for (size_t i = 0; i < NODES; i++) {
        proxy_freeze_now(party->proxies[i]);
    }
}

static uint64_t connects(const struct party *party, size_t index) {
    return world_node_info(party->manager, index).connects;
}

static bool owes_nothing(void *manager) {
    return world_statistics(manager).releases_owed == 0;
}

/* --- Leases --- */

/* One lease for each ttl, each with connections of its own. After a loss, a lease waits until all
 * its nodes have new ones and a renewal has won. */
struct holder {
    struct party party;
    redlock_lease *lease;
    struct loss *loss;
    int64_t ttl_ms, least_ms; /* of its validity, before a renewal */
    uint64_t connects[NODES]; /* before the last loss */
    int losses;
};

static const int64_t ttls_ms[] = {2000, 3000, 5000, 10000, 30000};
enum { HOLDERS_MAX = sizeof ttls_ms / sizeof *ttls_ms, NOT_SHORT = 2 };

static int first_holder(void) {
    return measures() ? 0 : NOT_SHORT;
}

static void lose(struct holder *holder) {
    for (size_t i = 0; i < NODES; i++) {
        holder->connects[i] = connects(&holder->party, i);
    }
    holder->losses++;
    lose_flows(&holder->party);
}

static void hold(struct holder *holder, int64_t ttl_ms) {
    redlock_acquire_options options = world_acquire_options(ttl_ms, 0);
    struct outcome *outcome = world_outcome();
    char resource[32];
    (void)snprintf(resource, sizeof resource, "held-%lld", (long long)ttl_ms);
    *holder = (struct holder){.party = begin(), .loss = world_loss(), .ttl_ms = ttl_ms, .least_ms = ttl_ms};
    options.auto_extend = true;
    options.on_lost = loss_collect;
    options.lost_data = holder->loss;
    assert_is(drive_acquire(world_loop, holder->party.manager, resource, &options, outcome), REDLOCK_OK);
    holder->lease = outcome->lease;
    lose(holder);
}

static bool is_through(const struct holder *holder, int64_t validity_ms) {
    for (size_t i = 0; i < NODES; i++) {
        if (connects(&holder->party, i) == holder->connects[i]) {
            return false;
        }
    }
    return validity_ms > holder->ttl_ms * 4 / 5;
}

static bool look_at(struct holder *holder) {
    const int64_t validity_ms = redlock_lease_validity_ms(holder->lease);
    holder->least_ms = validity_ms < holder->least_ms ? validity_ms : holder->least_ms;
    if (!is_through(holder, validity_ms)) {
        return false;
    }
    if (holder->losses < losses_wanted()) {
        lose(holder);
        return false;
    }
    return true;
}

/* Or one of them is lost. */
static bool all_are_through(void *data) {
    struct holder *holders = data;
    bool through = true;
    for (int i = first_holder(); i < HOLDERS_MAX; i++) {
        if (holders[i].loss->runs != 0) {
            return true;
        }
        through = look_at(&holders[i]) && through;
    }
    return through;
}

TESTS_WITH(world_three, world_end);

WORLD_TEST(a_lease_outlives_its_connections) {
    static struct holder holders[HOLDERS_MAX];
    for (int i = first_holder(); i < HOLDERS_MAX; i++) {
        hold(&holders[i], ttls_ms[i]);
    }
    assert_true(drive_until(world_loop, all_are_through, holders, 20000 + losses_wanted() * 20000));
    for (int i = first_holder(); i < HOLDERS_MAX; i++) {
        if (holders[i].loss->runs != 0) {
            fail_msg("ttl %lld ms, loss %d: %s", (long long)ttls_ms[i], holders[i].losses, holders[i].loss->reason);
        }
    }
    for (int i = first_holder(); i < HOLDERS_MAX; i++) {
        print_message("ttl %lld ms: %d losses of all connections, %lld ms of validity were left at least\n",
                      (long long)ttls_ms[i], holders[i].losses, (long long)holders[i].least_ms);
        assert_int_equal(world_statistics(holders[i].party.manager).lost, 0);
        assert_is(drive_release(world_loop, holders[i].lease, outcome), REDLOCK_OK);
    }
}

/* --- A program that has been idle --- */

/* One try finds out, and the next may come before the new connections are there. */
WORLD_TEST(an_idle_program_fails_twice_at_most) {
    struct party party = begin();
    int failed = 0;
    lose_flows(&party);
    while (drive_acquire(world_loop, party.manager, "x", TIMES(30000, 0), outcome) != REDLOCK_OK) {
        assert_is(outcome->code, REDLOCK_ERR_NO_QUORUM);
        assert_true(++failed <= 2);
    }
    assert_in_range(failed, 1, 2);
    assert_is(drive_release(world_loop, outcome->lease, outcome), REDLOCK_OK);
}

/* --- Releases --- */

WORLD_TEST(a_release_through_the_loss_frees_the_lock) {
    struct party party = begin();
    redlock_lease *lease = world_acquire(party.manager, "x", HOUR_MS);
    assert_true(world_wait_with_key("x", NODES, DRIVE_TIMEOUT_MS));
    lose_flows(&party);
    assert_is(drive_release(world_loop, lease, outcome), REDLOCK_ERR_NO_QUORUM);
    assert_true(world_wait_without_key("x", DRIVE_TIMEOUT_MS));
    assert_true(drive_until(world_loop, owes_nothing, party.manager, DRIVE_TIMEOUT_MS));
}

/* --- Nodes that hang, or are slow --- */

static int64_t now_ms(void) {
    return support_now_ms();
}

static bool is_given_up(void *manager) {
    const redlock_node_state state = world_node_info(manager, 0).state;
    return state != REDLOCK_NODE_READY && state != REDLOCK_NODE_STALLED;
}

/* One at a time, each for the connect timeout (R16). */
WORLD_TEST(a_hung_node_gets_few_connections) {
    redlock_acquire_options acquire_options = world_acquire_options(30000, 0);
    struct party party;
    const char *uris[NODES];
    redlock_manager_options options = party_options(&party, uris);
    party.manager = world_manager_with(&options);
    assert_true(drive_nodes(world_loop, party.manager, REDLOCK_NODE_READY, NODES));
    const int before = proxy_connections(party.proxies[0]);
    server_pause(&world_servers.at[0]);
    const int64_t paused_ms = now_ms();
    while (!is_given_up(party.manager)) {
        /* On a busy machine others may be too slow, too. It is asked all the same. */
        if (drive_acquire(world_loop, party.manager, "x", &acquire_options, outcome) == REDLOCK_OK) {
            (void)drive_release(world_loop, outcome->lease, outcome);
        }
        assert_true(now_ms() < paused_ms + DRIVE_TIMEOUT_MS);
        drive_for(world_loop, 10);
    }
    const int64_t lasted_ms = now_ms() - paused_ms;
    const int connections = proxy_connections(party.proxies[0]) - before;
    print_message("hung for %lld ms: %d connections\n", (long long)lasted_ms, connections);
    assert_true(lasted_ms >= 5000);
    assert_in_range(connections, 1, lasted_ms / 1000 + 3); /* the last: after it was given up */
    server_resume(&world_servers.at[0]);
    assert_true(drive_nodes(world_loop, party.manager, REDLOCK_NODE_READY, NODES));
    assert_true(world_wait_without_key("x", DRIVE_TIMEOUT_MS));
}
