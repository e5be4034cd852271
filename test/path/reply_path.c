/* Follows the reply that grants a lock: prints each function that is called until the callback. */
#include <stdio.h>
#include <stdlib.h>

#include "drive.h"
#include "servers.h"

#define CALLS_MAX 4096
#define QUIET     __attribute__((no_instrument_function))

extern char __executable_start; /* the linker's */

static struct {
    bool on;
    unsigned count, returns;
    void *calls[CALLS_MAX];
} trace;

QUIET void __cyg_profile_func_enter(void *function, void *site);
QUIET void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site) {
    (void)site;
    if (trace.on && trace.count < CALLS_MAX) {
        trace.calls[trace.count++] = function;
    }
}

void __cyg_profile_func_exit(void *function, void *site) {
    (void)function;
    (void)site;
    trace.returns += trace.on;
}

QUIET static void on_acquired(const redlock_result *result, void *data) {
    trace.on = false;
    outcome_collect(result, data);
}

/* Only the turn of the loop in which the reply comes counts: there may be others before. */
QUIET static void on_turn(struct ev_loop *loop, ev_check *turn, int events) {
    (void)loop, (void)turn, (void)events;
    trace.count = trace.returns = 0;
}

QUIET static void pass(const char *what, bool good) {
    if (!good) {
        (void)fprintf(stderr, "reply_path: %s\n", what);
        exit(1);
    }
}

QUIET int main(void) {
    static struct servers servers;
    struct outcome outcome = {0};
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    servers_start(&servers, 1, NULL);
    redlock_manager_options options;
    redlock_acquire_options acquire;
    redlock_manager_options_default(&options);
    redlock_acquire_options_default(&acquire);
    options.nodes = servers.uris;
    options.node_count = 1;
    options.node_timeout_ms = DRIVE_TIMEOUT_MS;
    redlock_manager *manager;
    pass("no manager", redlock_manager_create(loop, &options, &manager, NULL, 0) == REDLOCK_OK &&
                           drive_connect(loop, manager, &outcome) == REDLOCK_OK);
    /* The first acquire proves what the server does; the second is plain. */
    pass("no lock", drive_acquire(loop, manager, "first", &acquire, &outcome) == REDLOCK_OK);
    outcome_clear(&outcome);
    server_pause(&servers.at[0]);
    (void)redlock_acquire(manager, "second", &acquire, NULL, on_acquired, &outcome);
    for (int i = 0; i < 3; i++) {
        ev_run(loop, EVRUN_NOWAIT); /* it is written */
    }
    ev_check turn;
    ev_check_init(&turn, on_turn);
    ev_set_priority(&turn, EV_MAXPRI);
    ev_check_start(loop, &turn);
    trace.on = true;
    server_resume(&servers.at[0]);
    pass("no lock", outcome_wait(loop, &outcome) && outcome.code == REDLOCK_OK && trace.count < CALLS_MAX);
    ev_check_stop(loop, &turn);
    printf("returns %u\n", trace.returns);
    for (unsigned i = 0; i < trace.count; i++) {
        printf("%tx\n", (char *)trace.calls[i] - &__executable_start);
    }
    outcome_clear(&outcome);
    return drive_close(loop, manager) ? 0 : 1;
}
