/* TLS on an event loop of any kind (kind.h): a lock, and more replies than one turn reads. What a
 * turn leaves in TLS wakes no loop by itself. */
#include "kind.h"
#include "pki.h"
#include "tls_front.h"
#include "world.h"

#define MANY 300

static struct tls_front *front;
static int replies, closed;

/* The node's side lives on a loop of its own, which turns here. */
static void on_tick(void) {
    ev_run(world_loop, EVRUN_NOWAIT);
}

static void count_reply(const redlock_result *result, void *data) {
    (void)data;
    replies += redlock_result_code(result) == REDLOCK_OK;
}

static void on_closed(void *data) {
    ++*(int *)data;
}

static redlock_manager *new_manager(void) {
    const char *uri = tls_front_uri(front);
    redlock_manager_options options = world_options();
    redlock_manager *manager = NULL;
    redlock_tls_options tls;
    char error[256] = "";
    redlock_tls_options_default(&tls);
    tls.ca_file = pki_file("ca.pem");
    options.tls = &tls;
    options.nodes = &uri;
    options.node_count = 1;
    /* A reply that nobody reads does not end by it. */
    options.node_timeout_ms = 2 * DRIVE_TIMEOUT_MS;
    if (loop_create(&options, &manager, error, sizeof error) != REDLOCK_OK) {
        fail_msg("creating a manager: %s", error);
    }
    return manager;
}

static int finish(struct outcome *outcome) {
    UNTIL(outcome->runs == 1);
    return outcome->code;
}

static void ask(redlock_manager *manager, int count) {
    for (int i = 0; i < count; i++) {
        assert_is(redlock_inspect(manager, "door", count_reply, NULL), REDLOCK_OK);
    }
}

/* All replies leave the node at once, each byte in a record of its own. */
static void take_many(redlock_manager *manager) {
    tls_front_hold(front, true);
    ask(manager, 1);
    UNTIL(tls_front_seen(front)->held > 0);
    const size_t size = tls_front_seen(front)->held;
    ask(manager, MANY);
    UNTIL(tls_front_seen(front)->held == (MANY + 1) * size);
    tls_front_record_size(front, 1);
    tls_front_hold(front, false);
    UNTIL(replies == MANY + 1);
}

static int start(void **state);
TESTS_WITH(start, world_end);

WORLD_TEST(a_lock_over_tls) {
    const struct tls_front_options options = {
        .target_port = world_servers.at[0].port, .cert_file = pki_file("node.pem"), .key_file = pki_file("node.key")};
    struct outcome *connected = world_outcome(), *acquired = world_outcome(), *released = world_outcome();
    redlock_acquire_options acquire = world_acquire_options(600000, 0);
    front = tls_front_start(world_loop, &options);
    loop_open();
    loop_start_timer(1, on_tick);
    redlock_manager *manager = new_manager();
    assert_is(redlock_manager_connect(manager, PATIENT_MS, outcome_collect, connected), REDLOCK_OK);
    assert_is(finish(connected), REDLOCK_OK);
    assert_is(redlock_acquire(manager, "door", &acquire, NULL, outcome_collect, acquired), REDLOCK_OK);
    assert_is(finish(acquired), REDLOCK_OK);
    take_many(manager);
    assert_is(redlock_release(acquired->lease, outcome_collect, released), REDLOCK_OK);
    assert_is(finish(released), REDLOCK_OK);
    assert_is(redlock_manager_close(manager, on_closed, &closed), REDLOCK_OK);
    UNTIL(closed == 1);
    loop_stop_timer();
    assert_true(loop_close());
    tls_front_stop(front);
}

static int start(void **state) {
    if (!pki_is_possible()) {
        print_message("skipped: openssl is not installed\n");
        exit(77);
    }
    return world_three(state);
}
