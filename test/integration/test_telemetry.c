/* The events and the snapshot of a manager with real servers: locks that wait, nodes that go down
 * and come back, and nodes that hang. */
#include <redlock/telemetry.h>

#include "world.h"

/* What on_event was told of one manager. */
struct tale {
    unsigned counts[REDLOCK_TELEMETRY_EXPIRING + 1];
    unsigned node_ups, node_downs; /* sets of nodes */
    void *trace;                   /* of the last event with a resource */
    char reason[256];              /* of the last NODE_DOWN */
};

static void take_event(const redlock_telemetry_event *event, void *data) {
    struct tale *tale = data;
    assert_int_equal(event->size, sizeof *event);
    tale->counts[event->kind]++;
    if (event->kind == REDLOCK_TELEMETRY_NODE_UP || event->kind == REDLOCK_TELEMETRY_NODE_DOWN) {
        const bool up = event->kind == REDLOCK_TELEMETRY_NODE_UP;
        *(up ? &tale->node_ups : &tale->node_downs) |= 1U << event->node_index;
        assert_string_equal(event->node, world_servers.at[event->node_index].name);
        assert_int_equal(strlen(event->reason) > 0, !up);
        strncpy(tale->reason, event->reason, sizeof tale->reason - 1);
    } else {
        tale->trace = event->trace;
    }
}

static redlock_manager *tell(struct tale *tale, int64_t node_timeout_ms) {
    redlock_manager_options options = world_options();
    options.node_timeout_ms = node_timeout_ms;
    options.on_event = take_event;
    options.event_data = tale;
    return world_manager_with(&options);
}

static redlock_telemetry snapshot(const redlock_manager *manager) {
    redlock_telemetry now = {.size = sizeof now};
    assert_is(redlock_manager_telemetry(manager, &now), REDLOCK_OK);
    return now;
}

static uint64_t sum(const redlock_histogram *histogram) {
    uint64_t sum = 0;
    for (size_t i = 0; i < REDLOCK_HISTOGRAM_BUCKETS; i++) {
        sum += histogram->buckets[i];
    }
    assert_int_equal(sum, histogram->count);
    return sum;
}

static bool was_queued(void *data) {
    return ((struct tale *)data)->counts[REDLOCK_TELEMETRY_QUEUED] > 0;
}

TESTS_WITH(world_five, world_end);

WORLD_TEST(a_waiter_is_told_and_its_wait_is_counted) {
    static struct tale first_tale, second_tale;
    memset(&first_tale, 0, sizeof first_tale);
    memset(&second_tale, 0, sizeof second_tale);
    redlock_manager *first = tell(&first_tale, PATIENT_MS), *second = tell(&second_tale, PATIENT_MS);
    assert_int_equal(first_tale.node_ups, 31);
    assert_int_equal(first_tale.counts[REDLOCK_TELEMETRY_NODE_UP], 5);
    redlock_lease *lease = world_acquire(first, "turn", 60000);
    struct outcome *waiter = world_outcome();
    redlock_acquire_options options = world_acquire_options(60000, DRIVE_TIMEOUT_MS);
    options.trace = waiter;
    assert_is(redlock_acquire(second, "turn", &options, NULL, outcome_collect, waiter), REDLOCK_OK);
    assert_int_equal(second_tale.counts[REDLOCK_TELEMETRY_STARTED], 1);
    assert_true(drive_until(world_loop, was_queued, &second_tale, DRIVE_TIMEOUT_MS));
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
    assert_true(outcome_wait(world_loop, waiter));
    assert_is(waiter->code, REDLOCK_OK);
    assert_int_equal(second_tale.counts[REDLOCK_TELEMETRY_QUEUED], 1);
    assert_int_equal(second_tale.counts[REDLOCK_TELEMETRY_ACQUIRED], 1);
    assert_ptr_equal(second_tale.trace, waiter);
    assert_int_equal(first_tale.counts[REDLOCK_TELEMETRY_RELEASED], 1);
    assert_null(first_tale.trace);
    const redlock_telemetry of_first = snapshot(first), of_second = snapshot(second);
    assert_int_equal(sum(&of_first.acquire), 1);
    assert_int_equal(sum(&of_first.held), 1);
    assert_int_equal(sum(&of_first.wait), 0);
    assert_int_equal(sum(&of_second.wait), 1);
    assert_int_equal(sum(&of_second.held), 0);
    world_close(second); /* it releases the lease */
    assert_int_equal(second_tale.counts[REDLOCK_TELEMETRY_RELEASED], 1);
    /* A close is no failure. */
    assert_int_equal(second_tale.counts[REDLOCK_TELEMETRY_NODE_DOWN], 0);
}

static bool node_is_down(void *data) {
    return ((struct tale *)data)->node_downs == 1;
}

static bool node_is_back(void *data) {
    return ((struct tale *)data)->counts[REDLOCK_TELEMETRY_NODE_UP] == 6;
}

WORLD_TEST(a_node_that_goes_and_comes_is_told) {
    static struct tale tale;
    memset(&tale, 0, sizeof tale);
    redlock_manager *manager = tell(&tale, PATIENT_MS);
    server_kill(&world_servers.at[0]);
    assert_true(drive_until(world_loop, node_is_down, &tale, DRIVE_TIMEOUT_MS));
    assert_true(strlen(tale.reason) > 0);
    redlock_lease *lease = world_acquire(manager, "minority", 60000);
    redlock_telemetry now = snapshot(manager);
    assert_int_equal(now.votes[REDLOCK_VOTED_CONNECTION][0], 1);
    assert_int_equal(now.votes[REDLOCK_VOTED_GRANTED][0], 0);
    assert_int_equal(now.node_downs[0], 1);
    assert_int_equal(tale.counts[REDLOCK_TELEMETRY_NODE_DOWN], 1);
    server_restart(&world_servers.at[0]);
    assert_true(drive_until(world_loop, node_is_back, &tale, DRIVE_TIMEOUT_MS));
    assert_int_equal(tale.counts[REDLOCK_TELEMETRY_NODE_DOWN], 1); /* not at each try in between */
    now = snapshot(manager);
    assert_int_equal(now.node_ups[0], 2);
    assert_int_equal(now.node_ups[1], 1);
    assert_int_equal(now.node_downs[1], 0);
    assert_is(drive_release(world_loop, lease, world_outcome()), REDLOCK_OK);
}

WORLD_TEST(a_node_that_hangs_is_counted_by_its_cause) {
    static struct tale tale;
    memset(&tale, 0, sizeof tale);
    redlock_manager *manager = tell(&tale, 100);
    server_pause(&world_servers.at[4]);
    while (tale.node_downs == 0) { /* three timeouts stall it */
        redlock_acquire_options options = world_acquire_options(60000, 0);
        if (drive_acquire(world_loop, manager, "hung", &options, outcome) == REDLOCK_OK) {
            drive_release(world_loop, outcome->lease, world_outcome());
        }
        drive_for(world_loop, 1);
    }
    assert_int_equal(tale.node_downs, 1U << 4);
    assert_contains(tale.reason, "stalled");
    struct outcome *stalled = world_outcome();
    redlock_acquire_options options = world_acquire_options(60000, 0);
    (void)drive_acquire(world_loop, manager, "refused", &options, stalled);
    const redlock_telemetry now = snapshot(manager);
    assert_true(now.votes[REDLOCK_VOTED_TIMEOUT][4] >= 3);
    assert_true(now.votes[REDLOCK_VOTED_STALLED][4] >= 1);
    assert_int_equal(now.votes[REDLOCK_VOTED_GRANTED][4], 0);
    server_resume(&world_servers.at[4]);
}
