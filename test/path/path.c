/* Follows what a node says, until the callback runs: prints each function that is called.
 * usage: path reply|push|release : the reply that grants a lock; the push that hands a lock over; a
 * release whose node hangs: the call, and the end of its time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "servers.h"

#define CALLS_MAX 4096
#define QUIET     __attribute__((no_instrument_function))

extern char __executable_start; /* the linker's */

static struct {
    bool on;
    unsigned count, returns;           /* of this turn of the loop, and what is kept of others */
    unsigned kept_count, kept_returns; /* of the turn in which the request was made */
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

QUIET static void on_end(const redlock_result *result, void *data) {
    trace.on = false;
    outcome_collect(result, data);
}

/* Only the turn of the loop counts in which the callback runs: there may be others before. */
QUIET static void on_turn(struct ev_loop *loop, ev_check *turn, int events) {
    (void)loop, (void)turn, (void)events;
    trace.count = trace.kept_count;
    trace.returns = trace.kept_returns;
}

QUIET static void pass(const char *what, bool good) {
    if (!good) {
        (void)fprintf(stderr, "path: %s\n", what);
        exit(1);
    }
}

struct party {
    struct ev_loop *loop;
    redlock_manager *manager;
    struct outcome outcome;
};

QUIET static bool listens(void *manager) {
    redlock_node_info info;
    return redlock_manager_node(manager, 0, &info) == REDLOCK_OK && info.listens;
}

QUIET static void join(struct party *party, const struct servers *servers) {
    redlock_manager_options options;
    redlock_manager_options_default(&options);
    options.nodes = servers->uris;
    options.node_count = 1;
    options.node_timeout_ms = 1000;
    options.listen = true;
    party->loop = ev_loop_new(EVFLAG_AUTO);
    pass("no manager", redlock_manager_create(party->loop, &options, &party->manager, NULL, 0) == REDLOCK_OK &&
                           drive_connect(party->loop, party->manager, &party->outcome) == REDLOCK_OK &&
                           drive_until(party->loop, listens, party->manager, DRIVE_TIMEOUT_MS));
}

QUIET static redlock_lease *lock(struct party *party, const char *resource, const redlock_acquire_options *options) {
    pass("no lock", drive_acquire(party->loop, party->manager, resource, options, &party->outcome) == REDLOCK_OK);
    return party->outcome.lease;
}

/* Runs the loop until the callback of the last request has run. */
QUIET static void follow(struct party *party, int code) {
    ev_check turn;
    ev_check_init(&turn, on_turn);
    ev_set_priority(&turn, EV_MAXPRI);
    ev_check_start(party->loop, &turn);
    trace.on = true;
    pass("no result", outcome_wait(party->loop, &party->outcome) && party->outcome.code == code);
    pass("too many calls", trace.count < CALLS_MAX);
    ev_check_stop(party->loop, &turn);
}

QUIET static void follow_reply(struct party *party, struct server *server, const redlock_acquire_options *options) {
    outcome_clear(&party->outcome);
    server_pause(server);
    (void)redlock_acquire(party->manager, "second", options, NULL, on_end, &party->outcome);
    for (int i = 0; i < 3; i++) {
        ev_run(party->loop, EVRUN_NOWAIT); /* it is written */
    }
    server_resume(server);
    follow(party, REDLOCK_OK);
}

QUIET static bool waits(void *server) {
    return server_has_key(server, "second:wait");
}

/* The holder's loop stands still while the push comes. */
QUIET static void follow_push(struct party *party, struct servers *servers, redlock_acquire_options *options) {
    struct party holder = {0};
    join(&holder, servers);
    redlock_lease *lease = lock(&holder, "second", options);
    outcome_clear(&party->outcome);
    options->wait_timeout_ms = DRIVE_TIMEOUT_MS;
    (void)redlock_acquire(party->manager, "second", options, NULL, on_end, &party->outcome);
    pass("no waiter", drive_until(party->loop, waits, &servers->at[0], DRIVE_TIMEOUT_MS));
    /* An answer that comes later: the one to the waiter has been read. */
    pass("no inspection", drive_inspect(party->loop, party->manager, "second", &holder.outcome) == REDLOCK_OK);
    pass("it got what another has", party->outcome.runs == 0);
    pass("no release", drive_release(holder.loop, lease, &holder.outcome) == REDLOCK_OK);
    follow(party, REDLOCK_OK);
    outcome_clear(&holder.outcome);
    pass("no close", drive_close(holder.loop, holder.manager));
}

QUIET static void follow_release(struct party *party, struct server *server, const redlock_acquire_options *options) {
    redlock_lease *lease = lock(party, "second", options);
    outcome_clear(&party->outcome);
    server_pause(server);
    trace.on = true;
    (void)redlock_release(lease, on_end, &party->outcome);
    ev_run(party->loop, EVRUN_NOWAIT); /* it is written */
    trace.kept_count = trace.count;
    trace.kept_returns = trace.returns;
    follow(party, REDLOCK_ERR_NO_QUORUM);
    server_resume(server);
}

QUIET int main(int argc, char **argv) {
    static struct servers servers;
    struct party party = {0};
    const char *way = argc == 2 ? argv[1] : "";
    servers_start(&servers, 1, NULL);
    redlock_acquire_options options;
    redlock_acquire_options_default(&options);
    join(&party, &servers);
    /* The first acquire proves what the server does; the second is plain. */
    (void)lock(&party, "first", &options);
    if (strcmp(way, "reply") == 0) {
        follow_reply(&party, &servers.at[0], &options);
    } else if (strcmp(way, "push") == 0) {
        follow_push(&party, &servers, &options);
    } else {
        pass("usage: path reply|push|release", strcmp(way, "release") == 0);
        follow_release(&party, &servers.at[0], &options);
    }
    printf("returns %u\n", trace.returns);
    for (unsigned i = 0; i < trace.count; i++) {
        printf("%tx\n", (char *)trace.calls[i] - &__executable_start);
    }
    outcome_clear(&party.outcome);
    return drive_close(party.loop, party.manager) ? 0 : 1;
}
