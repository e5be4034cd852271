/* What the replies to SET … NX GET mean. */
#include "wire/holder_query.h"

#include <assert.h>

#include "base/holder.h"
#include "wire/error.h"
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
    answer->again = REDLOCK_AGAIN_NOT;
}

static const struct redlock_text not_clear = {
    .string = "the node did not make clear whether it granted the lock: what it answered to SET with GET, twice, "
              "does not fit together"};

/* The entries of the table in holder_query.h; BROKEN is what is not there. */
enum meaning { BROKEN, UNCLEAR, UNCLEAR_NOT, GRANTED_NOT, DENIED, FAILED };

static const uint8_t meanings[REDLOCK_HOLDER_QUERY_REPLY_COUNT][REDLOCK_HOLDER_QUERY_REPLY_COUNT] = {
    [REDLOCK_HOLDER_QUERY_NIL] = {[REDLOCK_HOLDER_QUERY_NIL] = UNCLEAR_NOT,
                                  [REDLOCK_HOLDER_QUERY_VALUE] = UNCLEAR,
                                  [REDLOCK_HOLDER_QUERY_OK] = GRANTED_NOT,
                                  [REDLOCK_HOLDER_QUERY_ERROR] = UNCLEAR},
    [REDLOCK_HOLDER_QUERY_VALUE] = {[REDLOCK_HOLDER_QUERY_NIL] = UNCLEAR,
                                    [REDLOCK_HOLDER_QUERY_VALUE] = DENIED,
                                    [REDLOCK_HOLDER_QUERY_ERROR] = DENIED},
    [REDLOCK_HOLDER_QUERY_OK] = {[REDLOCK_HOLDER_QUERY_NIL] = GRANTED_NOT, [REDLOCK_HOLDER_QUERY_ERROR] = UNCLEAR},
    [REDLOCK_HOLDER_QUERY_ERROR] = {[REDLOCK_HOLDER_QUERY_NIL] = UNCLEAR,
                                    [REDLOCK_HOLDER_QUERY_VALUE] = DENIED,
                                    [REDLOCK_HOLDER_QUERY_OK] = GRANTED_NOT,
                                    [REDLOCK_HOLDER_QUERY_ERROR] = FAILED},
};

enum redlock_holder_query_proof redlock_holder_query_judge(enum redlock_holder_query_reply first,
                                                           enum redlock_holder_query_reply second,
                                                           struct redlock_answer *answer) {
    static const struct redlock_text broken = {.string = "the node answered out of protocol; is it a Redis server?",
                                               .cause = REDLOCK_CAUSE_NOT_A_NODE};
    assert(first < REDLOCK_HOLDER_QUERY_REPLY_COUNT && second < REDLOCK_HOLDER_QUERY_REPLY_COUNT);
    const enum meaning meaning = (enum meaning)meanings[first][second];
    switch (meaning) {
    case BROKEN:
        become(answer, REDLOCK_VOTE_UNKNOWN, &broken);
        return REDLOCK_HOLDER_QUERY_BROKEN;
    case UNCLEAR:
    case UNCLEAR_NOT:
        become(answer, REDLOCK_VOTE_UNKNOWN, &not_clear);
        break;
    case GRANTED_NOT:
        become(answer, REDLOCK_VOTE_GRANTED, NULL);
        break;
    case DENIED:
        if (answer->vote != REDLOCK_VOTE_DENIED) { /* only the first was a value */
            become(answer, REDLOCK_VOTE_DENIED, &redlock_holder_other);
        }
        break;
    case FAILED:
        break;
    }
    return meaning == UNCLEAR_NOT || meaning == GRANTED_NOT || answer->again ? REDLOCK_HOLDER_QUERY_REFUTED
                                                                             : REDLOCK_HOLDER_QUERY_OPEN;
}

bool redlock_holder_query_compared(struct redlock_answer *answer, bool is_first_ours, bool is_ours) {
    assert(answer->named != REDLOCK_NAMED_NOT);
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
    assert(error->type == REDLOCK_REPLY_ERROR && answer->vote == REDLOCK_VOTE_FAILED);
    if (redlock_wire_begins_with(error, "WRONGTYPE")) {
        become(answer, REDLOCK_VOTE_DENIED, &redlock_holder_other);
    } else if (redlock_wire_cause(error) != REDLOCK_CAUSE_NOPERM) {
        answer->again = redlock_wire_begins_with(error, "ERR") ? REDLOCK_AGAIN_BY_SOURCE : REDLOCK_AGAIN_NOT;
    } else if (redlock_rights_of(error->bytes, error->size) == REDLOCK_RIGHT_OPEN) {
        struct redlock_text *text =
            redlock_text_new(REDLOCK_CAUSE_NOPERM,
                             "%s; this user must be allowed to read and write the key (ACL SETUSER, ~PATTERN): else no "
                             "lease could be renewed and released here",
                             redlock_text_string(answer->text));
        redlock_text_drop(answer->text);
        answer->text = text;
    } else {
        answer->again = REDLOCK_AGAIN_BY_SOURCE;
    }
}
