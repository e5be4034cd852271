/* The names of codes, votes and states, and the version. */
#include <redlock/election.h>

const char *redlock_strerror(int code) {
    switch (code) {
#define REDLOCK_X(name, value, text)                                                                                   \
    case value:                                                                                                        \
        return text;
        REDLOCK_ERROR_MAP(REDLOCK_X)
#undef REDLOCK_X
    default:
        return "unknown code";
    }
}

/* "ERR_" is a prefix of C names only. */
static const char *without_err(const char *name) {
    return name[0] == 'E' ? name + sizeof "ERR_" - 1 : name;
}

const char *redlock_error_name(int code) {
    switch (code) {
#define REDLOCK_X(name, value, text)                                                                                   \
    case value:                                                                                                        \
        return without_err(#name);
        REDLOCK_ERROR_MAP(REDLOCK_X)
#undef REDLOCK_X
    default:
        return "UNKNOWN_CODE";
    }
}

/* An enum of the caller may have any value. */
#define NAME_OF(value, names) ((unsigned)(value) < sizeof(names) / sizeof *(names) ? (names)[value] : "?")

const char *redlock_vote_name(redlock_vote_kind kind) {
    static const char *const names[] = {
        [REDLOCK_VOTE_PENDING] = "PENDING", [REDLOCK_VOTE_GRANTED] = "GRANTED", [REDLOCK_VOTE_DENIED] = "DENIED",
        [REDLOCK_VOTE_FAILED] = "FAILED",   [REDLOCK_VOTE_UNKNOWN] = "UNKNOWN", [REDLOCK_VOTE_ABSTAINED] = "ABSTAINED"};
    return NAME_OF(kind, names);
}

const char *redlock_node_state_name(redlock_node_state state) {
    static const char *const names[] = {[REDLOCK_NODE_CONNECTING] = "CONNECTING",
                                        [REDLOCK_NODE_READY] = "READY",
                                        [REDLOCK_NODE_STALLED] = "STALLED",
                                        [REDLOCK_NODE_WAITING] = "WAITING",
                                        [REDLOCK_NODE_UNUSABLE] = "UNUSABLE"};
    return NAME_OF(state, names);
}

const char *redlock_election_event_name(redlock_election_event_kind kind) {
    static const char *const names[] = {
        [REDLOCK_ELECTION_NOTHING] = "NOTHING", [REDLOCK_ELECTION_LEADING] = "LEADING",
        [REDLOCK_ELECTION_LOST] = "LOST",       [REDLOCK_ELECTION_RESIGNED] = "RESIGNED",
        [REDLOCK_ELECTION_LEADER] = "LEADER",   [REDLOCK_ELECTION_TROUBLE] = "TROUBLE",
        [REDLOCK_ELECTION_ENDED] = "ENDED",     [REDLOCK_ELECTION_EXPIRING] = "EXPIRING"};
    return NAME_OF(kind, names);
}

const char *redlock_version(void) {
    return REDLOCK_VERSION;
}
