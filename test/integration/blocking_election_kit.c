/* What the tests of elections for threads that block begin with. */
#include "blocking_election_kit.h"

#define TTL_MS 10000

redlock_client_election *elect(redlock_client *client, bool campaign) {
    redlock_election_options options;
    redlock_client_election *election = NULL;
    redlock_election_options_default(&options);
    options.ttl_ms = TTL_MS;
    options.campaign = campaign;
    kit_must(redlock_client_elect(client, NAME, &options, &election) == REDLOCK_OK && election);
    return election;
}

redlock_election_event read_event(redlock_client_election *election, int64_t timeout_ms) {
    redlock_election_event event = {.size = sizeof event};
    const int code = redlock_client_election_next(election, timeout_ms, &event);
    if (code != REDLOCK_OK) {
        support_fatal("no event: %s", redlock_error_name(code));
    }
    kit_must(event.size == sizeof event && event.election == NULL && event.lease == NULL);
    return event;
}

redlock_election_event next_change(redlock_client_election *election, redlock_election_event_kind kind) {
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

redlock_election_event next_leader(redlock_client_election *election) {
    for (;;) {
        const redlock_election_event event = read_event(election, WAIT_MS);
        if (event.kind == REDLOCK_ELECTION_LEADER) {
            return event;
        }
    }
}

uint64_t lead(redlock_client_election *election) {
    const redlock_election_event event = next_change(election, REDLOCK_ELECTION_LEADING);
    kit_must(redlock_client_election_validity_ms(election, event.term) > 0);
    return event.term;
}
