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

const char *redlock_vote_name(redlock_vote_kind kind) {
    switch (kind) {
    case REDLOCK_VOTE_PENDING:
        return "PENDING";
    case REDLOCK_VOTE_GRANTED:
        return "GRANTED";
    case REDLOCK_VOTE_DENIED:
        return "DENIED";
    case REDLOCK_VOTE_FAILED:
        return "FAILED";
    case REDLOCK_VOTE_UNKNOWN:
        return "UNKNOWN";
    case REDLOCK_VOTE_ABSTAINED:
        return "ABSTAINED";
    }
    return "?";
}

const char *redlock_node_state_name(redlock_node_state state) {
    switch (state) {
    case REDLOCK_NODE_CONNECTING:
        return "CONNECTING";
    case REDLOCK_NODE_READY:
        return "READY";
    case REDLOCK_NODE_STALLED:
        return "STALLED";
    case REDLOCK_NODE_WAITING:
        return "WAITING";
    case REDLOCK_NODE_UNUSABLE:
        return "UNUSABLE";
    }
    return "?";
}

const char *redlock_election_event_name(redlock_election_event_kind kind) {
    switch (kind) {
    case REDLOCK_ELECTION_NOTHING:
        return "NOTHING";
    case REDLOCK_ELECTION_LEADING:
        return "LEADING";
    case REDLOCK_ELECTION_LOST:
        return "LOST";
    case REDLOCK_ELECTION_RESIGNED:
        return "RESIGNED";
    case REDLOCK_ELECTION_LEADER:
        return "LEADER";
    case REDLOCK_ELECTION_TROUBLE:
        return "TROUBLE";
    case REDLOCK_ELECTION_ENDED:
        return "ENDED";
    case REDLOCK_ELECTION_EXPIRING:
        return "EXPIRING";
    }
    return "?";
}

const char *redlock_version(void) {
    return REDLOCK_VERSION;
}
