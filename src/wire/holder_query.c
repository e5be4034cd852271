/* What the replies to SET … NX GET mean. */
#include "wire/holder_query.h"

#include <assert.h>

#include "base/holder.h"
#include "wire/cause.h"
#include "wire/rights.h"

enum redlock_holder_query_reply redlock_holder_query_reply_of(const struct redlock_reply *reply) {
    const struct redlock_reply_value *value = &reply->value;
    switch (value->type) {
    case REDLOCK_REPLY_NIL:
        return REDLOCK_HOLDER_QUERY_NIL;
    case REDLOCK_REPLY_STRING:
        return REDLOCK_HOLDER_QUERY_VALUE;
    case REDLOCK_REPLY_STATUS:
        return redlock_reply_is_ok(value) ? REDLOCK_HOLDER_QUERY_OK : REDLOCK_HOLDER_QUERY_OTHER;
    case REDLOCK_REPLY_ERROR:
        return redlock_wire_begins_with(value, "WRONGTYPE") ? REDLOCK_HOLDER_QUERY_VALUE : REDLOCK_HOLDER_QUERY_ERROR;
    case REDLOCK_REPLY_NONE:
    case REDLOCK_REPLY_INTEGER:
    case REDLOCK_REPLY_ARRAY:
    case REDLOCK_REPLY_OTHER:
        break;
    }
    return REDLOCK_HOLDER_QUERY_OTHER;
}

static void become(struct redlock_answer *answer, redlock_vote_kind vote, const struct redlock_text *text) {
    redlock_text_drop(answer->text);
    answer->vote = vote;
    answer->text = text == NULL ? NULL : redlock_text_constant(text);
}

static const struct redlock_text not_clear = {
    .string = "the node did not make clear whether it granted the lock: what it answered to SET with GET, twice, "
              "does not fit together"};

static enum redlock_holder_query_proof unclear(struct redlock_answer *answer, enum redlock_holder_query_proof proof) {
    become(answer, REDLOCK_VOTE_UNKNOWN, &not_clear);
    answer->no_script = false;
    return proof;
}

static enum redlock_holder_query_proof granted(struct redlock_answer *answer, enum redlock_holder_query_proof proof) {
    become(answer, REDLOCK_VOTE_GRANTED, NULL);
    return proof;
}

static enum redlock_holder_query_proof denied(struct redlock_answer *answer) {
    if (answer->vote != REDLOCK_VOTE_DENIED) {
        become(answer, REDLOCK_VOTE_DENIED, &redlock_holder_other);
        answer->no_script = false;
    }
    return REDLOCK_HOLDER_QUERY_OPEN;
}

static enum redlock_holder_query_proof broken(struct redlock_answer *answer) {
    static const struct redlock_text text = {.string = "the node answered out of protocol; is it a Redis server?",
                                             .cause = REDLOCK_CAUSE_NOT_A_NODE};
    become(answer, REDLOCK_VOTE_UNKNOWN, &text);
    answer->no_script = false;
    return REDLOCK_HOLDER_QUERY_BROKEN;
}

static enum redlock_holder_query_proof after_nil(enum redlock_holder_query_reply second,
                                                 struct redlock_answer *answer) {
    return second == REDLOCK_HOLDER_QUERY_OK    ? granted(answer, REDLOCK_HOLDER_QUERY_REFUTED)
           : second == REDLOCK_HOLDER_QUERY_NIL ? unclear(answer, REDLOCK_HOLDER_QUERY_REFUTED)
                                                : unclear(answer, REDLOCK_HOLDER_QUERY_OPEN);
}

static enum redlock_holder_query_proof after_error(enum redlock_holder_query_reply second,
                                                   struct redlock_answer *answer) {
    return second == REDLOCK_HOLDER_QUERY_VALUE   ? denied(answer)
           : second == REDLOCK_HOLDER_QUERY_OK    ? granted(answer, REDLOCK_HOLDER_QUERY_REFUTED)
           : second != REDLOCK_HOLDER_QUERY_ERROR ? unclear(answer, REDLOCK_HOLDER_QUERY_OPEN)
           : answer->no_script                    ? REDLOCK_HOLDER_QUERY_REFUTED
                                                  : REDLOCK_HOLDER_QUERY_OPEN;
}

/* The table in holder_query.h, row by row. */
enum redlock_holder_query_proof redlock_holder_query_judge(enum redlock_holder_query_reply first,
                                                           enum redlock_holder_query_reply second,
                                                           struct redlock_answer *answer) {
    assert(first < REDLOCK_HOLDER_QUERY_REPLY_COUNT && second < REDLOCK_HOLDER_QUERY_REPLY_COUNT);
    if (second == REDLOCK_HOLDER_QUERY_OTHER) {
        return broken(answer);
    }
    switch (first) {
    case REDLOCK_HOLDER_QUERY_NIL:
        return after_nil(second, answer);
    case REDLOCK_HOLDER_QUERY_VALUE:
        return second == REDLOCK_HOLDER_QUERY_OK ? broken(answer)
               : second == REDLOCK_HOLDER_QUERY_VALUE || second == REDLOCK_HOLDER_QUERY_ERROR
                   ? denied(answer)
                   : unclear(answer, REDLOCK_HOLDER_QUERY_OPEN);
    case REDLOCK_HOLDER_QUERY_OK:
        return second == REDLOCK_HOLDER_QUERY_NIL     ? granted(answer, REDLOCK_HOLDER_QUERY_REFUTED)
               : second == REDLOCK_HOLDER_QUERY_ERROR ? unclear(answer, REDLOCK_HOLDER_QUERY_OPEN)
                                                      : broken(answer);
    case REDLOCK_HOLDER_QUERY_ERROR:
        return after_error(second, answer);
    case REDLOCK_HOLDER_QUERY_OTHER:
    case REDLOCK_HOLDER_QUERY_REPLY_COUNT:
        break;
    }
    return broken(answer);
}

bool redlock_holder_query_compared(struct redlock_answer *answer, bool is_first_ours, bool is_ours) {
    static const struct redlock_text own = {
        .string = "it had our own token before it was asked: it is the same server as another node",
        .cause = REDLOCK_CAUSE_SAME_SERVER};
    const bool was_there = is_ours && (is_first_ours || answer->named == REDLOCK_NAMED_ONCE);
    const bool is_proof = is_ours && answer->named == REDLOCK_NAMED_AFTER_NIL;
    if (is_proof) {
        become(answer, REDLOCK_VOTE_GRANTED, NULL);
    } else if (is_first_ours || is_ours) {
        become(answer, REDLOCK_VOTE_UNKNOWN, was_there ? &own : &not_clear);
    }
    return is_proof;
}

void redlock_holder_query_read_error(const struct redlock_reply_value *error, struct redlock_answer *answer) {
    if (redlock_wire_begins_with(error, "WRONGTYPE")) {
        become(answer, REDLOCK_VOTE_DENIED, &redlock_holder_other);
        answer->no_script = false;
    } else if (redlock_wire_cause(error) != REDLOCK_CAUSE_NOPERM) {
        answer->no_script = redlock_wire_begins_with(error, "ERR");
    } else if (redlock_rights_of(error->bytes, error->size) == REDLOCK_RIGHT_OPEN) {
        struct redlock_text *text =
            redlock_text_new(REDLOCK_CAUSE_NOPERM,
                             "%s; this user must be allowed to read and write the key (ACL SETUSER, ~PATTERN): else no "
                             "lease could be renewed and released here",
                             redlock_text_string(answer->text));
        redlock_text_drop(answer->text);
        answer->text = text;
    } else {
        answer->no_script = true;
    }
}
